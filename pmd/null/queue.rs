//! Both queues of `net_null`.

use crate::driver::*;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Arc;

/// What is received. Read by every queue of the port, set when the device is made.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub size: u16,
    pub copy: bool,
    pub no_rx: bool,
}

// Variants of the receive burst.
const PLAIN: u8 = 0;
const COPY: u8 = 1;
const NOTHING: u8 = 2;
const CHAIN: u8 = 3;

pub(super) struct NullRx {
    ctx: RxCtx,
    shape: Shape,
    /// What `copy` copies from.
    source: Box<[u8]>,
}

impl NullRx {
    pub fn new(ctx: RxCtx, shape: Shape) -> NullRx {
        NullRx { ctx, shape, source: vec![0; shape.size.into()].into() }
    }
}

impl RxQueue for NullRx {
    fn entry(&mut self) -> RxEntry {
        if self.shape.no_rx {
            rx_entry::<NOTHING, _>(self)
        } else if self.shape.size > self.ctx.pool().data_room() {
            rx_entry::<CHAIN, _>(self)
        } else if self.shape.copy {
            rx_entry::<COPY, _>(self)
        } else {
            rx_entry::<PLAIN, _>(self)
        }
    }
    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<PLAIN> for NullRx {
    #[inline(always)]
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let size = self.shape.size;
        let n = self.ctx.alloc(out, size);
        if n < out.len() {
            // It makes packets on demand: what could not be made was not lost, it waits.
            self.ctx.counters().nombuf_wait();
        }
        self.ctx.counters().received(n as u64, n as u64 * u64::from(size));
        n
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<COPY> for NullRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let n = RxHot::<PLAIN>::burst(self, out);
        for m in out.iter_mut().take(n) {
            // SAFETY: the first `n` were written by the burst.
            let m = unsafe { m.assume_init_mut() };
            if let Some(d) = m.data_mut() {
                // Bounded by the shorter of the two, though they are of one size.
                d.iter_mut().zip(&self.source).for_each(|(d, s)| *d = *s);
            }
        }
        n
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<NOTHING> for NullRx {
    fn burst(&mut self, _out: &mut [MaybeUninit<Mbuf>]) -> usize {
        0
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<CHAIN> for NullRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let mut n = 0;
        for o in out.iter_mut() {
            let Some(m) = self.chain() else {
                self.ctx.counters().nombuf_wait();
                break;
            };
            o.write(m);
            n += 1;
        }
        self.ctx.counters().received(n as u64, n as u64 * u64::from(self.shape.size));
        n
    }
}

impl NullRx {
    fn chain(&mut self) -> Option<Mbuf> {
        let room = self.ctx.pool().data_room();
        let mut left = self.shape.size;
        let mut head: Option<Mbuf> = None;
        while left != 0 || head.is_none() {
            let mut one = [const { MaybeUninit::uninit() }; 1];
            let len = left.min(room);
            if self.ctx.alloc(&mut one, len) == 0 {
                return None;
            }
            // SAFETY: `alloc` wrote it.
            let mut seg = unsafe { one[0].assume_init_read() };
            if self.shape.copy
                && let Some(d) = seg.data_mut()
            {
                d.fill(0);
            }
            left -= len;
            match &mut head {
                None => head = Some(seg),
                Some(h) => h.try_chain(seg).ok()?,
            }
        }
        head
    }
}

pub(super) struct NullTx {
    ctx: TxCtx,
    copy: bool,
    link: Arc<AtomicBool>,
    sink: Box<[u8]>,
}

impl NullTx {
    pub fn new(ctx: TxCtx, copy: bool, link: Arc<AtomicBool>) -> NullTx {
        NullTx { ctx, copy, link, sink: vec![0; if copy { 65536 } else { 0 }].into() }
    }
}

impl TxQueue for NullTx {
    fn entry(&mut self) -> TxEntry {
        if self.copy { tx_entry::<COPY, _>(self) } else { tx_entry::<PLAIN, _>(self) }
    }
    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }
    fn stop(&mut self, _limit: Duration) -> u32 {
        0
    }
}

impl TxHot<PLAIN> for NullTx {
    #[inline(always)]
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        let n = batch.len() as u64;
        if self.link.load(Relaxed)
            && let Some(bytes) = batch.recycle_plain(&mut self.ctx)
        {
            self.ctx.sent(n, bytes);
        } else {
            self.one_by_one(batch);
        }
    }

    fn flush(&mut self, _cause: FlushCause) -> u32 {
        0
    }
}

impl TxHot<COPY> for NullTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        self.one_by_one(batch);
    }

    fn flush(&mut self, _cause: FlushCause) -> u32 {
        0
    }
}

impl NullTx {
    #[cold]
    #[inline(never)]
    fn one_by_one(&mut self, batch: &mut TxBatch<'_>) {
        let (mut n, mut bytes) = (0, 0);
        let up = self.link.load(Relaxed);
        while let Some(m) = batch.take() {
            if !up || !self.ctx.can_send(&m) {
                self.ctx.refuse(m);
                continue;
            }
            if self.copy {
                for seg in m.segments() {
                    // Bounded by the segment, and by where it goes.
                    self.sink.iter_mut().zip(seg.data().unwrap_or(&[])).for_each(|(d, s)| *d = *s);
                }
            }
            n += 1;
            bytes += m.pkt_len() as u64;
            self.ctx.done(m);
        }
        self.ctx.sent(n, bytes);
    }
}
