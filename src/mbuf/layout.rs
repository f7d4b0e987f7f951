//! The packet buffer as C and Rust both see it: 128 bytes, two cache lines.
//!
//! Field names and meaning are those of DPDK's `rte_mbuf`, so that a data-plane programmer already knows them.
//! `include/burstline/mbuf.h` repeats this table by hand; both sides assert the same numbers.
//!
//! | offset | bytes | field | meaning |
//! |---:|---:|---|---|
//! | 0 | 8 | `buf_addr` | first byte of the buffer |
//! | 8 | 8 | `buf_iova` | its address for a device, or [`NO_IOVA`] |
//! | 16 | 2 | `data_off` | from `buf_addr` to the first data byte |
//! | 18 | 2 | `refcnt` | references to this header's buffer |
//! | 20 | 2 | `nb_segs` | segments of the packet (first segment only) |
//! | 22 | 2 | `port` | input port, or [`NO_PORT`] |
//! | 24 | 8 | `ol_flags` | [`super::flags`] |
//! | 32 | 4 | `packet_type` | protocol layers recognised by the receiver |
//! | 36 | 4 | `pkt_len` | bytes of the whole packet (first segment only) |
//! | 40 | 2 | `data_len` | bytes of this segment |
//! | 42 | 2 | `vlan_tci` | VLAN tag, when the flags say so |
//! | 44 | 8 | `hash` | RSS hash, then a driver's 32 bits |
//! | 52 | 2 | `vlan_tci_outer` | outer VLAN tag |
//! | 54 | 2 | `buf_len` | bytes of the buffer |
//! | 56 | 8 | `pool` | where the header returns to |
//! | 64 | 8 | `next` | next segment, or null |
//! | 72 | 8 | `tx_offload` | l2/l3/l4 lengths and tso_segsz |
//! | 80 | 8 | `shinfo` | external buffer's shared part; of an indirect buffer, the header it borrows from |
//! | 88 | 8 | `timestamp` | ns, when the flags say so |
//! | 96 | 32 | `dynfield` | room for dynamic fields |
//!
//! Invariants of a header that lies in its pool: `refcnt` 1, `nb_segs` 1, `next` null, `buf_addr` its own room,
//! neither INDIRECT nor EXTERNAL. So a single-segment packet is sent and freed without touching its second line.

pub mod flags;

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Acquire;
use core::sync::atomic::{AtomicU16, AtomicU32};

/// `buf_iova` of memory that no device can reach.
pub const NO_IOVA: u64 = u64::MAX;
/// `port` of a packet that came from no port.
pub const NO_PORT: u16 = u16::MAX;
/// Changes whenever the layout does; C checks it at init.
pub const LAYOUT_VERSION: u32 = 1;

/// The header of one packet segment. C: `struct bl_mbuf`.
#[repr(C, align(64))]
pub struct RawMbuf {
    pub buf_addr: *mut u8,
    pub buf_iova: u64,
    pub data_off: u16,
    pub refcnt: AtomicU16,
    pub nb_segs: u16,
    pub port: u16,
    pub ol_flags: u64,
    pub packet_type: u32,
    pub pkt_len: u32,
    pub data_len: u16,
    pub vlan_tci: u16,
    pub hash: [u32; 2],
    pub vlan_tci_outer: u16,
    pub buf_len: u16,
    /// A `pool::PoolInner`; opaque here, since the pool is built on this layout.
    pub pool: *const c_void,
    pub next: *mut RawMbuf,
    pub tx_offload: u64,
    pub shinfo: *mut c_void,
    pub timestamp: u64,
    pub dynfield: [u32; 8],
}

/// The shared part of an external buffer: freed by its callback when the last reference goes. C: `struct bl_ext_shared`.
#[repr(C)]
pub struct ExtShared {
    /// Called once, on the thread that drops the last reference, with the buffer's address and `opaque`.
    pub free_cb: Option<unsafe extern "C" fn(addr: *mut c_void, opaque: *mut c_void)>,
    pub opaque: *mut c_void,
    pub refcnt: AtomicU32,
}

const _: () = {
    assert!(size_of::<RawMbuf>() == 128 && align_of::<RawMbuf>() == 64);
    assert!(offset_of!(RawMbuf, buf_addr) == 0);
    assert!(offset_of!(RawMbuf, buf_iova) == 8);
    assert!(offset_of!(RawMbuf, data_off) == 16);
    assert!(offset_of!(RawMbuf, refcnt) == 18);
    assert!(offset_of!(RawMbuf, nb_segs) == 20);
    assert!(offset_of!(RawMbuf, port) == 22);
    assert!(offset_of!(RawMbuf, ol_flags) == 24);
    assert!(offset_of!(RawMbuf, packet_type) == 32);
    assert!(offset_of!(RawMbuf, pkt_len) == 36);
    assert!(offset_of!(RawMbuf, data_len) == 40);
    assert!(offset_of!(RawMbuf, vlan_tci) == 42);
    assert!(offset_of!(RawMbuf, hash) == 44);
    assert!(offset_of!(RawMbuf, vlan_tci_outer) == 52);
    assert!(offset_of!(RawMbuf, buf_len) == 54);
    assert!(offset_of!(RawMbuf, pool) == 56);
    assert!(offset_of!(RawMbuf, next) == 64);
    assert!(offset_of!(RawMbuf, tx_offload) == 72);
    assert!(offset_of!(RawMbuf, shinfo) == 80);
    assert!(offset_of!(RawMbuf, timestamp) == 88);
    assert!(offset_of!(RawMbuf, dynfield) == 96);
    assert!(size_of::<ExtShared>() == 24);
};

