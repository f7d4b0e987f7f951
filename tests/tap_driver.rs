//! `net_tap` against this machine's kernel, each test in namespaces of its own. Needs root and /dev/net/tun.

mod support;
mod tap_common;

use burstline::base::Errno;
use burstline::driver::{DevArgs, Event};
use burstline::mbuf::{Burst, Mbuf};
use burstline::pmd::tap::DRIVER;
use burstline::pool::slot::ThreadSlot;
use burstline::port::{Port, PortConfig};
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
fn an_mtu_that_the_rooms_cannot_hold_is_refused_with_the_numbers() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-room");
    let pool = pool(256);
    let p = attach(&ns, "iface=rm0,mtu=9000");
    p.configure(&PortConfig::default()).unwrap();
    let e = p.rx_queue_setup(0, 0, &pool).unwrap_err();
    let room = data_room(&pool).to_string();
    assert!(["9000", "9022", &room, "scatter"].iter().all(|w| e.text().contains(w)), "{e}");
    p.configure(&PortConfig { mtu: Some(1500), ..PortConfig::default() }).unwrap();
    p.rx_queue_setup(0, 0, &pool).unwrap();
    assert!(p.set_mtu(9000).unwrap_err().text().contains("scatter"));
    p.set_mtu(1400).unwrap();
    assert_eq!(p.mtu(), 1400);
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

#[test]
fn a_port_stops_and_starts_twenty_times() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-ss");
    let pool = pool(256);
    let p = start(&ns, "iface=ss0", &pool, &PortConfig::default());
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let f = frame(60, &[]);
    let s = Peer::new(&ns, &p);
    for round in 0..20 {
        s.send(&f);
        assert_eq!(receive(&mut rx), f, "round {round}");
        assert_eq!(send(&mut tx, &pool, &f), 1);
        assert_eq!(s.next(), f);
        p.stop().unwrap();
        assert!(!p.link().up);
        assert_eq!(pool.available(), 256, "a stopped port holds nothing");
        let mut b = Burst::<4>::new();
        assert!(b.push(Mbuf::alloc_with(&pool, &f).unwrap()).is_ok());
        assert_eq!((tx.burst(&mut b), b.len()), (0, 1));
        p.start().unwrap();
    }
    let st = p.stats();
    assert_eq!((st.ipackets, st.opackets, st.imissed, st.oerrors), (20, 20, 0, 0));
}

#[test]
fn a_renamed_and_moved_interface_is_still_controlled() {
    needs_tap!();
    let (ns, other) = (NetNs::new("bl-tap-r1"), NetNs::new("bl-tap-r2"));
    let pool = pool(256);
    let p = start(&ns, "iface=mv0,mac=fixed,mtu=1400", &pool, &PortConfig::default());
    assert_eq!((&p.mac()[..5], p.mtu()), (&[0, 0x64, 0x74, 0x61, 0x70][..], 1400));
    // A namesake in the old place, the old name in the new place.
    ns.ip(&["link", "set", "mv0", "down"]);
    ns.ip(&["link", "set", "mv0", "name", "mv9"]);
    ns.ip(&["link", "set", "mv9", "netns", other.name()]);
    for (n, name) in [(&ns, "mv9"), (&other, "mv0")] {
        n.ip(&["link", "add", name, "type", "veth", "peer", "name", "peer0"]);
    }
    other.up("mv9");
    p.set_mtu(1300).unwrap();
    p.set_mac([2, 9, 9, 9, 9, 9]).unwrap();
    p.set_promiscuous(true).unwrap();
    assert_eq!((p.mtu(), p.mac(), p.promiscuous()), (1300, [2, 9, 9, 9, 9, 9], true));
    assert_eq!(p.info().device.if_name.as_deref(), Some("mv9"));
    let show = other.ip(&["link", "show", "mv9"]).stdout;
    assert!(show.contains("mtu 1300") && show.contains("02:09:09:09:09:09") && show.contains("PROMISC"), "{show}");
    assert!(ns.ip(&["link", "show", "mv9"]).stdout.contains("mtu 1500"), "the namesake is untouched");
    let s = Peer::new(&other, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    s.send(&frame(60, &[]));
    assert_eq!(receive(&mut rx), frame(60, &[]));
    drop(rx);
    // More queues where it is now, with a namesake where it was.
    p.stop().unwrap();
    p.configure(&PortConfig { n_rx: 4, n_tx: 4, ..PortConfig::default() }).unwrap();
    setup(&p, &pool, 4, 4);
    p.start().unwrap();
    assert!(other.ip(&["-d", "link", "show", "mv9"]).stdout.contains("numqueues"));
    p.close().unwrap();
    assert!(vanishes(&other, "mv9") && ns.has_link("mv9") && other.has_link("mv0"));
}

#[test]
fn a_deleted_interface_is_said_once_and_bursts_stay_safe() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-del");
    let pool = pool(256);
    let p = start(&ns, "iface=de0", &pool, &PortConfig::default());
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    assert!(wait_until(LIMIT, || p.link().up));
    p.take_events();
    ns.ip(&["link", "del", "de0"]);
    for _ in 0..3 {
        assert_eq!(rx.burst(&mut Burst::<4>::new()), 0);
        assert_eq!(send(&mut tx, &pool, &frame(60, &[])), 1);
    }
    assert_eq!(p.take_events(), Event::REMOVED | Event::LINK);
    assert_eq!(p.take_events(), Event::empty());
    assert!(!p.link().up);
    assert_eq!((p.stats().oerrors, p.mtu(), p.info().device.if_name), (3, 1500, None));
    assert!(p.set_mtu(1400).is_err() && p.set_link(true).is_err());
    p.stop().unwrap();
    assert!(p.start().is_err());
    p.close().unwrap();
    assert_eq!(pool.available(), 256);
}

