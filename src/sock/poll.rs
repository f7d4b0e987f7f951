//! Waiting for a descriptor, with a limit.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::base::{Errno, Error, Result};

/// True once a read of `fd` would not block (or would report an error: the read then says which); false at the timeout.
/// Signals do not shorten the wait. Rounded up to a whole millisecond.
pub fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> Result<bool> {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        let ms = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
        let mut p = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `p` is one valid pollfd for the length of the call.
        let n = unsafe { libc::poll(&mut p, 1, ms) };
        match n {
            1.. if p.revents & libc::POLLNVAL != 0 => {
                return Err(Error::from_errno(Errno(libc::EBADF), format!("poll of descriptor {}", p.fd)));
            }
            1.. => return Ok(true),
            0 => return Ok(false),
            _ if Errno::last().0 == libc::EINTR => {}
            _ => return Err(Error::os(format!("poll of descriptor {}", p.fd))),
        }
    }
}
