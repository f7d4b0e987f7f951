//! The program's handle on a pool, and the list of pools there are.

use super::cache::{Cache, CacheStats};
use super::debug::DebugTable;
use super::inner::{HEADROOM, KEEPER, MAX_CACHE, PoolHold, PoolInner, PoolRef};
use super::release;
use crate::base::bits::CACHE_LINE;
use crate::base::{Errno, Error, Result};
use crate::mbuf::layout::RawMbuf;
use crate::mbuf::layout::{NO_PORT, rearm_word};
use crate::mem::{PagePolicy, PageSize, Segment};
use crate::ring::{Ring, Sync};
use crate::{fail, invalid, log_warn};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering::*};
use core::time::Duration;
use std::sync::Mutex;

/// Pools that live, by address. Raw: the list keeps none alive.
static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());
struct Listed(*mut PoolInner);
// SAFETY: PoolInner is Sync, and the list is only read under its lock.
unsafe impl Send for Listed {}

/// New pools track their packets when this is set (`--debug-pools`, `bl_debug_set`).
static DEBUG: AtomicBool = AtomicBool::new(false);

/// How long closing waits for a thread that is inside a cache.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
const MAX_NAME: usize = 63;
/// Headers of one pool at most.
pub const MAX_PACKETS: u32 = 1 << 26;

fn list_lock() -> std::sync::MutexGuard<'static, Vec<Listed>> {
    LIST.lock().unwrap_or_else(|e| e.into_inner())
}

pub(super) fn forget(p: *mut PoolInner) {
    list_lock().retain(|l| l.0 != p);
}

/// Every pool that lives. The lock is gone when they are used: dropping the last reference takes it again.
fn held() -> Vec<PoolHold> {
    let list = list_lock();
    // SAFETY: a listed pool is valid: `forget` takes this lock before the memory goes.
    list.iter().filter_map(|l| PoolHold::try_new(unsafe { &*l.0 })).collect()
}

/// Gives a thread's caches back to their pools. Called by the thread itself, as its slot ends.
pub(super) fn drain_slot(slot: u32) {
    for hold in held() {
        let pool = &*hold;
        let _control = pool.control.lock().unwrap_or_else(|e| e.into_inner());
        let p = pool.caches[slot as usize].load(Acquire);
        if !p.is_null() && !pool.closed.load(Relaxed) {
            // SAFETY: the calling thread owns the slot's caches; `held` keeps the pool while the references drop.
            unsafe {
                let n = (*p).drain(pool);
                pool.drop_refs(n);
            }
        }
    }
}

/// What a pool shall be.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// 1 to 63 bytes; unique among the pools that live.
    pub name: String,
    /// Packets: 1 to 2^26.
    pub n: u32,
    /// Bytes of a packet's room, [`HEADROOM`] included; 0 for a pool of headers alone.
    pub room: u32,
    /// Packets that a thread may keep to itself: 0 to [`MAX_CACHE`], and 1.5 times it at most `n`.
    pub cache: u32,
    /// Rooms start at multiples of a power of two (an aligned UMEM needs 2048 or 4096).
    pub aligned_rooms: bool,
    /// The rooms may be mapped by a peer or given to a device.
    pub shared_with_peer: bool,
    /// Track every packet; None: as set for the process.
    pub debug: Option<bool>,
    pub pages: PagePolicy,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig {
            name: "pool".into(),
            n: 8192,
            room: 2048 + u32::from(HEADROOM),
            cache: 256,
            aligned_rooms: false,
            shared_with_peer: false,
            debug: None,
            pages: PagePolicy::default(),
        }
    }
}

/// A pool as it is now.
#[derive(Clone, Debug, Default)]
pub struct PoolInfo {
    pub name: String,
    pub size: u32,
    /// In the shared ring or in a cache.
    pub available: u32,
    /// In a program's or a driver's hands.
    pub in_use: u32,
    /// Configured queues that use it.
    pub queues: u32,
    pub room: u16,
    pub headroom: u16,
    pub stride: usize,
    pub cache: u16,
    pub debug: bool,
    /// Bytes of the pages that hold the headers and the rooms.
    pub header_page: usize,
    pub room_page: usize,
    /// The command that would give hugepages, where there were none.
    pub hugepage_hint: Option<String>,
    pub caches: Vec<CacheStats>,
}

/// The program's handle. Dropping it ends the handle ([`Pool::close`]); the memory goes with the last packet and queue.
pub struct Pool(NonNull<PoolInner>);

// SAFETY: PoolInner is Send and Sync; the handle holds a reference.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl core::marker::Sync for Pool {}

