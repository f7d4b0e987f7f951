//! A queue's own way to its pool: the owner's cache by pointer, so that a burst needs no thread-local.

use super::cache::Cache;
use super::inner::{PoolHold, PoolInner, PoolRef};
use super::release::{free_packets, pool_of};
use super::slot::NO_SLOT;
use crate::mbuf::layout::RawMbuf;
use crate::mbuf::layout::flags::ATTACHED;

/// A receive queue's side: takes headers.
pub struct RxPool {
    cache: *const Cache,
    pool: PoolRef,
}

// SAFETY: the cache belongs to the slot that the queue is bound to, and the queue is used by that slot's thread alone.
unsafe impl Send for RxPool {}

impl RxPool {
    pub fn new(pool: PoolRef) -> RxPool {
        RxPool { cache: core::ptr::null(), pool }
    }

    /// Uses the cache of `slot` from now on; [`NO_SLOT`]: the shared ring.
    pub fn bind(&mut self, slot: u32) {
        self.cache = self.pool.cache_for(slot).map_or(core::ptr::null(), core::ptr::from_ref);
    }

    pub fn pool(&self) -> &PoolInner {
        &self.pool
    }

    /// Takes up to `n` headers as they lie in the pool; fewer only when it is empty.
    ///
    /// # Safety
    /// `out` has room for `n`; the caller is on the bound slot's thread, or the pool is bound to none.
    #[inline(always)]
    pub unsafe fn take(&mut self, out: *mut *mut RawMbuf, n: usize) -> usize {
        // SAFETY: the caller's promises; the reference keeps pool and cache alive.
        unsafe {
            match self.cache.as_ref() {
                Some(c) => c.get(&self.pool, out, n),
                None => self.pool.take_shared(out, n),
            }
        }
    }

    /// Puts back headers that were taken and not used; they are as they were.
    ///
    /// # Safety
    /// As [`Self::take`], of which they came.
    pub unsafe fn put(&mut self, objs: *const *mut RawMbuf, n: usize) {
        // SAFETY: as above.
        unsafe {
            match self.cache.as_ref() {
                Some(c) => c.put(&self.pool, objs, n),
                None if n != 0 => self.pool.put_shared(objs, n),
                None => {}
            }
        }
    }
}

/// A send queue's side: frees packets of any pool, quickly those of the pool it saw last.
pub struct TxRecycler {
    slot: u32,
    /// Address of `hold`'s pool, null without one: compared with a packet's.
    pool: *const PoolInner,
    cache: *const Cache,
    /// Keeps that pool's memory: another pool at the same address would be taken for it.
    hold: Option<PoolHold>,
}

// SAFETY: as RxPool.
unsafe impl Send for TxRecycler {}

impl Default for TxRecycler {
    fn default() -> TxRecycler {
        TxRecycler { slot: NO_SLOT, pool: core::ptr::null(), cache: core::ptr::null(), hold: None }
    }
}

impl TxRecycler {
    /// Uses the caches of `slot` from now on, and lets go of the pool seen last.
    pub fn bind(&mut self, slot: u32) {
        *self = TxRecycler { slot, ..TxRecycler::default() };
    }

    /// Frees `n` packets.
    ///
    /// # Safety
    /// `pkts` holds `n` packets that the caller owns and does not use again; the caller is on the bound slot's thread,
    /// or the queue is bound to none.
    #[inline(always)]
    pub unsafe fn free(&mut self, pkts: *const *mut RawMbuf, n: usize) {
        // One pass that only looks: are they all plain packets of the pool seen last?
        let mut odd = 0u64;
        for i in 0..n {
            // SAFETY: `pkts` is valid for `n`, and the caller owns the packets.
            unsafe {
                let m = *pkts.add(i);
                odd |= u64::from(RawMbuf::not_quick(m));
                odd |= (*m).ol_flags & ATTACHED;
                odd |= ((*m).pool.addr() ^ self.pool.addr()) as u64;
            }
        }
        if odd == 0 && n != 0 {
            // SAFETY: the packets are of `pool`, which is set together with `cache`, and held.
            unsafe { (*self.cache).put(&*self.pool, pkts, n) };
        } else {
            // SAFETY: as this function's.
            unsafe { self.free_slow(pkts, n) };
        }
    }

    /// Frees `n` packets and returns their bytes, if every one is sound, of one segment and of 1 to `max_len` bytes.
    /// None: nothing was done, or only looked at. One pass for drivers that are done with a packet as they take it.
    ///
    /// # Safety
    /// As [`Self::free`], if Some is returned; else the packets stay the caller's.
    #[inline(always)]
    pub unsafe fn free_plain(&mut self, pkts: *const *mut RawMbuf, n: usize, max_len: u32) -> Option<u64> {
        let pool = self.pool.addr();
        let (mut odd, mut fit, mut longest, mut bytes) = (0u64, 0i32, 0u32, 0u64);
        for i in 0..n {
            // SAFETY: `pkts` is valid for `n`, and the caller owns the packets.
            unsafe {
                let m = *pkts.add(i);
                let (pkt_len, data_len) = ((*m).pkt_len, u32::from((*m).data_len));
                odd |= u64::from(RawMbuf::not_quick(m));
                odd |= (*m).ol_flags & ATTACHED;
                odd |= ((*m).pool.addr() ^ pool) as u64;
                odd |= u64::from(pkt_len ^ data_len);
                // Negative where the data passes the buffer's end, or the packet is empty.
                fit |= i32::from((*m).buf_len) - i32::from((*m).data_off) - data_len as i32;
                fit |= pkt_len as i32 - 1;
                longest = longest.max(pkt_len);
                bytes += u64::from(pkt_len);
            }
        }
        if odd != 0 || fit < 0 || longest > max_len {
            return None;
        }
        if n != 0 {
            if self.pool.is_null() {
                return None;
            }
            // SAFETY: as in `free`.
            unsafe { (*self.cache).put(&*self.pool, pkts, n) };
        }
        Some(bytes)
    }

    #[cold]
    #[inline(never)]
    unsafe fn free_slow(&mut self, pkts: *const *mut RawMbuf, n: usize) {
        if n == 0 {
            return;
        }
        // SAFETY: the caller owns the packets; a packet in hand keeps its pool alive while it is looked at.
        unsafe {
            let last = pool_of(*pkts.add(n - 1));
            if !core::ptr::eq(last, self.pool) && self.slot != NO_SLOT {
                self.bind(self.slot);
                if let Some(cache) = last.cache_for(self.slot) {
                    self.cache = cache;
                    self.hold = PoolHold::try_new(last);
                    self.pool = self.hold.as_ref().map_or(core::ptr::null(), PoolHold::as_ptr);
                }
            }
            free_packets(pkts, n);
        }
    }
}
