//! Small blocks that never move, carved from private segments: rings, queue state, port rows. One arena a process.
//!
//! A hugepage for each ring would be a waste, and a heap allocation has neither the alignment nor the page. Blocks are
//! whole cache lines; a freed block joins its free neighbours and is used again; a segment with no block left goes back
//! to the kernel. Set-up only: behind a lock, and not for bursts.

use core::fmt;
use core::mem::{ManuallyDrop, align_of, align_of_val, size_of, size_of_val};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::foreign::Pod;
use super::page::{PagePolicy, PageSize};
use super::segment::Segment;
use crate::base::Result;
use crate::base::bits::{CACHE_LINE, align_up};
use crate::base::log::Held;
use crate::{invalid, log_error};

/// What the arena takes from the kernel at a time: one hugepage of the usual size.
const CHUNK: usize = 2 << 20;
/// Largest alignment of a block.
pub const MAX_ALIGN: usize = CHUNK;

/// What the arena holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    pub segments: usize,
    /// Bytes taken from the kernel.
    pub bytes: usize,
    /// Bytes in blocks that are out.
    pub used: usize,
    /// The smallest page size among the segments; ordinary where there are none.
    pub page: PageSize,
}

struct Chunk {
    segment: Segment,
    /// Free runs, offset to length: disjoint, never touching (touching runs are joined), multiples of a cache line.
    free: BTreeMap<usize, usize>,
    used: usize,
}

impl Chunk {
    /// First fit. `len` is in whole lines, `align` at least a line.
    fn take(&mut self, len: usize, align: usize) -> Option<NonNull<u8>> {
        let base = self.segment.base().addr().get();
        let (run, run_len, at) = self.free.iter().find_map(|(&run, &run_len)| {
            let at = align_up(base + run, align)? - base;
            (at + len <= run + run_len).then_some((run, run_len, at))
        })?;
        self.free.remove(&run);
        if at > run {
            self.free.insert(run, at - run);
        }
        if at + len < run + run_len {
            self.free.insert(at + len, run + run_len - (at + len));
        }
        self.used += len;
        // SAFETY: at + len <= run + run_len <= the segment's length, so the address is inside the mapping.
        Some(unsafe { self.segment.base().add(at) })
    }

    fn holds(&self, addr: usize) -> bool {
        let base = self.segment.base().addr().get();
        (base..base + self.segment.len()).contains(&addr)
    }

    /// False, and nothing changed, where the block is not one that is out.
    fn give(&mut self, addr: usize, len: usize) -> bool {
        let at = addr - self.segment.base().addr().get();
        let before = self.free.range(..=at).next_back().map(|(&o, &l)| (o, l));
        let after = self.free.range(at + 1..).next().map(|(&o, &l)| (o, l));
        let overlaps = before.is_some_and(|(o, l)| o + l > at) || after.is_some_and(|(o, _)| at + len > o);
        if overlaps || at + len > self.segment.len() || !at.is_multiple_of(CACHE_LINE) || len > self.used {
            return false;
        }
        let (mut start, mut end) = (at, at + len);
        if let Some((o, l)) = before.filter(|&(o, l)| o + l == at) {
            self.free.remove(&o);
            (start, end) = (o, end.max(o + l));
        }
        if let Some((o, l)) = after.filter(|&(o, _)| o == end) {
            self.free.remove(&o);
            end = o + l;
        }
        self.free.insert(start, end - start);
        self.used -= len;
        true
    }
}

struct Arena {
    policy: PagePolicy,
    chunks: Vec<Chunk>,
}

impl Arena {
    fn alloc(&mut self, size: usize, align: usize) -> Result<NonNull<u8>> {
        let (len, align) = shape(size, align)?;
        if let Some(p) = self.chunks.iter_mut().find_map(|c| c.take(len, align)) {
            return Ok(p);
        }
        // A segment is aligned to its page only; room for the worst case makes any alignment fit.
        let slack = if align > PageSize::Normal.bytes() { align } else { 0 };
        let Some(need) = len.checked_add(slack).and_then(|n| align_up(n, CHUNK)) else {
            return invalid!("block of {size} bytes cannot be rounded to {CHUNK}");
        };
        let segment = Segment::private(need, self.policy)?;
        let mut chunk = Chunk { free: BTreeMap::from([(0, segment.len())]), segment, used: 0 };
        let Some(p) = chunk.take(len, align) else { return invalid!("block of {size} bytes aligned to {align}") };
        self.chunks.push(chunk);
        Ok(p)
    }

