//! What a pool is: the two segments, the shared ring, the caches, and one count of everything that keeps it alive.

use super::cache::Cache;
use super::debug::DebugTable;
use super::slot::MAX_SLOTS;
use crate::log_error;
use crate::mbuf::layout::RawMbuf;
use crate::mem::Segment;
use crate::mem::arena::{self, ArenaBox};
use crate::ring::Ring;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use crossbeam_utils::CachePadded;
use std::sync::Mutex;

/// Bytes before the data of a fresh packet: what AF_XDP takes of each frame (XDP_PACKET_HEADROOM, linux/bpf.h).
pub const HEADROOM: u16 = 256;
/// The largest cache a thread can have of one pool.
pub const MAX_CACHE: usize = 512;
/// What a program must be able to hold beside the queues.
const LEAST_BURST: u64 = 32;

/// What a keeper adds to `refs`.
pub(super) const KEEPER: u64 = 1 << KEEPER_SHIFT | 1;
const KEEPER_SHIFT: u32 = 40;

/// The pool behind its handles. Lives until the handle, every queue and every packet are gone.
#[repr(C, align(128))]
pub struct PoolInner {
    // Read by every burst, written never.
    pub(super) headers: *mut RawMbuf,
    pub(super) rooms: *mut u8,
    pub(super) stride: usize,
    pub(super) n: u32,
    /// Bytes of a room, headroom included; 0: headers only.
    pub(super) room: u16,
    pub(super) cache_size: u16,
    pub(super) ring: Ring,
    pub(super) caches: [AtomicPtr<Cache>; MAX_SLOTS],
    pub(super) debug: Option<Box<DebugTable>>,
    /// Low 40 bits: one for each header that is not in the ring, and for each keeper (the handle, a queue, a holder).
    /// High 24 bits: the keepers again. One word, so that a look at it never takes a keeper for a packet. Who drops the
    /// last frees.
    /// On a line of its own: every thread whose cache misses writes it, and every burst reads what stands above.
    refs: CachePadded<AtomicU64>,
    pub(super) queues: AtomicU32,
    /// Packets that configured queues hold while they run.
    reserved: AtomicU32,
    pub(super) closed: AtomicBool,
    /// Serialises making caches against closing.
    pub(super) control: Mutex<()>,
    pub(super) name: String,
    pub(super) shared_with_peer: bool,
    pub(super) seg_headers: Segment,
    pub(super) seg_rooms: Option<Segment>,
}

// SAFETY: the raw pointers lead into the pool's own segments; what changes behind them is a header, owned by one packet
// owner at a time; the ring and the caches say how they are shared.
unsafe impl Send for PoolInner {}
// SAFETY: as above.
unsafe impl Sync for PoolInner {}

