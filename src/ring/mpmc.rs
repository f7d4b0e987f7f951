//! Many threads on a side: claim a run of slots by moving `head`, copy, then move `tail` in the order of the claims.
//!
//! A thread that is stopped between its claim and its tail holds up those behind it; they wait with `pause` and step
//! aside for it. Cut off from its turn for 2^32 entries, a compare-exchange could take an old head for the new one;
//! an entry takes a cycle at best, so that is seconds within two instructions, as in every ring of 32-bit indices.

use core::mem::MaybeUninit;

use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::relax;
use super::{Ring, Side, grant};

/// `n` entries of a side from `head` on that are the caller's, and how many could be had.
struct Claim {
    head: u32,
    n: usize,
    avail: u32,
}

/// Moves `own.head` over up to `n` entries. `bound` is the capacity for producers and 0 for consumers: what can be
/// moved is then `bound` + the opposite tail - the own head on both sides.
#[inline(always)]
fn claim<const BULK: bool>(own: &Side, other: &Side, bound: u32, capacity: u32, n: usize) -> Claim {
    let mut head = own.head.load(Acquire); // F, partner E
    loop {
        let tail = other.tail.load(Acquire); // D, partner C, for producers; B, partner A, for consumers
        let avail = bound.wrapping_add(tail).wrapping_sub(head);
        if avail > capacity {
            // The head is older than the tail. The tail carries a head at least as new, so this ends.
            head = own.head.load(Acquire); // F, partner E
            continue;
        }
        let n = grant::<BULK>(n, avail);
        if n == 0 {
            return Claim { head, n, avail };
        }
        // E, partner F: who sees the new head sees `tail` too.
        match own.head.compare_exchange_weak(head, head.wrapping_add(n as u32), Release, Acquire) {
            Ok(_) => {
                // For a later call of one. Before `finish`, whose order bounds how far this value can lag.
                own.seen.store(tail, Relaxed);
                return Claim { head, n, avail };
            }
            Err(now) => head = now, // F, partner E
        }
    }
}

/// Moves `own.tail` over what was claimed, after those who claimed before.
#[inline(always)]
fn finish(own: &Side, claim: &Claim) {
    let mut turn = 0u32;
    // H, partner G: acquires the copies of the threads before, for the store below shows theirs too.
    while own.tail.load(Acquire) != claim.head {
        relax(turn);
        turn = turn.wrapping_add(1);
    }
    // G, partner H; and A, partner B, for producers; C, partner D, for consumers.
    own.tail.store(claim.head.wrapping_add(claim.n as u32), Release);
}

impl Ring {
    /// Puts all or none (`BULK`), or what fits; returns how many. Any thread.
    #[inline]
    pub fn mp_enqueue<const BULK: bool>(&self, objs: &[*mut ()]) -> usize {
        self.multi_enqueue::<BULK>(objs).0
    }

    /// Takes all or none (`BULK`), or what there is; returns how many. Any thread.
    #[inline]
    pub fn mc_dequeue<const BULK: bool>(&self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        self.multi_dequeue::<BULK>(out).0
    }

    /// The count is what is free after it.
    #[inline(always)]
    pub(super) fn multi_enqueue<const BULK: bool>(&self, objs: &[*mut ()]) -> (usize, u32) {
        let c = claim::<BULK>(&self.prod, &self.cons, self.capacity, self.capacity, objs.len());
        if c.n != 0 {
            // SAFETY: the claim gave these slots to this call alone; they are past the consumers (D). n <= objs.len()
            // by `grant`, and n <= capacity <= slots.
            unsafe { self.slots.put(self.mask, c.head, objs.get_unchecked(..c.n)) };
            finish(&self.prod, &c);
        }
        (c.n, c.avail - c.n as u32)
    }

    /// The count is what is left after it.
    #[inline(always)]
    pub(super) fn multi_dequeue<const BULK: bool>(&self, out: &mut [MaybeUninit<*mut ()>]) -> (usize, u32) {
        let c = claim::<BULK>(&self.cons, &self.prod, 0, self.capacity, out.len());
        if c.n != 0 {
            // SAFETY: the claim gave these slots to this call alone; they were written (B). n <= out.len() by `grant`.
            unsafe { self.slots.take(self.mask, c.head, out.get_unchecked_mut(..c.n)) };
            finish(&self.cons, &c);
        }
        (c.n, c.avail - c.n as u32)
    }
}
