//! A packet's bytes: room, cutting, reading, writing, joining, splitting.

mod mbuf_support;

use burstline::base::Errno;
use burstline::mbuf::layout::RawMbuf;
use burstline::mbuf::{Mbuf, flags};
use burstline::pool::HEADROOM;
use mbuf_support::*;

#[test]
fn a_fresh_packet_is_empty_with_the_headroom_in_front() {
    let p = pool("fresh", 4, 1024);
    let m = Mbuf::alloc(&p).unwrap();
    assert_eq!((m.headroom(), m.tailroom(), m.pkt_len()), (HEADROOM.into(), 1024 - usize::from(HEADROOM), 0));
    assert_eq!((m.data().unwrap().len(), m.to_vec().len(), m.segments().count()), (0, 0, 1));
}

#[test]
fn bytes_go_in_front_and_behind_and_are_cut_off_again() {
    let p = pool("ends", 4, 1024);
    let mut m = Mbuf::alloc(&p).unwrap();
    m.append(4).unwrap().copy_from_slice(b"body");
    m.prepend(3).unwrap().copy_from_slice(b"hdr");
    m.append(2).unwrap().copy_from_slice(b"!!");
    assert_eq!(m.to_vec(), b"hdrbody!!");
    m.adj(3).unwrap();
    m.trim(2).unwrap();
    assert_eq!((m.data().unwrap(), m.headroom()), (&b"body"[..], HEADROOM.into()));
    m.adj(4).unwrap();
    assert_eq!((m.pkt_len(), m.nb_segs()), (0, 1));
    m.validate().unwrap();
}

#[test]
fn room_that_is_not_there_is_named_and_nothing_is_changed() {
    let p = pool("room", 4, 512);
    let mut m = filled(&p, b"abcd");
    let e = m.prepend(257).unwrap_err();
    assert_eq!(e.errno(), Errno::NOSPC);
    assert!(e.text().contains("257") && e.text().contains("256"), "{e}");
    let e = m.append(253).unwrap_err();
    assert!(e.text().contains("253") && e.text().contains("252"), "{e}");
    let e = m.adj(5).unwrap_err();
    assert!(e.text().contains('5') && e.text().contains('4'), "{e}");
    assert!(m.trim(5).is_err() && m.prepend(usize::MAX).is_err() && m.append(usize::MAX).is_err());
    assert!(m.adj(1 << 16).is_err() && m.adj((1 << 16) + 1).is_err() && m.trim(1 << 32).is_err());
    assert_eq!(m.to_vec(), b"abcd");
    assert!(m.prepend(256).is_ok() && m.append(252).is_ok());
    assert_eq!((m.headroom(), m.tailroom(), m.pkt_len()), (0, 0, 512));
}

#[test]
fn a_read_whose_offset_and_length_would_wrap_fails_cleanly() {
    let p = pool("wrap", 4, 1024);
    let m = filled(&p, &[7; 100]);
    let mut to = [0u8; 8];
    for (offset, len) in [(4, u32::MAX as usize), (4, usize::MAX), (usize::MAX, 4), (usize::MAX, usize::MAX), (101, 0)]
    {
        // SAFETY: refused before a byte is written to `to`.
        let e = unsafe { RawMbuf::read(m.as_ptr(), offset, len, to.as_mut_ptr()) }.unwrap_err();
        assert_eq!(e.errno(), Errno::INVAL);
        assert!(e.text().contains(&len.to_string()) && e.text().contains("100 bytes"), "{e}");
        // SAFETY: only an address is looked for.
        assert!(unsafe { RawMbuf::contiguous(m.as_ptr(), offset, len) }.is_null());
    }
    assert!(m.read(93, &mut to).is_err());
    assert_eq!(to, [0; 8]);
    m.read(92, &mut to).unwrap();
    assert_eq!(to, [7; 8]);
    m.read(100, &mut []).unwrap();
}

#[test]
fn reads_and_writes_cross_segments() {
    let p = pool("cross", 16, 320);
    let bytes: Vec<u8> = (0..300).map(|i| i as u8).collect();
    let mut m = Mbuf::alloc_with(&p, &bytes).unwrap();
    assert_eq!((m.nb_segs(), m.pkt_len(), m.seg_len()), (5, 300, 64));
    assert_eq!(m.to_vec(), bytes);
    let mut to = [0; 130];
    m.read(60, &mut to).unwrap();
    assert_eq!(to, bytes[60..190]);
    m.write(60, &[9; 130]).unwrap();
    assert!(m.write(171, &[1; 130]).is_err());
    let mut want = bytes.clone();
    want[60..190].fill(9);
    assert_eq!(m.to_vec(), want);
    let parts: Vec<u8> = m.segments().flat_map(|s| s.data().unwrap().to_vec()).collect();
    assert_eq!(parts, want);
    m.validate().unwrap();
}

