//! Packet pools.

use super::guard::{control, not_null, pointer, str_arg};
use super::sized::{Conf, fixed, read, write};
use crate::base::{Error, Result};
use crate::mem::PagePolicy;
use crate::pool::{Pool, PoolConfig, PoolInner};
use core::ffi::{c_char, c_int};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes before the data of a fresh packet.
pub const BL_HEADROOM: u32 = 256;
/// bl_pool_conf.room: packets without rooms, for clones and external buffers.
pub const BL_POOL_NO_ROOM: u32 = 4294967295;
/// bl_pool_conf.cache: no packets set aside for threads.
pub const BL_POOL_NO_CACHE: u32 = 4294967295;
/// bl_pool_conf.flags: rooms start at multiples of a power of two.
pub const BL_POOL_ALIGNED: u32 = 1;
/// bl_pool_conf.flags: the rooms may be mapped by a peer, or given to a device.
pub const BL_POOL_SHARED: u32 = 2;
/// bl_pool_conf.flags: ordinary pages, also where there are hugepages.
pub const BL_POOL_NO_HUGE: u32 = 4;
/// bl_pool_conf.flags: track every packet, as BL_DEBUG_POOLS does.
pub const BL_POOL_DEBUG: u32 = 8;

const _: () = assert!(BL_HEADROOM == crate::pool::HEADROOM as u32);

/// A pool of packets. Opaque.
pub struct bl_pool {
    _inner: PoolInner,
}

/// What a pool shall be. Zero means the default, in every field but `size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_pool_conf {
    /// sizeof(struct bl_pool_conf).
    pub size: usize,
    /// 1 to 63 bytes, unique among the pools that live. NULL: "pool" and a number.
    pub name: *const c_char,
    /// Packets: 1 to 2^26 (8192).
    pub n: u32,
    /// Bytes of a packet's room, BL_HEADROOM included: 320 to 65535 (2304), or BL_POOL_NO_ROOM.
    pub room: u32,
    /// Packets that a registered thread may keep to itself: 1 to 512 (256, less in a small pool), or BL_POOL_NO_CACHE.
    pub cache: u32,
    /// BL_POOL_… or-ed.
    pub flags: u32,
}

// SAFETY: size first, then a pointer and integers.
unsafe impl Conf for bl_pool_conf {}

/// A pool as it is now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_pool_info {
    pub name: [c_char; 64],
    /// Packets in all.
    pub n: u32,
    /// Packets that can be had: in the pool, or in a thread's cache of it.
    pub available: u32,
    /// Packets in a program's or a driver's hands.
    pub in_use: u32,
    /// Queues that use the pool.
    pub queues: u32,
    /// Bytes of a room with its headroom; 0: none.
    pub room: u32,
    pub headroom: u32,
    /// Bytes from one room to the next.
    pub stride: u64,
    /// Packets that a registered thread may keep to itself.
    pub cache: u32,
    /// 1 where every packet is tracked.
    pub debug: u32,
    /// Bytes of the pages that hold the packets' headers, and the rooms.
    pub header_page: u64,
    pub room_page: u64,
    /// The command that would give hugepages where there were none, else "".
    pub hugepage_hint: [c_char; 256],
}

fn config(c: &bl_pool_conf) -> Result<PoolConfig> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let usual = PoolConfig::default();
    let known = BL_POOL_ALIGNED | BL_POOL_SHARED | BL_POOL_NO_HUGE | BL_POOL_DEBUG;
    if c.flags & !known != 0 {
        return crate::invalid!("pool flags {:#x}: only {known:#x} mean something", c.flags);
    }
    let n = if c.n == 0 { usual.n } else { c.n };
    let name = match c.name.is_null() {
        true => format!("pool{}", NEXT.fetch_add(1, Relaxed)),
        // SAFETY: a C string by the struct's contract.
        false => unsafe { str_arg(c.name, "name") }?.to_owned(),
    };
    Ok(PoolConfig {
        name,
        n,
        room: match c.room {
            0 => usual.room,
            BL_POOL_NO_ROOM => 0,
            room => room,
        },
        cache: match c.cache {
            0 => usual.cache.min(n / 3 * 2),
            BL_POOL_NO_CACHE => 0,
            cache => cache,
        },
        aligned_rooms: c.flags & BL_POOL_ALIGNED != 0,
        shared_with_peer: c.flags & BL_POOL_SHARED != 0,
        debug: (c.flags & BL_POOL_DEBUG != 0).then_some(true),
        pages: if c.flags & BL_POOL_NO_HUGE != 0 { PagePolicy::NO_HUGE } else { super::lcore::pages() },
    })
}