    fn free(&mut self, addr: usize, size: usize, align: usize) {
        let found = self.chunks.iter().position(|c| c.holds(addr));
        let given = match (found, shape(size, align)) {
            (Some(i), Ok((len, _))) => self.chunks[i].give(addr, len),
            _ => false,
        };
        match found {
            // Lost bytes are better than two owners of one block.
            _ if !given => log_error!("arena: {size} bytes at {addr:#x} are not a block that is out; kept"),
            Some(i) if self.chunks[i].used == 0 => drop(self.chunks.swap_remove(i)),
            _ => {}
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            segments: self.chunks.len(),
            bytes: self.chunks.iter().map(|c| c.segment.len()).sum(),
            used: self.chunks.iter().map(|c| c.used).sum(),
            page: self.chunks.iter().map(|c| c.segment.page()).min().unwrap_or(PageSize::Normal),
        }
    }
}

/// A block's length in whole lines, and its alignment, at least a line.
fn shape(size: usize, align: usize) -> Result<(usize, usize)> {
    if !align.is_power_of_two() || align > MAX_ALIGN {
        return invalid!("alignment of {align}: a power of two, at most {MAX_ALIGN}");
    }
    match align_up(size, CACHE_LINE).filter(|&n| n <= isize::MAX as usize) {
        Some(0) => invalid!("block of 0 bytes, at least 1"),
        Some(len) => Ok((len, align.max(CACHE_LINE))),
        None => invalid!("block of {size} bytes, at most {}", isize::MAX),
    }
}

static ARENA: Mutex<Arena> = Mutex::new(Arena { policy: PagePolicy { no_huge: false, max: None }, chunks: Vec::new() });

fn arena() -> MutexGuard<'static, Arena> {
    // No panic leaves the books half-written: they are changed after all that can fail.
    ARENA.lock().unwrap_or_else(|e| e.into_inner())
}

/// Which pages the segments taken from now on may have; those already taken stay.
pub fn set_policy(policy: PagePolicy) {
    arena().policy = policy;
}

pub fn stats() -> Stats {
    arena().stats()
}

/// Why the arena is on ordinary pages though hugepages were wanted: the command that gives them (see [`Segment::hint`]).
pub fn hint() -> Option<String> {
    arena().chunks.iter().find_map(|c| c.segment.hint())
}

/// `size` zeroed bytes, aligned to `align` and at least to a cache line, at an address that stays until [`free`].
///
/// -EINVAL for a size of 0 or an alignment that is no power of two or above [`MAX_ALIGN`]; -ENOMEM.
pub fn alloc_zeroed(size: usize, align: usize) -> Result<NonNull<u8>> {
    if cfg!(burstline_tsan) {
        return of_the_allocator(size, align);
    }
    let _held = Held::begin();
    let p = arena().alloc(size, align)?;
    // A block used before holds what was in it. Outside the lock: it is ours already.
    // SAFETY: the arena gave `size` mapped bytes at `p`, to us alone.
    unsafe { p.as_ptr().write_bytes(0, size) };
    Ok(p)
}

/// In place of the arena under ThreadSanitizer: it does not see the arena's lock, and takes a block that one thread gave
/// back and another got for a race; it does know the system's allocator.
fn of_the_allocator(size: usize, align: usize) -> Result<NonNull<u8>> {
    let layout = Layout::from_size_align(size, align.max(CACHE_LINE)).ok().filter(|l| l.size() != 0);
    // SAFETY: the size is not 0.
    match layout.and_then(|l| NonNull::new(unsafe { std::alloc::alloc_zeroed(l) })) {
        Some(p) => Ok(p),
        None => invalid!("block of {size} bytes aligned to {align}"),
    }
}

