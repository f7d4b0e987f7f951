//! Receive from and send to an interface, by packet sockets.

use super::stage::{Slot, Stage};
use crate::driver::flags::RX_TIMESTAMP;
use crate::driver::*;
use crate::sock::packet::{PacketOptions, PacketSocket, Received};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

/// Asked of the kernel for a receiving socket: about 2,700 frames of 1514 bytes with what the kernel keeps beside each.
const RCVBUF: u32 = 8 << 20;
/// The longest frame that a packet socket gives: 64 KiB of a merged one, and its header.
const LONGEST: usize = 65536 + 32;
const ADDRS: usize = 12;
const TAG: usize = 4;
/// Pieces that sendmsg takes.
pub(super) const MAX_SEGS: usize = 1024;

/// A packet socket and the interface it is bound to.
pub(super) struct Live {
    pub sock: PacketSocket,
    pub name: String,
    /// The interface is gone; said once.
    gone: AtomicBool,
}

impl Live {
    pub fn open(name: &str, ifindex: u32, receives: bool, incoming_only: bool) -> Result<Live> {
        let o = PacketOptions {
            promisc: receives,
            ignore_outgoing: incoming_only || !receives,
            qdisc_bypass: false,
            // A socket that only sends gets what comes in all the same: as little as can be.
            rcvbuf: Some(if receives { RCVBUF } else { 1 }),
        };
        let sock = PacketSocket::open(ifindex, &o).map_err(|e| e.context(format!("interface '{name}'")))?;
        Ok(Live { sock, name: name.into(), gone: AtomicBool::new(false) })
    }

    pub fn fd(&self) -> RawFd {
        self.sock.as_fd().as_raw_fd()
    }

    #[cold]
    #[inline(never)]
    fn failed(&self, e: Errno, events: &EventSink) {
        if matches!(e.0, libc::ENXIO | libc::ENODEV) && !self.gone.swap(true, Relaxed) {
            log_error!("interface '{}' is gone: {e}", self.name);
            events.raise(Event::REMOVED);
        }
    }
}

pub(super) struct LiveRx {
    ctx: RxCtx,
    live: Arc<Live>,
    /// Taken from the pool and not filled yet: a call that finds nothing costs no round through the pool.
    spare: Option<Mbuf>,
    /// Where the rest of a frame goes that is longer than a room; empty where the port did not ask for scatter.
    over: Box<[u8]>,
    events: EventSink,
}

impl LiveRx {
    pub fn new(ctx: RxCtx, live: Arc<Live>, scatter: bool, events: EventSink) -> LiveRx {
        LiveRx { ctx, live, spare: None, over: vec![0; if scatter { LONGEST } else { 0 }].into(), events }
    }

    /// Receives into `m`; None where nothing waits. A frame longer than the room leaves its rest in `over`.
    #[inline]
    fn recv(&mut self, m: &mut Mbuf) -> Option<Received> {
        let (p, room) = (m.as_ptr(), usize::from(self.ctx.pool().data_room()));
        // SAFETY: a fresh packet of ours: `room` bytes lie behind data_off, which nobody else refers to.
        let first = unsafe { core::slice::from_raw_parts_mut(RawMbuf::data_ptr(p), room) };
        match self.live.sock.recv(&mut [IoSliceMut::new(first), IoSliceMut::new(&mut self.over)]) {
            Ok(r) => Some(r),
            Err(e) => {
                if e != Errno::AGAIN {
                    self.live.failed(e, &self.events);
                }
                None
            }
        }
    }

    /// The packet of a frame: length, stamp, the tag that the kernel took out, and the segments behind a full room.
    /// None where it is not to be delivered, counted.
    #[inline]
    fn finish(&mut self, mut m: Mbuf, r: Received) -> Option<Mbuf> {
        if r.truncated() {
            self.ctx.counters().error(1);
            self.spare = Some(m);
            return None;
        }
        let room = usize::from(self.ctx.pool().data_room());
        let n = r.len.min(room);
        let p = m.as_ptr();
        // SAFETY: a fresh packet of ours; the kernel wrote `n` bytes of its room. A tag goes into the headroom, which a
        // fresh packet has.
        unsafe {
            (*p).data_len = n as u16;
            (*p).pkt_len = n as u32;
            if r.ts_ns != 0 {
                (*p).timestamp = r.ts_ns;
                (*p).ol_flags = RX_TIMESTAMP;
            }
            if let Some((tpid, tci)) = r.vlan
                && n >= ADDRS
                && usize::from((*p).data_off) >= TAG
            {
                let from = RawMbuf::data_ptr(p);
                let to = from.wrapping_sub(TAG);
                core::ptr::copy(from, to, ADDRS);
                let tag = [tpid.to_be_bytes(), tci.to_be_bytes()];
                core::ptr::copy_nonoverlapping(tag.as_ptr().cast::<u8>(), to.wrapping_add(ADDRS), TAG);
                (*p).data_off -= TAG as u16;
                (*p).data_len += TAG as u16;
                (*p).pkt_len += TAG as u32;
            }
        }
        if r.len > room && self.append(&mut m, r.len - room).is_none() {
            // The kernel has given the frame away, so it is lost.
            self.ctx.counters().nombuf(1);
            return None;
        }
        Some(m)
    }

