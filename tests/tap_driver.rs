//! `net_tap` against this machine's kernel, each test in namespaces of its own. Needs root and /dev/net/tun.

mod support;
mod tap_common;

use burstline::driver::Event;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::port::PortConfig;
use std::time::Duration;
use support::need;
use support::netns::NetNs;
use support::run::wait_until;
use tap_common::*;

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn two_taps_moved_to_namespaces_after_start_carry_a_ping() {
    needs_tap!("ping");
    let (here, a, b) = (NetNs::new("bl-tap-m"), NetNs::new("bl-tap-a"), NetNs::new("bl-tap-b"));
    let pool = pool(1024);
    let pa = start(&here, "iface=pa0", &pool, &PortConfig::default());
    let pb = start(&here, "iface=pb0", &pool, &PortConfig::default());
    assert!(wait_until(LIMIT, || pa.link().up && pb.link().up));
    for (name, to, addr) in [("pa0", &a, "10.9.0.1/24"), ("pb0", &b, "10.9.0.2/24")] {
        here.ip(&["link", "set", name, "netns", to.name()]);
        to.addr(name, addr);
        to.up(name);
    }
    let bridge = Bridge::spawn(&pa, &pb);
    a.run(&["ping", "-c", "3", "-i", "0.2", "-W", "5", "10.9.0.2"]).expect_ok();
    a.run(&["ping", "-c", "1", "-s", "1400", "-W", "5", "10.9.0.2"]).expect_ok();
    bridge.stop();
    for (p, name, ns) in [(&pa, "pa0", &a), (&pb, "pb0", &b)] {
        assert!(p.stats().ipackets >= 5 && p.stats().opackets >= 5, "{:?}", p.stats());
        assert!(ns.ip(&["link", "show", name]).stdout.contains(",UP"));
        p.stop().unwrap();
        assert!(!ns.ip(&["link", "show", name]).stdout.contains(",UP"), "stop reaches the interface where it is");
        p.close().unwrap();
        assert!(vanishes(ns, name), "close takes the interface away");
    }
    assert_eq!(pool.available(), 1024);
    assert!(pool.free().is_ok());
}

#[test]
fn a_vlan_tag_stays_in_the_frame_both_ways() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-vlan");
    let pool = pool(256);
    let p = start(&ns, "iface=vl0", &pool, &PortConfig::default());
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    for tag in [&[0x81, 0, 0x60, 0x64][..], &[0x88, 0xa8, 0, 5], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], &[]] {
        let f = frame(100, tag);
        s.send(&f);
        assert_eq!(receive(&mut rx), f);
        assert_eq!(send(&mut tx, &pool, &f), 1);
        assert_eq!(s.next(), f);
    }
    let st = p.stats();
    assert_eq!((st.ipackets, st.ibytes, st.opackets, st.obytes), (4, 400, 4, 400));
}

#[test]
fn frames_of_mtu_9000_come_and_go_as_chains() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-jumbo");
    let pool = pool(256);
    let scatter = PortConfig { mtu: Some(9000), scatter: true, ..PortConfig::default() };
    let p = start(&ns, "iface=ju0", &pool, &scatter);
    assert_eq!((p.mtu(), ns.stat("ju0", "tx_dropped")), (9000, 0));
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let room = data_room(&pool);
    let tag = [0x81, 0, 0, 9];
    // Around the edges of a room, and the longest with one tag.
    for len in [60, room - 1, room, room + 1, 2 * room, 9014, 9018] {
        let f = frame(len, if len == 9018 { &tag } else { &[] });
        s.send(&f);
        let m = receive_packet(&mut rx);
        assert_eq!((m.to_vec(), usize::from(m.nb_segs())), (f.clone(), len.div_ceil(room)));
        m.validate().unwrap();
        let mut b = Burst::<4>::new();
        assert!(b.push(m).is_ok());
        assert_eq!(tx.burst(&mut b), 1);
        assert_eq!(s.next(), f, "{len}");
    }
    // Longer, once the MTU is set by the port while it runs.
    p.set_mtu(20_000).unwrap();
    let f = frame(20_014, &[]);
    s.send(&f);
    assert_eq!(receive(&mut rx), f);
    let e = p.set_mtu(65_522).unwrap_err();
    assert!(e.text().contains("65521"), "{e}");
    assert_eq!((p.stats().ierrors, p.stats().oerrors, p.stats().rx_nombuf), (0, 0, 0));
    p.close().unwrap();
    drop((rx, tx));
    assert_eq!(pool.available(), 256);
}

