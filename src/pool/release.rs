//! The ways out of a pool and back into one for any thread: through its cache where it has a slot, else the shared ring.

use super::inner::{HEADROOM, PoolInner};
use super::slot;
use crate::mbuf::layout::flags::{ATTACHED, EXTERNAL, INDIRECT};
use crate::mbuf::layout::{ExtShared, NO_IOVA, NO_PORT, RawMbuf, fresh_words, rearm_word};
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
        let fresh = fresh(pool);
        for i in 0..n {
            RawMbuf::set_fresh(*out.add(i), fresh);
        }
        true
    }
}

/// As [`alloc_raw`], one header by value: null where there is none.
///
/// # Safety
/// The caller keeps the pool alive.
#[inline(always)]
pub unsafe fn alloc_one_raw(pool: &PoolInner) -> *mut RawMbuf {
    // SAFETY: the caller's promise; the current slot's cache is this thread's. A header taken is ours alone.
    unsafe {
        let m = match pool.cache_made(slot::current()) {
            Some(c) => c.try_get_one(),
            None => core::ptr::null_mut(),
        };
        if m.is_null() {
            return alloc_one_slow(pool);
        }
        RawMbuf::set_fresh(m, fresh(pool));
        m
    }
}

#[cold]
#[inline(never)]
unsafe fn alloc_one_slow(pool: &PoolInner) -> *mut RawMbuf {
    let mut m = core::ptr::null_mut();
    // SAFETY: room for one; `m` stays null where there is none.
    unsafe { alloc_raw(pool, &mut m, 1) };
    m
}

/// What [`RawMbuf::set_fresh`] writes into an empty packet of the pool that came from no port.
#[inline(always)]
fn fresh(pool: &PoolInner) -> [u64; 4] {
    fresh_words(rearm_word(if pool.room == 0 { 0 } else { HEADROOM }, 1, 1, NO_PORT), 0)
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

#[inline(always)]
unsafe fn put_one_raw(m: *mut RawMbuf) {
    // SAFETY: a free header, which keeps its pool until it is there; the current slot's cache is this thread's.
    unsafe {
        if !pool_of(m).cache_made(slot::current()).is_some_and(|c| c.try_put_one(m)) {
            put_one_slow(m);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn put_one_slow(m: *mut RawMbuf) {
    // SAFETY: as in `put_one_raw`.
    unsafe { put_raw(pool_of(m), &m, 1) };
}

/// Frees a whole packet, every segment of it, on any thread.
///
/// # Safety
/// The caller owns the packet and does not use it again.
#[inline(always)]
pub unsafe fn free_packet(m: *mut RawMbuf) {
    // SAFETY: the caller owns the packet.
    unsafe {
        if RawMbuf::not_quick(m) == 0 && (*m).ol_flags & ATTACHED == 0 {
            put_one_raw(m);
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
/// `pkts` holds `n` packets that the caller owns and does not use again, or nulls.
#[inline]
pub unsafe fn free_packets(pkts: *const *mut RawMbuf, n: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: `pkts` is valid for `n`, and the caller owns the packets: those that are one plain packet each are free.
    unsafe {
        if plain_of_one_pool(pkts, n) {
            put_raw(pool_of(*pkts), pkts, n);
        } else {
            free_mixed(pkts, n);
        }
    }
}

/// One pass that only looks: are they all plain packets of one pool, and none of them null?
#[inline(always)]
unsafe fn plain_of_one_pool(pkts: *const *mut RawMbuf, n: usize) -> bool {
    // SAFETY: `pkts` is valid for `n` ≥ 1, and the caller owns what is not null.
    unsafe {
        let first = *pkts;
        if first.is_null() {
            return false;
        }
        let (pool, mut odd) = ((*first).pool.addr(), 0u64);
        for i in 0..n {
            let m = *pkts.add(i);
            if m.is_null() {
                return false;
            }
            odd |= u64::from(RawMbuf::not_quick(m));
            odd |= (*m).ol_flags & ATTACHED;
            odd |= ((*m).pool.addr() ^ pool) as u64;
        }
        odd == 0
    }
}

#[cold]
#[inline(never)]
unsafe fn free_mixed(pkts: *const *mut RawMbuf, n: usize) {
    let mut batch = Batch::new();
    for i in 0..n {
        // SAFETY: `pkts` is valid for `n`, and the caller owns the packets.
        unsafe {
            let m = *pkts.add(i);
            if m.is_null() {
                continue;
            }
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
