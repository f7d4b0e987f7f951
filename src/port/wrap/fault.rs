//! `fault`: loses, spoils, refuses and delays packets at stated rates, the same ones for the same seed and calls.

use super::{InnerRx, InnerTx};
use crate::base::{Result, cpu, time};
use crate::driver::{
    DevArgs, FlushCause, RxCounters, RxCtx, RxEntry, RxHot, RxQueue, TxBatch, TxCounters, TxCtx, TxEntry, TxHot,
    TxQueue, rx_entry, tx_entry,
};
use crate::invalid;
use crate::mbuf::Mbuf;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Arc;

const KEYS: &[&str] =
    &["seed", "rx_drop", "tx_drop", "rx_corrupt", "tx_full", "nombuf", "delay_us", "start_fail", "stop_fail"];
/// Well under what stop waits for a thread inside a burst.
const MAX_DELAY_US: u64 = 100_000;

/// What goes wrong, and how often.
pub(super) struct Plan {
    seed: u64,
    rx_drop: f64,
    tx_drop: f64,
    rx_corrupt: f64,
    tx_full: f64,
    nombuf: f64,
    delay_us: u32,
    pub(super) start_fail: u32,
    pub(super) stop_fail: u32,
    done: Tally,
}

/// What went wrong so far, of all queues.
#[derive(Default)]
struct Tally {
    rx_dropped: AtomicU64,
    tx_dropped: AtomicU64,
    rx_corrupted: AtomicU64,
    tx_full: AtomicU64,
    nombuf: AtomicU64,
}

fn probability(args: &DevArgs, key: &str) -> Result<f64> {
    let Some(v) = args.str(key)? else { return Ok(0.0) };
    match v.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => invalid!("{}: {key}='{v}' is no probability; allowed are 0 to 1", args.name),
    }
}

impl Plan {
    pub fn new(args: &DevArgs) -> Result<Plan> {
        args.check_keys(KEYS)?;
        let number = |key, most| Ok(args.number(key, 0..=most)?.unwrap_or(0));
        Ok(Plan {
            seed: args.number("seed", 0..=u64::MAX)?.unwrap_or(1),
            rx_drop: probability(args, "rx_drop")?,
            tx_drop: probability(args, "tx_drop")?,
            rx_corrupt: probability(args, "rx_corrupt")?,
            tx_full: probability(args, "tx_full")?,
            nombuf: probability(args, "nombuf")?,
            delay_us: number("delay_us", MAX_DELAY_US)? as u32,
            start_fail: number("start_fail", u32::MAX.into())? as u32,
            stop_fail: number("stop_fail", u32::MAX.into())? as u32,
            done: Tally::default(),
        })
    }

    pub fn xstats(&self, out: &mut Vec<(String, u64)>) {
        let d = &self.done;
        for (name, n) in [
            ("fault_rx_dropped", &d.rx_dropped),
            ("fault_tx_dropped", &d.tx_dropped),
            ("fault_rx_corrupted", &d.rx_corrupted),
            ("fault_tx_full", &d.tx_full),
            ("fault_nombuf", &d.nombuf),
        ] {
            out.push((name.into(), n.load(Relaxed)));
        }
    }

    fn delay(&self) {
        if self.delay_us != 0 {
            let (from, long) = (time::tsc(), time::us_to_tsc(self.delay_us));
            while time::tsc().wrapping_sub(from) < long {
                cpu::pause();
            }
        }
    }
}

