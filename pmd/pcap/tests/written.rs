//! What the writer writes, the reader reads.

use super::*;

const FRAMES: [(u64, &[&[u8]]); 4] = [
    (1_700_000_000_123_456_789, &[b"abcdefghijkl", b"mnop"]),
    (1_700_000_000_123_456_790, &[b"x"]),
    (1_700_000_001_000_000_000, &[b"", b"yz", b"", b"!"]),
    (1_700_000_002_000_000_000, &[]),
];

fn round_trip(name: &str, encoder: Option<Encoder>) -> (CaptureInfo, Vec<Packet>) {
    let t = Temp::named(name);
    let mut w = match encoder {
        Some(e) => Writer::with(&t.0, e).unwrap(),
        None => Writer::create(&t.0, 0).unwrap(),
    };
    for (ts, segments) in FRAMES {
        w.write(ts, segments).unwrap();
    }
    w.flush().unwrap();
    let mut r = Reader::open(&t.0).unwrap();
    let (packets, end) = drain(&mut r);
    assert_eq!(end, End::Eof);
    (r.info(), packets)
}

fn expected(unit: u64, snap: usize) -> Vec<Packet> {
    FRAMES
        .iter()
        .map(|(ts, s)| {
            let data = s.concat();
            (ts / unit * unit, data[..data.len().min(snap)].to_vec(), data.len() as u32)
        })
        .collect()
}

#[test]
fn the_name_decides_the_format() {
    let big_endian = cfg!(target_endian = "big");
    for (name, format) in
        [("x.pcap", Format::Pcap), ("x.pcapng", Format::PcapNg), ("x.PCAPNG", Format::PcapNg), ("x", Format::Pcap)]
    {
        let (info, packets) = round_trip(name, None);
        assert_eq!(info, CaptureInfo { format, nanos: true, big_endian, snaplen: MAX_RECORD, linktype: 1 });
        assert_eq!(packets, expected(1, usize::MAX));
    }
}

#[test]
fn microseconds_are_written_where_asked_for() {
    let (info, packets) = round_trip("u.pcap", Some(Encoder::new(Format::Pcap, false, 0).unwrap()));
    assert!(!info.nanos);
    assert_eq!(packets, expected(1000, usize::MAX));
}

#[test]
fn packets_are_cut_at_the_snap_length_wherever_a_segment_ends() {
    for format in [Format::Pcap, Format::PcapNg] {
        for snap in [1, 2, 3, 11, 12, 13, 15, 16, 17] {
            let (info, packets) = round_trip("s", Some(Encoder::new(format, true, snap).unwrap()));
            assert_eq!(info.snaplen, snap);
            assert_eq!(packets, expected(1, snap as usize));
        }
    }
}

#[test]
fn the_block_length_of_a_packet_in_segments_is_that_of_the_whole_packet() {
    let e = Encoder::new(Format::PcapNg, true, 0).unwrap();
    for len in [0usize, 1, 2, 3, 4, 5, 1514, 9000] {
        let a = e.around(5, len);
        assert_eq!((a.head.len() + a.cap_len as usize + a.tail.len()) % 4, 0);
        let total = u32::from_ne_bytes(a.head[4..8].try_into().unwrap());
        assert_eq!(total as usize, a.head.len() + len + a.tail.len());
        assert_eq!(u32::from_ne_bytes(a.tail[a.tail.len() - 4..].try_into().unwrap()), total);
    }
}

#[test]
fn a_stamp_beyond_its_field_is_clamped_so_that_time_does_not_go_back() {
    let h = record_header_words(u64::MAX);
    assert_eq!(h, [u32::MAX, 999_999_999, 1, 2]);
    let h = record_header_words(u64::from(u32::MAX) * 1_000_000_000 + 5);
    assert_eq!(h, [u32::MAX, 5, 1, 2]);
}

fn record_header_words(ts_ns: u64) -> [u32; 4] {
    let h = writer::record_header(ts_ns, 1, 2, true);
    [0, 4, 8, 12].map(|i| u32::from_ne_bytes(h[i..i + 4].try_into().unwrap()))
}

#[test]
fn what_cannot_be_written_is_named() {
    let e = Writer::create(Path::new("/nonexistent/y.pcap"), 0).err().unwrap();
    assert_eq!(e.errno().0, libc::ENOENT);
    assert!(e.text().contains("create '/nonexistent/y.pcap'"), "{e}");
    let e = Writer::create(&std::env::temp_dir(), 0).err().unwrap();
    assert_eq!(e.errno().0, libc::EISDIR);
    let e = Writer::create(Path::new("/dev/full"), 0).err().unwrap();
    assert_eq!(e.errno().0, libc::ENOSPC);
    let e = Encoder::new(Format::Pcap, true, MAX_RECORD + 1).unwrap_err();
    assert!(e.text().contains("snap length 262145 above the limit of 262144"), "{e}");
    let mut w = Writer::create(Path::new("/dev/null"), 0).unwrap();
    w.write(1, &[b"gone"]).unwrap();
    w.flush().unwrap();
}
