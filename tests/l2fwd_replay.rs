//! l2fwd replays captures: every frame of the input stands in the output, in order, and only its addresses are new. Other
//! tools make the inputs and read the outputs.

mod support;

use std::path::{Path, PathBuf};
use support::between::{c_l2fwd, c_source};
use support::e2e::*;
use support::need;
use support::run::{TempDir, run};

/// What came of one run.
struct Ran {
    sent: Vec<Frame>,
    books: Books,
    stderr: String,
    out: PathBuf,
}

/// The command of the manual: one capture in, one out, `more` added to the program's options.
#[track_caller]
fn replay(input: &Path, more: &str, dir: &TempDir) -> Ran {
    let input = input.display();
    run_line(
        &format!(
            "-l 0 --no-pci --vdev=net_pcap0,rx_pcap={input},tx_pcap=/dev/null --vdev=net_pcap1,tx_pcap=OUT -- -p 0x3 -T 0 \
             --exit-on-eof --stats-json S {more}"
        ),
        dir,
    )
}

/// A line that writes OUT and S.
#[track_caller]
fn run_line(line: &str, dir: &TempDir) -> Ran {
    let out = dir.join("OUT");
    let begun = now_ns();
    let said = l2fwd(line, dir).expect_ok();
    let ended = now_ns();
    let sent = frames(&out, dir);
    let stamps: Vec<u64> = sent.iter().map(|f| f.ns).collect();
    assert!(stamps.is_sorted(), "time goes back: {line}");
    for ns in [stamps.first(), stamps.last()].into_iter().flatten() {
        assert!((begun..=ended).contains(ns), "sent at {ns}, run from {begun} to {ended}: {line}");
    }
    Ran { sent, books: Books::read(&dir.join("S")), stderr: said.stderr, out }
}

/// Each frame as it was but for its addresses: 02:00:00:00:00:<port> and that port's own.
#[track_caller]
fn only_addresses_changed(before: &[Frame], after: &[Frame], port: u8) {
    assert_eq!(before.len(), after.len(), "frames");
    let head = [2, 0, 0, 0, 0, port, 0x02, 0x62, 0x6c, 0, 0, port];
    for (i, (b, a)) in before.iter().zip(after).enumerate() {
        assert_eq!(a.bytes[..12], head, "frame {i}: addresses");
        assert!(a.bytes[12..] == b.bytes[12..], "frame {i}: bytes from the type on");
    }
}

fn bytes(frames: &[Frame]) -> Vec<&[u8]> {
    frames.iter().map(|f| &f.bytes[..]).collect()
}

fn with_dir(test: impl FnOnce(&TempDir)) {
    let dir = TempDir::new("bl-replay");
    test(&dir);
}

/// The demo capture in the other byte order.
fn swapped_demo(dir: &TempDir) -> Vec<u8> {
    let mut file = Classic::new(Classic::MICROS, 262_144, 1, true);
    for f in frames(&demo(), dir) {
        let (sec, micros) = (f.ns / 1_000_000_000, f.ns % 1_000_000_000 / 1000);
        file.record(sec as u32, micros as u32, &f.bytes, f.len);
    }
    file.bytes
}

#[test]
fn the_demo_capture_comes_out_whole_whatever_kind_of_file_it_is() {
    need!("editcap", "tshark");
    with_dir(|dir| {
        let before = frames(&demo(), dir);
        let len: u64 = before.iter().map(|f| f.bytes.len() as u64).sum();
        std::fs::write(dir.join("swapped"), swapped_demo(dir)).unwrap();
        for kind in ["pcapng", "nsecpcap", "pcap"] {
            editcap(&["-F", kind], &demo(), &dir.join(kind));
        }
        for input in [demo(), dir.join("pcapng"), dir.join("nsecpcap"), dir.join("pcap"), dir.join("swapped")] {
            let ran = replay(&input, "", dir);
            only_addresses_changed(&before, &ran.sent, 1);
            let b = ran.books.balance();
            let got = (b.n(0, "ipackets"), b.n(0, "ibytes"), b.n(1, "opackets"), b.n(1, "obytes"), b.sum("ierrors"));
            assert_eq!(got, (299, len, 299, len, 0), "{}", input.display());
            // The same as tshark sees it.
            let fields = ["frame.len", "eth.type", "ip.id", "ipv6.plen", "tcp.seq_raw", "udp.checksum", "vlan.id"];
            assert_eq!(tshark(&demo(), &fields), tshark(&ran.out, &fields));
            for line in tshark(&ran.out, &["eth.dst", "eth.src", "_ws.malformed"]) {
                assert_eq!(line[..2], ["02:00:00:00:00:01", "02:62:6c:00:00:01"]);
                assert_eq!(line.get(2).map_or("", String::as_str), "", "a malformed frame");
            }
        }
    });
}