#[test]
fn a_reference_is_in_place_where_the_bytes_are_contiguous_and_copied_else() {
    let p = pool("ref", 16, 320);
    let bytes: Vec<u8> = (0..200).map(|i| i as u8).collect();
    let m = Mbuf::alloc_with(&p, &bytes).unwrap();
    let mut scratch = [0; 32];
    let at = scratch.as_ptr();
    assert_ne!(m.read_ref(64, 32, &mut scratch).unwrap().as_ptr(), at);
    let r = m.read_ref(60, 20, &mut scratch).unwrap();
    assert_eq!((r, r.as_ptr()), (&bytes[60..80], at));
    assert_eq!(m.read_ref(40, 48, &mut scratch), None);
    assert_eq!(m.read_ref(190, 11, &mut scratch), None);
    assert_eq!(m.read_ref(200, 0, &mut []), Some(&[][..]));
    assert_eq!(m.read_ref(201, 0, &mut []), None);
}

#[test]
fn foreign_bytes_are_read_by_copy_and_never_lent() {
    let p = pool("foreign", 4, 1024);
    let mut m = filled(&p, b"from a peer");
    // SAFETY: the flag alone; lengths stay.
    unsafe { m.raw_mut().ol_flags |= flags::FOREIGN };
    assert!(m.data().is_none() && m.data_mut().is_none() && m.segments().next().unwrap().data().is_none());
    assert_eq!(m.prepend(1).unwrap_err().errno(), Errno::ACCES);
    assert_eq!(m.append(1).unwrap_err().errno(), Errno::ACCES);
    assert_eq!(m.to_vec(), b"from a peer");
    let mut scratch = [0; 16];
    let at = scratch.as_ptr();
    assert_eq!(m.read_ref(0, 4, &mut scratch).unwrap().as_ptr(), at);
    assert_eq!(m.read_ref(0, 4, &mut []), None);
    m.write(7, b"PEER").unwrap();
    let c = m.copy(&p, 0, m.pkt_len()).unwrap();
    assert_eq!((c.data().unwrap(), c.is_foreign()), (&b"from a PEER"[..], false));
}

#[test]
fn a_cut_at_the_end_frees_the_segments_that_it_empties() {
    let p = pool("trim", 16, 320);
    let bytes: Vec<u8> = (0..300).map(|i| i as u8).collect();
    let mut m = Mbuf::alloc_with(&p, &bytes).unwrap();
    m.trim(300 - 128).unwrap();
    assert_eq!((m.nb_segs(), p.available()), (2, 14));
    assert_eq!(m.to_vec(), bytes[..128]);
    m.trim(128).unwrap();
    assert_eq!((m.nb_segs(), m.pkt_len(), p.available()), (1, 0, 15));
    m.validate().unwrap();
    drop(m);
    pool_is_whole(&p);
}

#[test]
fn too_small_a_pool_gives_nothing_rather_than_half_a_packet() {
    let p = pool("half", 4, 320);
    let e = Mbuf::alloc_with(&p, &[0; 300]).unwrap_err();
    assert_eq!(e.errno(), Errno::NOMEM);
    assert_eq!(p.available(), 4);
    let headers = pool("headers", 4, 0);
    assert_eq!(Mbuf::alloc_with(&headers, b"x").unwrap_err().errno(), Errno::INVAL);
    let mut m = Mbuf::alloc(&headers).unwrap();
    assert!(m.prepend(1).is_err() && m.append(1).is_err());
    assert!(m.prepend(0).unwrap().is_empty() && m.append(0).unwrap().is_empty());
    assert!(m.data().unwrap().is_empty() && m.data_mut().unwrap().is_empty());
}

