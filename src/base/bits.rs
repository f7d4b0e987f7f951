//! Alignment and powers of two; runs of words.

use core::mem::MaybeUninit;

/// `n` rounded up to a multiple of `align` (a power of two); None where that does not fit.
pub const fn align_up(n: usize, align: usize) -> Option<usize> {
    debug_assert!(align.is_power_of_two());
    match n.checked_add(align - 1) {
        Some(v) => Some(v & !(align - 1)),
        None => None,
    }
}

/// Bytes of a cache line on the machines this runs on.
pub const CACHE_LINE: usize = 64;

/// Copies `n` words without a call: a burst's pointers are so few that a call of memcpy, and what a function with a call in
/// it saves at its begin, cost more than the copy.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
pub unsafe fn copy_words<T>(src: *const *mut T, dst: *mut *mut T, n: usize) {
    /// Words at a time: a vector register or two.
    const RUN: usize = 4;
    // SAFETY: the caller's promise; every access below is under `n`.
    unsafe {
        let mut i = 0;
        while i + RUN <= n {
            let run = src.add(i).cast::<[MaybeUninit<*mut T>; RUN]>().read();
            dst.add(i).cast::<[MaybeUninit<*mut T>; RUN]>().write(run);
            i += RUN;
        }
        if n & 2 != 0 {
            dst.add(i).cast::<[MaybeUninit<*mut T>; 2]>().write(src.add(i).cast::<[MaybeUninit<*mut T>; 2]>().read());
            i += 2;
        }
        if n & 1 != 0 {
            dst.add(i).write(src.add(i).read());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_behind_it() {
        let src: Vec<*mut u8> = (1..200).map(core::ptr::without_provenance_mut).collect();
        for n in 0..=69 {
            let mut dst = [core::ptr::null_mut(); 200];
            // SAFETY: both are longer than `n`, and apart.
            unsafe { copy_words(src.as_ptr(), dst.as_mut_ptr(), n) };
            assert!(dst[..n] == src[..n] && dst[n..].iter().all(|p| p.is_null()), "{n}");
        }
    }

    #[test]
    fn align_up_never_wraps() {
        assert_eq!(align_up(0, 64), Some(0));
        assert_eq!(align_up(1, 64), Some(64));
        assert_eq!(align_up(64, 64), Some(64));
        assert_eq!(align_up(usize::MAX, 64), None);
    }
}
