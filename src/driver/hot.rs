//! The hot side of a queue: the only place where raw pointers become a queue and a slice.
//!
//! A driver writes a safe `burst`; [`rx_entry`] and [`tx_entry`] make the `extern "C"` functions of it, one for each variant
//! that the driver wants (`V`), chosen when the queue is started.

use super::counters::FlushCause;
use super::ctx::TxCtx;
use crate::mbuf::{Mbuf, RawMbuf};
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

pub type RxBurstFn = unsafe extern "C" fn(queue: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16;
pub type TxBurstFn = unsafe extern "C" fn(queue: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16;
/// Rings what is staged, for a [`FlushCause`]; returns how many packets that were.
pub type TxFlushFn = unsafe extern "C" fn(queue: *mut c_void, cause: u8) -> u32;

#[derive(Clone, Copy)]
pub struct RxEntry {
    pub burst: RxBurstFn,
    pub queue: *mut c_void,
}

#[derive(Clone, Copy)]
pub struct TxEntry {
    pub burst: TxBurstFn,
    pub more: TxBurstFn,
    pub flush: TxFlushFn,
    pub queue: *mut c_void,
}

/// Receive. `V` picks a variant.
///
/// # Safety
/// The caller believes the count: the first so many of `out` are written, each a packet that is the caller's from then on.
pub unsafe trait RxHot<const V: u8 = 0> {
    /// Writes up to `out.len()` packets to the front of `out` and returns how many.
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize;
}

/// Send. `V` picks a variant.
pub trait TxHot<const V: u8 = 0> {
    /// Takes packets from the front of `batch`. `MORE`: stage, and ring only when [`TxCtx::stage`] says so or not all fit.
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>);
    /// Rings what is staged; returns how many packets that were.
    fn flush(&mut self, cause: FlushCause) -> u32;
}

/// The packets of a send call. What is not taken from the front stays the caller's.
pub struct TxBatch<'a> {
    next: *mut *mut RawMbuf,
    end: *mut *mut RawMbuf,
    _from: PhantomData<&'a mut [*mut RawMbuf]>,
}

impl<'a> TxBatch<'a> {
    /// Packets not taken yet.
    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.end.addr() - self.next.addr()) / size_of::<*mut RawMbuf>()
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// The packets not taken yet, to look at.
    #[inline(always)]
    pub fn pkts(&self) -> &[Mbuf] {
        // SAFETY: between `next` and `end` lie live packets of the caller, non-null by the burst's contract.
        unsafe { core::slice::from_raw_parts(self.next.cast::<Mbuf>(), self.len()) }
    }

    /// Takes the next packet.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Mbuf> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: a live packet of the caller, which leaves the batch here.
        unsafe {
            let m = NonNull::new_unchecked(*self.next);
            self.next = self.next.add(1);
            Some(Mbuf::from_raw(m))
        }
    }

    /// Takes the next `n` (at most all) packets as bare pointers: whoever holds them owns them.
    #[inline(always)]
    pub fn take_raw(&mut self, n: usize) -> &'a [*mut RawMbuf] {
        let n = n.min(self.len());
        // SAFETY: the first `n` of the batch, which leave it.
        unsafe {
            let s = core::slice::from_raw_parts(self.next, n);
            self.next = self.next.add(n);
            s
        }
    }

    /// Offers the next `n` (at most all) packets to another queue's send function, for a queue around a queue. Those it
    /// takes leave the batch; returns how many.
    ///
    /// # Safety
    /// `f` and `queue` are of one entry of a queue that lives, and that the calling thread alone uses.
    #[inline]
    pub unsafe fn offer(&mut self, n: usize, f: TxBurstFn, queue: *mut c_void) -> usize {
        let n = n.min(self.len()).min(u16::MAX.into()) as u16;
        // SAFETY: the caller's promise; the next `n` are live packets, of which the function takes the first so many.
        unsafe {
            let took = f(queue, self.next, n).min(n);
            self.next = self.next.add(took.into());
            took.into()
        }
    }

    /// Takes the next `n` (at most all) packets and frees them: they are done.
    #[inline(always)]
    pub fn recycle(&mut self, n: usize, ctx: &mut TxCtx) {
        let s = self.take_raw(n);
        // SAFETY: taken from the caller just now, and used by nobody else.
        unsafe { ctx.recycle(s.as_ptr(), s.len()) };
    }

    /// Takes every packet and frees it, if all are plain: sound, of one segment, of the pool seen last, and neither empty
    /// nor too long. Returns their bytes. None: nothing was taken, look at them one by one.
    #[inline(always)]
    pub fn recycle_plain(&mut self, ctx: &mut TxCtx) -> Option<u64> {
        // SAFETY: they are the caller's until Some is returned, and leave the batch then.
        let bytes = unsafe { ctx.recycle_plain(self.next, self.len()) }?;
        self.next = self.end;
        Some(bytes)
    }
}

unsafe extern "C" fn rx_burst<Q: RxHot<V>, const V: u8>(q: *mut c_void, pkts: *mut *mut RawMbuf, n: u16) -> u16 {
    // SAFETY: the row pairs this function with a `Q` that lives while the row says so, and one thread at a time calls
    // it; `pkts` has room for `n` by the call's contract, and Mbuf is transparent over the pointer.
    unsafe {
        let out = core::slice::from_raw_parts_mut(pkts.cast::<MaybeUninit<Mbuf>>(), n.into());
        (*q.cast::<Q>()).burst(out) as u16
    }
}

unsafe extern "C" fn tx_burst<Q: TxHot<V>, const V: u8, const MORE: bool>(
    q: *mut c_void,
    pkts: *mut *mut RawMbuf,
    n: u16,
) -> u16 {
    // SAFETY: as in `rx_burst`; `pkts` holds `n` packets of the caller.
    unsafe {
        let mut batch = TxBatch { next: pkts, end: pkts.add(n.into()), _from: PhantomData };
        (*q.cast::<Q>()).burst::<MORE>(&mut batch);
        n - batch.len() as u16
    }
}

unsafe extern "C" fn tx_flush<Q: TxHot<V>, const V: u8>(q: *mut c_void, cause: u8) -> u32 {
    // SAFETY: as in `rx_burst`.
    unsafe { (*q.cast::<Q>()).flush(FlushCause::from_u8(cause)) }
}

/// The entry of a receive queue's variant `V`.
pub fn rx_entry<const V: u8, Q: RxHot<V>>(q: &mut Q) -> RxEntry {
    RxEntry { burst: rx_burst::<Q, V>, queue: core::ptr::from_mut(q).cast() }
}

/// The entry of a send queue's variant `V`.
pub fn tx_entry<const V: u8, Q: TxHot<V>>(q: &mut Q) -> TxEntry {
    TxEntry {
        burst: tx_burst::<Q, V, false>,
        more: tx_burst::<Q, V, true>,
        flush: tx_flush::<Q, V>,
        queue: core::ptr::from_mut(q).cast(),
    }
}
