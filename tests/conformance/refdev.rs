//! The reference device: a driver as the contract wants it, small and slow, with switches for faults.
//!
//! What its far side offers waits in a list until it is received; what is sent lies in a ring until the far side takes it.
//! Its doorbell is a store (a counter), so that deferral can be seen without any kernel.

use burstline::driver::*;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub static DRIVER: Driver = Driver {
    name: "ref",
    summary: "the reference device of the conformance suite",
    keys: &[],
    needs: "nothing",
    doorbell: Doorbell::Store,
    probe: |_| fail!(NOTSUP, "made by its tests alone"),
};

pub const MAX_QUEUES: u16 = 8;
pub const TX_MAX_LEN: u32 = 20_000;
pub const TX_MAX_SEGS: u16 = 40;

/// What both sides of the device see.
pub struct Far {
    rx: [Mutex<VecDeque<Vec<u8>>>; MAX_QUEUES as usize],
    pub offered: AtomicUsize,
    /// Frames that left, with the queue they left by.
    pub out: Mutex<Vec<(u16, Vec<u8>)>>,
    /// How many frames the far side still takes.
    pub credit: AtomicUsize,
    pub link: AtomicBool,
    /// A receive burst of the queue with this number stays inside until the number changes.
    pub stuck: AtomicU32,
    pub inside: AtomicBool,
    pub fail_configure: AtomicBool,
    pub fail_start: AtomicBool,
    pub sink: Mutex<EventSink>,
}

pub const NO_QUEUE: u32 = u32::MAX;

impl Far {
    pub fn offer(&self, queue: usize, frame: Vec<u8>) {
        self.offered.fetch_add(1, Relaxed);
        self.rx[queue].lock().unwrap().push_back(frame);
    }
}

pub struct RefDevice {
    far: Arc<Far>,
    mac: [u8; 6],
    mtu: u32,
    scatter: bool,
}

pub fn device() -> (Box<dyn Device>, Arc<Far>) {
    let far = Arc::new(Far {
        rx: [const { Mutex::new(VecDeque::new()) }; MAX_QUEUES as usize],
        offered: AtomicUsize::new(0),
        out: Mutex::new(Vec::new()),
        credit: AtomicUsize::new(usize::MAX),
        link: AtomicBool::new(true),
        stuck: AtomicU32::new(NO_QUEUE),
        inside: AtomicBool::new(false),
        fail_configure: AtomicBool::new(false),
        fail_start: AtomicBool::new(false),
        sink: Mutex::new(EventSink::default()),
    });
    (Box::new(RefDevice { far: far.clone(), mac: local_mac(7), mtu: 1500, scatter: false }), far)
}

impl Device for RefDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            max_rx_queues: MAX_QUEUES,
            max_tx_queues: MAX_QUEUES,
            desc: (4, 1024, 512),
            tx_max_len: TX_MAX_LEN,
            tx_max_segs: TX_MAX_SEGS,
            mtu: (68, 9000),
            caps: Caps::SET_MAC | Caps::SET_MTU | Caps::SET_LINK | Caps::RX_SCATTER | Caps::TX_MULTI_SEG,
            ..DeviceInfo::default()
        }
    }
    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        if self.far.fail_configure.load(Relaxed) {
            return fail!(IO, "the device refuses");
        }
        self.mtu = c.mtu.unwrap_or(self.mtu);
        self.scatter = c.scatter;
        Ok(())
    }
    fn rx_queue(&mut self, queue: u16, _n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        Ok(Box::new(RefRx { ctx, queue, far: self.far.clone(), scatter: self.scatter }))
    }
    fn tx_queue(&mut self, queue: u16, n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        let ring = VecDeque::with_capacity(n_desc as usize);
        Ok(Box::new(RefTx { ctx, queue, far: self.far.clone(), ring, told: 0, n_desc: n_desc as usize }))
    }
    fn rx_held(&self, n_desc: u32) -> u32 {
        n_desc / 8
    }
    fn start(&mut self) -> Result<()> {
        if self.far.fail_start.load(Relaxed) {
            return fail!(IO, "the device does not start");
        }
        Ok(())
    }
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
    fn link(&mut self) -> Link {
        Link { up: self.far.link.load(Relaxed), speed: 1000, full_duplex: true }
    }
    fn set_link(&mut self, up: bool) -> Result<()> {
        self.far.link.store(up, Relaxed);
        Ok(())
    }
    fn mac(&mut self) -> [u8; 6] {
        self.mac
    }
    fn set_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        self.mac = mac;
        Ok(())
    }
    fn mtu(&mut self) -> u32 {
        self.mtu
    }
    fn set_mtu(&mut self, mtu: u32) -> Result<()> {
        self.mtu = mtu;
        Ok(())
    }
    fn set_events(&mut self, sink: EventSink) {
        *self.far.sink.lock().unwrap() = sink;
    }
    /// What was offered and never received.
    fn stats(&mut self) -> DeviceStats {
        DeviceStats::default()
    }
}