/// Runs `f` on the pool behind a handle, which stays the program's.
///
/// # Safety
/// `pool` is NULL or a handle that was not given back.
pub(super) unsafe fn with<T>(pool: *const bl_pool, f: impl FnOnce(&Pool) -> Result<T>) -> Result<T> {
    not_null(pool, "pool")?;
    // SAFETY: the caller's promise; the handle is not dropped here.
    match unsafe { Pool::from_raw(pool.cast_mut().cast()) }.map(ManuallyDrop::new) {
        Some(p) => f(&p),
        None => crate::invalid!("pool is NULL"),
    }
}

/// Takes the handle for an operation that ends it, and gives it back where that fails.
unsafe fn end(pool: *mut bl_pool, f: impl FnOnce(Pool) -> Result<(), (Pool, Error)>) -> Result<()> {
    not_null(pool, "pool")?;
    // SAFETY: as `with`.
    let Some(p) = (unsafe { Pool::from_raw(pool.cast()) }) else { return crate::invalid!("pool is NULL") };
    f(p).map_err(|(p, e)| {
        let _ = p.into_raw();
        e
    })
}

/// Makes a pool. The caller owns it, until `bl_pool_free` or `bl_pool_close`. Hugepages are used where there are free ones.
/// NULL: -EINVAL with the value and the limit, -EEXIST for a name in use, -ENOMEM with need and free. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_create(conf: *const bl_pool_conf) -> *mut bl_pool {
    // SAFETY: a configuration of its own size by this function's contract.
    pointer(|| Ok(Pool::new(config(&unsafe { read(conf, "conf") }?)?)?.into_raw().cast()))
}

/// Frees a pool of which nothing is in use. Else -EBUSY with the counts of packets and queues: nothing has changed then, and
/// the handle is still good. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_free(pool: *mut bl_pool) -> c_int {
    // SAFETY: a handle by this function's contract.
    control(|| unsafe { end(pool, Pool::free) })
}

/// Ends the handle; the memory goes with the pool's last packet and last queue. Packets may still be freed, sent and received.
/// -EBUSY, with nothing changed, where a thread stays inside its cache for over two seconds. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_close(pool: *mut bl_pool) -> c_int {
    // SAFETY: as above.
    control(|| unsafe { end(pool, Pool::close) })
}

/// The pool as it is now, into the `size` bytes of `info`. Errors: -EINVAL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_info_get(pool: *const bl_pool, info: *mut bl_pool_info, size: usize) -> c_int {
    let get = |p: &Pool| {
        let i = p.info();
        let value = bl_pool_info {
            name: fixed(&i.name),
            n: i.size,
            available: i.available,
            in_use: i.in_use,
            queues: i.queues,
            room: i.room.into(),
            headroom: i.headroom.into(),
            stride: i.stride as u64,
            cache: i.cache.into(),
            debug: i.debug.into(),
            header_page: i.header_page as u64,
            room_page: i.room_page as u64,
            hugepage_hint: fixed(i.hugepage_hint.as_deref().unwrap_or("")),
        };
        // SAFETY: `size` bytes by this function's contract.
        unsafe { write(info, size, value, "info") }
    };
    // SAFETY: a handle by this function's contract.
    control(|| unsafe { with(pool, get) })
}

/// Packets that can be had: in the pool, or in a thread's cache of it. Exact while nothing moves. 0 for NULL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_available(pool: *const bl_pool) -> u32 {
    // SAFETY: NULL, or a handle by this function's contract.
    unsafe { pool.cast::<PoolInner>().as_ref() }.map_or(0, |p| p.size() - p.in_use())
}

/// Packets of the pool in all. 0 for NULL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_pool_size(pool: *const bl_pool) -> u32 {
    // SAFETY: as above.
    unsafe { pool.cast::<PoolInner>().as_ref() }.map_or(0, PoolInner::size)
}
