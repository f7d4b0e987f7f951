//! Packets whose bytes are elsewhere: clones that borrow another packet's buffer, and external buffers.
//!
//! | the source's segment | the clone's | counted in |
//! |---|---|---|
//! | its own room | INDIRECT, `shinfo` = the source's header | that header's `refcnt` |
//! | INDIRECT | INDIRECT, `shinfo` = the header the source borrows from | that header's `refcnt` |
//! | EXTERNAL | EXTERNAL, the same `shinfo` | `ExtShared::refcnt` |
//!
//! So a chain of borrowing is never longer than one. `pool::release` undoes all of it when a segment is freed.
//!
//! # Memory order
//!
//! Counting up needs no order (relaxed; but see `share`): who counts up holds a reference already, and hands the new one on by other means.
//! Counting down is edges c and d of `pool::release`.

use super::chain::{fresh, owned};
use super::flags::{ATTACHED, EXTERNAL, INDIRECT, OF_SEGMENT, READ_ONLY};
use super::layout::{ExtShared, NO_IOVA, RawMbuf};
use super::owner::Mbuf;
use crate::base::{Error, Result};
use crate::pool::{self, Pool, PoolInner};
use crate::{fail, invalid, log_error};
use core::ffi::c_void;
use core::panic::AssertUnwindSafe;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// Copies what describes a packet, its bytes and its chain apart: flags, port, type, tags, hash, offloads, time, dynfield.
pub(super) unsafe fn copy_meta(from: *const RawMbuf, to: *mut RawMbuf) {
    // SAFETY: the caller owns both headers.
    unsafe {
        (*to).ol_flags = (*to).ol_flags & OF_SEGMENT | (*from).ol_flags & !OF_SEGMENT;
        (*to).port = (*from).port;
        (*to).packet_type = (*from).packet_type;
        (*to).vlan_tci = (*from).vlan_tci;
        (*to).vlan_tci_outer = (*from).vlan_tci_outer;
        (*to).hash = (*from).hash;
        (*to).tx_offload = (*from).tx_offload;
        (*to).timestamp = (*from).timestamp;
        (*to).dynfield = (*from).dynfield;
    }
}

/// Counts one more user of a segment's buffer, and says what the clone's flag and `shinfo` are.
unsafe fn share(m: *mut RawMbuf) -> Result<(u64, *mut c_void)> {
    // SAFETY: the caller owns `m`; `shinfo` is what the flags say, and `m`'s own reference keeps it alive.
    unsafe {
        match (*m).ol_flags & ATTACHED {
            EXTERNAL => {
                let shared = (*m).shinfo.cast::<ExtShared>();
                // d: acquire, as below.
                if (*shared).refcnt.load(Acquire) == 1 {
                    (*shared).refcnt.store(2, Relaxed);
                    return Ok((EXTERNAL, shared.cast()));
                }
                let up = (*shared).refcnt.fetch_update(Relaxed, Relaxed, |r| r.checked_add(1));
                match up {
                    Ok(_) => Ok((EXTERNAL, shared.cast())),
                    Err(_) => fail!(OVERFLOW, "the external buffer has {} users, the limit", u32::MAX),
                }
            }
            flag => {
                let owner = if flag == 0 { m } else { (*m).shinfo.cast::<RawMbuf>() };
                // Ours is the only reference, so nobody else counts: no locked instruction. c: acquire, since the plain
                // store ends the release sequence of who dropped theirs; our own drop passes their reads on.
                if (*owner).refcnt.load(Acquire) == 1 {
                    (*owner).refcnt.store(2, Relaxed);
                    return Ok((INDIRECT, owner.cast()));
                }
                let up = (*owner).refcnt.fetch_update(Relaxed, Relaxed, |r| r.checked_add(1));
                match up {
                    Ok(_) => Ok((INDIRECT, owner.cast())),
                    Err(_) => fail!(OVERFLOW, "the buffer has {} users, the limit", u16::MAX),
                }
            }
        }
    }
}

