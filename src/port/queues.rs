//! Queue handles for Rust: handed out once, `Send`, and bound to a thread before they can burst.

use super::port::{Port, PortInner};
use super::row::{self, RxRow, TxRow};
use crate::base::Result;
use crate::driver::FlushCause;
use crate::mbuf::Burst;
use crate::pool::slot::{self, ThreadSlot};
use crate::{fail, invalid};
use core::marker::PhantomData;
use core::sync::atomic::Ordering::*;
use std::sync::Arc;

/// A receive queue. Cannot burst until it is bound to a thread.
pub struct RxQueue {
    port: Arc<PortInner>,
    queue: u16,
    row: &'static RxRow,
}

/// A send queue. Cannot burst until it is bound to a thread.
pub struct TxQueue {
    port: Arc<PortInner>,
    queue: u16,
    row: &'static TxRow,
}

/// A receive queue on the thread that polls it. Not `Send`: it borrows the thread's slot.
pub struct RxPoller<'s> {
    q: RxQueue,
    _slot: PhantomData<&'s ThreadSlot>,
}

/// A send queue on the thread that uses it. Not `Send`: it borrows the thread's slot.
pub struct TxPoller<'s> {
    q: TxQueue,
    _slot: PhantomData<&'s ThreadSlot>,
}

impl Port {
    /// The handle on a receive queue. -EBUSY while it is out.
    pub fn rx_queue(&self, queue: u16) -> Result<RxQueue> {
        let Some(row) = row::row(self.id(), queue) else { return invalid!("no queue {queue}") };
        self.inner().with_rx(queue, |e, _| {
            if e.handed_out.swap(true, AcqRel) {
                return fail!(BUSY, "the handle on receive queue {queue} of port {} is out", self.name());
            }
            Ok(RxQueue { port: self.inner().clone(), queue, row: &row.rx })
        })
    }

    /// The handle on a send queue. -EBUSY while it is out.
    pub fn tx_queue(&self, queue: u16) -> Result<TxQueue> {
        let Some(row) = row::row(self.id(), queue) else { return invalid!("no queue {queue}") };
        self.inner().with_tx(queue, |e, _| {
            if e.handed_out.swap(true, AcqRel) {
                return fail!(BUSY, "the handle on send queue {queue} of port {} is out", self.name());
            }
            Ok(TxQueue { port: self.inner().clone(), queue, row: &row.tx })
        })
    }
}

impl RxQueue {
    pub fn port(&self) -> Port {
        Port(self.port.clone())
    }

    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Binds the queue to the calling thread, whose cache it uses from now on.
    pub fn bind(self, _slot: &ThreadSlot) -> RxPoller<'_> {
        let _ = self.port.with_rx(self.queue, |e, _| {
            e.leave_foreign_group();
            e.bind(slot::current()); // The guard's slot may have been ended, and be another thread's by now.
            Ok(())
        });
        RxPoller { q: self, _slot: PhantomData }
    }
}

impl TxQueue {
    pub fn port(&self) -> Port {
        Port(self.port.clone())
    }

    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Binds the queue to the calling thread, whose caches it uses from now on.
    pub fn bind(self, _slot: &ThreadSlot) -> TxPoller<'_> {
        let _ = self.port.with_tx(self.queue, |e, _| {
            e.leave_foreign_group();
            e.bind(slot::current()); // The guard's slot may have been ended, and be another thread's by now.
            Ok(())
        });
        TxPoller { q: self, _slot: PhantomData }
    }
}

impl Drop for RxQueue {
    fn drop(&mut self) {
        let _ = self.port.with_rx(self.queue, |e, _| {
            // Whoever has the handle next may be another thread.
            e.unbind();
            e.leave_group();
            e.handed_out.store(false, Release);
            Ok(())
        });
    }
}

impl Drop for TxQueue {
    fn drop(&mut self) {
        let _ = self.port.with_tx(self.queue, |e, _| {
            // Whoever has the handle next may be another thread.
            e.unbind();
            e.leave_group();
            e.handed_out.store(false, Release);
            Ok(())
        });
    }
}

impl RxPoller<'_> {
    /// Receives behind what `b` holds, up to its room. Returns how many; 0 on a stopped port.
    #[inline(always)]
    pub fn burst<const N: usize>(&mut self, b: &mut Burst<N>) -> usize {
        // SAFETY: the row writes as many packets as it says; this thread owns the queue by the type's construction.
        unsafe { b.fill(|p, n| self.q.row.burst(p, n)) }
    }

    /// As [`Self::burst`], at most `n` packets.
    #[inline(always)]
    pub fn burst_up_to<const N: usize>(&mut self, b: &mut Burst<N>, n: u16) -> usize {
        // SAFETY: as above; fewer than the room is allowed.
        unsafe { b.fill(|p, room| self.q.row.burst(p, room.min(n))) }
    }

    pub fn port(&self) -> Port {
        self.q.port()
    }

    pub fn queue(&self) -> u16 {
        self.q.queue
    }

    /// Gives the queue back, for another thread to bind.
    pub fn unbind(self) -> RxQueue {
        let q = self.q;
        let _ = q.port.with_rx(q.queue, |e, _| {
            e.unbind();
            e.leave_group();
            Ok(())
        });
        q
    }
}

impl TxPoller<'_> {
    /// Sends from the front of `b` and rings the tail. Returns how many were taken: what a full ring or a stopped port
    /// leaves stays in `b`.
    #[inline(always)]
    pub fn burst<const N: usize>(&mut self, b: &mut Burst<N>) -> usize {
        // SAFETY: the row takes the first so many packets; this thread owns the queue by the type's construction.
        unsafe { b.take(|p, n| self.q.row.burst(p, n)) }
    }

    /// Sends from the front of `b`; more follows. In a poll group this stages, and rings at the fill level or when not
    /// all fit; elsewhere it is [`Self::burst`].
    #[inline(always)]
    pub fn burst_more<const N: usize>(&mut self, b: &mut Burst<N>) -> usize {
        // SAFETY: as above.
        unsafe { b.take(|p, n| self.q.row.burst_more(p, n)) }
    }

    /// Rings what is staged; returns how many packets that were.
    pub fn flush(&mut self) -> u32 {
        // SAFETY: this thread owns the queue.
        unsafe { self.q.row.flush(FlushCause::Explicit as u8) }
    }

    pub fn port(&self) -> Port {
        self.q.port()
    }

    pub fn queue(&self) -> u16 {
        self.q.queue
    }

    /// Gives the queue back, for another thread to bind. What is staged is rung.
    pub fn unbind(mut self) -> TxQueue {
        self.flush();
        let q = self.q;
        let _ = q.port.with_tx(q.queue, |e, _| {
            e.unbind();
            e.leave_group();
            Ok(())
        });
        q
    }
}

impl Port {
    /// Unbinds a receive and a send queue of this number from their thread; C's side of `unbind`. Called by that thread.
    pub fn unbind_queue(&self, queue: u16) -> Result<()> {
        let rx = self.inner().with_rx(queue, |e, _| {
            e.unbind();
            Ok(())
        });
        let tx = self.inner().with_tx(queue, |e, _| {
            e.unbind();
            Ok(())
        });
        rx.or(tx)
    }
}
