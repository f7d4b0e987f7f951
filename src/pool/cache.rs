//! A thread's own store of free headers of one pool: last in, first out, with an exact bound.
//!
//! | offset | bytes | field | who writes |
//! |---:|---:|---|---|
//! | 0 | 4 | `in_op` | the owner: 1 while it is inside |
//! | 4 | 4 | `len` | the owner; whoever closes the pool, once `in_op` is 0 |
//! | 8 | 4 | `cap` | set at creation; 0 once the pool is closed |
//! | 16 | 32 | hits and misses | the owner |
//! | 64 | 8 × MAX_CACHE | `objs` | as `len` |
//!
//! The owner brackets each operation with `in_op`. Whoever closes the pool sets `cap` to 0, makes every thread pass a
//! fence, and waits for `in_op` to be 0: from then on the owner sees `cap` 0 and touches neither `len` nor `objs`.
//!
//! # Memory order
//!
//! | edge | this side | that side | what it carries |
//! |---|---|---|---|
//! | a | owner: `in_op` = 1, light fence, loads `cap` | closer: `cap` = 0, heavy fence, loads `in_op` | one of the two sees the other's store |
//! | b | owner: `in_op` = 0, release | closer: loads `in_op` 0, acquire | the owner's writes to `len` and `objs` |
//!
//! A slot's next thread gets the cache through the slot's own flag (`slot::end`, `slot::register_current`).
//!
//! ThreadSanitizer knows neither membarrier(2) nor fences. It may be run here all the same, without a false report: each
//! plain access of `objs` is ordered by b, by the control lock, or by the slot's flag. What it cannot see is a missing a.

use super::inner::{MAX_CACHE, PoolInner};
use crate::base::bits::copy_words;
use crate::base::cpu;
use crate::mbuf::layout::RawMbuf;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

#[repr(C, align(128))]
pub(super) struct Cache {
    in_op: AtomicU32,
    len: AtomicU32,
    cap: AtomicU32,
    _pad: u32,
    get_hits: AtomicU64,
    get_misses: AtomicU64,
    put_hits: AtomicU64,
    put_misses: AtomicU64,
    _pad1: [u64; 2],
    objs: UnsafeCell<[*mut RawMbuf; MAX_CACHE]>,
}

const _: () = assert!(offset_of!(Cache, objs) == 64 && offset_of!(Cache, get_hits) == 16);

// SAFETY: `objs` is touched only by the owner inside its bracket, or by the closer after the hand-over above.
unsafe impl Send for Cache {}
// SAFETY: as above.
unsafe impl Sync for Cache {}

/// How often a thread's cache served (hits) and how often the shared ring had to (misses). Operations, not packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub slot: u32,
    pub len: u32,
    pub capacity: u32,
    pub get_hits: u64,
    pub get_misses: u64,
    pub put_hits: u64,
    pub put_misses: u64,
}

#[inline(always)]
fn bump(c: &AtomicU64) {
    c.store(c.load(Relaxed).wrapping_add(1), Relaxed);
}

impl Cache {
    pub(super) fn new(cap: u32) -> Cache {
        debug_assert!(cap as usize <= MAX_CACHE);
        Cache {
            in_op: AtomicU32::new(0),
            len: AtomicU32::new(0),
            cap: AtomicU32::new(cap),
            _pad: 0,
            get_hits: AtomicU64::new(0),
            get_misses: AtomicU64::new(0),
            put_hits: AtomicU64::new(0),
            put_misses: AtomicU64::new(0),
            _pad1: [0; 2],
            objs: UnsafeCell::new([core::ptr::null_mut(); MAX_CACHE]),
        }
    }

