//! Classic pcap.

use super::*;

#[test]
fn both_byte_orders_and_both_resolutions_are_read() {
    for big in [false, true] {
        for (magic, nanos, ns) in [(0xa1b2_c3d4, false, 7_123_456_000u64), (0xa1b2_3c4d, true, 7_000_123_456)] {
            let m = Make::new(big).classic(magic, 1000, 1).record(7, 123_456, b"frame", 60).record(8, 0, b"", 0);
            let t = Temp::of(&m.out);
            let mut r = Reader::open(&t.0).unwrap();
            let info = CaptureInfo {
                format: Format::Pcap,
                nanos,
                big_endian: big,
                snaplen: 1000,
                linktype: LINKTYPE_ETHERNET,
            };
            assert_eq!(r.info(), info);
            let want = (vec![(ns, b"frame".to_vec(), 60), (8_000_000_000, vec![], 0)], End::Eof);
            assert_eq!(drain(&mut r), want);
            // And once more, as a loop does.
            r.rewind().unwrap();
            assert_eq!(drain(&mut r), want);
            assert_eq!(r.info(), info);
        }
    }
}

#[test]
fn the_swapped_nanosecond_magic_is_the_bytes_a1_b2_3c_4d() {
    let m = Make::new(false).u32(0x4d3c_b2a1);
    assert_eq!(m.out, [0xa1, 0xb2, 0x3c, 0x4d]);
    let mut file = m.out;
    file.extend(&Make::new(true).classic(0, 9, 1).record(1, 1, b"x", 1).out[4..]);
    assert_eq!(read(&file), (vec![(1_000_000_001, b"x".to_vec(), 1)], End::Eof));
}

#[test]
fn a_record_longer_than_the_snap_length_is_delivered() {
    let long = vec![0x5a; 1514];
    for snaplen in [1500, 0, 1, u32::MAX] {
        let m = Make::new(false)
            .classic(0xa1b2_c3d4, snaplen, 1)
            .record(1, 0, &long, 1514)
            .record(2, 0, b"abcd", 9000)
            .record(3, 0, b"after", 5);
        let (packets, end) = read(&m.out);
        assert_eq!(end, End::Eof);
        assert_eq!(
            packets,
            [
                (1_000_000_000, long.clone(), 1514),
                (2_000_000_000, b"abcd".to_vec(), 9000),
                (3_000_000_000, b"after".to_vec(), 5)
            ]
        );
    }
}

#[test]
fn a_captured_length_above_the_original_one_counts() {
    let m = Make::new(false).classic(0xa1b2_c3d4, 0, 1).record(1, 0, b"abcdef", 2);
    assert_eq!(read(&m.out).0, [(1_000_000_000, b"abcdef".to_vec(), 6)]);
}

#[test]
fn a_microsecond_field_out_of_range_is_clamped_and_counted() {
    let m = Make::new(false)
        .classic(0xa1b2_c3d4, 0, 1)
        .record(1, u32::MAX / 1000 + 1, b"a", 1)
        .record(u32::MAX, u32::MAX, b"b", 1)
        .record(2, 999_999, b"c", 1);
    let t = Temp::of(&m.out);
    let mut r = Reader::open(&t.0).unwrap();
    let (packets, end) = drain(&mut r);
    let stamps: Vec<u64> = packets.iter().map(|p| p.0).collect();
    assert_eq!((stamps, end), (vec![1_999_999_000, 4_294_967_295_999_999_000, 2_999_999_000], End::Eof));
    assert_eq!(r.counts(), Counts { clamped_ts: 2, skipped_linktype: 0 });
}

#[test]
fn a_frame_check_sequence_that_the_header_announces_is_cut_off() {
    let m = Make::new(false)
        .classic(0xa1b2_c3d4, 0, 0x2400_0001)
        .record(0, 0, b"datafcs!", 8)
        .record(0, 0, b"cut", 8)
        .record(0, 0, b"f", 1);
    let got = read(&m.out).0;
    assert_eq!(got, [(0, b"data".to_vec(), 4), (0, b"cut".to_vec(), 4), (0, vec![], 0)]);
    // The length stands without its flag: not announced.
    let m = Make::new(false).classic(0xa1b2_c3d4, 0, 0x2000_0001).record(0, 0, b"datafcs!", 8);
    assert_eq!(read(&m.out).0, [(0, b"datafcs!".to_vec(), 8)]);
}

#[test]
fn a_cut_file_gives_what_was_whole_and_then_the_offset_of_the_cut_record() {
    let m = Make::new(true).classic(0xa1b2_c3d4, 0, 1).record(1, 0, b"first", 5).record(2, 0, b"second", 6);
    let second = 24 + 16 + 5;
    for cut in second + 1..m.out.len() {
        let (packets, end) = read(&m.out[..cut]);
        assert_eq!((packets.len(), end), (1, End::Truncated(second as u64)), "cut at {cut}");
    }
    assert_eq!(read(&m.out[..second]).1, End::Eof);
    for cut in 4..24 {
        let e = refusal(&m.out[..cut]);
        assert!(e.text().contains(&format!("cut short: {cut} bytes of a file header of 24")), "{e}");
    }
}

#[test]
fn a_file_that_grows_after_its_cut_goes_on() {
    let m = Make::new(false).classic(0xa1b2_c3d4, 0, 1).record(1, 0, b"first", 5);
    let t = Temp::of(&m.out[..m.out.len() - 2]);
    let mut r = Reader::open(&t.0).unwrap();
    assert_eq!(drain(&mut r), (vec![], End::Truncated(24)));
    File::options().append(true).open(&t.0).unwrap().write_all(b"st").unwrap();
    assert_eq!(drain(&mut r), (vec![(1_000_000_000, b"first".to_vec(), 5)], End::Eof));
}

#[test]
fn a_record_length_above_the_limit_is_an_error_that_stays() {
    let m =
        Make::new(false).classic(0xa1b2_c3d4, 0, 1).record(1, 0, b"ok", 2).u32(1).u32(0).u32(MAX_RECORD + 1).u32(64);
    let t = Temp::of(&m.out);
    let mut r = Reader::open(&t.0).unwrap();
    let (packets, end) = drain(&mut r);
    assert_eq!(packets.len(), 1);
    let End::Error(text) = &end else { panic!("{end:?}") };
    assert!(text.contains("corrupt at offset 42: record length 262145 above the limit of 262144"), "{text}");
    assert_eq!(drain(&mut r), (vec![], end));
    assert_eq!(r.next().unwrap_err().errno().0, libc::EBADMSG);
    let whole = Make::new(false).classic(0xa1b2_c3d4, 0, 1).record(1, 0, &vec![1; MAX_RECORD as usize], MAX_RECORD);
    let (packets, end) = read(&whole.out);
    assert_eq!((packets.len(), packets[0].1.len(), end), (1, MAX_RECORD as usize, End::Eof));
}

#[test]
fn a_link_type_other_than_ethernet_is_refused_by_number_and_name() {
    for (linktype, name) in [(113, "LINUX_SLL"), (101, "raw IP"), (105, "IEEE802_11"), (9999, "not a common one")] {
        let e = refusal(&Make::new(true).classic(0xa1b2_c3d4, 0, linktype).out);
        assert_eq!(e.errno().0, libc::EINVAL);
        assert!(e.text().contains(&format!("link type {linktype} (")) && e.text().contains(name), "{e}");
    }
}

#[test]
fn an_older_version_is_refused() {
    let m = Make::new(false).u32(0xa1b2_c3d4).u16(2).u16(3).bytes(&[0; 16]);
    assert!(refusal(&m.out).text().contains("pcap version 2.3 is not read"));
}
