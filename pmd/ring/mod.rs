//! `net_ring`: ports over rings of packets. A packet travels by reference: nothing is copied, and it goes back to the pool
//! that it came from.
//!
//! Alone, a port is its own loopback: what is sent on queue i is received on queue i. With `link=NAME`, two ports are the
//! two ends of a cable. [`from_rings`] makes a device of rings that a program brings.

mod link;
mod queue;
/// The driver's page: its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/drivers/ring.md")]
struct Page;
#[cfg(test)]
mod tests;

use crate::driver::*;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use link::Seat;
use queue::{RingRx, RingTx};
use ring::{Ring, Sync};
use std::sync::Arc;

pub static DRIVER: Driver = Driver {
    name: "net_ring",
    summary: "passes packets by reference: a loopback, or a cable between two ports",
    keys: &[
        ("link", "name of a cable: two ports that name the same one are its ends (a loopback)"),
        ("size", "packets that a queue's ring holds: 1 to 1048576 (1024)"),
        ("mac", "station address (a locally administered one)"),
    ],
    needs: "nothing",
    doorbell: Doorbell::Store,
    probe,
};

const KEYS: &[&str] = &["link", "size", "mac"];
/// As many as a port may have.
const MAX_QUEUES: usize = 32;
const DEFAULT_SIZE: u64 = 1024;
/// 8 MiB of pointers a queue: more packets than that in flight are a leak.
const MAX_SIZE: u64 = 1 << 20;

/// Where a device's rings come from. Each is made when a queue first wants it, and lives until the last close.
enum Road {
    Loop(Vec<Option<Arc<Ring>>>),
    Link(Seat),
    Given { rx: Vec<Arc<Ring>>, tx: Vec<Arc<Ring>> },
    Closed,
}

struct RingDevice {
    name: String,
    size: u32,
    road: Road,
    /// What send queues look at: with a link, it is of both ends.
    carrier: Arc<AtomicBool>,
    scatter: bool,
    /// None: 1500 is reported, and no length is refused that a packet may have.
    mtu: Option<u32>,
    mac: [u8; 6],
    /// Left in the rings at close.
    imissed: u64,
}

fn probe(args: &DevArgs) -> Result<Box<dyn Device>> {
    args.check_keys(KEYS)?;
    let size = args.number("size", 1..=MAX_SIZE)?.unwrap_or(DEFAULT_SIZE) as u32;
    let mac = args.mac("mac")?;
    let mut d = device(&args.name, size, Road::Loop(vec![None; MAX_QUEUES]));
    if let Some(link) = args.str("link")? {
        let (seat, carrier) = Seat::take(link, size, &args.name)?;
        d.road = Road::Link(seat);
        d.carrier = carrier;
    }
    d.mac = mac.unwrap_or(d.mac);
    Ok(Box::new(d))
}

fn device(name: &str, size: u32, road: Road) -> RingDevice {
    let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    RingDevice {
        name: name.into(),
        size,
        road,
        carrier: Arc::new(AtomicBool::new(true)),
        scatter: false,
        mtu: None,
        // Apart from other drivers' devices of the same number.
        mac: local_mac(0x0010_0000 | (number & 0xf_ffff)),
        imissed: 0,
    }
}

/// A device over rings that the program brings: it receives on queue i from `rx[i]` and sends on queue i into `tx[i]`.
/// Put it into the port table with `Port::attach(name, &DRIVER, device)`.
///
/// Two devices over the same rings, crossed, are a cable. The rings outlive the device; whoever lets go of a ring last
/// owns what is in it: where that is the device, it frees the packets and counts them as `imissed`.
///
/// Send stages, and a staging producer is alone on its side: -EINVAL for a ring of `tx` whose producer side is not
/// [`Sync::Single`], for a ring of `rx` whose consumer side is not, for a ring twice in `rx` or in `tx`, for more than 32
/// of either, or for none at all.
///
/// # Safety
/// Whatever is put into a ring of `rx` is a packet ([`Mbuf::into_raw`]) that the ring's consumer then owns. While the port
/// is open, nobody else takes from a ring of `rx` or puts into a ring of `tx`, except a second device that has them crossed.
pub unsafe fn from_rings(name: &str, rx: Vec<Arc<Ring>>, tx: Vec<Arc<Ring>>) -> Result<Box<dyn Device>> {
    if rx.is_empty() && tx.is_empty() {
        return invalid!("{name}: no ring to receive from and none to send into; at least one is needed");
    }
    for (what, rings) in [("receive", &rx), ("send", &tx)] {
        if rings.len() > MAX_QUEUES {
            return invalid!("{name}: {} rings to {what}; the limit is {MAX_QUEUES}", rings.len());
        }
        for (i, r) in rings.iter().enumerate() {
            if let Some(first) = rings[..i].iter().position(|o| Arc::ptr_eq(o, r)) {
                return invalid!("{name}: ring '{}' is {what} queue {first} and again {what} queue {i}", r.name());
            }
            let (side, mode) = if what == "send" { ("producer", r.prod_mode()) } else { ("consumer", r.cons_mode()) };
            if mode != Sync::Single {
                return invalid!(
                    "{name}: ring '{}' of {what} queue {i} has a {side} side for many threads; a port's must be Single",
                    r.name()
                );
            }
        }
    }
    let size = rx.iter().chain(&tx).map(|r| r.capacity()).max().unwrap_or(1);
    Ok(Box::new(device(name, size, Road::Given { rx, tx })))
}

