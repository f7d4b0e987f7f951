//! pcapng: a chain of blocks, each with its length in front and behind (draft-ietf-opsawg-pcapng).
//!
//! ```text
//! any block          type 4 | total length 4 | body | total length 4
//! section header     .. | byte-order magic 4 | major 2 | minor 2 | section length 8 | options
//! interface          .. | link type 2 | reserved 2 | snap length 4 | options
//! enhanced packet    .. | interface 4        | time 8 | captured 4 | original 4 | data, padded | options
//! packet (obsolete)  .. | interface 2, drops 2 | time 8 | captured 4 | original 4 | data, padded | options
//! simple packet      .. | original 4 | data, padded
//! ```
//!
//! From pcap-parser only the walk over options is used. Its block parsers do not fit here: those of packets allocate a vector
//! of options a packet; only one of them compares the two lengths; the resolution of a power of two is refused, and the time
//! offset is read as little-endian whatever the section says; a simple packet ignores the snap length; and the obsolete
//! packet block is unknown.

use pcap_parser::PcapError;
use pcap_parser::pcapng::{OptionCode, parse_option_be, parse_option_le};

use super::classic::{half, word};
use super::reader::{CaptureInfo, Counts, Found, check_linktype, without_fcs};
use super::source::{Fill, Source};
use super::stamp::Scale;
use super::{Format, LINKTYPE_ETHERNET, MAX_BLOCK, MAX_INTERFACES, MAX_RECORD};
use crate::driver::Result;

/// The same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// pcap-parser has no name for it.
const IF_FCSLEN: OptionCode = OptionCode(13);

const HEAD: usize = 8;
const TRAILER: usize = 4;
/// To the end of the section length.
const SECTION_HEAD: usize = 24;
const INTERFACE_HEAD: usize = 16;
const PACKET_HEAD: usize = 28;
const SIMPLE_HEAD: usize = 12;

#[derive(Clone, Copy)]
struct Interface {
    linktype: u16,
    snaplen: u32,
    fcs: u32,
    scale: Scale,
}

/// The rest of a block that is passed without being held.
#[derive(Clone, Copy)]
struct Skip {
    offset: u64,
    left: u64,
    total: u32,
}

pub(super) struct Ng {
    big: bool,
    /// Those of the current section.
    interfaces: Vec<Interface>,
    /// Survives a call: a non-blocking source may run dry in the middle.
    skip: Option<Skip>,
    prev_ts: u64,
}

/// A block's step.
enum Step {
    /// Not a packet: go on.
    On,
    Done(Found),
}

/// The head of a block, checked.
#[derive(Clone, Copy)]
struct Block {
    kind: u32,
    total: u32,
    offset: u64,
}

impl Block {
    fn is_packet(&self) -> bool {
        matches!(self.kind, PACKET | SIMPLE_PACKET | ENHANCED_PACKET)
    }
}

/// `Err` carries how the source ended: the caller's answer.
type Held<T> = core::result::Result<T, Found>;

impl Ng {
    /// Reads the first section header and on to its first interface, whose link type decides whether the file is taken.
    /// The caller has seen [`SECTION`].
    pub(super) fn start(src: &mut Source) -> Result<(Ng, CaptureInfo)> {
        let mut ng = Ng { big: false, interfaces: Vec::new(), skip: None, prev_ts: 0 };
        if src.fill(SECTION_HEAD)? != Fill::Ready {
            // A bad length is the better message, where there is enough to see it.
            ng.head(src)?.ok();
            return src.refuse(format_args!(
                "cut short: {} bytes of a section header of at least {}",
                src.bytes().len(),
                SECTION_HEAD + TRAILER
            ));
        }
        let mut counts = Counts::default();
        let mut first = None;
        loop {
            // A block that is being passed comes before the head of the next one.
            if ng.finish_skip(src)?.is_some() {
                break;
            }
            match ng.head(src)? {
                // What comes first is told by `next`: the end of the file, or a packet without an interface.
                Err(_) => break,
                Ok(block) if block.is_packet() => break,
                Ok(_) => {}
            }
            if let Step::Done(_) = ng.step(src, &mut counts)? {
                break;
            }
            if let Some(&i) = ng.interfaces.first() {
                check_linktype(src, i.linktype)?;
                first = Some(i);
                break;
            }
        }
        let info = CaptureInfo {
            format: Format::PcapNg,
            nanos: first.is_some_and(|i| i.scale.nanos),
            big_endian: ng.big,
            snaplen: first.map_or(0, |i| i.snaplen),
            linktype: LINKTYPE_ETHERNET,
        };
        Ok((ng, info))
    }