impl PoolInner {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn new(
        name: String,
        n: u32,
        room: u16,
        stride: usize,
        cache_size: u16,
        ring: Ring,
        seg_headers: Segment,
        seg_rooms: Option<Segment>,
        debug: Option<Box<DebugTable>>,
        shared_with_peer: bool,
    ) -> Box<PoolInner> {
        Box::new(PoolInner {
            headers: seg_headers.base().as_ptr().cast(),
            rooms: seg_rooms.as_ref().map_or(core::ptr::null_mut(), |s| s.base().as_ptr()),
            stride,
            n,
            room,
            cache_size,
            ring,
            caches: [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_SLOTS],
            debug,
            // The handle, and every header until it is put into the ring for the first time.
            refs: CachePadded::new(AtomicU64::new(KEEPER + u64::from(n))),
            queues: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            control: Mutex::new(()),
            name,
            shared_with_peer,
            seg_headers,
            seg_rooms,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Headers in all.
    pub fn size(&self) -> u32 {
        self.n
    }

    /// Bytes of a room with its headroom; 0 for a pool of headers alone.
    pub fn room_size(&self) -> u16 {
        self.room
    }

    /// Bytes a fresh packet of one segment can hold.
    pub fn data_room(&self) -> u16 {
        self.room.saturating_sub(HEADROOM)
    }

    /// True where the rooms may be mapped by a peer or given to a device.
    pub fn shared_with_peer(&self) -> bool {
        self.shared_with_peer
    }

    /// True where every operation is tracked, and no cache is used.
    pub fn is_debug(&self) -> bool {
        self.debug.is_some()
    }

    /// The rooms' memory and the distance between two rooms.
    pub fn rooms(&self) -> Option<(&Segment, usize)> {
        self.seg_rooms.as_ref().map(|s| (s, self.stride))
    }

    #[inline(always)]
    pub(super) fn index_of(&self, m: *const RawMbuf) -> usize {
        (m.addr() - self.headers.addr()) / size_of::<RawMbuf>()
    }

    /// The first byte of the room of header `m`; null for a pool of headers alone.
    #[inline(always)]
    pub(super) fn room_of(&self, m: *const RawMbuf) -> *mut u8 {
        if self.rooms.is_null() {
            return core::ptr::null_mut();
        }
        self.rooms.wrapping_add(self.index_of(m) * self.stride)
    }

    /// The header whose room holds the byte at `addr`, whatever the offset into the room. None outside the rooms.
    pub fn header_of(&self, addr: *const u8) -> Option<NonNull<RawMbuf>> {
        let off = addr.addr().checked_sub(self.rooms.addr())?;
        let i = off.checked_div(self.stride)?;
        if i >= self.n as usize || self.rooms.is_null() {
            return None;
        }
        NonNull::new(self.headers.wrapping_add(i))
    }

    /// True where `m` is one of this pool's headers.
    pub fn owns(&self, m: *const RawMbuf) -> bool {
        let end = self.headers.addr() + self.n as usize * size_of::<RawMbuf>();
        (self.headers.addr()..end).contains(&m.addr())
    }

    /// Puts headers into the ring, without dropping the references that they hold.
    ///
    /// # Safety
    /// `objs` holds `n` free headers of this pool that nobody else refers to.
    pub(super) unsafe fn ring_put(&self, objs: *const *mut RawMbuf, n: usize) {
        if n == 0 {
            return;
        }
        // SAFETY: pointers of one size; `objs` is valid for `n`.
        let objs = unsafe { core::slice::from_raw_parts(objs.cast::<*mut ()>(), n) };
        let put = self.ring.enqueue_burst(objs);
        if put != n {
            // The ring holds every header there is, so this is a header put twice.
            self.complain_of_twice(n, put);
        }
    }

    #[cold]
    #[inline(never)]
    fn complain_of_twice(&self, n: usize, put: usize) {
        log_error!("pool '{}': {} of {n} headers did not fit into a ring of {}", self.name, n - put, self.n);
    }

    /// Sets packets aside for a queue that holds `n` while it runs, and a burst. -ENOSPC with the number needed.
    pub fn reserve(&self, n: u32) -> crate::base::Result<()> {
        let before = self.reserved.fetch_add(n, AcqRel);
        let need = u64::from(before) + u64::from(n) + u64::from(self.cache_size) + LEAST_BURST;
        if need > u64::from(self.n) {
            self.unreserve(n);
            return crate::fail!(
                NOSPC,
                "pool '{}' has {} packets and needs {need}: {} held by its receive queues, {} in a cache, {LEAST_BURST} in a burst",
                self.name,
                self.n,
                before + n,
                self.cache_size
            );
        }
        Ok(())
    }

    pub fn unreserve(&self, n: u32) {
        self.reserved.fetch_sub(n, AcqRel);
    }

    /// Drops `n` references. The last one frees the pool: nothing of it may be touched afterwards.
    ///
    /// # Safety
    /// The caller held these references.
    pub(super) unsafe fn drop_refs(&self, n: usize) {
        // SAFETY: as this function's.
        unsafe { self.drop_words(n as u64) };
    }

    /// As [`Self::drop_refs`], of headers and of keepers at [`KEEPER`] each.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn drop_words(&self, n: u64) {
        if n != 0 && self.refs.fetch_sub(n, AcqRel) == n {
            // SAFETY: the count fell to 0, so no handle, queue, cache or packet refers to the pool.
            unsafe { PoolInner::destroy(core::ptr::from_ref(self).cast_mut()) };
        }
    }

    /// # Safety
    /// `p` came from `Box::into_raw` in `Pool::new`, and nobody refers to it.
    #[cold]
    #[inline(never)]
    unsafe fn destroy(p: *mut PoolInner) {
        super::handle::forget(p);
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(p) });
    }

