//! Both queues of `net_ring`.

use crate::driver::ring::Ring;
use crate::driver::*;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Arc;

// Variants of the receive burst: packets of one segment only, or all.
const SINGLE: u8 = 0;
const SCATTER: u8 = 1;

pub(super) struct RingRx {
    ctx: RxCtx,
    ring: Arc<Ring>,
    scatter: bool,
}

impl RingRx {
    pub fn new(ctx: RxCtx, ring: Arc<Ring>, scatter: bool) -> RingRx {
        RingRx { ctx, ring, scatter }
    }
}

impl RxQueue for RingRx {
    fn entry(&mut self) -> RxEntry {
        if self.scatter { rx_entry::<SCATTER, _>(self) } else { rx_entry::<SINGLE, _>(self) }
    }
    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }
    // A stopped queue holds nothing: what is in the ring waits there.
}

/// What a packet's flags are on arrival: what is true of its buffer stays, what was asked of the sender goes. A tag that
/// the sender was asked to insert arrives beside the packet, as a stripped one does.
#[inline(always)]
pub(super) fn on_arrival(f: u64) -> u64 {
    let tag = (f & flags::TX_VLAN) >> flags::TX_VLAN.trailing_zeros();
    (f & flags::OF_SEGMENT) | (tag * (flags::RX_VLAN | flags::RX_VLAN_STRIPPED))
}

impl RingRx {
    #[inline(always)]
    fn take<const CHAINS: bool>(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let port = self.ctx.port();
        // SAFETY: an Mbuf is a pointer; `words` is `out` under another name, and gone before `out` is used again.
        let n = unsafe {
            let words = core::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<MaybeUninit<*mut ()>>(), out.len());
            // The port layer lets one thread at a time in here, and a ring has one receiving queue.
            self.ring.sc_dequeue::<false>(words)
        };
        if n == 0 {
            return 0;
        }
        let (mut bytes, mut odd) = (0u64, 0u32);
        for m in out.iter_mut().take(n) {
            // SAFETY: the first `n` were written: packets that left their sender, and are ours. Lengths stay as they are.
            let r = unsafe { m.assume_init_mut().raw_mut() };
            // Widened before it is compared: else the load takes `port` in, which is stored here.
            odd |= u32::from(r.nb_segs) ^ 1;
            bytes += u64::from(r.pkt_len);
            r.port = port;
            r.ol_flags = on_arrival(r.ol_flags);
            r.packet_type = 0;
        }
        if !CHAINS && odd != 0 {
            return self.without_chains(out, n);
        }
        self.ctx.counters().received(n as u64, bytes);
        n
    }

    /// Frees the chains among the first `n`, which the port did not ask for, and closes the gaps.
    #[cold]
    #[inline(never)]
    fn without_chains(&mut self, out: &mut [MaybeUninit<Mbuf>], n: usize) -> usize {
        let (p, mut kept, mut bytes) = (out.as_mut_ptr(), 0, 0u64);
        for i in 0..n.min(out.len()) {
            // SAFETY: each of the first `n` is read once, and written back at most to a place that was read.
            unsafe {
                let m = (*p.add(i)).assume_init_read();
                if m.nb_segs() == 1 {
                    bytes += m.pkt_len() as u64;
                    (*p.add(kept)).write(m);
                    kept += 1;
                }
            }
        }
        self.ctx.counters().error((n - kept) as u64);
        self.ctx.counters().received(kept as u64, bytes);
        kept
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<SINGLE> for RingRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        self.take::<false>(out)
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<SCATTER> for RingRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        self.take::<true>(out)
    }
}

pub(super) struct RingTx {
    ctx: TxCtx,
    ring: Arc<Ring>,
    /// Behind the last staged packet. What was rung is the ring's own tail, what is done is its consumer's.
    tail: u32,
    carrier: Arc<AtomicBool>,
}

impl RingTx {
    pub fn new(ctx: TxCtx, ring: Arc<Ring>, carrier: Arc<AtomicBool>) -> RingTx {
        let tail = ring.prod_tail();
        RingTx { ctx, ring, tail, carrier }
    }