#[test]
fn a_frame_longer_than_the_room_is_dropped_and_counted_when_the_mtu_is_raised_from_outside() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-t4");
    for scatter in [false, true] {
        let pool = pool(256);
        let p = start(&ns, "iface=ra0", &pool, &PortConfig { scatter, ..PortConfig::default() });
        let s = Peer::new(&ns, &p);
        ns.mtu("ra0", 9000);
        let slot = ThreadSlot::register().unwrap();
        let mut rx = p.rx_queue(0).unwrap().bind(&slot);
        let room = data_room(&pool);
        let (long, short) = (frame(9014, &[]), frame(60, &[]));
        for len in [room + 1, 9014] {
            s.send(&long[..len]);
            s.send(&short);
            assert_eq!(receive(&mut rx), short);
        }
        let whole = frame(room, &[]);
        s.send(&whole);
        assert_eq!(receive(&mut rx), whole, "what fills the room to the last byte is whole");
        let st = p.stats();
        assert_eq!((st.ipackets, st.ierrors), (3, 2), "scatter {scatter}");
        assert_eq!(p.mtu(), 9000);
        p.close().unwrap();
        drop(rx);
        assert_eq!(pool.available(), 256);
    }
}

#[test]
fn an_interface_that_was_down_sends_again_when_it_is_up() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-t6");
    let pool = pool(256);
    let p = start(&ns, "iface=dn0", &pool, &PortConfig::default());
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let f = frame(60, &[]);
    assert_eq!(send(&mut tx, &pool, &f), 1);
    assert!(wait_until(LIMIT, || p.link().up));
    p.take_events();
    ns.down("dn0");
    assert!(!p.link().up);
    assert_eq!(p.take_events(), Event::LINK);
    // A packet ten times a second: each is taken, freed and counted.
    let lasts = if std::env::var_os("BURSTLINE_SOAK").is_some_and(|v| v == "1") { 70 } else { 10 };
    for _ in 0..lasts {
        assert_eq!(send(&mut tx, &pool, &f), 1);
        assert_eq!(rx.burst(&mut Burst::<4>::new()), 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!((p.stats().opackets, p.stats().oerrors), (1, lasts));
    ns.up("dn0");
    assert_eq!(send(&mut tx, &pool, &f), 1, "the first packet after it is up");
    assert_eq!((p.stats().opackets, p.stats().oerrors, ns.stat("dn0", "rx_packets")), (2, lasts, 2));
    let s = Peer::new(&ns, &p);
    s.send(&f);
    assert_eq!(receive(&mut rx), f);
    assert!(wait_until(LIMIT, || p.take_events().contains(Event::LINK)));
}

#[test]
fn unsendable_packets_in_mid_burst_are_counted_and_the_others_go_out() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-t2");
    let pool = pool(256);
    let p = start(&ns, "iface=mb0", &pool, &PortConfig::default());
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let mut b = Burst::<32>::new();
    for i in 0..20usize {
        // Every third one is shorter than an Ethernet header, the last is empty.
        let len = if i == 19 {
            0
        } else if i % 3 == 1 {
            13
        } else {
            60 + i
        };
        assert!(b.push(Mbuf::alloc_with(&pool, &frame(60 + i, &[])[..len]).unwrap()).is_ok());
    }
    assert_eq!(tx.burst(&mut b), 20);
    let good: Vec<usize> = (0..19).filter(|i| i % 3 != 1).collect();
    for i in &good {
        assert_eq!(s.next(), frame(60 + i, &[]));
    }
    let st = p.stats();
    assert_eq!((st.opackets, st.oerrors), (good.len() as u64, 20 - good.len() as u64));
    assert_eq!(st.obytes, good.iter().map(|i| 60 + *i as u64).sum::<u64>());
    assert_eq!(pool.available(), 256, "each packet is back once");
    // A chain of more segments than one write takes.
    let mut long = Mbuf::alloc_with(&pool, &frame(60, &[])).unwrap();
    for _ in 0..127 {
        assert!(long.chain(Mbuf::alloc_with(&pool, &[7]).unwrap()).is_ok());
    }
    assert!(b.push(long).is_ok());
    assert_eq!(tx.burst(&mut b), 1);
    assert_eq!(s.next()[60..], [7; 127]);
    let mut long = Mbuf::alloc_with(&pool, &frame(60, &[])).unwrap();
    for _ in 0..128 {
        assert!(long.chain(Mbuf::alloc_with(&pool, &[7]).unwrap()).is_ok());
    }
    assert!(b.push(long).is_ok());
    assert_eq!((tx.burst(&mut b), p.stats().oerrors), (1, st.oerrors + 1));
    assert_eq!(pool.available(), 256);
}

#[test]
fn packets_sent_before_a_close_are_all_with_the_kernel() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-t8");
    let pool = pool(256);
    let before = attach(&ns, "iface=cl0,persist=1");
    before.close().unwrap();
    assert!(ns.has_link("cl0"), "persist");
    ns.no_ipv6("cl0");
    let p = start(&ns, "iface=cl0", &pool, &PortConfig::default());
    let slot = ThreadSlot::register().unwrap();
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let f = frame(60, &[]);
    for _ in 0..179 {
        assert_eq!(send(&mut tx, &pool, &f), 1);
    }
    p.close().unwrap();
    assert_eq!((p.stats().opackets, ns.stat("cl0", "rx_packets")), (179, 179));
    drop(tx);
    let last = attach(&ns, "iface=cl0,persist=0");
    last.close().unwrap();
    assert!(vanishes(&ns, "cl0"));
}

