//! `net_tap`: a port that is an interface of this kernel. What the kernel sends on the interface is received here, what is
//! sent here the kernel receives.

mod device;
mod idle;
pub mod kernel;
mod rx;
mod sys;
#[cfg(test)]
mod tests;
mod tx;

use crate::driver::*;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

pub static DRIVER: Driver = Driver {
    name: "net_tap",
    summary: "an interface of this kernel: what the kernel sends is received, what is sent the kernel receives",
    keys: &[
        (
            "iface",
            "name of the interface, or a pattern with %d (dtap%d); one that is there, persistent and idle, is taken",
        ),
        ("mac", "station address, or `fixed`: 00:64:74:61:70 and the device's number (the kernel's choice)"),
        ("mtu", "68 to 65521 (1500)"),
        ("carrier", "0: without carrier until the link is set (1)"),
        ("persist", "1: the interface stays when the port is closed (0)"),
        ("fds", "descriptors of /dev/net/tun that a helper opened, one a queue, as 3:4"),
    ],
    needs: "/dev/net/tun, and CAP_NET_ADMIN or a persistent interface of this user's or ready-made descriptors",
    // One write a frame: there is no tail to ring.
    doorbell: Doorbell::None,
    probe: device::probe,
};

const KEYS: &[&str] = &["iface", "mac", "mtu", "carrier", "persist", "fds"];

/// Queues of a port; the kernel allows 256.
const MAX_PORT_QUEUES: u16 = 16;
/// Segments of a sent packet.
const MAX_TX_SEGS: usize = 128;
/// What stands around the MTU in a frame: header and two tags (IEEE 802.1ad).
const AROUND_MTU: u32 = ETHER_HDR_LEN + 2 * VLAN_TAG_LEN;

/// What the device and its queues look at together.
struct Shared {
    /// The longest frame that the MTU lets through, tags included.
    max_frame: AtomicU32,
    gone: AtomicBool,
    /// The carrier that this port took away: the kernel would receive without one.
    cut: AtomicBool,
    /// Queues can be taken out of the kernel's choice.
    multi_queue: bool,
    events: EventSink,
}

impl Shared {
    fn max_frame(&self) -> u32 {
        self.max_frame.load(Relaxed)
    }

    fn set_mtu(&self, mtu: u32) {
        self.max_frame.store(mtu.saturating_add(AROUND_MTU).min(kernel::MAX_FRAME as u32), Relaxed);
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// The interface was deleted: said once.
    #[cold]
    fn gone(&self) {
        if !self.gone.swap(true, Relaxed) {
            self.events.raise(Event::REMOVED);
        }
    }
}