    /// Takes up to `n` headers; fewer only when the pool is empty.
    ///
    /// # Safety
    /// Called by the owner alone; `out` has room for `n`; `pool` is the cache's pool and lives.
    #[inline(always)]
    pub(super) unsafe fn get(&self, pool: &PoolInner, out: *mut *mut RawMbuf, n: usize) -> usize {
        self.in_op.store(1, Relaxed);
        cpu::fence_light(); // a: partner in `shut`
        let len = self.len.load(Relaxed) as usize;
        let got = if n <= len && self.cap.load(Relaxed) != 0 {
            let at = len - n;
            // SAFETY: `len` ≤ MAX_CACHE, so the source lies in `objs`; the caller's `out` does not overlap it; the
            // bracket makes us the only one here.
            unsafe { copy_words(self.objs().add(at), out, n) };
            self.len.store(at as u32, Relaxed);
            bump(&self.get_hits);
            n
        } else {
            // SAFETY: as this function's.
            unsafe { self.get_slow(pool, out, n) }
        };
        self.in_op.store(0, Release); // b: partner in `shut`
        got
    }

    /// Puts `n` headers back.
    ///
    /// # Safety
    /// Called by the owner alone; `objs` holds `n` headers of `pool` that nobody else refers to; `pool` lives, and the
    /// caller keeps a reference on it over the call.
    #[inline(always)]
    pub(super) unsafe fn put(&self, pool: &PoolInner, objs: *const *mut RawMbuf, n: usize) {
        self.in_op.store(1, Relaxed);
        cpu::fence_light(); // a
        let len = self.len.load(Relaxed) as usize;
        if len + n <= self.cap.load(Relaxed) as usize {
            // SAFETY: `cap` ≤ MAX_CACHE, so the target lies in `objs`; sources and target do not overlap.
            unsafe { copy_words(objs, self.objs().add(len), n) };
            self.len.store((len + n) as u32, Relaxed);
            bump(&self.put_hits);
            self.in_op.store(0, Release); // b
        } else {
            // SAFETY: as this function's.
            unsafe { self.put_slow(pool, objs, n) };
        }
    }

    /// Takes one header by value: null where [`Self::get`] must do it. No call is in here, so that who inlines it need
    /// save no register.
    ///
    /// # Safety
    /// Called by the owner alone.
    #[inline(always)]
    pub(super) unsafe fn try_get_one(&self) -> *mut RawMbuf {
        let mut m = core::ptr::null_mut();
        self.in_op.store(1, Relaxed);
        // a, where it is light
        if cpu::fence_is_light() {
            let len = self.len.load(Relaxed) as usize;
            if len != 0 && self.cap.load(Relaxed) != 0 {
                // SAFETY: 0 < len ≤ MAX_CACHE; the bracket makes us the only one here.
                m = unsafe { self.objs().add(len - 1).read() };
                self.len.store(len as u32 - 1, Relaxed);
                bump(&self.get_hits);
            }
        }
        self.in_op.store(0, Release); // b
        m
    }

    /// Puts one header back by value: false where [`Self::put`] must do it. As [`Self::try_get_one`].
    ///
    /// # Safety
    /// Called by the owner alone; `m` is a header of the cache's pool that nobody else refers to.
    #[inline(always)]
    pub(super) unsafe fn try_put_one(&self, m: *mut RawMbuf) -> bool {
        let mut done = false;
        self.in_op.store(1, Relaxed);
        // a, where it is light
        if cpu::fence_is_light() {
            let len = self.len.load(Relaxed);
            if len < self.cap.load(Relaxed) {
                // SAFETY: len < cap ≤ MAX_CACHE; the bracket makes us the only one here.
                unsafe { self.objs().add(len as usize).write(m) };
                self.len.store(len + 1, Relaxed);
                bump(&self.put_hits);
                done = true;
            }
        }
        self.in_op.store(0, Release); // b
        done
    }

    #[inline(always)]
    fn objs(&self) -> *mut *mut RawMbuf {
        self.objs.get().cast()
    }

