//! Receive: one read(2) a frame, into packets that were taken from the pool before.

use super::Shared;
use super::kernel::{Fault, Frame, MAX_SEGS, TapQueue};
use crate::driver::*;
use core::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Variants of the receive burst: into one room, or across several.
const ONE: u8 = 0;
const CHAIN: u8 = 1;

/// How long stop reads what the kernel still holds: for the case that the interface could not be set down.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

pub(super) struct TapRx {
    ctx: RxCtx,
    q: TapQueue,
    shared: Arc<Shared>,
    scatter: bool,
    /// Bytes of a room, headroom apart.
    room: u32,
    /// Empty packets that the next frame is read into, each as long as its room. They are kept from read to read, so
    /// that a read which finds nothing costs the pool nothing.
    spares: [Option<Mbuf>; MAX_SEGS],
}

impl TapRx {
    pub fn new(ctx: RxCtx, q: TapQueue, shared: Arc<Shared>, scatter: bool) -> TapRx {
        let room = ctx.pool().data_room().into();
        TapRx { ctx, q, shared, scatter, room, spares: [const { None }; MAX_SEGS] }
    }

    /// Segments that the longest frame of the MTU needs.
    fn segs(&self) -> usize {
        (self.shared.max_frame().div_ceil(self.room.max(1)) as usize).clamp(1, MAX_SEGS)
    }

    /// Fills the first `n` spares; false where the pool is empty.
    #[inline(always)]
    fn refill(&mut self, n: usize) -> bool {
        for s in self.spares.iter_mut().take(n).filter(|s| s.is_none()) {
            let mut one = [const { MaybeUninit::uninit() }; 1];
            if self.ctx.alloc(&mut one, u16::MAX) == 0 {
                return false;
            }
            // SAFETY: `alloc` wrote it.
            *s = Some(unsafe { one[0].assume_init_read() });
        }
        true
    }

    /// Reads one frame into the first `n` spares.
    #[inline(always)]
    fn read(&mut self, n: usize) -> Result<Frame, Fault> {
        self.q.read_parts(self.spares.iter_mut().take(n).map_while(|s| s.as_mut()?.data_mut()))
    }

    /// The packet of the `len` bytes that were read. `SCATTER`: they may lie in more than one room.
    #[inline(always)]
    fn packet<const SCATTER: bool>(&mut self, len: usize) -> Option<Mbuf> {
        let (len, mut spares) = (len as u32, self.spares.iter_mut());
        let mut head = spares.next()?.take()?;
        let mut left = len - len.min(self.room);
        // SAFETY: a room's worth at most, which is what the packet's length was.
        let r = unsafe { head.raw_mut() };
        (r.data_len, r.pkt_len) = ((len - left) as u16, len);
        if SCATTER {
            let mut last = head.as_ptr();
            while left != 0 {
                // The read went into these, so they are here.
                let seg = spares.next().and_then(Option::take)?.into_raw().as_ptr();
                let here = left.min(self.room);
                left -= here;
                // SAFETY: two packets of ours, of one segment each so far; the second becomes part of the first.
                unsafe {
                    ((*seg).data_len, (*seg).pkt_len) = (here as u16, here);
                    (*last).next = seg;
                    (*head.as_ptr()).nb_segs += 1;
                }
                last = seg;
            }
        }
        (left == 0).then_some(head)
    }

    #[inline(always)]
    fn receive<const SCATTER: bool>(&mut self, out: &mut [MaybeUninit<Mbuf>], n_segs: usize) -> usize {
        let (mut n, mut bytes, mut unfit) = (0, 0, 0);
        let most = out.len();
        let mut free = out.iter_mut();
        // As many reads as packets are wanted, whatever they bring: a burst has an end.
        for _ in 0..most {
            if !self.refill(n_segs) {
                // The frame, if there is one, waits in the kernel.
                self.ctx.counters().nombuf_wait();
                break;
            }
            match self.read(n_segs) {
                Ok(Frame::Whole(len)) if len != 0 => match (self.packet::<SCATTER>(len), free.next()) {
                    (Some(m), Some(o)) => {
                        o.write(m);
                        n += 1;
                        bytes += len as u64;
                    }
                    _ => unfit += 1,
                },
                Ok(_) => unfit += 1,
                Err(Fault::Gone) => {
                    self.shared.gone();
                    break;
                }
                Err(_) => break,
            }
        }
        if unfit != 0 {
            self.ctx.counters().error(unfit);
        }
        if n != 0 {
            self.ctx.counters().received(n as u64, bytes);
        }
        n
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<ONE> for TapRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        self.receive::<false>(out, 1)
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<CHAIN> for TapRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        // The MTU may change while the port runs.
        let n = self.segs();
        self.receive::<true>(out, n)
    }
}

impl RxQueue for TapRx {
    fn entry(&mut self) -> RxEntry {
        if self.scatter { rx_entry::<CHAIN, _>(self) } else { rx_entry::<ONE, _>(self) }
    }

    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }

    /// The interface is down by now: what the kernel took before is read, dropped and counted, so that it does not turn
    /// up at the next start.
    fn stop(&mut self) {
        self.spares.fill_with(|| None);
        let until = Instant::now() + DRAIN_LIMIT;
        let mut n = 0;
        while self.q.read_parts(core::iter::empty()).is_ok() {
            n += 1;
            if Instant::now() > until {
                break;
            }
        }
        self.ctx.counters().missed(n);
        if self.shared.multi_queue
            && let Err(e) = self.q.set_attached(false)
        {
            log_debug!("{e}");
        }
    }
}
