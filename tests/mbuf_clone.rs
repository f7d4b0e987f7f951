//! Packets that share bytes: clones, copies, external buffers.

mod mbuf_support;

use burstline::base::Errno;
use burstline::mbuf::layout::{ExtShared, NO_IOVA, RawMbuf};
use burstline::mbuf::{Mbuf, flags};
use mbuf_support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

fn refcnt(m: &Mbuf) -> u16 {
    m.raw().refcnt.load(SeqCst)
}

#[test]
fn a_clone_shares_the_bytes_and_nobody_writes_them_until_it_is_gone() {
    let (p, headers) = (pool("share", 4, 1024), pool("share-h", 4, 0));
    let mut m = filled(&p, b"shared");
    let mut c = m.clone(&headers).unwrap();
    assert_eq!((refcnt(&m), c.flags() & flags::INDIRECT, c.raw().nb_segs), (2, flags::INDIRECT, 1));
    assert_eq!(c.data().unwrap().as_ptr(), m.data().unwrap().as_ptr());
    assert!(m.data_mut().is_none() && c.data_mut().is_none());
    for x in [&mut m, &mut c] {
        assert_eq!(x.prepend(1).unwrap_err().errno(), Errno::BUSY);
        assert_eq!(x.append(1).unwrap_err().errno(), Errno::BUSY);
        assert_eq!(x.write(0, b"S").unwrap_err().errno(), Errno::BUSY);
    }
    // Lengths are each packet's own.
    c.adj(2).unwrap();
    m.trim(3).unwrap();
    assert_eq!((m.to_vec(), c.to_vec()), (b"sha".to_vec(), b"ared".to_vec()));
    drop(c);
    assert_eq!(refcnt(&m), 1);
    m.data_mut().unwrap()[0] = b'S';
    m.write(1, b"H").unwrap();
    drop(m);
    pool_is_whole(&p);
    pool_is_whole(&headers);
}

#[test]
fn a_clone_that_is_left_alone_may_write() {
    let (p, headers) = (pool("alone", 4, 1024), pool("alone-h", 4, 0));
    let m = filled(&p, b"bytes");
    let mut c = m.clone(&headers).unwrap();
    drop(m);
    assert_eq!((p.available(), headers.available()), (3, 3));
    c.data_mut().unwrap()[0] = b'B';
    c.prepend(1).unwrap()[0] = b'>';
    assert_eq!(c.to_vec(), b">Bytes");
    drop(c);
    pool_is_whole(&p);
    pool_is_whole(&headers);
}

#[test]
fn a_clone_of_a_clone_borrows_from_the_first() {
    let p = pool("twice", 8, 1024);
    let m = filled(&p, b"abc");
    let c = m.clone(&p).unwrap();
    let cc = c.clone(&p).unwrap();
    assert_eq!((refcnt(&m), refcnt(&c)), (3, 1));
    assert_eq!(cc.raw().shinfo.cast(), m.as_ptr());
    drop(m);
    drop(c);
    assert_eq!((cc.to_vec(), p.available()), (b"abc".to_vec(), 6));
    drop(cc);
    pool_is_whole(&p);
}

#[test]
fn every_segment_of_a_chain_is_cloned_and_survives_the_chain() {
    let p = pool("chain", 16, 320);
    let bytes: Vec<u8> = (0..200).map(|i| i as u8).collect();
    let m = Mbuf::alloc_with(&p, &bytes).unwrap();
    let c = m.clone(&p).unwrap();
    c.validate().unwrap();
    assert_eq!((c.nb_segs(), c.to_vec(), p.available()), (4, bytes.clone(), 8));
    drop(m);
    assert_eq!((c.to_vec(), p.available()), (bytes, 8));
    std::thread::spawn(move || drop(c)).join().unwrap();
    pool_is_whole(&p);
}