    pub(super) fn next(&mut self, src: &mut Source, counts: &mut Counts) -> Result<Found> {
        // Each turn passes at least 12 bytes or returns.
        loop {
            if let Step::Done(found) = self.step(src, counts)? {
                return Ok(found);
            }
        }
    }

    fn step(&mut self, src: &mut Source, counts: &mut Counts) -> Result<Step> {
        if let Some(end) = self.finish_skip(src)? {
            return Ok(Step::Done(end));
        }
        let block = match self.head(src)? {
            Ok(b) => b,
            Err(end) => return Ok(Step::Done(end)),
        };
        match block.kind {
            SECTION => self.section(src, block),
            INTERFACE => self.interface(src, block),
            PACKET | ENHANCED_PACKET => self.packet(src, block, counts),
            SIMPLE_PACKET => self.simple_packet(src, block, counts),
            // Names, statistics, secrets, and whatever comes after this was written.
            _ => {
                self.skip_block(src, block, HEAD);
                Ok(Step::On)
            }
        }
    }

    /// The head of the block in front, and its length checked for what any block of its kind must have.
    fn head(&mut self, src: &mut Source) -> Result<Held<Block>> {
        let offset = src.pos();
        match src.fill(HEAD)? {
            Fill::Ready => {}
            Fill::Short(0) => return Ok(Err(Found::Eof)),
            Fill::Short(_) => return Ok(Err(Found::Truncated(offset))),
            Fill::NotYet => return Ok(Err(Found::NotYet)),
        }
        // A section header brings its own byte order, so its length cannot be read before.
        let section = word(src.bytes(), 0, false) == SECTION;
        if section {
            if let Err(end) = hold(src, offset, HEAD + 4)? {
                return Ok(Err(end));
            }
            self.big = match word(src.bytes(), 8, false) {
                BYTE_ORDER => false,
                m if m.swap_bytes() == BYTE_ORDER => true,
                m => {
                    return src.corrupt(
                        offset,
                        format_args!(
                            "byte-order magic 0x{m:08x} of a section is neither 0x{BYTE_ORDER:08x} nor that swapped"
                        ),
                    );
                }
            };
        }
        let kind = word(src.bytes(), 0, self.big);
        let total = word(src.bytes(), 4, self.big);
        let least = match kind {
            SECTION => SECTION_HEAD,
            INTERFACE => INTERFACE_HEAD,
            PACKET | ENHANCED_PACKET => PACKET_HEAD,
            SIMPLE_PACKET => SIMPLE_HEAD,
            _ => HEAD,
        } + TRAILER;
        if (total as usize) < least {
            return src.corrupt(
                offset,
                format_args!("length {total} of a block of type 0x{kind:08x} below its least of {least}"),
            );
        }
        if !total.is_multiple_of(4) {
            return src.corrupt(
                offset,
                format_args!("length {total} of a block of type 0x{kind:08x} is not a multiple of 4"),
            );
        }
        Ok(Ok(Block { kind, total, offset }))
    }

    fn section(&mut self, src: &mut Source, block: Block) -> Result<Step> {
        if let Err(end) = hold(src, block.offset, SECTION_HEAD)? {
            return Ok(Step::Done(end));
        }
        let (major, minor) = (half(src.bytes(), 12, self.big), half(src.bytes(), 14, self.big));
        // 1.2 was written by some for 1.0, and is to be read as such.
        if major != 1 || !matches!(minor, 0 | 2) {
            return src.refuse(format_args!(
                "pcapng version {major}.{minor} at offset {} is not read, only 1.0",
                block.offset
            ));
        }
        // The section length only helps those who jump; it may be -1 or wrong, and is not needed.
        self.interfaces.clear();
        self.skip_block(src, block, SECTION_HEAD);
        Ok(Step::On)
    }