#[test]
fn a_chain_split_in_two_gives_every_buffer_back_whole() {
    let p = pool("b3", 8, 1024);
    let mut m = filled(&p, b"m0");
    m.chain(filled(&p, b"m1")).unwrap();
    m.chain(filled(&p, b"m2")).unwrap();
    assert_eq!((m.nb_segs(), m.to_vec()), (3, b"m0m1m2".to_vec()));
    let rest = m.split_segments(2).unwrap();
    assert_eq!((m.nb_segs(), m.to_vec()), (2, b"m0m1".to_vec()));
    assert_eq!((rest.nb_segs(), rest.to_vec()), (1, b"m2".to_vec()));
    assert!(m.split_segments(2).is_err() && m.split_segments(0).is_err());
    drop(m);
    drop(rest);
    pool_is_whole(&p);
}

#[test]
fn a_split_at_a_byte_copies_only_what_shares_a_segment_with_the_cut() {
    let p = pool("cut", 32, 320);
    let bytes: Vec<u8> = (0..300).map(|i| i as u8).collect();
    for at in [0, 1, 63, 64, 65, 128, 299, 300] {
        let mut m = Mbuf::alloc_with(&p, &bytes).unwrap();
        // SAFETY: metadata only.
        unsafe { (m.raw_mut().hash, m.raw_mut().port) = ([5, 6], 3) };
        let mut rest = m.split_at(at, &p).unwrap();
        assert_eq!((m.to_vec(), rest.to_vec()), (bytes[..at].to_vec(), bytes[at..].to_vec()), "at {at}");
        assert_eq!((rest.raw().hash, rest.port()), ([5, 6], 3));
        assert!(m.data_mut().is_some() && rest.data_mut().is_some());
        m.validate().unwrap();
        rest.validate().unwrap();
    }
    let mut m = filled(&p, b"abc");
    assert!(m.split_at(4, &p).unwrap_err().text().contains("3 bytes"));
    drop(m);
    pool_is_whole(&p);
}

#[test]
fn a_split_that_finds_no_packet_changes_nothing() {
    let p = pool("nosplit", 2, 320);
    let mut m = Mbuf::alloc_with(&p, &[1; 100]).unwrap();
    assert_eq!(m.split_at(10, &p).unwrap_err().errno(), Errno::NOMEM);
    assert_eq!((m.nb_segs(), m.pkt_len()), (2, 100));
    m.validate().unwrap();
}

#[test]
fn chains_that_pass_the_limits_are_refused_and_given_back() {
    let p = pool("limits", 4, 1024);
    let (mut a, mut b) = (filled(&p, b"a"), filled(&p, b"b"));
    // SAFETY: put right again below.
    unsafe { a.raw_mut().nb_segs = u16::MAX };
    let (back, e) = a.chain(b).unwrap_err();
    assert_eq!(e.errno(), Errno::OVERFLOW);
    assert!(e.text().contains("65535"), "{e}");
    b = back;
    // SAFETY: as above.
    unsafe {
        a.raw_mut().nb_segs = 1;
        a.raw_mut().pkt_len = u32::MAX;
    }
    assert!(a.validate().is_err());
    let (b, e) = a.chain(b).unwrap_err();
    assert!(e.text().contains("4294967295"), "{e}");
    assert_eq!(b.to_vec(), b"b");
    // SAFETY: as above.
    unsafe { a.raw_mut().pkt_len = 1 };
    // SAFETY: the same packet twice is refused.
    assert!(unsafe { RawMbuf::chain(a.as_ptr(), a.as_ptr()) }.is_err());
}

#[test]
fn one_piece_is_made_in_place_and_moves_down_only_where_it_must() {
    let p = pool("linear", 16, 1024);
    let mut m = filled(&p, &[1; 300]);
    m.chain(filled(&p, &[2; 300])).unwrap();
    m.linearize().unwrap();
    assert_eq!((m.nb_segs(), m.headroom(), m.seg_len(), p.available()), (1, 256, 600, 15));
    m.chain(filled(&p, &[3; 300])).unwrap();
    m.linearize().unwrap();
    assert_eq!((m.headroom(), m.tailroom()), (1024 - 900, 0));
    assert_eq!(m.to_vec(), [&[1; 300][..], &[2; 300], &[3; 300]].concat());
    m.chain(filled(&p, &[4; 300])).unwrap();
    let e = m.linearize().unwrap_err();
    assert_eq!(e.errno(), Errno::MSGSIZE);
    assert!(e.text().contains("1200") && e.text().contains("1024"), "{e}");
    assert_eq!((m.nb_segs(), m.pkt_len()), (2, 1200));
    m.validate().unwrap();
    drop(m);
    pool_is_whole(&p);
}
