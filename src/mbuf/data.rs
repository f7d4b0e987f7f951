//! The bytes of a packet: room in front and behind, cutting, reading and writing at an offset.
//!
//! Here on a pointer (`RawMbuf::…`, for C); as safe methods of [`super::Mbuf`] in `view.rs`.
//!
//! | operation | where it works | refused |
//! |---|---|---|
//! | `prepend` `append` | first; last segment | no room; bytes that others share |
//! | `adj` `trim` | first segment; from the end, over segments | more than there is |
//! | `data` `read` `read_ref` | anything | beyond the packet; `data` of a FOREIGN segment |
//! | `data_mut` `write` | bytes that nobody else refers to | shared; read-only; `data_mut` of a FOREIGN segment |
//!
//! **Shared** is a segment whose bytes another packet refers to: its own `refcnt` is above 1, or that of the header it
//! borrows from, or that of its external buffer. **FOREIGN** bytes change under the reader, so no Rust reference to
//! them is ever made; copies of them are.
//!
//! # Memory order
//!
//! | edge | release | acquire | what it carries |
//! |---|---|---|---|
//! | c | `pool::release`: the drop of a reference on a header | [`RawMbuf::is_exclusive`]: the load that finds 1 | the last reads of who dropped it |
//! | d | `pool::release`: the drop of a reference on an external buffer | as above | as above |

use super::flags::{ATTACHED, EXTERNAL, INDIRECT, READ_ONLY};
use super::layout::{ExtShared, RawMbuf};
use crate::base::{Errno, Error, Result};
use crate::pool::{self, PoolInner};
use crate::{fail, invalid};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Acquire;

/// The operations on a pointer: what C calls, and what the methods of [`super::Mbuf`] are made of.
///
/// All of them share one contract: `m` is a live packet that the caller owns, and its chain is as `check::is_sound` says.
impl RawMbuf {
    /// Bytes free in front of the data of segment `m`.
    ///
    /// # Safety
    /// As said above.
    #[inline(always)]
    pub unsafe fn headroom(m: *const RawMbuf) -> usize {
        // SAFETY: the caller owns `m`.
        unsafe { (*m).data_off.into() }
    }

    /// Bytes free behind the data of segment `m`.
    ///
    /// # Safety
    /// As said above.
    #[inline(always)]
    pub unsafe fn tailroom(m: *const RawMbuf) -> usize {
        // SAFETY: the caller owns `m`.
        unsafe { usize::from((*m).buf_len).saturating_sub(usize::from((*m).data_off) + usize::from((*m).data_len)) }
    }

    /// The first data byte of segment `m`.
    ///
    /// # Safety
    /// As said above.
    #[inline(always)]
    pub unsafe fn data_ptr(m: *const RawMbuf) -> *mut u8 {
        // SAFETY: the caller owns `m`.
        unsafe { (*m).buf_addr.wrapping_add((*m).data_off.into()) }
    }

    /// True where no other packet refers to the bytes of segment `m`.
    ///
    /// # Safety
    /// As said above.
    #[inline]
    pub unsafe fn is_exclusive(m: *const RawMbuf) -> bool {
        // SAFETY: the caller owns `m`; `shinfo` is what the flags say, and our reference keeps it alive.
        unsafe {
            // c, d: acquire, so that the last reads of those who let go are over.
            if (*m).refcnt.load(Acquire) != 1 {
                return false;
            }
            match (*m).ol_flags & ATTACHED {
                0 => true,
                INDIRECT => (*(*m).shinfo.cast::<RawMbuf>()).refcnt.load(Acquire) == 1,
                EXTERNAL => (*(*m).shinfo.cast::<ExtShared>()).refcnt.load(Acquire) == 1,
                _ => false,
            }
        }
    }

    /// -EBUSY where others refer to the bytes of segment `m`, -EACCES where they must not be written at all.
    #[inline]
    pub(super) unsafe fn may_write(m: *const RawMbuf) -> Result<()> {
        // SAFETY: the caller owns `m`.
        unsafe {
            if (*m).ol_flags & READ_ONLY != 0 {
                return read_only();
            }
            if !RawMbuf::is_exclusive(m) {
                return shared();
            }
        }
        Ok(())
    }

