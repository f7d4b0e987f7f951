//! Each packet is counted in exactly one place.

use crate::bench::*;
use crate::rigs::{Ask, each};
use burstline::port::{Port, Stats};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

fn drops(s: &Stats) -> u64 {
    s.imissed + s.ierrors + s.rx_nombuf
}

#[test]
fn offered_is_received_plus_dropped() {
    each(|rig| {
        let mut b = Bench::started(rig, &Ask { offer: 500, ..Ask::default() });
        let got = b.receive(500, 32).len() as u64;
        let s = b.port.stats();
        assert_eq!((s.ipackets, s.ibytes), (got, got * 64), "bytes without FCS");
        if let Some(offered) = b.far.offered() {
            assert_eq!(offered, s.ipackets + drops(&s));
        }
        b.end();
    });
}

#[test]
fn a_packet_too_long_for_its_room_is_counted_once_where_no_scatter_was_asked_for() {
    each(|rig| {
        let ask = Ask { offer: 10, len: 3000, ..Ask::default() };
        let (port, mut far) = rig.open(&ask);
        let p = pool(1024);
        let c = burstline::port::PortConfig::default();
        port.configure(&c).unwrap();
        // A driver that knows beforehand says so at set-up, with the value and the limit.
        if let Err(e) = port.rx_queue_setup(0, 0, &p) {
            assert!(e.text().contains("3000") && e.text().contains("2048"), "{e}");
            port.close().unwrap();
            return;
        }
        port.tx_queue_setup(0, 0).unwrap();
        port.start().unwrap();
        far.offer();
        crate::support::run::wait_until(ARRIVES, || {
            assert!(rx(port.id(), 0, 32).is_empty());
            drops(&port.stats()) == 10
        });
        let s = port.stats();
        assert_eq!((s.ipackets, drops(&s)), (0, 10), "{s:?}");
        port.close().unwrap();
        assert_eq!(drops(&port.stats()), 10);
    });
}

#[test]
fn queues_add_up_to_their_port() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { n_rx: 4, n_tx: 4, offer: 100, ..Ask::default() });
        let i = b.port.info();
        for q in 0..i.n_tx {
            let mut pkts = packets(&b.pool, 10 + usize::from(q), 64 + usize::from(q));
            while !pkts.is_empty() {
                tx(b.id(), q, &mut pkts);
            }
        }
        for _ in 0..10 {
            (0..i.n_rx).for_each(|q| drop(rx(b.id(), q, 16)));
        }
        let (mut sum, port) = (Stats::default(), b.port.stats());
        for q in 0..i.n_rx {
            let s = b.port.rx_queue_stats(q).unwrap();
            sum.ipackets += s.ipackets;
            sum.ibytes += s.ibytes;
            sum.rx_nombuf += s.rx_nombuf;
        }
        for q in 0..i.n_tx {
            let s = b.port.tx_queue_stats(q).unwrap();
            assert_eq!(s.opackets, 10 + u64::from(q));
            sum.opackets += s.opackets;
            sum.obytes += s.obytes;
            (0..5).for_each(|c| sum.tx_flush[c] += s.tx_flush[c]);
        }
        assert_eq!(
            (sum.ipackets, sum.ibytes, sum.rx_nombuf, sum.opackets, sum.obytes, sum.tx_flush),
            (port.ipackets, port.ibytes, port.rx_nombuf, port.opackets, port.obytes, port.tx_flush)
        );
        let x = b.port.xstats();
        let named = |n: &str| x.iter().find(|(k, _)| k == n).unwrap_or_else(|| panic!("{n}")).1;
        assert_eq!(named("opackets"), (0..i.n_tx).map(|q| named(&format!("tx_q{q}_opackets"))).sum::<u64>());
        b.end();
    });
}

#[test]
fn names_of_counters_are_unique() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { n_rx: 2, n_tx: 2, ..Ask::default() });
        let mut names: Vec<String> = b.port.xstats().into_iter().map(|(n, _)| n).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        for n in ["rx_nombuf_waits", "tx_undrained", "tx_longest_wait_ns", "tx_flush_burst", "tx_flush_explicit"] {
            assert!(names.iter().any(|k| k == n), "{n}");
        }
        b.end();
    });
}

