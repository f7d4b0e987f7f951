//! A file as a window of bytes that only moves forward.
//!
//! Read, not mapped: a capture may be cut short while it is open, and a mapping would then raise SIGBUS; and a FIFO or
//! /dev/stdin cannot be mapped at all.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::MAX_BLOCK;
use crate::driver::{Errno, Error, Result, fail};
use crate::sock::wait_readable;

/// One read(2) brings this much where there is so much.
const WINDOW: usize = 256 * 1024;

/// Whether the window holds what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    Ready,
    /// The file ends before; this many bytes are left.
    Short(usize),
    /// A non-blocking descriptor has no more for now.
    NotYet,
}

pub(super) struct Source {
    pub(super) file: File,
    name: String,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the file of `buf[start]`.
    pos: u64,
    /// A non-blocking source is waited for until then.
    wait: Option<Instant>,
}

/// The errno of `e`; EINVAL where std refused the path itself (a NUL byte in it).
pub(super) fn errno_of(e: &std::io::Error) -> Errno {
    Errno(e.raw_os_error().unwrap_or(if e.kind() == ErrorKind::InvalidInput { libc::EINVAL } else { libc::EIO }))
}

impl Source {
    pub(super) fn new(file: File, path: &Path) -> Source {
        Source { file, name: path.display().to_string(), buf: vec![0; WINDOW], start: 0, end: 0, pos: 0, wait: None }
    }

    /// Makes at least `n` bytes visible in [`Source::bytes`], reading as long as it takes. The window grows to the largest
    /// record of the file, and so at most to [`MAX_BLOCK`].
    pub(super) fn fill(&mut self, n: usize) -> Result<Fill> {
        debug_assert!(n <= MAX_BLOCK as usize);
        if self.end - self.start >= n {
            return Ok(Fill::Ready);
        }
        // What is left is less than one record: moving it is cheap, and the next read is as long as can be.
        if self.start <= self.end && self.end <= self.buf.len() {
            self.buf.copy_within(self.start..self.end, 0);
        }
        self.end -= self.start;
        self.start = 0;
        if self.buf.len() < n {
            self.buf.resize(n.next_power_of_two(), 0);
        }
        while self.end < n {
            let Some(room) = self.buf.get_mut(self.end..) else { return Ok(Fill::Short(self.end)) };
            match self.file.read(room) {
                Ok(0) => return Ok(Fill::Short(self.end)),
                Ok(got) => self.end += got,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => match self.wait {
                    None => return Ok(Fill::NotYet),
                    Some(until) => self.wait_readable(until)?,
                },
                Err(e) => return Err(Error::new(errno_of(&e), format!("read '{}': {e}", self.name))),
            }
        }
        Ok(Fill::Ready)
    }

    /// A FIFO that nobody has opened for writing reads as if it had ended: waits for its first bytes, and makes
    /// [`Source::fill`] wait too until [`Source::do_not_wait`].
    pub(super) fn wait_for_writer(&mut self, limit: Duration) -> Result<()> {
        let until = Instant::now() + limit;
        self.wait = Some(until);
        self.wait_readable(until)
    }

    pub(super) fn do_not_wait(&mut self) {
        self.wait = None;
    }

    fn wait_readable(&self, until: Instant) -> Result<()> {
        if wait_readable(self.file.as_fd(), until.saturating_duration_since(Instant::now()))? {
            return Ok(());
        }
        fail!(TIMEDOUT, "'{}': no capture header came: is something writing to it?", self.name)
    }

    /// What is visible.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Passes `n` of the visible bytes. They stay in place, at [`Source::span`]'s index, until the next [`Source::fill`].
    pub(super) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        let n = n.min(self.end - self.start);
        self.start += n;
        self.pos += n as u64;
    }

    /// Passes `left` bytes of the file without holding them, counting down; Some is what stopped it before the last one.
    pub(super) fn skip(&mut self, left: &mut u64) -> Result<Option<Fill>> {
        while *left > 0 {
            match self.fill(1)? {
                Fill::Ready => {}
                other => return Ok(Some(other)),
            }
            let n = (self.end - self.start).min(usize::try_from(*left).unwrap_or(usize::MAX));
            self.consume(n);
            *left -= n as u64;
        }
        Ok(None)
    }

    /// Index of the first visible byte, for [`Source::span`].
    pub(super) fn index(&self) -> usize {
        self.start
    }

    /// `len` bytes from an index that [`Source::index`] gave since the last fill.
    pub(super) fn span(&self, index: usize, len: usize) -> &[u8] {
        self.buf.get(index..index.saturating_add(len)).unwrap_or(&[])
    }

    /// Offset in the file of the first visible byte.
    pub(super) fn pos(&self) -> u64 {
        self.pos
    }

    pub(super) fn rewind(&mut self) -> Result<()> {
        self.file
            .seek(SeekFrom::Start(0))
            .map_err(|e| Error::new(errno_of(&e), format!("'{}' cannot be read a second time: {e}", self.name)))?;
        (self.start, self.end, self.pos) = (0, 0, 0);
        Ok(())
    }

    /// The file is not one that can be read: -EINVAL.
    pub(super) fn refuse<T>(&self, what: impl std::fmt::Display) -> Result<T> {
        Err(Error::invalid(format!("'{}': {what}", self.name)))
    }

    /// The file breaks its format at `offset`: -EBADMSG.
    pub(super) fn corrupt<T>(&self, offset: u64, what: impl std::fmt::Display) -> Result<T> {
        Err(Error::new(Errno(libc::EBADMSG), format!("'{}' is corrupt at offset {offset}: {what}", self.name)))
    }
}
