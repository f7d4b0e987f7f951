//! Deferral: the receive and send queues that one thread serves, and when it rings what it staged.
//!
//! `tx_burst_more` on a queue of the group stages and rings only at the fill level. The group rings the rest when a whole
//! lap over its started receive queues came back empty, and at a deadline. It does so inside the receive calls of its
//! thread (without receive queues: the send calls): a thread that makes no calls flushes nothing.

use super::ends::{RxEnd, TxEnd, thread_id};
use super::port::PortInner;
use super::row::{self, RxRow, TxRow};
use crate::base::{Result, time};
use crate::driver::{Doorbell, FlushCause, RawMbuf};
use crate::{fail, invalid};
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// Queues of one kind in a group.
pub const MAX_GROUP: usize = 64;

// A send queue's flag in `pending`: something is staged; and the group has noted since when.
const STAGED: u8 = 1;
const NOTED: u8 = 2;

struct TxMember {
    port: Weak<PortInner>,
    queue: u16,
    row: &'static TxRow,
    deadline: u64,
    since: Cell<u64>,
    counters: Arc<crate::driver::TxCounters>,
}

struct RxMember {
    port: Weak<PortInner>,
    queue: u16,
    row: &'static RxRow,
    echo: Box<Echo>,
}

/// What a grouped row leads to once its port is closed: the thread that still polls it still ticks its group.
pub(super) struct Echo {
    group: *mut Group,
    bit: u64,
}

pub(super) unsafe extern "C" fn rx_echo(echo: *mut c_void, _pkts: *mut *mut RawMbuf, _n: u16) -> u16 {
    // SAFETY: a row that holds this function holds the echo of a group, which clears the row before it goes; the caller is
    // the group's thread.
    unsafe {
        let echo = &*echo.cast::<Echo>();
        (*echo.group).tick(echo.bit, false);
    }
    0
}

/// The group behind its handle; its address is known to its queues.
pub struct Group {
    /// Bits of the receive queues that came back empty since the last packet.
    lap: Cell<u64>,
    /// Bits of the started receive queues. Set and cleared by start and stop, from any thread.
    all: AtomicU64,
    pending: [AtomicU8; MAX_GROUP],
    /// The thread whose calls tick it: the one that added queues.
    thread: AtomicU64,
    tx: Vec<TxMember>,
    rx: Vec<RxMember>,
}

impl Group {
    #[inline(always)]
    fn any_pending(&self) -> bool {
        self.pending.iter().take(self.tx.len()).any(|p| p.load(Relaxed) != 0)
    }

    /// After a receive call on the queue of `bit`.
    #[inline(always)]
    pub(super) fn tick(&self, bit: u64, got: bool) {
        if got {
            self.lap.set(0);
        } else {
            let lap = self.lap.get() | bit;
            self.lap.set(lap);
            let all = self.all.load(Relaxed);
            if lap & all == all {
                self.lap.set(0);
                if self.any_pending() {
                    self.ring(FlushCause::Idle);
                }
                return;
            }
        }
        if self.any_pending() {
            self.look_at_deadlines();
        }
    }