/// The eight bytes at offset 16 as one word: `data_off | refcnt << 16 | nb_segs << 32 | port << 48`.
/// Receive writes the word in one store.
#[inline(always)]
pub const fn rearm_word(data_off: u16, refcnt: u16, nb_segs: u16, port: u16) -> u64 {
    let b = [data_off.to_ne_bytes(), refcnt.to_ne_bytes(), nb_segs.to_ne_bytes(), port.to_ne_bytes()];
    u64::from_ne_bytes([b[0][0], b[0][1], b[1][0], b[1][1], b[2][0], b[2][1], b[3][0], b[3][1]])
}

/// Bytes 16 to 47 of a fresh packet of one segment: the rearm word, no flags, no type, both lengths, no tag, no hash.
#[inline(always)]
pub const fn fresh_words(rearm: u64, len: u16) -> [u64; 4] {
    let (long, short) = ((len as u32).to_ne_bytes(), len.to_ne_bytes());
    let w2 = u64::from_ne_bytes([0, 0, 0, 0, long[0], long[1], long[2], long[3]]);
    let w3 = u64::from_ne_bytes([short[0], short[1], 0, 0, 0, 0, 0, 0]);
    [rearm, 0, w2, w3]
}

impl RawMbuf {
    /// Writes bytes 16 to 47: two stores of 16 bytes where the machine has them.
    ///
    /// # Safety
    /// `m` points to a header that the caller alone owns.
    #[inline(always)]
    pub unsafe fn set_fresh(m: *mut RawMbuf, words: [u64; 4]) {
        // SAFETY: offset 16 is 8-aligned, and 32 bytes follow it by the asserts above; sole ownership makes the plain
        // store of refcnt sound.
        unsafe { m.byte_add(16).cast::<[u64; 4]>().write(words) }
    }

    /// Zero where the packet is one segment that nobody else refers to: it may go the quick way back to its pool, if
    /// its buffer is its own.
    ///
    /// Two loads, not one of the word: others may drop their references meanwhile, so `refcnt` is read as the atomic it is.
    ///
    /// # Safety
    /// `m` points to a live header that the caller owns.
    #[inline(always)]
    pub unsafe fn not_quick(m: *const RawMbuf) -> u32 {
        // Widened before they are compared: a load of 16 bits that only 16 bits are wanted of may become one of 32, and
        // stall on the `port` that a receiver stored just now.
        // c: acquire pairs with the release of other owners' drops (pool::release), so that their last reads are over.
        // SAFETY: the owner of a packet is the only one who writes its fields but refcnt.
        unsafe { (u32::from((*m).refcnt.load(Acquire)) ^ 1) | (u32::from((*m).nb_segs) ^ 1) }
    }

    /// Writes the rearm word.
    ///
    /// # Safety
    /// `m` points to a header that the caller alone owns.
    #[inline(always)]
    pub unsafe fn set_rearm(m: *mut RawMbuf, word: u64) {
        // SAFETY: offset 16 is 8-aligned and 8 bytes long by the asserts above; sole ownership makes the plain store of
        // refcnt sound.
        unsafe { m.byte_add(16).cast::<u64>().write(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rearm_word_is_the_four_fields_in_memory_order() {
        // SAFETY: all-zero is a valid RawMbuf (integers, null pointers).
        let mut m: RawMbuf = unsafe { core::mem::zeroed() };
        // SAFETY: `m` is live and ours.
        unsafe { RawMbuf::set_rearm(&mut m, rearm_word(128, 1, 3, 7)) };
        assert_eq!((m.data_off, *m.refcnt.get_mut(), m.nb_segs, m.port), (128, 1, 3, 7));
        // SAFETY: as above.
        assert_ne!(unsafe { RawMbuf::not_quick(&m) }, 0);
        m.nb_segs = 1;
        // SAFETY: as above.
        assert_eq!(unsafe { RawMbuf::not_quick(&m) }, 0);
        *m.refcnt.get_mut() = 2;
        // SAFETY: as above.
        assert_ne!(unsafe { RawMbuf::not_quick(&m) }, 0);
    }
}
