//! What stands between a row and a driver's queue: who is bound to it, and the detours (poll group, checks, full fence)
//! that a plain queue does not take.
//!
//! A plain queue's row leads straight into the driver. A queue that needs a detour has its row lead here, and keeps its
//! live function in the end itself; stop then replaces that one, and the null object of a grouped queue still ticks.

use super::poll_group::{Echo, Group};
use super::row::{NULL_TX, RxRow, TxFns, TxRow, null_rx};
use crate::base::cpu;
use crate::driver::{
    FlushCause, RawMbuf, RxBurstFn, RxCounters, RxQueue, TxBurstFn, TxCounters, TxEntry, TxFlushFn, TxQueue,
};
use crate::log_error;
use crate::pool::{PoolRef, slot};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};
use std::sync::{Arc, Mutex, MutexGuard};

/// `bound` of a queue that no thread has burst on yet.
const UNBOUND: u32 = u32::MAX - 1;

/// Which thread a queue belongs to.
pub(super) struct Owner {
    /// A slot, [`slot::NO_SLOT`] (a thread without one: shared ring), or [`UNBOUND`].
    bound: AtomicU32,
    /// The thread's identity, for the check in debug mode.
    thread: AtomicU64,
    complained: AtomicBool,
}

impl Owner {
    fn new() -> Owner {
        Owner { bound: AtomicU32::new(UNBOUND), thread: AtomicU64::new(0), complained: AtomicBool::new(false) }
    }

    pub(super) fn slot(&self) -> Option<u32> {
        Some(self.bound.load(Acquire)).filter(|&b| b != UNBOUND)
    }

    pub(super) fn set(&self, slot: Option<u32>) {
        self.thread.store(if slot.is_some() { thread_id() } else { 0 }, Relaxed);
        self.bound.store(slot.unwrap_or(UNBOUND), Release);
    }

    /// True where the queue is bound, and not to the calling thread.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.slot().is_some() && self.thread.load(Relaxed) != thread_id()
    }

    /// True where another thread than the owner calls; says so once.
    fn is_foreign(&self, what: &'static str, port: u16, queue: u16) -> bool {
        let (owner, me) = (self.thread.load(Relaxed), thread_id());
        if owner == 0 || owner == me {
            return false;
        }
        if !self.complained.swap(true, Relaxed) {
            Owner::complain(what, port, queue, owner, me);
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn complain(what: &str, port: u16, queue: u16, owner: u64, me: u64) {
        log_error!(
            "{what} queue {queue} of port {port} belongs to thread {owner} and is used by thread {me}: the call does nothing"
        );
    }
}

/// The kernel's number of the calling thread.
pub(super) fn thread_id() -> u64 {
    // SAFETY: gettid takes nothing and touches nothing.
    unsafe { libc::syscall(libc::SYS_gettid) as u64 }
}

pub(super) struct RxEnd {
    pub(super) row: &'static RxRow,
    pub(super) port: u16,
    pub(super) queue: u16,
    live: AtomicPtr<()>,
    live_queue: AtomicPtr<c_void>,
    pub(super) owner: Owner,
    /// Queue and control state: held by start, stop, bind and unbind, never by a burst on a bound queue.
    pub(super) inner: Mutex<RxInner>,
    pub(super) counters: Arc<RxCounters>,
    pub(super) group: AtomicPtr<Group>,
    pub(super) bit: AtomicU64,
    /// What the row leads to when the port is closed while the queue is in a group.
    pub(super) echo: AtomicPtr<Echo>,
    check: AtomicBool,
    pub(super) handed_out: AtomicBool,
}

pub(super) struct RxInner {
    pub(super) q: Box<dyn RxQueue>,
    pub(super) started: bool,
    pub(super) pool: PoolRef,
    pub(super) reserved: u32,
}

impl Drop for RxInner {
    fn drop(&mut self) {
        self.pool.unreserve(self.reserved);
    }
}

unsafe extern "C" fn rx_bind(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: a row or a live pair that holds this function holds the end with it, which lives until the row is shut.
    let end = unsafe { &*end.cast::<RxEnd>() };
    if !end.bind(slot::current()) {
        return 0; // It is being stopped: what is live is still this function.
    }
    // SAFETY: the live pair is set by `publish`; the caller's promises are passed on.
    unsafe { end.call_live(pkts, n) }
}

/// The way of a queue in a poll group.
unsafe extern "C" fn rx_group(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<RxEnd>() };
    // SAFETY: the caller's promises.
    let got = unsafe { rx_checked_inner(end, pkts, n) };
    let group = end.group.load(Acquire);
    if !group.is_null() {
        // SAFETY: the group takes its queues out before it goes, and it is ticked by its own thread alone.
        unsafe { (*group).tick(end.bit.load(Relaxed), got != 0) };
    }
    got
}