    /// Copies the first `n` of the batch behind the tail, as far as the ring has room. They stay in the batch.
    #[inline(always)]
    fn stage(&mut self, batch: &TxBatch<'_>, n: usize) -> usize {
        let pkts = batch.pkts();
        // SAFETY: an Mbuf is a pointer. One thread at a time is in here, a ring has one sending queue, and `tail` is
        // moved by nothing else.
        unsafe {
            let words = core::slice::from_raw_parts(pkts.as_ptr().cast::<*mut ()>(), n.min(pkts.len()));
            self.ring.sp_stage(&mut self.tail, words)
        }
    }

    #[inline(always)]
    fn ring(&mut self, cause: FlushCause) {
        // SAFETY: as in `stage`.
        unsafe { self.ring.sp_publish(self.tail) };
        self.ctx.rang(cause);
    }

    /// The end of a call that found no room for all: what is staged goes out.
    fn ring_full<const MORE: bool>(&mut self) {
        if self.ctx.staged() != 0 {
            self.ring(if MORE { FlushCause::Fill } else { FlushCause::Burst });
        }
    }

    #[cold]
    #[inline(never)]
    fn partly<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>, staged: usize) {
        let bytes = batch.pkts().iter().take(staged).map(|m| m.pkt_len() as u64).sum();
        batch.take_raw(staged);
        self.ctx.stage(staged as u32, bytes);
        self.ring_full::<MORE>();
    }

    /// The way of a burst with a packet that is odd: a chain, one that can never be sent, or a link that is down.
    #[cold]
    #[inline(never)]
    fn one_by_one<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        let up = self.carrier.load(Relaxed);
        let mut full = false;
        while let Some(m) = batch.pkts().first() {
            if !up || !self.ctx.can_send(m) {
                if let Some(m) = batch.take() {
                    self.ctx.refuse(m);
                }
                continue;
            }
            let bytes = m.pkt_len() as u64;
            if self.stage(batch, 1) == 0 {
                return self.ring_full::<MORE>();
            }
            batch.take_raw(1);
            full |= self.ctx.stage(1, bytes);
        }
        match (self.ctx.staged() != 0, MORE) {
            (true, false) => self.ring(FlushCause::Burst),
            (true, true) if full => self.ring(FlushCause::Fill),
            _ => self.ctx.keep_staged(),
        }
    }
}

impl TxHot for RingTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        // One pass: count, and see whether anything is odd. An empty call is, so that nothing below is.
        let (n, mut bytes, mut sound) = (batch.len(), 0u64, self.carrier.load(Relaxed));
        for m in batch.pkts() {
            bytes += m.pkt_len() as u64;
            sound &= self.ctx.is_plain(m);
        }
        if !sound || n == 0 {
            return self.one_by_one::<MORE>(batch);
        }
        let staged = self.stage(batch, n);
        if staged != n {
            return self.partly::<MORE>(batch, staged);
        }
        batch.take_raw(n);
        let full = self.ctx.stage(n as u32, bytes);
        if !MORE {
            self.ring(FlushCause::Burst);
        } else if full {
            self.ring(FlushCause::Fill);
        } else {
            self.ctx.keep_staged();
        }
    }

    fn flush(&mut self, cause: FlushCause) -> u32 {
        let n = self.ctx.staged();
        if n != 0 {
            self.ring(cause);
        }
        n
    }
}

impl TxQueue for RingTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }
    fn start(&mut self) -> Result<()> {
        // A program may have put packets into its own ring meanwhile.
        self.tail = self.ring.prod_tail();
        Ok(())
    }
    fn stop(&mut self, _limit: Duration) -> u32 {
        TxHot::<0>::flush(self, FlushCause::Explicit);
        0 // Announced is done: the packet is the receiver's.
    }
}

impl Drop for RingTx {
    /// A staged packet is in the ring and in nobody else's hands: it must not stay unseen.
    fn drop(&mut self) {
        TxHot::<0>::flush(self, FlushCause::Explicit);
    }
}
