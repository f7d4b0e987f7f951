//! The kernel's side of a TAP port (linux/if_tun.h, Documentation/networking/tuntap.rst). A device with n queues is n
//! descriptors of /dev/net/tun with the same interface name; a read is one frame that the kernel sends, a write is one
//! frame that it receives, so the netdev's tx counters are our received frames. The device lives in the namespace
//! of the thread that opened it, until someone moves it or gives it another name; both are looked up, never remembered.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use super::sys::*;
use crate::driver::{Errno, Error, Result, fail, invalid};
use crate::sock::iface::{self, Ctl, LinkState};
use crate::sock::netns::NetNs;
use crate::sock::stats::{LinkStats, StatsReader};

/// MAX_TAP_QUEUES of drivers/net/tun.c.
pub const MAX_QUEUES: usize = 256;
/// The pieces that one read or write takes: 64 KiB in buffers of 2 KiB, and some.
pub const MAX_SEGS: usize = 40;
/// The longest frame: tun.c allows an MTU of 65,535 - 14.
pub const MAX_FRAME: usize = 65_535;

/// How a device is opened.
#[derive(Clone, Copy, Debug)]
pub struct TapOptions<'a> {
    /// A name, or a pattern with one `%d` of which the kernel picks the number.
    pub name: &'a str,
    /// 1 to 256.
    pub n_queues: usize,
    /// Join an existing device (say, a persistent one that a helper made for this user) rather than refuse its name.
    pub attach: bool,
}

/// Why a read or write did not move a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing there, or no room now (EAGAIN, ENOBUFS, ENOMEM, EINTR): try later.
    Again,
    /// The interface is down (EIO, ENETDOWN): comes back when someone sets it up.
    Down,
    /// The kernel will never take this frame (EINVAL: shorter than 14 bytes; EMSGSIZE).
    Invalid,
    /// The device is gone (EBADFD), or going (EFAULT of a read: tun.c's answer to a reader at that moment).
    Gone,
    Other(Errno),
}

impl Fault {
    pub fn of(e: Errno) -> Fault {
        match e.0 {
            libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR => Fault::Again,
            libc::EIO | libc::ENETDOWN => Fault::Down,
            libc::EINVAL | libc::EMSGSIZE => Fault::Invalid,
            libc::EBADFD | libc::EFAULT => Fault::Gone,
            _ => Fault::Other(e),
        }
    }
}

/// One frame, or the rest of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The whole frame of so many bytes is in the buffers.
    Whole(usize),
    /// It was longer than the buffers and its end is lost: count it and drop it.
    Truncated,
}

