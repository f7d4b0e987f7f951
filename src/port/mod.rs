//! Ports: a device, its queues, and the rows that bursts go through.

mod closed;
mod ctl;
mod ends;
mod events;
mod poll_group;
#[allow(clippy::module_inception)]
mod port;
mod queues;
pub mod row;
mod stats;
#[cfg(test)]
mod tests;
pub mod wrap;

pub use events::events_fd;
pub use poll_group::{MAX_GROUP, PollGroup};
pub use port::{Port, PortInfo};
pub use queues::{RxPoller, RxQueue, TxPoller, TxQueue};
pub use row::{MAX_PORTS, MAX_QUEUES, Row};
pub use stats::Stats;

use core::sync::atomic::{AtomicBool, Ordering::*};
use core::time::Duration;
use std::sync::Once;

/// How long stop waits for a thread inside a burst, and for a device to finish what it was told.
pub const STOP_LIMIT: Duration = Duration::from_secs(1);

/// Where a port stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Probed,
    Configured,
    Started,
    Stopped,
    Closed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Probed => "not configured",
            State::Configured => "configured",
            State::Started => "started",
            State::Stopped => "stopped",
            State::Closed => "closed",
        }
    }

    /// The answer to a call that this state does not allow: -ENODEV on a closed port, else -EBUSY.
    fn refuse<T>(self, port: &str, why: &str) -> crate::base::Result<T> {
        match self {
            State::Closed => crate::fail!(NODEV, "port {port} is closed"),
            s => crate::fail!(BUSY, "port {port} is {}: {why}", s.as_str()),
        }
    }
}

/// What a program asks of a port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    pub n_rx: u16,
    pub n_tx: u16,
    /// None: as the device has it.
    pub mtu: Option<u32>,
    /// Receive packets longer than a room as chains; else they are dropped and counted.
    pub scatter: bool,
}

impl Default for PortConfig {
    fn default() -> PortConfig {
        PortConfig { n_rx: 1, n_tx: 1, mtu: None, scatter: false }
    }
}

static CHECKS: AtomicBool = AtomicBool::new(false);

/// Debug mode: a queue used by another thread than its owner is reported, and the call does nothing. Takes effect when a
/// queue is next started or bound.
pub fn set_checks(on: bool) {
    CHECKS.store(on, Relaxed);
}

fn checks_on() -> bool {
    CHECKS.load(Relaxed)
}

/// What must be in place before the first port.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::base::cpu::membarrier_init();
        crate::pool::slot::set_end_hook(unbind_slot);
    });
}

/// A thread's slot ends: its queues go back to the shared ring. Runs on that thread.
fn unbind_slot(slot: u32) {
    for p in Port::all() {
        let c = p.inner().ctl();
        for e in c.rx.iter().flatten().filter(|e| e.owner.slot() == Some(slot)) {
            e.unbind();
        }
        for (e, _) in c.tx.iter().flatten().filter(|(e, _)| e.owner.slot() == Some(slot)) {
            e.unbind();
        }
    }
}
