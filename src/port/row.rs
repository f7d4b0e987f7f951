//! The fast path: one row for each port and queue, never freed, always safe to call.
//!
//! | offset | bytes | field | who writes |
//! |---:|---:|---|---|
//! | 0 | 8 | `rx_burst` | control; the owner when it binds |
//! | 8 | 8 | `rx_queue` | control; the owner when it binds |
//! | 16 | 4 | `in_rx` | the owner: 1 while it is inside a receive |
//! | 64 | 8 | `tx_burst` | control; the owner when it binds |
//! | 72 | 8 | `tx_more` | as above |
//! | 80 | 8 | `tx_flush` | as above |
//! | 88 | 8 | `tx_queue` | as above |
//! | 96 | 4 | `in_tx` | the owner: 1 while it is inside a send or a flush |
//!
//! A row without a running queue holds the null functions, which ignore their queue. Stop replaces only the function, then
//! makes every thread pass a fence ([`crate::base::cpu::fence_heavy`]), and waits for `in_rx` to be 0: then nobody is
//! inside, and nobody comes in any more.

use crate::base::cpu;
use crate::driver::{RawMbuf, RxBurstFn, TxBurstFn, TxFlushFn};
use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*, compiler_fence};
use core::time::Duration;

/// Ports at once.
pub const MAX_PORTS: usize = 64;
/// Receive queues of a port, and send queues.
pub const MAX_QUEUES: usize = 32;

#[repr(C, align(64))]
pub struct RxRow {
    burst: AtomicPtr<()>,
    queue: AtomicPtr<c_void>,
    inside: AtomicU32,
}

#[repr(C, align(64))]
pub struct TxRow {
    burst: AtomicPtr<()>,
    more: AtomicPtr<()>,
    flush: AtomicPtr<()>,
    queue: AtomicPtr<c_void>,
    inside: AtomicU32,
}

/// C: `struct bl_fastpath_row`.
#[repr(C)]
pub struct Row {
    pub rx: RxRow,
    pub tx: TxRow,
}

const _: () = {
    assert!(size_of::<Row>() == 128 && offset_of!(Row, tx) == 64);
    assert!(offset_of!(RxRow, burst) == 0 && offset_of!(RxRow, queue) == 8 && offset_of!(RxRow, inside) == 16);
    assert!(offset_of!(TxRow, burst) == 0 && offset_of!(TxRow, more) == 8 && offset_of!(TxRow, flush) == 16);
    assert!(offset_of!(TxRow, queue) == 24 && offset_of!(TxRow, inside) == 32);
};

static ROWS: [Row; MAX_PORTS * MAX_QUEUES] = [const { Row::null() }; MAX_PORTS * MAX_QUEUES];

/// Receive on a port that does not run: nothing.
///
/// # Safety
/// None needed: it touches nothing.
pub unsafe extern "C" fn null_rx(_q: *mut c_void, _pkts: *mut *mut RawMbuf, _n: u16) -> u16 {
    0
}
/// Send on a port that does not run: takes nothing.
///
/// # Safety
/// None needed: it touches nothing.
pub unsafe extern "C" fn null_tx(_q: *mut c_void, _pkts: *mut *mut RawMbuf, _n: u16) -> u16 {
    0
}
/// Flush on a port that does not run.
///
/// # Safety
/// None needed: it touches nothing.
pub unsafe extern "C" fn null_flush(_q: *mut c_void, _cause: u8) -> u32 {
    0
}

/// The row of a port's queue. None beyond the table.
#[inline(always)]
pub fn row(port: u16, queue: u16) -> Option<&'static Row> {
    if usize::from(port) >= MAX_PORTS || usize::from(queue) >= MAX_QUEUES {
        return None;
    }
    ROWS.get(usize::from(port) * MAX_QUEUES + usize::from(queue))
}

/// The whole table, for C's exported pointer.
pub static TABLE: &[Row; MAX_PORTS * MAX_QUEUES] = &ROWS;

/// The three send functions and their queue.
#[derive(Clone, Copy)]
pub struct TxFns {
    pub burst: TxBurstFn,
    pub more: TxBurstFn,
    pub flush: TxFlushFn,
}

pub const NULL_TX: TxFns = TxFns { burst: null_tx, more: null_tx, flush: null_flush };

impl Row {
    const fn null() -> Row {
        Row {
            rx: RxRow {
                burst: AtomicPtr::new(null_rx as *mut ()),
                queue: AtomicPtr::new(core::ptr::null_mut()),
                inside: AtomicU32::new(0),
            },
            tx: TxRow {
                burst: AtomicPtr::new(null_tx as *mut ()),
                more: AtomicPtr::new(null_tx as *mut ()),
                flush: AtomicPtr::new(null_flush as *mut ()),
                queue: AtomicPtr::new(core::ptr::null_mut()),
                inside: AtomicU32::new(0),
            },
        }
    }
}

