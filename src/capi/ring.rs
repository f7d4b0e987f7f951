//! Rings of pointers between threads. The bursts are hot.

use super::guard::{control, not_null, pointer, str_arg};
use crate::invalid;
use crate::ring::{Ring, Sync};
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;

/// Ring: one thread at a time puts.
pub const BL_RING_SINGLE_PRODUCER: u32 = 1;
/// Ring: one thread at a time takes.
pub const BL_RING_SINGLE_CONSUMER: u32 = 2;
/// Ring: exactly `count` entries, which need not be a power of two.
pub const BL_RING_EXACT: u32 = 4;

/// A ring of pointers. Opaque.
pub struct bl_ring {
    ring: Ring,
}

/// Makes a ring of `count` entries, a power of two unless BL_RING_EXACT, at most 2^30. The caller owns it, and what it holds.
/// `flags` are BL_RING_… or-ed; without them any number of threads may be at either side. NULL: -EINVAL, -ENOMEM. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_create(name: *const c_char, count: u32, flags: u32) -> *mut bl_ring {
    pointer(|| {
        let known = BL_RING_SINGLE_PRODUCER | BL_RING_SINGLE_CONSUMER | BL_RING_EXACT;
        if flags & !known != 0 {
            return invalid!("ring flags {flags:#x}: only {known:#x} mean something");
        }
        let sync = |flag| if flags & flag != 0 { Sync::Single } else { Sync::Multi };
        // SAFETY: a C string by this function's contract.
        let name = unsafe { str_arg(name, "name") }?;
        let (prod, cons) = (sync(BL_RING_SINGLE_PRODUCER), sync(BL_RING_SINGLE_CONSUMER));
        let ring = Ring::new(name, count, prod, cons, flags & BL_RING_EXACT != 0)?;
        Ok(Box::into_raw(Box::new(bl_ring { ring })))
    })
}

/// Frees a ring that nobody uses any more. Pointers that are still in it are the caller's. Errors: -EINVAL. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_free(ring: *mut bl_ring) -> c_int {
    control(|| {
        not_null(ring, "ring")?;
        // SAFETY: made by `bl_ring_create`, given back once.
        drop(unsafe { Box::from_raw(ring) });
        Ok(())
    })
}

#[inline(always)]
unsafe fn put<const BULK: bool>(r: *mut bl_ring, objs: *const *mut c_void, n: u32, free: *mut u32) -> u32 {
    if n == 0 && free.is_null() {
        return 0;
    }
    // SAFETY: a live ring, `n` pointers and the mode's promise by the contract of the callers; a slice of none is not read.
    unsafe {
        let objs = if n == 0 { &[] } else { core::slice::from_raw_parts(objs.cast::<*mut ()>(), n as usize) };
        if free.is_null() {
            return (*r).ring.enqueue::<BULK>(objs) as u32;
        }
        let (n, left) = (*r).ring.enqueue_with_free::<BULK>(objs);
        *free = left;
        n as u32
    }
}

#[inline(always)]
unsafe fn take<const BULK: bool>(r: *mut bl_ring, objs: *mut *mut c_void, n: u32, left: *mut u32) -> u32 {
    if n == 0 && left.is_null() {
        return 0;
    }
    // SAFETY: as in `put`, with room for `n`.
    unsafe {
        let to = objs.cast::<MaybeUninit<*mut ()>>();
        let objs = if n == 0 { &mut [] } else { core::slice::from_raw_parts_mut(to, n as usize) };
        if left.is_null() {
            return (*r).ring.dequeue::<BULK>(objs) as u32;
        }
        let (n, rest) = (*r).ring.dequeue_with_avail::<BULK>(objs);
        *left = rest;
        n as u32
    }
}

/// Puts all `n` pointers or none; returns `n` or 0. The free entries after it go to `free_count`, unless that is NULL. Hot.
/// Any thread; one at a time with BL_RING_SINGLE_PRODUCER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_enqueue_bulk(
    ring: *mut bl_ring,
    objs: *const *mut c_void,
    n: u32,
    free_count: *mut u32,
) -> u32 {
    // SAFETY: this function's contract.
    unsafe { put::<true>(ring, objs, n, free_count) }
}

/// Puts as many of `n` pointers as fit, from the front; returns how many. Else as `bl_ring_enqueue_bulk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_enqueue_burst(
    ring: *mut bl_ring,
    objs: *const *mut c_void,
    n: u32,
    free_count: *mut u32,
) -> u32 {
    // SAFETY: this function's contract.
    unsafe { put::<false>(ring, objs, n, free_count) }
}

/// Takes `n` pointers or none; returns `n` or 0. The entries left after it go to `left`, unless that is NULL. Hot.
/// Any thread; one at a time with BL_RING_SINGLE_CONSUMER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_dequeue_bulk(
    ring: *mut bl_ring,
    objs: *mut *mut c_void,
    n: u32,
    left: *mut u32,
) -> u32 {
    // SAFETY: this function's contract.
    unsafe { take::<true>(ring, objs, n, left) }
}

/// Takes up to `n` pointers; returns how many. Else as `bl_ring_dequeue_bulk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_dequeue_burst(
    ring: *mut bl_ring,
    objs: *mut *mut c_void,
    n: u32,
    left: *mut u32,
) -> u32 {
    // SAFETY: this function's contract.
    unsafe { take::<false>(ring, objs, n, left) }
}

/// Entries that can be taken now. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_count(ring: *const bl_ring) -> u32 {
    // SAFETY: NULL, or a live ring by this function's contract.
    unsafe { ring.as_ref() }.map_or(0, |r| r.ring.len())
}

/// Entries that can be put now. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_free_count(ring: *const bl_ring) -> u32 {
    // SAFETY: as above.
    unsafe { ring.as_ref() }.map_or(0, |r| r.ring.free_count())
}

/// Entries in all. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ring_capacity(ring: *const bl_ring) -> u32 {
    // SAFETY: as above.
    unsafe { ring.as_ref() }.map_or(0, |r| r.ring.capacity())
}
