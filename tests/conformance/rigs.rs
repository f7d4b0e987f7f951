//! How the suite gets at each driver: makes a port, lets traffic arrive at it, and sees what leaves it.
//!
//! A driver in the table without a rig here fails the suite by its name.

use crate::refdev;
use crate::rig_pcap::PcapRig;
use crate::rig_ring::RingRig;
use crate::rig_tap::TapRig;
use crate::support::run::unique;
use burstline::driver::{DevArgs, Driver};
use burstline::port::Port;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a test needs of a port, before there is one.
#[derive(Clone, Debug)]
pub struct Ask {
    pub n_rx: u16,
    pub n_tx: u16,
    /// Frames that will arrive at queue 0, each of `len` bytes.
    pub offer: usize,
    pub len: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { n_rx: 1, n_tx: 1, offer: 0, len: 64 }
    }
}

/// The far side of a port.
pub trait Far: Send + Sync {
    /// Lets the frames that were asked for arrive; called once, with the port started. Queue 0 gets them.
    fn offer(&mut self);
    /// Frames offered so far by the driver's own definition; None where it makes them on demand.
    fn offered(&mut self) -> Option<u64>;
    /// The frames that left since the last call, oldest first; None where nobody sees them.
    fn sent(&mut self) -> Option<Vec<Vec<u8>>>;
    /// The far side takes this many frames more, and no others, until the next call. False where it cannot be held.
    fn credit(&mut self, _frames: usize) -> bool {
        false
    }
    /// The reference device's switches.
    fn reference(&self) -> Option<&refdev::Far> {
        None
    }
}

pub trait Rig: Sync {
    fn name(&self) -> &'static str;
    /// False where this machine cannot run the driver; says why.
    fn here(&self) -> bool {
        true
    }
    /// False where packets come from elsewhere than the receive queue's pool.
    fn receives_into_its_pool(&self) -> bool {
        true
    }
    /// True where each start offers everything anew.
    fn starts_over(&self) -> bool {
        false
    }
    /// A port that nobody configured yet.
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>);
}

/// Every rig.
const RIGS: &[&dyn Rig] = &[&RefRig, &NullRig, &RingRig, &TapRig, &PcapRig];

/// Runs `f` for every driver there is; a failure names the driver.
pub fn each(f: impl Fn(&dyn Rig)) {
    for rig in RIGS {
        if rig.here() {
            let _named = Named(rig.name());
            f(*rig);
        }
    }
}

struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the driver was {}", self.0);
        }
    }
}

#[test]
fn every_driver_in_the_table_has_a_rig() {
    for d in burstline::pmd::DRIVERS {
        assert!(
            RIGS.iter().any(|r| r.name() == d.name),
            "{} has no rig: it is not proved to keep the contract",
            d.name
        );
    }
}

/// A port of a driver in the table, by device arguments. Its name is this call's own.
pub fn probe(driver: &str, args: &str) -> Port {
    let d: &Driver = burstline::pmd::DRIVERS.iter().copied().find(|d| d.name == driver).expect("a driver in the table");
    let args = DevArgs::parse(&format!("{driver}{}{args}", unique())).unwrap();
    Port::attach(&args.name, d, (d.probe)(&args).unwrap()).unwrap()
}

struct NullRig;

impl Rig for NullRig {
    fn name(&self) -> &'static str {
        "net_null"
    }
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>) {
        (probe("net_null", &format!(",size={}", ask.len)), Box::new(NullFar))
    }
}

struct NullFar;

impl Far for NullFar {
    fn offer(&mut self) {}
    fn offered(&mut self) -> Option<u64> {
        None
    }
    fn sent(&mut self) -> Option<Vec<Vec<u8>>> {
        None
    }
}

pub struct RefRig;

impl Rig for RefRig {
    fn name(&self) -> &'static str {
        "ref"
    }
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>) {
        let (dev, far) = refdev::device();
        let port = Port::attach(&format!("ref{}", unique()), &refdev::DRIVER, dev).unwrap();
        (port, Box::new(RefFar { far, ask: ask.clone() }))
    }
}

struct RefFar {
    far: Arc<refdev::Far>,
    ask: Ask,
}

impl Far for RefFar {
    fn offer(&mut self) {
        for i in 0..self.ask.offer {
            self.far.offer(0, crate::bench::frame(i as u32, self.ask.len));
        }
    }
    fn offered(&mut self) -> Option<u64> {
        Some(self.far.offered.load(Relaxed) as u64)
    }
    fn sent(&mut self) -> Option<Vec<Vec<u8>>> {
        Some(std::mem::take(&mut *self.far.out.lock().unwrap()).into_iter().map(|(_, f)| f).collect())
    }
    fn credit(&mut self, frames: usize) -> bool {
        self.far.credit.store(frames, Relaxed);
        true
    }
    fn reference(&self) -> Option<&refdev::Far> {
        Some(&self.far)
    }
}
