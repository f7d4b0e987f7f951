//! What ports tell their program outside the bursts.

use super::guard::{control, number};
use crate::driver::Event;
use crate::invalid;
use crate::port::{self, Port};
use core::ffi::{c_int, c_void};

/// Event: the link went up or down.
pub const BL_EVENT_LINK: u32 = 1;
/// Event: a capture was read to its end. Receive gives 0 from then on, the link stays up, send goes on.
pub const BL_EVENT_END_OF_INPUT: u32 = 2;
/// Event: the device is gone.
pub const BL_EVENT_REMOVED: u32 = 4;
/// Event: the device was reset, and must be started again.
pub const BL_EVENT_RESET: u32 = 8;

const _: () = {
    assert!(BL_EVENT_LINK == Event::LINK.bits() && BL_EVENT_END_OF_INPUT == Event::END_OF_INPUT.bits());
    assert!(BL_EVENT_REMOVED == Event::REMOVED.bits() && BL_EVENT_RESET == Event::RESET.bits());
};

/// Called with the port's number and BL_EVENT_… or-ed.
pub type bl_event_fn = Option<unsafe extern "C" fn(port: u16, events: u32, user: *mut c_void)>;

struct User(*mut c_void);
// SAFETY: the program gives it for calls on a thread of the library's.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

/// A descriptor that is readable while some port has events that nobody took; the library's, never to be closed.
/// -errno where the kernel gives none. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_events_fd() -> c_int {
    number(|| port::events_fd().map(|fd| fd as u32))
}

/// What happened on the port since the last call: BL_EVENT_… or-ed. Errors: -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_events_take(port: u16) -> c_int {
    number(|| Ok(Port::by_id(port)?.take_events().bits()))
}

/// Calls `cb` with the port's events, on a control thread of the library's, until the port is closed. Links are looked at ten
/// times a second. `cb` may call anything, but not wait for another callback; it must not throw. Errors: -EINVAL, -ENODEV.
/// Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_on_event(port: u16, cb: bl_event_fn, user: *mut c_void) -> c_int {
    control(|| {
        let Some(cb) = cb else { return invalid!("cb is NULL") };
        let user = User(user);
        Port::by_id(port)?.on_event(move |port, e| {
            let User(user) = &user;
            // SAFETY: the program's function and its argument, as it gave them together.
            unsafe { cb(port, e.bits(), *user) }
        })
    })
}