/// A ring of one queue, used by one thread on each side.
fn new_ring(name: &str, size: u32) -> Result<Arc<Ring>> {
    Ring::new(name, size, Sync::Single, Sync::Single, true).map(Arc::new)
}

/// Frees what is in a ring that nobody takes from any more; returns how many packets that were.
fn drain(ring: &Ring) -> u64 {
    let mut n = 0;
    let mut words = [const { core::mem::MaybeUninit::uninit() }; 64];
    loop {
        let got = ring.dequeue_burst(&mut words);
        for w in words.iter().take(got) {
            // SAFETY: the first `got` were written. A word in one of our rings is a packet that left its sender: it is ours.
            let p = unsafe { w.assume_init() }.cast::<RawMbuf>();
            if let Some(p) = core::ptr::NonNull::new(p) {
                // SAFETY: as above.
                drop(unsafe { Mbuf::from_raw(p) });
            }
        }
        n += got as u64;
        if got == 0 {
            return n;
        }
    }
}

/// Lets go of rings; what is in those that nobody else has is freed and counted.
fn let_go(rings: impl IntoIterator<Item = Arc<Ring>>) -> u64 {
    rings.into_iter().filter_map(Arc::into_inner).map(|r| drain(&r)).sum()
}

impl RingDevice {
    fn ring(&mut self, queue: u16, receive: bool) -> Result<Arc<Ring>> {
        let i = usize::from(queue);
        let found = match &mut self.road {
            Road::Loop(rings) => match rings.get_mut(i) {
                Some(Some(r)) => Some(r.clone()),
                Some(none) => Some(none.insert(new_ring(&format!("{}_{i}", self.name), self.size)?).clone()),
                None => None,
            },
            Road::Link(seat) => Some(seat.ring(i, receive)?),
            Road::Given { rx, tx } => if receive { rx.get(i) } else { tx.get(i) }.cloned(),
            Road::Closed => None,
        };
        match found {
            Some(r) => Ok(r),
            None => invalid!("{}: there is no ring for queue {queue}", self.name),
        }
    }

    fn release(&mut self) {
        self.imissed += match core::mem::replace(&mut self.road, Road::Closed) {
            Road::Loop(rings) => let_go(rings.into_iter().flatten()),
            Road::Link(seat) => seat.leave(),
            Road::Given { rx, tx } => let_go(rx.into_iter().chain(tx)),
            Road::Closed => 0,
        };
    }
}

impl Drop for RingDevice {
    fn drop(&mut self) {
        self.release();
    }
}

impl Device for RingDevice {
    fn info(&self) -> DeviceInfo {
        let (max_rx_queues, max_tx_queues) = match &self.road {
            Road::Given { rx, tx } => (rx.len() as u16, tx.len() as u16),
            _ => (MAX_QUEUES as u16, MAX_QUEUES as u16),
        };
        let usual = DeviceInfo::default();
        let (least, most, _) = usual.desc;
        DeviceInfo {
            max_rx_queues,
            max_tx_queues,
            // They bound the fill level only: the ring is as long as `size` says.
            desc: (least, most, self.size.min(most)),
            tx_max_len: self.mtu.map_or(usual.tx_max_len, |m| m + ETHER_HDR_LEN + 2 * VLAN_TAG_LEN),
            tx_max_segs: u16::MAX,
            caps: Caps::SET_MAC | Caps::SET_LINK | Caps::RX_SCATTER | Caps::TX_MULTI_SEG,
            ..usual
        }
    }

    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        self.scatter = c.scatter;
        self.mtu = c.mtu.or(self.mtu);
        Ok(())
    }

    fn rx_queue(&mut self, queue: u16, _n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        Ok(Box::new(RingRx::new(ctx, self.ring(queue, true)?, self.scatter)))
    }

    fn tx_queue(&mut self, queue: u16, _n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        Ok(Box::new(RingTx::new(ctx, self.ring(queue, false)?, self.carrier.clone())))
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(&mut self) {
        self.release();
    }

    fn link(&mut self) -> Link {
        let up = self.carrier.load(Relaxed);
        Link { up, speed: if up { 10_000 } else { 0 }, full_duplex: true }
    }

    fn set_link(&mut self, up: bool) -> Result<()> {
        match &self.road {
            Road::Link(seat) => seat.set_up(up),
            _ => self.carrier.store(up, Relaxed),
        }
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
        self.mtu.unwrap_or(1500)
    }

    fn stats(&mut self) -> DeviceStats {
        DeviceStats { imissed: self.imissed, ..DeviceStats::default() }
    }

    fn set_events(&mut self, sink: EventSink) {
        if let Road::Link(seat) = &self.road {
            seat.set_events(sink);
        }
    }
}
