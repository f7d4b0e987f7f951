//! Send to a file: packets are staged as they are, and a ring is one writev from their segments.

use super::rx::{Parked, unpark};
use super::sink::{Sink, Wrote};
use super::stage::{Slot, Stage};
use super::writer::Around;
use crate::driver::flags::RX_TIMESTAMP;
use crate::driver::*;
use core::time::Duration;
use std::time::Instant;

/// Most pieces that one writev takes (limits.h: IOV_MAX is UIO_MAXIOV on Linux).
const IOV_MAX: usize = 1024;

/// Memory of the pieces of one write.
struct Gather {
    iov: Box<[libc::iovec]>,
    n: usize,
    bytes: usize,
    /// What stands around the packets; each has two pieces or more.
    around: Box<[Option<Around>]>,
}

// SAFETY: the pointers are only used within the call that wrote them.
unsafe impl Send for Gather {}

impl Gather {
    fn new() -> Gather {
        let none = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        Gather { iov: vec![none; IOV_MAX].into(), n: 0, bytes: 0, around: (0..IOV_MAX / 2 + 1).map(|_| None).collect() }
    }

    /// Adds a piece less its first `skip` bytes, which are counted down. False where there is no room.
    #[inline(always)]
    fn put(&mut self, p: *const u8, len: usize, skip: &mut usize) -> bool {
        let cut = len.min(*skip);
        *skip -= cut;
        if len == cut {
            return true;
        }
        let Some(v) = self.iov.get_mut(self.n) else { return false };
        *v = libc::iovec { iov_base: p.wrapping_add(cut).cast_mut().cast(), iov_len: len - cut };
        self.n += 1;
        self.bytes += len - cut;
        true
    }
}

pub(super) struct FileTx {
    ctx: TxCtx,
    sink: Option<Sink>,
    home: Parked<Sink>,
    stage: Stage,
    gather: Gather,
    /// Bytes of the packet in front that are in the file already.
    written: usize,
    keep_ts: bool,
    events: EventSink,
}

impl FileTx {
    pub fn new(ctx: TxCtx, home: Parked<Sink>, n_desc: u32, keep_ts: bool, events: EventSink) -> Result<FileTx> {
        let sink = Some(unpark(&home)?);
        let stage = Stage::new(n_desc);
        Ok(FileTx { ctx, sink, home, stage, gather: Gather::new(), written: 0, keep_ts, events })
    }

    /// Stages from the front of the batch while there is room. True where the fill level was reached.
    #[inline(always)]
    fn stage(&mut self, batch: &mut TxBatch<'_>) -> bool {
        let Some(sink) = &mut self.sink else { return false };
        // One clock read a burst; a clock that was set back does not take the file with it.
        let now = time::realtime_ns().max(sink.last_ts);
        sink.last_ts = now;
        let encoder = sink.encoder;
        let (mut n, mut bytes) = (0, 0);
        while self.stage.room() != 0 {
            let Some(m) = batch.take() else { break };
            if !self.ctx.can_send(&m) {
                self.ctx.refuse(m);
                continue;
            }
            let r = m.raw();
            let ts_ns = if self.keep_ts && r.ol_flags & RX_TIMESTAMP != 0 { r.timestamp } else { now };
            let size = encoder.size(r.pkt_len);
            bytes += u64::from(r.pkt_len);
            n += 1;
            self.stage.push(Slot { pkt: m.into_raw().as_ptr(), ts_ns, size });
        }
        self.ctx.stage(n, bytes)
    }

    /// The pieces of what is staged, as many as one write takes.
    #[inline]
    fn collect(&mut self, encoder: super::Encoder) {
        let g = &mut self.gather;
        (g.n, g.bytes) = (0, 0);
        let mut skip = self.written;
        for i in 0..self.stage.len() {
            let Some(slot) = self.stage.get(i) else { return };
            // SAFETY: a packet of ours; its chain was checked when it was staged.
            let len = unsafe { (*slot.pkt).pkt_len } as usize;
            let Some(place) = g.around.get_mut(i as usize) else { return };
            let a = place.insert(encoder.around(slot.ts_ns, len));
            let (head, tail) = ((a.head.as_ptr(), a.head.len()), (a.tail.as_ptr(), a.tail.len()));
            let mut left = a.cap_len as usize;
            if !g.put(head.0, head.1, &mut skip) {
                return;
            }
            let mut seg = slot.pkt;
            while left != 0 && !seg.is_null() {
                // SAFETY: as above. A pointer, never a reference: a peer may still write the bytes.
                let (p, n, next) = unsafe { (RawMbuf::data_ptr(seg), usize::from((*seg).data_len), (*seg).next) };
                if !g.put(p, n.min(left), &mut skip) {
                    return;
                }
                left -= n.min(left);
                seg = next;
            }
            if !g.put(tail.0, tail.1, &mut skip) {
                return;
            }
        }
    }