    #[cold]
    #[inline(never)]
    unsafe fn get_slow(&self, pool: &PoolInner, out: *mut *mut RawMbuf, n: usize) -> usize {
        bump(&self.get_misses);
        let cap = self.cap.load(Relaxed) as usize;
        if cap == 0 {
            // SAFETY: the caller's `out` has room for `n`.
            return unsafe { pool.take_shared(out, n) };
        }
        let len = (self.len.load(Relaxed) as usize).min(n);
        let at = self.len.load(Relaxed) as usize - len;
        // SAFETY: the `len` topmost entries; `out` has room for n ≥ len.
        unsafe { core::ptr::copy_nonoverlapping(self.objs().add(at), out, len) };
        self.len.store(at as u32, Relaxed);
        let missing = n - len;
        // Refill to half, unless that with what is wanted would pass the bound on the way.
        if at == 0 && missing + cap / 2 <= cap {
            // SAFETY: objs has room for cap entries and is empty now.
            let got = unsafe { pool.take_shared(self.objs(), missing + cap / 2) };
            let give = got.min(missing);
            // SAFETY: the topmost `give` of `got` entries.
            unsafe { core::ptr::copy_nonoverlapping(self.objs().add(got - give), out.add(len), give) };
            self.len.store((got - give) as u32, Relaxed);
            len + give
        } else {
            // SAFETY: `out` has room for `n`.
            len + unsafe { pool.take_shared(out.add(len), missing) }
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn put_slow(&self, pool: &PoolInner, objs: *const *mut RawMbuf, n: usize) {
        bump(&self.put_misses);
        let cap = self.cap.load(Relaxed) as usize;
        let half = cap / 2;
        let mut spill: (usize, bool) = (0, true);
        if cap != 0 && n <= cap - half {
            // The oldest go, the recently used (warm) half stays.
            let len = self.len.load(Relaxed) as usize;
            let keep = len.min(half);
            spill = (len - keep, false);
            // SAFETY: the spilled are the first len - keep entries; then the rest moves down and the new ones follow.
            unsafe {
                pool.ring_put(self.objs(), spill.0);
                core::ptr::copy(self.objs().add(spill.0), self.objs(), keep);
                core::ptr::copy_nonoverlapping(objs, self.objs().add(keep), n);
            }
            self.len.store((keep + n) as u32, Relaxed);
        }
        // The bracket ends before the count falls: the last reference frees the pool, and this cache with it.
        self.in_op.store(0, Release); // b
        if spill.1 {
            // SAFETY: the caller's headers.
            unsafe { pool.put_shared(objs, n) };
        } else {
            // SAFETY: spilled headers are in the ring.
            unsafe { pool.drop_refs(spill.0) };
        }
    }

    /// The closer's side: from the return on, the owner leaves the cache alone. False if the owner stayed inside for
    /// longer than the limit; then nothing is changed.
    pub(super) fn shut(caches: &[&Cache], limit: core::time::Duration) -> bool {
        let caps: Vec<u32> = caches.iter().map(|c| c.cap.swap(0, Relaxed)).collect();
        cpu::fence_heavy(); // a
        let until = std::time::Instant::now() + limit;
        for c in caches {
            // b: acquire, so that the owner's last writes are seen.
            while c.in_op.load(Acquire) != 0 {
                if std::time::Instant::now() > until {
                    for (c, cap) in caches.iter().zip(&caps) {
                        c.cap.store(*cap, Relaxed);
                    }
                    return false;
                }
                std::thread::yield_now();
            }
        }
        true
    }

    /// Empties the cache into the pool's ring and returns how many that were (whose references the caller then drops).
    ///
    /// # Safety
    /// The caller is the owner, or has `shut` the cache.
    pub(super) unsafe fn drain(&self, pool: &PoolInner) -> usize {
        let n = self.len.swap(0, Relaxed) as usize;
        // SAFETY: the first `len` entries are free headers of `pool`.
        unsafe { pool.ring_put(self.objs(), n) };
        n
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    pub(super) fn stats(&self, slot: u32) -> CacheStats {
        CacheStats {
            slot,
            len: self.len.load(Relaxed),
            capacity: self.cap.load(Relaxed),
            get_hits: self.get_hits.load(Relaxed),
            get_misses: self.get_misses.load(Relaxed),
            put_hits: self.put_hits.load(Relaxed),
            put_misses: self.put_misses.load(Relaxed),
        }
    }
}
