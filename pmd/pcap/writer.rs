//! Capture files as they are written: what stands around each packet, ready for writev, and a small buffered writer.
//!
//! Everything is in the byte order of this machine, as both formats allow (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrayvec::ArrayVec;

use super::source::errno_of;
use super::{Format, LINKTYPE_ETHERNET, MAX_RECORD};
use crate::driver::{Error, Result};

/// Bytes in front of a packet: 16 in classic pcap, 28 in pcapng.
pub const MAX_HEAD: usize = 28;
/// Bytes behind a packet: none in classic pcap, up to 3 of padding and 4 of length in pcapng.
pub const MAX_TAIL: usize = 7;
/// A classic file header has 24 bytes; a section header and an interface together have 60.
pub const MAX_FILE_HEADER: usize = 60;

const NS: u64 = 1_000_000_000;

/// The header of a classic record. `cap_len` is the length of the whole packet as written, over all its segments.
/// A stamp after the year 2106 does not fit and is clamped to the last one that does.
pub fn record_header(ts_ns: u64, cap_len: u32, orig_len: u32, nanos: bool) -> [u8; 16] {
    let unit = if nanos { 1 } else { 1_000 };
    let (sec, frac) = match u32::try_from(ts_ns / NS) {
        Ok(sec) => (sec, (ts_ns % NS) / unit),
        Err(_) => (u32::MAX, (NS - 1) / unit),
    };
    words([sec, frac as u32, cap_len, orig_len])
}

/// What stands before the data of a pcapng enhanced packet, on interface 0. `cap_len` is the length of the whole packet as
/// written, over all its segments, at most [`MAX_RECORD`]: the block's length is made of it.
pub fn epb_header(ts_ns: u64, cap_len: u32, orig_len: u32) -> [u8; 28] {
    words([6, block_len(cap_len), 0, (ts_ns >> 32) as u32, ts_ns as u32, cap_len, orig_len])
}

/// What stands behind the data of a pcapng enhanced packet: padding to 32 bits, and the block's length again.
pub fn epb_trailer(cap_len: u32) -> ArrayVec<u8, MAX_TAIL> {
    let mut tail = ArrayVec::new();
    for _ in 0..cap_len.wrapping_neg() % 4 {
        tail.push(0);
    }
    tail.extend(block_len(cap_len).to_ne_bytes());
    tail
}

fn block_len(cap_len: u32) -> u32 {
    debug_assert!(cap_len <= MAX_RECORD);
    (cap_len.wrapping_add(3) & !3).wrapping_add(32)
}

fn words<const N: usize, const B: usize>(w: [u32; N]) -> [u8; B] {
    const { assert!(N * 4 == B) };
    let mut out = [0; B];
    for (to, w) in out.chunks_exact_mut(4).zip(w) {
        to.copy_from_slice(&w.to_ne_bytes());
    }
    out
}

/// What a file is made of: format, resolution, snap length. Small, and the same for every packet of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoder {
    format: Format,
    nanos: bool,
    snaplen: u32,
}

/// What stands around one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// In front of the data.
    pub head: ArrayVec<u8, MAX_HEAD>,
    /// How many bytes of the packet are written: cut at the snap length.
    pub cap_len: u32,
    /// Behind the data.
    pub tail: ArrayVec<u8, MAX_TAIL>,
}

impl Encoder {
    /// `nanos`: stamps in nanoseconds rather than microseconds (pcapng always has nanoseconds). `snaplen`: packets are cut at
    /// it; 0 is [`MAX_RECORD`]. -EINVAL above that.
    pub fn new(format: Format, nanos: bool, snaplen: u32) -> Result<Encoder> {
        if snaplen > MAX_RECORD {
            return Err(Error::invalid(format!("snap length {snaplen} above the limit of {MAX_RECORD}")));
        }
        let snaplen = if snaplen == 0 { MAX_RECORD } else { snaplen };
        Ok(Encoder { format, nanos: nanos || format == Format::PcapNg, snaplen })
    }

