//! One face for both capture formats: open, next, rewind.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use super::classic::{Classic, MAGICS, word};
use super::ng::{self, Ng};
use super::source::{Fill, Source, errno_of};
use super::{Format, LINKTYPE_ETHERNET};
use crate::driver::{Errno, Error, Result};

/// One packet of a capture. Borrowed from the reader's buffer until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the epoch. A stamp outside the range of its field is clamped and counted
    /// ([`Counts::clamped_ts`]). A pcapng simple packet has no stamp: it takes that of the packet before it, or 0.
    pub ts_ns: u64,
    /// What was captured, without the FCS.
    pub data: &'a [u8],
    /// Length on the wire, without the FCS; never less than `data.len()`.
    pub orig_len: u32,
}

/// What comes next in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Record(Record<'a>),
    /// The file ends behind a whole record.
    Eof,
    /// The file ends within the record that starts at `offset`; all before it were delivered. A file that is still being
    /// written can look so: another call looks again.
    Truncated {
        offset: u64,
    },
    /// Only where the descriptor is non-blocking: nothing whole to read yet, nothing lost.
    NotYet,
}

/// What a file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureInfo {
    pub format: Format,
    /// Stamps have a resolution of a nanosecond or finer (pcapng: those of the first interface).
    pub nanos: bool,
    /// Byte order of the file (pcapng: of its first section).
    pub big_endian: bool,
    /// As the file says (pcapng: the first interface); 0 means none. Records may be longer all the same.
    pub snaplen: u32,
    /// Always [`LINKTYPE_ETHERNET`]: others are refused.
    pub linktype: u16,
}

/// What a reader met since it was opened; rewind does not reset it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of a pcapng interface that is not Ethernet: not delivered.
    pub skipped_linktype: u64,
    /// Records delivered with a clamped stamp.
    pub clamped_ts: u64,
}

/// What a format found; a packet is a place in the source's window.
pub(super) enum Found {
    Packet { index: usize, len: u32, ts_ns: u64, orig_len: u32 },
    Eof,
    Truncated(u64),
    NotYet,
}

enum Parser {
    Classic(Classic),
    Ng(Ng),
}

/// Reads a capture once from front to back: classic pcap or pcapng, either byte order, from a file, a FIFO or a device.
///
/// A FIFO blocks in [`Reader::open`] until its header is written, and in [`Reader::next`] until a record is; set O_NONBLOCK
/// on [`Reader::as_fd`] after opening and `next` says [`Next::NotYet`] instead.
pub struct Reader {
    src: Source,
    parser: Parser,
    info: CaptureInfo,
    counts: Counts,
    /// The packet that `next` found last: index, length, stamp, original length.
    last: Option<(usize, u32, u64, u32)>,
}

impl Reader {
    /// Opens `path` and reads its header.
    ///
    /// Errors: that of open(2); -EISDIR; -EINVAL for an empty file, one that is not a capture (with the magic that was seen),
    /// a variant that is not read, or a link type other than Ethernet; -EBADMSG for a broken pcapng block before the first
    /// interface.
    pub fn open(path: &Path) -> Result<Reader> {
        let file = File::open(path).map_err(|e| Error::new(errno_of(&e), format!("open '{}': {e}", path.display())))?;
        Reader::from_file(file, path)
    }

    /// As [`Reader::open`] for a descriptor that is open already, at the start of the capture; `path` is for messages.
    pub fn from_file(file: File, path: &Path) -> Result<Reader> {
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Error::new(Errno(libc::EISDIR), format!("'{}' is a directory, not a capture", path.display())));
        }
        Reader::start(Source::new(file, path))
    }

    /// As [`Reader::open`], non-blocking: the header of a FIFO is waited for within `limit`, and from then on
    /// [`Reader::next`] says [`Next::NotYet`] where nothing waits. -ETIMEDOUT where no header came.
    pub fn open_within(path: &Path, limit: Duration) -> Result<Reader> {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(|e| Error::new(errno_of(&e), format!("open '{}': {e}", path.display())))?;
        let kind = file.metadata().map_err(|e| Error::from_io(&e, format!("stat '{}'", path.display())))?.file_type();
        if kind.is_dir() {
            return Reader::from_file(file, path);
        }
        let mut src = Source::new(file, path);
        if kind.is_fifo() {
            src.wait_for_writer(limit)?;
        }
        let mut r = Reader::start(src)?;
        r.src.do_not_wait();
        Ok(r)
    }

    fn start(mut src: Source) -> Result<Reader> {
        let (parser, info) = start(&mut src)?;
        Ok(Reader { src, parser, info, counts: Counts::default(), last: None })
    }

    /// The record that [`Reader::next`] gave last, once more; None where it gave none.
    #[inline]
    pub fn last(&self) -> Option<Record<'_>> {
        let (index, len, ts_ns, orig_len) = self.last?;
        Some(Record { ts_ns, data: self.src.span(index, len as usize), orig_len })
    }

    /// The next packet, or how the file ends.
    ///
    /// -EBADMSG where the file is corrupt, with the offset, the value and the limit; the reader stays there and says the same
    /// when asked again. Any other error is that of read(2). Allocates only to grow to the longest record so far.
    #[allow(clippy::should_implement_trait)] // The record is borrowed from the reader; an Iterator cannot lend.
    pub fn next(&mut self) -> Result<Next<'_>> {
        self.last = None;
        let found = match &mut self.parser {
            Parser::Classic(p) => p.next(&mut self.src, &mut self.counts)?,
            Parser::Ng(p) => p.next(&mut self.src, &mut self.counts)?,
        };
        Ok(match found {
            Found::Packet { index, len, ts_ns, orig_len } => {
                self.last = Some((index, len, ts_ns, orig_len));
                Next::Record(Record { ts_ns, data: self.src.span(index, len as usize), orig_len })
            }
            Found::Eof => Next::Eof,
            Found::Truncated(offset) => Next::Truncated { offset },
            Found::NotYet => Next::NotYet,
        })
    }

    /// Back to the first record. -ESPIPE on a FIFO, or what [`Reader::open`] says if the file has changed.
    pub fn rewind(&mut self) -> Result<()> {
        self.src.rewind()?;
        self.last = None;
        (self.parser, self.info) = start(&mut self.src)?;
        Ok(())
    }

    pub fn info(&self) -> CaptureInfo {
        self.info
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.src.file.as_fd()
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("info", &self.info).field("pos", &self.src.pos()).finish_non_exhaustive()
    }
}

