//! What the port layer gives each queue: pool, counters, and the deferral's few fields.

use super::counters::{FlushCause, RxCounters, TxCounters};
use crate::mbuf::layout::{RawMbuf, fresh_words, rearm_word};
use crate::mbuf::{Mbuf, check};
use crate::pool::{HEADROOM, PoolRef, RxPool, TxRecycler};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::Arc;

/// A receive queue's share: where its packets come from and where it counts them.
pub struct RxCtx {
    port: u16,
    queue: u16,
    rearm: u64,
    pool: RxPool,
    counters: Arc<RxCounters>,
}

impl RxCtx {
    pub fn new(port: u16, queue: u16, pool: PoolRef, counters: Arc<RxCounters>) -> RxCtx {
        let headroom = if pool.room_size() == 0 { 0 } else { HEADROOM };
        RxCtx { port, queue, rearm: rearm_word(headroom, 1, 1, port), pool: RxPool::new(pool), counters }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
    pub fn queue(&self) -> u16 {
        self.queue
    }
    pub fn pool(&self) -> &crate::pool::PoolInner {
        self.pool.pool()
    }
    #[inline(always)]
    pub fn counters(&self) -> &RxCounters {
        &self.counters
    }

    /// For a queue around a queue that changes what is received: from here on the context counts into a block of its
    /// own, the second; the first is the port's, and the caller keeps it.
    pub fn split_counters(&mut self) -> (Arc<RxCounters>, Arc<RxCounters>) {
        let own = Arc::new(RxCounters::default());
        (core::mem::replace(&mut self.counters, own.clone()), own)
    }

    /// The queue works for this thread slot from now on. Called by the port layer.
    pub fn bind(&mut self, slot: u32) {
        self.pool.bind(slot);
    }

    /// Writes up to `out.len()` fresh one-segment packets of `len` bytes (whose content is what the room held) and
    /// returns how many there were: fewer only when the pool is empty. `len` above the data room is cut to it.
    #[inline(always)]
    pub fn alloc(&mut self, out: &mut [MaybeUninit<Mbuf>], len: u16) -> usize {
        let len = len.min(self.pool.pool().data_room());
        let p = out.as_mut_ptr().cast::<*mut RawMbuf>();
        let fresh = fresh_words(self.rearm, len);
        // SAFETY: Mbuf is transparent over the pointer; `out` has room. The headers taken are ours alone.
        unsafe {
            let n = self.pool.take(p, out.len());
            for i in 0..n {
                RawMbuf::set_fresh(*p.add(i), fresh);
            }
            n
        }
    }

    /// One fresh packet, or None when the pool is empty.
    #[inline]
    pub fn alloc_one(&mut self) -> Option<Mbuf> {
        let mut m = [const { MaybeUninit::uninit() }; 1];
        // SAFETY: `alloc` wrote one packet.
        (self.alloc(&mut m, 0) == 1).then(|| unsafe { m[0].assume_init_read() })
    }

    /// Gives back a packet that [`Self::alloc`] made and nobody has seen.
    pub fn give_back(&mut self, m: Mbuf) {
        let p = m.into_raw().as_ptr();
        // SAFETY: we own the packet; free_packet restores whatever was attached to it.
        unsafe { crate::pool::free_packet(p) };
    }
}

/// A send queue's share: where its packets go when they are done, and what is staged.
pub struct TxCtx {
    port: u16,
    queue: u16,
    /// Packets longer than this can never be sent.
    max_len: u32,
    max_segs: u16,
    /// Rings by itself at this many staged units (packets, or the driver's descriptors).
    fill: u32,
    /// The poll group's flag: not 0 while something is staged.
    pending: *const AtomicU8,
    staged: u32,
    staged_bytes: u64,
    recycler: TxRecycler,
    counters: Arc<TxCounters>,
}

// SAFETY: `pending` points into the counters or into a poll group, which takes itself out before it goes; both are atomics.
unsafe impl Send for TxCtx {}

impl TxCtx {
    pub fn new(port: u16, queue: u16, max_len: u32, max_segs: u16, counters: Arc<TxCounters>) -> TxCtx {
        TxCtx {
            port,
            queue,
            max_len,
            max_segs,
            fill: u32::MAX,
            pending: &counters.no_group,
            staged: 0,
            staged_bytes: 0,
            recycler: TxRecycler::default(),
            counters,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
    pub fn queue(&self) -> u16 {
        self.queue
    }
    #[inline(always)]
    pub fn max_len(&self) -> u32 {
        self.max_len
    }
    #[inline(always)]
    pub fn counters(&self) -> &TxCounters {
        &self.counters
    }
    /// For a queue around a queue, which counts there what it takes itself.
    pub fn shared_counters(&self) -> Arc<TxCounters> {
        self.counters.clone()
    }
    /// Packets staged and not yet announced.
    #[inline(always)]
    pub fn staged(&self) -> u32 {
        self.staged
    }

    /// The queue works for this thread slot from now on. Called by the port layer.
    pub fn bind(&mut self, slot: u32) {
        self.recycler.bind(slot);
    }

    /// Joins or leaves a poll group. Called by the port layer, while nobody bursts.
    ///
    /// # Safety
    /// `pending`, unless null, is valid until this is called again.
    pub unsafe fn defer(&mut self, fill: u32, pending: *const AtomicU8) {
        self.fill = if pending.is_null() { u32::MAX } else { fill };
        self.pending = if pending.is_null() { &self.counters.no_group } else { pending };
        self.flag(self.staged != 0);
    }

    /// The queue was stopped: what it gave up is no longer the group's to ring. Called by the port layer.
    pub fn stopped(&self) {
        self.flag(self.staged != 0);
    }

    #[inline(always)]
    fn flag(&self, on: bool) {
        // SAFETY: valid by `new` and by `defer`'s promise.
        unsafe { (*self.pending).store(on.into(), Relaxed) };
    }

    /// Notes `pkts` packets of `bytes` bytes as staged. True where the fill level is reached and the queue must ring.
    #[inline(always)]
    pub fn stage(&mut self, pkts: u32, bytes: u64) -> bool {
        self.staged += pkts;
        self.staged_bytes += bytes;
        self.staged >= self.fill
    }

    /// After a call that staged and did not ring: the poll group has something to watch.
    #[inline(always)]
    pub fn keep_staged(&self) {
        if self.staged != 0 {
            // An owner's read and write: the group adds a bit of its own, on the same thread.
            // SAFETY: valid by `new` and by `defer`'s promise.
            let p = unsafe { &*self.pending };
            p.store(p.load(Relaxed) | 1, Relaxed);
        }
    }

    /// Counts everything staged as sent, once the device was told. Call it after the doorbell.
    #[inline(always)]
    pub fn rang(&mut self, cause: FlushCause) {
        self.counters.sent(self.staged.into(), self.staged_bytes);
        self.counters.ring(cause);
        self.staged = 0;
        self.staged_bytes = 0;
        self.flag(false);
    }

    /// Counts packets that went out one by one, for drivers that stage nothing.
    #[inline(always)]
    pub fn sent(&self, pkts: u64, bytes: u64) {
        self.counters.sent(pkts, bytes);
    }

    /// Takes staged packets out of the count again: the device refused them when it was told.
    pub fn unstage(&mut self, pkts: u32, bytes: u64) {
        self.staged -= pkts.min(self.staged);
        self.staged_bytes -= bytes.min(self.staged_bytes);
    }

    /// True for a packet of one sound segment that is not too long: it can be sent, and needs no second look.
    #[inline(always)]
    pub fn is_plain(&self, m: &Mbuf) -> bool {
        let r = m.raw();
        // Without branches, so that a burst's checks become one.
        // SAFETY: we look at a packet that is ours to send.
        (unsafe { check::is_plain(m.as_ptr()) }) & (r.pkt_len.wrapping_sub(1) < self.max_len)
    }

    /// Whether a packet can ever be sent: a sound chain, of 1 to `max_len` bytes and at most `max_segs` segments.
    #[inline(always)]
    pub fn can_send(&self, m: &Mbuf) -> bool {
        let r = m.raw();
        // SAFETY: we look at a packet that is ours to send.
        let sound = unsafe { check::is_plain(m.as_ptr()) || check::is_sound(m.as_ptr()) };
        sound && r.pkt_len <= self.max_len && r.nb_segs <= self.max_segs && r.pkt_len != 0
    }

    /// Frees packets that are done.
    ///
    /// # Safety
    /// `pkts` holds `n` packets that the queue owns and does not use again.
    #[inline(always)]
    pub unsafe fn recycle(&mut self, pkts: *const *mut RawMbuf, n: usize) {
        // SAFETY: the caller's promise; the queue's thread is the bound slot's.
        unsafe { self.recycler.free(pkts, n) };
    }

    /// Frees packets that are done, if all are plain; returns their bytes.
    ///
    /// # Safety
    /// As [`Self::recycle`] where Some is returned; else nothing was done.
    #[inline(always)]
    pub(super) unsafe fn recycle_plain(&mut self, pkts: *const *mut RawMbuf, n: usize) -> Option<u64> {
        // SAFETY: as above.
        unsafe { self.recycler.free_plain(pkts, n, self.max_len) }
    }

    /// Frees a packet that is done.
    #[inline(always)]
    pub fn done(&mut self, m: Mbuf) {
        let p = m.into_raw().as_ptr();
        // SAFETY: ours, and used by nobody else.
        unsafe { self.recycle(&p, 1) };
    }

    /// Frees a packet that cannot be sent, and counts it.
    #[cold]
    pub fn refuse(&mut self, m: Mbuf) {
        // By its links: what is wrong may be `nb_segs`, and the quick way back would keep the chain on a free header.
        // SAFETY: we own the packet, and give it away.
        unsafe { crate::pool::free_chain(m.into_raw().as_ptr()) };
        self.counters.error(1);
    }
}
