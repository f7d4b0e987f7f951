//! `net_pcap` receives from files, through ports as a program uses them.

mod pcap_common;

use pcap_common::*;
use std::process::Command;
use std::time::{Duration, Instant};

use burstline::driver::Event;
use burstline::mbuf::flags::RX_TIMESTAMP;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::port::{PortConfig, Stats};

fn forward(from: &str, to: &str, bufs: u32) -> (Stats, Stats) {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool(bufs);
    let (a, b) = (port(&format!("rx_pcap={from}"), &pool), port(&format!("tx_pcap={to}"), &pool));
    let (mut rx, mut tx) = (a.rx_queue(0).unwrap().bind(&slot), b.tx_queue(0).unwrap().bind(&slot));
    let mut burst = Burst::<32>::new();
    while !a.take_events().contains(Event::END_OF_INPUT) {
        rx.burst(&mut burst);
        tx.burst(&mut burst);
        assert!(burst.is_empty());
    }
    drop((rx, tx));
    a.close().unwrap();
    b.close().unwrap();
    let s = (a.stats(), b.stats());
    assert_eq!(pool.available(), bufs);
    assert!(pool.free().is_ok());
    s
}

#[test]
fn a_capture_forwarded_to_a_file_is_the_same_frames_in_either_format() {
    let dir = Dir::new();
    let want = records(&demo());
    let bytes: u64 = want.iter().map(|r| r.1.len() as u64).sum();
    for name in ["out.pcap", "out.pcapng"] {
        let out = dir.at(name);
        let (a, b) = forward(&demo(), &out, 256);
        assert_eq!((a.ipackets, a.ibytes, a.ierrors, a.rx_nombuf), (299, bytes, 0, 0));
        assert_eq!((b.opackets, b.obytes, b.oerrors), (299, bytes, 0));
        let got = records(&out);
        assert!(got.iter().map(|r| &r.1).eq(want.iter().map(|r| &r.1)), "{name}");
        assert!(got.is_sorted_by_key(|r| r.0), "stamps never go back");
        // One ring a burst: 299 packets in bursts of 32.
        assert_eq!(b.tx_flush, [10, 0, 0, 0, 0]);
        let tshark = Command::new("tshark")
            .args(["-n", "-r", &out, "-T", "fields", "-e", "frame.len", "-e", "frame.cap_len"])
            .output();
        match tshark {
            Ok(o) if o.status.success() => {
                let lines: String = want.iter().map(|r| format!("{0}\t{0}\n", r.1.len())).collect();
                assert_eq!(String::from_utf8_lossy(&o.stdout), lines);
            }
            _ => {
                assert!(std::env::var("BURSTLINE_REQUIRE_ALL").as_deref() != Ok("1"), "tshark is required");
                println!("skipped: tshark is not installed");
            }
        }
    }
}

#[test]
fn the_stamp_of_a_record_is_in_the_packet_and_tx_ts_keep_writes_it_again() {
    let dir = Dir::new();
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let out = dir.at("keep.pcapng");
    let p = port(&format!("rx_pcap={},tx_pcap={out},tx_ts=keep", demo()), &pool);
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let want = records(&demo());
    let mut burst = Burst::<32>::new();
    let mut i = 0;
    while rx.burst(&mut burst) != 0 {
        for m in burst.iter() {
            assert_eq!((m.flags() & RX_TIMESTAMP, m.raw().timestamp), (RX_TIMESTAMP, want[i].0));
            i += 1;
        }
        tx.burst(&mut burst);
    }
    assert_eq!(i, want.len());
    assert!(records(&out) == want);
}

#[test]
fn a_record_waits_while_the_pool_is_empty_and_none_is_lost() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    write(&file, &frames(100, 60));
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    let p = port(&format!("rx_pcap={file}"), &pool);
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let mut burst = Burst::<32>::new();
    let mut held: Vec<Mbuf> = Vec::new();
    let mut got = Vec::new();
    while got.len() < 100 {
        if rx.burst(&mut burst) == 0 {
            assert!(!held.is_empty());
            held.clear();
        }
        while let Some(m) = burst.pop_front() {
            got.push(m.data().unwrap().to_vec());
            held.push(m);
        }
    }
    assert!(got.iter().eq(frames(100, 60).iter().map(|f| &f.1)));
    assert_eq!((p.stats().ipackets, p.stats().rx_nombuf), (100, 0));
    assert!(p.xstats().iter().any(|(n, v)| n == "rx_nombuf_waits" && *v > 0));
}

