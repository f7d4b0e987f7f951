//! Whether a packet is what its header says: the question every sender asks before it believes a length.

use super::layout::RawMbuf;

/// True where the packet is one segment, and its lengths agree and lie in its buffer.
///
/// # Safety
/// The caller owns the packet.
#[inline(always)]
pub unsafe fn is_plain(m: *const RawMbuf) -> bool {
    // SAFETY: the caller owns the packet.
    unsafe {
        // `&`, not `&&`: three compares are cheaper than three branches.
        // Widened: see `RawMbuf::not_quick`.
        (u32::from((*m).nb_segs) == 1)
            & ((*m).pkt_len == u32::from((*m).data_len))
            & (u32::from((*m).data_off) + u32::from((*m).data_len) <= u32::from((*m).buf_len))
    }
}

/// True where the chain has `nb_segs` segments, each inside its buffer, and their lengths add up to `pkt_len`.
///
/// # Safety
/// The caller owns the packet; each non-null `next` among the first `nb_segs` leads to a live segment.
#[inline]
pub unsafe fn is_sound(m: *const RawMbuf) -> bool {
    // SAFETY: as this function's.
    unsafe {
        if is_plain(m) {
            return (*m).next.is_null();
        }
        let (mut seg, mut sum) = (m, 0u64);
        for _ in 0..(*m).nb_segs {
            if seg.is_null() || u32::from((*seg).data_off) + u32::from((*seg).data_len) > u32::from((*seg).buf_len) {
                return false;
            }
            sum += u64::from((*seg).data_len);
            seg = (*seg).next;
        }
        (*m).nb_segs != 0 && seg.is_null() && sum == u64::from((*m).pkt_len)
    }
}
