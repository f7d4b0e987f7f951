//! The loop of an lcore: receive, address, send; what does not fit waits, and its input waits with it.

use crate::options::MAX_BURST;
use burstline::base::{Result, cpu, time};
use burstline::eal::StopFlag;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::Pool;
use burstline::pool::slot::ThreadSlot;
use burstline::port::{PollGroup, Port, RxPoller, RxQueue, State, TxPoller, TxQueue};
use burstline::wire::eth::{EthHdr, Mac};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A staged packet waits no longer than this while its lcore receives.
const DEADLINE_US: u32 = 100;
/// Without progress for this long, a full output is looked at: a stopped one takes nothing ever again.
const STALL: Duration = Duration::from_millis(100);
/// What waits at the end is given up after this long without progress.
const LAST_CALL: Duration = Duration::from_millis(200);
/// Empty laps before the core is offered to others.
const SPIN_LAPS: u32 = 256;

/// A receive queue and where its packets go.
pub struct Route {
    pub lane: usize,
    pub rx: RxQueue,
    pub tx: TxQueue,
    /// Packets staged at most before the tail is rung; None where the driver stages nothing.
    pub fill: Option<u32>,
    /// Destination and source to write.
    pub macs: Option<(Mac, Mac)>,
}

/// What a lane counts. Written by its lcore alone.
#[derive(Default)]
#[repr(align(128))]
pub struct LaneCounters {
    pub received: AtomicU64,
    pub taken: AtomicU64,
    /// Bursts that the output had no room for at once.
    pub waits: AtomicU64,
    /// Packets given up: the output was stopped or gone, or stayed full at the end.
    pub drops: AtomicU64,
    /// Packets that wait for the output now.
    pub held: AtomicU64,
    /// The output's device is gone. Written by the supervisor.
    pub output_gone: AtomicBool,
}

#[derive(Default)]
#[repr(align(128))]
pub struct LcoreCounters {
    /// It has ports, and will make laps.
    pub serves: bool,
    pub laps: AtomicU64,
    /// Of the time-stamp counter, in laps that moved packets. Only with `--perf`.
    pub busy_cycles: AtomicU64,
}

/// What lcores and supervisor share.
pub struct Shared {
    pub stop: StopFlag,
    /// Packets that may still be received (`--packets`).
    pub budget: Option<AtomicU64>,
    pub lanes: Vec<LaneCounters>,
    pub lcores: Vec<LcoreCounters>,
    pub burst: u16,
    pub perf: bool,
    pub pool: Arc<Pool>,
}

/// Adds without a locked instruction: one thread writes.
#[inline(always)]
fn add(c: &AtomicU64, n: u64) {
    c.store(c.load(Relaxed).wrapping_add(n), Relaxed);
}

struct Lane<'s> {
    rx: RxPoller<'s>,
    tx: TxPoller<'s>,
    out: Port,
    defer: bool,
    macs: Option<(Mac, Mac)>,
    pkts: Box<Burst<MAX_BURST>>,
    c: &'s LaneCounters,
    pool: &'s Pool,
    /// Since when nothing of what waits could be sent.
    stalled: Option<Instant>,
}

impl Lane<'_> {
    /// One turn: packets received, 0 while the output is full.
    #[inline(always)]
    fn turn(&mut self, shared: &Shared) -> usize {
        if !self.pkts.is_empty() && !self.retry() {
            return 0;
        }
        let want = match &shared.budget {
            None => shared.burst,
            Some(left) => claim(left, shared.burst),
        };
        let got = self.rx.burst_up_to(&mut self.pkts, want);
        if let Some(left) = &shared.budget {
            left.fetch_add(u64::from(want) - got as u64, Relaxed);
        }
        if got == 0 {
            return 0;
        }
        add(&self.c.received, got as u64);
        if let Some((dst, src)) = self.macs {
            self.address(dst, src);
        }
        let sent = if self.defer { self.tx.burst_more(&mut self.pkts) } else { self.tx.burst(&mut self.pkts) };
        add(&self.c.taken, sent as u64);
        if !self.pkts.is_empty() {
            self.wait();
        }
        got
    }

    #[inline(always)]
    fn address(&mut self, dst: Mac, src: Mac) {
        let mut odd = false;
        for m in self.pkts.iter_mut() {
            match m.data_mut().and_then(EthHdr::parse_mut) {
                Some((hdr, _)) => (hdr.dst, hdr.src) = (dst, src),
                None => odd = true,
            }
        }
        if odd {
            self.address_odd(dst, src);
        }
    }

    /// Packets whose header is split, shared, read-only or a peer's: written at an offset, or to a copy. Without memory
    /// for a copy the packet is given up.
    #[cold]
    fn address_odd(&mut self, dst: Mac, src: Mac) {
        for _ in 0..self.pkts.len() {
            let Some(mut m) = self.pkts.pop_front() else { return };
            let is_odd = m.data_mut().and_then(EthHdr::parse_mut).is_none();
            if is_odd && !write_macs(&mut m, dst, src, self.pool) {
                add(&self.c.drops, 1);
                continue;
            }
            // One was just taken out, so there is room.
            let _ = self.pkts.push(m);
        }
    }

    #[cold]
    fn wait(&mut self) {
        add(&self.c.waits, 1);
        self.c.held.store(self.pkts.len() as u64, Relaxed);
    }

    /// Tries to send what waits. True when nothing waits any more.
    #[cold]
    fn retry(&mut self) -> bool {
        let sent = self.tx.burst(&mut self.pkts);
        add(&self.c.taken, sent as u64);
        if sent > 0 {
            self.stalled = None;
        }
        if !self.pkts.is_empty() && self.stalled.get_or_insert_with(Instant::now).elapsed() > STALL {
            self.stalled = None;
            // The state is asked rarely: it takes the port's control lock.
            if self.c.output_gone.load(Relaxed) || self.out.state() != State::Started {
                self.give_up();
            }
        }
        self.c.held.store(self.pkts.len() as u64, Relaxed);
        self.pkts.is_empty()
    }

    fn give_up(&mut self) {
        add(&self.c.drops, self.pkts.len() as u64);
        self.pkts.clear();
        self.c.held.store(0, Relaxed);
    }
}