    /// Gives headers back to the shared ring, and their references.
    ///
    /// # Safety
    /// As [`Self::ring_put`]; the pool may be gone at the return.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn put_shared(&self, objs: *const *mut RawMbuf, n: usize) {
        if let Some(debug) = &self.debug {
            let mut good = 0;
            for i in 0..n {
                // SAFETY: `objs` is valid for `n`.
                let m = unsafe { objs.add(i) };
                // SAFETY: as above.
                if debug.on_free(self, unsafe { *m }) {
                    // SAFETY: the header was out, and is free now.
                    unsafe { self.ring_put(m, 1) };
                    good += 1;
                }
            }
            // SAFETY: each good header held one.
            unsafe { self.drop_refs(good) };
            return;
        }
        // SAFETY: the caller's promise; each header held one reference.
        unsafe {
            self.ring_put(objs, n);
            self.drop_refs(n);
        }
    }

    /// Takes up to `n` headers from the shared ring.
    ///
    /// # Safety
    /// `out` has room for `n`; the caller keeps the pool alive.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn take_shared(&self, out: *mut *mut RawMbuf, n: usize) -> usize {
        // SAFETY: `out` has room for `n`; MaybeUninit<*mut ()> has the size of a pointer.
        let slots = unsafe { core::slice::from_raw_parts_mut(out.cast::<core::mem::MaybeUninit<*mut ()>>(), n) };
        let got = self.ring.dequeue_burst(slots);
        self.refs.fetch_add(got as u64, AcqRel);
        if let Some(debug) = &self.debug {
            for i in 0..got {
                // SAFETY: the first `got` entries were written.
                debug.on_alloc(self, unsafe { *out.add(i) });
            }
        }
        got
    }

    /// The cache of `slot`, made at its first use. None where the pool is closed, tracks its packets, or has no caches.
    pub(super) fn cache_for(&self, slot: u32) -> Option<&Cache> {
        // NO_SLOT is none of them: one compare serves for both.
        let p = self.caches.get(slot as usize)?.load(Acquire);
        if p.is_null() {
            return self.make_cache(slot);
        }
        // SAFETY: caches live as long as the pool.
        Some(unsafe { &*p })
    }

    /// The cache of `slot`, if there is one.
    #[inline(always)]
    pub(super) fn cache_made(&self, slot: u32) -> Option<&Cache> {
        // SAFETY: caches live as long as the pool.
        unsafe { self.caches.get(slot as usize)?.load(Acquire).as_ref() }
    }

    #[cold]
    fn make_cache(&self, slot: u32) -> Option<&Cache> {
        // Before the lock: where there are no caches, this is the way of every packet.
        if self.cache_size == 0 || self.debug.is_some() || self.closed.load(Relaxed) {
            return None;
        }
        let _control = self.control.lock().unwrap_or_else(|e| e.into_inner());
        // Again: closing shuts the caches that it finds under the lock, and there must be none after that.
        if self.closed.load(Relaxed) {
            return None;
        }
        // Without memory for it the shared ring serves.
        let fresh = arena::boxed(Cache::new(self.cache_size.into())).ok()?.into_raw().as_ptr();
        self.caches[slot as usize].store(fresh, Release);
        // SAFETY: just made; lives as long as the pool.
        Some(unsafe { &*fresh })
    }

    /// Caches that exist, with their slots.
    pub(super) fn each_cache(&self) -> impl Iterator<Item = (u32, &Cache)> {
        self.caches.iter().enumerate().filter_map(|(i, c)| {
            let p = c.load(Acquire);
            // SAFETY: caches live as long as the pool.
            (!p.is_null()).then(|| (i as u32, unsafe { &*p }))
        })
    }

    /// Packets in programs' and drivers' hands: neither in the ring nor in a cache. A snapshot: never negative, never
    /// above the size, exact while nothing moves.
    pub fn in_use(&self) -> u32 {
        let cached: usize = self.each_cache().map(|(_, c)| c.len()).sum();
        let refs = self.refs.load(Acquire);
        let (all, keepers) = (refs & ((1 << KEEPER_SHIFT) - 1), refs >> KEEPER_SHIFT);
        let out = all.saturating_sub(keepers).saturating_sub(cached as u64);
        out.min(self.n.into()) as u32
    }
}

