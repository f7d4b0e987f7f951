//! Where a receive queue's records come from: a file read as it goes, or held in memory and played for ever.

use super::{Next, Reader, Record};
use crate::driver::{Errno, Error, Result, invalid};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most bytes of packets and index that `infinite_rx` holds for one file: 1 GiB.
pub const MAX_REPLAY: usize = 1 << 30;
/// How long a FIFO may take until its writer has written a capture header.
pub const FIFO_LIMIT: Duration = Duration::from_secs(10);

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peek {
    /// [`Feed::record`] gives it, until [`Feed::advance`].
    Record,
    /// Nothing yet: a FIFO whose writer is slow.
    NotYet,
    /// The files start again.
    Again,
    End,
    /// The rest cannot be read: why.
    Broken(Error),
}

/// The index of a record in memory.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub ts_ns: u64,
    pub at: u32,
    pub len: u32,
}

/// A whole capture in memory.
#[derive(Default)]
pub(super) struct Replay {
    pub entries: Vec<Entry>,
    pub bytes: Vec<u8>,
    pub next: usize,
    /// What is added to the stamps of this loop, so that time does not go back.
    pub shift: u64,
    /// From the earliest stamp to the latest.
    pub span: u64,
    /// The longest record.
    pub longest: u32,
    /// What the file had behind its last whole record.
    pub broken: Option<Error>,
}

enum Kind {
    Stream(Reader),
    Memory(Replay),
}

pub(super) struct Feed {
    kind: Kind,
    path: PathBuf,
    /// Times that the file is still to be played, this one included; None: for ever.
    left: Option<u32>,
    loops: u32,
    /// Records of this loop so far.
    in_loop: u64,
    /// Added to the stamps of this loop, and the stamps seen in the first one.
    shift: u64,
    stamps: Option<(u64, u64)>,
    held: bool,
    used: bool,
}

impl Feed {
    /// Opens a file to be played `loops` times (0: for ever), or to be held in memory and played for ever.
    pub fn open(path: &Path, loops: u32, infinite: bool) -> Result<Feed> {
        let mut reader = Reader::open_within(path, FIFO_LIMIT)?;
        if loops != 1 || infinite {
            reader.rewind()?;
        }
        let kind = if infinite { Kind::Memory(load(&mut reader, path)?) } else { Kind::Stream(reader) };
        Ok(Feed {
            kind,
            path: path.into(),
            left: (loops != 0).then_some(loops),
            loops,
            in_loop: 0,
            shift: 0,
            stamps: None,
            held: false,
            used: false,
        })
    }

    pub fn is_infinite(&self) -> bool {
        self.left.is_none() || matches!(self.kind, Kind::Memory(_))
    }

    pub fn memory(&mut self) -> Option<&mut Replay> {
        match &mut self.kind {
            Kind::Memory(m) => Some(m),
            Kind::Stream(_) => None,
        }
    }

    /// Back to the first record, where something was read before. What cannot be read twice goes on where it was.
    pub fn restart(&mut self) -> Result<()> {
        if !self.used {
            return Ok(());
        }
        match &mut self.kind {
            Kind::Memory(m) => (m.next, m.shift) = (0, 0),
            Kind::Stream(r) => match r.rewind() {
                Ok(()) => {}
                Err(e) if e.errno() == Errno(libc::ESPIPE) => return Ok(()),
                Err(e) => return Err(e),
            },
        }
        self.left = (self.loops != 0).then_some(self.loops);
        (self.in_loop, self.shift, self.held, self.used) = (0, 0, false, false);
        Ok(())
    }

    /// What comes next; the same again until [`Feed::advance`].
    #[inline]
    pub fn peek(&mut self) -> Peek {
        if self.held {
            return Peek::Record;
        }
        self.used = true;
        match &mut self.kind {
            Kind::Memory(m) if m.next < m.entries.len() => {
                self.held = true;
                Peek::Record
            }
            Kind::Memory(m) => {
                m.next = 0;
                m.shift = m.shift.saturating_add(m.span);
                Peek::Again
            }
            Kind::Stream(_) => self.read(),
        }
    }