/// The operations on a pointer; the contract is that of `data.rs`: a live packet, owned, with a sound chain.
impl RawMbuf {
    /// A packet of fresh headers of `pool` that shares the bytes of `m` and carries its metadata. While both live, neither
    /// can write them. -ENOMEM where the pool has too few headers, -EOVERFLOW where a buffer has too many users (2^16 − 1,
    /// or 2^32 − 1 of an external one); nothing is taken then. The pool may be one of headers alone.
    ///
    /// # Safety
    /// As said above; the caller keeps the pool alive.
    pub unsafe fn clone(m: *mut RawMbuf, pool: &PoolInner) -> Result<*mut RawMbuf> {
        let (mut head, mut last, mut seg): (*mut RawMbuf, *mut RawMbuf, _) = (null_mut(), null_mut(), m);
        // SAFETY: the caller owns the chain and keeps the pool; headers are fresh, and each is whole before it is chained.
        unsafe {
            while !seg.is_null() {
                let c = match fresh(pool) {
                    Ok(c) => c,
                    Err(e) => return give_up(head, e),
                };
                let (flag, shinfo) = match share(seg) {
                    Ok(s) => s,
                    Err(e) => {
                        pool::free_packet(c);
                        return give_up(head, e);
                    }
                };
                (*c).buf_addr = (*seg).buf_addr;
                (*c).buf_iova = (*seg).buf_iova;
                (*c).buf_len = (*seg).buf_len;
                (*c).data_off = (*seg).data_off;
                (*c).data_len = (*seg).data_len;
                (*c).ol_flags = flag | (*seg).ol_flags & OF_SEGMENT & !ATTACHED;
                (*c).shinfo = shinfo;
                copy_meta(seg, c);
                (*c).pkt_len = (*c).data_len.into();
                if head.is_null() {
                    head = c;
                } else {
                    (*last).next = c;
                    (*head).nb_segs += 1;
                    (*head).pkt_len += u32::from((*c).data_len);
                }
                last = c;
                seg = (*seg).next;
            }
        }
        Ok(head)
    }

    /// A packet of `pool` that holds its own copy of `len` bytes from `offset`, and the metadata. FOREIGN bytes are private
    /// in the copy, read-only ones can be written. -EINVAL where `m` does not have them, -ENOMEM where the pool has too few.
    ///
    /// # Safety
    /// As said above; the caller keeps the pool alive.
    pub unsafe fn copy(m: *const RawMbuf, pool: &PoolInner, offset: usize, len: usize) -> Result<*mut RawMbuf> {
        // SAFETY: the caller owns the chain; within `pkt_len`, which is checked first, each part is read as asked.
        unsafe {
            RawMbuf::runs(m, offset, len, "copy", |_, _, _| Ok(()))?;
            let mut at = offset;
            let to = RawMbuf::alloc_filled(pool, len, |to, n| {
                // Checked above, so it does not fail.
                let _ = RawMbuf::read(m, at, n, to);
                at += n;
            })?;
            copy_meta(m, to);
            Ok(to)
        }
    }

    /// Points `m` at `len` bytes from `addr` that are not a pool's; they are its buffer, empty of data, until it is freed.
    /// `iova` is their address for a device, or [`NO_IOVA`]. One of the references in `shinfo` is `m`'s from then on; with
    /// the last of them `free_cb` is called, once. -EINVAL where `addr` or `shinfo` is null or its count is 0, -EBUSY where
    /// `m` is attached already, shared, or of several segments; the reference stays with the caller then.
    ///
    /// # Safety
    /// `m` is a live packet that the caller owns. The bytes, and `shinfo`, live until `free_cb` is called; they are readable
    /// and writable, and none but packets with this `shinfo` refer to them. `free_cb` may be called on any thread.
    pub unsafe fn attach_ext(
        m: *mut RawMbuf,
        addr: *mut u8,
        iova: u64,
        len: u16,
        shinfo: *mut ExtShared,
    ) -> Result<()> {
        if addr.is_null() || shinfo.is_null() {
            return invalid!("an external buffer needs an address and its shared part, not null");
        }
        // SAFETY: the caller owns `m`; `shinfo` is live.
        unsafe {
            if (*shinfo).refcnt.load(Relaxed) == 0 {
                return invalid!("the external buffer has no reference to give");
            }
            if (*m).ol_flags & ATTACHED != 0 || (*m).refcnt.load(Acquire) != 1 || !(*m).next.is_null() {
                return fail!(BUSY, "the packet is attached, shared or chained: an external buffer needs a fresh one");
            }
            (*m).buf_addr = addr;
            (*m).buf_iova = iova;
            (*m).buf_len = len;
            (*m).data_off = 0;
            (*m).data_len = 0;
            (*m).pkt_len = 0;
            (*m).nb_segs = 1;
            (*m).ol_flags |= EXTERNAL;
            (*m).shinfo = shinfo.cast();
        }
        Ok(())
    }
}