#[test]
fn the_carrier_is_the_link() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-link");
    let pool = pool(256);
    let p = start(&ns, "iface=li0,carrier=0", &pool, &PortConfig::default());
    // The kernel takes up to a second to show a carrier that changed while the interface was down.
    assert!(wait_until(LIMIT, || !p.link().up));
    p.set_link(true).unwrap();
    assert!(wait_until(LIMIT, || p.link().up));
    p.stop().unwrap();
    // Also while no queue is attached.
    p.set_link(false).unwrap();
    p.set_link(true).unwrap();
    p.start().unwrap();
    assert!(wait_until(LIMIT, || p.link().up));
    p.set_link(false).unwrap();
    assert!(wait_until(LIMIT, || !p.link().up));
}

#[test]
fn a_descriptor_is_readable_when_a_frame_waits() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-fd");
    let pool = pool(256);
    let p = start(&ns, "iface=fd0", &pool, &PortConfig { n_rx: 1, n_tx: 2, ..PortConfig::default() });
    let s = Peer::new(&ns, &p);
    let slot = ThreadSlot::register().unwrap();
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let fd = p.rx_fd(0).unwrap();
    assert!(!readable(fd, 0));
    s.send(&frame(60, &[]));
    assert!(readable(fd, 5000));
    receive(&mut rx);
    assert!(!readable(fd, 0));
    assert_eq!(p.rx_fd(1).unwrap_err().errno(), Errno::NOTSUP);
}

#[test]
fn ready_made_descriptors_with_an_index_above_65535_make_a_port() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-hi");
    let pool = pool(256);
    let fds = open_with_index(&ns, "hi0", 70_000, 2);
    let text = fds.iter().map(|f| raw(f).to_string()).collect::<Vec<_>>().join(":");
    let p = start(&ns, &format!("fds={text}"), &pool, &PortConfig { n_rx: 2, n_tx: 2, ..PortConfig::default() });
    assert_eq!((p.info().device.max_rx_queues, p.info().device.if_name.as_deref()), (2, Some("hi0")));
    let s = Peer::new(&ns, &p);
    assert_eq!(s.ifindex(), 70_000);
    let slot = ThreadSlot::register().unwrap();
    let mut rx: Vec<_> = (0..2).map(|q| p.rx_queue(q).unwrap().bind(&slot)).collect();
    let mut tx = p.tx_queue(1).unwrap().bind(&slot);
    (0..50).for_each(|port| s.send(&udp_frame(port)));
    assert_eq!(rx.iter_mut().map(drain).sum::<u64>(), 50);
    assert_eq!(send(&mut tx, &pool, &frame(60, &[])), 1);
    assert_eq!(s.next(), frame(60, &[]));
    p.set_mtu(1300).unwrap();
    assert_eq!((p.mtu(), p.stats().imissed), (1300, 0));
    p.close().unwrap();
    assert!(ns.has_link("hi0"), "the helper's descriptors are still open");
    drop(fds);
    assert!(vanishes(&ns, "hi0"));
}

