//! What can be read and set on a port while it runs: link, station address, MTU, promiscuous mode.

use super::guard::{control, not_null, number};
use super::sized::write;
use crate::port::Port;
use core::ffi::c_int;

/// A port's link, as read now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_link {
    /// Mbit/s; 0 where unknown.
    pub speed: u32,
    pub up: u8,
    pub full_duplex: u8,
    pub reserved: u16,
}

/// The link, read from the device, into the `size` bytes of `link`. Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_link_get(port: u16, link: *mut bl_link, size: usize) -> c_int {
    control(|| {
        let l = Port::by_id(port)?.link();
        let value = bl_link { speed: l.speed, up: l.up.into(), full_duplex: l.full_duplex.into(), reserved: 0 };
        // SAFETY: `size` bytes by this function's contract.
        unsafe { write(link, size, value, "link") }
    })
}

/// Sets the link up (1) or down (0). Errors: -ENOTSUP, -ENODEV, what the device says. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_link_set(port: u16, up: c_int) -> c_int {
    control(|| Port::by_id(port)?.set_link(up != 0))
}

/// The station address: 6 bytes to `mac`. Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mac_get(port: u16, mac: *mut u8) -> c_int {
    control(|| {
        not_null(mac, "mac")?;
        // SAFETY: six bytes by this function's contract.
        unsafe { mac.cast::<[u8; 6]>().write(Port::by_id(port)?.mac()) };
        Ok(())
    })
}

/// Sets the station address to the 6 bytes at `mac`. Errors: -EINVAL for a group or all-zero one, -ENOTSUP, -ENODEV. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mac_set(port: u16, mac: *const u8) -> c_int {
    control(|| {
        not_null(mac, "mac")?;
        // SAFETY: as above.
        Port::by_id(port)?.set_mac(unsafe { mac.cast::<[u8; 6]>().read() })
    })
}

/// The MTU in bytes, to `mtu`: without Ethernet header, VLAN tag and FCS. Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mtu_get(port: u16, mtu: *mut u32) -> c_int {
    control(|| {
        not_null(mtu, "mtu")?;
        // SAFETY: room for one by this function's contract.
        unsafe { *mtu = Port::by_id(port)?.mtu() };
        Ok(())
    })
}

/// Sets the MTU. Errors: -EINVAL with the device's range, -ENOTSUP, -ENODEV. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_mtu_set(port: u16, mtu: u32) -> c_int {
    control(|| Port::by_id(port)?.set_mtu(mtu))
}

/// 1 in promiscuous mode, else 0. Errors: -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_promiscuous_get(port: u16) -> c_int {
    number(|| Ok(Port::by_id(port)?.promiscuous().into()))
}

/// Sets promiscuous mode on (1) or off (0). Errors: -ENOTSUP, -ENODEV. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_promiscuous_set(port: u16, on: c_int) -> c_int {
    control(|| Port::by_id(port)?.set_promiscuous(on != 0))
}
