//! Files that are none, or no longer.

use super::*;

#[test]
fn what_is_not_a_capture_is_refused_with_the_magic_that_was_seen() {
    for (bytes, what) in [
        (&b""[..], "empty"),
        (b"abc", "only 3 bytes"),
        (b"#!/bin/sh\necho", "magic 23 21 2f 62 is neither pcap nor pcapng"),
        (&[0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0], "Kuznetzov"),
        (&[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4], "Kuznetzov"),
        (&[0x1f, 0x8b, 8, 0], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"snoop\0\0\0", "snoop"),
    ] {
        let e = refusal(bytes);
        assert_eq!(e.errno().0, libc::EINVAL);
        assert!(e.text().contains(what), "{e}");
    }
}

#[test]
fn a_magic_one_byte_off_with_a_garbage_snap_length_is_refused() {
    for big in [false, true] {
        let e = refusal(&Make::new(big).classic(0x85b2_c3d4, 0xfefe_fefe, 1).record(0, 0, b"x", 1).out);
        assert!(e.text().contains("is neither pcap nor pcapng"), "{e}");
    }
}

#[test]
fn thirteen_bytes_with_a_block_length_of_zero_are_an_error() {
    let m = Make::new(false).u32(0x0a0d_0d0a).u32(0).u32(0x1a2b_3c4d).bytes(&[0]);
    assert_eq!(m.out.len(), 13);
    let e = refusal(&m.out);
    assert!(e.text().contains("offset 0: length 0 of a block of type 0x0a0d0d0a below its least of 28"), "{e}");
}

#[test]
fn a_block_shorter_than_its_kind_or_not_a_multiple_of_four_is_an_error() {
    let start = || Make::new(false).section().interface(1, 0, &[]);
    for (kind, total, what) in [
        (6, 0, "length 0 of a block of type 0x00000006 below its least of 32"),
        (6, 28, "below its least of 32"),
        (2, 28, "below its least of 32"),
        (3, 12, "below its least of 16"),
        (1, 16, "below its least of 20"),
        (77, 8, "below its least of 12"),
        (77, 11, "below its least of 12"),
        (77, 13, "is not a multiple of 4"),
        (6, MAX_BLOCK + 4, "above the limit of 1048576"),
    ] {
        let m = start().u32(kind).u32(total).bytes(&[0; 64]);
        let (packets, end) = read(&m.out);
        let End::Error(text) = end else { panic!("{kind} {total}: {end:?}") };
        assert!(packets.is_empty() && text.contains("offset 48") && text.contains(what), "{text}");
    }
}

#[test]
fn a_length_behind_a_block_that_differs_from_the_one_in_front_is_an_error_that_stays() {
    let start = || Make::new(false).section().interface(1, 0, &[]);
    for m in [start().packet(0, 1, b"abcd", 4), start().block(4, |b| b.bytes(&[0; 24]))] {
        let mut bytes = m.out;
        let at = bytes.len() - 4;
        bytes[at] ^= 1;
        let t = Temp::of(&bytes);
        let mut r = Reader::open(&t.0).unwrap();
        let (packets, end) = drain(&mut r);
        assert!(packets.is_empty());
        assert_eq!(
            end,
            End::Error(format!("'{}' is corrupt at offset 48: block length 36 in front, 37 behind", t.0.display()))
        );
        assert_eq!(drain(&mut r).1, end);
    }
}

