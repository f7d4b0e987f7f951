//! One error type: a number that C callers see as `-errno`, and a text that names the value and the limit.

use core::fmt;

/// An errno value of the kernel's list (always positive).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Errno(pub i32);

impl Errno {
    pub const PERM: Errno = Errno(libc::EPERM);
    pub const NOENT: Errno = Errno(libc::ENOENT);
    pub const IO: Errno = Errno(libc::EIO);
    pub const AGAIN: Errno = Errno(libc::EAGAIN);
    pub const NOMEM: Errno = Errno(libc::ENOMEM);
    pub const ACCES: Errno = Errno(libc::EACCES);
    pub const BUSY: Errno = Errno(libc::EBUSY);
    pub const EXIST: Errno = Errno(libc::EEXIST);
    pub const NODEV: Errno = Errno(libc::ENODEV);
    pub const INVAL: Errno = Errno(libc::EINVAL);
    pub const NOSPC: Errno = Errno(libc::ENOSPC);
    pub const RANGE: Errno = Errno(libc::ERANGE);
    pub const NOTSUP: Errno = Errno(libc::ENOTSUP);
    pub const OVERFLOW: Errno = Errno(libc::EOVERFLOW);
    pub const TIMEDOUT: Errno = Errno(libc::ETIMEDOUT);
    pub const MSGSIZE: Errno = Errno(libc::EMSGSIZE);
    pub const FAULT: Errno = Errno(libc::EFAULT);

    /// The calling thread's errno.
    pub fn last() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // io::Error knows the system's text for a number.
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// What went wrong, and with which value against which limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    errno: Errno,
    text: String,
}

pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    pub fn new(errno: Errno, text: impl Into<String>) -> Error {
        Error { errno, text: text.into() }
    }

    /// -EINVAL with a text.
    pub fn invalid(text: impl Into<String>) -> Error {
        Error::new(Errno::INVAL, text)
    }

    /// The calling thread's errno, behind what was tried: `what: No such file or directory (os error 2)`.
    pub fn os(what: impl fmt::Display) -> Error {
        Error::from_errno(Errno::last(), what)
    }

    pub fn from_errno(errno: Errno, what: impl fmt::Display) -> Error {
        Error { errno, text: format!("{what}: {errno}") }
    }

    pub fn from_io(e: &std::io::Error, what: impl fmt::Display) -> Error {
        Error { errno: Errno(e.raw_os_error().unwrap_or(libc::EIO)), text: format!("{what}: {e}") }
    }

    pub fn errno(&self) -> Errno {
        self.errno
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same error with `what` in front: where it happened.
    pub fn context(mut self, what: impl fmt::Display) -> Error {
        self.text = format!("{what}: {}", self.text);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// `Err(-EINVAL)` with a formatted text.
#[macro_export]
macro_rules! invalid {
    ($($arg:tt)*) => {
        Err($crate::base::Error::new($crate::base::Errno::INVAL, format!($($arg)*)))
    };
}

/// `Err(Error)` with a named errno and a formatted text: `fail!(BUSY, "…")`.
#[macro_export]
macro_rules! fail {
    ($errno:ident, $($arg:tt)*) => {
        Err($crate::base::Error::new($crate::base::Errno::$errno, format!($($arg)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_was_tried_and_keeps_the_number() {
        let e = Error::from_errno(Errno::NOENT, "open 'x.pcap'").context("net_pcap0");
        assert_eq!(e.errno().0, libc::ENOENT);
        assert!(e.text().starts_with("net_pcap0: open 'x.pcap': No such file"), "{e}");
    }

    #[test]
    fn the_macros_carry_their_errno() {
        let a: Result<()> = invalid!("size {} above {}", 9, 8);
        assert_eq!(a.unwrap_err(), Error::new(Errno::INVAL, "size 9 above 8"));
        let b: Result<()> = fail!(BUSY, "3 packets out");
        assert_eq!(b.unwrap_err().errno(), Errno::BUSY);
    }
}
