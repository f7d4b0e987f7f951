//! The ways out of a pool and back into one for any thread: through its cache where it has a slot, else the shared ring.

use super::inner::{HEADROOM, PoolInner};
use super::slot;
use crate::mbuf::layout::flags::{ATTACHED, EXTERNAL, INDIRECT};
use crate::mbuf::layout::{ExtShared, NO_IOVA, NO_PORT, RawMbuf, rearm_word};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::*;

/// The pool a header belongs to.
///
/// # Safety
/// `m` is a live header that came from a pool; the reference must not outlive the packet.
#[inline(always)]
pub unsafe fn pool_of<'a>(m: *const RawMbuf) -> &'a PoolInner {
    // SAFETY: a header's `pool` is set when the pool is made and never changes; a packet keeps its pool alive.
    unsafe { &*(*m).pool.cast::<PoolInner>() }
}

/// Takes `n` headers as they lie in the pool (see the invariants in `mbuf::layout`): all, or none. True if taken.
///
/// # Safety
/// `out` has room for `n`; the caller keeps the pool alive.
#[inline]
pub unsafe fn alloc_raw(pool: &PoolInner, out: *mut *mut RawMbuf, n: usize) -> bool {
    // SAFETY: the caller's promises; the current slot's cache is this thread's.
    unsafe {
        let got = match pool.cache_for(slot::current()) {
            Some(c) => c.get(pool, out, n),
            None => pool.take_shared(out, n),
        };
        if got < n {
            put_raw(pool, out, got);
            return false;
        }
        let word = rearm_word(if pool.room == 0 { 0 } else { HEADROOM }, 1, 1, NO_PORT);
        for i in 0..n {
            let m = *out.add(i);
            RawMbuf::set_rearm(m, word);
            reset_lens(m);
        }
        true
    }
}

/// Zeroes what a fresh packet has at zero, the rearm word apart.
#[inline(always)]
unsafe fn reset_lens(m: *mut RawMbuf) {
    // SAFETY: the caller owns `m`.
    unsafe {
        (*m).ol_flags = 0;
        (*m).packet_type = 0;
        (*m).pkt_len = 0;
        (*m).data_len = 0;
    }
}

#[inline]
unsafe fn put_raw(pool: &PoolInner, objs: *const *mut RawMbuf, n: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: the caller's promises; the current slot's cache is this thread's.
    unsafe {
        match pool.cache_for(slot::current()) {
            Some(c) => c.put(pool, objs, n),
            None => pool.put_shared(objs, n),
        }
    }
}

/// Frees a whole packet, every segment of it, on any thread.
///
/// # Safety
/// The caller owns the packet and does not use it again.
#[inline]
pub unsafe fn free_packet(m: *mut RawMbuf) {
    // SAFETY: the caller owns the packet.
    unsafe {
        if RawMbuf::not_quick(m) == 0 && (*m).ol_flags & ATTACHED == 0 {
            put_raw(pool_of(m), &m, 1);
        } else {
            free_chain(m);
        }
    }
}

/// As [`free_packet`], by `next` alone: `nb_segs` is not believed.
///
/// # Safety
/// As [`free_packet`].
#[cold]
#[inline(never)]
pub unsafe fn free_chain(m: *mut RawMbuf) {
    let mut batch = Batch::new();
    // SAFETY: the caller owns the packet; what is in the batch is free.
    unsafe {
        batch.push_chain(m);
        batch.flush();
    }
}

/// Frees `n` whole packets, of any pools, on any thread: headers of one pool that follow each other go back together.
///
/// # Safety
/// `pkts` holds `n` packets that the caller owns and does not use again.
pub unsafe fn free_packets(pkts: *const *mut RawMbuf, n: usize) {
    let mut batch = Batch::new();
    for i in 0..n {
        // SAFETY: `pkts` is valid for `n`, and the caller owns the packets.
        unsafe {
            let m = *pkts.add(i);
            if RawMbuf::not_quick(m) == 0 && (*m).ol_flags & ATTACHED == 0 {
                batch.push(m);
            } else {
                batch.push_chain(m);
            }
        }
    }
    // SAFETY: what is in the batch is free.
    unsafe { batch.flush() };
}

const BATCH: usize = 32;

/// Free headers of one pool, on their way back to it. They keep the pool alive until then.
struct Batch {
    /// The first `len` are written; not the others, which would cost more than a free does.
    objs: [MaybeUninit<*mut RawMbuf>; BATCH],
    len: usize,
    pool: *const core::ffi::c_void,
}