#[test]
fn a_captured_length_that_does_not_fit_its_block_is_an_error() {
    let start = || Make::new(true).section().interface(1, 0, &[]);
    for (m, what) in [
        (
            start().block(6, |b| b.u32(0).u32(0).u32(0).u32(5).u32(5).bytes(b"abcd")),
            "record length 5 in a block with room for 4",
        ),
        (start().block(6, |b| b.u32(0).u32(0).u32(0).u32(u32::MAX).u32(5)), "record length 4294967295 above the limit"),
        (start().block(2, |b| b.u32(0).u32(0).u32(0).u32(u32::MAX - 3).u32(5)), "above the limit of 262144"),
        (start().block(3, |b| b.u32(1500).bytes(b"abcd")), "record length 1500 in a block with room for 4"),
        (start().packet(7, 0, b"", 0), "packet of interface 7, but the section has 1"),
        (start().interface(1, 0, &[(9, &[1, 2])]), "option 9 of an interface has length 2"),
        (
            start().block(1, |b| b.u16(1).u16(0).u32(0).u16(2).u16(400).u32(0)),
            "option at byte 16 of an interface runs out",
        ),
    ] {
        let (_, end) = read(&m.out);
        let End::Error(text) = end else { panic!("{what}: {end:?}") };
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn a_section_of_a_strange_byte_order_or_version_is_refused() {
    let m = Make::new(false).block(0x0a0d_0d0a, |b| b.u32(0x1234_5678).bytes(&[0; 12]));
    assert!(refusal(&m.out).text().contains("byte-order magic 0x12345678"));
    let m = Make::new(false).block(0x0a0d_0d0a, |b| b.u32(0x1a2b_3c4d).u16(2).u16(0).bytes(&[0; 8]));
    assert!(refusal(&m.out).text().contains("pcapng version 2.0"));
}

/// Reads to the end, which must come, and checks what every record must keep.
fn survives(bytes: &[u8]) {
    let t = Temp::of(bytes);
    let Ok(mut r) = Reader::open(&t.0) else { return };
    for _ in 0..2 {
        let mut last = End::NotYet;
        // No record is shorter than its 12 bytes of head and tail, so no file holds more of them.
        for _ in 0..=bytes.len() / 12 {
            match r.next() {
                Ok(Next::Record(p)) => {
                    assert!(p.data.len() <= MAX_RECORD as usize && p.orig_len as usize >= p.data.len())
                }
                Ok(Next::Eof) => last = End::Eof,
                Ok(Next::Truncated { offset }) => {
                    assert!(offset < bytes.len() as u64);
                    last = End::Truncated(offset);
                }
                Ok(Next::NotYet) => panic!("a file is always there"),
                Err(e) => last = End::Error(e.to_string()),
            }
            if last != End::NotYet {
                break;
            }
        }
        assert_ne!(last, End::NotYet, "no end");
        r.rewind().unwrap();
    }
}

fn sample(kind: u8, big: bool) -> Vec<u8> {
    let m = Make::new(big);
    match kind {
        0 => m.classic(0xa1b2_c3d4, 96, 1).record(1, 2, b"abcdef", 60).record(3, 4, &[7; 70], 70).out,
        1 => m.classic(0xa1b2_3c4d, 0, 1).record(1, 2, b"", 0).record(3, 4, b"x", 1).out,
        _ => {
            m.section()
                .interface(1, 64, &[(2, b"eth0"), (9, &[0x8a]), (14, &[0; 8])])
                .interface(101, 0, &[])
                .packet(0, 1, b"abcdef", 60)
                .block(3, |b| b.u32(5).bytes(b"short"))
                .packet(1, 1, b"raw", 3)
                .block(4, |b| b.bytes(&[0; 8]))
                .block(2, |b| b.u16(0).u16(9).u32(0).u32(8).u32(3).u32(70).bytes(b"old"))
                .section()
                .interface(1, 0, &[])
                .packet(0, u64::MAX, b"end", 3)
                .out
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_behind_any_header_never_panics_or_hangs(noise in proptest::collection::vec(any::<u8>(), 0..400), head in 0u8..6) {
        let big = head % 2 == 1;
        let mut bytes = match head / 2 {
            0 => vec![],
            1 => Make::new(big).classic(0xa1b2_c3d4, 0, 1).out,
            _ => Make::new(big).section().interface(1, 0, &[]).out,
        };
        bytes.extend(noise);
        survives(&bytes);
    }

    #[test]
    fn a_mutated_capture_never_panics_or_hangs(
        kind in 0u8..3,
        big in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xff), 0u8..64]), 1..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = sample(kind, big);
        for (at, v) in edits {
            let at = at.index(bytes.len());
            bytes[at] = v;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survives(&bytes);
    }
}

#[test]
fn every_single_byte_of_a_capture_may_be_anything() {
    for kind in 0..3 {
        for big in [false, true] {
            let good = sample(kind, big);
            for at in 0..good.len() {
                for v in [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 4] {
                    let mut bytes = good.clone();
                    bytes[at] = v;
                    survives(&bytes);
                }
            }
        }
    }
}