    fn interface(&mut self, src: &mut Source, block: Block) -> Result<Step> {
        let total = match self.hold_block(src, block)? {
            Ok(n) => n,
            Err(end) => return Ok(Step::Done(end)),
        };
        if self.interfaces.len() >= MAX_INTERFACES {
            return src.corrupt(block.offset, format_args!("more than {MAX_INTERFACES} interfaces in a section"));
        }
        let b = src.bytes();
        let (linktype, snaplen) = (half(b, 8, self.big), word(b, 12, self.big));
        let (mut resol, mut offset_s, mut fcs) = (6, 0, 0);
        let mut rest = &b[INTERFACE_HEAD..total - TRAILER];
        while !rest.is_empty() {
            let parse = if self.big { parse_option_be::<PcapError<&[u8]>> } else { parse_option_le };
            let Ok((after, option)) = parse(rest) else {
                let at = total - TRAILER - rest.len();
                return src
                    .corrupt(block.offset, format_args!("option at byte {at} of an interface runs out of its block"));
            };
            // The value comes with its padding.
            match (option.code, option.len, option.value()) {
                (OptionCode::EndOfOpt, ..) => break,
                (OptionCode::IfTsresol, 1, [v, ..]) => resol = *v,
                (OptionCode::IfTsoffset, 8, v) => {
                    let (a, b) = (u64::from(word(v, 0, self.big)), u64::from(word(v, 4, self.big)));
                    offset_s = if self.big { a << 32 | b } else { b << 32 | a } as i64;
                }
                (OptionCode::IfTsresol | OptionCode::IfTsoffset, len, _) => {
                    let code = option.code.0;
                    return src.corrupt(block.offset, format_args!("option {code} of an interface has length {len}"));
                }
                // Meant in bits; some write bytes. Ethernet has one FCS, of 4 bytes.
                (IF_FCSLEN, 1, [4 | 32, ..]) => fcs = 4,
                _ => {}
            }
            rest = after;
        }
        self.interfaces.push(Interface { linktype, snaplen, fcs, scale: Scale::new(resol, offset_s) });
        src.consume(total);
        Ok(Step::On)
    }

    fn packet(&mut self, src: &mut Source, block: Block, counts: &mut Counts) -> Result<Step> {
        if let Err(end) = hold(src, block.offset, PACKET_HEAD)? {
            return Ok(Step::Done(end));
        }
        let b = src.bytes();
        let id = if block.kind == PACKET { u32::from(half(b, 8, self.big)) } else { word(b, 8, self.big) };
        let Some(interface) = self.of_ethernet(src, block, id, counts)? else { return Ok(Step::On) };
        let raw_len = word(src.bytes(), 20, self.big);
        check_len(src, block, raw_len, PACKET_HEAD)?;
        let total = match self.hold_block(src, block)? {
            Ok(n) => n,
            Err(end) => return Ok(Step::Done(end)),
        };
        let b = src.bytes();
        let units = u64::from(word(b, 12, self.big)) << 32 | u64::from(word(b, 16, self.big));
        let (ts_ns, clamped) = interface.scale.ns(units);
        let (len, orig_len) = without_fcs(raw_len, word(b, 24, self.big), interface.fcs);
        counts.clamped_ts += u64::from(clamped);
        self.prev_ts = ts_ns;
        let index = src.index() + PACKET_HEAD;
        src.consume(total);
        Ok(Step::Done(Found::Packet { index, len, ts_ns, orig_len }))
    }

    fn simple_packet(&mut self, src: &mut Source, block: Block, counts: &mut Counts) -> Result<Step> {
        if let Err(end) = hold(src, block.offset, SIMPLE_HEAD)? {
            return Ok(Step::Done(end));
        }
        let Some(interface) = self.of_ethernet(src, block, 0, counts)? else { return Ok(Step::On) };
        let orig_len = word(src.bytes(), 8, self.big);
        // The captured length is not written down: it follows from the interface's snap length.
        let cap_len = if interface.snaplen == 0 { orig_len } else { orig_len.min(interface.snaplen) };
        check_len(src, block, cap_len, SIMPLE_HEAD)?;
        let total = match self.hold_block(src, block)? {
            Ok(n) => n,
            Err(end) => return Ok(Step::Done(end)),
        };
        let (len, orig_len) = without_fcs(cap_len, orig_len, interface.fcs);
        let index = src.index() + SIMPLE_HEAD;
        src.consume(total);
        Ok(Step::Done(Found::Packet { index, len, ts_ns: self.prev_ts, orig_len }))
    }

