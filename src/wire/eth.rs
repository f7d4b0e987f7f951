//! Ethernet (IEEE 802.3) and its VLAN tags (IEEE 802.1Q), seen in place: nothing is copied, nothing is read beyond the end.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an Ethernet header without tag, and of a tag.
pub const HDR_LEN: usize = 14;
pub const TAG_LEN: usize = 4;

/// Ethernet types (IEEE 802 numbers).
pub mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const VLAN: u16 = 0x8100;
    pub const IPV6: u16 = 0x86dd;
    /// Service tag (802.1ad).
    pub const QINQ: u16 = 0x88a8;
}

/// A station's address, as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// A group address: multicast or broadcast.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl core::fmt::Display for Mac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// | offset | bytes | field |
/// |---:|---:|---|
/// | 0 | 6 | `dst` |
/// | 6 | 6 | `src` |
/// | 12 | 2 | `ethertype`: of what follows, or of a tag |
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthHdr {
    pub dst: Mac,
    pub src: Mac,
    pub ethertype: U16,
}

/// | offset | bytes | field |
/// |---:|---:|---|
/// | 0 | 2 | `tci`: priority 3 bits, drop eligible 1, identifier 12 |
/// | 2 | 2 | `ethertype`: of what follows |
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanTag {
    pub tci: U16,
    pub ethertype: U16,
}

const _: () = assert!(size_of::<EthHdr>() == HDR_LEN && size_of::<VlanTag>() == TAG_LEN);

impl VlanTag {
    pub fn id(&self) -> u16 {
        self.tci.get() & 0xfff
    }

    pub fn priority(&self) -> u8 {
        (self.tci.get() >> 13) as u8
    }
}

impl EthHdr {
    /// The header, and what follows it. None for less than 14 bytes.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Option<(&EthHdr, &[u8])> {
        EthHdr::ref_from_prefix(bytes).ok()
    }

    /// As [`EthHdr::parse`], to write.
    #[inline(always)]
    pub fn parse_mut(bytes: &mut [u8]) -> Option<(&mut EthHdr, &mut [u8])> {
        EthHdr::mut_from_prefix(bytes).ok()
    }
}

/// A frame down to what it carries: header, up to two tags, payload.
#[derive(Clone, Copy, Debug)]
pub struct EthFrame<'a> {
    pub hdr: &'a EthHdr,
    /// The outer tag first.
    pub tags: [Option<&'a VlanTag>; 2],
    /// Of `payload`.
    pub ethertype: u16,
    /// Padding included.
    pub payload: &'a [u8],
}

impl EthFrame<'_> {
    /// None where the header or a tag is cut. A third tag is left in the payload.
    pub fn parse(bytes: &[u8]) -> Option<EthFrame<'_>> {
        let (hdr, mut payload) = EthHdr::parse(bytes)?;
        let (mut ethertype, mut tags) = (hdr.ethertype.get(), [None; 2]);
        for slot in &mut tags {
            if !matches!(ethertype, self::ethertype::VLAN | self::ethertype::QINQ) {
                break;
            }
            let (tag, rest) = VlanTag::ref_from_prefix(payload).ok()?;
            *slot = Some(tag);
            (ethertype, payload) = (tag.ethertype.get(), rest);
        }
        Some(EthFrame { hdr, tags, ethertype, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAGGED: [u8; 20] = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, // addresses
        0x81, 0x00, 0xa0, 0x2a, // priority 5, identifier 42
        0x08, 0x00, // IPv4
        0x45, 0x00,
    ];

    #[test]
    fn a_tagged_frame_is_read_down_to_its_payload() {
        let f = EthFrame::parse(&TAGGED).unwrap();
        assert_eq!((f.hdr.dst, f.hdr.src), (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])));
        let tag = f.tags[0].unwrap();
        assert_eq!((tag.id(), tag.priority(), f.tags[1]), (42, 5, None));
        assert_eq!((f.ethertype, f.payload), (ethertype::IPV4, &[0x45, 0x00][..]));
        assert_eq!(f.hdr.src.to_string(), "02:00:00:00:00:02");
    }

    #[test]
    fn addresses_are_written_in_place_and_nothing_else_is() {
        let mut bytes = TAGGED;
        let (hdr, _) = EthHdr::parse_mut(&mut bytes).unwrap();
        (hdr.dst, hdr.src) = (Mac::BROADCAST, Mac([2, 0, 0, 0, 0, 9]));
        assert!(hdr.dst.is_group() && !hdr.src.is_group());
        assert_eq!(bytes[..12], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9]);
        assert_eq!(bytes[12..], TAGGED[12..]);
    }

    #[test]
    fn a_cut_header_or_tag_is_no_frame() {
        for len in 0..18 {
            assert!(EthFrame::parse(&TAGGED[..len]).is_none(), "{len} bytes");
        }
        assert!(EthHdr::parse(&TAGGED[..14]).is_some() && EthHdr::parse(&TAGGED[..13]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_are_lost_or_invented(bytes in proptest::collection::vec(any::<u8>(), 0..64), tpid in 0..3usize) {
            let mut bytes = bytes;
            if let Some(t) = bytes.get_mut(12..14) {
                t.copy_from_slice(&[[0x81, 0x00], [0x88, 0xa8], [0x08, 0x00]][tpid]);
            }
            if let Some(f) = EthFrame::parse(&bytes) {
                let tags = f.tags.iter().flatten().count();
                prop_assert_eq!(HDR_LEN + tags * TAG_LEN + f.payload.len(), bytes.len());
            }
        }
    }
}