impl Drop for PoolInner {
    fn drop(&mut self) {
        for c in &mut self.caches {
            if let Some(c) = NonNull::new(*c.get_mut()) {
                // SAFETY: made by `make_cache` in the arena; nobody refers to it any more.
                drop(unsafe { ArenaBox::from_raw(c) });
            }
        }
    }
}

/// A queue's share in a pool: keeps it alive, and keeps `bl_pool_free` from freeing it.
pub struct PoolRef(NonNull<PoolInner>);

// SAFETY: PoolInner is Send and Sync; the reference is counted.
unsafe impl Send for PoolRef {}
// SAFETY: as above.
unsafe impl Sync for PoolRef {}

impl PoolRef {
    /// Counts a queue onto the pool.
    pub(super) fn new(inner: &PoolInner) -> PoolRef {
        inner.refs.fetch_add(KEEPER, AcqRel);
        inner.queues.fetch_add(1, AcqRel);
        PoolRef(NonNull::from(inner))
    }
}

impl Clone for PoolRef {
    fn clone(&self) -> PoolRef {
        PoolRef::new(self)
    }
}

impl core::ops::Deref for PoolRef {
    type Target = PoolInner;
    #[inline(always)]
    fn deref(&self) -> &PoolInner {
        // SAFETY: our reference keeps it alive.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for PoolRef {
    fn drop(&mut self) {
        // Through the pointer: the pool may be gone before `drop_refs` returns, and no reference may outlive it.
        self.queues.fetch_sub(1, AcqRel);
        // SAFETY: our one reference, dropped once.
        unsafe { (*self.0.as_ptr()).drop_words(KEEPER) };
    }
}

/// Keeps a pool's memory, and nothing else: the program may free the pool meanwhile.
pub(super) struct PoolHold(NonNull<PoolInner>);

// SAFETY: as PoolRef.
unsafe impl Send for PoolHold {}

impl PoolHold {
    /// None where the pool is about to be freed.
    pub(super) fn try_new(pool: &PoolInner) -> Option<PoolHold> {
        pool.refs.fetch_update(AcqRel, Acquire, |r| (r != 0).then_some(r + KEEPER)).ok()?;
        Some(PoolHold(NonNull::from(pool)))
    }

    pub(super) fn as_ptr(&self) -> *const PoolInner {
        self.0.as_ptr()
    }
}

impl core::ops::Deref for PoolHold {
    type Target = PoolInner;
    #[inline(always)]
    fn deref(&self) -> &PoolInner {
        // SAFETY: our reference keeps it alive.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for PoolHold {
    fn drop(&mut self) {
        // SAFETY: our one reference, dropped once; through the pointer, as in PoolRef.
        unsafe { (*self.0.as_ptr()).drop_words(KEEPER) };
    }
}
