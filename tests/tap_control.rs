//! The control side of `net_tap` against this machine's kernel: arguments, link, life. Each test in namespaces of its own. Needs root and /dev/net/tun.

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