    /// The interface of a packet; None where it is not Ethernet, and the packet is counted and on its way out. Such a packet
    /// has its own link's lengths, so no limit of ours is held against it.
    fn of_ethernet(
        &mut self,
        src: &mut Source,
        block: Block,
        id: u32,
        counts: &mut Counts,
    ) -> Result<Option<Interface>> {
        let known = self.interfaces.len();
        let Some(&interface) = usize::try_from(id).ok().and_then(|i| self.interfaces.get(i)) else {
            return src.corrupt(block.offset, format_args!("packet of interface {id}, but the section has {known}"));
        };
        if interface.linktype == LINKTYPE_ETHERNET {
            return Ok(Some(interface));
        }
        counts.skipped_linktype += 1;
        self.skip_block(src, block, HEAD);
        Ok(None)
    }

    /// Brings a whole block into the window and compares its two lengths.
    fn hold_block(&self, src: &mut Source, block: Block) -> Result<Held<usize>> {
        let (kind, total) = (block.kind, block.total);
        if total > MAX_BLOCK {
            return src.corrupt(
                block.offset,
                format_args!("length {total} of a block of type 0x{kind:08x} above the limit of {MAX_BLOCK}"),
            );
        }
        let n = total as usize;
        if let Err(end) = hold(src, block.offset, n)? {
            return Ok(Err(end));
        }
        self.check_trailer(src, block.offset, total, n - TRAILER)?;
        Ok(Ok(n))
    }

    /// Starts to pass `block`, of which `seen` bytes are visible and done with.
    fn skip_block(&mut self, src: &mut Source, block: Block, seen: usize) {
        src.consume(seen);
        let left = u64::from(block.total) - (seen + TRAILER) as u64;
        self.skip = Some(Skip { offset: block.offset, left, total: block.total });
    }

    /// Goes on with a block that is being passed; Some is how the source ended.
    fn finish_skip(&mut self, src: &mut Source) -> Result<Option<Found>> {
        let Some(skip) = &mut self.skip else { return Ok(None) };
        let end = match src.skip(&mut skip.left)? {
            None => src.fill(TRAILER)?,
            Some(end) => end,
        };
        let Skip { offset, total, .. } = *skip;
        match end {
            Fill::Ready => {}
            Fill::Short(_) => return Ok(Some(Found::Truncated(offset))),
            Fill::NotYet => return Ok(Some(Found::NotYet)),
        }
        self.check_trailer(src, offset, total, 0)?;
        src.consume(TRAILER);
        self.skip = None;
        Ok(None)
    }

    fn check_trailer(&self, src: &Source, offset: u64, total: u32, at: usize) -> Result<()> {
        let trailer = word(src.bytes(), at, self.big);
        if trailer == total {
            return Ok(());
        }
        src.corrupt(offset, format_args!("block length {total} in front, {trailer} behind"))
    }
}

/// Brings `n` bytes of the block at `offset` into the window.
fn hold(src: &mut Source, offset: u64, n: usize) -> Result<Held<()>> {
    Ok(match src.fill(n)? {
        Fill::Ready => Ok(()),
        Fill::Short(_) => Err(Found::Truncated(offset)),
        Fill::NotYet => Err(Found::NotYet),
    })
}

/// A captured length against the limit, and against the room of its block behind `head` bytes.
fn check_len(src: &Source, block: Block, raw_len: u32, head: usize) -> Result<()> {
    if raw_len > MAX_RECORD {
        return src.corrupt(block.offset, format_args!("record length {raw_len} above the limit of {MAX_RECORD}"));
    }
    // `head` has checked that the block holds its own head and trailer.
    let room = block.total as usize - head - TRAILER;
    if raw_len as usize > room {
        return src.corrupt(block.offset, format_args!("record length {raw_len} in a block with room for {room}"));
    }
    Ok(())
}
