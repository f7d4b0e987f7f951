//! Structs that travel with their size, so that program and library may be of different ages.
//!
//! They only ever grow at their end, and in a configuration zero means the default. So a shorter one is filled up with
//! zeroes, and a longer one is fine as long as the library knows all that it says.

use crate::base::{Errno, Error, Result};
use crate::invalid;
use core::ffi::c_char;

/// No struct of ours will ever be larger: a size beyond it was not set.
const MOST: usize = 4096;

/// A configuration: `size` first, then plain integers and pointers.
///
/// # Safety
/// `repr(C)`, the first field is a `usize`, and all bytes at zero is a value.
pub(super) unsafe trait Conf: Copy {}

/// Reads a configuration of another age. -EINVAL for NULL or a size that was not set, -E2BIG where it asks for what this
/// library does not know.
///
/// # Safety
/// `p` is NULL or leads to as many bytes as its first field says.
pub(super) unsafe fn read<T: Conf>(p: *const T, what: &str) -> Result<T> {
    super::guard::not_null(p, what)?;
    // SAFETY: a Conf begins with its size.
    let size = unsafe { p.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > MOST {
        return invalid!("{what}: size {size}; set it to sizeof the struct ({} here)", size_of::<T>());
    }
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's promise; the tail lies within `size`.
    let tail = unsafe { core::slice::from_raw_parts(p.cast::<u8>().add(known), size - known) };
    if let Some(at) = tail.iter().position(|b| *b != 0) {
        let text = format!(
            "{what}: the byte at {} is set, and this library knows {} bytes: it is older than the program's header",
            known + at,
            size_of::<T>()
        );
        return Err(Error::new(Errno(libc::E2BIG), text));
    }
    // SAFETY: zero is a value of a Conf; `known` bytes are there on both sides.
    unsafe {
        let mut conf: T = core::mem::zeroed();
        core::ptr::copy_nonoverlapping(p.cast::<u8>(), (&raw mut conf).cast::<u8>(), known);
        Ok(conf)
    }
}

/// Writes `value` into a struct of another age: what fits, and zeroes behind what this library knows.
///
/// # Safety
/// `p` is NULL or leads to `size` writable bytes; `T` is `repr(C)` without padding.
pub(super) unsafe fn write<T: Copy>(p: *mut T, size: usize, value: T, what: &str) -> Result<()> {
    super::guard::not_null(p, what)?;
    if size == 0 || size > MOST {
        return invalid!("{what}: size {size}; give sizeof the struct ({} here)", size_of::<T>());
    }
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), p.cast::<u8>(), known);
        core::ptr::write_bytes(p.cast::<u8>().add(known), 0, size - known);
    }
    Ok(())
}

/// `s` in a fixed field: cut where it must be, and always ended by a NUL.
pub(super) fn fixed<const N: usize>(s: &str) -> [c_char; N] {
    let mut out = [0; N];
    let cut = (0..N.min(s.len() + 1)).rev().find(|i| s.is_char_boundary(*i)).unwrap_or(0);
    for (o, b) in out.iter_mut().zip(&s.as_bytes()[..cut]) {
        *o = *b as c_char;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    struct Old {
        size: usize,
        a: u32,
        b: u32,
    }
    // SAFETY: size first, then integers.
    unsafe impl Conf for Old {}

    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    struct New {
        size: usize,
        a: u32,
        b: u32,
        c: u64,
    }
    // SAFETY: as above.
    unsafe impl Conf for New {}

    #[test]
    fn a_shorter_struct_is_filled_up_and_a_longer_one_must_be_zero_behind() {
        let old = Old { size: size_of::<Old>(), a: 1, b: 2 };
        // SAFETY: `size` bytes are there.
        let new = unsafe { read((&raw const old).cast::<New>(), "conf") }.unwrap();
        assert_eq!((new.a, new.b, new.c), (1, 2, 0));
        let mut new = New { size: size_of::<New>(), a: 3, b: 4, c: 0 };
        // SAFETY: as above.
        let seen = unsafe { read((&raw const new).cast::<Old>(), "conf") }.unwrap();
        assert_eq!((seen.a, seen.b), (3, 4));
        new.c = 1;
        // SAFETY: as above.
        let e = unsafe { read((&raw const new).cast::<Old>(), "conf") }.unwrap_err();
        assert_eq!(e.errno().0, libc::E2BIG);
        new.size = 0;
        // SAFETY: as above.
        let e = unsafe { read(&new, "conf") }.unwrap_err();
        assert_eq!(e.errno(), Errno::INVAL);
    }

    #[test]
    fn writing_fills_what_fits_and_zeroes_the_rest() {
        let mut out = [0xffu8; 24];
        let v = Old { size: 16, a: 1, b: 2 };
        // SAFETY: 24 bytes are there.
        unsafe { write(out.as_mut_ptr().cast(), 24, v, "out") }.unwrap();
        assert_eq!((out[8], out[12], out[16]), (1, 2, 0));
        let mut out = [0xffu8; 24];
        // SAFETY: as above.
        unsafe { write(out.as_mut_ptr().cast(), 12, v, "out") }.unwrap();
        assert_eq!((out[8], out[12]), (1, 0xff));
    }

    #[test]
    fn a_fixed_text_is_cut_at_a_character_and_ends_with_nul() {
        assert_eq!(fixed::<4>("ab").map(|c| c as u8), *b"ab\0\0");
        assert_eq!(fixed::<4>("abé").map(|c| c as u8), *b"ab\0\0");
    }
}
