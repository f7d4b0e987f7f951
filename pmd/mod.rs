//! The driver table: every driver there is, one line each. A plain static list: no constructors, no linker sections, so a
//! static, a shared and an LTO link all see the same drivers.

pub mod null;
pub mod pcap;
pub mod ring;
pub mod tap;

use crate::driver::Driver;

#[rustfmt::skip] // One line a driver, whatever the length.
pub static DRIVERS: &[&Driver] = &[
    &null::DRIVER,
    &pcap::DRIVER,
    &ring::DRIVER,
    &tap::DRIVER,
];
