//! Classic pcap: a file header of 24 bytes, then records of 16 bytes and the packet (draft-ietf-opsawg-pcap).
//!
//! ```text
//! file    magic 4 | major 2 | minor 2 | reserved 8 | snap length 4 | link 4: type 16 bits, reserved, FCS flag 1, FCS length 4
//! record  seconds 4 | fraction 4 | captured length 4 | original length 4 | data
//! ```

use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use super::reader::{CaptureInfo, Counts, Found, check_linktype, without_fcs};
use super::source::{Fill, Source};
use super::{Format, LINKTYPE_ETHERNET, MAX_RECORD, stamp};
use crate::driver::Result;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// The magics that are read, as little-endian words of the file: (value, nanoseconds, big endian).
pub(super) const MAGICS: [(u32, bool, bool); 4] =
    [(0xa1b2_c3d4, false, false), (0xa1b2_3c4d, true, false), (0xd4c3_b2a1, false, true), (0x4d3c_b2a1, true, true)];

pub(super) struct Classic {
    nanos: bool,
    big: bool,
    fcs: u32,
}

impl Classic {
    /// Reads the file header. The caller has seen one of [`MAGICS`]: the parser of pcap-parser also takes the modified
    /// format, whose records this reader does not know.
    pub(super) fn start(src: &mut Source, nanos: bool, big: bool) -> Result<(Classic, CaptureInfo)> {
        match src.fill(FILE_HEADER)? {
            Fill::Ready => {}
            Fill::Short(have) => {
                return src.refuse(format_args!("cut short: {have} bytes of a file header of {FILE_HEADER}"));
            }
            Fill::NotYet => return src.refuse("no whole file header to read yet"),
        }
        let Ok((_, h)) = parse_pcap_header(&src.bytes()[..FILE_HEADER]) else {
            return src.refuse("not a pcap file header");
        };
        // Before 2.4 the two lengths of a record stood the other way round in some files, and nothing says in which.
        if h.version_major != 2 || h.version_minor < 4 {
            return src.refuse(format_args!(
                "pcap version {}.{} is not read, only 2.4 and later 2.x (editcap converts)",
                h.version_major, h.version_minor
            ));
        }
        let field = h.network.0 as u32;
        check_linktype(src, field as u16)?;
        // The FCS length counts 16-bit words, and stands only if its flag is set.
        let fcs = if field & 0x0400_0000 != 0 && field >> 28 == 2 { 4 } else { 0 };
        src.consume(FILE_HEADER);
        let info = CaptureInfo {
            format: Format::Pcap,
            nanos,
            big_endian: big,
            snaplen: h.snaplen,
            linktype: LINKTYPE_ETHERNET,
        };
        Ok((Classic { nanos, big, fcs }, info))
    }

    pub(super) fn next(&mut self, src: &mut Source, counts: &mut Counts) -> Result<Found> {
        let offset = src.pos();
        match src.fill(RECORD_HEADER)? {
            Fill::Ready => {}
            Fill::Short(0) => return Ok(Found::Eof),
            Fill::Short(_) => return Ok(Found::Truncated(offset)),
            Fill::NotYet => return Ok(Found::NotYet),
        }
        // The length is checked against the limit, never against the snap length: files with longer records are common.
        let raw_len = word(src.bytes(), 8, self.big);
        if raw_len > MAX_RECORD {
            return src.corrupt(offset, format_args!("record length {raw_len} above the limit of {MAX_RECORD}"));
        }
        let total = RECORD_HEADER + raw_len as usize;
        match src.fill(total)? {
            Fill::Ready => {}
            Fill::Short(_) => return Ok(Found::Truncated(offset)),
            Fill::NotYet => return Ok(Found::NotYet),
        }
        let record = src.bytes().get(..total).unwrap_or_default();
        let parsed = if self.big { parse_pcap_frame_be(record) } else { parse_pcap_frame(record) };
        let Ok((_, r)) = parsed else {
            return src.corrupt(offset, format_args!("record of {total} bytes not understood"));
        };
        let (ts_ns, clamped) = stamp::from_parts(r.ts_sec, r.ts_usec, self.nanos);
        let (len, orig_len) = without_fcs(r.caplen, r.origlen, self.fcs);
        counts.clamped_ts += u64::from(clamped);
        let index = src.index() + RECORD_HEADER;
        src.consume(total);
        Ok(Found::Packet { index, len, ts_ns, orig_len })
    }
}

/// The 32-bit word at `at` of `b`; 0 past its end, which callers have checked.
pub(super) fn word(b: &[u8], at: usize, big: bool) -> u32 {
    let Some(w) = b.get(at..at + 4).and_then(|s| <[u8; 4]>::try_from(s).ok()) else { return 0 };
    if big { u32::from_be_bytes(w) } else { u32::from_le_bytes(w) }
}

/// As [`word`], of 16 bits.
pub(super) fn half(b: &[u8], at: usize, big: bool) -> u16 {
    let Some(w) = b.get(at..at + 2).and_then(|s| <[u8; 2]>::try_from(s).ok()) else { return 0 };
    if big { u16::from_be_bytes(w) } else { u16::from_le_bytes(w) }
}
