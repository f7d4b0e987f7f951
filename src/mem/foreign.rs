//! Memory that a peer or the kernel writes while we look: each value is read once into a private copy, checked, then used.

use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32};

use crate::base::Result;
use crate::invalid;

/// Plain old data: any bytes are a value, and there is no padding.
///
/// # Safety
/// Every bit pattern of the type is valid, all zeros among them; it has no padding, no pointer that is trusted, and no
/// interior mutability.
pub unsafe trait Pod: Copy + 'static {}

macro_rules! pod {
    ($($t:ty),*) => { $(
        // SAFETY: an integer: every bit pattern is a value, and there is no padding.
        unsafe impl Pod for $t {}
    )* };
}
pod!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
// SAFETY: an array adds no padding between its elements, which are Pod.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// A run of bytes that others write. Holds no reference to them: there is none that Rust's rules would allow.
#[derive(Clone, Copy, Debug)]
pub struct ForeignRegion {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: every access is a volatile or atomic one of bytes that other processes change at any time anyway; a thread of
// our own adds nothing that the reader is not already written to withstand.
unsafe impl Send for ForeignRegion {}
// SAFETY: as for Send.
unsafe impl Sync for ForeignRegion {}

impl ForeignRegion {
    /// # Safety
    /// `len` bytes from `base` are mapped, readable and (for the writing calls) writable, as long as this value, its
    /// copies, and what [`ForeignRegion::at`] and the atomics give out are used; no Rust reference to them is live in that
    /// time; and the file behind them cannot be cut (sealed, or otherwise sure not to fault).
    pub unsafe fn new(base: NonNull<u8>, len: usize) -> ForeignRegion {
        ForeignRegion { base, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of `len` bytes at `offset`; None where they are not all inside.
    #[inline]
    fn span(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        if len > self.len || offset > self.len - len {
            return None;
        }
        // SAFETY: offset <= self.len, so the address is inside the region or one past its end.
        Some(unsafe { self.base.add(offset) })
    }

    fn outside<V>(&self, what: &str, offset: usize, len: usize) -> Result<V> {
        invalid!("{what} of {len} bytes at offset {offset} leaves a region of {} bytes", self.len)
    }

    /// A private copy of the value at `offset`, of any alignment; None where it is not all inside. For bursts: no text.
    #[inline]
    pub fn get<T: Pod>(&self, offset: usize) -> Option<T> {
        let p = self.span(offset, size_of::<T>())?;
        // SAFETY: span found size_of::<T>() bytes inside the region, which is readable by new's contract.
        Some(unsafe { read_once(p.as_ptr()) })
    }

    /// As [`ForeignRegion::get`], with an error that names offset and limit (-EINVAL).
    pub fn read<T: Pod>(&self, offset: usize) -> Result<T> {
        self.get(offset).map_or_else(|| self.outside("read", offset, size_of::<T>()), Ok)
    }

    /// A place that is checked once, here, and read many times: inside, and aligned for `T` (-EINVAL).
    pub fn at<T: Pod>(&self, offset: usize) -> Result<Foreign<T>> {
        match self.span(offset, size_of::<T>()) {
            None => self.outside("field", offset, size_of::<T>()),
            Some(p) if !p.cast::<T>().is_aligned() => {
                invalid!("field at offset {offset} is not aligned to {} bytes", align_of::<T>())
            }
            Some(p) => Ok(Foreign { ptr: p.cast() }),
        }
    }

    /// An index that both sides move: load it with acquire, store it with release. The lifetime is the caller's to
    /// choose, within what it promised to [`ForeignRegion::new`].
    pub fn atomic_u16<'a>(&self, offset: usize) -> Result<&'a AtomicU16> {
        let f = self.at::<u16>(offset)?;
        // SAFETY: inside and aligned (at), mapped and writable for 'a (new's contract); a peer's stores are what atomics
        // are for.
        Ok(unsafe { AtomicU16::from_ptr(f.ptr.as_ptr()) })
    }

    /// As [`ForeignRegion::atomic_u16`], of 32 bits.
    pub fn atomic_u32<'a>(&self, offset: usize) -> Result<&'a AtomicU32> {
        let f = self.at::<u32>(offset)?;
        // SAFETY: as in atomic_u16.
        Ok(unsafe { AtomicU32::from_ptr(f.ptr.as_ptr()) })
    }

    /// Copies bytes out: `to` is private from then on. False, and nothing copied, where they are not all inside.
    #[inline]
    #[must_use]
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) -> bool {
        let Some(p) = self.span(offset, to.len()) else { return false };
        // A plain copy may read a byte twice, but what was read last is what `to` keeps: nothing looks at it in between.
        // SAFETY: span found to.len() bytes inside; `to` is ours alone, so the two do not overlap (new's contract).
        unsafe { core::ptr::copy_nonoverlapping(p.as_ptr(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies bytes in. False, and nothing copied, where they do not all fit.
    #[inline]
    #[must_use]
    pub fn copy_in(&self, offset: usize, from: &[u8]) -> bool {
        let Some(p) = self.span(offset, from.len()) else { return false };
        // SAFETY: span found from.len() bytes inside, writable by new's contract; no reference to them is live, so
        // `from` does not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), p.as_ptr(), from.len()) };
        true
    }
}

/// One value in foreign memory, checked to be inside and aligned. Reading it twice may give two answers: read it once.
#[derive(Debug)]
pub struct Foreign<T: Pod> {
    ptr: NonNull<T>,
}

impl<T: Pod> Clone for Foreign<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Pod> Copy for Foreign<T> {}

// SAFETY: as for ForeignRegion: an address whose bytes are only reached by volatile accesses.
unsafe impl<T: Pod> Send for Foreign<T> {}
// SAFETY: as for Send.
unsafe impl<T: Pod> Sync for Foreign<T> {}

impl<T: Pod> Foreign<T> {
    /// A private copy. Relaxed: where the peer publishes by an index, load that with acquire first.
    #[inline]
    pub fn read(self) -> T {
        // SAFETY: inside the region (at), which its maker keeps mapped (new's contract).
        unsafe { read_once(self.ptr.as_ptr().cast()) }
    }

    /// Relaxed: publish by an index stored with release.
    #[inline]
    pub fn write(self, value: T) {
        // SAFETY: inside the region and aligned (at); mapped and writable by new's contract.
        unsafe { self.ptr.as_ptr().write_volatile(value) }
    }
}

/// Reads each byte once, in the widest words that the address and the size allow.
///
/// # Safety
/// `size_of::<T>()` bytes from `from` are readable.
#[inline(always)]
unsafe fn read_once<T: Pod>(from: *const u8) -> T {
    /// # Safety
    /// `len` bytes are readable at `from` and writable at `to`; `from` is aligned for `W`; `len` is a multiple of its size.
    #[inline(always)]
    unsafe fn words<W: Copy>(from: *const u8, to: *mut u8, len: usize) {
        for i in 0..len / size_of::<W>() {
            // SAFETY: word i is inside both runs, by the contract; the store makes no claim of alignment.
            unsafe { to.cast::<W>().add(i).write_unaligned(from.cast::<W>().add(i).read_volatile()) }
        }
    }
    let mut out = MaybeUninit::<T>::uninit();
    let (to, len) = (out.as_mut_ptr().cast::<u8>(), size_of::<T>());
    // The sizes are constants: two of these tests, or all, are gone from the machine code.
    // SAFETY: the caller vouches for `from`; `to` is a T of our own; each branch tests the alignment it needs.
    unsafe {
        if len % 8 == 0 && from.cast::<u64>().is_aligned() {
            words::<u64>(from, to, len);
        } else if len % 4 == 0 && from.cast::<u32>().is_aligned() {
            words::<u32>(from, to, len);
        } else if len % 2 == 0 && from.cast::<u16>().is_aligned() {
            words::<u16>(from, to, len);
        } else {
            words::<u8>(from, to, len);
        }
        // Every byte is written, and every bit pattern is a T (Pod).
        out.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// 24 bytes counting up from 0, at an address that is a multiple of 8.
    fn with_region(f: impl FnOnce(ForeignRegion)) {
        let mut words: [u64; 3] =
            core::array::from_fn(|w| u64::from_ne_bytes(core::array::from_fn(|b| (w * 8 + b) as u8)));
        let base = NonNull::new(words.as_mut_ptr().cast()).unwrap();
        // SAFETY: `words` outlives `f`, and is not touched by name while `f` runs.
        f(unsafe { ForeignRegion::new(base, 24) });
    }

    #[test]
    fn a_value_is_read_at_any_offset_that_holds_it() {
        with_region(|r| {
            for at in 0..=16 {
                let want: [u8; 8] = core::array::from_fn(|b| (at + b) as u8);
                assert_eq!(r.read::<u64>(at).unwrap(), u64::from_ne_bytes(want));
                assert_eq!(r.read::<[u8; 8]>(at).unwrap(), want);
            }
            assert_eq!(r.read::<[u16; 3]>(2).unwrap()[0], u16::from_ne_bytes([2, 3]));
            assert_eq!(r.read::<u8>(23).unwrap(), 23);
            assert_eq!(r.get::<[u8; 24]>(0).unwrap()[23], 23);
        });
    }

    #[test]
    fn a_read_that_leaves_the_region_names_offset_and_limit() {
        with_region(|r| {
            for at in [17, 24, 25, usize::MAX, usize::MAX - 7] {
                assert_eq!(r.get::<u64>(at), None);
                let e = r.read::<u64>(at).unwrap_err();
                assert!(e.text().contains(&format!("offset {at} ")) && e.text().contains("24 bytes"), "{e}");
            }
            assert!(r.read::<[u8; 25]>(0).is_err());
            assert_eq!(r.read::<[u8; 0]>(24).unwrap(), [0u8; 0]);
        });
    }

    #[test]
    fn a_field_must_be_inside_and_aligned() {
        with_region(|r| {
            assert!(r.at::<u32>(2).unwrap_err().text().contains("aligned to 4"));
            assert!(r.at::<u32>(22).is_err());
            assert!(r.atomic_u32(21).is_err() && r.atomic_u16(23).is_err());
            let f = r.at::<u32>(4).unwrap();
            assert_eq!(f.read(), u32::from_ne_bytes([4, 5, 6, 7]));
            f.write(9);
            assert_eq!(f.read(), 9);
            r.atomic_u16(22).unwrap().store(0x0101, Ordering::Release);
            assert_eq!(r.read::<[u8; 2]>(22).unwrap(), [1, 1]);
        });
    }

    #[test]
    fn bytes_are_copied_whole_or_not_at_all() {
        with_region(|r| {
            let mut to = [0xffu8; 4];
            assert!(!r.copy_out(21, &mut to) && !r.copy_in(usize::MAX, &to));
            assert_eq!(to, [0xff; 4]);
            assert!(r.copy_out(20, &mut to));
            assert_eq!(to, [20, 21, 22, 23]);
            assert!(r.copy_in(0, &to) && r.copy_in(24, &[]));
            assert_eq!(r.read::<[u8; 4]>(0).unwrap(), to);
        });
    }

    #[test]
    fn a_value_that_a_peer_changes_is_read_whole_by_word() {
        with_region(|r| {
            let stop = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|s| {
                s.spawn(|| {
                    let f = r.at::<u64>(8).unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        f.write(0);
                        f.write(u64::MAX);
                    }
                });
                r.at::<u64>(8).unwrap().write(0);
                for _ in 0..20_000 {
                    let v = r.read::<u64>(8).unwrap();
                    assert!(v == 0 || v == u64::MAX, "{v:#x}");
                }
                stop.store(true, Ordering::Relaxed);
            });
        });
    }
}