/// Marsaglia's xorshift64*, seeded through splitmix64 so that queues and near seeds differ, and no state is zero.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, queue: u16, way: u64) -> Dice {
        let mut z = seed.wrapping_add((u64::from(queue) * 2 + way + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Dice((z ^ (z >> 31)).max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// True with probability `p`. Of 0 it does not roll, so that adding a key does not change what others do.
    fn hit(&mut self, p: f64) -> bool {
        p > 0.0 && ((self.next() >> 11) as f64) < p * (1u64 << 53) as f64
    }

    /// A number under `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

pub(super) struct FaultRx {
    inner: InnerRx,
    plan: Arc<Plan>,
    dice: Dice,
    /// The port's, which say what the program got; and the inner queue's own.
    counters: Arc<RxCounters>,
    inside: Arc<RxCounters>,
    lost: Lost,
}

/// What was received inside and not passed on.
#[derive(Default)]
struct Lost {
    pkts: u64,
    bytes: u64,
    dropped: u64,
    nombuf: u64,
}

impl FaultRx {
    pub fn new(
        plan: &Arc<Plan>,
        queue: u16,
        q: Box<dyn RxQueue>,
        (counters, inside): (Arc<RxCounters>, Arc<RxCounters>),
    ) -> FaultRx {
        let dice = Dice::new(plan.seed, queue, 0);
        FaultRx { inner: InnerRx::new(q), plan: plan.clone(), dice, counters, inside, lost: Lost::default() }
    }

    /// Carries the inner queue's counts over, less what was lost here. None of them ever falls.
    fn count(&self) {
        let (to, from, l) = (&*self.counters, &*self.inside, &self.lost);
        to.ipackets.store(from.ipackets.load(Relaxed).saturating_sub(l.pkts), Relaxed);
        to.ibytes.store(from.ibytes.load(Relaxed).saturating_sub(l.bytes), Relaxed);
        to.imissed.store(from.imissed.load(Relaxed) + l.dropped, Relaxed);
        to.ierrors.store(from.ierrors.load(Relaxed), Relaxed);
        to.rx_nombuf.store(from.rx_nombuf.load(Relaxed) + l.nombuf, Relaxed);
        to.rx_nombuf_waits.store(from.rx_nombuf_waits.load(Relaxed), Relaxed);
    }

    /// Flips a bit of the first segment, where nobody else may see it.
    fn spoil(&mut self, m: &mut Mbuf) {
        if let Some(d) = m.data_mut()
            && !d.is_empty()
        {
            let bit = self.dice.below(d.len() * 8);
            if let Some(b) = d.get_mut(bit / 8) {
                *b ^= 1 << (bit % 8);
                self.plan.done.rx_corrupted.fetch_add(1, Relaxed);
            }
        }
    }

    /// Whether the packet is lost here, and counts it.
    fn loses(&mut self, m: &Mbuf) -> bool {
        let (count, done) = if self.dice.hit(self.plan.rx_drop) {
            (&mut self.lost.dropped, &self.plan.done.rx_dropped)
        } else if self.dice.hit(self.plan.nombuf) {
            (&mut self.lost.nombuf, &self.plan.done.nombuf)
        } else {
            return false;
        };
        *count += 1;
        done.fetch_add(1, Relaxed);
        self.lost.pkts += 1;
        self.lost.bytes += m.pkt_len() as u64;
        true
    }
}

impl RxQueue for FaultRx {
    fn entry(&mut self) -> RxEntry {
        self.inner.refresh();
        rx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut RxCtx {
        self.inner.q.ctx()
    }
    fn start(&mut self) -> Result<()> {
        self.inner.q.start()
    }
    fn stop(&mut self) {
        self.inner.q.stop();
        self.count();
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot for FaultRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        self.plan.delay();
        let n = self.inner.burst(out).min(out.len());
        let (p, mut kept) = (out.as_mut_ptr(), 0);
        for i in 0..n {
            // SAFETY: the inner queue wrote the first `n`; each is read once, and put back at most where one was read.
            unsafe {
                let mut m = (*p.add(i)).assume_init_read();
                if self.loses(&m) {
                    continue;
                }
                if self.dice.hit(self.plan.rx_corrupt) {
                    self.spoil(&mut m);
                }
                (*p.add(kept)).write(m);
                kept += 1;
            }
        }
        self.count();
        kept
    }
}

pub(super) struct FaultTx {
    inner: InnerTx,
    plan: Arc<Plan>,
    dice: Dice,
    counters: Arc<TxCounters>,
}

impl FaultTx {
    pub fn new(plan: &Arc<Plan>, queue: u16, q: Box<dyn TxQueue>, counters: Arc<TxCounters>) -> FaultTx {
        let dice = Dice::new(plan.seed, queue, 1);
        FaultTx { inner: InnerTx::new(q), plan: plan.clone(), dice, counters }
    }
}

impl TxQueue for FaultTx {
    fn entry(&mut self) -> TxEntry {
        self.inner.refresh();
        tx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut TxCtx {
        self.inner.q.ctx()
    }
    fn start(&mut self) -> Result<()> {
        self.inner.q.start()
    }
    fn stop(&mut self, limit: Duration) -> u32 {
        self.inner.q.stop(limit)
    }
}

impl TxHot for FaultTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        self.plan.delay();
        let mut room = batch.len();
        let mut full = false;
        if room != 0 && self.dice.hit(self.plan.tx_full) {
            full = true;
            room = self.dice.below(room);
            self.plan.done.tx_full.fetch_add(1, Relaxed);
        }
        // Runs of packets that pass, and between them one that is lost.
        while room != 0 {
            let (mut run, mut lost) = (0, false);
            while run < room && !lost {
                lost = self.dice.hit(self.plan.tx_drop);
                run += usize::from(!lost);
            }
            if run != 0 && self.inner.offer(batch, run, true) != run {
                full = true;
                break;
            }
            room -= run;
            if lost && let Some(m) = batch.take() {
                drop(m);
                self.counters.error(1);
                self.plan.done.tx_dropped.fetch_add(1, Relaxed);
                room -= 1;
            }
        }
        // The runs were offered as if more followed: the end of the call rings, as it would without us.
        if !MORE {
            self.inner.flush(FlushCause::Burst);
        } else if full {
            self.inner.flush(FlushCause::Fill);
        }
    }

    fn flush(&mut self, cause: FlushCause) -> u32 {
        self.inner.flush(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dice_fall_alike_for_a_seed_and_as_often_as_asked() {
        let rolls = |seed, queue| {
            let mut d = Dice::new(seed, queue, 0);
            (0..10_000).map(|_| d.hit(0.25)).collect::<Vec<_>>()
        };
        assert_eq!(rolls(5, 0), rolls(5, 0));
        assert_ne!(rolls(5, 0), rolls(6, 0));
        assert_ne!(rolls(5, 0), rolls(5, 1));
        let n = rolls(0, 0).iter().filter(|h| **h).count();
        assert!((2300..2700).contains(&n), "{n}");
        let mut d = Dice::new(0, 0, 0);
        assert!((0..1000).all(|_| d.hit(1.0) && !d.hit(0.0) && d.below(3) < 3));
    }
}
