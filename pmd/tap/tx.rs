//! Send: one writev(2) a frame. Nothing is staged; the kernel has the frame when the call returns.

use super::MAX_TX_SEGS;
use super::Shared;
use super::kernel::{Fault, TapQueue};
use crate::driver::*;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::sync::Arc;

pub(super) struct TapTx {
    ctx: TxCtx,
    q: TapQueue,
    shared: Arc<Shared>,
}

impl TapTx {
    pub fn new(ctx: TxCtx, q: TapQueue, shared: Arc<Shared>) -> TapTx {
        TapTx { ctx, q, shared }
    }

    #[inline(always)]
    fn write(&self, m: &Mbuf) -> Result<usize, Fault> {
        let mut iov = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_TX_SEGS];
        let mut n = 0;
        for (v, seg) in iov.iter_mut().zip(m.segments()) {
            // SAFETY: a segment of a packet that is ours to send.
            let base = unsafe { RawMbuf::data_ptr(seg.raw()) };
            v.write(libc::iovec { iov_base: base.cast(), iov_len: seg.len() });
            n += 1;
        }
        // SAFETY: the first `n` entries were written above; each names its segment's data, inside its buffer (the caller
        // checked the chain). The kernel alone reads it, so it may be FOREIGN.
        unsafe { self.q.write_raw(iov.as_ptr().cast(), n) }
    }
}

impl TxHot for TapTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        // `run` packets at the front of the batch are written and not taken yet: they are freed together.
        let (mut run, mut n, mut bytes) = (0, 0, 0);
        let up = !self.shared.cut.load(Relaxed);
        while let Some(m) = batch.pkts().get(run) {
            let done = if up && self.ctx.can_send(m) { self.write(m) } else { Err(Fault::Invalid) };
            match done {
                Ok(_) => {
                    run += 1;
                    n += 1;
                    bytes += m.pkt_len() as u64;
                }
                // No room now: this one and those behind it stay with the caller.
                Err(Fault::Again) => break,
                Err(fault) => {
                    batch.recycle(run, &mut self.ctx);
                    run = 0;
                    if let Some(m) = batch.take() {
                        self.ctx.refuse(m);
                    }
                    if fault == Fault::Gone {
                        self.shared.gone();
                    }
                }
            }
        }
        batch.recycle(run, &mut self.ctx);
        self.ctx.sent(n, bytes);
    }

    fn flush(&mut self, _cause: FlushCause) -> u32 {
        0
    }
}

impl TxQueue for TapTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry(self)
    }

    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }

    fn stop(&mut self, _limit: Duration) -> u32 {
        0
    }
}
