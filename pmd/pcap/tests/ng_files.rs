//! pcapng.

use super::*;

#[test]
fn both_byte_orders_are_read() {
    for big in [false, true] {
        let m = Make::new(big)
            .section()
            .interface(1, 96, &[(2, b"eth0"), (9, &[9])])
            .packet(0, 1_700_000_000_000_000_001, b"frame", 60)
            .packet(0, 7, b"", 0);
        let t = Temp::of(&m.out);
        let mut r = Reader::open(&t.0).unwrap();
        let info = CaptureInfo { format: Format::PcapNg, nanos: true, big_endian: big, snaplen: 96, linktype: 1 };
        assert_eq!(r.info(), info);
        let want = (vec![(1_700_000_000_000_000_001, b"frame".to_vec(), 60), (7, vec![], 0)], End::Eof);
        assert_eq!(drain(&mut r), want);
        r.rewind().unwrap();
        assert_eq!(drain(&mut r), want);
        assert_eq!(r.info(), info);
    }
}

#[test]
fn each_interface_has_its_own_resolution_and_offset() {
    for big in [false, true] {
        let offset = |s: i64| if big { s.to_be_bytes() } else { s.to_le_bytes() };
        let m = Make::new(big)
            .section()
            .interface(1, 0, &[])
            .interface(1, 0, &[(9, &[0x8a]), (14, &offset(100))])
            .interface(1, 0, &[(14, &offset(-2)), (9, &[3])])
            .packet(0, 1_500_000, b"a", 1)
            .packet(1, 1536, b"b", 1)
            .packet(2, 5_001, b"c", 1)
            .packet(2, 1, b"before 1970", 11);
        let t = Temp::of(&m.out);
        let mut r = Reader::open(&t.0).unwrap();
        assert!(!r.info().nanos);
        let stamps: Vec<u64> = drain(&mut r).0.iter().map(|p| p.0).collect();
        assert_eq!(stamps, [1_500_000_000, 101_500_000_000, 3_001_000_000, 0]);
        assert_eq!(r.counts().clamped_ts, 1);
    }
}

#[test]
fn a_later_section_has_its_own_byte_order_and_interfaces() {
    let mut m = Make::new(false).section().interface(1, 0, &[]).packet(0, 1, b"one", 3);
    m.big = true;
    let m = m.section().interface(1, 0, &[(9, &[9])]).packet(0, 2, b"two", 3).section().packet(0, 3, b"none", 4);
    let (packets, end) = read(&m.out);
    assert_eq!(packets, [(1_000, b"one".to_vec(), 3), (2, b"two".to_vec(), 3)]);
    let End::Error(text) = end else { panic!("{end:?}") };
    assert!(text.contains("packet of interface 0, but the section has 0"), "{text}");
}

#[test]
fn simple_and_obsolete_packets_are_read() {
    for big in [false, true] {
        let m = Make::new(big)
            .section()
            .interface(1, 6, &[])
            .block(3, |b| b.u32(4).bytes(b"none"))
            .block(2, |b| b.u16(0).u16(99).u32(0).u32(8).u32(3).u32(70).bytes(b"old"))
            .block(3, |b| b.u32(5).bytes(b"short"))
            .block(3, |b| b.u32(1500).bytes(b"snaped"));
        let want = vec![
            (0, b"none".to_vec(), 4),
            (8_000, b"old".to_vec(), 70),
            (8_000, b"short".to_vec(), 5),
            (8_000, b"snaped".to_vec(), 1500),
        ];
        assert_eq!(read(&m.out), (want, End::Eof));
    }
}

#[test]
fn blocks_that_hold_no_packets_are_passed_whatever_their_size() {
    let m = Make::new(false)
        .section()
        .block(0x8000_1234, |b| b.bytes(&vec![9; 3 << 20]))
        .interface(1, 0, &[(9, &[9])])
        .block(4, |b| b.bytes(&[0; 4]))
        .block(5, |b| b.bytes(&[0; 12]))
        .block(10, |b| b.bytes(&[0; 300_000]))
        .block(0x0bad, |b| b)
        .packet(0, 1, b"x", 1);
    assert_eq!(read(&m.out), (vec![(1, b"x".to_vec(), 1)], End::Eof));
}

#[test]
fn options_and_a_comment_behind_a_packet_are_passed() {
    let m = Make::new(false)
        .section()
        .interface(1, 0, &[(9, &[9]), (0, b"")])
        .block(6, |b| b.u32(0).u32(0).u32(3).u32(3).u32(3).bytes(b"abc\0").u16(1).u16(5).bytes(b"hello\0\0\0").u32(0));
    assert_eq!(read(&m.out), (vec![(3, b"abc".to_vec(), 3)], End::Eof));
}

#[test]
fn a_first_interface_that_is_not_ethernet_is_refused_and_a_later_one_is_skipped_and_counted() {
    let e = refusal(&Make::new(false).section().interface(113, 0, &[]).interface(1, 0, &[]).out);
    assert!(e.text().contains("link type 113 (LINUX_SLL, Linux cooked); only Ethernet (1) is read"), "{e}");
    let m = Make::new(false)
        .section()
        .interface(1, 0, &[(9, &[9])])
        .interface(220, 0, &[])
        .packet(1, 1, &vec![7; MAX_BLOCK as usize + 5], 9)
        .packet(0, 2, b"eth", 3)
        .packet(1, 3, b"usb", 3);
    let t = Temp::of(&m.out);
    let mut r = Reader::open(&t.0).unwrap();
    assert_eq!(drain(&mut r), (vec![(2, b"eth".to_vec(), 3)], End::Eof));
    assert_eq!(r.counts().skipped_linktype, 2);
}

#[test]
fn a_frame_check_sequence_that_the_interface_announces_is_cut_off() {
    let m = Make::new(false).section().interface(1, 0, &[(13, &[32]), (9, &[9])]).packet(0, 1, b"datafcs!", 8);
    assert_eq!(read(&m.out).0, [(1, b"data".to_vec(), 4)]);
}

#[test]
fn a_section_without_packets_or_interfaces_is_an_empty_capture() {
    assert_eq!(read(&Make::new(true).section().out), (vec![], End::Eof));
    assert_eq!(read(&Make::new(true).section().interface(1, 0, &[]).out), (vec![], End::Eof));
}

#[test]
fn a_cut_file_gives_what_was_whole_and_then_the_offset_of_the_cut_block() {
    let m = Make::new(true)
        .section()
        .interface(1, 0, &[])
        .packet(0, 1, b"first", 5)
        .block(4, |b| b.bytes(&[0; 20]))
        .packet(0, 2, b"second", 6);
    let (skipped, second) = (28 + 20 + 40, 28 + 20 + 40 + 32);
    for cut in skipped + 1..m.out.len() {
        if cut == second {
            continue;
        }
        let at = if cut < second { skipped } else { second };
        let (packets, end) = read(&m.out[..cut]);
        assert_eq!((packets.len(), end), (1, End::Truncated(at as u64)), "cut at {cut}");
    }
    for cut in 4..24 {
        assert!(refusal(&m.out[..cut]).text().contains("cut short"), "cut at {cut}");
    }
}
