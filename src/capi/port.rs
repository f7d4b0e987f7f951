//! Ports: finding them, what they are, and their life.

use super::guard::{control, number, str_arg};
use super::sized::{Conf, fixed, read, write};
use crate::driver::Caps;
use crate::port::wrap::parse_and_wrap;
use crate::port::{self, Port, PortConfig, State};
use core::ffi::{c_char, c_int};

/// Ports at once; their numbers are below this.
pub const BL_MAX_PORTS: u32 = 64;
/// Queues of a kind of a port; their numbers are below this.
pub const BL_MAX_QUEUES: u32 = 32;
/// A port's state, in the order of its life: probed, configured, started, stopped.
pub const BL_PORT_PROBED: u32 = 0;
pub const BL_PORT_CONFIGURED: u32 = 1;
pub const BL_PORT_STARTED: u32 = 2;
pub const BL_PORT_STOPPED: u32 = 3;
/// Capability: promiscuous mode can be set.
pub const BL_CAP_PROMISC: u32 = 1;
/// Capability: the station address can be set.
pub const BL_CAP_SET_MAC: u32 = 2;
/// Capability: the MTU can be set.
pub const BL_CAP_SET_MTU: u32 = 4;
/// Capability: packets longer than a room are received as chains, where the port asks for it.
pub const BL_CAP_RX_SCATTER: u32 = 8;
/// Capability: packets of several segments are sent.
pub const BL_CAP_TX_MULTI_SEG: u32 = 16;
/// Capability: the link can be set up and down.
pub const BL_CAP_SET_LINK: u32 = 32;
/// Capability: receive queues have a descriptor to wait for packets on.
pub const BL_CAP_RX_FD: u32 = 64;
/// Capability: the input ends by itself, as a capture does (BL_EVENT_END_OF_INPUT).
pub const BL_CAP_FINITE_INPUT: u32 = 128;

const _: () = {
    assert!(BL_MAX_PORTS as usize == port::MAX_PORTS && BL_MAX_QUEUES as usize == port::MAX_QUEUES);
    assert!(BL_CAP_PROMISC == Caps::PROMISC.bits() && BL_CAP_SET_MAC == Caps::SET_MAC.bits());
    assert!(BL_CAP_SET_MTU == Caps::SET_MTU.bits() && BL_CAP_RX_SCATTER == Caps::RX_SCATTER.bits());
    assert!(BL_CAP_TX_MULTI_SEG == Caps::TX_MULTI_SEG.bits() && BL_CAP_SET_LINK == Caps::SET_LINK.bits());
    assert!(BL_CAP_RX_FD == Caps::RX_FD.bits() && BL_CAP_FINITE_INPUT == Caps::FINITE_INPUT.bits());
};

/// What a program asks of a port.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_port_conf {
    /// sizeof(struct bl_port_conf).
    pub size: usize,
    /// Receive queues and send queues; at least one in all.
    pub n_rx: u16,
    pub n_tx: u16,
    /// Largest packet without Ethernet header, VLAN tag and FCS; 0: as the device has it.
    pub mtu: u32,
    /// 1: receive packets longer than a room as chains. 0: drop them, and count ierrors.
    pub scatter: u32,
    pub reserved: u32,
}

// SAFETY: size first, then integers.
unsafe impl Conf for bl_port_conf {}

/// What a port is now, and what its device can do. Lengths in bytes, without FCS.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_port_info {
    pub name: [c_char; 64],
    pub driver: [c_char; 64],
    /// The kernel's name of the interface, else "".
    pub if_name: [c_char; 64],
    pub port: u16,
    /// Queues that are configured, and that the device can have.
    pub n_rx: u16,
    pub n_tx: u16,
    pub max_rx: u16,
    pub max_tx: u16,
    /// Segments of a packet to send, at most.
    pub tx_max_segs: u16,
    pub mac: [u8; 6],
    pub promiscuous: u8,
    pub scatter: u8,
    /// BL_PORT_…
    pub state: u32,
    /// BL_CAP_… or-ed.
    pub caps: u32,
    /// BL_DOORBELL_…
    pub doorbell: u32,
    /// Descriptors of a queue: least, most, and what 0 stands for.
    pub desc_min: u32,
    pub desc_max: u32,
    pub desc_default: u32,
    /// The longest packet that can be sent.
    pub tx_max_len: u32,
    pub mtu: u32,
    pub mtu_min: u32,
    pub mtu_max: u32,
    /// NUMA node; -1 where unknown.
    pub numa: i32,
    /// Bytes of the pages under the first receive queue's packets; 0 without one.
    pub pool_page: u64,
}