fn start(src: &mut Source) -> Result<(Parser, CaptureInfo)> {
    match src.fill(4)? {
        Fill::Ready => {}
        Fill::Short(0) => return src.refuse("empty: not even a file header"),
        Fill::Short(have) => return src.refuse(format_args!("not a capture: only {have} bytes, a magic has 4")),
        Fill::NotYet => return src.refuse("no file header to read yet"),
    }
    let magic = word(src.bytes(), 0, false);
    if magic == ng::SECTION {
        let (p, info) = Ng::start(src)?;
        return Ok((Parser::Ng(p), info));
    }
    if let Some(&(_, nanos, big)) = MAGICS.iter().find(|m| m.0 == magic) {
        let (p, info) = Classic::start(src, nanos, big)?;
        return Ok((Parser::Classic(p), info));
    }
    let seen: Vec<String> = src.bytes().iter().take(4).map(|b| format!("{b:02x}")).collect();
    let seen = seen.join(" ");
    match known_magic(magic) {
        Some(what) => src.refuse(format_args!("{what} (magic {seen}) is not read")),
        None => src.refuse(format_args!("not a capture: magic {seen} is neither pcap nor pcapng")),
    }
}

/// Files that are often taken for captures of a known kind.
fn known_magic(magic: u32) -> Option<&'static str> {
    for m in [magic, magic.swap_bytes()] {
        let what = match m {
            0xa1b2_cd34 => "Kuznetzov's modified pcap format, convert it with editcap -F pcap",
            0xa1e2_cb12 => "Navtel's modified pcap format, convert it with editcap -F pcap",
            0x1c00_01ac | 0x1c00_01ab => "IXIA's modified pcap format, convert it with editcap -F pcap",
            0xfd2f_b528 => "a zstd file, decompress it first",
            0x184d_2204 => "an lz4 file, decompress it first",
            0x5a58_37fd | 0xfd37_7a58 => "an xz file, decompress it first",
            _ => continue,
        };
        return Some(what);
    }
    match magic.to_le_bytes() {
        [0x1f, 0x8b, ..] => Some("a gzip file, decompress it first"),
        [b'B', b'Z', b'h', _] => Some("a bzip2 file, decompress it first"),
        [b's', b'n', b'o', b'o'] => Some("a snoop capture, convert it with editcap -F pcap"),
        [b'G', b'M', b'B', b'U'] | [b'R', b'T', b'S', b'S'] => {
            Some("a Network Monitor capture, convert it with editcap -F pcap")
        }
        _ => None,
    }
}

/// Refuses a link type other than Ethernet, by name.
pub(super) fn check_linktype(src: &Source, linktype: u16) -> Result<()> {
    if linktype == LINKTYPE_ETHERNET {
        return Ok(());
    }
    let name = linktype_name(linktype).unwrap_or("not a common one");
    src.refuse(format_args!("link type {linktype} ({name}); only Ethernet ({LINKTYPE_ETHERNET}) is read"))
}

/// <https://www.tcpdump.org/linktypes.html>: those that people meet.
fn linktype_name(linktype: u16) -> Option<&'static str> {
    Some(match linktype {
        0 => "NULL, BSD loopback",
        6 => "IEEE802_5, Token Ring",
        8 => "SLIP",
        9 => "PPP",
        10 => "FDDI",
        50 => "PPP_HDLC",
        51 => "PPP_ETHER",
        100 => "ATM_RFC1483",
        101 => "RAW, raw IP",
        104 => "C_HDLC",
        105 => "IEEE802_11, Wi-Fi",
        107 => "FRELAY",
        108 => "LOOP, OpenBSD loopback",
        113 => "LINUX_SLL, Linux cooked",
        127 => "IEEE802_11_RADIOTAP, Wi-Fi",
        147..=162 => "USER0 to USER15",
        187 => "BLUETOOTH_HCI_H4",
        189 => "USB_LINUX",
        192 => "PPI",
        195 => "IEEE802_15_4_WITHFCS",
        201 => "BLUETOOTH_HCI_H4_WITH_PHDR",
        220 => "USB_LINUX_MMAPPED",
        227 => "CAN_SOCKETCAN",
        228 => "IPV4, raw IPv4",
        229 => "IPV6, raw IPv6",
        239 => "NFLOG",
        249 => "USBPCAP",
        252 => "WIRESHARK_UPPER_PDU",
        253 => "NETLINK",
        276 => "LINUX_SLL2, Linux cooked",
        _ => return None,
    })
}

/// The lengths without an FCS of `fcs` bytes. The FCS is the end of what was on the wire, so a cut packet may have none of it.
/// A captured length above the original one is a writer's slip: the data is there, so it counts.
pub(super) fn without_fcs(cap_len: u32, orig_len: u32, fcs: u32) -> (u32, u32) {
    let orig_len = orig_len.max(cap_len).saturating_sub(fcs);
    (cap_len.min(orig_len), orig_len)
}