    /// Makes `len` more bytes of the headroom data, and gives the first. -ENOSPC with the headroom, -EBUSY where the
    /// bytes are shared, -EOVERFLOW where the packet would pass 2^32 − 1 bytes.
    ///
    /// # Safety
    /// As said above.
    #[inline]
    pub unsafe fn prepend(m: *mut RawMbuf, len: usize) -> Result<*mut u8> {
        // SAFETY: the caller owns `m`; `len` ≤ data_off, so the new start lies in the buffer.
        unsafe {
            RawMbuf::may_write(m)?;
            let room = RawMbuf::headroom(m);
            if len > room {
                return no_room("prepend", len, "the headroom", room);
            }
            let Some(pkt_len) = (*m).pkt_len.checked_add(len as u32) else { return too_long((*m).pkt_len, len) };
            let Some(data_len) = (*m).data_len.checked_add(len as u16) else { return too_long((*m).data_len, len) };
            (*m).data_off -= len as u16;
            (*m).data_len = data_len;
            (*m).pkt_len = pkt_len;
            Ok(RawMbuf::data_ptr(m))
        }
    }

    /// Makes `len` more bytes behind the data of the last segment data, and gives the first. Errors as
    /// [`RawMbuf::prepend`].
    ///
    /// # Safety
    /// As said above.
    #[inline]
    pub unsafe fn append(m: *mut RawMbuf, len: usize) -> Result<*mut u8> {
        // SAFETY: the caller owns the chain; `len` ≤ tailroom, so the new end lies in the buffer.
        unsafe {
            let last = RawMbuf::last_seg(m);
            RawMbuf::may_write(last)?;
            let room = RawMbuf::tailroom(last);
            if len > room {
                return no_room("append", len, "the room behind the last segment", room);
            }
            let Some(pkt_len) = (*m).pkt_len.checked_add(len as u32) else { return too_long((*m).pkt_len, len) };
            let at = RawMbuf::data_ptr(last).wrapping_add((*last).data_len.into());
            (*last).data_len += len as u16;
            (*m).pkt_len = pkt_len;
            Ok(at)
        }
    }

    /// Cuts `len` bytes off the front: of the first segment, which may be left empty. -EINVAL with what it has.
    ///
    /// # Safety
    /// As said above.
    #[inline]
    pub unsafe fn adj(m: *mut RawMbuf, len: usize) -> Result<()> {
        // SAFETY: the caller owns `m`.
        unsafe {
            let have = usize::from((*m).data_len);
            if len > have {
                return too_far(len, have);
            }
            (*m).data_off += len as u16;
            (*m).data_len -= len as u16;
            (*m).pkt_len = (*m).pkt_len.saturating_sub(len as u32);
        }
        Ok(())
    }

    /// Cuts `len` bytes off the end; segments that this empties are freed, the first one apart. -EINVAL with `pkt_len`.
    ///
    /// # Safety
    /// As said above.
    pub unsafe fn trim(m: *mut RawMbuf, len: usize) -> Result<()> {
        // SAFETY: the caller owns the chain, whose lengths add up to `pkt_len`.
        unsafe {
            let have = (*m).pkt_len as usize;
            if len > have {
                return invalid!("cut of {len} bytes at the end, the packet has {have}");
            }
            if len == 0 {
                return Ok(());
            }
            // The segment that holds the last byte to keep; the first one where none is kept.
            let (mut seg, mut keep, mut segs) = (m, have - len, 1);
            while keep > usize::from((*seg).data_len) {
                keep -= usize::from((*seg).data_len);
                seg = (*seg).next;
                segs += 1;
                if seg.is_null() {
                    return invalid!("the packet's segments are shorter than its {have} bytes");
                }
            }
            let rest = (*seg).next;
            (*seg).next = null_mut();
            (*seg).data_len = keep as u16;
            (*m).nb_segs = segs;
            (*m).pkt_len = (have - len) as u32;
            if !rest.is_null() {
                pool::free_packet(as_head(rest));
            }
        }
        Ok(())
    }

