//! Counters.

use super::guard::{control, not_null, number};
use super::sized::{fixed, write};
use crate::base::Result;
use crate::port::{Port, Stats};
use core::ffi::{c_char, c_int};

/// Counters of a port or a queue. Bytes without FCS. Each lost packet is counted in one place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_stats {
    /// Packets given to the program.
    pub ipackets: u64,
    /// Packets announced to the device.
    pub opackets: u64,
    pub ibytes: u64,
    pub obytes: u64,
    /// Lost before they could be read.
    pub imissed: u64,
    /// Read and found unfit.
    pub ierrors: u64,
    /// Taken for sending and freed: can never be sent, or the device refused.
    pub oerrors: u64,
    /// Lost because the pool was empty.
    pub rx_nombuf: u64,
    /// Announcements of staged packets, by cause: at the end of a burst, at the fill level, after an idle lap, at the deadline,
    /// by an explicit flush.
    pub tx_flush_burst: u64,
    pub tx_flush_fill: u64,
    pub tx_flush_idle: u64,
    pub tx_flush_deadline: u64,
    pub tx_flush_explicit: u64,
}

/// A counter with its name, which ends with NUL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_xstat {
    pub name: [c_char; 64],
    pub value: u64,
}

impl From<Stats> for bl_stats {
    fn from(s: Stats) -> bl_stats {
        let [burst, fill, idle, deadline, explicit] = s.tx_flush;
        bl_stats {
            ipackets: s.ipackets,
            opackets: s.opackets,
            ibytes: s.ibytes,
            obytes: s.obytes,
            imissed: s.imissed,
            ierrors: s.ierrors,
            oerrors: s.oerrors,
            rx_nombuf: s.rx_nombuf,
            tx_flush_burst: burst,
            tx_flush_fill: fill,
            tx_flush_idle: idle,
            tx_flush_deadline: deadline,
            tx_flush_explicit: explicit,
        }
    }
}

/// The port's counters since it was made or last reset, into the `size` bytes of `stats`. Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_stats_get(port: u16, stats: *mut bl_stats, size: usize) -> c_int {
    // SAFETY: `size` bytes by this function's contract.
    control(|| unsafe { write(stats, size, Port::by_id(port)?.stats().into(), "stats") })
}

/// Counts from zero again. Errors: -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_stats_reset(port: u16) -> c_int {
    control(|| {
        Port::by_id(port)?.stats_reset();
        Ok(())
    })
}

/// The counters of the receive and the send queue of this number since they were set up, as bl_stats_get. A reset of the port
/// does not change them. Errors: -ENODEV, -EINVAL where there is neither. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_queue_stats_get(port: u16, queue: u16, stats: *mut bl_stats, size: usize) -> c_int {
    control(|| {
        let p = Port::by_id(port)?;
        let s = match (p.rx_queue_stats(queue), p.tx_queue_stats(queue)) {
            (Ok(rx), Ok(tx)) => {
                Stats { opackets: tx.opackets, obytes: tx.obytes, oerrors: tx.oerrors, tx_flush: tx.tx_flush, ..rx }
            }
            (rx, tx) => rx.or(tx)?,
        };
        // SAFETY: `size` bytes by this function's contract.
        unsafe { write(stats, size, s.into(), "stats") }
    })
}

fn xstats(port: u16) -> Result<Vec<(String, u64)>> {
    Ok(Port::by_id(port)?.xstats())
}

/// How many named counters the port has now, or -ENODEV. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_xstats_count(port: u16) -> c_int {
    number(|| Ok(xstats(port)?.len() as u32))
}

/// Writes up to `n` named counters to `out`, and returns how many there are: more than `n` where not all fitted.
/// Errors: -ENODEV, -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_xstats_get(port: u16, out: *mut bl_xstat, n: u32) -> c_int {
    number(|| {
        if n != 0 {
            not_null(out, "out")?;
        }
        let all = xstats(port)?;
        for (i, (name, value)) in all.iter().take(n as usize).enumerate() {
            // SAFETY: room for `n` by this function's contract.
            unsafe { out.add(i).write(bl_xstat { name: fixed(name), value: *value }) };
        }
        Ok(all.len() as u32)
    })
}