fn claim(left: &AtomicU64, burst: u16) -> u16 {
    let take = |n: u64| n.min(burst.into());
    let before = left.fetch_update(Relaxed, Relaxed, |n| Some(n - take(n))).unwrap_or(0);
    take(before) as u16
}

fn write_macs(m: &mut Mbuf, dst: Mac, src: Mac, pool: &Pool) -> bool {
    let mut macs = [0; 12];
    let (d, s) = macs.split_at_mut(6);
    d.copy_from_slice(&dst.0);
    s.copy_from_slice(&src.0);
    // Too short for addresses: it goes on as it is.
    if m.pkt_len() < macs.len() || m.write(0, &macs).is_ok() {
        return true;
    }
    match m.copy(pool, 0, m.pkt_len()) {
        Ok(copy) => {
            *m = copy;
            m.write(0, &macs).is_ok()
        }
        Err(_) => false,
    }
}

/// Stops everyone when an lcore leaves its loop, whatever the reason.
struct StopOthers<'a>(&'a StopFlag);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Forwards on the calling thread until `shared.stop`.
pub fn forward(routes: Vec<Route>, lcore: usize, shared: &Shared, slot: &ThreadSlot) -> Result<()> {
    let (Some(counters), false) = (shared.lcores.get(lcore), routes.is_empty()) else { return Ok(()) };
    let _others = StopOthers(&shared.stop);
    let mut lanes = Vec::with_capacity(routes.len());
    let mut members = Vec::with_capacity(routes.len());
    for r in routes {
        let Some(c) = shared.lanes.get(r.lane) else { continue };
        members.push((r.rx.port(), r.rx.queue(), r.tx.port(), r.tx.queue(), r.fill));
        lanes.push(Lane {
            out: r.tx.port(),
            rx: r.rx.bind(slot),
            tx: r.tx.bind(slot),
            defer: r.fill.is_some(),
            macs: r.macs,
            pkts: Box::new(Burst::new()),
            c,
            pool: &shared.pool,
            stalled: None,
        });
    }
    // After the lanes: dropped first, it takes their queues out.
    let mut group = PollGroup::new();
    if members.iter().any(|m| m.4.is_some()) {
        for (port, queue, ..) in &members {
            group.add_rx(port, *queue)?;
        }
        for (_, _, port, queue, fill) in &members {
            if let Some(fill) = fill {
                group.add_tx(port, *queue, *fill, DEADLINE_US)?;
            }
        }
    }
    if shared.perf {
        poll::<true>(&mut lanes, shared, counters);
    } else {
        poll::<false>(&mut lanes, shared, counters);
    }
    last_call(&mut lanes);
    group.flush();
    Ok(())
}

fn poll<const PERF: bool>(lanes: &mut [Lane], shared: &Shared, counters: &LcoreCounters) {
    let mut empty = 0u32;
    while !shared.stop.is_stopped() {
        let begun = if PERF { time::tsc() } else { 0 };
        let mut got = 0;
        for lane in lanes.iter_mut() {
            got += lane.turn(shared);
        }
        add(&counters.laps, 1);
        if got != 0 {
            empty = 0;
            if PERF {
                add(&counters.busy_cycles, time::tsc().wrapping_sub(begun));
            }
        } else if empty < SPIN_LAPS {
            empty += 1;
            cpu::pause();
        } else {
            // Nothing to do for a while: whoever shares the core may have something.
            std::thread::yield_now();
        }
    }
}

/// Sends what waits, for as long as it moves.
fn last_call(lanes: &mut [Lane]) {
    let (mut since, mut before) = (Instant::now(), u64::MAX);
    loop {
        let mut left = 0;
        for lane in lanes.iter_mut().filter(|l| !l.pkts.is_empty()) {
            lane.retry();
            left += lane.pkts.len() as u64;
        }
        if left == 0 {
            return;
        }
        if left < before {
            (since, before) = (Instant::now(), left);
        } else if since.elapsed() > LAST_CALL {
            lanes.iter_mut().for_each(Lane::give_up);
            return;
        }
        std::thread::yield_now();
    }
}