    /// Writes what is staged. Returns the packets written; what a full FIFO did not take stays staged.
    fn write(&mut self, cause: FlushCause, cold: bool) -> u32 {
        let mut sent = 0;
        while self.stage.len() != 0 {
            let Some(encoder) = self.sink.as_ref().map(|s| s.encoder) else { break };
            self.collect(encoder);
            let Some(sink) = &mut self.sink else { break };
            let pieces = self.gather.iov.get(..self.gather.n).unwrap_or(&[]);
            match sink.writev(pieces, self.written != 0) {
                Wrote::Bytes(n) => sent += self.done(n, cold),
                Wrote::Full => {
                    self.ctx.keep_staged();
                    return sent;
                }
                Wrote::Failed => {
                    self.give_up(cold);
                    break;
                }
            }
        }
        // What was written is counted; this counts the ring, and tells the group that nothing is left.
        self.ctx.rang(cause);
        sent
    }

    /// `n` bytes were written: counts and frees the packets that are whole in the file.
    #[inline]
    fn done(&mut self, n: usize, cold: bool) -> u32 {
        let (mut left, mut pkts, mut size, mut bytes) = (self.written + n, 0, 0u64, 0u64);
        while let Some(s) = self.stage.get(pkts) {
            if left < s.size as usize {
                break;
            }
            left -= s.size as usize;
            size += u64::from(s.size);
            // SAFETY: a packet of ours.
            bytes += u64::from(unsafe { (*s.pkt).pkt_len });
            pkts += 1;
        }
        self.written = left;
        if let Some(sink) = &mut self.sink {
            sink.whole(size);
        }
        self.ctx.unstage(pkts, bytes);
        self.ctx.sent(pkts.into(), bytes);
        self.stage.free(pkts, &mut self.ctx, cold);
        pkts
    }

    /// The file takes nothing: what is staged is freed and counted.
    #[cold]
    #[inline(never)]
    fn give_up(&mut self, cold: bool) {
        let n = self.stage.len();
        self.ctx.unstage(n, self.stage.bytes(n));
        self.ctx.counters().error(n.into());
        self.stage.free(n, &mut self.ctx, cold);
        self.written = 0;
        if self.is_dead() {
            self.events.raise(Event::REMOVED);
        }
    }

    #[inline(always)]
    fn is_dead(&self) -> bool {
        self.sink.as_ref().is_none_or(|s| s.dead)
    }

    /// The device is gone: packets are taken, freed and counted.
    #[cold]
    #[inline(never)]
    fn refuse_all(&mut self, batch: &mut TxBatch<'_>) {
        while let Some(m) = batch.take() {
            self.ctx.refuse(m);
        }
    }
}

impl TxHot for FileTx {
    #[inline]
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        if self.is_dead() {
            return self.refuse_all(batch);
        }
        loop {
            let filled = self.stage(batch);
            if MORE && !filled && batch.is_empty() {
                return self.ctx.keep_staged();
            }
            if self.stage.len() != 0 {
                let full = self.stage.room() == 0;
                self.write(if MORE { FlushCause::Fill } else { FlushCause::Burst }, false);
                // A FIFO that is full leaves the rest with the caller.
                if full && self.stage.room() == 0 {
                    return;
                }
            }
            if batch.is_empty() {
                return;
            }
            if self.is_dead() {
                return self.refuse_all(batch);
            }
        }
    }

    fn flush(&mut self, cause: FlushCause) -> u32 {
        if self.stage.len() == 0 {
            return 0;
        }
        self.write(cause, false)
    }
}

impl TxQueue for FileTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry::<0, _>(self)
    }

    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }

    fn start(&mut self) -> Result<()> {
        self.sink.as_mut().map_or(Ok(()), Sink::begin)
    }

    fn stop(&mut self, limit: Duration) -> u32 {
        let until = Instant::now() + limit;
        while self.stage.len() != 0 {
            self.write(FlushCause::Explicit, true);
            let left = until.saturating_duration_since(Instant::now());
            if self.stage.len() == 0 || left.is_zero() {
                break;
            }
            if let Some(s) = &self.sink {
                s.wait(left);
            }
        }
        let undone = self.stage.len();
        if undone == 0 {
            return 0;
        }
        self.ctx.unstage(undone, self.stage.bytes(undone));
        self.stage.free(undone, &mut self.ctx, true);
        // Never announced, so they are not among opackets: taken = opackets + oerrors + staged.
        self.ctx.counters().error(undone.into());
        if core::mem::take(&mut self.written) != 0
            && let Some(s) = &mut self.sink
            && !s.cut_back()
        {
            // A reader has half a record: nothing that follows would be understood.
            s.dead = true;
            log_warn!("'{}' ends within a record, as its reader took no more; nothing follows it", s.name());
        }
        undone
    }
}

impl Drop for FileTx {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(|e| e.into_inner()) = self.sink.take();
    }
}

/// A send queue without a sink: packets are dropped, and counted as sent, as by `net_null`.
pub(super) struct NoTx {
    pub ctx: TxCtx,
}

impl TxHot for NoTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        let (mut n, mut bytes) = (0, 0);
        while let Some(m) = batch.pkts().first() {
            if self.ctx.can_send(m) {
                n += 1;
                bytes += m.pkt_len() as u64;
                batch.recycle(1, &mut self.ctx);
            } else if let Some(m) = batch.take() {
                self.ctx.refuse(m);
            }
        }
        self.ctx.sent(n, bytes);
    }

    fn flush(&mut self, _cause: FlushCause) -> u32 {
        0
    }
}

impl TxQueue for NoTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }
    fn stop(&mut self, _limit: Duration) -> u32 {
        0
    }
}