#[test]
fn without_new_addresses_each_frame_comes_out_as_it_went_in() {
    need!("editcap");
    with_dir(|dir| {
        let before = frames(&demo(), dir);
        let ran = replay(&demo(), "--no-mac-updating", dir);
        assert!(bytes(&before) == bytes(&ran.sent));
        ran.books.balance();
    });
}

#[test]
fn the_c_program_writes_the_same_frames_and_books() {
    need!("editcap", "gcc", c_source().as_str());
    with_dir(|dir| {
        let program = c_l2fwd(dir).path;
        for more in ["", "--no-mac-updating"] {
            let rust = replay(&demo(), more, dir);
            let line = format!(
                "-l 0 --no-pci --vdev=net_pcap0,rx_pcap={},tx_pcap=/dev/null --vdev=net_pcap1,tx_pcap=OUT-C -- -p 0x3 -T 0 \
                 --exit-on-eof --stats-json S-C {more}",
                demo().display()
            );
            let mut cmd = std::process::Command::new(&program);
            run(cmd.args(line.split_whitespace()).current_dir(dir.path()), LIMIT).expect_ok();
            assert!(bytes(&frames(&dir.join("OUT-C"), dir)) == bytes(&rust.sent), "{more}");
            let c = Books::read(&dir.join("S-C"));
            for key in ["ipackets", "opackets", "ibytes", "obytes", "ierrors", "oerrors"] {
                assert_eq!(c.sum(key), rust.books.sum(key), "{key}: {}", c.0);
            }
            c.balance();
        }
    });
}

/// `n` frames of 60 to 1514 bytes.
fn many(n: usize) -> Vec<u8> {
    let mut file = Classic::new(Classic::NANOS, 65_535, 1, false);
    for i in 0..n {
        let len = 60 + i * 37 % 1455;
        file.record(1_700_000_000 + i as u32 / 1000, (i as u32 % 1000) * 1_000_000, &frame(i, len), len as u32);
    }
    file.bytes
}

#[test]
fn twenty_thousand_frames_come_out_in_order() {
    need!("editcap", "tshark");
    with_dir(|dir| {
        std::fs::write(dir.join("in"), many(20_000)).unwrap();
        let before = frames(&dir.join("in"), dir);
        assert_eq!(before.len(), 20_000);
        for more in ["", "--burst 512", "--pool-size 300 --burst 8", "--no-mac-updating --txd 8"] {
            let ran = replay(&dir.join("in"), more, dir);
            if more.contains("no-mac") {
                assert!(bytes(&before) == bytes(&ran.sent));
            } else {
                only_addresses_changed(&before, &ran.sent, 1);
            }
            assert_eq!((ran.books.balance().n(0, "ipackets"), ran.books.n(1, "opackets")), (20_000, 20_000), "{more}");
        }
        assert!(tshark(&dir.join("in"), &["frame.len"]) == tshark(&dir.join("OUT"), &["frame.len"]));
    });
}

/// Replays frames in from a port, through l2fwd's other ports, to a file.
#[test]
fn frames_come_out_whole_through_rings_maps_and_lcores() {
    need!("editcap");
    with_dir(|dir| {
        std::fs::copy(demo(), dir.join("in")).unwrap();
        let before = frames(&demo(), dir);
        let two_cores = burstline::eal::affinity::allowed_cpus().starts_with(&[0, 1]);
        let ring = "--vdev=net_pcap0,rx_pcap=in,tx_pcap=OUT --vdev=net_ring0";
        let small = "--vdev=net_pcap0,rx_pcap=in,tx_pcap=OUT --vdev=net_ring0,size=8";
        let cable =
            "--vdev=net_pcap0,rx_pcap=in --vdev=net_ring0,link=c --vdev=net_ring1,link=c --vdev=net_pcap1,tx_pcap=OUT";
        let apart = "--vdev=net_pcap0,rx_pcap=in --vdev=net_null0,no-rx=1 --vdev=net_pcap1,tx_pcap=OUT --vdev=net_null1,no-rx=1";
        // (devices, options, the port that writes OUT, the number in its device's address, sends of each frame)
        for (devices, options, port, mac, hops) in [
            (ring, "-p 0x3", 0, 0, 2),
            (small, "-p 0x3 --burst 64", 0, 0, 2),
            (ring, "--portmap (0,1)", 0, 0, 2),
            (ring, "--portmap (0,0)", 0, 0, 1),
            (ring, "-p 0x1", 0, 0, 1),
            (cable, "-p 0xf", 3, 1, 2),
            (cable, "-p f -q 4", 3, 1, 2),
            (cable, "--portmap (0,3)(1,2)", 3, 1, 1),
            (apart, "-p 0x5", 2, 1, 1),
            (apart, "--portmap (0,2),(1,3)", 2, 1, 1),
        ] {
            for lcores in ["-l 0", "-l 0,1"] {
                if lcores != "-l 0" && (!two_cores || options.contains("-q")) {
                    continue;
                }
                for keep in ["", "--no-mac-updating"] {
                    let line =
                        format!("{lcores} --no-pci {devices} -- {options} -T 0 --exit-on-eof --stats-json S {keep}");
                    let ran = run_line(&line, dir);
                    if keep.is_empty() {
                        assert_eq!(ran.sent.len(), before.len(), "{line}");
                        for (b, a) in before.iter().zip(&ran.sent) {
                            let head = [2, 0, 0, 0, 0, port as u8, 0x02, 0x62, 0x6c, 0, 0, mac];
                            assert_eq!((&a.bytes[..12], &a.bytes[12..]), (&head[..], &b.bytes[12..]), "{line}");
                        }
                    } else {
                        assert!(bytes(&before) == bytes(&ran.sent), "{line}");
                    }
                    ran.books.balance();
                    assert_eq!(ran.books.n(port, "opackets"), 299, "{line}");
                    assert_eq!(ran.books.sum("opackets"), 299 * hops, "{line}: {}", ran.books.0);
                }
            }
        }
    });
}