    #[cold]
    #[inline(never)]
    fn append(&mut self, m: &mut Mbuf, len: usize) -> Option<()> {
        let room = usize::from(self.ctx.pool().data_room());
        for part in self.over.get(..len)?.chunks(room.max(1)) {
            let mut one = [const { MaybeUninit::uninit() }; 1];
            if self.ctx.alloc(&mut one, part.len() as u16) == 0 {
                return None;
            }
            // SAFETY: `alloc` wrote it.
            let mut seg = unsafe { one[0].assume_init_read() };
            seg.data_mut()?.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            m.try_chain(seg).ok()?;
        }
        Some(())
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot for LiveRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let (mut n, mut bytes) = (0, 0u64);
        while let Some(o) = out.get_mut(n) {
            let Some(mut m) = self.spare.take().or_else(|| self.ctx.alloc_one()) else {
                // The kernel keeps the frame while its buffer has room.
                self.ctx.counters().nombuf_wait();
                break;
            };
            let Some(r) = self.recv(&mut m) else {
                self.spare = Some(m);
                break;
            };
            if let Some(m) = self.finish(m, r) {
                bytes += m.pkt_len() as u64;
                o.write(m);
                n += 1;
            }
        }
        self.ctx.counters().received(n as u64, bytes);
        n
    }
}

impl RxQueue for LiveRx {
    fn entry(&mut self) -> RxEntry {
        rx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }
    fn start(&mut self) -> Result<()> {
        // What came while nobody received is not this run's. Bounded, as frames may come as fast as they are read.
        let until = Instant::now() + Duration::from_millis(100);
        while Instant::now() < until && self.live.sock.recv(&mut []).is_ok() {}
        self.live.sock.take_stats()?;
        Ok(())
    }
    fn stop(&mut self) {
        self.spare = None;
    }
}

pub(super) struct LiveTx {
    ctx: TxCtx,
    live: Arc<Live>,
    stage: Stage,
    iov: Box<[libc::iovec]>,
    events: EventSink,
}

// SAFETY: the pointers in `iov` are only used within the call that wrote them.
unsafe impl Send for LiveTx {}

impl LiveTx {
    pub fn new(ctx: TxCtx, live: Arc<Live>, n_desc: u32, events: EventSink) -> LiveTx {
        let none = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        LiveTx { ctx, live, stage: Stage::new(n_desc), iov: vec![none; MAX_SEGS].into(), events }
    }

    /// One frame.
    #[inline]
    fn send(&mut self, pkt: *mut RawMbuf) -> Result<usize, Errno> {
        let (mut n, mut seg) = (0, pkt);
        while let (Some(v), false) = (self.iov.get_mut(n), seg.is_null()) {
            // SAFETY: a packet of ours; its chain was checked when it was staged. Pointers, never references: a peer may
            // still write the bytes.
            unsafe {
                *v = libc::iovec { iov_base: RawMbuf::data_ptr(seg).cast(), iov_len: (*seg).data_len.into() };
                seg = (*seg).next;
            }
            n += 1;
        }
        // SAFETY: IoSlice has the layout of iovec (std::io::IoSlice, on Unix), and the bytes live for the call.
        let bufs = unsafe { core::slice::from_raw_parts(self.iov.as_ptr().cast::<IoSlice<'_>>(), n) };
        self.live.sock.send(bufs)
    }

    /// Sends what is staged. Returns the packets sent; what the device has no room for stays staged.
    fn write(&mut self, cause: FlushCause, cold: bool) -> u32 {
        let (mut sent, mut refused, mut bytes, mut seen) = (0u32, 0u32, 0u64, 0u64);
        let mut full = false;
        while let Some(s) = self.stage.get(sent + refused) {
            // SAFETY: a packet of ours.
            let len = u64::from(unsafe { (*s.pkt).pkt_len });
            match self.send(s.pkt) {
                Ok(_) => {
                    sent += 1;
                    bytes += len;
                }
                Err(Errno(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)) => {
                    full = true;
                    break;
                }
                Err(e) => {
                    self.live.failed(e, &self.events);
                    refused += 1;
                }
            }
            seen += len;
        }
        self.ctx.unstage(sent + refused, seen);
        self.ctx.sent(sent.into(), bytes);
        self.ctx.counters().error(refused.into());
        self.stage.free(sent + refused, &mut self.ctx, cold);
        if full {
            self.ctx.keep_staged();
            if sent != 0 {
                self.ctx.counters().ring(cause);
            }
        } else {
            self.ctx.rang(cause);
        }
        sent
    }
}

impl TxHot for LiveTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        loop {
            let (mut n, mut bytes) = (0, 0);
            while self.stage.room() != 0 {
                let Some(m) = batch.take() else { break };
                if !self.ctx.can_send(&m) {
                    self.ctx.refuse(m);
                    continue;
                }
                n += 1;
                bytes += m.pkt_len() as u64;
                self.stage.push(Slot { pkt: m.into_raw().as_ptr(), ts_ns: 0, size: 0 });
            }
            if !self.ctx.stage(n, bytes) && MORE && batch.is_empty() {
                return self.ctx.keep_staged();
            }
            if self.stage.len() != 0 {
                self.write(if MORE { FlushCause::Fill } else { FlushCause::Burst }, false);
            }
            if batch.is_empty() || self.stage.room() == 0 {
                return;
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

impl TxQueue for LiveTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry::<0, _>(self)
    }

    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }

    fn stop(&mut self, limit: Duration) -> u32 {
        let until = Instant::now() + limit;
        while self.stage.len() != 0 {
            self.write(FlushCause::Explicit, true);
            if self.stage.len() == 0 || Instant::now() >= until {
                break;
            }
            // ENOBUFS wakes no poll: look again soon.
            std::thread::sleep(Duration::from_millis(1));
        }
        let undone = self.stage.len();
        if undone != 0 {
            self.ctx.unstage(undone, self.stage.bytes(undone));
            self.stage.free(undone, &mut self.ctx, true);
            self.ctx.counters().error(undone.into()); // Never announced: not among opackets.
        }
        undone
    }
}