#[test]
fn reset_counts_from_a_baseline_and_disturbs_no_writer() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 20, ..Ask::default() });
        assert_eq!(b.receive(10, 10).len(), 10);
        let mut pkts = packets(&b.pool, 7, 64);
        b.send(&mut pkts);
        b.port.stats_reset();
        assert_eq!(b.port.stats(), Stats::default());
        let per_queue = b.port.tx_queue_stats(0).unwrap();
        assert_eq!(per_queue.opackets, 7, "a queue counts on since its set-up");
        let mut pkts = packets(&b.pool, 3, 64);
        b.send(&mut pkts);
        assert_eq!(b.receive(10, 10).len(), 10);
        let s = b.port.stats();
        assert_eq!((s.opackets, s.obytes, s.ipackets), (3, 192, 10));
        let s = b.end();
        assert_eq!((s.opackets, s.ipackets), (3, 10));
    });
}

#[test]
fn counters_go_on_over_stop_reconfigure_and_close() {
    each(|rig| {
        let b = Bench::plain(rig);
        b.send(&mut packets(&b.pool, 5, 64));
        b.port.stop().unwrap();
        assert_eq!(b.port.stats().opackets, 5);
        set_up(&b.port, &Ask { n_tx: 2, ..Ask::default() }, &b.pool);
        assert_eq!(b.port.stats().opackets, 5, "queues that are gone stay counted");
        b.port.start().unwrap();
        b.send(&mut packets(&b.pool, 5, 64));
        b.port.close().unwrap();
        assert_eq!(b.port.stats().opackets, 10);
        b.port.stats_reset();
        assert_eq!(b.port.stats().opackets, 0);
        b.end_closed();
    });
}

fn watch(p: &Port, stop: &AtomicBool, looks: &AtomicU64) {
    let mut before = Stats::default();
    while !stop.load(Relaxed) {
        let s = p.stats();
        let pairs = [(before.ipackets, s.ipackets), (before.opackets, s.opackets), (before.obytes, s.obytes)];
        assert!(pairs.iter().all(|(a, b)| a <= b), "a counter fell: {before:?} then {s:?}");
        before = s;
        looks.fetch_add(1, Relaxed);
        std::thread::yield_now();
    }
}

#[test]
fn counters_are_read_while_traffic_runs_and_never_fall() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 400, ..Ask::default() });
        let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|s| {
            s.spawn(|| watch(&b.port, &stop, &looks));
            for i in 0.. {
                if i >= 200 && looks.load(Relaxed) >= 20 {
                    break;
                }
                let mut v = rx(b.id(), 0, 32);
                v.extend(packets(&b.pool, 8, 64));
                tx(b.id(), 0, &mut v);
                std::thread::yield_now();
            }
            stop.store(true, Relaxed);
        });
        b.end();
    });
}

#[test]
fn what_stop_could_not_complete_is_returned_and_counted() {
    let mut b = Bench::plain(&crate::rigs::RefRig);
    b.far.credit(3);
    assert_eq!(b.send(&mut packets(&b.pool, 10, 64)), 10);
    let start = std::time::Instant::now();
    assert_eq!(b.port.stop().unwrap(), 7);
    assert!(start.elapsed() < 3 * burstline::port::STOP_LIMIT, "no wait is unbounded");
    let x = b.port.xstats();
    assert_eq!(x.iter().find(|(n, _)| n == "tx_undrained").unwrap().1, 7);
    assert_eq!(b.port.stats().opackets, 10, "sent is when the device was told, and never falls");
    assert_eq!(b.far.sent().unwrap().len(), 3);
    b.end();
}

/// The list of promises and the tests of this suite name each other.
#[test]
fn every_promise_names_its_test_and_every_test_its_promise() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let doc = std::fs::read_to_string(root.join("docs/contracts.md")).unwrap();
    let mut named: Vec<&str> = doc
        .split('`')
        .filter(|w| w.contains('_') && w.len() >= 20 && w.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()))
        .collect();
    let mut tests = Vec::new();
    for f in std::fs::read_dir(root.join("tests/conformance")).unwrap() {
        let text = std::fs::read_to_string(f.unwrap().path()).unwrap();
        let mut lines = text.lines();
        while let Some(l) = lines.next() {
            if l.trim() == "#[test]"
                && let Some(name) = lines.next().and_then(|l| l.strip_prefix("fn "))
            {
                tests.push(name.split('(').next().unwrap().to_string());
            }
        }
    }
    tests.retain(|t| {
        t != "every_promise_names_its_test_and_every_test_its_promise" && t != "every_driver_in_the_table_has_a_rig"
    });
    tests.sort();
    named.sort();
    named.dedup();
    assert_eq!(named, tests);
}