/// Gives a block back.
///
/// # Safety
/// `ptr` came from [`alloc_zeroed`] with this size and alignment, was not given back since, and is not used again.
pub unsafe fn free(ptr: NonNull<u8>, size: usize, align: usize) {
    if cfg!(burstline_tsan) {
        if let Ok(l) = Layout::from_size_align(size, align.max(CACHE_LINE)) {
            // SAFETY: it came from `of_the_allocator` with this layout.
            unsafe { std::alloc::dealloc(ptr.as_ptr(), l) };
        }
        return;
    }
    let _held = Held::begin();
    arena().free(ptr.addr().get(), size, align);
}

/// A value in the arena.
pub fn boxed<T>(value: T) -> Result<ArenaBox<T>> {
    let ptr = alloc_zeroed(size_of::<T>().max(1), align_of::<T>())?.cast::<T>();
    // SAFETY: the block is big enough, aligned, and ours alone.
    unsafe { ptr.write(value) };
    Ok(ArenaBox { ptr })
}

/// `n` zeroed values in the arena: a ring's slots. `n` of 0 is refused.
pub fn zeroed_slice<T: Pod>(n: usize) -> Result<ArenaBox<[T]>> {
    let Some(size) = n.checked_mul(size_of::<T>()) else {
        return invalid!("{n} values of {} bytes, at most {} bytes", size_of::<T>(), isize::MAX);
    };
    let ptr = alloc_zeroed(size, align_of::<T>())?.cast::<T>();
    // All zeros is a T (Pod).
    Ok(ArenaBox { ptr: NonNull::slice_from_raw_parts(ptr, n) })
}

/// Owns a value in the arena; drop drops the value and returns the block.
pub struct ArenaBox<T: ?Sized> {
    ptr: NonNull<T>,
}

// SAFETY: it owns its T as Box does, and the arena is behind a lock.
unsafe impl<T: ?Sized + Send> Send for ArenaBox<T> {}
// SAFETY: it gives out &T only, as Box does.
unsafe impl<T: ?Sized + Sync> Sync for ArenaBox<T> {}

impl<T: ?Sized> ArenaBox<T> {
    /// The address, which stays as long as the box or what [`ArenaBox::into_raw`] made of it.
    pub fn as_ptr(&self) -> *mut T {
        self.ptr.as_ptr()
    }

    /// Gives up ownership; [`ArenaBox::from_raw`] takes it back.
    pub fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).ptr
    }

    /// # Safety
    /// `ptr` came from [`ArenaBox::into_raw`], once, and the value has not been dropped.
    pub unsafe fn from_raw(ptr: NonNull<T>) -> ArenaBox<T> {
        ArenaBox { ptr }
    }
}

impl<T: ?Sized> Deref for ArenaBox<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the box owns a live T.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for ArenaBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a live T, and is borrowed for writing.
        unsafe { self.ptr.as_mut() }
    }
}

