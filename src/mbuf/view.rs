//! The safe face of a packet's bytes: what `data.rs` does to a pointer, as methods of its owner.

use super::flags::{FOREIGN, READ_ONLY};
use super::layout::RawMbuf;
use super::owner::Mbuf;
use crate::base::Result;
use crate::fail;
use crate::pool::Pool;
use core::ptr::NonNull;

impl Mbuf {
    /// A packet that holds a copy of `bytes`; see [`RawMbuf::alloc_with`].
    pub fn alloc_with(pool: &Pool, bytes: &[u8]) -> Result<Mbuf> {
        // SAFETY: `bytes` is a slice, and the handle keeps the pool.
        let m = unsafe { RawMbuf::alloc_with(pool.inner(), bytes.as_ptr(), bytes.len())? };
        // SAFETY: fresh from the pool, ours; `alloc_with` gives no null.
        Ok(unsafe { Mbuf::from_raw(NonNull::new_unchecked(m)) })
    }

    /// Bytes free in front of the packet.
    #[inline]
    pub fn headroom(&self) -> usize {
        // SAFETY: we own the packet.
        unsafe { RawMbuf::headroom(self.as_ptr()) }
    }

    /// Bytes free behind the packet: in its last segment.
    #[inline]
    pub fn tailroom(&self) -> usize {
        // SAFETY: we own the packet.
        unsafe { RawMbuf::tailroom(RawMbuf::last_seg(self.as_ptr())) }
    }

    /// Grows the packet at the front by `len` bytes, and gives them; they hold what was there. See [`RawMbuf::prepend`];
    /// -EACCES too where the bytes are FOREIGN.
    #[inline]
    pub fn prepend(&mut self, len: usize) -> Result<&mut [u8]> {
        // SAFETY: we own the packet; the bytes are its own alone (prepend refuses shared ones), and no peer writes them.
        unsafe {
            no_peer(self.as_ptr())?;
            Ok(slice_mut(RawMbuf::prepend(self.as_ptr(), len)?, len))
        }
    }

    /// Grows the packet at the end by `len` bytes, as [`Mbuf::prepend`] at the front. The last segment takes them all.
    #[inline]
    pub fn append(&mut self, len: usize) -> Result<&mut [u8]> {
        // SAFETY: as in `prepend`, for the last segment.
        unsafe {
            no_peer(RawMbuf::last_seg(self.as_ptr()))?;
            Ok(slice_mut(RawMbuf::append(self.as_ptr(), len)?, len))
        }
    }

    /// Cuts `len` bytes off the front; see [`RawMbuf::adj`].
    #[inline]
    pub fn adj(&mut self, len: usize) -> Result<()> {
        // SAFETY: we own the packet.
        unsafe { RawMbuf::adj(self.as_ptr(), len) }
    }

    /// Cuts `len` bytes off the end; see [`RawMbuf::trim`].
    pub fn trim(&mut self, len: usize) -> Result<()> {
        // SAFETY: we own the packet.
        unsafe { RawMbuf::trim(self.as_ptr(), len) }
    }

    /// The bytes of the first segment; None where a peer can still write them.
    #[inline]
    pub fn data(&self) -> Option<&[u8]> {
        // SAFETY: we own the packet.
        unsafe { seg_data(self.as_ptr()) }
    }

    /// The bytes of the first segment, to write. None where a peer can write them too, where another packet refers to
    /// them, or where they are read-only.
    #[inline]
    pub fn data_mut(&mut self) -> Option<&mut [u8]> {
        let m = self.as_ptr();
        // SAFETY: we own the packet, and nobody else refers to its bytes; while they are borrowed mutably, so is the
        // packet, and nobody can make a clone of it.
        unsafe {
            if (*m).ol_flags & (FOREIGN | READ_ONLY) != 0 || !RawMbuf::is_exclusive(m) {
                return None;
            }
            Some(slice_mut(RawMbuf::data_ptr(m), (*m).data_len.into()))
        }
    }