#[test]
fn what_was_offered_is_what_was_received_and_what_was_dropped() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-full");
    let pool = pool(4096);
    let p = start(&ns, "iface=fu0", &pool, &PortConfig::default());
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let f = frame(60, &[]);
    let offered = |ns: &NetNs| ns.stat("fu0", "tx_packets") + ns.stat("fu0", "tx_dropped");
    for _ in 0..3000 {
        s.try_send(&f);
    }
    let mut got = drain(&mut rx);
    let st = p.stats();
    assert!(st.imissed >= 1000 && got >= 500, "{st:?}");
    assert_eq!((got, st.ipackets, st.ipackets + st.imissed, offered(&ns)), (st.ipackets, got, 3000, 3000));
    // A reset keeps a baseline; the kernel's counter stays.
    p.stats_reset();
    assert_eq!((p.stats().imissed, p.stats().ipackets), (0, 0));
    // What the kernel still holds at stop is read and counted as missed.
    for _ in 0..10 {
        s.send(&f);
    }
    got = rx.burst(&mut Burst::<4>::new()) as u64;
    assert_eq!(got, 4);
    p.stop().unwrap();
    assert_eq!((p.stats().ipackets, p.stats().imissed, offered(&ns)), (4, 6, 3010));
    p.start().unwrap();
    assert_eq!(drain(&mut rx), 0, "nothing old turns up");
    s.send(&f);
    assert_eq!(receive(&mut rx), f);
    p.close().unwrap();
    assert_eq!((p.stats().ipackets, p.stats().imissed), (5, 6), "also after close");
}

#[test]
fn an_empty_pool_leaves_the_frames_in_the_kernel() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-nombuf");
    let pool = pool_with_cache(64, 0);
    let p = start(&ns, "iface=nb0", &pool, &PortConfig::default());
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let f = frame(60, &[]);
    for _ in 0..100 {
        s.send(&f);
    }
    let mut all = Burst::<128>::new();
    let n = rx.burst(&mut all);
    assert_eq!((n, rx.burst(&mut all), pool.available()), (64, 0, 0));
    drop(all);
    let mut all = Burst::<128>::new();
    assert!(wait_until(LIMIT, || rx.burst(&mut all) == 0 && all.len() == 36));
    let waits = p.xstats().into_iter().find(|(n, _)| n == "rx_nombuf_waits").unwrap().1;
    assert!(waits >= 2);
    assert_eq!((p.stats().ipackets, p.stats().rx_nombuf, p.stats().imissed), (100, 0, 0));
}

#[test]
fn flows_spread_over_the_receive_queues_and_a_send_queue_alone_gets_none() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-mq");
    let pool = pool(4096);
    let p = start(&ns, "iface=mq0", &pool, &PortConfig { n_rx: 3, n_tx: 5, ..PortConfig::default() });
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut rx: Vec<_> = (0..3).map(|q| p.rx_queue(q).unwrap().bind(&slot)).collect();
    for port in 0..300u16 {
        s.send(&udp_frame(port + 1000));
    }
    let got: Vec<u64> = rx.iter_mut().map(drain).collect();
    assert!(got.iter().all(|n| *n >= 20), "{got:?}");
    assert_eq!(got.iter().sum::<u64>(), 300);
    let q = (0..3).map(|q| p.rx_queue_stats(q).unwrap().ipackets);
    assert_eq!(q.collect::<Vec<_>>(), got);
    let f = frame(60, &[]);
    for q in 0..5 {
        let mut tx = p.tx_queue(q).unwrap().bind(&slot);
        assert_eq!(send(&mut tx, &pool, &f), 1);
        assert_eq!(s.next(), f, "queue {q}");
    }
    assert!(p.configure(&PortConfig { n_rx: 17, ..PortConfig::default() }).is_err());
    // Fewer queues, then more, of the same interface.
    drop(rx);
    p.stop().unwrap();
    for n in [1, 16, 2] {
        p.configure(&PortConfig { n_rx: n, n_tx: 1, ..PortConfig::default() }).unwrap();
        setup(&p, &pool, n, 1);
        p.start().unwrap();
        let mut rx: Vec<_> = (0..n).map(|q| p.rx_queue(q).unwrap().bind(&slot)).collect();
        (0..100).for_each(|port| s.send(&udp_frame(port)));
        assert_eq!(rx.iter_mut().map(drain).sum::<u64>(), 100);
        drop(rx);
        p.stop().unwrap();
    }
    assert_eq!((p.stats().ipackets, p.stats().imissed), (600, 0));
}
