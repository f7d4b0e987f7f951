//! The owner of a packet: frees it on drop.

use super::data::no_packet;
use super::flags;
use super::layout::RawMbuf;
use crate::base::Result;
use crate::pool::{self, Pool};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// A packet. The same pointer as C's `struct bl_mbuf *`; dropping it gives every segment back to its pool.
#[repr(transparent)]
pub struct Mbuf(NonNull<RawMbuf>);

// SAFETY: a packet has one owner; its reference counts are atomic, its pool takes it back on any thread.
unsafe impl Send for Mbuf {}

impl Mbuf {
    /// A fresh packet of one empty segment. -ENOMEM when the pool is empty.
    #[inline]
    pub fn alloc(pool: &Pool) -> Result<Mbuf> {
        // SAFETY: the handle keeps the pool.
        match NonNull::new(unsafe { pool::alloc_one_raw(pool.inner()) }) {
            Some(m) => Ok(Mbuf(m)),
            None => Err(no_packet(pool.inner())),
        }
    }

    /// # Safety
    /// `m` is a live packet that the caller owns and gives away.
    #[inline(always)]
    pub unsafe fn from_raw(m: NonNull<RawMbuf>) -> Mbuf {
        Mbuf(m)
    }

    /// The packet without its owner: the caller frees it, or gives it to [`Mbuf::from_raw`].
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<RawMbuf> {
        ManuallyDrop::new(self).0
    }

    #[inline(always)]
    pub fn as_ptr(&self) -> *mut RawMbuf {
        self.0.as_ptr()
    }

    /// The header's fields, to read. refcnt apart, nobody else writes them.
    #[inline(always)]
    pub fn raw(&self) -> &RawMbuf {
        // SAFETY: we own the packet.
        unsafe { self.0.as_ref() }
    }

    /// The header's fields, to write.
    ///
    /// # Safety
    /// The caller keeps the layout's invariants: lengths within the buffer, a chain that matches `nb_segs` and `pkt_len`.
    #[inline(always)]
    pub unsafe fn raw_mut(&mut self) -> &mut RawMbuf {
        // SAFETY: we own the packet.
        unsafe { self.0.as_mut() }
    }

    /// Bytes of the whole packet.
    #[inline(always)]
    pub fn pkt_len(&self) -> usize {
        self.raw().pkt_len as usize
    }

    /// Bytes of the first segment.
    #[inline(always)]
    pub fn seg_len(&self) -> usize {
        self.raw().data_len as usize
    }

    #[inline(always)]
    pub fn nb_segs(&self) -> u16 {
        self.raw().nb_segs
    }

    /// Input port, or [`super::layout::NO_PORT`].
    pub fn port(&self) -> u16 {
        self.raw().port
    }

    pub fn flags(&self) -> u64 {
        self.raw().ol_flags
    }

    pub fn is_foreign(&self) -> bool {
        self.flags() & flags::FOREIGN != 0
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: we own the packet, and nobody uses it after drop.
        unsafe { pool::free_packet(self.0.as_ptr()) }
    }
}

impl core::fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let r = self.raw();
        write!(
            f,
            "Mbuf {{ pkt_len: {}, nb_segs: {}, port: {}, flags: {:#x} }}",
            r.pkt_len, r.nb_segs, r.port, r.ol_flags
        )
    }
}
