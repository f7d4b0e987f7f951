//! Poll groups: when what is staged is announced.

use super::guard::{control, not_null, number, pointer};
use crate::base::Result;
use crate::port::{PollGroup, Port};
use core::ffi::c_int;

/// The receive and send queues that one thread serves. Opaque.
pub struct bl_poll_group {
    group: PollGroup,
}

unsafe fn with<T>(group: *mut bl_poll_group, f: impl FnOnce(&mut PollGroup) -> Result<T>) -> Result<T> {
    not_null(group, "group")?;
    // SAFETY: a live group, used by one thread, by the contract of the callers.
    f(unsafe { &mut (*group).group })
}

/// Makes a poll group, which the caller owns. It may be made anywhere, and is then used by one thread. NULL: -ENOMEM. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_poll_group_create() -> *mut bl_poll_group {
    pointer(|| Ok(Box::into_raw(Box::new(bl_poll_group { group: PollGroup::new() }))))
}

/// Announces what is staged, takes every queue out, and frees the group. Errors: -EINVAL. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_poll_group_free(group: *mut bl_poll_group) -> c_int {
    control(|| {
        not_null(group, "group")?;
        // SAFETY: made by `bl_poll_group_create`, given back once.
        drop(unsafe { Box::from_raw(group) });
        Ok(())
    })
}

/// Adds a receive queue: when a whole lap over the group's started receive queues came back empty, what is staged is announced.
/// Errors: -EEXIST where the queue is in a group, -EBUSY where it is another thread's, -ENOSPC beyond 64, -EINVAL, -ENODEV. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_poll_group_add_rx(group: *mut bl_poll_group, port: u16, queue: u16) -> c_int {
    // SAFETY: this function's contract.
    control(|| unsafe { with(group, |g| g.add_rx(&Port::by_id(port)?, queue)) })
}

/// Adds a send queue: bl_tx_burst_more on it stages, and announces at `fill` packets (1 to its descriptors). The group announces
/// the rest after an empty lap, or `deadline_us` microseconds after it saw them; it does so inside the receive calls of its
/// thread (without receive queues: the send calls). A thread that makes no calls announces nothing.
/// Errors: -ENOTSUP where the driver's doorbell is BL_DOORBELL_NONE, -EINVAL with the limits of `fill`, -EEXIST, -EBUSY, -ENOSPC, -ENODEV.
/// Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_poll_group_add_tx(
    group: *mut bl_poll_group,
    port: u16,
    queue: u16,
    fill: u32,
    deadline_us: u32,
) -> c_int {
    // SAFETY: this function's contract.
    control(|| unsafe { with(group, |g| g.add_tx(&Port::by_id(port)?, queue, fill, deadline_us)) })
}

/// Announces everything that is staged in the group now. Returns how many packets, or -EINVAL. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_poll_group_flush(group: *mut bl_poll_group) -> c_int {
    // SAFETY: this function's contract.
    number(|| unsafe { with(group, |g| Ok(g.flush())) })
}
