//! Packets of several segments: joining, splitting, and making one piece of them.
//!
//! The first segment carries the packet's `nb_segs`, `pkt_len` and metadata; the others have `nb_segs` 1, so that each can
//! go back to its pool by itself. Here no byte moves but in `split_at` within a segment and in `linearize`.

use super::check;
use super::clone::copy_meta;
use super::data::{as_head, no_packet};
use super::layout::RawMbuf;
use super::owner::Mbuf;
use crate::base::{Error, Result};
use crate::pool::{self, Pool, PoolInner};
use crate::{fail, invalid};
use core::ptr::{NonNull, null_mut};

/// The operations on a pointer; the contract is that of `data.rs`: a live packet, owned, with a sound chain.
impl RawMbuf {
    /// The last segment.
    ///
    /// # Safety
    /// As said above.
    #[inline(always)]
    pub unsafe fn last_seg(m: *const RawMbuf) -> *mut RawMbuf {
        // SAFETY: the caller owns the chain, which ends with a null `next`.
        unsafe {
            let mut seg = m;
            while !(*seg).next.is_null() {
                seg = (*seg).next;
            }
            seg.cast_mut()
        }
    }

    /// Puts the segments of `tail` behind those of `head`; `tail` is part of `head` from then on, its metadata is lost.
    /// -EOVERFLOW, with both as they were, where there would be more than 2^16 − 1 segments or 2^32 − 1 bytes; -EINVAL
    /// where both are one packet.
    ///
    /// # Safety
    /// As said above, for both.
    pub unsafe fn chain(head: *mut RawMbuf, tail: *mut RawMbuf) -> Result<()> {
        // SAFETY: the caller owns both chains.
        unsafe {
            if core::ptr::eq(head, tail) {
                return invalid!("a packet cannot be chained to itself");
            }
            if RawMbuf::try_chain(head, tail) {
                return Ok(());
            }
            let (a, b) = ((*head).nb_segs, (*tail).nb_segs);
            if a.checked_add(b).is_none() {
                return fail!(OVERFLOW, "{a} and {b} segments, a packet has at most {}", u16::MAX);
            }
            fail!(OVERFLOW, "{} and {} bytes, a packet has at most {}", (*head).pkt_len, (*tail).pkt_len, u32::MAX)
        }
    }

    /// As [`RawMbuf::chain`], without a text: false where there would be too many segments or bytes. For bursts.
    ///
    /// # Safety
    /// As said above, for both, which are two packets.
    #[inline]
    pub unsafe fn try_chain(head: *mut RawMbuf, tail: *mut RawMbuf) -> bool {
        // SAFETY: the caller owns both chains.
        unsafe {
            let (Some(segs), Some(len)) =
                ((*head).nb_segs.checked_add((*tail).nb_segs), (*head).pkt_len.checked_add((*tail).pkt_len))
            else {
                return false;
            };
            (*RawMbuf::last_seg(head)).next = tail;
            (*head).nb_segs = segs;
            (*head).pkt_len = len;
            (*tail).nb_segs = 1;
            (*tail).pkt_len = (*tail).data_len.into();
            true
        }
    }

    /// Takes the segments from number `at` on off the packet, as a packet with the same metadata. -EINVAL where `at` is 0
    /// or not below `nb_segs`.
    ///
    /// # Safety
    /// As said above.
    pub unsafe fn split_segments(m: *mut RawMbuf, at: u16) -> Result<*mut RawMbuf> {
        // SAFETY: the caller owns the chain.
        unsafe {
            let have = (*m).nb_segs;
            if at == 0 || at >= have {
                return invalid!("split before segment {at} of a packet of {have} segments");
            }
            let mut last = m;
            for _ in 1..at {
                last = (*last).next;
                if last.is_null() {
                    return invalid!("the packet has fewer than its {have} segments");
                }
            }
            let rest = (*last).next;
            if rest.is_null() {
                return invalid!("the packet has fewer than its {have} segments");
            }
            cut_behind(m, last, at);
            Ok(rest)
        }
    }

    /// Leaves the first `offset` bytes in the packet and gives the others as a packet with the same metadata. Whole
    /// segments move over; what follows the cut within a segment is copied into packets of `pool`, so that both parts can
    /// be written. -EINVAL where `offset` is beyond the packet, -ENOMEM where the pool has too few; nothing is changed then.
    ///
    /// # Safety
    /// As said above; the caller keeps the pool alive.
    pub unsafe fn split_at(m: *mut RawMbuf, offset: usize, pool: &PoolInner) -> Result<*mut RawMbuf> {
        // SAFETY: the caller owns the chain; runs read lie in segments' data.
        unsafe {
            let have = (*m).pkt_len as usize;
            if offset > have {
                return invalid!("split at byte {offset} of a packet of {have} bytes");
            }
            // The segment that holds the last byte that stays, and how many stay in it.
            let (mut last, mut keep, mut at) = (m, offset, 1u16);
            while keep > usize::from((*last).data_len) {
                keep -= usize::from((*last).data_len);
                last = (*last).next;
                at += 1;
                if last.is_null() {
                    return invalid!("the packet's segments are shorter than its {have} bytes");
                }
            }
            let over = usize::from((*last).data_len) - keep;
            if over == 0 && !(*last).next.is_null() {
                let rest = (*last).next;
                cut_behind(m, last, at);
                return Ok(rest);
            }
            let mut from = RawMbuf::data_ptr(last).wrapping_add(keep);
            let part = RawMbuf::alloc_filled(pool, over, |to, n| {
                core::ptr::copy_nonoverlapping(from, to, n);
                from = from.add(n);
            })?;
            let rest = (*last).next;
            if !rest.is_null()
                && let Err(e) = RawMbuf::chain(part, as_head(rest))
            {
                (*rest).nb_segs = 1;
                pool::free_packet(part);
                return Err(e);
            }
            copy_meta(m, part);
            (*last).next = null_mut();
            (*last).data_len = keep as u16;
            (*m).nb_segs = at;
            (*m).pkt_len = offset as u32;
            Ok(part)
        }
    }

