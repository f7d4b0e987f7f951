//! A capture that is written to: what a write did to the file, so that no broken record is ever followed by another.

use super::Encoder;
use super::claim::Claimed;
use super::source::errno_of;
use crate::driver::*;
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) struct Sink {
    file: File,
    path: PathBuf,
    pub encoder: Encoder,
    /// Where the last whole record ends; only of a regular file, which can be cut back to it.
    good: Option<u64>,
    /// A write may raise a signal that ends the process: SIGPIPE of a FIFO, SIGXFSZ of a file-size limit.
    signals: bool,
    /// Nothing can be written any more.
    pub dead: bool,
    /// The failure that goes on was said.
    said: bool,
    /// Latest stamp written.
    pub last_ts: u64,
    /// The file is as it was found.
    untouched: bool,
    /// There was no such file before, and nothing has begun: it goes again.
    made: bool,
    _claim: Claimed,
}

/// How a write went.
pub(super) enum Wrote {
    Bytes(usize),
    /// A FIFO is full.
    Full,
    /// Nothing was written, and the packets are to be dropped.
    Failed,
}

impl Sink {
    /// Opens `path`, and makes it if it is not there; [`Sink::begin`] empties it. A FIFO must get a reader within `limit`.
    pub fn open(path: &Path, encoder: Encoder, limit: Duration) -> Result<Sink> {
        let name = path.display();
        let found = std::fs::metadata(path).ok();
        let fifo = found.as_ref().is_some_and(|m| m.file_type().is_fifo());
        let until = Instant::now() + limit;
        let file = loop {
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            match File::options().write(true).create(true).truncate(false).custom_flags(flags).open(path) {
                Ok(f) => break f,
                Err(e) if fifo && e.raw_os_error() == Some(libc::ENXIO) => {
                    if Instant::now() >= until {
                        return fail!(TIMEDOUT, "'{name}': nobody opened the FIFO for reading within {limit:?}");
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(e) => return Err(Error::new(errno_of(&e), format!("create '{name}': {e}"))),
            }
        };
        let meta = file.metadata().map_err(|e| Error::from_io(&e, format!("stat '{name}'")))?;
        let claim = Claimed::take(path, &meta, true)?;
        let mut sink = Sink {
            signals: fifo || size_limited(),
            path: path.into(),
            encoder,
            good: meta.is_file().then_some(encoder.file_header().len() as u64),
            dead: false,
            said: false,
            last_ts: 0,
            untouched: true,
            made: found.is_none() && meta.is_file(),
            file,
            _claim: claim,
        };
        // Nothing is lost of what is new or no regular file, and a reader may wait for the header.
        if sink.made || !meta.is_file() {
            sink.empty()?;
        }
        Ok(sink)
    }

    /// The first packets may come: what was in the file is given up. Until then a run that never starts, because of
    /// another device for example, has taken nothing from its user.
    pub fn begin(&mut self) -> Result<()> {
        if self.untouched {
            self.empty()?;
        }
        self.made = false;
        Ok(())
    }

    /// Empties the file and writes the header of the format that its name asks for.
    fn empty(&mut self) -> Result<()> {
        let header = self.encoder.file_header();
        let regular = self.good.is_some();
        let mut file = &self.file;
        let emptied = if regular { file.set_len(0) } else { Ok(()) };
        // Less than PIPE_BUF: whole or not at all.
        emptied
            .and_then(|()| guarded(self.signals, || file.write_all(&header)))
            // A full device takes no header and no packets; that is for the counters to say.
            .or_else(|e| if full(&e) && !regular { Ok(()) } else { Err(e) })
            .map_err(|e| Error::new(errno_of(&e), format!("write '{}': {e}", self.path.display())))?;
        self.untouched = false;
        Ok(())
    }

    /// One writev. `partial`: the file ends within a record.
    #[inline]
    pub fn writev(&mut self, iov: &[libc::iovec], partial: bool) -> Wrote {
        let fd = self.file.as_raw_fd();
        // SAFETY: each iovec is memory that the caller keeps for the call; writev only reads it.
        let write = || unsafe { libc::writev(fd, iov.as_ptr(), iov.len() as i32) };
        let n = if self.signals { guarded(true, write) } else { write() };
        if n >= 0 {
            return Wrote::Bytes(n as usize);
        }
        self.failed(Errno::last(), partial)
    }

    /// Whole records of so many bytes were written.
    #[inline]
    pub fn whole(&mut self, bytes: u64) {
        if let Some(good) = &mut self.good {
            *good += bytes;
        }
        self.said = false;
    }

    #[cold]
    #[inline(never)]
    fn failed(&mut self, e: Errno, partial: bool) -> Wrote {
        match e.0 {
            libc::EINTR => return Wrote::Bytes(0),
            libc::EAGAIN => return Wrote::Full,
            _ => {}
        }
        if !self.said {
            self.said = true;
            log_error!("write '{}': {e}: packets are dropped", self.path.display());
        }
        // A full disk may get room again; the others do not heal.
        self.dead = !matches!(e.0, libc::ENOSPC | libc::EDQUOT | libc::EFBIG) || (partial && !self.cut_back());
        Wrote::Failed
    }

    /// Cuts a record off that was written in part. False where that cannot be.
    pub fn cut_back(&mut self) -> bool {
        let Some(good) = self.good else { return false };
        self.file.set_len(good).is_ok() && self.file.seek(SeekFrom::Start(good)).is_ok()
    }

    /// Waits until the file takes more, at most for `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        let mut p = libc::pollfd { fd: self.file.as_fd().as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        let ms = limit.as_millis().min(i32::MAX as u128) as i32;
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut p, 1, ms) == 1 }
    }

    pub fn name(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn full(e: &std::io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// Two names of one regular file.
pub(super) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.is_file() && b.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}

fn size_limited() -> bool {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut l) == 0 && l.rlim_cur != libc::RLIM_INFINITY }
}

/// Runs a write that may raise SIGPIPE or SIGXFSZ, on this thread, without the process hearing of it: blocked for the call,
/// and taken off after it if the call raised it. No handler is touched, and errno is that of `f`.
fn guarded<T>(on: bool, f: impl FnOnce() -> T) -> T {
    if !on {
        return f();
    }
    // SAFETY: signal sets are plain data that these calls fill; all act on this thread alone.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        let (mut old, mut pending) = (set, set);
        libc::sigemptyset(&mut set);
        for s in [libc::SIGPIPE, libc::SIGXFSZ] {
            libc::sigaddset(&mut set, s);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut old);
        libc::sigpending(&mut pending);
        let was = [libc::SIGPIPE, libc::SIGXFSZ].map(|s| libc::sigismember(&pending, s) == 1);
        let r = f();
        let errno = *libc::__errno_location();
        let mut take: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&mut take);
        for (s, was) in [libc::SIGPIPE, libc::SIGXFSZ].into_iter().zip(was) {
            if !was {
                libc::sigaddset(&mut take, s);
            }
        }
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        while libc::sigtimedwait(&take, core::ptr::null_mut(), &zero) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut());
        *libc::__errno_location() = errno;
        r
    }
}