const _: () = assert!(size_of::<bl_port_info>() == 264 && size_of::<bl_port_conf>() == 24);

fn info(port: &Port) -> bl_port_info {
    let i = port.info();
    bl_port_info {
        name: fixed(&i.name),
        driver: fixed(i.driver),
        if_name: fixed(i.device.if_name.as_deref().unwrap_or("")),
        port: i.id,
        n_rx: i.n_rx,
        n_tx: i.n_tx,
        max_rx: i.device.max_rx_queues,
        max_tx: i.device.max_tx_queues,
        tx_max_segs: i.device.tx_max_segs,
        mac: i.mac,
        promiscuous: i.promiscuous.into(),
        scatter: i.scatter.into(),
        state: match i.state {
            State::Probed => BL_PORT_PROBED,
            State::Configured => BL_PORT_CONFIGURED,
            State::Started => BL_PORT_STARTED,
            State::Stopped | State::Closed => BL_PORT_STOPPED,
        },
        caps: i.device.caps.bits(),
        doorbell: super::driver::doorbell(i.doorbell),
        desc_min: i.device.desc.0,
        desc_max: i.device.desc.1,
        desc_default: i.device.desc.2,
        tx_max_len: i.device.tx_max_len,
        mtu: i.mtu,
        mtu_min: i.device.mtu.0,
        mtu_max: i.device.mtu.1,
        numa: i.device.numa.and_then(|n| i32::try_from(n).ok()).unwrap_or(-1),
        pool_page: i.pool_page as u64,
    }
}

/// How many ports are open. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_count() -> u32 {
    Port::all().len() as u32
}

/// The first open port from number `from` on, or -ENODEV (without a text) where there is none: for walking over all.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_next(from: u32) -> c_int {
    Port::all().iter().map(|p| c_int::from(p.id())).find(|id| *id as u32 >= from).unwrap_or(-libc::ENODEV)
}

/// The number of the port of this name, or -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_port_by_name(name: *const c_char) -> c_int {
    // SAFETY: a C string by this function's contract.
    number(|| Port::by_name(unsafe { str_arg(name, "name") }?).map(|p| p.id().into()))
}

/// The port as it is now, into the `size` bytes of `info`. Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_port_info_get(port: u16, out: *mut bl_port_info, size: usize) -> c_int {
    // SAFETY: `size` bytes by this function's contract.
    control(|| unsafe { write(out, size, info(&Port::by_id(port)?), "info") })
}

/// Sets queue counts, MTU and scatter of a port that is not started; queues that were set up before are gone.
/// Errors: -EINVAL and -ENOTSUP with what the device can do, -EBUSY where it runs or a queue is in a poll group, -ENODEV,
/// -E2BIG. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_port_configure(port: u16, conf: *const bl_port_conf) -> c_int {
    control(|| {
        // SAFETY: a configuration of its own size by this function's contract.
        let c = unsafe { read(conf, "conf") }?;
        let mtu = (c.mtu != 0).then_some(c.mtu);
        Port::by_id(port)?.configure(&PortConfig { n_rx: c.n_rx, n_tx: c.n_tx, mtu, scatter: c.scatter != 0 })
    })
}

/// Starts the port's queues. Errors: -EINVAL for a queue that was not set up, -EBUSY before bl_port_configure, what the device
/// says; nothing runs then. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_start(port: u16) -> c_int {
    control(|| Port::by_id(port)?.start())
}

/// Stops the port: from the return on no queue runs, what was staged is announced, and every packet that its queues held is
/// back in its pool. Bursts on it give 0 from then on. Returns how many announced packets the device had not sent within a
/// second (also xstat tx_undrained); 0 for all well, and on a port that does not run.
/// Errors: -EBUSY, with nothing changed, where a thread stays inside a burst for over a second; -ENODEV.
/// Any thread, also while others burst.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_stop(port: u16) -> c_int {
    number(|| Port::by_id(port)?.stop())
}

/// Stops and closes the port. Bursts on it give 0. Its number may be used again from then on; that of a port which `bl_init`
/// made, after `bl_cleanup`.
/// Errors: as bl_port_stop. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_close(port: u16) -> c_int {
    control(|| Port::by_id(port)?.close())
}

/// Puts a port around the port, before it is configured: "trace,file=trace.txt" writes down every packet, "fault,rx_drop=0.01" loses some.
/// Errors: -EINVAL with the key or value and what is allowed, -EBUSY where it is configured, -ENODEV. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_port_wrap(port: u16, spec: *const c_char) -> c_int {
    // SAFETY: a C string by this function's contract.
    control(|| parse_and_wrap(&Port::by_id(port)?, unsafe { str_arg(spec, "spec") }?))
}
