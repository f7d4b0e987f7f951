//! The bursts. Hot: a row, a function, a queue. A port or queue that is not there gives 0.
//!
//! A queue belongs to the thread of its first burst; see `bl_queue_unbind`.

use crate::driver::FlushCause;
use crate::mbuf::RawMbuf;
use crate::port::row::row;

/// Receives up to `n` packets into `pkts`; returns how many. They are the caller's. 0 where none wait, and on a port that does
/// not run. Hot. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_rx_burst(port: u16, queue: u16, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    match row(port, queue) {
        // SAFETY: `pkts` has room for `n`, and the calling thread owns the queue, by this function's contract.
        Some(r) if !pkts.is_null() => unsafe { r.rx.burst(pkts, n) },
        _ => 0,
    }
}

/// Sends packets from the front of `pkts`, and announces them; returns how many were taken, which are the library's from then
/// on. The others stay the caller's: the ring is full, or the port does not run. A packet that can never be sent (too long,
/// a bad chain) or not now (link down) is taken, freed and counted as oerrors. Hot. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_tx_burst(port: u16, queue: u16, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    match row(port, queue) {
        // SAFETY: `pkts` holds `n` packets of the caller, and it owns the queue, by this function's contract.
        Some(r) if !pkts.is_null() => unsafe { r.tx.burst(pkts, n) },
        _ => 0,
    }
}

/// Sends as bl_tx_burst; more follows. A queue in a poll group stages the packets, and announces them at the group's fill level
/// or where not all fit; the group announces the rest (see bl_poll_group_add_tx). Elsewhere it is bl_tx_burst. Hot. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_tx_burst_more(port: u16, queue: u16, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    match row(port, queue) {
        // SAFETY: as above.
        Some(r) if !pkts.is_null() => unsafe { r.tx.burst_more(pkts, n) },
        _ => 0,
    }
}

/// Announces what is staged on the queue; returns how many packets that were. Hot. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_tx_flush(port: u16, queue: u16) -> u32 {
    match row(port, queue) {
        // SAFETY: the calling thread owns the queue, by this function's contract.
        Some(r) => unsafe { r.tx.flush(FlushCause::Explicit as u8) },
        None => 0,
    }
}