    /// Copies `to.len()` bytes from `offset` out of the packet, whatever it is made of; see [`RawMbuf::read`].
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        // SAFETY: we own the packet; `to` is borrowed mutably, so it lies elsewhere.
        unsafe { RawMbuf::read(self.as_ptr(), offset, to.len(), to.as_mut_ptr()) }
    }

    /// Copies `from` to `offset` of the packet; see [`RawMbuf::write`].
    pub fn write(&mut self, offset: usize, from: &[u8]) -> Result<()> {
        // SAFETY: we own the packet, borrowed mutably, so `from` lies elsewhere: or in bytes that are shared, which
        // `write` refuses.
        unsafe { RawMbuf::write(self.as_ptr(), offset, from.len(), from.as_ptr()) }
    }

    /// `len` bytes at `offset`: in place where they lie in one segment that no peer writes, else copied to the front of
    /// `scratch`. None where the packet does not have them, or `scratch` is needed and shorter than `len`.
    pub fn read_ref<'a>(&'a self, offset: usize, len: usize, scratch: &'a mut [u8]) -> Option<&'a [u8]> {
        let m = self.as_ptr();
        if len == 0 && offset <= self.pkt_len() {
            return Some(&[]);
        }
        // SAFETY: we own the packet; a run is `len` bytes of a segment's data, and our borrow keeps writers away.
        unsafe {
            if let Some((seg, p)) = RawMbuf::one_run(m, offset, len)
                && (*seg).ol_flags & FOREIGN == 0
            {
                return Some(core::slice::from_raw_parts(p, len));
            }
        }
        let to = scratch.get_mut(..len)?;
        self.read(offset, to).ok()?;
        Some(to)
    }

    /// The packet's bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut v = vec![0; self.pkt_len()];
        // Fails only where the lengths of the chain do not add up, which no safe call brings about.
        let _ = self.read(0, &mut v);
        v
    }

    /// The packet's segments, first to last.
    pub fn segments(&self) -> Segments<'_> {
        Segments { next: self.as_ptr(), left: self.nb_segs(), _packet: core::marker::PhantomData }
    }
}

/// -EACCES where a peer can still write the bytes of segment `m`.
#[inline]
unsafe fn no_peer(m: *const RawMbuf) -> Result<()> {
    // SAFETY: the caller owns the segment.
    if unsafe { (*m).ol_flags } & FOREIGN != 0 {
        return fail!(ACCES, "a peer can still write these bytes: work on a copy");
    }
    Ok(())
}

/// As `from_raw_parts_mut`; a null pointer, which a pool of headers alone has, gives the empty slice.
unsafe fn slice_mut<'a>(p: *mut u8, len: usize) -> &'a mut [u8] {
    if p.is_null() {
        return &mut [];
    }
    // SAFETY: the caller vouches for `len` bytes.
    unsafe { core::slice::from_raw_parts_mut(p, len) }
}

/// The bytes of one segment, None where FOREIGN.
unsafe fn seg_data<'a>(m: *const RawMbuf) -> Option<&'a [u8]> {
    // SAFETY: the caller owns the segment for 'a; its data lies within its buffer, and no peer writes it.
    unsafe {
        if (*m).ol_flags & FOREIGN != 0 {
            return None;
        }
        let p = RawMbuf::data_ptr(m);
        Some(if p.is_null() { &[] } else { core::slice::from_raw_parts(p, (*m).data_len.into()) })
    }
}

/// See [`Mbuf::segments`].
#[derive(Clone)]
pub struct Segments<'a> {
    next: *const RawMbuf,
    left: u16,
    _packet: core::marker::PhantomData<&'a Mbuf>,
}

/// One segment of a packet, to look at.
#[derive(Clone, Copy)]
pub struct Seg<'a>(&'a RawMbuf);

impl<'a> Seg<'a> {
    /// Its header.
    pub fn raw(&self) -> &'a RawMbuf {
        self.0
    }

    /// Bytes of data.
    pub fn len(&self) -> usize {
        self.0.data_len.into()
    }

    pub fn is_empty(&self) -> bool {
        self.0.data_len == 0
    }

    /// Its bytes; None where a peer can still write them.
    pub fn data(&self) -> Option<&'a [u8]> {
        // SAFETY: a segment of a packet that is borrowed for 'a.
        unsafe { seg_data(self.0) }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Seg<'a>;

    fn next(&mut self) -> Option<Seg<'a>> {
        if self.left == 0 || self.next.is_null() {
            return None;
        }
        self.left -= 1;
        // SAFETY: a segment of the packet, which is borrowed for 'a.
        let m = unsafe { &*self.next };
        self.next = m.next;
        Some(Seg(m))
    }
}
