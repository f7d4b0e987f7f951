//! The drivers that are built in.

use super::guard::control;
use super::sized::{fixed, write};
use crate::driver::Doorbell;
use crate::eal::drivers;
use crate::invalid;
use core::ffi::{c_char, c_int};

/// Doorbell: nothing is staged, each packet goes out as it is taken. Deferring is refused.
pub const BL_DOORBELL_NONE: u32 = 0;
/// Doorbell: one store.
pub const BL_DOORBELL_STORE: u32 = 1;
/// Doorbell: one system call.
pub const BL_DOORBELL_SYSCALL: u32 = 2;

/// A driver. Texts end with NUL, and are cut where they are longer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_driver_info {
    /// "net_null"; a device is named by it and a number.
    pub name: [c_char; 64],
    /// One line for lists.
    pub summary: [c_char; 192],
    /// What it needs of the machine.
    pub needs: [c_char; 192],
    /// BL_DOORBELL_…: what it costs to tell the device that packets wait.
    pub doorbell: u32,
    pub reserved: u32,
}

pub(super) fn doorbell(d: Doorbell) -> u32 {
    match d {
        Doorbell::None => BL_DOORBELL_NONE,
        Doorbell::Store => BL_DOORBELL_STORE,
        Doorbell::Syscall => BL_DOORBELL_SYSCALL,
    }
}

/// How many drivers are built in. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_driver_count() -> u32 {
    drivers().len() as u32
}

/// Driver `i` of `bl_driver_count`, into the `size` bytes of `info`. Errors: -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_driver_get(i: u32, info: *mut bl_driver_info, size: usize) -> c_int {
    control(|| {
        let all = drivers();
        let Some(d) = all.get(i as usize) else { return invalid!("driver {i}: there are {}", all.len()) };
        let (name, summary, needs) = (fixed(d.name), fixed(d.summary), fixed(d.needs));
        let value = bl_driver_info { name, summary, needs, doorbell: doorbell(d.doorbell), reserved: 0 };
        // SAFETY: `size` bytes by this function's contract.
        unsafe { write(info, size, value, "info") }
    })
}