    /// Rings what has been staged for its deadline or longer. Reads the clock once, only while something is staged.
    pub(super) fn look_at_deadlines(&self) {
        if !self.any_pending() {
            return;
        }
        let now = time::tsc();
        for (m, p) in self.tx.iter().zip(&self.pending) {
            let flag = p.load(Relaxed);
            if flag == 0 {
                continue;
            }
            if flag & NOTED == 0 {
                p.store(STAGED | NOTED, Relaxed);
                m.since.set(now);
            }
            if now.wrapping_sub(m.since.get()) >= m.deadline {
                ring_one(m, p, FlushCause::Deadline, now);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn ring(&self, cause: FlushCause) -> u32 {
        let now = time::tsc();
        let mut n = 0;
        for (m, p) in self.tx.iter().zip(&self.pending) {
            if p.load(Relaxed) != 0 {
                n += ring_one(m, p, cause, now);
            }
        }
        n
    }
}

fn ring_one(m: &TxMember, flag: &AtomicU8, cause: FlushCause, now: u64) -> u32 {
    if flag.load(Relaxed) & NOTED != 0 {
        let ns = u128::from(now.wrapping_sub(m.since.get())) * 1_000_000_000 / u128::from(time::tsc_hz().max(1));
        if ns as u64 > m.counters.longest_wait_ns.load(Relaxed) {
            m.counters.longest_wait_ns.store(ns as u64, Relaxed);
        }
    }
    // Before the call: what the driver cannot ring it flags again, and a stopped row's null object flags nothing.
    flag.store(0, Relaxed);
    // SAFETY: the group's thread owns the queue.
    unsafe { m.row.flush(cause as u8) }
}

/// A poll group's handle. In Rust it belongs to one thread; C creates it anywhere and then uses it from one.
///
/// ```compile_fail
/// fn sends(_: impl Send) {}
/// sends(burstline::port::PollGroup::new());
/// ```
// Its queues' calls look into the group, so that it must stay on their thread.
pub struct PollGroup(core::mem::ManuallyDrop<Box<Group>>, core::marker::PhantomData<*mut ()>);

impl Default for PollGroup {
    fn default() -> PollGroup {
        PollGroup::new()
    }
}

impl PollGroup {
    pub fn new() -> PollGroup {
        let group = Group {
            lap: Cell::new(0),
            all: AtomicU64::new(0),
            pending: [const { AtomicU8::new(0) }; MAX_GROUP],
            thread: AtomicU64::new(0),
            tx: Vec::with_capacity(MAX_GROUP),
            rx: Vec::with_capacity(MAX_GROUP),
        };
        PollGroup(core::mem::ManuallyDrop::new(Box::new(group)), core::marker::PhantomData)
    }

    fn raw(&mut self) -> *mut Group {
        &mut **self.0
    }

    /// Adds a receive queue: its empty calls count for the lap. -EEXIST where it is in a group, -EBUSY where it is
    /// bound to another thread, -ENOSPC beyond [`MAX_GROUP`]. Called by the group's thread.
    pub fn add_rx(&mut self, port: &super::Port, queue: u16) -> Result<()> {
        if self.0.rx.len() == MAX_GROUP {
            return fail!(NOSPC, "a poll group has {MAX_GROUP} receive queues at most");
        }
        let bit = 1u64 << self.0.rx.len();
        let raw = self.raw();
        let Some(row) = row::row(port.id(), queue) else {
            return invalid!("port {} queue {queue}: beyond the table", port.id());
        };
        let mut echo = Box::new(Echo { group: raw, bit });
        port.inner().with_rx(queue, |end, started| {
            if !end.group.load(Acquire).is_null() {
                return fail!(EXIST, "receive queue {queue} of port {} is in a poll group already", port.id());
            }
            if end.owner.is_elsewhere() {
                return fail!(BUSY, "receive queue {queue} of port {} is bound to another thread", port.id());
            }
            end.bit.store(bit, Relaxed);
            end.echo.store(&mut *echo, Release);
            self.0.thread.store(thread_id(), Relaxed);
            end.regroup(raw)?;
            // Not before it is in: a lap would wait for a queue that never joined.
            if started {
                end.count_for_lap(true);
            }
            Ok(())
        })?;
        self.0.rx.push(RxMember { port: Arc::downgrade(port.inner()), queue, row: &row.rx, echo });
        // From the first one on, deadlines are looked at in the receive calls alone.
        for m in self.0.tx.iter().filter(|_| bit == 1) {
            if let Some(port) = m.port.upgrade() {
                let _ = port.with_tx(m.queue, |end, _| {
                    end.tick_in_send.store(false, Relaxed);
                    end.publish(&mut end.lock());
                    Ok(())
                });
            }
        }
        Ok(())
    }

    /// Adds a send queue: `tx_burst_more` on it stages, and rings at `fill` packets; the group rings the rest at an empty
    /// lap, or `deadline_us` after it saw them.
    ///
    /// -ENOTSUP where the driver's doorbell is none, -EINVAL for a fill of 0 or above the queue's descriptors, -EEXIST
    /// where the queue is in a group, -EBUSY where it is bound to another thread, -ENOSPC beyond [`MAX_GROUP`]. Called by the group's thread.
    pub fn add_tx(&mut self, port: &super::Port, queue: u16, fill: u32, deadline_us: u32) -> Result<()> {
        let inner = port.inner();
        if inner.driver.doorbell == Doorbell::None {
            return fail!(
                NOTSUP,
                "port {} ({}) stages nothing: its driver hands each packet over as it is taken",
                port.id(),
                inner.name
            );
        }
        if self.0.tx.len() == MAX_GROUP {
            return fail!(NOSPC, "a poll group has {MAX_GROUP} send queues at most");
        }
        let raw = self.raw();
        let slot = self.0.tx.len();
        let no_rx = self.0.rx.is_empty();
        let counters = inner.with_tx(queue, |end, n_desc| {
            if fill == 0 || fill > n_desc {
                return invalid!(
                    "port {} queue {queue}: fill level {fill}; allowed are 1 to {n_desc}, its descriptors",
                    port.id()
                );
            }
            if !end.group.load(Acquire).is_null() {
                return fail!(EXIST, "send queue {queue} of port {} is in a poll group already", port.id());
            }
            if end.owner.is_elsewhere() {
                return fail!(BUSY, "send queue {queue} of port {} is bound to another thread", port.id());
            }
            end.tick_in_send.store(no_rx, Relaxed);
            self.0.thread.store(thread_id(), Relaxed);
            // SAFETY: the handle's box outlives the queue's membership (see Drop).
            end.regroup(raw, fill, unsafe { &(&(*raw).pending)[slot] })?;
            Ok(end.counters.clone())
        })?;
        let Some(row) = row::row(port.id(), queue) else {
            return invalid!("port {} queue {queue}: beyond the table", port.id());
        };
        self.0.tx.push(TxMember {
            port: Arc::downgrade(inner),
            queue,
            row: &row.tx,
            deadline: time::us_to_tsc(deadline_us),
            since: Cell::new(0),
            counters,
        });
        Ok(())
    }

    /// Rings everything staged in the group now. Returns the packets.
    pub fn flush(&mut self) -> u32 {
        self.0.ring(FlushCause::Explicit)
    }
}

impl Drop for PollGroup {
    /// Takes every queue out, ringing what is staged. Runs on the group's thread.
    fn drop(&mut self) {
        self.flush();
        let raw = self.raw();
        let mut left = true;
        // A queue that is not there any more (its port was closed) points nowhere.
        for m in &self.0.rx {
            if let Some(port) = m.port.upgrade() {
                let _ = port.with_rx(m.queue, |end, _| {
                    left &= leave(&end.group, raw, || end.regroup(core::ptr::null_mut())).is_ok();
                    Ok(())
                });
            }
            m.row.clear_if(rx_echo, core::ptr::from_ref(&*m.echo).cast_mut().cast());
        }
        for m in &self.0.tx {
            if let Some(port) = m.port.upgrade() {
                let _ = port.with_tx(m.queue, |end, _| {
                    let out = || end.regroup(core::ptr::null_mut(), 0, core::ptr::null());
                    left &= leave(&end.group, raw, out).is_ok();
                    Ok(())
                });
            }
        }
        // A queue that a foreign thread holds keeps its group's memory, rather than pointing at nothing.
        if left {
            // SAFETY: dropped once, here.
            unsafe { core::mem::ManuallyDrop::drop(&mut self.0) };
        }
    }
}

#[cfg(test)]
thread_local! {
    static GONE: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// Groups whose memory this thread gave back.
#[cfg(test)]
pub(super) fn gone() -> usize {
    GONE.get()
}

#[cfg(test)]
impl Drop for Group {
    fn drop(&mut self) {
        GONE.set(GONE.get() + 1);
    }
}

fn leave(of: &AtomicPtr<Group>, group: *mut Group, regroup: impl FnOnce() -> Result<()>) -> Result<()> {
    if of.load(Acquire) == group { regroup() } else { Ok(()) }
}

impl RxEnd {
    /// Joins or leaves a group. The caller holds the port's control lock and is the queue's thread, or nobody is.
    fn regroup(&self, group: *mut Group) -> Result<()> {
        let mut inner = self.lock();
        if !self.row.wait(super::STOP_LIMIT) {
            return fail!(BUSY, "receive queue {} of port {} is inside a burst", self.queue, self.port);
        }
        self.group.store(group, Release);
        self.publish(&mut inner);
        Ok(())
    }

    /// Out of its group, if it is in one: its handle goes, or another thread takes it. The caller holds the port's control
    /// lock.
    pub(super) fn leave_group(&self) {
        if !self.group.load(Acquire).is_null() {
            self.count_for_lap(false);
            let _ = self.regroup(core::ptr::null_mut());
        }
    }

    /// As [`Self::leave_group`], where the group is ticked by another thread than the caller.
    pub(super) fn leave_foreign_group(&self) {
        if is_foreign(&self.group) {
            self.leave_group();
        }
    }

    /// A started queue counts for the lap of its group, a stopped one does not.
    pub(super) fn count_for_lap(&self, on: bool) {
        let group = self.group.load(Acquire);
        if !group.is_null() {
            let bit = self.bit.load(Relaxed);
            // SAFETY: the group takes its queues out, under the port's control lock, before it goes; the caller holds
            // that lock. `all` is atomic.
            unsafe {
                if on {
                    (*group).all.fetch_or(bit, AcqRel);
                } else {
                    (*group).all.fetch_and(!bit, AcqRel);
                }
            }
        }
    }
}

/// True for the group of another thread. The caller holds the control lock of a port in it, so that it lives.
fn is_foreign(group: &AtomicPtr<Group>) -> bool {
    let g = group.load(Acquire);
    // SAFETY: the group takes its queues out, under that lock, before it goes; `thread` is atomic.
    !g.is_null() && unsafe { (*g).thread.load(Relaxed) } != thread_id()
}

impl TxEnd {
    /// As [`RxEnd::leave_group`]. Nothing is staged: unbinding has rung it.
    pub(super) fn leave_group(&self) {
        if !self.group.load(Acquire).is_null() {
            let _ = self.regroup(core::ptr::null_mut(), 0, core::ptr::null());
        }
    }

    pub(super) fn leave_foreign_group(&self) {
        if is_foreign(&self.group) {
            self.leave_group();
        }
    }

    fn regroup(&self, group: *mut Group, fill: u32, pending: *const AtomicU8) -> Result<()> {
        let mut inner = self.lock();
        if !self.row.wait(super::STOP_LIMIT) {
            return fail!(BUSY, "send queue {} of port {} is inside a burst", self.queue, self.port);
        }
        self.group.store(group, Release);
        // SAFETY: the group takes the queue out before its flags go.
        unsafe { inner.q.ctx().defer(fill, pending) };
        self.publish(&mut inner);
        Ok(())
    }
}