/// One queue: a descriptor. Its receiving and its sending side may be on two threads.
#[derive(Clone, Debug)]
pub struct TapQueue {
    fd: Arc<OwnedFd>,
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
impl From<OwnedFd> for TapQueue {
    fn from(fd: OwnedFd) -> TapQueue {
        TapQueue { fd: Arc::new(fd) }
    }
}

impl TapQueue {
    /// Reads one frame across `bufs` (at most [`MAX_SEGS`], else EINVAL's class).
    ///
    /// A read of a TAP without IFF_NO_PI's header copies what fits and returns min(frame, room): a frame that fills
    /// the room and one that was cut look the same, and TUN_PKT_STRIP would stand in the header that is not there.
    /// So one spare byte follows the buffers: a read that reaches it was too long.
    pub fn read(&self, bufs: &mut [IoSliceMut<'_>]) -> Result<Frame, Fault> {
        if bufs.len() > MAX_SEGS {
            return Err(Fault::Invalid);
        }
        self.read_parts(bufs.iter_mut().map(|b| &mut **b))
    }

    /// As [`TapQueue::read`]; pieces beyond [`MAX_SEGS`] are not used.
    #[inline]
    pub fn read_parts<'a>(&self, parts: impl Iterator<Item = &'a mut [u8]>) -> Result<Frame, Fault> {
        let mut iov = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_SEGS + 1];
        let mut spare = MaybeUninit::<u8>::uninit();
        let (mut n, mut room) = (0, 0);
        for (v, b) in iov.iter_mut().zip(parts.take(MAX_SEGS)) {
            v.write(libc::iovec { iov_base: b.as_mut_ptr().cast(), iov_len: b.len() });
            room += b.len();
            n += 1;
        }
        if let Some(v) = iov.get_mut(n) {
            v.write(libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: 1 });
            n += 1;
        }
        // SAFETY: the first `n` entries were written above and name memory that is borrowed for the call.
        let got = unsafe { libc::readv(self.fd.as_raw_fd(), iov.as_ptr().cast(), n as i32) };
        match got {
            0.. if got as usize <= room => Ok(Frame::Whole(got as usize)),
            0.. => Ok(Frame::Truncated),
            _ => Err(Fault::of(Errno::last())),
        }
    }

    /// Writes one frame (without FCS). The kernel copies it before the call returns. It checks no MTU here.
    pub fn write(&self, bufs: &[IoSlice<'_>]) -> Result<usize, Fault> {
        // SAFETY: IoSlice has the layout of iovec; all are borrowed for the call. A length above IOV_MAX is refused
        // by the kernel.
        unsafe { self.write_raw(bufs.as_ptr().cast(), bufs.len()) }
    }

    /// As [`TapQueue::write`], from memory that a peer may be writing: the kernel copies whatever it finds.
    ///
    /// # Safety
    /// `iov` points to `n` entries, and each names readable memory.
    #[inline]
    pub unsafe fn write_raw(&self, iov: *const libc::iovec, n: usize) -> Result<usize, Fault> {
        // SAFETY: the caller's promise.
        let n = unsafe { libc::writev(self.fd.as_raw_fd(), iov, n as i32) };
        if n < 0 { Err(Fault::of(Errno::last())) } else { Ok(n as usize) }
    }

    /// Takes the queue out of the kernel's choice of queues (stop), or puts it back (start). Multi-queue devices only.
    /// A detached queue reads nothing but still writes. With none attached the kernel drops and counts (tx_dropped) what
    /// it sends; the carrier stays as it is.
    pub fn set_attached(&self, on: bool) -> Result<()> {
        let (name, flags) = get_iff(self.as_fd())?;
        if (flags & IFF_DETACH_QUEUE == 0) == on {
            return Ok(());
        }
        let mut r = iface::request("");
        r.ifr_ifru.ifru_flags = (if on { IFF_ATTACH_QUEUE } else { IFF_DETACH_QUEUE }) as libc::c_short;
        // SAFETY: TUNSETQUEUE takes an ifreq without pointers.
        unsafe { iface::ioctl(self.as_fd(), TUNSETQUEUE, &mut r) }.map_err(|e| {
            let what = if on { "attach" } else { "detach" };
            Error::from_errno(e, format!("tap '{name}': {what} a queue"))
        })
    }

    /// Bytes that may wait in the kernel between writes and the stack (INT_MAX at first).
    pub fn set_sndbuf(&self, len: u32) -> Result<()> {
        set_int(self.as_fd(), TUNSETSNDBUF, len.min(i32::MAX as u32) as i32, "send buffer")
    }
}

/// Where the device is now.
#[derive(Debug)]
struct Place {
    ns: NetNs,
    ctl: Ctl,
    stats: StatsReader,
}

/// A TAP device: its queues, and the requests that go to its interface wherever that is.
#[derive(Debug)]
pub struct Tap {
    queues: Vec<TapQueue>,
    place: Mutex<Option<Place>>,
}

impl Tap {
    /// Opens a device in the calling thread's namespace. It goes when its last descriptor is closed, unless it was made
    /// persistent by someone else.
    pub fn open(o: &TapOptions<'_>) -> Result<Tap> {
        check_pattern(o.name)?;
        if !(1..=MAX_QUEUES).contains(&o.n_queues) {
            return invalid!("tap '{}': {} queues, the limit is 1 to {MAX_QUEUES}", o.name, o.n_queues);
        }
        let mut fds = Vec::with_capacity(o.n_queues);
        let base = IFF_TAP | IFF_NO_PI;
        let first = open_dev()?;
        let excl = if o.attach { 0 } else { IFF_TUN_EXCL };
        let name = match set_iff(&first, o.name, base | IFF_MULTI_QUEUE | excl) {
            // A persistent device of one queue refuses the multi-queue flag.
            Err(Errno::INVAL) if o.attach && o.n_queues == 1 => set_iff(&first, o.name, base),
            r => r,
        }
        .map_err(|e| attach_error(e, o, 0))?;
        if !o.attach {
            set_int(first.as_fd(), TUNSETPERSIST, 0, "persistence")?;
        }
        fds.push(first);
        for q in 1..o.n_queues {
            let fd = open_dev()?;
            // By the name that the kernel chose: a pattern would make another device.
            set_iff(&fd, &name, base | IFF_MULTI_QUEUE).map_err(|e| attach_error(e, o, q))?;
            fds.push(fd);
        }
        Ok(Tap::of(fds))
    }

