//! Thread slots.

use super::guard::{control, number};
use crate::fail;
use crate::pool::slot;
use core::ffi::c_int;

/// Gives the calling thread a slot: caches of the pools it uses. Returns its number. Threads without one work too, through the
/// pools' shared rings. Errors: -EEXIST where it has one, -ENOSPC where 128 threads have. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_thread_register() -> c_int {
    number(slot::register_current)
}

/// Ends the calling thread's slot: its queues are unbound, its caches go back to their pools. The end of a thread does the same.
/// Errors: -ENOENT where it has none. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_thread_unregister() -> c_int {
    control(|| if slot::unregister_current() { Ok(()) } else { fail!(NOENT, "this thread is not registered") })
}

/// The calling thread's slot, or -ENOENT (without a text). Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_thread_id() -> c_int {
    match slot::current() {
        slot::NO_SLOT => -libc::ENOENT,
        id => id as c_int,
    }
}
