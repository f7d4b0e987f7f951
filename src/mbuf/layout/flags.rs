//! `ol_flags`: what a receiver found, what a sender shall do, and how the buffer is held.
//! Bit positions are DPDK's (rte_mbuf_core.h), but for READ_ONLY and FOREIGN, which take bits that are free there.
//! READ_ONLY, FOREIGN, EXTERNAL and INDIRECT speak of one segment; the others of the packet, in its first segment.

/// A VLAN tag was seen; `vlan_tci` holds it when VLAN_STRIPPED is set too.
pub const RX_VLAN: u64 = 1 << 0;
/// `hash` holds the RSS hash.
pub const RX_RSS_HASH: u64 = 1 << 1;
pub const RX_L4_CKSUM_BAD: u64 = 1 << 3;
pub const RX_IP_CKSUM_BAD: u64 = 1 << 4;
pub const RX_VLAN_STRIPPED: u64 = 1 << 6;
pub const RX_IP_CKSUM_GOOD: u64 = 1 << 7;
pub const RX_L4_CKSUM_GOOD: u64 = 1 << 8;
/// The packet was merged from several (LRO, GRO).
pub const RX_LRO: u64 = 1 << 16;
/// `timestamp` holds the time of receipt, in ns.
pub const RX_TIMESTAMP: u64 = 1 << 38;
/// The bytes must not be written: others than packets refer to the buffer. A free bit of DPDK's, as FOREIGN's.
pub const READ_ONLY: u64 = 1 << 39;
/// A peer can still write the bytes: copy before believing them.
pub const FOREIGN: u64 = 1 << 40;
pub const TX_TCP_SEG: u64 = 1 << 50;
pub const TX_TCP_CKSUM: u64 = 1 << 52;
pub const TX_UDP_CKSUM: u64 = 3 << 52;
pub const TX_IP_CKSUM: u64 = 1 << 54;
pub const TX_IPV4: u64 = 1 << 55;
pub const TX_IPV6: u64 = 1 << 56;
/// Insert `vlan_tci` at send.
pub const TX_VLAN: u64 = 1 << 57;
/// The buffer is external: see `shinfo`.
pub const EXTERNAL: u64 = 1 << 61;
/// The buffer is borrowed from another header: see `shinfo`.
pub const INDIRECT: u64 = 1 << 62;

/// Either: the header's own room is not what `buf_addr` points to.
pub const ATTACHED: u64 = EXTERNAL | INDIRECT;

/// What the flags say of a segment's buffer, not of the packet.
pub const OF_SEGMENT: u64 = READ_ONLY | FOREIGN | ATTACHED;
