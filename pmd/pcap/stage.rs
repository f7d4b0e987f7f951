//! Packets that were taken and are not written yet: a ring of slots, with free-running counts.

use crate::driver::*;

/// A packet in its slot.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub pkt: *mut RawMbuf,
    pub ts_ns: u64,
    /// Bytes in the file, with all that stands around the packet.
    pub size: u32,
}

const EMPTY: Slot = Slot { pkt: core::ptr::null_mut(), ts_ns: 0, size: 0 };

pub(super) struct Stage {
    slots: Box<[Slot]>,
    n_desc: u32,
    head: u32,
    tail: u32,
}

// SAFETY: the pointers are packets that the stage owns, and a packet may be sent between threads.
unsafe impl Send for Stage {}

impl Stage {
    pub fn new(n_desc: u32) -> Stage {
        Stage { slots: vec![EMPTY; n_desc.next_power_of_two() as usize].into(), n_desc, head: 0, tail: 0 }
    }

    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    pub fn room(&self) -> u32 {
        self.n_desc - self.len()
    }

    /// Behind the last one. The caller has seen room.
    #[inline(always)]
    pub fn push(&mut self, s: Slot) {
        let at = self.tail as usize & (self.slots.len() - 1);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = s;
            self.tail = self.tail.wrapping_add(1);
        }
    }

    /// The packet number `i` from the front.
    #[inline(always)]
    pub fn get(&self, i: u32) -> Option<Slot> {
        if i >= self.len() {
            return None;
        }
        self.slots.get(self.head.wrapping_add(i) as usize & (self.slots.len() - 1)).copied()
    }

    /// Frees the first `n`. `cold`: on a control thread, which must not use the caches of the queue's thread.
    #[inline]
    pub fn free(&mut self, n: u32, ctx: &mut TxCtx, cold: bool) {
        // In runs, so that a burst goes back in one piece; through an array, as the slots hold more than the pointer.
        let mut left = n.min(self.len());
        while left != 0 {
            let mut run = [core::ptr::null_mut::<RawMbuf>(); 64];
            let mut k = 0;
            for (r, i) in run.iter_mut().zip(0..left) {
                *r = self.get(i).map_or(core::ptr::null_mut(), |s| s.pkt);
                k += 1;
            }
            self.head = self.head.wrapping_add(k);
            left -= k;
            if cold {
                for p in run.iter().take(k as usize) {
                    // SAFETY: a packet of ours, left the ring just now.
                    drop(core::ptr::NonNull::new(*p).map(|p| unsafe { Mbuf::from_raw(p) }));
                }
            } else {
                // SAFETY: packets of ours, left the ring just now.
                unsafe { ctx.recycle(run.as_ptr(), k as usize) };
            }
        }
    }

    /// Bytes of the packets in front.
    pub fn bytes(&self, n: u32) -> u64 {
        // SAFETY: packets of ours.
        (0..n).filter_map(|i| self.get(i)).map(|s| u64::from(unsafe { (*s.pkt).pkt_len })).sum()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for i in 0..self.len() {
            if let Some(p) = self.get(i).and_then(|s| core::ptr::NonNull::new(s.pkt)) {
                // SAFETY: a packet of ours, dropped once.
                drop(unsafe { Mbuf::from_raw(p) });
            }
        }
    }
}
