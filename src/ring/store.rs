//! The slots of a ring: plain words, copied in at most two runs.

use core::mem::MaybeUninit;

use crate::base::Result;
#[cfg(not(loom))]
use crate::base::bits::copy_words;

/// A ring's array of words. Knows nothing of indices: whoever calls [`Slots::put`] or [`Slots::take`] owns those slots.
pub(super) struct Slots {
    #[cfg(not(loom))]
    words: core::ptr::NonNull<*mut ()>,
    /// Loom watches each slot for a race.
    #[cfg(loom)]
    words: Box<[::loom::cell::UnsafeCell<*mut ()>]>,
}

#[cfg(not(loom))]
mod memory {
    use super::*;
    use crate::base::bits::CACHE_LINE;
    use crate::fail;
    use crate::mem::arena;
    use core::ptr::NonNull;
    use std::alloc::{Layout, alloc, dealloc};

    /// Up to here the words lie in the process's arena, on hugepages where there are some. Above it they are memory that is
    /// touched as it is used: a ring of 2^30 words may be made and hold ten.
    const IN_ARENA: usize = 1 << 20;

    fn layout(n: u32) -> Option<Layout> {
        // In 64 bits: 2^30 words are 2^33 bytes.
        let bytes = u64::from(n) * size_of::<*mut ()>() as u64;
        Layout::from_size_align(usize::try_from(bytes).ok()?, CACHE_LINE).ok()
    }

    /// `n` words on a cache-line boundary. Not cleared, and so not touched: no slot is read before it was written.
    pub(super) fn alloc_slots(n: u32) -> Result<NonNull<*mut ()>> {
        debug_assert!(n.is_power_of_two());
        if let Some(l) = layout(n).filter(|l| l.size() <= IN_ARENA) {
            return Ok(arena::alloc_zeroed(l.size(), l.align())?.cast());
        }
        // SAFETY: the size is not zero, since `n` is a power of two.
        match layout(n).and_then(|l| NonNull::new(unsafe { alloc(l) })) {
            Some(p) => Ok(p.cast()),
            None => fail!(NOMEM, "no memory for {n} slots ({} bytes)", u64::from(n) * size_of::<*mut ()>() as u64),
        }
    }

    /// # Safety
    /// `p` is what `alloc_slots(n)` gave, and nobody uses it any more.
    pub(super) unsafe fn free_slots(p: NonNull<*mut ()>, n: u32) {
        match layout(n) {
            // SAFETY: the same layout it was allocated with.
            Some(l) if l.size() <= IN_ARENA => unsafe { arena::free(p.cast(), l.size(), l.align()) },
            // SAFETY: as above.
            Some(l) => unsafe { dealloc(p.as_ptr().cast(), l) },
            None => {}
        }
    }
}

#[cfg(not(loom))]
impl Slots {
    pub(super) fn new(n: u32) -> Result<Slots> {
        Ok(Slots { words: memory::alloc_slots(n)? })
    }

    /// # Safety
    /// `n` is the number given to `new`; no call after this one.
    pub(super) unsafe fn free(&mut self, n: u32) {
        // SAFETY: allocated in `new` with this number; the caller ends all use here.
        unsafe { memory::free_slots(self.words, n) };
    }

    /// Copies `src` to the slots from index `at` on, around the end where it must.
    ///
    /// # Safety
    /// `mask` + 1 is the number given to `new`; `src` holds at most that many words; nobody else reads or writes these slots.
    #[inline(always)]
    pub(super) unsafe fn put(&self, mask: u32, at: u32, src: &[*mut ()]) {
        let (slot, size, n) = ((at & mask) as usize, mask as usize + 1, src.len());
        let (words, src) = (self.words.as_ptr(), src.as_ptr());
        // SAFETY: slot < size, and n <= size; both runs end within the array, which is ours alone by contract; `src`
        // is memory of the caller and no part of it.
        unsafe {
            let first = n.min(size - slot);
            copy_words(src, words.add(slot), first);
            if first < n {
                copy_words(src.add(first), words, n - first);
            }
        }
    }

    /// Copies the slots from index `at` on to `out`.
    ///
    /// # Safety
    /// As for [`Slots::put`]; these slots were written since they were last taken.
    #[inline(always)]
    pub(super) unsafe fn take(&self, mask: u32, at: u32, out: &mut [MaybeUninit<*mut ()>]) {
        let (slot, size, n) = ((at & mask) as usize, mask as usize + 1, out.len());
        let (words, out) = (self.words.as_ptr().cast_const(), out.as_mut_ptr().cast::<*mut ()>());
        // SAFETY: as in `put`, the other way.
        unsafe {
            let first = n.min(size - slot);
            copy_words(words.add(slot), out, first);
            if first < n {
                copy_words(words, out.add(first), n - first);
            }
        }
    }
}

#[cfg(loom)]
impl Slots {
    pub(super) fn new(n: u32) -> Result<Slots> {
        Ok(Slots { words: (0..n).map(|_| ::loom::cell::UnsafeCell::new(core::ptr::null_mut())).collect() })
    }

    pub(super) unsafe fn free(&mut self, _n: u32) {}

    pub(super) unsafe fn put(&self, mask: u32, at: u32, src: &[*mut ()]) {
        for (i, w) in src.iter().enumerate() {
            // SAFETY: the caller's promise, and loom checks it.
            self.words[(at.wrapping_add(i as u32) & mask) as usize].with_mut(|p| unsafe { *p = *w });
        }
    }

    pub(super) unsafe fn take(&self, mask: u32, at: u32, out: &mut [MaybeUninit<*mut ()>]) {
        for (i, w) in out.iter_mut().enumerate() {
            // SAFETY: the caller's promise, and loom checks it.
            self.words[(at.wrapping_add(i as u32) & mask) as usize].with(|p| unsafe { w.write(*p) });
        }
    }
}
