//! What every driver promises, as one suite: each test runs for each driver of the table, and for the reference device of
//! `refdev`, which shows the faults that real devices show only by accident.
//!
//! `docs/contracts.md` lists the promises and names the test of each. A driver in the table without a rig in `rigs` fails.

mod support;

#[path = "conformance/bench.rs"]
mod bench;
#[path = "conformance/bursts.rs"]
mod bursts;
#[path = "conformance/child.rs"]
mod child;
#[path = "conformance/counters.rs"]
mod counters;
#[path = "conformance/empty_pool.rs"]
mod empty_pool;
#[path = "conformance/events.rs"]
mod events;
#[path = "conformance/flush.rs"]
mod flush;
#[path = "conformance/life.rs"]
mod life;
#[path = "conformance/ownership.rs"]
mod ownership;
#[path = "conformance/refdev.rs"]
mod refdev;
#[path = "conformance/rig_pcap.rs"]
mod rig_pcap;
#[path = "conformance/rig_ring.rs"]
mod rig_ring;
#[path = "conformance/rig_tap.rs"]
mod rig_tap;
#[path = "conformance/rigs.rs"]
mod rigs;
#[path = "conformance/threads.rs"]
mod threads;