#[cold]
unsafe fn give_up<V>(head: *mut RawMbuf, e: Error) -> Result<V> {
    if !head.is_null() {
        // SAFETY: a packet that was being made, known to nobody else.
        unsafe { pool::free_packet(head) };
    }
    Err(e)
}

/// An external buffer that Rust owns: the count that packets see, and what is dropped with the last of them.
#[repr(C)]
struct Owned<T> {
    shared: ExtShared,
    owner: T,
}

/// Drops the owner. Its panic must not pass through the callers of a C callback.
unsafe extern "C" fn drop_owned<T>(_addr: *mut c_void, opaque: *mut c_void) {
    // SAFETY: `opaque` is the box of `Owned::<T>` that `attach_owned` made, and the last reference on it is gone.
    let b = unsafe { Box::from_raw(opaque.cast::<Owned<T>>()) };
    if std::panic::catch_unwind(AssertUnwindSafe(move || drop(b))).is_err() {
        log_error!("the owner of an external buffer panicked as it was dropped");
    }
}

/// Boxes the owner, finds its bytes, and makes them a packet's.
fn attach_owned<T: Send + 'static>(
    pool: &Pool,
    owner: T,
    flags: u64,
    bytes: impl FnOnce(&mut T) -> (*mut u8, usize),
) -> Result<Mbuf, (T, Error)> {
    let m = match Mbuf::alloc(pool) {
        Ok(m) => m,
        Err(e) => return Err((owner, e)),
    };
    let shared = ExtShared { free_cb: Some(drop_owned::<T>), opaque: null_mut(), refcnt: AtomicU32::new(1) };
    let raw = Box::into_raw(Box::new(Owned { shared, owner }));
    // SAFETY: `raw` is the live box, ours alone until the packet has it. The bytes are found through `raw`, and the box is
    // neither moved nor looked into until the last packet drops it, so they stay where they are.
    unsafe {
        (*raw).shared.opaque = raw.cast();
        let (addr, len) = bytes(&mut (*raw).owner);
        let attached = match u16::try_from(len) {
            Ok(len) => RawMbuf::attach_ext(m.as_ptr(), addr, NO_IOVA, len, &raw mut (*raw).shared).map(|()| len),
            Err(_) => fail!(MSGSIZE, "external buffer of {len} bytes, a segment has at most {}", u16::MAX),
        };
        match attached {
            Ok(len) => {
                let p = m.as_ptr();
                (*p).ol_flags |= flags;
                (*p).data_len = len;
                (*p).pkt_len = len.into();
            }
            Err(e) => return Err((Box::from_raw(raw).owner, e)),
        }
    }
    Ok(m)
}

impl Mbuf {
    /// A packet that shares this one's bytes; see [`RawMbuf::clone`]. While both live, `data_mut` of either is None.
    pub fn clone(&self, pool: &Pool) -> Result<Mbuf> {
        // SAFETY: we own the packet; of it only reference counts change.
        unsafe { owned(RawMbuf::clone(self.as_ptr(), pool.inner())?) }
    }

    /// A packet with its own copy of `len` bytes from `offset`; see [`RawMbuf::copy`].
    pub fn copy(&self, pool: &Pool, offset: usize, len: usize) -> Result<Mbuf> {
        // SAFETY: we own the packet.
        unsafe { owned(RawMbuf::copy(self.as_ptr(), pool.inner(), offset, len)?) }
    }

    /// A packet around bytes that live elsewhere (`Arc<[u8]>`, a file's mapping, `Vec<u8>`). They are read-only, and have
    /// no address for a device. `owner` is dropped once, by the thread that frees the last packet that refers to them.
    /// The owner comes back with -ENOMEM (no packet left) or -EMSGSIZE (more than 2^16 − 1 bytes).
    pub fn from_shared<T: AsRef<[u8]> + Send + 'static>(pool: &Pool, owner: T) -> Result<Mbuf, (T, Error)> {
        attach_owned(pool, owner, READ_ONLY, |o| {
            let bytes = (*o).as_ref();
            (bytes.as_ptr().cast_mut(), bytes.len())
        })
    }

    /// As [`Mbuf::from_shared`], of bytes that `owner` alone holds (`Box<[u8]>`, `Vec<u8>`): they can be written.
    pub fn from_owned<T: AsMut<[u8]> + Send + 'static>(pool: &Pool, owner: T) -> Result<Mbuf, (T, Error)> {
        attach_owned(pool, owner, 0, |o| {
            let bytes = o.as_mut();
            (bytes.as_mut_ptr(), bytes.len())
        })
    }
}