impl Batch {
    fn new() -> Batch {
        Batch { objs: [const { MaybeUninit::uninit() }; BATCH], len: 0, pool: core::ptr::null() }
    }

    /// Lets go of each segment of a packet, by `next` alone.
    ///
    /// # Safety
    /// The caller owns the packet.
    unsafe fn push_chain(&mut self, mut m: *mut RawMbuf) {
        while !m.is_null() {
            // SAFETY: each segment belongs to the packet; `next` is read before the segment is let go.
            unsafe {
                let next = (*m).next;
                if let Some(seg) = release_segment(m) {
                    self.push(seg);
                }
                m = next;
            }
        }
    }

    /// # Safety
    /// `m` is free, and as it lies in its pool.
    #[inline(always)]
    unsafe fn push(&mut self, m: *mut RawMbuf) {
        // SAFETY: `m` is a live header.
        let pool = unsafe { (*m).pool };
        if self.len >= BATCH || !core::ptr::eq(pool, self.pool) {
            // SAFETY: what was pushed is free.
            unsafe { self.flush() };
            self.pool = pool;
        }
        // Always there, by the check above; without an index that could panic.
        if let Some(o) = self.objs.get_mut(self.len) {
            o.write(m);
            self.len += 1;
        }
    }

    /// # Safety
    /// As [`Self::push`], for what was pushed.
    unsafe fn flush(&mut self) {
        if self.len != 0 {
            // SAFETY: the first `len` are written: free headers of one pool, which they keep.
            unsafe { put_raw(&*self.pool.cast::<PoolInner>(), self.objs.as_ptr().cast(), self.len) };
            self.len = 0;
        }
    }
}

/// Drops the caller's reference on one segment. If it was the last: restores the pool's invariants and gives the header,
/// which the caller then puts into its pool.
///
/// # Safety
/// The caller owns a reference on the segment.
#[inline]
pub unsafe fn release_segment(m: *mut RawMbuf) -> Option<*mut RawMbuf> {
    // SAFETY: the caller's reference keeps the header alive until it is dropped here.
    unsafe {
        // c: acquire pairs with the release of other owners' drops, so that their last reads of the buffer are over.
        if (*m).refcnt.load(Acquire) != 1 && (*m).refcnt.fetch_sub(1, AcqRel) != 1 {
            return None;
        }
        if (*m).ol_flags & ATTACHED != 0 {
            detach(m);
        }
        (*m).next = core::ptr::null_mut();
        (*m).nb_segs = 1;
        (*m).refcnt.store(1, Relaxed);
        Some(m)
    }
}

/// Gives the borrowed buffer back and points the header at its own room again.
///
/// # Safety
/// The caller is the last owner of `m`, whose flags say INDIRECT or EXTERNAL.
#[cold]
unsafe fn detach(m: *mut RawMbuf) {
    // SAFETY: `shinfo` is what the flag says it is (mbuf::clone writes both together); the caller is the last owner.
    unsafe {
        let (flags, from, addr) = ((*m).ol_flags, (*m).shinfo, (*m).buf_addr);
        (*m).ol_flags = flags & !ATTACHED;
        (*m).shinfo = core::ptr::null_mut();
        set_own_room(m);
        if flags & INDIRECT != 0 {
            if let Some(owner) = release_segment(from.cast()) {
                put_raw(pool_of(owner), &owner, 1);
            }
        } else if flags & EXTERNAL != 0 {
            let shared = from.cast::<ExtShared>();
            // d: as c, for the buffer's other users.
            if (*shared).refcnt.fetch_sub(1, AcqRel) == 1
                && let Some(free) = (*shared).free_cb
            {
                free(addr.cast(), (*shared).opaque);
            }
        }
    }
}

/// Points a header at its own room.
pub(super) unsafe fn set_own_room(m: *mut RawMbuf) {
    // SAFETY: the caller owns `m`.
    unsafe {
        let pool = pool_of(m);
        let room = pool.room_of(m);
        (*m).buf_addr = room;
        (*m).buf_len = pool.room;
        set_iova_for_room(m);
    }
}

/// Sets `buf_iova` of a header whose `buf_addr` is its own room: virtual addresses serve as device addresses.
///
/// # Safety
/// The caller owns `m`.
pub unsafe fn set_iova_for_room(m: *mut RawMbuf) {
    // SAFETY: the caller owns `m`.
    unsafe {
        (*m).buf_iova = if (*m).buf_addr.is_null() { NO_IOVA } else { (*m).buf_addr.addr() as u64 };
    }
}