/// Waits, within `limit`, until nobody is inside. The function was replaced before.
fn wait_outside(inside: &AtomicU32, limit: Duration) -> bool {
    cpu::fence_heavy(); // a: partner in `rx`, `tx`, `flush`
    let until = std::time::Instant::now() + limit;
    // b: acquire, so that what the owner did inside is seen.
    while inside.load(Acquire) != 0 {
        if std::time::Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

impl RxRow {
    /// Receives.
    ///
    /// # Safety
    /// `pkts` has room for `n`; the calling thread owns the queue.
    #[inline(always)]
    pub unsafe fn burst(&self, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        self.inside.store(1, Relaxed);
        // a: the heavy fence of stop makes this a full one. Where the kernel refuses that, the row's function is one
        // that fences by itself and looks again (port::ends).
        compiler_fence(SeqCst);
        // c: acquire: with a new function comes its queue.
        let f = self.burst.load(Acquire);
        let q = self.queue.load(Relaxed);
        // SAFETY: only `set` writes the function, from an RxBurstFn, paired with its queue.
        let n = unsafe { core::mem::transmute::<*mut (), RxBurstFn>(f)(q, pkts, n) };
        self.inside.store(0, Release); // b
        n
    }

    pub(super) fn set(&self, f: RxBurstFn, q: *mut c_void) {
        self.queue.store(q, Relaxed);
        self.burst.store(f as *mut (), Release); // c
    }

    /// Puts the null function in and waits until nobody is inside; else puts the old one back.
    pub(super) fn shut(&self, limit: Duration) -> bool {
        let old = self.burst.swap(null_rx as *mut (), AcqRel);
        if wait_outside(&self.inside, limit) {
            return true;
        }
        let _ = self.burst.compare_exchange(null_rx as *mut (), old, AcqRel, Relaxed);
        false
    }

    /// Puts the null function in place of `f`, if that is there with `q`.
    pub(super) fn clear_if(&self, f: RxBurstFn, q: *mut c_void) {
        if self.queue.load(Acquire) == q {
            let _ = self.burst.compare_exchange(f as *mut (), null_rx as *mut (), AcqRel, Relaxed);
        }
    }

    /// Waits until nobody is inside that came in before the call.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        wait_outside(&self.inside, limit)
    }
}

impl TxRow {
    /// Sends.
    ///
    /// # Safety
    /// `pkts` holds `n` packets; those taken are no longer the caller's. The calling thread owns the queue.
    #[inline(always)]
    pub unsafe fn burst(&self, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        // SAFETY: the caller's promises.
        unsafe { self.call(&self.burst, pkts, n) }
    }

    /// Sends; more follows.
    ///
    /// # Safety
    /// As [`Self::burst`].
    #[inline(always)]
    pub unsafe fn burst_more(&self, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        // SAFETY: the caller's promises.
        unsafe { self.call(&self.more, pkts, n) }
    }

    #[inline(always)]
    unsafe fn call(&self, f: &AtomicPtr<()>, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        self.inside.store(1, Relaxed);
        compiler_fence(SeqCst); // a
        let f = f.load(Acquire); // c
        let q = self.queue.load(Relaxed);
        // SAFETY: only `set` writes the function, from a TxBurstFn, paired with its queue.
        let n = unsafe { core::mem::transmute::<*mut (), TxBurstFn>(f)(q, pkts, n) };
        self.inside.store(0, Release); // b
        n
    }

    /// Rings what is staged; returns how many packets that were. May be called from inside a send of the same queue.
    ///
    /// # Safety
    /// The calling thread owns the queue.
    #[inline]
    pub unsafe fn flush(&self, cause: u8) -> u32 {
        let outer = self.inside.load(Relaxed);
        self.inside.store(1, Relaxed);
        compiler_fence(SeqCst); // a
        let f = self.flush.load(Acquire); // c
        let q = self.queue.load(Relaxed);
        // SAFETY: only `set` writes the function, from a TxFlushFn, paired with its queue.
        let n = unsafe { core::mem::transmute::<*mut (), TxFlushFn>(f)(q, cause) };
        self.inside.store(outer, Release); // b
        n
    }

    pub(super) fn set(&self, f: TxFns, q: *mut c_void) {
        self.queue.store(q, Relaxed);
        self.more.store(f.more as *mut (), Release);
        self.flush.store(f.flush as *mut (), Release);
        self.burst.store(f.burst as *mut (), Release); // c
    }

    /// Puts the null functions in and waits until nobody is inside; else puts the old ones back.
    pub(super) fn shut(&self, limit: Duration) -> bool {
        let old = [
            self.burst.swap(null_tx as *mut (), AcqRel),
            self.more.swap(null_tx as *mut (), AcqRel),
            self.flush.swap(null_flush as *mut (), AcqRel),
        ];
        if wait_outside(&self.inside, limit) {
            return true;
        }
        let _ = self.burst.compare_exchange(null_tx as *mut (), old[0], AcqRel, Relaxed);
        let _ = self.more.compare_exchange(null_tx as *mut (), old[1], AcqRel, Relaxed);
        let _ = self.flush.compare_exchange(null_flush as *mut (), old[2], AcqRel, Relaxed);
        false
    }

    #[cfg(test)]
    pub(super) fn set_inside(&self, on: bool) {
        self.inside.store(on.into(), Release);
    }

    pub(super) fn wait(&self, limit: Duration) -> bool {
        wait_outside(&self.inside, limit)
    }
}