    /// Brings all bytes into the first segment and frees the others. Where the room behind its data is too small, the data
    /// moves down, which costs headroom. -EMSGSIZE with the length and the room of the buffer, -EBUSY where other packets
    /// refer to its bytes; nothing is changed then.
    ///
    /// # Safety
    /// As said above.
    pub unsafe fn linearize(m: *mut RawMbuf) -> Result<()> {
        // SAFETY: the caller owns the chain, and the first segment's bytes alone.
        unsafe {
            let rest = (*m).next;
            if rest.is_null() {
                return Ok(());
            }
            RawMbuf::may_write(m)?;
            let (len, room) = ((*m).pkt_len as usize, usize::from((*m).buf_len));
            if len > room {
                return fail!(MSGSIZE, "packet of {len} bytes, the buffer of its first segment has {room}");
            }
            let have = usize::from((*m).data_len);
            let start = usize::from((*m).data_off).min(room - len);
            let from = RawMbuf::data_ptr(m);
            let base = (*m).buf_addr.wrapping_add(start);
            // Overlapping where it moves down by less than its length.
            core::ptr::copy(from, base, have);
            (*m).data_off = start as u16;
            let (mut at, mut seg) = (have, rest);
            while !seg.is_null() {
                let n = usize::from((*seg).data_len).min(len - at);
                core::ptr::copy_nonoverlapping(RawMbuf::data_ptr(seg), base.wrapping_add(at), n);
                at += n;
                seg = (*seg).next;
            }
            (*m).data_len = at as u16;
            (*m).pkt_len = at as u32;
            (*m).next = null_mut();
            (*m).nb_segs = 1;
            pool::free_packet(as_head(rest));
        }
        Ok(())
    }
}

/// Ends the packet `m` with its segment `last`, which is number `segs`; what follows becomes a packet like it.
unsafe fn cut_behind(m: *mut RawMbuf, last: *mut RawMbuf, segs: u16) {
    // SAFETY: the caller owns the chain, and a segment follows `last`.
    unsafe {
        let rest = as_head((*last).next);
        copy_meta(m, rest);
        (*last).next = null_mut();
        (*m).nb_segs = segs;
        (*m).pkt_len = (*m).pkt_len.saturating_sub((*rest).pkt_len);
    }
}

impl Mbuf {
    /// Puts `tail` behind this packet; gives it back where there would be too many segments or bytes. See
    /// [`RawMbuf::chain`].
    pub fn chain(&mut self, tail: Mbuf) -> Result<(), (Mbuf, Error)> {
        // SAFETY: we own both packets.
        match unsafe { RawMbuf::chain(self.as_ptr(), tail.as_ptr()) } {
            Ok(()) => {
                let _ = tail.into_raw();
                Ok(())
            }
            Err(e) => Err((tail, e)),
        }
    }

    /// As [`Mbuf::chain`], without a text. For bursts.
    #[inline]
    pub fn try_chain(&mut self, tail: Mbuf) -> Result<(), Mbuf> {
        // SAFETY: we own both packets, and they are two.
        if unsafe { RawMbuf::try_chain(self.as_ptr(), tail.as_ptr()) } {
            let _ = tail.into_raw();
            Ok(())
        } else {
            Err(tail)
        }
    }

    /// Takes the segments from number `at` on off; see [`RawMbuf::split_segments`].
    pub fn split_segments(&mut self, at: u16) -> Result<Mbuf> {
        // SAFETY: we own the packet, and then both.
        unsafe { owned(RawMbuf::split_segments(self.as_ptr(), at)?) }
    }

    /// Leaves the first `offset` bytes here and gives the others; see [`RawMbuf::split_at`].
    pub fn split_at(&mut self, offset: usize, pool: &Pool) -> Result<Mbuf> {
        // SAFETY: as above.
        unsafe { owned(RawMbuf::split_at(self.as_ptr(), offset, pool.inner())?) }
    }

    /// Brings all bytes into the first segment; see [`RawMbuf::linearize`].
    pub fn linearize(&mut self) -> Result<()> {
        // SAFETY: we own the packet.
        unsafe { RawMbuf::linearize(self.as_ptr()) }
    }

    /// -EINVAL where the lengths of the chain do not agree with each other or with the buffers.
    pub fn validate(&self) -> Result<()> {
        // SAFETY: we own the packet.
        if unsafe { check::is_sound(self.as_ptr()) } {
            return Ok(());
        }
        invalid!("a packet whose segments do not agree: {self:?}")
    }
}

/// The owner of a packet that an operation above gave.
pub(super) unsafe fn owned(m: *mut RawMbuf) -> Result<Mbuf> {
    match NonNull::new(m) {
        // SAFETY: the caller owns the packet and gives it away.
        Some(m) => Ok(unsafe { Mbuf::from_raw(m) }),
        None => fail!(NOMEM, "no packet"),
    }
}

/// A fresh header, or -ENOMEM.
pub(super) unsafe fn fresh(pool: &PoolInner) -> Result<*mut RawMbuf> {
    // SAFETY: the caller keeps the pool.
    let m = unsafe { pool::alloc_one_raw(pool) };
    if m.is_null() { Err(no_packet(pool)) } else { Ok(m) }
}