// ---- odd and hostile captures

/// Replays a capture of the given bytes.
#[track_caller]
fn replay_bytes(file: &[u8], dir: &TempDir) -> Ran {
    std::fs::write(dir.join("odd"), file).unwrap();
    replay(&dir.join("odd"), "--no-mac-updating", dir)
}

#[test]
fn records_above_the_files_snap_length_come_out_and_cut_ones_stay_cut() {
    need!("editcap");
    with_dir(|dir| {
        let whole = frame(1, 1514);
        let mut file = Classic::new(Classic::MICROS, 1500, 1, false);
        file.record(1, 0, &whole, 1514).record(2, 0, &whole[..1500], 9000).record(3, 0, &frame(3, 60), 60);
        let ran = replay_bytes(&file.bytes, dir);
        assert!(bytes(&ran.sent) == [&whole[..], &whole[..1500], &frame(3, 60)]);
        assert_eq!((ran.books.balance().n(0, "ipackets"), ran.books.n(0, "ierrors")), (3, 0));
    });
}

#[test]
fn fractions_above_a_second_and_power_of_two_clocks_are_read() {
    need!("editcap");
    with_dir(|dir| {
        let mut file = Classic::new(Classic::MICROS, 65_535, 1, false);
        for (i, micros) in [0, u32::MAX, u32::MAX / 1000 + 1, 999_999].into_iter().enumerate() {
            file.record(7, micros, &frame(i, 60 + i), 60 + i as u32);
        }
        assert_eq!(replay_bytes(&file.bytes, dir).sent.len(), 4);
        // pcapng: a section, an interface with if_tsresol 2^-20, and three packets.
        let mut ng = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let len = (12 + body.len().next_multiple_of(4)) as u32;
            ng.extend([kind.to_le_bytes(), len.to_le_bytes()].concat());
            ng.extend(body);
            ng.resize(ng.len().next_multiple_of(4), 0);
            ng.extend(len.to_le_bytes());
        };
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
        block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 0x80 | 20, 0, 0, 0, 0, 0, 0, 0]);
        for i in 0..3_u32 {
            let f = frame(i as usize, 61 + i as usize);
            let stamp = (1_700_000_000_u64 << 20) + u64::from(i);
            let head = [0, (stamp >> 32) as u32, stamp as u32, f.len() as u32, f.len() as u32];
            block(6, &[&head.map(u32::to_le_bytes).concat()[..], &f].concat());
        }
        let ran = replay_bytes(&ng, dir);
        assert!(bytes(&ran.sent) == [&frame(0, 61)[..], &frame(1, 62), &frame(2, 63)]);
        ran.books.balance();
    });
}

