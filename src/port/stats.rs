//! Counters: each queue's block is read in one pass and folded into the port's sums; reset keeps a baseline.

use super::port::{Port, PortInner};
use crate::driver::{DeviceStats, FlushCause, RxCounters, TxCounters};
use core::sync::atomic::Ordering::Relaxed;

/// A port's counters. Bytes without FCS. C: `struct bl_stats`, which only ever grows at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Stats {
    /// Packets given to the program.
    pub ipackets: u64,
    /// Packets announced to the device.
    pub opackets: u64,
    pub ibytes: u64,
    pub obytes: u64,
    /// Lost before they could be read.
    pub imissed: u64,
    /// Read and found unfit.
    pub ierrors: u64,
    /// Taken for sending and freed: can never be sent, or the device refused.
    pub oerrors: u64,
    /// Lost because the pool was empty.
    pub rx_nombuf: u64,
    /// Rings of the tail by cause: burst, fill, idle, deadline, explicit.
    pub tx_flush: [u64; 5],
}

impl Stats {
    fn fields(&mut self) -> [&mut u64; 13] {
        let Stats { ipackets, opackets, ibytes, obytes, imissed, ierrors, oerrors, rx_nombuf, tx_flush } = self;
        let [a, b, c, d, e] = tx_flush;
        [ipackets, opackets, ibytes, obytes, imissed, ierrors, oerrors, rx_nombuf, a, b, c, d, e]
    }

    fn add(&mut self, mut o: Stats) {
        for (a, b) in self.fields().into_iter().zip(o.fields()) {
            *a = a.wrapping_add(*b);
        }
    }

    fn less(mut self, mut base: Stats) -> Stats {
        for (a, b) in self.fields().into_iter().zip(base.fields()) {
            *a = a.saturating_sub(*b);
        }
        self
    }
}

/// Counters that have no field in [`Stats`].
#[derive(Clone, Copy, Default)]
struct Extra {
    rx_nombuf_waits: u64,
    tx_undrained: u64,
    longest_wait_ns: u64,
}

/// What queues that are gone counted, and where counting was last reset.
#[derive(Default)]
pub(super) struct Totals {
    gone: Stats,
    gone_extra: Extra,
    base: Stats,
    base_extra: Extra,
    device: DeviceStats,
}

fn read_rx(c: &RxCounters) -> Stats {
    Stats {
        ipackets: c.ipackets.load(Relaxed),
        ibytes: c.ibytes.load(Relaxed),
        imissed: c.imissed.load(Relaxed),
        ierrors: c.ierrors.load(Relaxed),
        rx_nombuf: c.rx_nombuf.load(Relaxed),
        ..Stats::default()
    }
}

fn read_tx(c: &TxCounters) -> Stats {
    Stats {
        opackets: c.opackets.load(Relaxed),
        obytes: c.obytes.load(Relaxed),
        oerrors: c.oerrors.load(Relaxed),
        tx_flush: core::array::from_fn(|i| c.rings[i].load(Relaxed)),
        ..Stats::default()
    }
}

impl Totals {
    pub(super) fn keep_rx(&mut self, c: &RxCounters) {
        self.gone.add(read_rx(c));
        self.gone_extra.rx_nombuf_waits += c.rx_nombuf_waits.load(Relaxed);
    }

    pub(super) fn keep_tx(&mut self, c: &TxCounters) {
        self.gone.add(read_tx(c));
        self.gone_extra.tx_undrained += c.tx_undrained.load(Relaxed);
        let longest = c.longest_wait_ns.load(Relaxed);
        self.gone_extra.longest_wait_ns = self.gone_extra.longest_wait_ns.max(longest);
    }

    /// The device's own counters, kept beyond its life.
    pub(super) fn keep_device(&mut self, s: DeviceStats) {
        let d = &mut self.device;
        d.imissed = d.imissed.max(s.imissed);
        d.ierrors = d.ierrors.max(s.ierrors);
        d.oerrors = d.oerrors.max(s.oerrors);
    }
}

