//! An array of packets, taken from at the front: what receive fills and send empties.

use super::layout::RawMbuf;
use super::owner::Mbuf;
use crate::pool;
use core::ptr::{NonNull, null_mut};

/// Up to `N` packets. Those still inside are freed on drop.
pub struct Burst<const N: usize = 32> {
    pkts: [*mut RawMbuf; N],
    head: usize,
    tail: usize,
}

// SAFETY: it owns its packets, which are Send.
unsafe impl<const N: usize> Send for Burst<N> {}

impl<const N: usize> Default for Burst<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Burst<N> {
    /// Calls take at most this many.
    const FITS: () = assert!(N > 0 && N <= u16::MAX as usize);

    pub const fn new() -> Self {
        let () = Self::FITS;
        Burst { pkts: [null_mut(); N], head: 0, tail: 0 }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Packets that [`Burst::push`] can still add at the end.
    #[inline(always)]
    pub fn room(&self) -> usize {
        N - self.len()
    }

    /// Adds at the end; gives the packet back where there is no room.
    pub fn push(&mut self, m: Mbuf) -> Result<(), Mbuf> {
        if self.tail == N {
            self.compact();
        }
        match self.pkts.get_mut(self.tail) {
            Some(p) => {
                *p = m.into_raw().as_ptr();
                self.tail += 1;
                Ok(())
            }
            None => Err(m),
        }
    }

    /// Takes from the front.
    pub fn pop_front(&mut self) -> Option<Mbuf> {
        let p = *self.pkts.get(self.head..self.tail)?.first()?;
        self.head += 1;
        // SAFETY: entries between head and tail are packets that we own; this one leaves.
        NonNull::new(p).map(|p| unsafe { Mbuf::from_raw(p) })
    }

    /// The packets, to look at and to write.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf] {
        let p = self.pkts.as_mut_ptr().wrapping_add(self.head).cast::<Mbuf>();
        // SAFETY: entries between head and tail are non-null packets that we own; Mbuf is transparent over the pointer.
        unsafe { core::slice::from_raw_parts_mut(p, self.len()) }
    }

    pub fn iter(&self) -> core::slice::Iter<'_, Mbuf> {
        let p = self.pkts.as_ptr().wrapping_add(self.head).cast::<Mbuf>();
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(p, self.len()) }.iter()
    }

    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, Mbuf> {
        self.as_mut_slice().iter_mut()
    }

    /// Frees what is inside.
    pub fn clear(&mut self) {
        let (head, n) = (self.head, self.len());
        // Before they are freed: what a callback of theirs does must not free them again.
        (self.head, self.tail) = (0, 0);
        // SAFETY: the entries between head and tail were packets of ours.
        unsafe { pool::free_packets(self.pkts.as_ptr().wrapping_add(head), n) };
    }

    #[inline(always)]
    fn compact(&mut self) {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        } else if self.head != 0 {
            self.pkts.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
    }

    /// Lets `f` write packets behind the last one; it is given the place and the room, and says how many it wrote.
    ///
    /// # Safety
    /// `f` writes that many packets, and gives them to the burst.
    #[inline(always)]
    pub unsafe fn fill(&mut self, f: impl FnOnce(*mut *mut RawMbuf, u16) -> u16) -> usize {
        self.compact();
        let room = N - self.tail;
        let n = (f(self.pkts.as_mut_ptr().wrapping_add(self.tail), room as u16) as usize).min(room);
        self.tail += n;
        n
    }

    /// Lets `f` take packets from the front; it is given the place and the count, and says how many it took.
    ///
    /// # Safety
    /// `f` takes the first so many.
    #[inline(always)]
    pub unsafe fn take(&mut self, f: impl FnOnce(*mut *mut RawMbuf, u16) -> u16) -> usize {
        let n = (f(self.pkts.as_mut_ptr().wrapping_add(self.head), self.len() as u16) as usize).min(self.len());
        self.head += n;
        n
    }
}

impl<const N: usize> Drop for Burst<N> {
    fn drop(&mut self) {
        self.clear();
    }
}
