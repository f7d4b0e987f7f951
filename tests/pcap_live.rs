//! `net_pcap` on interfaces: veth pairs in namespaces of the tests' own.

mod pcap_common;
mod support;

use pcap_common::*;
use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};
use support::need;
use support::netns::{NetNs, veth_pair};

use burstline::driver::{Error, Event};
use burstline::mbuf::flags::RX_TIMESTAMP;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::port::{Port, PortConfig};
use burstline::sock::packet::{PacketOptions, PacketSocket};

fn inside<T: Send>(ns: &NetNs, f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    burstline::sock::NetNs::from_path(ns.path()).unwrap().run_in(f)
}

/// A packet socket on an interface of `ns`: the other end of the wire.
fn wire(ns: &NetNs, ifname: &str) -> PacketSocket {
    inside(ns, || {
        let i = burstline::sock::Ctl::new()?.index_of(ifname)?;
        PacketSocket::open(i, &PacketOptions { rcvbuf: Some(8 << 20), ..PacketOptions::default() })
    })
    .unwrap()
}

/// Two namespaces and a quiet wire between them: a0 and b0.
fn cable(mtu: u32) -> (NetNs, NetNs) {
    let (a, b) = (NetNs::new("blpcap"), NetNs::new("blpcap"));
    veth_pair(&a, "a0", &b, "b0");
    for (ns, ifname) in [(&a, "a0"), (&b, "b0")] {
        ns.no_ipv6(ifname);
        ns.mtu(ifname, mtu);
        ns.up(ifname);
    }
    (a, b)
}

fn live(ns: &NetNs, args: &str, pool: &burstline::pool::Pool, config: &PortConfig) -> Port {
    let p = inside(ns, || probe(args)).unwrap();
    p.configure(config).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 64).unwrap();
    p.start().unwrap();
    p
}

fn eth(i: usize, len: usize) -> Vec<u8> {
    let mut f = frame(i, len);
    f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    f
}

fn recv(s: &PacketSocket) -> Option<Vec<u8>> {
    let mut buf = vec![0; 70_000];
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if let Ok(r) = s.recv(&mut [IoSliceMut::new(&mut buf)]) {
            buf.truncate(r.len);
            return Some(buf);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

#[test]
fn a_live_interface_gives_and_takes_frames_and_a_call_without_traffic_returns_at_once() {
    need!("root", "netns", "ip");
    let (a, b) = cable(1500);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(256));
    let peer = wire(&b, "b0");
    let p = live(&a, "iface=a0,phy_mac=1", &pool, &PortConfig::default());
    let mac = a.run(&["cat", "/sys/class/net/a0/address"]).stdout;
    assert_eq!(burstline::sock::iface::mac_text(&p.mac()), mac.trim());
    assert!(p.link().up && p.mtu() == 1500 && p.promiscuous() && p.rx_fd(0).is_ok());
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let mut burst = Burst::<32>::new();
    let start = Instant::now();
    for _ in 0..1000 {
        assert_eq!(rx.burst(&mut burst), 0);
    }
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    for i in 0..100 {
        peer.send(&[IoSlice::new(&eth(i, 60 + i * 14))]).unwrap();
    }
    let got = receive(&mut rx, 100);
    assert!(got.iter().enumerate().all(|(i, m)| m.to_vec() == eth(i, 60 + i * 14)) && got.len() == 100);
    assert!(got.iter().all(|m| m.flags() & RX_TIMESTAMP != 0 && m.raw().timestamp > 1_600_000_000_000_000_000));
    // A chain goes out as one frame, in order, and does not come back in.
    let mut m = Mbuf::alloc_with(&pool, &eth(0, 100)).unwrap();
    m.chain(Mbuf::alloc_with(&pool, &frame(5, 300)).unwrap()).unwrap();
    let want = m.to_vec();
    burst.push(m).unwrap();
    // Above the MTU: the kernel refuses it, and the next one goes.
    burst.push(Mbuf::alloc_with(&pool, &eth(0, 1600)).unwrap()).unwrap();
    burst.push(Mbuf::alloc_with(&pool, &eth(9, 60)).unwrap()).unwrap();
    assert_eq!(tx.burst(&mut burst), 3);
    assert_eq!((recv(&peer), recv(&peer)), (Some(want), Some(eth(9, 60))));
    let s = p.stats();
    assert_eq!((s.opackets, s.obytes, s.oerrors, s.ipackets, s.imissed), (2, 460, 1, 100, 0));
    assert_eq!(rx.burst(&mut burst), 0);
    drop(got);
    drop((rx, tx));
    p.close().unwrap();
    assert_eq!(pool.available(), 256);
    assert!(pool.free().is_ok());
}

#[test]
fn a_tagged_frame_has_its_tag_in_the_data() {
    need!("root", "netns", "ip");
    let (a, b) = cable(1500);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let peer = wire(&b, "b0");
    let p = live(&a, "rx_iface_in=a0,tx_iface=a0", &pool, &PortConfig::default());
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let mut want = Vec::new();
    for (i, tag) in [[0x81, 0, 0x60, 42], [0x88, 0xa8, 0, 7], [0x81, 0, 0, 0]].iter().enumerate() {
        let mut f = eth(i, 100);
        f.splice(12..12, *tag);
        peer.send(&[IoSlice::new(&f)]).unwrap();
        want.push(f);
    }
    let got: Vec<_> = receive(&mut rx, 3).iter().map(Mbuf::to_vec).collect();
    assert_eq!(got, want);
    assert_eq!(p.stats().ibytes, 3 * 104);
}

#[test]
fn a_frame_longer_than_a_room_is_a_chain_with_scatter_and_an_error_without() {
    need!("root", "netns", "ip");
    let (a, b) = cable(9000);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let peer = wire(&b, "b0");
    for scatter in [true, false] {
        let p = live(&a, "rx_iface=a0", &pool, &PortConfig { scatter, ..PortConfig::default() });
        let mut rx = p.rx_queue(0).unwrap().bind(&slot);
        let mut f = eth(3, 9000);
        f.splice(12..12, [0x81, 0, 0, 5]);
        for f in [&f, &eth(4, 2049), &eth(5, 60)] {
            peer.send(&[IoSlice::new(f)]).unwrap();
        }
        let got = receive(&mut rx, if scatter { 3 } else { 1 });
        got.iter().for_each(|m| m.validate().unwrap());
        let got: Vec<_> = got.iter().map(Mbuf::to_vec).collect();
        if scatter {
            assert_eq!(got, [f, eth(4, 2049), eth(5, 60)]);
        } else {
            assert_eq!(got, [eth(5, 60)]);
        }
        assert_eq!(p.stats().ierrors, if scatter { 0 } else { 2 });
        drop(rx);
        p.close().unwrap();
    }
    assert_eq!(pool.available(), 128);
}

#[test]
fn what_the_kernel_dropped_is_missed_and_offered_is_received_and_missed() {
    need!("root", "netns", "ip");
    let (a, b) = cable(1500);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(256));
    let peer = wire(&b, "b0");
    let p = live(&a, "rx_iface_in=a0", &pool, &PortConfig::default());
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let n = 30_000;
    for _ in 0..n {
        peer.send(&[IoSlice::new(&eth(1, 1400))]).unwrap();
    }
    let (mut burst, mut got, mut idle) = (Burst::<32>::new(), 0, 0);
    while idle < 1000 {
        let k = rx.burst(&mut burst) as u64;
        idle = if k == 0 { idle + 1 } else { 0 };
        got += k;
        burst.clear();
    }
    let s = p.stats();
    assert!(s.imissed != 0, "nothing was dropped: {s:?}");
    assert_eq!((s.ipackets, got + s.imissed), (got, n));
    assert_eq!(p.stats().imissed, s.imissed, "read twice, counted once");
}