    /// The format that the name asks for, with nanoseconds.
    pub fn for_path(path: &Path, snaplen: u32) -> Result<Encoder> {
        Encoder::new(Format::of_path(path), true, snaplen)
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// What a file begins with.
    pub fn file_header(&self) -> ArrayVec<u8, MAX_FILE_HEADER> {
        let mut h = ArrayVec::new();
        let mut word = |w: u32| h.extend(w.to_ne_bytes());
        // Two 16-bit fields in the order of the file, whatever the byte order.
        let pair = |a: u16, b: u16| {
            let ([a0, a1], [b0, b1]) = (a.to_ne_bytes(), b.to_ne_bytes());
            u32::from_ne_bytes([a0, a1, b0, b1])
        };
        match self.format {
            Format::Pcap => {
                word(if self.nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
                word(pair(2, 4));
                word(0);
                word(0);
                word(self.snaplen);
                word(u32::from(LINKTYPE_ETHERNET));
            }
            Format::PcapNg => {
                // Section header: version 1.0, length not known.
                [0x0a0d_0d0a, 28, 0x1a2b_3c4d, pair(1, 0), u32::MAX, u32::MAX, 28].into_iter().for_each(&mut word);
                // Interface: if_tsresol (9) is 9, nanoseconds; end of options.
                let resol = u32::from_ne_bytes([9, 0, 0, 0]);
                [1, 32, pair(LINKTYPE_ETHERNET, 0), self.snaplen, pair(9, 1), resol, 0, 32]
                    .into_iter()
                    .for_each(&mut word);
            }
        }
        h
    }

    /// Bytes in the file of a packet of `len` bytes, with all that stands around it.
    #[inline]
    pub fn size(&self, len: u32) -> u32 {
        let cap_len = len.min(self.snaplen);
        match self.format {
            Format::Pcap => cap_len + 16,
            Format::PcapNg => block_len(cap_len),
        }
    }

    /// What stands around a packet of `len` bytes, over all its segments.
    pub fn around(&self, ts_ns: u64, len: usize) -> Around {
        let orig_len = u32::try_from(len).unwrap_or(u32::MAX);
        let cap_len = orig_len.min(self.snaplen);
        let mut head = ArrayVec::new();
        match self.format {
            Format::Pcap => {
                head.extend(record_header(ts_ns, cap_len, orig_len, self.nanos));
                Around { head, cap_len, tail: ArrayVec::new() }
            }
            Format::PcapNg => {
                head.extend(epb_header(ts_ns, cap_len, orig_len));
                Around { head, cap_len, tail: epb_trailer(cap_len) }
            }
        }
    }
}

/// Creates or empties `path` and writes the file header. /dev/null and a FIFO (blocks until it has a reader) will do.
/// Errors name the path.
pub fn create(path: &Path, encoder: &Encoder) -> Result<File> {
    let mut file = File::create(path).map_err(|e| io_error("create", path, &e))?;
    file.write_all(&encoder.file_header()).map_err(|e| io_error("write", path, &e))?;
    Ok(file)
}

fn io_error(what: &str, path: &Path, e: &std::io::Error) -> Error {
    Error::new(errno_of(e), format!("{what} '{}': {e}", path.display()))
}

/// Writes a capture packet by packet through a buffer: for tools and tests. Call [`Writer::flush`] to hear of errors at the
/// end; drop writes what is left and cannot say.
pub struct Writer {
    out: BufWriter<File>,
    path: PathBuf,
    encoder: Encoder,
}

impl Writer {
    /// The format that the name asks for, with nanoseconds; cut at `snaplen` (0: [`MAX_RECORD`]).
    pub fn create(path: &Path, snaplen: u32) -> Result<Writer> {
        Writer::with(path, Encoder::for_path(path, snaplen)?)
    }

    pub fn with(path: &Path, encoder: Encoder) -> Result<Writer> {
        let out = BufWriter::with_capacity(64 * 1024, create(path, &encoder)?);
        Ok(Writer { out, path: path.to_owned(), encoder })
    }

    /// One packet, of any number of segments.
    pub fn write(&mut self, ts_ns: u64, segments: &[&[u8]]) -> Result<()> {
        let len = segments.iter().fold(0usize, |n, s| n.saturating_add(s.len()));
        let around = self.encoder.around(ts_ns, len);
        self.put(&around, segments).map_err(|e| io_error("write", &self.path, &e))
    }

    fn put(&mut self, around: &Around, segments: &[&[u8]]) -> std::io::Result<()> {
        self.out.write_all(&around.head)?;
        let mut left = around.cap_len as usize;
        for s in segments {
            let n = s.len().min(left);
            self.out.write_all(&s[..n])?;
            left -= n;
        }
        self.out.write_all(&around.tail)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|e| io_error("write", &self.path, &e))
    }
}
