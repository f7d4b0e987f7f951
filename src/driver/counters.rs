//! Counters of a queue: a block of atomics that its owner alone writes, on lines of its own, outside the queue.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Adds without a locked instruction: for the one thread that writes.
#[inline(always)]
fn add(c: &AtomicU64, n: u64) {
    c.store(c.load(Relaxed).wrapping_add(n), Relaxed);
}

/// What a receive queue counts. Bytes are without FCS.
#[derive(Default)]
#[repr(C, align(128))]
pub struct RxCounters {
    pub ipackets: AtomicU64,
    pub ibytes: AtomicU64,
    /// Lost before they could be read.
    pub imissed: AtomicU64,
    /// Read and found unfit: too long, cut, broken.
    pub ierrors: AtomicU64,
    /// Lost because the pool was empty.
    pub rx_nombuf: AtomicU64,
    /// Left waiting in the source because the pool was empty; not lost.
    pub rx_nombuf_waits: AtomicU64,
}

impl RxCounters {
    #[inline(always)]
    pub fn received(&self, pkts: u64, bytes: u64) {
        add(&self.ipackets, pkts);
        add(&self.ibytes, bytes);
    }
    pub fn missed(&self, n: u64) {
        add(&self.imissed, n);
    }
    pub fn error(&self, n: u64) {
        add(&self.ierrors, n);
    }
    pub fn nombuf(&self, n: u64) {
        add(&self.rx_nombuf, n);
    }
    pub fn nombuf_wait(&self) {
        add(&self.rx_nombuf_waits, 1);
    }
}

/// Why a tail was rung.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FlushCause {
    /// At the end of a `tx_burst`.
    Burst = 0,
    /// The fill level of a deferring queue was reached, or not all packets fitted.
    Fill = 1,
    /// A whole lap of the poll group came back empty.
    Idle = 2,
    /// The deadline of the poll group passed.
    Deadline = 3,
    /// `tx_flush`, or the port's stop.
    Explicit = 4,
}

impl FlushCause {
    pub const NAMES: [&'static str; 5] = ["burst", "fill", "idle", "deadline", "explicit"];

    pub fn from_u8(v: u8) -> FlushCause {
        match v {
            0 => FlushCause::Burst,
            1 => FlushCause::Fill,
            2 => FlushCause::Idle,
            3 => FlushCause::Deadline,
            _ => FlushCause::Explicit,
        }
    }
}

/// What a send queue counts.
#[derive(Default)]
#[repr(C, align(128))]
pub struct TxCounters {
    /// Announced to the device.
    pub opackets: AtomicU64,
    pub obytes: AtomicU64,
    /// Taken and freed: can never be sent, or the device refused.
    pub oerrors: AtomicU64,
    /// Not done when the queue was stopped: part of `opackets` where they were announced, else of `oerrors`.
    pub tx_undrained: AtomicU64,
    /// Rings of the tail, by [`FlushCause`].
    pub rings: [AtomicU64; 5],
    /// Longest time that a packet lay staged, in ns. Kept by the poll group.
    pub longest_wait_ns: AtomicU64,
    /// Stands in for a poll group's flag where the queue is in none.
    pub(super) no_group: AtomicU8,
}

impl TxCounters {
    #[inline(always)]
    pub fn sent(&self, pkts: u64, bytes: u64) {
        add(&self.opackets, pkts);
        add(&self.obytes, bytes);
    }
    pub fn error(&self, n: u64) {
        add(&self.oerrors, n);
    }
    pub fn undrained(&self, n: u64) {
        add(&self.tx_undrained, n);
    }
    #[inline(always)]
    pub fn ring(&self, cause: FlushCause) {
        add(&self.rings[cause as usize], 1);
    }
}