    /// Copies `len` bytes from `offset` of the packet to `to`. -EINVAL, with nothing copied, where they are not all in
    /// it; the sum of the two is never formed. FOREIGN segments are read too: `to` is private from then on.
    ///
    /// # Safety
    /// As said above; `to` takes `len` bytes and lies outside the packet.
    pub unsafe fn read(m: *const RawMbuf, offset: usize, len: usize, to: *mut u8) -> Result<()> {
        // SAFETY: `runs` gives runs within the segments' data that are `len` bytes together; `to` takes as many.
        unsafe {
            let mut to = to;
            RawMbuf::runs(m, offset, len, "read", |_, from, n| {
                // A plain copy may read a byte of a peer twice, but what was read last is what `to` keeps.
                core::ptr::copy_nonoverlapping(from, to, n);
                to = to.add(n);
                Ok(())
            })
        }
    }

    /// Copies `len` bytes from `from` to `offset` of the packet, which does not grow. -EINVAL where they do not all lie
    /// in it, -EBUSY where other packets refer to some of those bytes, -EACCES where they are read-only; nothing is
    /// written then. FOREIGN segments are written too; what the peer makes of that is its affair.
    ///
    /// # Safety
    /// As said above; `from` holds `len` bytes and lies outside the packet.
    pub unsafe fn write(m: *mut RawMbuf, offset: usize, len: usize, from: *const u8) -> Result<()> {
        // SAFETY: as in `read`; nobody else refers to the bytes.
        unsafe {
            RawMbuf::runs(m, offset, len, "write", |seg, _, _| RawMbuf::may_write(seg))?;
            let mut from = from;
            RawMbuf::runs(m, offset, len, "write", |_, to, n| {
                core::ptr::copy_nonoverlapping(from, to, n);
                from = from.add(n);
                Ok(())
            })
        }
    }

    /// Calls `f(segment, first byte, length)` for each run of bytes that `offset` and `len` cover, none of them empty.
    /// -EINVAL, and no call, where they do not lie in the packet.
    pub(super) unsafe fn runs(
        m: *const RawMbuf,
        offset: usize,
        len: usize,
        what: &str,
        mut f: impl FnMut(*const RawMbuf, *mut u8, usize) -> Result<()>,
    ) -> Result<()> {
        // SAFETY: the caller owns the chain; a null end stops the walk whatever the lengths say.
        unsafe {
            let have = (*m).pkt_len as usize;
            if len > have || offset > have - len {
                return invalid!("{what} of {len} bytes at offset {offset} leaves a packet of {have} bytes");
            }
            let (mut seg, mut skip, mut left) = (m, offset, len);
            while left != 0 {
                if seg.is_null() {
                    return invalid!("the packet's segments are shorter than its {have} bytes");
                }
                let n = usize::from((*seg).data_len);
                if skip < n {
                    let take = (n - skip).min(left);
                    f(seg, RawMbuf::data_ptr(seg).wrapping_add(skip), take)?;
                    left -= take;
                    skip = 0;
                } else {
                    skip -= n;
                }
                seg = (*seg).next;
            }
        }
        Ok(())
    }

    /// The address of `len` bytes at `offset` where they lie in one segment, else null. FOREIGN or not: look at
    /// `ol_flags` of the segment.
    ///
    /// # Safety
    /// As said above.
    pub unsafe fn contiguous(m: *const RawMbuf, offset: usize, len: usize) -> *mut u8 {
        // SAFETY: as this function's.
        unsafe { RawMbuf::one_run(m, offset, len) }.map_or(null_mut(), |(_, p)| p)
    }

    /// As [`RawMbuf::contiguous`], with the segment.
    pub(super) unsafe fn one_run(m: *const RawMbuf, offset: usize, len: usize) -> Option<(*const RawMbuf, *mut u8)> {
        let mut seg = m;
        let mut skip = offset;
        // SAFETY: the caller owns the chain.
        unsafe {
            while !seg.is_null() {
                let n = usize::from((*seg).data_len);
                if skip < n || (skip == n && len == 0) {
                    return (len <= n - skip).then(|| (seg, RawMbuf::data_ptr(seg).wrapping_add(skip)));
                }
                skip -= n;
                seg = (*seg).next;
            }
        }
        None
    }