#[test]
fn a_capture_that_breaks_off_gives_what_is_good_of_it() {
    need!("editcap");
    with_dir(|dir| {
        let file = std::fs::read(demo()).unwrap();
        let before = frames(&demo(), dir);
        // In the last record's bytes, in its header, and after a few good ones.
        for (cut, good) in [(file.len() - 1, 298), (24 + 16 + before[0].bytes.len() + 15, 1), (24 + 3, 0)] {
            let ran = replay_bytes(&file[..cut], dir);
            assert!(bytes(&ran.sent) == bytes(&before[..good]), "cut at {cut}");
            assert_eq!(
                (ran.books.balance().n(0, "ipackets"), ran.books.n(0, "ierrors")),
                (good as u64, 1),
                "cut at {cut}"
            );
            assert!(ran.stderr.contains("odd"), "the file is named: {}", ran.stderr);
        }
        // A record length beyond reason, in the middle.
        let mut bad = file.clone();
        let second = 24 + 16 + before[0].bytes.len();
        bad[second + 8..second + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        let ran = replay_bytes(&bad, dir);
        assert_eq!((ran.sent.len(), ran.books.balance().n(0, "ierrors")), (1, 1));
        // A header alone is an empty capture, not a broken one.
        let ran = replay_bytes(&file[..24], dir);
        assert_eq!((ran.sent.len(), ran.books.balance().n(0, "ierrors")), (0, 0));
    });
}

#[test]
fn frames_of_any_length_come_out_or_are_counted() {
    need!("editcap");
    with_dir(|dir| {
        let mut file = Classic::new(Classic::NANOS, 262_144, 1, false);
        for (i, len) in [1, 11, 12, 13, 14, 59, 1514, 1518, 2048, 9014, 65_535, 262_144].into_iter().enumerate() {
            file.record(1, i as u32, &frame(i, len), len as u32);
        }
        std::fs::write(dir.join("lengths"), &file.bytes).unwrap();
        let before = frames(&dir.join("lengths"), dir);
        let ran = replay(&dir.join("lengths"), "--no-mac-updating", dir);
        assert!(bytes(&before) == bytes(&ran.sent));
        assert_eq!(ran.books.balance().n(0, "ipackets"), 12);
        // With new addresses: what has no room for them goes on as it is.
        let ran = replay(&dir.join("lengths"), "", dir);
        assert_eq!(bytes(&ran.sent[..2]), bytes(&before[..2]));
        only_addresses_changed(&before[2..], &ran.sent[2..], 1);
        ran.books.balance();
    });
}

#[test]
fn what_is_no_ethernet_capture_is_refused_by_name_and_nothing_is_left() {
    with_dir(|dir| {
        let classic = |link| {
            let mut c = Classic::new(Classic::MICROS, 65_535, link, false);
            c.record(1, 0, &frame(1, 60), 60);
            c.bytes
        };
        let section = [0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1];
        let mut odd_magic = classic(1);
        odd_magic[..4].copy_from_slice(&0x85b2_c3d4_u32.to_le_bytes());
        odd_magic[16..20].copy_from_slice(&0xffff_ff00_u32.to_le_bytes());
        for (what, file, says) in [
            ("cooked frames of Linux", classic(113), "113"),
            ("raw IP", classic(101), "101"),
            ("wireless frames", classic(105), "105"),
            ("13 bytes with a block length of 0", section.to_vec(), "BAD"),
            ("a magic nobody knows", odd_magic, "BAD"),
            ("an empty file", Vec::new(), "BAD"),
            ("a text", b"this is no capture at all, only a text of some length".to_vec(), "BAD"),
            ("a header cut short", classic(1)[..23].to_vec(), "BAD"),
        ] {
            std::fs::write(dir.join("BAD"), file).unwrap();
            let line = "-l 0 --no-pci --vdev=net_pcap0,rx_pcap=BAD,tx_pcap=/dev/null --vdev=net_pcap1,tx_pcap=OUT -- -p 0x3 \
                        -T 0 --exit-on-eof --stats-json S";
            let out = l2fwd(line, dir);
            assert_eq!(out.code(), 1, "{what}: {}", out.stderr);
            assert!(out.stderr.contains("BAD") && out.stderr.contains(says), "{what}: {}", out.stderr);
            assert_eq!(entries(dir.path()), ["BAD"], "{what}");
        }
    });
}

#[test]
fn original_timing_keeps_a_gap_and_time_goes_on_over_a_loop() {
    need!("editcap");
    with_dir(|dir| {
        let mut file = Classic::new(Classic::NANOS, 65_535, 1, false);
        file.record(100, 0, &frame(0, 60), 60).record(101, 0, &frame(1, 60), 60);
        std::fs::write(dir.join("gap"), file.bytes).unwrap();
        let line = "-l 0 --no-pci --vdev=net_pcap0,rx_pcap=gap,timing=original,loops=2 --vdev=net_pcap1,tx_pcap=OUT -- -p 0x3 \
                    -T 0 --exit-on-eof --stats-json S";
        let sent = run_line(line, dir).sent;
        let gaps: Vec<f64> = sent.windows(2).map(|w| (w[1].ns - w[0].ns) as f64 / 1e9).collect();
        assert_eq!(gaps.len(), 3);
        // Late is possible where the core is shared, early is not.
        assert!(gaps[0] > 0.95 && gaps[2] > 0.5 && gaps[0] + gaps[1] + gaps[2] > 1.95, "{gaps:?}");
    });
}
