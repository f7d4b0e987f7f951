//! The symbols of what `burstline/mbuf.h` has as inline functions: for languages that cannot read a C header. Not in
//! `burstline.h`, since the names are taken there. All are hot.

use crate::mbuf::RawMbuf;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

/// The first byte of the first segment's data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_data(m: *const RawMbuf) -> *mut c_void {
    // SAFETY: the caller's packet.
    unsafe { RawMbuf::data_ptr(m) }.cast()
}

/// Bytes of the first segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_data_len(m: *const RawMbuf) -> u16 {
    // SAFETY: the caller's packet.
    unsafe { (*m).data_len }
}

/// Bytes of the whole packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_pkt_len(m: *const RawMbuf) -> u32 {
    // SAFETY: the caller's packet.
    unsafe { (*m).pkt_len }
}

/// Bytes free before the data of this segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_headroom(m: *const RawMbuf) -> u16 {
    // SAFETY: the caller's packet; `data_off` is 16 bits wide.
    unsafe { RawMbuf::headroom(m) as u16 }
}

/// Bytes free behind the data of this segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_tailroom(m: *const RawMbuf) -> u16 {
    // SAFETY: the caller's packet; `buf_len` is 16 bits wide.
    unsafe { RawMbuf::tailroom(m) as u16 }
}

/// The last segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_last(m: *const RawMbuf) -> *mut RawMbuf {
    // SAFETY: the caller's packet.
    unsafe { RawMbuf::last_seg(m) }
}

/// References to the segment's buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_refcnt(m: *const RawMbuf) -> u16 {
    // SAFETY: the caller's packet.
    unsafe { (*m).refcnt.load(Relaxed) }
}

/// 1 where no other packet refers to this segment's bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_is_exclusive(m: *const RawMbuf) -> i32 {
    // SAFETY: the caller's packet.
    unsafe { RawMbuf::is_exclusive(m) }.into()
}
