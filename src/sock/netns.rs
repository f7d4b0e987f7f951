//! A network namespace by its descriptor. A socket, and a TAP device, belongs to the namespace in which its thread
//! opened it; so "in that namespace" means: on a thread that has entered it (setns(2) affects one thread).

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::base::{Error, Result};

/// A handle that keeps a network namespace alive. Two handles are equal when they name the same namespace.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
    dev: u64,
    ino: u64,
}

impl PartialEq for NetNs {
    fn eq(&self, other: &NetNs) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}

impl Eq for NetNs {}

impl NetNs {
    /// The calling thread's namespace.
    pub fn current() -> Result<NetNs> {
        NetNs::from_path("/proc/thread-self/ns/net")
    }

    /// From a file: `/proc/<pid>/ns/net`, or what `ip netns add` left in `/run/netns`.
    pub fn from_path(path: impl AsRef<Path>) -> Result<NetNs> {
        let path = path.as_ref();
        let f =
            File::open(path).map_err(|e| Error::from_io(&e, format!("open network namespace '{}'", path.display())))?;
        NetNs::from_fd(f.into()).map_err(|e| e.context(format!("'{}'", path.display())))
    }

    /// From a descriptor that someone else opened. Refused where it is not a network namespace.
    pub fn from_fd(fd: OwnedFd) -> Result<NetNs> {
        // linux/nsfs.h: NS_GET_NSTYPE = _IO(0xb7, 3) answers with the CLONE_NEW* value; only namespace files know it.
        const NS_GET_NSTYPE: libc::Ioctl = 0xb703;
        // SAFETY: the request takes no argument and touches no memory of ours.
        let kind = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE) };
        if kind != libc::CLONE_NEWNET {
            return crate::invalid!("descriptor {} is not a network namespace", fd.as_raw_fd());
        }
        let f = File::from(fd);
        let m = f.metadata().map_err(|e| Error::from_io(&e, "stat of a network namespace"))?;
        Ok(NetNs { dev: m.dev(), ino: m.ino(), fd: f.into() })
    }

    /// A new, empty namespace without a name; it goes with the last descriptor, process and device in it.
    /// Needs CAP_SYS_ADMIN.
    pub fn create() -> Result<NetNs> {
        on_thread(|| {
            // SAFETY: unshare of CLONE_NEWNET changes this short-lived thread's namespace only.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return Err(Error::os("new network namespace (needs CAP_SYS_ADMIN)"));
            }
            NetNs::current()
        })
    }

    pub fn try_clone(&self) -> Result<NetNs> {
        let fd = self.fd.try_clone().map_err(|e| Error::from_io(&e, "duplicate a network namespace descriptor"))?;
        Ok(NetNs { fd, dev: self.dev, ino: self.ino })
    }

    /// Runs `f` inside the namespace and hands back its result: at once where the calling thread is in it already
    /// (no privilege needed), else on a thread of its own that ends with `f` (needs CAP_SYS_ADMIN).
    pub fn run_in<T: Send>(&self, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        if NetNs::current().is_ok_and(|now| now == *self) {
            return f();
        }
        on_thread(|| {
            // SAFETY: setns changes this short-lived thread's namespace only; the descriptor is open.
            if unsafe { libc::setns(self.fd.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(Error::os(format!("enter network namespace {} (needs CAP_SYS_ADMIN)", self.ino)));
            }
            f()
        })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn on_thread<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|s| {
        let t = std::thread::Builder::new()
            .name("bl-netns".into())
            .spawn_scoped(s, f)
            .map_err(|e| Error::from_io(&e, "start a thread for a network namespace"))?;
        // A panic of `f` goes on as if it had run here.
        t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_equals_itself_and_runs_in_place() {
        let (a, b) = (NetNs::current().unwrap(), NetNs::from_path("/proc/self/ns/net").unwrap());
        assert_eq!(a, b);
        assert_eq!(a, a.try_clone().unwrap());
        let here = std::thread::current().id();
        assert!(a.run_in(|| Ok(std::thread::current().id() == here)).unwrap());
    }

    #[test]
    fn other_files_are_refused() {
        let e = NetNs::from_path("/proc/self/ns/uts").unwrap_err();
        assert!(e.text().contains("/proc/self/ns/uts") && e.text().contains("not a network namespace"), "{e}");
        assert!(NetNs::from_path("/dev/null").is_err());
        let e = NetNs::from_path("/proc/self/ns/none").unwrap_err();
        assert_eq!(e.errno().0, libc::ENOENT);
    }
}