    /// From descriptors that a helper opened and attached (IFF_TAP | IFF_NO_PI, the same device; more than one needs
    /// IFF_MULTI_QUEUE). Sets O_NONBLOCK, which whoever shares the open file sees too.
    pub fn from_fds(fds: Vec<OwnedFd>) -> Result<Tap> {
        if fds.is_empty() || fds.len() > MAX_QUEUES {
            return invalid!("tap from {} descriptors, the limit is 1 to {MAX_QUEUES}", fds.len());
        }
        let mut first: Option<(String, Option<NetNs>)> = None;
        for fd in &fds {
            let (name, flags) = get_iff(fd.as_fd())?;
            let bad = |why: &str| invalid!("descriptor {} (tap '{name}') {why}", fd.as_raw_fd());
            if flags & IFF_TAP == 0 {
                return bad("is a TUN device: frames without Ethernet header");
            }
            if flags & IFF_NO_PI == 0 {
                return bad("puts a header before each frame: open it with IFF_NO_PI");
            }
            if flags & IFF_VNET_HDR != 0 {
                return bad("puts a header before each frame: open it without IFF_VNET_HDR");
            }
            if fds.len() > 1 && flags & IFF_MULTI_QUEUE == 0 {
                return bad(&format!("is one of {} but has no IFF_MULTI_QUEUE", fds.len()));
            }
            let here = (name.clone(), dev_netns(fd.as_fd()).ok());
            match &first {
                Some(f) if *f != here => return bad(&format!("is another device than '{}'", f.0)),
                Some(_) => {}
                None => first = Some(here),
            }
            // SAFETY: fcntl on an open descriptor with integer arguments.
            let ok = unsafe {
                let fl = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
                fl >= 0 && libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, fl | libc::O_NONBLOCK) == 0
            };
            if !ok {
                return Err(Error::os(format!("descriptor {}: set O_NONBLOCK", fd.as_raw_fd())));
            }
        }
        Ok(Tap::of(fds))
    }

    fn of(fds: Vec<OwnedFd>) -> Tap {
        let queues = fds.into_iter().map(|fd| TapQueue { fd: Arc::new(fd) }).collect();
        Tap { queues, place: Mutex::new(None) }
    }

    pub fn queues(&self) -> &[TapQueue] {
        &self.queues
    }

    /// Opens or closes queues until there are `n` (at least one), in the interface's namespace of now. New ones are
    /// attached. More than one needs a multi-queue device.
    pub fn resize(&mut self, n: usize) -> Result<()> {
        self.queues.truncate(n.max(1));
        if self.queues.len() >= n {
            return Ok(());
        }
        let name = self.name()?;
        if !self.is_multi_queue()? {
            return fail!(NOTSUP, "tap '{name}' has one queue ({n} wanted): make it with multi_queue");
        }
        let o = TapOptions { name: &name, n_queues: n, attach: true };
        let have = self.queues.len();
        // A descriptor finds the name in the namespace that it was opened in.
        let more = in_ns_of(self.fd(), || {
            let mut fds = Vec::new();
            for q in have..n {
                let fd = open_dev()?;
                set_iff(&fd, &name, IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE).map_err(|e| attach_error(e, &o, q))?;
                fds.push(fd);
            }
            Ok(fds)
        })?;
        self.queues.extend(more.into_iter().map(|fd| TapQueue { fd: Arc::new(fd) }));
        // Someone may have given the name to another interface in between.
        if self.queues.iter().any(|q| !get_iff(q.as_fd()).is_ok_and(|(n, _)| n == name)) {
            self.queues.truncate(have);
            return fail!(BUSY, "tap '{name}' was renamed while queues were added: try again");
        }
        Ok(())
    }

    /// True once the interface was deleted.
    pub fn is_gone(&self) -> bool {
        get_iff(self.fd()).is_err_and(|e| e.errno().0 == libc::EBADFD)
    }

    /// False for a device that was made with one queue and has no way to detach it.
    pub fn is_multi_queue(&self) -> Result<bool> {
        Ok(get_iff(self.fd())?.1 & IFF_MULTI_QUEUE != 0)
    }

    /// True where the interface stays when its last descriptor is closed.
    pub fn is_persistent(&self) -> Result<bool> {
        Ok(get_iff(self.fd())?.1 & IFF_PERSIST != 0)
    }

    pub fn set_persistent(&self, on: bool) -> Result<()> {
        set_int(self.fd(), TUNSETPERSIST, on.into(), "persistence")
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.queues[0].as_fd()
    }

    /// The interface's name now.
    pub fn name(&self) -> Result<String> {
        Ok(get_iff(self.fd())?.0)
    }

    /// The interface's namespace now. Needs CAP_NET_ADMIN in it.
    pub fn netns(&self) -> Result<NetNs> {
        dev_netns(self.fd())
    }

    /// Runs `f` with the control socket of the interface's namespace, its counters' socket, and its name; again where the
    /// interface was moved or renamed in the meantime.
    fn at<T>(&self, mut f: impl FnMut(&Ctl, &StatsReader, &str) -> Result<T>) -> Result<T> {
        let mut place = self.place.lock().unwrap_or_else(|e| e.into_inner());
        let mut last = None;
        for _ in 0..4 {
            let (name, _) = get_iff(self.fd())?;
            let (ns, sure) = match dev_netns(self.fd()) {
                Ok(ns) => (ns, true),
                // Descriptors passed to a program without privilege: the interface is looked for beside us.
                Err(e) if e.errno() == Errno::PERM => (NetNs::current()?, false),
                Err(e) => return Err(e),
            };
            if place.as_ref().is_none_or(|p| p.ns != ns) {
                *place = Some(Place { ctl: Ctl::in_ns(&ns)?, stats: StatsReader::in_ns(&ns)?, ns });
            }
            let Some(p) = place.as_ref() else { continue };
            if !sure && p.ctl.hw_addr(&name).ok() != Some(self.hw_addr()?) {
                return fail!(
                    PERM,
                    "tap '{name}' is not in this network namespace, and to learn its own needs CAP_NET_ADMIN"
                );
            }
            let r = f(&p.ctl, &p.stats, &name);
            let same = |p: &Place| {
                get_iff(self.fd()).is_ok_and(|(n, _)| n == name)
                    && (!sure || dev_netns(self.fd()).is_ok_and(|n| n == p.ns))
            };
            if same(p) {
                return r;
            }
            last = Some(r);
        }
        last.unwrap_or_else(|| fail!(BUSY, "tap: the interface moves faster than it can be asked"))
    }

    /// By the descriptor: works in any namespace.
    fn hw_addr(&self) -> Result<(u16, [u8; 6])> {
        let mut r = iface::request("");
        // SAFETY: SIOCGIFHWADDR takes an ifreq without pointers.
        unsafe { iface::ioctl(self.fd(), SIOCGIFHWADDR, &mut r) }
            .map_err(|e| Error::from_errno(e, "tap: get MAC address"))?;
        Ok(iface::hw_addr_in(&r))
    }

    /// The index in the interface's own namespace; it may change when it is moved.
    pub fn ifindex(&self) -> Result<u32> {
        self.at(|c, _, n| c.index_of(n))
    }

    pub fn mtu(&self) -> Result<u32> {
        self.at(|c, _, n| c.mtu(n))
    }

    pub fn set_mtu(&self, mtu: u32) -> Result<()> {
        self.at(|c, _, n| c.set_mtu(n, mtu))
    }

    pub fn mac(&self) -> Result<[u8; 6]> {
        Ok(self.hw_addr()?.1)
    }

    pub fn set_mac(&self, mac: &[u8; 6]) -> Result<()> {
        self.at(|c, _, n| c.set_mac(n, mac))
    }

    /// Administrative state of the interface.
    pub fn set_up(&self, on: bool) -> Result<()> {
        self.at(|c, _, n| c.set_up(n, on))
    }

    pub fn set_promisc(&self, on: bool) -> Result<()> {
        self.at(|c, _, n| c.set_promisc(n, on))
    }

    /// IFF_* of net/if.h.
    pub fn flags(&self) -> Result<u16> {
        self.at(|c, _, n| c.flags(n))
    }

    pub fn set_allmulti(&self, on: bool) -> Result<()> {
        self.at(|c, _, n| c.set_allmulti(n, on))
    }

    pub fn link(&self) -> Result<LinkState> {
        self.at(|c, _, n| c.link(n))
    }

    /// The interface's own counters: its tx is what we read, its rx what we wrote.
    pub fn stats(&self) -> Result<LinkStats> {
        self.at(|c, s, n| s.get(c.index_of(n)?))
    }

    /// The carrier that the interface shows (Linux 5.0). While every queue is detached it may go off, but on is EPERM.
    pub fn set_carrier(&self, on: bool) -> Result<()> {
        set_int(self.fd(), TUNSETCARRIER, i32::from(on), "carrier")
    }
}
