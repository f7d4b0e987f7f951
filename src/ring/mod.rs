//! Rings of pointers between threads, one synchronisation mode a file.
//!
//! A ring moves words and never looks behind them. Indices are free-running `u32`: all slots are usable, and only
//! distances are compared.
//!
//! Three ways in, from the safest to the fastest:
//!
//! | call | who may call it | cost |
//! |---|---|---|
//! | [`Ring::enqueue_bulk`], [`Ring::dequeue_burst`] … | any thread, any mode | one locked instruction a call |
//! | [`Ring::split`] → [`Producer`], [`Consumer`] | the owner of the half, by type | none |
//! | `unsafe` [`Ring::enqueue`], [`Ring::sp_enqueue`] … | who keeps the promise of the ring's mode | none on a single side |
//!
//! # Memory order
//!
//! Each edge is a release and the acquire that reads it. In the code each stands with its letter and its partner's.
//!
//! | edge | release | acquire | what it carries |
//! |---|---|---|---|
//! | A → B | producer stores `prod.tail` | consumer loads `prod.tail` | the words in the slots |
//! | C → D | consumer stores `cons.tail` | producer loads `cons.tail` | the slots are read and free again |
//! | E → F | multi: compare-exchange of `head` | multi: load of `head` | the opposite tail that was seen when `head` moved |
//! | G → H | multi: store of the own `tail` | multi: wait for the own `tail` | the copies of the threads before, onward to B or D |
//!
//! E → F is why a count is never above the capacity: who sees a head also sees the opposite tail it was computed from,
//! so the distance is never negative on that side; a head older than the tail shows as a count above the capacity and
//! is read again.

mod mpmc;
mod spsc;
mod store;
mod sync;

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;

use core::mem::MaybeUninit;

use crate::base::Result;
use crate::invalid;
pub use spsc::{Consumer, Producer};
use store::Slots;
use sync::{AtomicU32, Ordering};

/// How many threads may work on one side of a ring at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    Single,
    Multi,
}

/// Most entries of a ring: distances of `u32` indices stay clear of the sign bit.
pub const MAX_COUNT: u32 = 1 << 30;

/// One side's indices. Written by the threads of that side only.
#[repr(C, align(128))]
struct Side {
    /// Claimed up to here. On a single side it follows `tail`.
    head: AtomicU32,
    /// Done up to here: what the other side reads.
    tail: AtomicU32,
    /// The other side's tail as last seen: a single side works up to it without touching the other side's line.
    seen: AtomicU32,
}

impl Side {
    fn new(at: u32) -> Side {
        Side { head: AtomicU32::new(at), tail: AtomicU32::new(at), seen: AtomicU32::new(at) }
    }
}

/// A bounded queue of words.
///
/// ```text
/// offset  size  field      written by
///      0     8  slots      nobody, after creation
///      8     4  mask       nobody
///     12     4  capacity   nobody
///     16     2  modes      nobody
///     24    16  name       nobody
///    128    12  prod       producers: head, tail, seen
///    256    12  cons       consumers: head, tail, seen
///    384        end
/// ```
///
/// 128 bytes apart, not 64: the adjacent-line prefetcher pulls lines in pairs.
#[repr(C, align(128))]
pub struct Ring {
    slots: Slots,
    mask: u32,
    capacity: u32,
    prod_mode: Sync,
    cons_mode: Sync,
    name: Box<str>,
    prod: Side,
    cons: Side,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Ring, slots) == 0);
    assert!(offset_of!(Ring, mask) == 8);
    assert!(offset_of!(Ring, capacity) == 12);
    assert!(offset_of!(Ring, prod_mode) == 16);
    assert!(offset_of!(Ring, cons_mode) == 17);
    assert!(offset_of!(Ring, name) == 24);
    assert!(offset_of!(Ring, prod) == 128);
    assert!(offset_of!(Ring, cons) == 256);
    assert!(offset_of!(Side, head) == 0 && offset_of!(Side, tail) == 4 && offset_of!(Side, seen) == 8);
    assert!(size_of::<Ring>() == 384 && align_of::<Ring>() == 128);
};

