//! Queues: setting them up, and whose they are.

use super::guard::{control, number};
use super::pool::{bl_pool, with};
use crate::driver::FlushCause;
use crate::port::{Port, row};
use core::ffi::c_int;

/// Sets up receive queue `queue` with `n_desc` descriptors (0: the usual number), fed from `pool`, which is then in use until
/// the port is closed or configured again.
/// Errors: -EINVAL with the limits, -ENOSPC with the packets that the pool would need, -EBUSY where the port runs or was not
/// configured, -ENODEV. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_rx_queue_setup(port: u16, queue: u16, n_desc: u32, pool: *mut bl_pool) -> c_int {
    // SAFETY: a handle by this function's contract.
    control(|| unsafe { with(pool, |p| Port::by_id(port)?.rx_queue_setup(queue, n_desc, p)) })
}

/// Sets up send queue `queue` with `n_desc` descriptors (0: the usual number). Errors: as bl_rx_queue_setup. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_tx_queue_setup(port: u16, queue: u16, n_desc: u32) -> c_int {
    control(|| Port::by_id(port)?.tx_queue_setup(queue, n_desc))
}

/// Gives the receive and the send queue of this number back: another thread may burst on them from the return on. What is
/// staged is announced. A queue belongs to the thread of its first burst until then, or until the port stops, or the thread
/// unregisters or ends. Errors: -ENODEV, -EINVAL where there is neither. Owning thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_queue_unbind(port: u16, queue: u16) -> c_int {
    control(|| {
        let p = Port::by_id(port)?;
        if let Some(row) = row::row(port, queue) {
            // SAFETY: the caller owns the queue by this function's contract.
            unsafe { row.tx.flush(FlushCause::Explicit as u8) };
        }
        p.unbind_queue(queue)
    })
}

/// A descriptor that is readable while packets wait on receive queue `queue`; the port's, good while it is open.
/// Errors: -ENOTSUP where it has none (see BL_CAP_RX_FD), -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_port_rx_fd(port: u16, queue: u16) -> c_int {
    number(|| Port::by_id(port)?.rx_fd(queue).map(|fd| fd as u32))
}
