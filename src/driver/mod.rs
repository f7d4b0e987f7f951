//! The contract that a driver signs, and all that a driver may use.
//!
//! A driver is one record, [`Driver`], whose `probe` makes a [`Device`]. The device makes queues; a queue has a cold side
//! ([`RxQueue`], [`TxQueue`]: set-up, start, stop) and a hot side ([`RxHot`], [`TxHot`]: the burst). The port layer calls
//! the cold side from one thread at a time while nobody bursts, and the hot side from the queue's thread alone.

mod counters;
mod ctx;
pub mod devargs;
mod event;
mod hot;
mod queue;

pub use counters::{FlushCause, RxCounters, TxCounters};
pub use ctx::{RxCtx, TxCtx};
pub use devargs::DevArgs;
pub use event::{Event, EventSink};
pub use hot::{RxBurstFn, RxEntry, RxHot, TxBatch, TxBurstFn, TxEntry, TxFlushFn, TxHot, rx_entry, tx_entry};
pub use queue::{RxQueue, TxQueue};

// What drivers build on, so that a driver's imports name this module alone.
pub use crate::base::{Errno, Error, Result, bits, cpu, time};
pub use crate::mbuf::{self, ExtShared, Mbuf, RawMbuf, check, flags, layout};
pub use crate::mem;
pub use crate::pool::{self, HEADROOM, Pool, PoolRef};
pub use crate::ring;
pub use crate::{fail, invalid, log_debug, log_error, log_info, log_warn};

use std::os::fd::RawFd;

/// Bytes of an Ethernet header, without tag and FCS (IEEE 802.3).
pub const ETHER_HDR_LEN: u32 = 14;
/// Bytes of a VLAN tag (IEEE 802.1Q).
pub const VLAN_TAG_LEN: u32 = 4;

/// How a device is told that packets are staged: what a ring of its tail costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doorbell {
    /// Nothing is staged: each packet goes out as it is taken. Deferring is refused.
    None,
    /// One store.
    Store,
    /// One system call.
    Syscall,
}

impl Doorbell {
    pub fn as_str(self) -> &'static str {
        match self {
            Doorbell::None => "none",
            Doorbell::Store => "store",
            Doorbell::Syscall => "system call",
        }
    }
}

/// What a driver is: one static record, one line of the driver table.
pub struct Driver {
    /// `net_null`; a device is named by it and a number.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Device keys and what they mean, in the order of the driver's page.
    pub keys: &'static [(&'static str, &'static str)],
    /// What it needs of the machine: privileges, files.
    pub needs: &'static str,
    pub doorbell: Doorbell,
    /// Makes a device. Takes nothing that it does not give back on failure or on drop.
    pub probe: fn(&DevArgs) -> Result<Box<dyn Device>>,
}

bitflags::bitflags! {
    /// What a device can do.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Caps: u32 {
        const PROMISC = 1 << 0;
        const SET_MAC = 1 << 1;
        const SET_MTU = 1 << 2;
        /// Receives packets of several segments when the port asks for it.
        const RX_SCATTER = 1 << 3;
        /// Sends packets of several segments.
        const TX_MULTI_SEG = 1 << 4;
        const SET_LINK = 1 << 5;
        /// A queue has a descriptor that becomes readable when packets wait.
        const RX_FD = 1 << 6;
        /// The input ends by itself (a capture): see [`Event::END_OF_INPUT`].
        const FINITE_INPUT = 1 << 7;
    }
}

/// What a device is and can do. Lengths in bytes, without FCS.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    pub max_rx_queues: u16,
    pub max_tx_queues: u16,
    /// Least, most and usual descriptors of a queue.
    pub desc: (u32, u32, u32),
    /// The longest packet that can be sent.
    pub tx_max_len: u32,
    pub tx_max_segs: u16,
    pub mtu: (u32, u32),
    pub caps: Caps,
    /// The kernel's name of the interface, where there is one.
    pub if_name: Option<String>,
    /// NUMA node, None where unknown.
    pub numa: Option<u32>,
}

impl Default for DeviceInfo {
    fn default() -> DeviceInfo {
        DeviceInfo {
            max_rx_queues: 1,
            max_tx_queues: 1,
            desc: (1, 32768, 512),
            tx_max_len: 65535,
            tx_max_segs: 64,
            mtu: (68, 65535 - ETHER_HDR_LEN - VLAN_TAG_LEN),
            caps: Caps::empty(),
            if_name: None,
            numa: None,
        }
    }
}

/// What a port asks of its device. The port layer has checked it against [`DeviceInfo`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceConfig {
    pub n_rx: u16,
    pub n_tx: u16,
    /// None: as it is.
    pub mtu: Option<u32>,
    /// Packets longer than a room are received as chains; else dropped and counted.
    pub scatter: bool,
}

/// Link as read, not assumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Link {
    pub up: bool,
    /// Mbit/s; 0 where unknown.
    pub speed: u32,
    pub full_duplex: bool,
}

/// Counters that the device or the kernel keeps, folded into the port's. All since the device was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceStats {
    pub imissed: u64,
    pub ierrors: u64,
    pub oerrors: u64,
}

/// A device of a driver: its control side. One thread at a time; nothing here is called by a burst.
pub trait Device: Send {
    fn info(&self) -> DeviceInfo;

    /// Sets queue counts, MTU and scatter. Queues made before are gone by then.
    fn configure(&mut self, c: &DeviceConfig) -> Result<()>;

    fn rx_queue(&mut self, queue: u16, n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>>;
    fn tx_queue(&mut self, queue: u16, n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>>;

    /// Packets that a receive queue of `n_desc` holds while it runs: the pool must have these beside those in use.
    fn rx_held(&self, _n_desc: u32) -> u32 {
        0
    }

    /// Called after every queue's `start`.
    fn start(&mut self) -> Result<()>;
    /// Called when the send queues have stopped, and before the receive queues' `stop`: what came in until then is theirs
    /// to count.
    fn stop(&mut self) -> Result<()>;
    /// Called once, with the queues gone; what it holds goes with the drop.
    fn close(&mut self) {}

    fn link(&mut self) -> Link;
    fn set_link(&mut self, _up: bool) -> Result<()> {
        not_supported("setting the link")
    }
    fn mac(&mut self) -> [u8; 6];
    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<()> {
        not_supported("setting the MAC address")
    }
    fn mtu(&mut self) -> u32;
    fn set_mtu(&mut self, _mtu: u32) -> Result<()> {
        not_supported("setting the MTU")
    }
    fn promiscuous(&mut self) -> bool {
        true
    }
    fn set_promiscuous(&mut self, _on: bool) -> Result<()> {
        not_supported("promiscuous mode")
    }

    fn stats(&mut self) -> DeviceStats {
        DeviceStats::default()
    }
    /// Adds this device's own named counters.
    fn xstats(&mut self, _out: &mut Vec<(String, u64)>) {}
    /// Where events of the device go; given once, before `configure`.
    fn set_events(&mut self, _sink: EventSink) {}
    /// For [`Caps::RX_FD`].
    fn rx_fd(&self, _queue: u16) -> Option<RawFd> {
        None
    }
}

fn not_supported(what: &str) -> Result<()> {
    fail!(NOTSUP, "{what} is not supported by this driver")
}

/// A locally administered address for device `n` of a driver that has none of its own: 02:62:6c (`bl`) and 24 bits.
pub fn local_mac(n: u32) -> [u8; 6] {
    let b = n.to_be_bytes();
    [0x02, 0x62, 0x6c, b[1], b[2], b[3]]
}