/// Makes pools that say nothing else track their packets, from now on.
pub fn set_debug(on: bool) {
    DEBUG.store(on, Relaxed);
}

fn stride_of(room: usize, aligned: bool) -> usize {
    if aligned {
        return room.next_power_of_two();
    }
    // An odd number of lines, so that the first lines of a burst fall into different sets of a cache.
    let lines = room.div_ceil(CACHE_LINE);
    (lines | 1) * CACHE_LINE
}

fn check(c: &PoolConfig) -> Result<()> {
    let name = &c.name;
    if name.is_empty() || name.len() > MAX_NAME {
        return invalid!("pool name '{name}': {} bytes, allowed are 1 to {MAX_NAME}", name.len());
    }
    if c.n == 0 || c.n > MAX_PACKETS {
        return invalid!("pool '{name}': {} packets, allowed are 1 to {MAX_PACKETS}", c.n);
    }
    let least = u32::from(HEADROOM) + 64;
    if c.room != 0 && !(least..=u32::from(u16::MAX)).contains(&c.room) {
        return invalid!(
            "pool '{name}': room of {} bytes; it holds {HEADROOM} bytes of headroom and the data: {least} to {}, or 0 for headers alone",
            c.room,
            u16::MAX
        );
    }
    if c.cache as usize > MAX_CACHE {
        return invalid!("pool '{name}': cache of {} packets, the limit is {MAX_CACHE}", c.cache);
    }
    if u64::from(c.cache) * 3 / 2 > u64::from(c.n) {
        return invalid!(
            "pool '{name}': cache of {} packets needs a pool of {} or more, not {}",
            c.cache,
            c.cache * 3 / 2,
            c.n
        );
    }
    Ok(())
}

impl Pool {
    pub fn new(c: PoolConfig) -> Result<Pool> {
        check(&c)?;
        crate::base::cpu::membarrier_init();
        let (n, room) = (c.n as usize, c.room as usize);
        let stride = if room == 0 { 0 } else { stride_of(room, c.aligned_rooms) };
        // The rooms first: they are the larger part, so that a pool too large for the machine is refused untouched.
        let seg_rooms = match n.checked_mul(stride) {
            Some(0) => None,
            Some(len) => Some(
                Segment::shared(&format!("burstline-{}", c.name), len, c.pages)
                    .map_err(|e| e.context(format!("pool '{}': rooms", c.name)))?,
            ),
            None => return invalid!("pool '{}': {n} rooms of {stride} bytes do not fit into memory", c.name),
        };
        let seg_headers = Segment::private(n * size_of::<RawMbuf>(), c.pages)
            .map_err(|e| e.context(format!("pool '{}': headers", c.name)))?;
        let ring = Ring::new(&c.name, c.n, Sync::Multi, Sync::Multi, true)?;
        let debug = c.debug.unwrap_or(DEBUG.load(Relaxed)).then(|| DebugTable::new(c.n));
        let inner = PoolInner::new(
            c.name,
            c.n,
            c.room as u16,
            stride,
            c.cache as u16,
            ring,
            seg_headers,
            seg_rooms,
            debug,
            c.shared_with_peer,
        );
        let p = Box::into_raw(inner);
        {
            let mut list = list_lock();
            // SAFETY: listed pools are valid under the lock; `p` was just made.
            let taken = list.iter().any(|l| unsafe { (*l.0).name == (*p).name && !(*l.0).closed.load(Acquire) });
            if taken {
                // SAFETY: made above, known to nobody.
                let inner = unsafe { Box::from_raw(p) };
                return fail!(EXIST, "there is a pool '{}' already", inner.name);
            }
            list.push(Listed(p));
        }
        // SAFETY: `p` is valid and known to the list alone, which only looks at it.
        unsafe { fill(p) };
        NonNull::new(p).map(Pool).ok_or_else(|| Error::new(Errno::NOMEM, "no memory"))
    }

    pub(crate) fn inner(&self) -> &PoolInner {
        // SAFETY: the handle holds a reference.
        unsafe { self.0.as_ref() }
    }

    /// The raw handle, for C. Give it back with [`Pool::from_raw`].
    pub fn into_raw(self) -> *mut PoolInner {
        let p = self.0.as_ptr();
        core::mem::forget(self);
        p
    }

    /// # Safety
    /// `p` came from [`Pool::into_raw`] and is given back once.
    pub unsafe fn from_raw(p: *mut PoolInner) -> Option<Pool> {
        NonNull::new(p).map(Pool)
    }

