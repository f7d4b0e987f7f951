//! Packets: taking and giving back, and the operations on their bytes.

use super::guard::{control, not_null, pointer};
use super::pool::bl_pool;
use crate::base::Result;
use crate::mbuf::{ExtShared, RawMbuf, check};
use crate::pool::{PoolInner, alloc_one_raw, alloc_raw, free_packet, free_packets};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

/// The pool behind a handle.
unsafe fn inner<'a>(pool: *mut bl_pool) -> Result<&'a PoolInner> {
    not_null(pool, "pool")?;
    // SAFETY: the caller's handle keeps the pool.
    Ok(unsafe { &*pool.cast::<PoolInner>() })
}

/// Takes a packet: one empty segment behind BL_HEADROOM bytes. NULL where the pool is empty. The caller owns it, until it is
/// freed or sent. Hot. Any thread; quickest on a registered one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_alloc(pool: *mut bl_pool) -> *mut RawMbuf {
    // SAFETY: a handle by this function's contract.
    match unsafe { pool.cast::<PoolInner>().as_ref() } {
        // SAFETY: as above.
        Some(p) => unsafe { alloc_one_raw(p) },
        None => core::ptr::null_mut(),
    }
}

/// Takes `n` packets into `pkts`, or none: 0 or -ENOMEM. Hot. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_alloc_bulk(pool: *mut bl_pool, pkts: *mut *mut RawMbuf, n: u32) -> c_int {
    // SAFETY: a handle by this function's contract, and room for `n`.
    match unsafe { pool.cast::<PoolInner>().as_ref() } {
        // SAFETY: as above.
        Some(p) if n == 0 || unsafe { alloc_raw(p, pkts, n as usize) } => 0,
        _ => -libc::ENOMEM,
    }
}

/// Frees a packet with all its segments; NULL is fine. Those that another packet borrows from live on until it is freed.
/// Hot. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_free(m: *mut RawMbuf) {
    if !m.is_null() {
        // SAFETY: the caller's packet, which it gives away.
        unsafe { free_packet(m) };
    }
}

/// Frees `n` packets, as `bl_mbuf_free` each. Hot. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_free_bulk(pkts: *mut *mut RawMbuf, n: u32) {
    // SAFETY: `pkts` holds `n` packets of the caller, or NULLs.
    unsafe { free_packets(pkts, n as usize) };
}

/// Makes `len` more bytes before the packet's data, and gives the first. NULL: -ENOSPC with the headroom there is, -EBUSY
/// where other packets refer to the bytes, -EACCES where they are read-only. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_prepend(m: *mut RawMbuf, len: u32) -> *mut c_void {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::prepend(m, len as usize) }.map(|p| p.cast())
    })
}

/// Makes `len` more bytes behind the packet's data, in its last segment, and gives the first. NULL as `bl_mbuf_prepend`.
/// Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_append(m: *mut RawMbuf, len: u32) -> *mut c_void {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::append(m, len as usize) }.map(|p| p.cast())
    })
}

/// Cuts `len` bytes off the front of the first segment. Errors: -EINVAL with the bytes it has. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_adj(m: *mut RawMbuf, len: u32) -> c_int {
    control(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::adj(m, len as usize) }
    })
}

/// Cuts `len` bytes off the packet's end, over segments, and frees those that it empties, the first apart. Errors: -EINVAL
/// with the bytes it has. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_trim(m: *mut RawMbuf, len: u32) -> c_int {
    control(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::trim(m, len as usize) }
    })
}

/// Copies `len` bytes from `offset` of the packet to `to`, whatever it is made of. Errors: -EINVAL where they are not all in
/// it; nothing is copied then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_read(m: *const RawMbuf, offset: u32, len: u32, to: *mut c_void) -> c_int {
    control(|| {
        not_null(m, "m")?;
        not_null(to, "to")?;
        // SAFETY: the caller's packet; `to` takes `len` bytes, and lies outside of it.
        unsafe { RawMbuf::read(m, offset as usize, len as usize, to.cast()) }
    })
}

/// Copies `len` bytes from `from` to `offset` of the packet, which does not grow. Errors: -EINVAL where they do not all lie in
/// it, -EBUSY where other packets refer to some of them, -EACCES where they are read-only; nothing is written then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_write(m: *mut RawMbuf, offset: u32, len: u32, from: *const c_void) -> c_int {
    control(|| {
        not_null(m, "m")?;
        not_null(from, "from")?;
        // SAFETY: as in `bl_mbuf_read`.
        unsafe { RawMbuf::write(m, offset as usize, len as usize, from.cast()) }
    })
}