#[test]
fn an_interface_that_goes_raises_removed_and_costs_only_packets() {
    need!("root", "netns", "ip");
    let (a, b) = cable(1500);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let p = live(&a, "iface=a0", &pool, &PortConfig::default());
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    // Down: taken, freed, counted. Up again: sent.
    let peer = wire(&b, "b0");
    a.down("a0");
    send(&mut tx, &pool, &[eth(0, 60)]);
    assert_eq!((p.stats().oerrors, p.link().up), (1, false));
    a.up("a0");
    send(&mut tx, &pool, &[eth(1, 60)]);
    assert_eq!(recv(&peer), Some(eth(1, 60)));
    assert_eq!((p.stats().opackets, p.stats().oerrors), (1, 1));
    b.ip(&["link", "del", "b0"]);
    send(&mut tx, &pool, &[eth(0, 60)]);
    let mut burst = Burst::<32>::new();
    assert_eq!(rx.burst(&mut burst), 0);
    assert_eq!((p.stats().opackets, p.stats().oerrors), (1, 2));
    assert!(p.take_events().contains(Event::REMOVED));
    assert_eq!((p.link().up, p.mtu()), (false, 0));
    drop((rx, tx));
    p.close().unwrap();
    assert_eq!(pool.available(), 128);
}

#[test]
fn packets_sent_before_close_are_on_the_device_s_counter() {
    need!("root", "netns", "ip");
    let (a, b) = cable(1500);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(512));
    let p = live(&a, "tx_iface=a0", &pool, &PortConfig::default());
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    send(&mut tx, &pool, &(0..179).map(|i| eth(i, 60)).collect::<Vec<_>>());
    drop(tx);
    p.close().unwrap();
    assert_eq!((p.stats().opackets, a.stat("a0", "tx_packets"), b.stat("b0", "rx_packets")), (179, 179, 179));
}

#[test]
fn an_interface_that_is_not_ethernet_is_refused_with_its_type() {
    need!("root", "netns", "ip", "/dev/net/tun");
    let a = NetNs::new("blpcap");
    a.ip(&["tuntap", "add", "t0", "mode", "tun"]);
    for keys in ["iface=t0", "tx_iface=t0"] {
        let e = inside(&a, || probe(keys).map(|_| ())).unwrap_err();
        assert!(e.text().contains("'t0'") && e.text().contains("ARPHRD"), "{e}");
    }
    let e = inside(&a, || probe("rx_iface=nope").map(|_| ())).unwrap_err();
    assert!(e.text().contains("'nope'"), "{e}");
}