#[test]
fn bad_arguments_are_refused_with_value_and_limit() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-args");
    let bad = |args: &str, words: &[&str]| {
        let e = in_ns(&ns, || (DRIVER.probe)(&DevArgs::parse(&format!("net_tap0,{args}"))?).map(|_| ())).unwrap_err();
        assert!(words.iter().all(|w| e.text().contains(w)), "{args}: {e}");
    };
    bad("remote=eth0", &["remote", "iface", "fds"]);
    bad("iface=a/b", &["a/b"]);
    bad("iface=%d%d", &["%d"]);
    bad("iface=sixteen-bytes-xx", &["15"]);
    bad("mtu=67", &["68", "65521"]);
    bad("mtu=65522", &["68", "65521"]);
    bad("mac=01:00:00:00:00:01", &["multicast"]);
    bad("iface=x0,fds=3", &["exclude"]);
    bad("fds=999", &["999"]);
    bad("fds=a:b", &["'a'"]);
    bad("iface=lo", &["lo"]);
    let held = attach(&ns, "iface=held0");
    bad("iface=held0", &["held0", "belongs to a program"]);
    // Nor is a persistent one, with queues of any kind.
    let kept = attach(&ns, "iface=kept0,persist=1");
    bad("iface=kept0", &["kept0", "belongs to a program"]);
    kept.configure(&PortConfig::default()).unwrap();
    let pool = pool(256);
    setup(&kept, &pool, 1, 1);
    kept.start().unwrap();
    bad("iface=kept0", &["kept0", "belongs to a program"]);
    kept.close().unwrap();
    ns.ip(&["tuntap", "add", "dev", "single0", "mode", "tap"]);
    let single = attach(&ns, "iface=single0");
    assert_eq!(single.info().device.max_rx_queues, 1);
    bad("iface=single0", &["single0", "in use"]);
    single.close().unwrap();
    ns.ip(&["tuntap", "add", "dev", "tun0", "mode", "tun"]);
    bad("iface=tun0", &["tun0"]);
    held.close().unwrap();
    let defaults = attach(&ns, "mac=02:00:00:00:00:42");
    assert_eq!((defaults.info().device.if_name.as_deref(), defaults.mac()[5]), (Some("dtap0"), 0x42));
    defaults.close().unwrap();
}

#[test]
fn without_privilege_a_helpers_descriptors_carry_packets() {
    needs_tap!();
    let ns = NetNs::new("bl-tap-nopriv");
    let pool = pool(256);
    let fds = open_with_index(&ns, "np0", 99, 2);
    ns.no_ipv6("np0");
    let name = |up: bool| format!("net_tap{},fds={}:{}", 9000 + u32::from(up), raw(&fds[0]), raw(&fds[1]));
    // The helper's interface where we are, and in a namespace that we may not look into.
    for here in [true, false] {
        ns.up("np0");
        let args = DevArgs::parse(&name(here)).unwrap();
        let work = || {
            let dev = (DRIVER.probe)(&args)?;
            let p = Port::attach(&args.name, &DRIVER, dev)?;
            p.configure(&PortConfig { n_rx: 2, n_tx: 2, ..PortConfig::default() })?;
            setup(&p, &pool, 2, 2);
            p.start()?;
            let slot = ThreadSlot::register()?;
            let mut rx: Vec<_> = (0..2).map(|q| p.rx_queue(q).unwrap().bind(&slot)).collect();
            let mut tx = p.tx_queue(1)?.bind(&slot);
            let s = privileged(|| Peer::on(&ns, "np0"));
            (0..40).for_each(|port| s.send(&udp_frame(port)));
            assert_eq!(rx.iter_mut().map(drain).sum::<u64>(), 40);
            assert_eq!(send(&mut tx, &pool, &frame(60, &[])), 1);
            assert_eq!(s.next(), frame(60, &[]));
            assert_eq!((p.mtu(), p.link().up), (1500, here));
            assert_eq!(p.set_mtu(1400).unwrap_err().errno(), Errno::PERM);
            p.stop()?;
            p.close()
        };
        let unprivileged = || as_nobody(work);
        if here {
            in_ns(&ns, || std::thread::scope(|s| s.spawn(unprivileged).join().unwrap()))
        } else {
            std::thread::scope(|s| s.spawn(unprivileged).join().unwrap())
        }
        .unwrap();
    }
    assert_eq!(pool.available(), 256);
}