#[test]
fn a_record_longer_than_a_room_is_a_chain_with_scatter_and_an_error_without() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    let all: Vec<_> =
        [60, 2048, 2049, 9000, 200_000, 61].iter().enumerate().map(|(i, &n)| (i as u64, frame(i, n))).collect();
    write(&file, &all);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(256));
    let p = port_with(&format!("rx_pcap={file}"), &pool, &PortConfig { scatter: true, ..PortConfig::default() }, 0);
    let got = receive(&mut p.rx_queue(0).unwrap().bind(&slot), 6);
    assert!(got.iter().map(Mbuf::to_vec).eq(all.iter().map(|f| f.1.clone())));
    assert_eq!(got.iter().map(Mbuf::nb_segs).collect::<Vec<_>>(), [1, 1, 2, 5, 98, 1]);
    got.iter().for_each(|m| m.validate().unwrap());
    assert_eq!((p.stats().ierrors, p.stats().ibytes), (0, all.iter().map(|f| f.1.len() as u64).sum()));
    drop(got);
    let p = port(&format!("rx_pcap={file}"), &pool);
    let got = receive(&mut p.rx_queue(0).unwrap().bind(&slot), 6);
    assert_eq!((got.len() as u64, p.stats().ipackets, p.stats().ierrors), (3, 3, 3));
}

#[test]
fn the_end_of_the_last_input_is_said_once_and_sending_goes_on() {
    let dir = Dir::new();
    let (one, two, out) = (dir.at("1.pcap"), dir.at("2.pcapng"), dir.at("o.pcap"));
    write(&one, &frames(3, 60));
    write(&two, &frames(40, 60));
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let config = PortConfig { n_rx: 2, ..PortConfig::default() };
    let p = port_with(&format!("rx_pcap={one},rx_pcap={two},tx_pcap={out}"), &pool, &config, 0);
    let mut a = p.rx_queue(0).unwrap().bind(&slot);
    let mut b = p.rx_queue(1).unwrap().bind(&slot);
    assert_eq!(receive(&mut a, 4).len(), 3);
    assert!(!p.take_events().contains(Event::END_OF_INPUT), "the other input goes on");
    assert_eq!(receive(&mut b, 41).len(), 40);
    assert!(p.take_events().contains(Event::END_OF_INPUT));
    let mut burst = Burst::<32>::new();
    assert_eq!((a.burst(&mut burst), b.burst(&mut burst)), (0, 0));
    assert!(!p.take_events().contains(Event::END_OF_INPUT), "once");
    assert!(p.link().up);
    send(&mut p.tx_queue(0).unwrap().bind(&slot), &pool, &[frame(1, 60)]);
    assert_eq!(records(&out).len(), 1);
    // A port that starts again begins at the beginning, and ends again.
    p.stop().unwrap();
    p.start().unwrap();
    assert_eq!((receive(&mut a, 4).len(), receive(&mut b, 41).len()), (3, 40));
    assert!(p.take_events().contains(Event::END_OF_INPUT));
    assert_eq!(p.stats().ipackets, 86);
    p.close().unwrap();
    assert_eq!(records(&out).len(), 1, "the file that was sent to goes on after a stop");
}

#[test]
fn a_cut_or_corrupt_file_gives_its_good_records_and_one_error() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    write(&file, &frames(5, 60));
    let whole = std::fs::read(&file).unwrap();
    let slot = ThreadSlot::register().unwrap();
    let mut corrupt = whole.clone();
    corrupt[24 + 3 * 76 + 8..][..4].fill(0xff);
    for (bytes, good) in [(whole[..whole.len() - 1].to_vec(), 4), (corrupt, 3)] {
        std::fs::write(&file, bytes).unwrap();
        let pool = pool(64);
        for keys in ["", ",loops=3"] {
            let p = port(&format!("rx_pcap={file}{keys}"), &pool);
            assert_eq!(receive(&mut p.rx_queue(0).unwrap().bind(&slot), 6).len(), good);
            assert_eq!((p.stats().ipackets, p.stats().ierrors), (good as u64, 1));
            assert!(p.take_events().contains(Event::END_OF_INPUT));
        }
        // Held in memory, what is good is played for ever.
        let p = port(&format!("rx_pcap={file},infinite_rx=1"), &pool);
        assert_eq!(receive(&mut p.rx_queue(0).unwrap().bind(&slot), 20).len() / 20, 1);
        assert_eq!(p.stats().ierrors, 1);
    }
}