impl<T: ?Sized> Drop for ArenaBox<T> {
    fn drop(&mut self) {
        // Read before the value goes. A type of no bytes has a block of one line all the same (boxed).
        let (size, align) = (size_of_val(&**self).max(1), align_of_val(&**self));
        // SAFETY: the value is live, ours, and not used after this; the block came from alloc_zeroed with a size that
        // rounds to the same lines, and this alignment.
        unsafe {
            self.ptr.drop_in_place();
            free(self.ptr.cast(), size, align);
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ArenaBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // An arena of the test's own: the process's is shared with tests that run at the same time.
    fn own() -> Arena {
        Arena { policy: PagePolicy::NO_HUGE, chunks: Vec::new() }
    }

    #[test]
    fn freed_neighbours_join_and_an_empty_arena_holds_nothing() {
        let mut a = own();
        let p: Vec<_> = (0..8).map(|_| a.alloc(100, 8).unwrap().addr().get()).collect();
        assert_eq!(a.stats(), Stats { segments: 1, bytes: CHUNK, used: 8 * 128, page: PageSize::Normal });
        assert!(p.windows(2).all(|w| w[1] - w[0] == 128), "packed, in whole lines");
        for i in [1, 3, 2] {
            a.free(p[i], 100, 8);
        }
        assert_eq!(a.chunks[0].free.len(), 2, "one hole of three blocks, and the rest");
        assert_eq!(a.alloc(384, 64).unwrap().addr().get(), p[1]);
        a.free(p[1], 384, 64);
        for i in [7, 0, 4, 6, 5] {
            a.free(p[i], 100, 8);
        }
        assert_eq!(a.stats(), Stats { segments: 0, bytes: 0, used: 0, page: PageSize::Normal });
    }

    #[test]
    fn every_alignment_up_to_the_limit_is_kept() {
        let mut a = own();
        let mut out = Vec::new();
        for shift in 0..=21 {
            let p = a.alloc(1, 1 << shift).unwrap().addr().get();
            assert_eq!(p % (1usize << shift).max(CACHE_LINE), 0);
            out.push((p, 1 << shift));
        }
        for (p, align) in out {
            a.free(p, 1, align);
        }
        assert_eq!(a.stats().segments, 0);
    }

    #[test]
    fn a_block_above_a_chunk_has_a_segment_that_holds_it() {
        let mut a = own();
        let p = a.alloc(3 * CHUNK + 1, 4096).unwrap().addr().get();
        assert_eq!((a.stats().segments, a.stats().bytes), (1, 4 * CHUNK));
        a.free(p, 3 * CHUNK + 1, 4096);
        assert_eq!(a.stats().bytes, 0);
    }

    #[test]
    fn a_block_given_back_twice_is_not_handed_out_twice() {
        let mut a = own();
        let (p, q) = (a.alloc(64, 64).unwrap().addr().get(), a.alloc(64, 64).unwrap().addr().get());
        a.free(p, 64, 64);
        a.free(p, 64, 64);
        a.free(0x40, 64, 64);
        assert_eq!(a.stats().used, 64);
        a.free(q, 64, 64);
        assert_eq!(a.stats().segments, 0);
    }

    #[test]
    fn a_bad_size_or_alignment_is_named() {
        for (size, align, what) in [(0, 64, "0 bytes"), (64, 3, "of 3"), (64, CHUNK * 2, "4194304"), (1, 0, "of 0")] {
            let e = alloc_zeroed(size, align).unwrap_err();
            assert!(e.text().contains(what), "{e}");
        }
        assert!(alloc_zeroed(usize::MAX, 64).unwrap_err().text().contains("18446744073709551615"));
        assert!(alloc_zeroed(1 << 46, 64).is_err());
        assert!(zeroed_slice::<u64>(usize::MAX).is_err() && zeroed_slice::<u64>(0).is_err());
    }

    #[test]
    fn the_books_are_right_after_many_random_blocks() {
        let mut a = own();
        let mut out: Vec<(usize, usize)> = Vec::new();
        let mut seed = 1u64;
        let mut rnd = move |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        for _ in 0..5000 {
            if out.is_empty() || rnd(5) < 3 {
                let size = 1 + rnd(20_000);
                let p = a.alloc(size, 64 << rnd(4)).unwrap().addr().get();
                assert!(out.iter().all(|&(q, n)| p + size <= q || q + n <= p), "two owners of one byte");
                out.push((p, size));
            } else {
                let (p, size) = out.swap_remove(rnd(out.len()));
                a.free(p, size, 64);
            }
            let used: usize = out.iter().map(|&(_, n)| align_up(n, 64).unwrap()).sum();
            assert_eq!(a.stats().used, used);
        }
        out.iter().for_each(|&(p, n)| a.free(p, n, 64));
        assert_eq!(a.stats().bytes, 0);
    }

    #[test]
    fn a_box_drops_its_value_and_a_reused_block_is_zeroed() {
        let dropped = std::sync::Arc::new(());
        let b = boxed(dropped.clone()).unwrap();
        let raw = b.into_raw();
        // SAFETY: straight from into_raw.
        drop(unsafe { ArenaBox::from_raw(raw) });
        assert_eq!(std::sync::Arc::strong_count(&dropped), 1);
        for _ in 0..3 {
            let mut s = zeroed_slice::<u32>(1000).unwrap();
            assert!(s.iter().all(|&v| v == 0) && s.len() == 1000);
            s.fill(u32::MAX);
        }
        drop(boxed(()).unwrap());
    }
}