struct RefRx {
    ctx: RxCtx,
    queue: u16,
    far: Arc<Far>,
    scatter: bool,
}

impl RxQueue for RefRx {
    fn entry(&mut self) -> RxEntry {
        rx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }
}

impl RefRx {
    /// None: the pool is empty, the frame stays.
    fn build(&mut self, frame: &[u8]) -> Option<Mbuf> {
        let room = usize::from(self.ctx.pool().data_room());
        let mut head: Option<Mbuf> = None;
        for part in frame.chunks(room) {
            let mut seg = self.ctx.alloc_one()?;
            seg.append(part.len()).ok()?.copy_from_slice(part);
            match &mut head {
                None => head = Some(seg),
                Some(h) => h.chain(seg).ok()?,
            }
        }
        head
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot for RefRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        while self.far.stuck.load(Acquire) == u32::from(self.queue) {
            self.far.inside.store(true, Release);
            std::thread::yield_now();
        }
        let far = self.far.clone();
        let mut waiting = far.rx[usize::from(self.queue)].lock().unwrap();
        let (mut n, mut bytes) = (0, 0);
        while n < out.len() {
            let Some(frame) = waiting.front() else { break };
            if frame.len() > usize::from(self.ctx.pool().data_room()) && !self.scatter {
                self.ctx.counters().error(1);
                waiting.pop_front();
                continue;
            }
            let Some(m) = self.build(frame) else {
                self.ctx.counters().nombuf_wait();
                break;
            };
            bytes += frame.len() as u64;
            out[n].write(m);
            n += 1;
            waiting.pop_front();
        }
        self.ctx.counters().received(n as u64, bytes);
        n
    }
}

struct RefTx {
    ctx: TxCtx,
    queue: u16,
    far: Arc<Far>,
    /// Announced, then staged.
    ring: VecDeque<Mbuf>,
    told: usize,
    n_desc: usize,
}

impl RefTx {
    /// Lets the far side take what it wants of what it was told.
    fn reclaim(&mut self) {
        while self.told > 0 {
            let credit = self.far.credit.load(Relaxed);
            if credit == 0 {
                break;
            }
            if credit != usize::MAX {
                self.far.credit.store(credit - 1, Relaxed);
            }
            let Some(m) = self.ring.pop_front() else { break };
            self.told -= 1;
            let mut bytes = vec![0; m.pkt_len()];
            m.read(0, &mut bytes).unwrap();
            self.far.out.lock().unwrap().push((self.queue, bytes));
            let p = m.into_raw().as_ptr();
            // SAFETY: the packet was taken, and leaves the ring here.
            unsafe { self.ctx.recycle(&p, 1) };
        }
    }

    fn ring(&mut self, cause: FlushCause) -> u32 {
        let n = self.ctx.staged();
        if n != 0 {
            self.told = self.ring.len();
            self.ctx.rang(cause);
            self.reclaim();
        }
        n
    }
}

impl TxHot for RefTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        self.reclaim();
        let mut fill = false;
        while self.ring.len() < self.n_desc {
            let Some(m) = batch.take() else { break };
            if !self.far.link.load(Relaxed) || !self.ctx.can_send(&m) {
                self.ctx.refuse(m);
                continue;
            }
            fill |= self.ctx.stage(1, m.pkt_len() as u64);
            self.ring.push_back(m);
        }
        match MORE {
            false => _ = self.ring(FlushCause::Burst),
            true if fill || !batch.is_empty() => _ = self.ring(FlushCause::Fill),
            true => self.ctx.keep_staged(),
        }
    }
    fn flush(&mut self, cause: FlushCause) -> u32 {
        self.ring(cause)
    }
}

impl TxQueue for RefTx {
    fn entry(&mut self) -> TxEntry {
        tx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut TxCtx {
        &mut self.ctx
    }
    fn stop(&mut self, limit: Duration) -> u32 {
        self.ring(FlushCause::Explicit);
        let until = Instant::now() + limit;
        while self.told != 0 && Instant::now() < until {
            self.reclaim();
            std::thread::yield_now();
        }
        let left = self.told as u32;
        self.ring.clear();
        self.told = 0;
        left
    }
}