#[test]
fn infinite_rx_plays_the_file_again_and_again_and_time_rises() {
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(512));
    let want = records(&demo());
    let p = port(&format!("rx_pcap={},infinite_rx=1", demo()), &pool);
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let (mut burst, mut i, mut last) = (Burst::<32>::new(), 0, 0);
    while i < 3000 {
        assert_eq!(rx.burst(&mut burst), 32);
        while let Some(m) = burst.pop_front() {
            assert!(m.data().unwrap() == want[i % want.len()].1);
            assert!(m.raw().timestamp >= last);
            last = m.raw().timestamp;
            i += 1;
        }
    }
    assert!(!p.take_events().contains(Event::END_OF_INPUT));
    drop(burst);
    drop(rx);
    p.close().unwrap();
    assert!(pool.free().is_ok());
    // Nothing to play.
    let dir = Dir::new();
    let empty = dir.at("empty.pcap");
    write(&empty, &[]);
    let e = refused(&format!("rx_pcap={empty},infinite_rx=1"));
    assert!(e.text().contains("no records"), "{e}");
}

#[test]
fn loops_plays_a_file_so_many_times_with_rising_time() {
    let dir = Dir::new();
    let file = dir.at("in.pcapng");
    write(&file, &frames(10, 60));
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    let p = port(&format!("rx_pcap={file},loops=3"), &pool);
    let got = receive(&mut p.rx_queue(0).unwrap().bind(&slot), 31);
    assert_eq!(got.len(), 30);
    assert!(got.is_sorted_by_key(|m| m.raw().timestamp));
    assert!(p.take_events().contains(Event::END_OF_INPUT));
    // A file without records ends at once, however often it is asked for.
    write(&file, &[]);
    let p = port(&format!("rx_pcap={file},loops=0"), &pool);
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    assert_eq!(rx.burst(&mut Burst::<32>::new()), 0);
    assert!(p.take_events().contains(Event::END_OF_INPUT));
}

#[test]
fn original_timing_keeps_a_gap_in_every_loop_and_a_burst_never_sleeps() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    write(&file, &[(0, frame(0, 60)), (1_000_000_000, frame(1, 60))]);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    for (keys, gap) in [("loops=2", 1.0), ("infinite_rx=1,speed=10", 0.1)] {
        let p = port(&format!("rx_pcap={file},timing=original,{keys}"), &pool);
        let mut rx = p.rx_queue(0).unwrap().bind(&slot);
        let (mut burst, mut at) = (Burst::<32>::new(), Vec::new());
        let start = Instant::now();
        while at.len() < 4 {
            let t = Instant::now();
            let n = rx.burst(&mut burst);
            assert!(t.elapsed() < Duration::from_millis(90), "a burst waited");
            at.extend((0..n).map(|_| start.elapsed().as_secs_f64() / gap));
            burst.clear();
            std::thread::sleep(Duration::from_micros(200));
        }
        for (at, want) in at.iter().zip([0.0, 1.0, 1.0, 2.0]) {
            assert!((want - 0.001..want + 0.5).contains(at), "{keys}: {at:?} {want}");
        }
    }
}

#[test]
fn a_rate_is_packets_or_bits_per_second() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    write(&file, &frames(200, 125));
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(512));
    // 200 packets of 1000 bits.
    for timing in ["1000pps", "1M"] {
        let p = port(&format!("rx_pcap={file},timing={timing}"), &pool);
        let mut rx = p.rx_queue(0).unwrap().bind(&slot);
        let start = Instant::now();
        assert_eq!(receive(&mut rx, 200).len(), 200);
        let t = start.elapsed().as_secs_f64();
        assert!((0.199..0.6).contains(&t), "{timing}: {t}");
    }
}