/// The way of a queue that is checked or fenced.
unsafe extern "C" fn rx_detour(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`; the caller's promises.
    unsafe { rx_checked_inner(&*end.cast::<RxEnd>(), pkts, n) }
}

#[inline(always)]
unsafe fn rx_checked_inner(end: &RxEnd, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    if end.check.load(Relaxed) && end.owner.is_foreign("receive", end.port, end.queue) {
        return 0;
    }
    // SAFETY: the caller's promises.
    unsafe { end.call_live(pkts, n) }
}

impl RxEnd {
    pub(super) fn new(
        row: &'static RxRow,
        port: u16,
        queue: u16,
        q: Box<dyn RxQueue>,
        pool: PoolRef,
        reserved: u32,
        counters: Arc<RxCounters>,
    ) -> Box<RxEnd> {
        Box::new(RxEnd {
            row,
            port,
            queue,
            live: AtomicPtr::new(null_rx as *mut ()),
            live_queue: AtomicPtr::new(core::ptr::null_mut()),
            owner: Owner::new(),
            inner: Mutex::new(RxInner { q, started: false, pool, reserved }),
            counters,
            group: AtomicPtr::new(core::ptr::null_mut()),
            bit: AtomicU64::new(0),
            echo: AtomicPtr::new(core::ptr::null_mut()),
            check: AtomicBool::new(false),
            handed_out: AtomicBool::new(false),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RxInner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn me(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    #[inline(always)]
    unsafe fn call_live(&self, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        if !cpu::membarrier_init() {
            fence(SeqCst); // a of port::row, by ourselves
        }
        let f = self.live.load(Acquire);
        let q = self.live_queue.load(Relaxed);
        // SAFETY: `set_live` pairs them.
        unsafe { core::mem::transmute::<*mut (), RxBurstFn>(f)(q, pkts, n) }
    }

    fn set_live(&self, f: RxBurstFn, q: *mut c_void) {
        self.live_queue.store(q, Relaxed);
        self.live.store(f as *mut (), Release);
    }

    /// Binds the queue to a slot, and lets the row lead into the driver. Called by the owner, outside the driver. False
    /// where the queue does not run: then the row and the live function are as they were.
    pub(super) fn bind(&self, slot: u32) -> bool {
        let mut inner = self.lock();
        self.owner.set(Some(slot));
        inner.q.ctx().bind(slot);
        if inner.started {
            self.publish(&mut inner);
        }
        inner.started
    }

    pub(super) fn unbind(&self) {
        let mut inner = self.lock();
        self.owner.set(None);
        inner.q.ctx().bind(slot::NO_SLOT);
        if inner.started {
            self.publish(&mut inner);
        }
    }

    /// Sets row and live pair for the state of now. The caller holds `inner`, and nobody is inside but the caller itself.
    pub(super) fn publish(&self, inner: &mut RxInner) {
        let grouped = !self.group.load(Acquire).is_null();
        self.check.store(super::checks_on(), Relaxed);
        let detour = grouped || super::checks_on() || !cpu::membarrier_init();
        let (f, q) = match (inner.started, self.owner.slot()) {
            (false, _) => (null_rx as RxBurstFn, core::ptr::null_mut()),
            (true, None) => (rx_bind as RxBurstFn, self.me()),
            (true, Some(_)) => {
                let e = inner.q.entry();
                (e.burst, e.queue)
            }
        };
        self.set_live(f, q);
        match (grouped, detour && inner.started) {
            (true, _) => self.row.set(rx_group, self.me()),
            (_, true) => self.row.set(rx_detour, self.me()),
            _ => self.row.set(f, q),
        }
    }

    /// Nobody is inside from the return on, and nobody comes in. False after the limit: then all is as before.
    pub(super) fn shut(&self, limit: core::time::Duration) -> bool {
        let (f, q) = (self.live.load(Acquire), self.live_queue.load(Relaxed));
        self.live.store(null_rx as *mut (), Release);
        // A grouped row keeps its way, so that the null object ticks the group.
        let grouped = !self.group.load(Acquire).is_null();
        let outside = if grouped { self.row.wait(limit) } else { self.row.shut(limit) };
        if !outside {
            self.live_queue.store(q, Relaxed);
            self.live.store(f, Release);
        }
        outside
    }
}

pub(super) struct TxEnd {
    pub(super) row: &'static TxRow,
    pub(super) port: u16,
    pub(super) queue: u16,
    live: TxLive,
    pub(super) owner: Owner,
    pub(super) inner: Mutex<TxInner>,
    pub(super) counters: Arc<TxCounters>,
    pub(super) group: AtomicPtr<Group>,
    /// The group has no receive queue: its deadlines are looked at in the send calls.
    pub(super) tick_in_send: AtomicBool,
    check: AtomicBool,
    pub(super) handed_out: AtomicBool,
}

struct TxLive {
    burst: AtomicPtr<()>,
    more: AtomicPtr<()>,
    flush: AtomicPtr<()>,
    queue: AtomicPtr<c_void>,
}

pub(super) struct TxInner {
    pub(super) q: Box<dyn TxQueue>,
    pub(super) started: bool,
}

unsafe extern "C" fn tx_bind(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<TxEnd>() };
    if !end.bind(slot::current()) {
        return 0; // As in `rx_bind`.
    }
    // SAFETY: the live functions are set by `publish`.
    unsafe { end.call(&end.live.burst, pkts, n) }
}

unsafe extern "C" fn tx_bind_more(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<TxEnd>() };
    if !end.bind(slot::current()) {
        return 0; // As in `rx_bind`.
    }
    // SAFETY: as above.
    unsafe { end.call(&end.live.more, pkts, n) }
}

unsafe extern "C" fn tx_bind_flush(_end: *mut c_void, _cause: u8) -> u32 {
    0 // A queue that nobody has sent on has nothing staged.
}

unsafe extern "C" fn tx_detour(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<TxEnd>() };
    if end.is_foreign() {
        return 0;
    }
    // SAFETY: the caller's promises.
    let n = unsafe { end.call(&end.live.burst, pkts, n) };
    end.tick();
    n
}

unsafe extern "C" fn tx_detour_more(end: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<TxEnd>() };
    if end.is_foreign() {
        return 0;
    }
    // SAFETY: the caller's promises.
    let n = unsafe { end.call(&end.live.more, pkts, n) };
    end.tick();
    n
}

unsafe extern "C" fn tx_detour_flush(end: *mut c_void, cause: u8) -> u32 {
    // SAFETY: as in `rx_bind`.
    let end = unsafe { &*end.cast::<TxEnd>() };
    if end.is_foreign() {
        return 0;
    }
    end.fence();
    let f = end.live.flush.load(Acquire);
    let q = end.live.queue.load(Relaxed);
    // SAFETY: `set_live` pairs them.
    unsafe { core::mem::transmute::<*mut (), TxFlushFn>(f)(q, cause) }
}

const BIND: TxFns = TxFns { burst: tx_bind, more: tx_bind_more, flush: tx_bind_flush };
const DETOUR: TxFns = TxFns { burst: tx_detour, more: tx_detour_more, flush: tx_detour_flush };

impl TxEnd {
    pub(super) fn new(
        row: &'static TxRow,
        port: u16,
        queue: u16,
        q: Box<dyn TxQueue>,
        counters: Arc<TxCounters>,
    ) -> Box<TxEnd> {
        Box::new(TxEnd {
            row,
            port,
            queue,
            live: TxLive {
                burst: AtomicPtr::new(NULL_TX.burst as *mut ()),
                more: AtomicPtr::new(NULL_TX.more as *mut ()),
                flush: AtomicPtr::new(NULL_TX.flush as *mut ()),
                queue: AtomicPtr::new(core::ptr::null_mut()),
            },
            owner: Owner::new(),
            inner: Mutex::new(TxInner { q, started: false }),
            counters,
            group: AtomicPtr::new(core::ptr::null_mut()),
            tick_in_send: AtomicBool::new(false),
            check: AtomicBool::new(false),
            handed_out: AtomicBool::new(false),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TxInner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn me(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    fn ticks(&self) -> bool {
        !self.group.load(Acquire).is_null() && self.tick_in_send.load(Relaxed)
    }

    fn tick(&self) {
        let group = self.group.load(Acquire);
        if !group.is_null() && self.tick_in_send.load(Relaxed) {
            // SAFETY: as in `rx_group`.
            unsafe { (*group).look_at_deadlines() };
        }
    }

    fn is_foreign(&self) -> bool {
        self.check.load(Relaxed) && self.owner.is_foreign("send", self.port, self.queue)
    }

    #[inline(always)]
    fn fence(&self) {
        if !cpu::membarrier_init() {
            fence(SeqCst); // a of port::row, by ourselves
        }
    }

    #[inline(always)]
    unsafe fn call(&self, f: &AtomicPtr<()>, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
        self.fence();
        let f = f.load(Acquire);
        let q = self.live.queue.load(Relaxed);
        // SAFETY: `set_live` pairs them.
        unsafe { core::mem::transmute::<*mut (), TxBurstFn>(f)(q, pkts, n) }
    }

    fn set_live(&self, f: TxFns, q: *mut c_void) {
        self.live.queue.store(q, Relaxed);
        self.live.more.store(f.more as *mut (), Release);
        self.live.flush.store(f.flush as *mut (), Release);
        self.live.burst.store(f.burst as *mut (), Release);
    }

    /// As [`RxEnd::bind`].
    pub(super) fn bind(&self, slot: u32) -> bool {
        let mut inner = self.lock();
        self.owner.set(Some(slot));
        inner.q.ctx().bind(slot);
        if inner.started {
            self.publish(&mut inner);
        }
        inner.started
    }

    /// Called by the owner, outside the driver. What is staged is rung: an unbound queue has nobody to do it.
    pub(super) fn unbind(&self) {
        let mut inner = self.lock();
        if inner.started && inner.q.ctx().staged() != 0 {
            let e = inner.q.entry();
            // SAFETY: the queue's own entry, on its owner's thread.
            unsafe { (e.flush)(e.queue, FlushCause::Explicit as u8) };
        }
        self.owner.set(None);
        inner.q.ctx().bind(slot::NO_SLOT);
        if inner.started {
            self.publish(&mut inner);
        }
    }

    /// As [`RxEnd::publish`].
    pub(super) fn publish(&self, inner: &mut TxInner) {
        self.check.store(super::checks_on(), Relaxed);
        let grouped = !self.group.load(Acquire).is_null();
        let detour = super::checks_on() || !cpu::membarrier_init();
        let (f, q) = match (inner.started, self.owner.slot()) {
            (false, _) => (NULL_TX, core::ptr::null_mut()),
            (true, None) => (BIND, self.me()),
            (true, Some(_)) => {
                let TxEntry { burst, more, flush, queue } = inner.q.entry();
                // Outside a group, "more follows" changes nothing.
                (TxFns { burst, more: if grouped { more } else { burst }, flush }, queue)
            }
        };
        self.set_live(f, q);
        // One that ticks keeps its way while it is stopped: its null object looks at the others' deadlines.
        if self.ticks() || (detour && inner.started) {
            self.row.set(DETOUR, self.me());
        } else {
            self.row.set(f, q);
        }
    }

    /// As [`RxEnd::shut`].
    pub(super) fn shut(&self, limit: core::time::Duration) -> bool {
        let old = [&self.live.burst, &self.live.more, &self.live.flush].map(|p| p.load(Acquire));
        self.live.burst.store(NULL_TX.burst as *mut (), Release);
        self.live.more.store(NULL_TX.more as *mut (), Release);
        self.live.flush.store(NULL_TX.flush as *mut (), Release);
        let outside = if self.ticks() { self.row.wait(limit) } else { self.row.shut(limit) };
        if !outside {
            for (p, f) in [&self.live.burst, &self.live.more, &self.live.flush].iter().zip(old) {
                p.store(f, Release);
            }
        }
        outside
    }
}
