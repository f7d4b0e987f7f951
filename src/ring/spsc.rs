//! One thread on a side: no locked instruction, and the other side's line is read only when what was last seen of it
//! does not suffice.

use core::mem::MaybeUninit;

use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::{Ring, grant};

impl Ring {
    /// Puts all or none (`BULK`), or what fits; returns how many.
    ///
    /// # Safety
    /// No other thread is in a producer call of this ring meanwhile, and earlier ones happened before this one.
    #[inline]
    pub unsafe fn sp_enqueue<const BULK: bool>(&self, objs: &[*mut ()]) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.single_enqueue::<BULK, false>(objs).0 }
    }

    /// Takes all or none (`BULK`), or what there is; returns how many.
    ///
    /// # Safety
    /// No other thread is in a consumer call of this ring meanwhile, and earlier ones happened before this one.
    #[inline]
    pub unsafe fn sc_dequeue<const BULK: bool>(&self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.single_dequeue::<BULK, false>(out).0 }
    }

    /// Free entries from `tail` on, looking at the consumer's line only if fewer than `n` are known of, or `EXACT`.
    #[inline(always)]
    fn free_from<const EXACT: bool>(&self, tail: u32, n: usize) -> u32 {
        let bound = self.capacity;
        if !EXACT {
            let known = bound.wrapping_sub(tail.wrapping_sub(self.prod.seen.load(Relaxed)));
            // Above the bound: `seen` lags behind by more than a lap, after calls of many.
            if n <= known as usize && known <= bound {
                return known;
            }
        }
        let cons = self.cons.tail.load(Acquire); // D, partner C
        self.prod.seen.store(cons, Relaxed);
        bound.wrapping_sub(tail.wrapping_sub(cons))
    }

    /// The same for the consumer: entries that can be taken from `head` on.
    #[inline(always)]
    fn avail_from<const EXACT: bool>(&self, head: u32, n: usize) -> u32 {
        if !EXACT {
            let known = self.cons.seen.load(Relaxed).wrapping_sub(head);
            if n <= known as usize && known <= self.capacity {
                return known;
            }
        }
        let prod = self.prod.tail.load(Acquire); // B, partner A
        self.cons.seen.store(prod, Relaxed);
        prod.wrapping_sub(head)
    }

    /// # Safety
    /// As for [`Ring::sp_enqueue`]. The count is what is free after it, exact only with `EXACT`.
    #[inline(always)]
    pub(super) unsafe fn single_enqueue<const BULK: bool, const EXACT: bool>(&self, objs: &[*mut ()]) -> (usize, u32) {
        let tail = self.prod.tail.load(Relaxed);
        let free = self.free_from::<EXACT>(tail, objs.len());
        let n = grant::<BULK>(objs.len(), free);
        if n == 0 {
            return (0, free);
        }
        // SAFETY: n <= free <= capacity <= slots: these slots are past the consumer (D), and no other producer is here.
        // n <= objs.len() by `grant`.
        unsafe {
            self.slots.put(self.mask, tail, objs.get_unchecked(..n));
            self.sp_publish(tail.wrapping_add(n as u32));
        }
        (n, free - n as u32)
    }

    /// # Safety
    /// As for [`Ring::sc_dequeue`]. The count is what is left after it, exact only with `EXACT`.
    #[inline(always)]
    pub(super) unsafe fn single_dequeue<const BULK: bool, const EXACT: bool>(
        &self,
        out: &mut [MaybeUninit<*mut ()>],
    ) -> (usize, u32) {
        let head = self.cons.tail.load(Relaxed);
        let avail = self.avail_from::<EXACT>(head, out.len());
        let n = grant::<BULK>(out.len(), avail);
        if n == 0 {
            return (0, avail);
        }
        // SAFETY: n <= avail: these slots were written (B), and no other consumer is here. n <= out.len() by `grant`.
        unsafe { self.slots.take(self.mask, head, out.get_unchecked_mut(..n)) };
        let next = head.wrapping_add(n as u32);
        self.cons.head.store(next, Relaxed); // for a later call of many
        self.cons.tail.store(next, Release); // C, partner D
        (n, avail - n as u32)
    }

    /// Where the next word goes: what a deferring producer's own `tail` starts from.
    #[inline]
    pub fn prod_tail(&self) -> u32 {
        self.prod.tail.load(Relaxed)
    }

    /// Copies as many of `objs` as fit behind `tail` and moves `tail` past them; returns how many. Consumers see nothing
    /// of it until [`Ring::sp_publish`]: `tail` is the producer's own.
    ///
    /// # Safety
    /// As for [`Ring::sp_enqueue`]; `tail` started as [`Ring::prod_tail`] and was since moved by this function only,
    /// and no other producer call came between.
    #[inline]
    pub unsafe fn sp_stage(&self, tail: &mut u32, objs: &[*mut ()]) -> usize {
        let free = self.free_from::<false>(*tail, objs.len());
        let n = grant::<false>(objs.len(), free);
        if n != 0 {
            // SAFETY: as in `single_enqueue`; what is staged is counted as used, for `tail` is past it.
            unsafe { self.slots.put(self.mask, *tail, objs.get_unchecked(..n)) };
            *tail = tail.wrapping_add(n as u32);
        }
        n
    }

    /// Shows all that is staged up to `tail` to the consumers, by one store: the doorbell.
    ///
    /// # Safety
    /// As for [`Ring::sp_stage`], whose `tail` this is.
    #[inline(always)]
    pub unsafe fn sp_publish(&self, tail: u32) {
        self.prod.head.store(tail, Relaxed); // for a later call of many
        self.prod.tail.store(tail, Release); // A, partner B
    }

    /// The two halves of a ring that nobody else holds: no locked instruction, and the types keep each side to one
    /// owner. What was put stays in the ring when the halves end.
    pub fn split(&mut self) -> (Producer<'_>, Consumer<'_>) {
        let ring = &*self;
        (Producer { ring }, Consumer { ring })
    }
}

/// The producer's half of a ring. Made by [`Ring::split`].
pub struct Producer<'a> {
    ring: &'a Ring,
}

/// The consumer's half of a ring. Made by [`Ring::split`].
pub struct Consumer<'a> {
    ring: &'a Ring,
}

impl Producer<'_> {
    /// Puts all of `objs` or nothing; returns their number or 0.
    #[inline]
    pub fn enqueue_bulk(&mut self, objs: &[*mut ()]) -> usize {
        // SAFETY: `split` borrowed the ring for itself and made one producer; `&mut self` keeps it to one thread.
        unsafe { self.ring.sp_enqueue::<true>(objs) }
    }

    /// Puts as many of `objs` as fit, from the front; returns how many.
    #[inline]
    pub fn enqueue_burst(&mut self, objs: &[*mut ()]) -> usize {
        // SAFETY: as above.
        unsafe { self.ring.sp_enqueue::<false>(objs) }
    }

    pub fn free_count(&self) -> u32 {
        self.ring.free_count()
    }
}

impl Consumer<'_> {
    /// Fills all of `out` or nothing; returns its length or 0.
    #[inline]
    pub fn dequeue_bulk(&mut self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        // SAFETY: `split` borrowed the ring for itself and made one consumer; `&mut self` keeps it to one thread.
        unsafe { self.ring.sc_dequeue::<true>(out) }
    }

    /// Fills `out` from the front with what there is; returns how many.
    #[inline]
    pub fn dequeue_burst(&mut self, out: &mut [MaybeUninit<*mut ()>]) -> usize {
        // SAFETY: as above.
        unsafe { self.ring.sc_dequeue::<false>(out) }
    }

    pub fn len(&self) -> u32 {
        self.ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}