impl PortInner {
    fn sums(&self) -> (Stats, Extra, Stats, Extra) {
        let mut c = self.ctl();
        let device = c.dev.stats();
        c.totals.keep_device(device);
        let (mut s, mut x) = (c.totals.gone, c.totals.gone_extra);
        for e in c.rx.iter().flatten() {
            s.add(read_rx(&e.counters));
            x.rx_nombuf_waits += e.counters.rx_nombuf_waits.load(Relaxed);
        }
        for (e, _) in c.tx.iter().flatten() {
            s.add(read_tx(&e.counters));
            x.tx_undrained += e.counters.tx_undrained.load(Relaxed);
            x.longest_wait_ns = x.longest_wait_ns.max(e.counters.longest_wait_ns.load(Relaxed));
        }
        s.imissed += c.totals.device.imissed;
        s.ierrors += c.totals.device.ierrors;
        s.oerrors += c.totals.device.oerrors;
        (s, x, c.totals.base, c.totals.base_extra)
    }
}

impl Port {
    /// The port's counters since it was opened, or since the last [`Port::stats_reset`]. Also after close.
    pub fn stats(&self) -> Stats {
        let (s, _, base, _) = self.inner().sums();
        s.less(base)
    }

    /// Counts from zero again: by a baseline, so that no writer is disturbed and nothing of the kernel's is touched.
    pub fn stats_reset(&self) {
        let (s, x, _, _) = self.inner().sums();
        let mut c = self.inner().ctl();
        c.totals.base = s;
        c.totals.base_extra = x;
    }

    /// One receive queue's counters since it was set up.
    pub fn rx_queue_stats(&self, queue: u16) -> crate::base::Result<Stats> {
        self.inner().with_rx(queue, |e, _| Ok(read_rx(&e.counters)))
    }

    /// One send queue's counters since it was set up.
    pub fn tx_queue_stats(&self, queue: u16) -> crate::base::Result<Stats> {
        self.inner().with_tx(queue, |e, _| Ok(read_tx(&e.counters)))
    }

    /// Every counter by name: the sums, each queue's, and the driver's own.
    pub fn xstats(&self) -> Vec<(String, u64)> {
        let (s, x, base, xbase) = self.inner().sums();
        let s = s.less(base);
        let mut out: Vec<(String, u64)> = [
            ("ipackets", s.ipackets),
            ("opackets", s.opackets),
            ("ibytes", s.ibytes),
            ("obytes", s.obytes),
            ("imissed", s.imissed),
            ("ierrors", s.ierrors),
            ("oerrors", s.oerrors),
            ("rx_nombuf", s.rx_nombuf),
            ("rx_nombuf_waits", x.rx_nombuf_waits - xbase.rx_nombuf_waits),
            ("tx_undrained", x.tx_undrained - xbase.tx_undrained),
            ("tx_longest_wait_ns", x.longest_wait_ns),
        ]
        .map(|(n, v)| (n.to_string(), v))
        .into();
        for (name, n) in FlushCause::NAMES.iter().zip(s.tx_flush) {
            out.push((format!("tx_flush_{name}"), n));
        }
        let mut c = self.inner().ctl();
        for e in c.rx.iter().flatten() {
            let q = read_rx(&e.counters);
            let named = [
                ("ipackets", q.ipackets),
                ("ibytes", q.ibytes),
                ("imissed", q.imissed),
                ("ierrors", q.ierrors),
                ("rx_nombuf", q.rx_nombuf),
            ];
            out.extend(named.map(|(n, v)| (format!("rx_q{}_{n}", e.queue), v)));
        }
        for (e, _) in c.tx.iter().flatten() {
            let q = read_tx(&e.counters);
            let named = [("opackets", q.opackets), ("obytes", q.obytes), ("oerrors", q.oerrors)];
            out.extend(named.map(|(n, v)| (format!("tx_q{}_{n}", e.queue), v)));
        }
        c.dev.xstats(&mut out);
        out
    }
}