    /// The next record from the file, or how the file goes on.
    #[inline(never)]
    fn read(&mut self) -> Peek {
        let Kind::Stream(r) = &mut self.kind else { return Peek::End };
        match r.next() {
            Ok(Next::Record(rec)) => {
                let (lo, hi) = self.stamps.unwrap_or((rec.ts_ns, rec.ts_ns));
                self.stamps = Some((lo.min(rec.ts_ns), hi.max(rec.ts_ns)));
                self.held = true;
                return Peek::Record;
            }
            Ok(Next::Eof) => {}
            Ok(Next::NotYet) => return Peek::NotYet,
            Ok(Next::Truncated { offset }) => return Peek::Broken(cut(&self.path, offset)),
            Err(e) => return Peek::Broken(e),
        }
        // A file without records would spin.
        let more = self.left.is_none_or(|n| n > 1) && self.in_loop != 0;
        if !more {
            return Peek::End;
        }
        if let Err(e) = r.rewind() {
            return Peek::Broken(e);
        }
        self.left = self.left.map(|n| n - 1);
        self.in_loop = 0;
        let (lo, hi) = self.stamps.unwrap_or((0, 0));
        self.shift = self.shift.saturating_add(hi - lo);
        Peek::Again
    }

    /// The record that [`Feed::peek`] found, its stamp in this loop's time, and what the stamp is in the file.
    #[inline]
    pub fn record(&self) -> (u64, u64, &[u8]) {
        match &self.kind {
            Kind::Memory(m) => {
                let e = m.entries.get(m.next).copied().unwrap_or_default();
                let data = m.bytes.get(e.at as usize..e.at as usize + e.len as usize).unwrap_or(&[]);
                (e.ts_ns.saturating_add(m.shift), e.ts_ns, data)
            }
            Kind::Stream(r) => {
                let Record { ts_ns, data, .. } = r.last().unwrap_or(Record { ts_ns: 0, data: &[], orig_len: 0 });
                (ts_ns.saturating_add(self.shift), ts_ns, data)
            }
        }
    }

    /// The record was handed out, or dropped.
    #[inline]
    pub fn advance(&mut self) {
        self.held = false;
        self.in_loop += 1;
        if let Kind::Memory(m) = &mut self.kind {
            m.next += 1;
        }
    }
}

fn cut(path: &Path, offset: u64) -> Error {
    Error::new(
        Errno(libc::EBADMSG),
        format!("'{}' ends within the record at offset {offset}: all before it were received", path.display()),
    )
}

/// Reads all records into one block. Refuses a file without any, and one above [`MAX_REPLAY`].
fn load(r: &mut Reader, path: &Path) -> Result<Replay> {
    let mut m = Replay::default();
    let (mut lo, mut hi) = (u64::MAX, 0);
    loop {
        match r.next() {
            Ok(Next::Record(rec)) => {
                let used = m.bytes.len() + (m.entries.len() + 1) * size_of::<Entry>() + rec.data.len();
                if used > MAX_REPLAY {
                    return invalid!(
                        "'{}': infinite_rx holds {MAX_REPLAY} bytes of a file in memory at most, and this one has more: loops=0 reads it anew each time",
                        path.display()
                    );
                }
                (lo, hi) = (lo.min(rec.ts_ns), hi.max(rec.ts_ns));
                let len = rec.data.len() as u32;
                m.longest = m.longest.max(len);
                m.entries.push(Entry { ts_ns: rec.ts_ns, at: m.bytes.len() as u32, len });
                m.bytes.extend_from_slice(rec.data);
            }
            Ok(Next::Eof | Next::NotYet) => break,
            Ok(Next::Truncated { offset }) => {
                m.broken = Some(cut(path, offset));
                break;
            }
            Err(e) => {
                m.broken = Some(e);
                break;
            }
        }
    }
    if m.entries.is_empty() {
        return invalid!("'{}' has no records: infinite_rx would play nothing for ever", path.display());
    }
    m.span = hi - lo;
    Ok(m)
}