#[test]
fn a_shared_first_segment_is_not_made_one_piece() {
    let p = pool("busy", 8, 1024);
    let mut m = filled(&p, b"ab");
    m.chain(filled(&p, b"cd")).unwrap();
    let c = m.clone(&p).unwrap();
    assert_eq!(m.linearize().unwrap_err().errno(), Errno::BUSY);
    drop(c);
    m.linearize().unwrap();
    assert_eq!(m.to_vec(), b"abcd");
}

#[test]
fn metadata_travels_with_clones_and_copies() {
    let p = pool("meta", 8, 1024);
    let mut m = filled(&p, b"0123456789");
    // SAFETY: metadata only.
    unsafe {
        let r = m.raw_mut();
        (r.port, r.packet_type, r.vlan_tci, r.vlan_tci_outer) = (7, 0x111, 42, 43);
        (r.hash, r.tx_offload, r.timestamp, r.dynfield) = ([1, 2], 99, 123_456, [3; 8]);
        r.ol_flags = flags::RX_VLAN | flags::RX_TIMESTAMP;
    }
    for x in [m.clone(&p).unwrap(), m.copy(&p, 2, 5).unwrap()] {
        let r = x.raw();
        assert_eq!((r.port, r.packet_type, r.vlan_tci, r.vlan_tci_outer), (7, 0x111, 42, 43));
        assert_eq!((r.hash, r.tx_offload, r.timestamp, r.dynfield), ([1, 2], 99, 123_456, [3; 8]));
        assert_eq!(r.ol_flags & !flags::ATTACHED, flags::RX_VLAN | flags::RX_TIMESTAMP);
    }
}

#[test]
fn a_copy_is_private_and_takes_the_segments_it_needs() {
    let (big, small) = (pool("big", 4, 2048), pool("small", 8, 320));
    let bytes: Vec<u8> = (0..250).map(|i| i as u8).collect();
    let m = filled(&big, &bytes);
    let mut c = m.copy(&small, 50, 150).unwrap();
    assert_eq!((c.nb_segs(), c.to_vec()), (3, bytes[50..200].to_vec()));
    c.write(0, &[0; 150]).unwrap();
    assert_eq!(m.to_vec(), bytes);
    assert!(m.copy(&small, 4, u32::MAX as usize).is_err() && m.copy(&small, usize::MAX, 2).is_err());
    assert_eq!(m.copy(&small, 250, 0).unwrap().pkt_len(), 0);
    drop(c);
    pool_is_whole(&small);
}

#[test]
fn an_empty_pool_gives_no_half_clone() {
    let (p, few) = (pool("src", 8, 320), pool("few", 2, 0));
    let m = Mbuf::alloc_with(&p, &[1; 200]).unwrap();
    assert_eq!(m.clone(&few).unwrap_err().errno(), Errno::NOMEM);
    assert_eq!(few.available(), 2);
    assert!(m.segments().all(|s| s.raw().refcnt.load(SeqCst) == 1));
}

#[test]
fn a_count_of_users_does_not_overflow() {
    let p = pool("overflow", 4, 1024);
    let m = filled(&p, b"x");
    m.raw().refcnt.store(u16::MAX, SeqCst);
    let e = m.clone(&p).unwrap_err();
    assert_eq!((e.errno(), refcnt(&m)), (Errno::OVERFLOW, u16::MAX));
    assert!(e.text().contains("65535"), "{e}");
    m.raw().refcnt.store(1, SeqCst);
    drop(m);
    pool_is_whole(&p);
}