// SAFETY: the words are only moved, never followed: what they point to is the business of those who put and take them.
unsafe impl Send for Ring {}
// SAFETY: as above; the slots are written and read under the indices' acquire and release, see the table of edges. What
// would not be safe to call from two threads is `unsafe` or takes a half by `&mut`.
unsafe impl core::marker::Sync for Ring {}

/// A ring at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingInfo {
    pub name: String,
    pub capacity: u32,
    pub len: u32,
    pub prod: Sync,
    pub cons: Sync,
}

impl Ring {
    /// A ring of exactly `count` usable entries, 1 to 2^30 ([`MAX_COUNT`]).
    ///
    /// `count` must be a power of two unless `exact`; with `exact` the slots are rounded up and the capacity is not.
    /// `prod` and `cons` say how many threads will be at each side at once; see [`Ring::enqueue`].
    ///
    /// # Errors
    /// EINVAL for a count of 0, above the limit, or not a power of two; ENOMEM.
    pub fn new(name: &str, count: u32, prod: Sync, cons: Sync, exact: bool) -> Result<Ring> {
        Ring::starting_at(name, count, prod, cons, exact, 0)
    }

    fn starting_at(name: &str, count: u32, prod: Sync, cons: Sync, exact: bool, at: u32) -> Result<Ring> {
        if count == 0 {
            return invalid!("ring '{name}': a count of 0; at least 1 is needed");
        }
        if count > MAX_COUNT {
            return invalid!("ring '{name}': count {count} is above the limit {MAX_COUNT}");
        }
        if !exact && !count.is_power_of_two() {
            let next = count.next_power_of_two();
            return invalid!(
                "ring '{name}': count {count} is not a power of two; take {next}, or ask for an exact capacity"
            );
        }
        let n_slots = count.next_power_of_two();
        let slots = Slots::new(n_slots).map_err(|e| e.context(format_args!("ring '{name}'")))?;
        Ok(Ring {
            slots,
            mask: n_slots - 1,
            capacity: count,
            prod_mode: prod,
            cons_mode: cons,
            name: name.into(),
            prod: Side::new(at),
            cons: Side::new(at),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Usable entries.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    #[inline]
    pub fn prod_mode(&self) -> Sync {
        self.prod_mode
    }

    #[inline]
    pub fn cons_mode(&self) -> Sync {
        self.cons_mode
    }

    /// Entries that can be taken now. Exact where nobody else works on the ring; never above the capacity.
    #[inline]
    pub fn len(&self) -> u32 {
        // The consumer's tail first: through D it carries the A that its consumer saw, so the producer's tail read
        // after it is never behind it. The ring may move on between the two loads: hence the bound.
        let cons = self.cons.tail.load(Ordering::Acquire); // D, partner C
        let prod = self.prod.tail.load(Ordering::Acquire); // B, partner A
        prod.wrapping_sub(cons).min(self.capacity)
    }

    /// Entries that can be put now: the capacity less [`Ring::len`].
    #[inline]
    pub fn free_count(&self) -> u32 {
        self.capacity - self.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// What the ring is and holds; may be called while it is in use.
    pub fn snapshot(&self) -> RingInfo {
        RingInfo {
            name: self.name.to_string(),
            capacity: self.capacity,
            len: self.len(),
            prod: self.prod_mode,
            cons: self.cons_mode,
        }
    }
}

/// Any thread, whatever the mode: these take the path of many.
impl Ring {
    /// Puts all of `objs` or nothing; returns their number or 0.
    #[inline]
    pub fn enqueue_bulk(&self, objs: &[*mut ()]) -> usize {
        self.mp_enqueue::<true>(objs)
    }

    /// Puts as many of `objs` as fit, from the front; returns how many.
    #[inline]
    pub fn enqueue_burst(&self, objs: &[*mut ()]) -> usize {
        self.mp_enqueue::<false>(objs)
    }

    /// Fills all of `out` or nothing; returns its length or 0.
    #[inline]
    pub fn dequeue_bulk(&self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        self.mc_dequeue::<true>(out)
    }

    /// Fills `out` from the front with what there is; returns how many.
    #[inline]
    pub fn dequeue_burst(&self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        self.mc_dequeue::<false>(out)
    }

    /// [`Ring::enqueue_bulk`], and the free entries after it.
    #[inline]
    pub fn enqueue_bulk_with_free(&self, objs: &[*mut ()]) -> (usize, u32) {
        self.multi_enqueue::<true>(objs)
    }

    /// [`Ring::enqueue_burst`], and the free entries after it.
    #[inline]
    pub fn enqueue_burst_with_free(&self, objs: &[*mut ()]) -> (usize, u32) {
        self.multi_enqueue::<false>(objs)
    }

    /// [`Ring::dequeue_bulk`], and the entries left after it.
    #[inline]
    pub fn dequeue_bulk_with_avail(&self, out: &mut [MaybeUninit<*mut ()>]) -> (usize, u32) {
        self.multi_dequeue::<true>(out)
    }

    /// [`Ring::dequeue_burst`], and the entries left after it.
    #[inline]
    pub fn dequeue_burst_with_avail(&self, out: &mut [MaybeUninit<*mut ()>]) -> (usize, u32) {
        self.multi_dequeue::<false>(out)
    }
}

/// By the ring's mode.
impl Ring {
    /// Puts all or none (`BULK`), or what fits; returns how many. Takes the path that the ring's mode names.
    ///
    /// # Safety
    /// On a ring whose producer side is [`Sync::Single`], no other thread is in a producer call meanwhile, and earlier
    /// ones happened before this one.
    #[inline]
    pub unsafe fn enqueue<const BULK: bool>(&self, objs: &[*mut ()]) -> usize {
        match self.prod_mode {
            // SAFETY: the caller's promise.
            Sync::Single => unsafe { self.sp_enqueue::<BULK>(objs) },
            Sync::Multi => self.mp_enqueue::<BULK>(objs),
        }
    }

    /// [`Ring::enqueue`], and the free entries after it.
    ///
    /// # Safety
    /// As for [`Ring::enqueue`].
    #[inline]
    pub unsafe fn enqueue_with_free<const BULK: bool>(&self, objs: &[*mut ()]) -> (usize, u32) {
        match self.prod_mode {
            // SAFETY: the caller's promise.
            Sync::Single => unsafe { self.single_enqueue::<BULK, true>(objs) },
            Sync::Multi => self.multi_enqueue::<BULK>(objs),
        }
    }

    /// Takes all or none (`BULK`), or what there is; returns how many. Takes the path that the ring's mode names.
    ///
    /// # Safety
    /// On a ring whose consumer side is [`Sync::Single`], no other thread is in a consumer call meanwhile, and earlier
    /// ones happened before this one.
    #[inline]
    pub unsafe fn dequeue<const BULK: bool>(&self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        match self.cons_mode {
            // SAFETY: the caller's promise.
            Sync::Single => unsafe { self.sc_dequeue::<BULK>(out) },
            Sync::Multi => self.mc_dequeue::<BULK>(out),
        }
    }

    /// [`Ring::dequeue`], and the entries left after it.
    ///
    /// # Safety
    /// As for [`Ring::dequeue`].
    #[inline]
    pub unsafe fn dequeue_with_avail<const BULK: bool>(&self, out: &mut [MaybeUninit<*mut ()>]) -> (usize, u32) {
        match self.cons_mode {
            // SAFETY: the caller's promise.
            Sync::Single => unsafe { self.single_dequeue::<BULK, true>(out) },
            Sync::Multi => self.multi_dequeue::<BULK>(out),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `mask` + 1 slots were allocated; the ring is borrowed by nobody and ends here.
        unsafe { self.slots.free(self.mask + 1) };
    }
}

/// How many of `n` wanted to move when `avail` can.
#[inline(always)]
fn grant<const BULK: bool>(n: usize, avail: u32) -> usize {
    if n <= avail as usize {
        n
    } else if BULK {
        0
    } else {
        avail as usize
    }
}