    /// A packet that holds a copy of `len` bytes at `from`, in as many segments as they need. -ENOMEM where the pool has
    /// too few, -EINVAL where its packets have no room, -EOVERFLOW above 2^16 − 1 segments; nothing is taken then.
    ///
    /// # Safety
    /// `from` holds `len` bytes; the caller keeps the pool alive.
    pub unsafe fn alloc_with(pool: &PoolInner, from: *const u8, len: usize) -> Result<*mut RawMbuf> {
        let mut from = from;
        // SAFETY: the caller's bytes; each segment is fresh and takes as many as asked.
        unsafe {
            RawMbuf::alloc_filled(pool, len, |to, n| {
                core::ptr::copy_nonoverlapping(from, to, n);
                from = from.add(n);
            })
        }
    }

    /// As [`RawMbuf::alloc_with`]: `fill(to, n)` writes the next `n` bytes.
    pub(super) unsafe fn alloc_filled(
        pool: &PoolInner,
        len: usize,
        mut fill: impl FnMut(*mut u8, usize),
    ) -> Result<*mut RawMbuf> {
        let room = usize::from(pool.data_room());
        if room == 0 {
            return invalid!("pool '{}' has headers alone: its packets hold no bytes", pool.name());
        }
        let segs = len.div_ceil(room).max(1);
        if segs > usize::from(u16::MAX) || len > u32::MAX as usize {
            return fail!(OVERFLOW, "{len} bytes are {segs} segments of {room}, a packet has at most {}", u16::MAX);
        }
        let (mut head, mut last): (*mut RawMbuf, *mut RawMbuf) = (null_mut(), null_mut());
        let mut left = len;
        // SAFETY: the caller keeps the pool; segments are fresh, and the chain grows by each as soon as it is filled.
        unsafe {
            for _ in 0..segs {
                let mut m = null_mut();
                if !pool::alloc_raw(pool, &mut m, 1) {
                    if !head.is_null() {
                        pool::free_packet(head);
                    }
                    return Err(no_packet(pool));
                }
                let n = left.min(room);
                fill(RawMbuf::data_ptr(m), n);
                (*m).data_len = n as u16;
                left -= n;
                if head.is_null() {
                    head = m;
                } else {
                    (*last).next = m;
                    (*head).nb_segs += 1;
                }
                (*head).pkt_len += n as u32;
                last = m;
            }
        }
        Ok(head)
    }
}

#[cold]
pub(super) fn no_packet(pool: &PoolInner) -> Error {
    Error::new(Errno::NOMEM, format!("pool '{}' is empty: all {} packets are in use", pool.name(), pool.size()))
}

#[cold]
fn no_room<V>(what: &str, len: usize, place: &str, room: usize) -> Result<V> {
    fail!(NOSPC, "{what} of {len} bytes, {place} has {room}")
}

#[cold]
fn too_far<V>(len: usize, have: usize) -> Result<V> {
    invalid!("cut of {len} bytes at the front, the first segment has {have}")
}

#[cold]
fn read_only<V>() -> Result<V> {
    fail!(ACCES, "the segment's buffer is read-only: write to a copy")
}

#[cold]
fn shared<V>() -> Result<V> {
    fail!(BUSY, "other packets refer to the segment's bytes: write to a copy")
}

#[cold]
fn too_long<V>(have: impl Into<u32>, more: usize) -> Result<V> {
    fail!(OVERFLOW, "{more} bytes more than {} pass the limit of a length field", have.into())
}

/// Makes a segment from within a chain the head of its own: counts the segments and bytes from there on.
pub(super) unsafe fn as_head(m: *mut RawMbuf) -> *mut RawMbuf {
    // SAFETY: the caller owns the segments from `m` on.
    unsafe {
        let (mut seg, mut segs, mut len) = (m, 0, 0);
        while !seg.is_null() {
            segs += 1;
            len += u32::from((*seg).data_len);
            seg = (*seg).next;
        }
        (*m).nb_segs = segs;
        (*m).pkt_len = len;
    }
    m
}