    /// A share for a queue.
    pub fn reference(&self) -> PoolRef {
        PoolRef::new(self.inner())
    }

    pub fn name(&self) -> &str {
        self.inner().name()
    }

    pub fn size(&self) -> u32 {
        self.inner().n
    }

    /// Packets in the shared ring or in a cache; exact while nothing moves.
    pub fn available(&self) -> u32 {
        self.inner().n - self.inner().in_use()
    }

    pub fn info(&self) -> PoolInfo {
        info_of(self.inner())
    }

    /// What debug mode found wrong so far, oldest first (at most 64).
    pub fn debug_reports(&self) -> Vec<String> {
        self.inner().debug.as_ref().map(|d| d.reports()).unwrap_or_default()
    }

    /// In debug mode: a line for each packet that is out.
    pub fn outstanding(&self) -> Vec<String> {
        self.inner().debug.as_ref().map(|d| d.outstanding()).unwrap_or_default()
    }

    /// Ends the pool if nothing of it is in use. Else -EBUSY with the counts, and the handle back.
    pub fn free(self) -> Result<(), (Pool, Error)> {
        let (out, queues) = (self.inner().in_use(), self.inner().queues.load(Acquire));
        if out != 0 || queues != 0 {
            let e = format!("pool '{}': {out} packets are out and {queues} queues use it", self.name());
            return Err((self, Error::new(Errno::BUSY, e)));
        }
        self.close()
    }

    /// Ends the handle. The memory goes with the last packet and the last queue. -EBUSY with the handle, nothing
    /// changed, where a thread stays inside one of its caches for longer than two seconds.
    pub fn close(self) -> Result<(), (Pool, Error)> {
        match self.close_inner() {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(e) => Err((self, e)),
        }
    }

    fn close_inner(&self) -> Result<()> {
        let pool = self.inner();
        let mut drained = 0;
        {
            let _control = pool.control.lock().unwrap_or_else(|e| e.into_inner());
            let caches: Vec<&Cache> = pool.each_cache().map(|(_, c)| c).collect();
            if !Cache::shut(&caches, CLOSE_LIMIT) {
                return fail!(BUSY, "pool '{}': a thread stayed inside its cache for over {CLOSE_LIMIT:?}", pool.name);
            }
            for c in caches {
                // SAFETY: shut above.
                drained += unsafe { c.drain(pool) };
            }
            pool.closed.store(true, Release);
        }
        // Without the lock: a log callback may use the pool.
        for line in self.outstanding() {
            log_warn!("pool '{}' closes with {line}", pool.name);
        }
        // SAFETY: the drained headers' references and the handle's own, whose caller forgets it.
        unsafe { (*self.0.as_ptr()).drop_words(drained as u64 + KEEPER) };
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Err(e) = self.close_inner() {
            // Kept rather than freed under a thread that is inside.
            log_warn!("{e}; its memory is kept");
        }
    }
}

/// Sets up every header once, and puts them all into the ring.
unsafe fn fill(p: *mut PoolInner) {
    // SAFETY: the caller made the pool and alone knows it; the headers' segment holds `n` zeroed headers.
    unsafe {
        let pool = &*p;
        for i in 0..pool.n as usize {
            let m = pool.headers.add(i);
            (*m).pool = p.cast_const().cast();
            release::set_own_room(m);
            RawMbuf::set_rearm(m, rearm_word(if pool.room == 0 { 0 } else { HEADROOM }, 1, 1, NO_PORT));
            pool.ring_put(&m, 1);
        }
        pool.drop_refs(pool.n as usize);
    }
}

fn info_of(pool: &PoolInner) -> PoolInfo {
    let in_use = pool.in_use();
    PoolInfo {
        name: pool.name.clone(),
        size: pool.n,
        available: pool.n - in_use,
        in_use,
        queues: pool.queues.load(Acquire),
        room: pool.room,
        headroom: if pool.room == 0 { 0 } else { HEADROOM },
        stride: pool.stride,
        cache: pool.cache_size,
        debug: pool.is_debug(),
        header_page: pool.seg_headers.page().bytes(),
        room_page: pool.seg_rooms.as_ref().map_or(PageSize::Normal, Segment::page).bytes(),
        hugepage_hint: pool.seg_rooms.as_ref().and_then(Segment::hint),
        caches: pool.each_cache().map(|(slot, c)| c.stats(slot)).collect(),
    }
}

/// Every pool that lives, closed ones with packets out included.
pub fn list() -> Vec<PoolInfo> {
    held().iter().map(|h| info_of(h)).collect()
}