struct Counted(Vec<u8>, Arc<AtomicUsize>);
impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
impl AsMut<[u8]> for Counted {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn an_external_buffer_that_several_share_is_freed_once_by_the_last() {
    let p = pool("ext", 16, 1024);
    let drops = Arc::new(AtomicUsize::new(0));
    let m = Mbuf::from_shared(&p, Counted(b"outside".to_vec(), drops.clone())).map_err(|e| e.1).unwrap();
    let clones: Vec<Mbuf> = (0..5).map(|_| m.clone(&p).unwrap()).collect();
    let of_clone = clones[0].clone(&p).unwrap();
    assert_eq!(of_clone.flags() & flags::ATTACHED, flags::EXTERNAL);
    drop(m);
    let threads: Vec<_> = clones.into_iter().map(|c| std::thread::spawn(move || drop(c))).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!((drops.load(SeqCst), of_clone.to_vec()), (0, b"outside".to_vec()));
    drop(of_clone);
    assert_eq!(drops.load(SeqCst), 1);
    pool_is_whole(&p);
}

#[test]
fn bytes_that_are_owned_may_be_written_and_bytes_that_are_shared_may_not() {
    let p = pool("own", 8, 1024);
    let shared: Arc<[u8]> = Arc::from(&b"arc"[..]);
    let mut m = Mbuf::from_shared(&p, shared.clone()).map_err(|e| e.1).unwrap();
    assert!(m.data_mut().is_none());
    assert_eq!(m.write(0, b"x").unwrap_err().errno(), Errno::ACCES);
    assert_eq!(m.prepend(0).unwrap_err().errno(), Errno::ACCES);
    let mut c = m.clone(&p).unwrap();
    drop(m);
    assert!(c.data_mut().is_none(), "a clone of read-only bytes is read-only");
    assert_eq!(c.data(), Some(&b"arc"[..]));
    assert!(c.copy(&p, 0, 3).unwrap().data_mut().is_some());
    drop(c);
    assert_eq!(Arc::strong_count(&shared), 1);
    let mut m = Mbuf::from_owned(&p, [1u8, 2, 3]).map_err(|e| e.1).unwrap();
    m.data_mut().unwrap()[1] = 9;
    assert_eq!((m.to_vec(), m.raw().buf_iova, m.headroom(), m.tailroom()), (vec![1, 9, 3], NO_IOVA, 0, 0));
    m.adj(1).unwrap();
    m.prepend(1).unwrap()[0] = 5;
    let c = m.clone(&p).unwrap();
    assert!(m.data_mut().is_none());
    drop(c);
    assert_eq!(m.data_mut().unwrap(), [5, 9, 3]);
    drop(m);
    pool_is_whole(&p);
}

#[test]
fn an_owner_comes_back_where_no_packet_can_be_made_of_it() {
    let p = pool("back", 2, 1024);
    let drops = Arc::new(AtomicUsize::new(0));
    let (owner, e) = Mbuf::from_owned(&p, Counted(vec![0; 65_536], drops.clone())).unwrap_err();
    assert_eq!((e.errno(), drops.load(SeqCst), p.available()), (Errno::MSGSIZE, 0, 2));
    assert!(e.text().contains("65536") && e.text().contains("65535"), "{e}");
    let all: Vec<_> = (0..2).map(|_| Mbuf::alloc(&p).unwrap()).collect();
    let (owner, e) = Mbuf::from_shared(&p, owner).unwrap_err();
    assert_eq!(e.errno(), Errno::NOMEM);
    drop(all);
    drop(owner);
    assert_eq!(drops.load(SeqCst), 1);
    let m = Mbuf::from_owned(&p, vec![1u8; 65_535]).map_err(|e| e.1).unwrap();
    assert_eq!(m.pkt_len(), 65_535);
}

struct Panics;
impl AsRef<[u8]> for Panics {
    fn as_ref(&self) -> &[u8] {
        b"p"
    }
}
impl Drop for Panics {
    fn drop(&mut self) {
        panic!("an owner that panics, on purpose");
    }
}

#[test]
fn an_owner_that_panics_does_not_take_the_program_with_it() {
    let p = pool("panics", 2, 1024);
    drop(Mbuf::from_shared(&p, Panics).map_err(|e| core::mem::forget(e.0)).unwrap());
    pool_is_whole(&p);
}

unsafe extern "C" fn count(addr: *mut core::ffi::c_void, opaque: *mut core::ffi::c_void) {
    assert!(!addr.is_null());
    // SAFETY: the test below gives its counter.
    unsafe { (*opaque.cast::<AtomicUsize>()).fetch_add(1, SeqCst) };
}

#[test]
fn a_c_callback_is_called_once_with_the_last_of_several_packets() {
    let p = pool("c", 8, 1024);
    let calls = AtomicUsize::new(0);
    let mut bytes = [0u8; 256];
    let mut shared = ExtShared {
        free_cb: Some(count),
        opaque: core::ptr::from_ref(&calls).cast_mut().cast(),
        refcnt: AtomicU32::new(2),
    };
    let (mut a, mut b) = (filled(&p, b"lost"), Mbuf::alloc(&p).unwrap());
    // SAFETY: `bytes` and `shared` outlive the packets; each has a part of the bytes to itself.
    unsafe {
        let s = &raw mut shared;
        let at = bytes.as_mut_ptr();
        RawMbuf::attach_ext(a.as_ptr(), at, NO_IOVA, 128, s).unwrap();
        RawMbuf::attach_ext(b.as_ptr(), at.add(128), NO_IOVA, 128, s).unwrap();
        assert_eq!(RawMbuf::attach_ext(a.as_ptr(), at, NO_IOVA, 128, s).unwrap_err().errno(), Errno::BUSY);
        let c = filled(&p, b"c");
        assert!(RawMbuf::attach_ext(c.as_ptr(), core::ptr::null_mut(), NO_IOVA, 128, s).is_err());
        assert!(RawMbuf::attach_ext(c.as_ptr(), at, NO_IOVA, 128, core::ptr::null_mut()).is_err());
        let d = c.clone(&p).unwrap();
        assert_eq!(RawMbuf::attach_ext(c.as_ptr(), at, NO_IOVA, 128, s).unwrap_err().errno(), Errno::BUSY);
        drop(d);
    }
    assert_eq!((a.pkt_len(), a.tailroom()), (0, 128));
    assert_eq!(a.append(1).unwrap_err().errno(), Errno::BUSY, "two packets refer to the buffer");
    drop(a);
    assert_eq!(calls.load(SeqCst), 0);
    b.append(4).unwrap().copy_from_slice(b"mine");
    drop(b);
    assert_eq!((calls.load(SeqCst), shared.refcnt.load(SeqCst)), (1, 0));
    pool_is_whole(&p);
}

#[test]
fn clones_made_and_freed_on_two_threads_leave_every_count_right() {
    let (p, headers) = (pool("race", 64, 1024), pool("race-h", 256, 0));
    for _ in 0..200 {
        let m = filled(&p, b"contended");
        let clones: Vec<Mbuf> = (0..8).map(|_| m.clone(&headers).unwrap()).collect();
        std::thread::scope(|s| {
            s.spawn(|| {
                for c in clones {
                    assert_eq!(c.clone(&headers).unwrap().to_vec(), b"contended");
                }
            });
            let c = m.clone(&headers).unwrap();
            drop(m);
            drop(c);
        });
    }
    pool_is_whole(&p);
    pool_is_whole(&headers);
}

#[test]
fn a_burst_of_every_kind_of_packet_is_freed_at_once() {
    let (a, b) = (pool("mix-a", 64, 320), pool("mix-b", 64, 1024));
    let drops = Arc::new(AtomicUsize::new(0));
    let mut burst: burstline::mbuf::Burst<40> = burstline::mbuf::Burst::new();
    for i in 0..8 {
        let m = Mbuf::alloc_with(&a, &[i; 150]).unwrap();
        let c = m.clone(&b).unwrap();
        let ext = Mbuf::from_shared(&b, Counted(vec![i], drops.clone())).map_err(|e| e.1).unwrap();
        for m in [c, filled(&b, b"plain"), ext, m, filled(&a, b"plain")] {
            burst.push(m).unwrap();
        }
    }
    burst.clear();
    assert_eq!((burst.len(), drops.load(SeqCst)), (0, 8));
    pool_is_whole(&a);
    pool_is_whole(&b);
}