/// The address of `len` bytes at `offset` where they lie in one segment, else NULL (without a text). Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_contiguous(m: *const RawMbuf, offset: u32, len: u32) -> *mut c_void {
    if m.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: the caller's packet.
    unsafe { RawMbuf::contiguous(m, offset as usize, len as usize) }.cast()
}

/// Puts the segments of `tail` behind those of `head`: `tail` is part of `head` from then on, and its metadata is lost.
/// Errors: -EOVERFLOW beyond 65535 segments or 2^32 - 1 bytes, -EINVAL; both are as they were then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_chain(head: *mut RawMbuf, tail: *mut RawMbuf) -> c_int {
    control(|| {
        not_null(head, "head")?;
        not_null(tail, "tail")?;
        // SAFETY: the caller's packets.
        unsafe { RawMbuf::chain(head, tail) }
    })
}

/// Leaves the first `offset` bytes in the packet, and gives the others as a packet of the caller's with the same metadata.
/// What follows the cut within a segment is copied into packets of `pool`. NULL: -EINVAL beyond the packet, -ENOMEM; nothing
/// has changed then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_split(m: *mut RawMbuf, offset: u32, pool: *mut bl_pool) -> *mut RawMbuf {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet and handle.
        unsafe { RawMbuf::split_at(m, offset as usize, inner(pool)?) }
    })
}

/// Takes the segments from number `at` on off the packet, as a packet of the caller's with the same metadata. NULL: -EINVAL
/// where `at` is 0 or not below its segments. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_split_segments(m: *mut RawMbuf, at: u16) -> *mut RawMbuf {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::split_segments(m, at) }
    })
}

/// Brings all bytes into the first segment, and frees the others. Errors: -EMSGSIZE with length and room, -EBUSY where other
/// packets refer to its bytes; nothing has changed then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_linearize(m: *mut RawMbuf) -> c_int {
    control(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe { RawMbuf::linearize(m) }
    })
}

/// A packet of the caller's, made of headers of `pool`, that shares the bytes of `m` and carries its metadata. While both live,
/// neither may be written. The pool may be one without rooms. NULL: -ENOMEM, -EOVERFLOW. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_clone(m: *mut RawMbuf, pool: *mut bl_pool) -> *mut RawMbuf {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet and handle.
        unsafe { RawMbuf::clone(m, inner(pool)?) }
    })
}

/// A packet of `pool`, the caller's, that holds its own copy of `len` bytes from `offset`, and the metadata. NULL: -EINVAL
/// beyond the packet, -ENOMEM. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_copy(m: *const RawMbuf, pool: *mut bl_pool, offset: u32, len: u32) -> *mut RawMbuf {
    pointer(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet and handle.
        unsafe { RawMbuf::copy(m, inner(pool)?, offset as usize, len as usize) }
    })
}

/// Sets up the shared part of an external buffer, with one reference, which `bl_mbuf_attach_ext` takes. `free_cb` is called
/// once, on the thread that drops the last reference, with the buffer's address and `opaque`; NULL: nobody is told.
/// `shared` may lie in the buffer, and must live until then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_ext_shared_init(
    shared: *mut ExtShared,
    free_cb: Option<unsafe extern "C" fn(addr: *mut c_void, opaque: *mut c_void)>,
    opaque: *mut c_void,
) -> c_int {
    control(|| {
        not_null(shared, "shared")?;
        // SAFETY: room for one by this function's contract.
        unsafe { shared.write(ExtShared { free_cb, opaque, refcnt: 1.into() }) };
        Ok(())
    })
}

/// Points a fresh packet at `len` bytes from `addr`: they are its buffer, empty of data and without headroom, until it is
/// freed. `iova` is their address for a device, or BL_NO_IOVA. The packet takes one reference of `shared`.
/// Errors: -EINVAL for NULLs or a count of 0, -EBUSY where the packet is attached, shared or chained; the reference stays with
/// the caller then. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_attach_ext(
    m: *mut RawMbuf,
    addr: *mut c_void,
    iova: u64,
    len: u16,
    shared: *mut ExtShared,
) -> c_int {
    control(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet; bytes and shared part as this function's contract says.
        unsafe { RawMbuf::attach_ext(m, addr.cast(), iova, len, shared) }
    })
}

/// 0 where the packet is what its header says: lengths within the buffers, that add up. Else -EINVAL. Owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_mbuf_validate(m: *const RawMbuf) -> c_int {
    control(|| {
        not_null(m, "m")?;
        // SAFETY: the caller's packet.
        unsafe {
            if check::is_sound(m) && (*m).refcnt.load(Relaxed) != 0 {
                return Ok(());
            }
            crate::invalid!("{} segments and {} bytes do not agree with the chain", (*m).nb_segs, (*m).pkt_len)
        }
    })
}
