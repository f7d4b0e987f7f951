//! The kernel's side of TAP, and what kernel-socket drivers share, against this machine's kernel: each test in a
//! namespace of its own that goes with the test. Needs root and /dev/net/tun.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

use burstline::base::{Errno, Error, Result};
use burstline::pmd::tap::kernel::{Fault, Frame, Tap, TapOptions, TapQueue};
use burstline::sock::packet::{PacketOptions, PacketSocket, Received};
use burstline::sock::stats::StatsReader;
use burstline::sock::{Ctl, NetNs, wait_readable};

/// A new namespace, or None (with a line that says why) where this machine gives none.
fn namespace() -> Option<NetNs> {
    let why = match NetNs::create() {
        Ok(ns) if std::path::Path::new("/dev/net/tun").exists() => return Some(ns),
        Ok(_) => "no /dev/net/tun".to_string(),
        Err(e) => e.to_string(),
    };
    assert!(std::env::var("BURSTLINE_REQUIRE_ALL").as_deref() != Ok("1"), "required: {why}");
    println!("skipped: {why}");
    None
}

macro_rules! namespace_or_skip {
    () => {
        match namespace() {
            Some(ns) => ns,
            None => return,
        }
    };
}

fn ip(ns: &NetNs, args: &str) -> String {
    ns.run_in(|| {
        let o = Command::new("ip").args(args.split_whitespace()).output().map_err(|e| Error::from_io(&e, "ip"))?;
        if !o.status.success() {
            return Err(Error::invalid(format!("ip {args}: {}", String::from_utf8_lossy(&o.stderr))));
        }
        Ok(String::from_utf8_lossy(&o.stdout).into_owned())
    })
    .unwrap()
}

fn link_json(ns: &NetNs, name: &str) -> serde_json::Value {
    let v: serde_json::Value = serde_json::from_str(&ip(ns, &format!("-j -d link show dev {name}"))).unwrap();
    v[0].clone()
}

/// No router solicitations and the like among the frames of the test. /proc/sys/net is the reading thread's namespace.
fn quiet(ns: &NetNs, name: &str) {
    let off = ns.run_in(|| Ok(std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1")));
    if off.unwrap().is_err() {
        ip(ns, &format!("link set {name} addrgenmode none"));
    }
}

fn tap_in(ns: &NetNs, name: &str, n_queues: usize) -> Tap {
    let t = ns.run_in(|| Tap::open(&TapOptions { name, n_queues, attach: false })).unwrap();
    quiet(ns, &t.name().unwrap());
    t
}

fn capture(ns: &NetNs, ifindex: u32, o: PacketOptions) -> PacketSocket {
    ns.run_in(|| PacketSocket::open(ifindex, &o)).unwrap()
}

/// A frame with a local experimental type (IEEE 802 88b5), so that no stack answers it.
fn frame(len: usize, tag: &[u8]) -> Vec<u8> {
    let mut f = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    f.extend_from_slice(tag);
    f.extend_from_slice(&[0x88, 0xb5]);
    (f.len()..len).for_each(|i| f.push(i as u8));
    f
}

fn is_ours(f: &[u8]) -> bool {
    f.len() > 14 && f[..6] == [0x02, 0, 0, 0, 0, 2]
}

/// The next frame of the test's kind at the packet socket.
fn next_frame(s: &PacketSocket) -> (Vec<u8>, Received) {
    let until = Instant::now() + Duration::from_secs(10);
    let mut buf = vec![0u8; 70_000];
    while Instant::now() < until {
        match s.recv_frame(&mut buf) {
            Ok((start, r)) if is_ours(&buf[start..start + r.len]) => return (buf[start..start + r.len].to_vec(), r),
            Ok(_) => {}
            Err(Errno::AGAIN) => {
                wait_readable(s.as_fd(), Duration::from_millis(100)).unwrap();
            }
            Err(e) => assert_eq!(e.0, libc::ENETDOWN, "{e}"),
        }
    }
    panic!("no frame in 10 s");
}

/// The next frame of the test's kind at a queue, into `room` bytes.
fn next_read(q: &TapQueue, room: usize) -> (Frame, Vec<u8>) {
    let until = Instant::now() + Duration::from_secs(10);
    let mut buf = vec![0u8; room];
    while Instant::now() < until {
        match q.read(&mut [IoSliceMut::new(&mut buf)]) {
            Ok(Frame::Whole(n)) if is_ours(&buf[..n]) => return (Frame::Whole(n), buf[..n].to_vec()),
            Ok(Frame::Truncated) if is_ours(&buf) => return (Frame::Truncated, buf),
            Ok(_) => {}
            Err(Fault::Again) => {
                wait_readable(q.as_fd(), Duration::from_millis(100)).unwrap();
            }
            Err(e) => panic!("{e:?}"),
        }
    }
    panic!("no frame in 10 s");
}

fn until(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !f() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_device_of_four_queues_carries_mtu_mac_and_link() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "bl%d", 4);
    let name = t.name().unwrap();
    assert_eq!((name.as_str(), t.queues().len()), ("bl0", 4));
    assert_eq!(t.netns().unwrap(), ns);
    t.set_mtu(9000).unwrap();
    t.set_mac(&[2, 0, 0, 0, 0xab, 0xcd]).unwrap();
    assert_eq!((t.mtu().unwrap(), t.mac().unwrap()), (9000, [2, 0, 0, 0, 0xab, 0xcd]));
    let j = link_json(&ns, "bl0");
    assert_eq!((&j["mtu"], &j["address"]), (&9000.into(), &"02:00:00:00:ab:cd".into()));
    assert_eq!(j["linkinfo"]["info_data"]["multi_queue"], true);
    assert_eq!(j["linkinfo"]["info_data"]["persist"], false);
    assert_eq!(j["linkinfo"]["info_data"]["numqueues"], 4);
    assert_eq!(j["ifindex"], t.ifindex().unwrap());

    assert!(!t.link().unwrap().up);
    t.set_up(true).unwrap();
    until("link up", || t.link().unwrap().up);
    t.set_carrier(false).unwrap();
    until("carrier off", || !t.link().unwrap().up);
    t.set_carrier(true).unwrap();
    until("carrier on", || t.link().unwrap().up);

    let e = t.set_mtu(70_000).unwrap_err();
    assert!(e.errno() == Errno::INVAL && e.text().contains("'bl0': set MTU 70000"), "{e}");
    let e = t.set_mac(&[1, 0, 0, 0, 0, 1]).unwrap_err();
    assert!(e.text().contains("01:00:00:00:00:01"), "{e}");

    drop(t);
    assert!(ns.run_in(Ctl::new).unwrap().index_of("bl0").is_err(), "gone with its last descriptor");
}

#[test]
fn a_name_in_use_is_refused_and_can_be_joined_when_asked() {
    let ns = namespace_or_skip!();
    let open = |name: &str, n_queues, attach| ns.run_in(|| Tap::open(&TapOptions { name, n_queues, attach }));
    let a = open("dup0", 2, false).unwrap();
    let e = open("dup0", 1, false).unwrap_err();
    assert!(e.errno() == Errno::BUSY && e.text().contains("'dup0'"), "{e}");
    assert_eq!(open("lo", 1, false).unwrap_err().errno(), Errno::BUSY);
    assert_eq!(open("lo", 1, true).unwrap_err().errno(), Errno::INVAL);
    for bad in ["", "a/b", "%d%d", "a%s", "fifteen-bytes-%d", "a:1"] {
        assert_eq!(open(bad, 1, false).unwrap_err().errno(), Errno::INVAL, "{bad}");
    }
    for n in [0, 257] {
        assert!(open("many", n, false).unwrap_err().text().contains("256"));
    }
    let b = open("dup0", 2, true).unwrap();
    assert_eq!(link_json(&ns, "dup0")["linkinfo"]["info_data"]["numqueues"], 4);
    drop(a);
    assert_eq!(b.name().unwrap(), "dup0");
    // One made by a helper with `ip tuntap`, with one queue; it stays when we go.
    ip(&ns, "tuntap add dev pers0 mode tap");
    assert_eq!(open("pers0", 2, true).unwrap_err().errno(), Errno::INVAL);
    drop(open("pers0", 1, true).unwrap());
    drop(open("pers0", 1, true).unwrap());
    let c = open("pers0", 1, true).unwrap();
    assert_eq!(open("pers0", 1, true).unwrap_err().errno(), Errno::BUSY);
    drop(c);
    open("all256", 256, false).unwrap();
}

#[test]
fn frames_go_both_ways_and_are_counted_by_the_device() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "fr0", 1);
    t.set_up(true).unwrap();
    let s = capture(&ns, t.ifindex().unwrap(), PacketOptions::default());
    let q = &t.queues()[0];

    let before = t.stats().unwrap();
    let f = frame(60, &[]);
    assert_eq!(q.write(&[IoSlice::new(&f[..20]), IoSlice::new(&f[20..])]), Ok(60));
    let (got, r) = next_frame(&s);
    assert_eq!((got, r.vlan, r.truncated()), (f.clone(), None, false));
    assert!(burstline::base::time::realtime_ns().abs_diff(r.ts_ns) < 60_000_000_000);
    let after = t.stats().unwrap();
    assert_eq!((after.rx_packets - before.rx_packets, after.rx_bytes - before.rx_bytes), (1, 60));

    let before = t.stats().unwrap();
    assert_eq!(s.send(&[IoSlice::new(&f[..13]), IoSlice::new(&f[13..])]), Ok(60));
    assert_eq!(next_read(q, 2048), (Frame::Whole(60), f.clone()));
    assert_eq!(t.stats().unwrap().tx_packets - before.tx_packets, 1);
    assert_eq!(s.take_stats().unwrap().drops, 0);
    assert_eq!(q.write(&[IoSlice::new(&f[..13])]), Err(Fault::Invalid));
    assert_eq!(s.send(&[IoSlice::new(&frame(1600, &[]))]), Err(Errno::MSGSIZE));
}

#[test]
fn a_vlan_tag_that_the_kernel_took_out_is_put_back() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "vl0", 1);
    t.set_up(true).unwrap();
    let s = capture(&ns, t.ifindex().unwrap(), PacketOptions::default());
    for tag in [[0x81, 0x00, 0x60, 0x64], [0x88, 0xa8, 0x00, 0x05], [0x81, 0, 0, 0]] {
        let f = frame(100, &tag);
        t.queues()[0].write(&[IoSlice::new(&f)]).unwrap();
        let (got, r) = next_frame(&s);
        assert_eq!((got, r.len, r.orig_len), (f.clone(), 100, 100));

        t.queues()[0].write(&[IoSlice::new(&f)]).unwrap();
        wait_readable(s.as_fd(), Duration::from_secs(10)).unwrap();
        let mut buf = [0u8; 64];
        let r = s.recv(&mut [IoSliceMut::new(&mut buf)]).unwrap();
        let want = (u16::from_be_bytes([tag[0], tag[1]]), u16::from_be_bytes([tag[2], tag[3]]));
        assert_eq!((r.vlan, r.len, r.orig_len), (Some(want), 64, 96));
        // Out by the socket, in by the device: the tag is in the frame.
        s.send(&[IoSlice::new(&f)]).unwrap();
        assert_eq!(next_read(&t.queues()[0], 200).1, f);
    }
}

#[test]
fn a_frame_longer_than_the_buffers_is_reported_not_delivered_cut() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "tr0", 1);
    t.set_up(true).unwrap();
    t.set_mtu(9000).unwrap();
    let q = &t.queues()[0];
    let s = capture(&ns, t.ifindex().unwrap(), PacketOptions::default());
    // MTU 9000 both ways, whole.
    let f = frame(9014, &[]);
    assert_eq!(q.write(&[IoSlice::new(&f)]), Ok(9014));
    assert_eq!(next_frame(&s).0, f);
    s.send(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(next_read(q, 9014), (Frame::Whole(9014), f.clone()));
    // Exactly one byte short; the frame after it is whole.
    for room in [9013, 2048, 64] {
        s.send(&[IoSlice::new(&f)]).unwrap();
        s.send(&[IoSlice::new(&f[..60])]).unwrap();
        assert_eq!(next_read(q, room).0, Frame::Truncated);
        assert_eq!(next_read(q, 64), (Frame::Whole(60), f[..60].to_vec()));
    }
    // Across many pieces, and with no buffer at all.
    let mut bufs = vec![[0u8; 512]; 20];
    let mut iov: Vec<_> = bufs.iter_mut().map(|b| IoSliceMut::new(b)).collect();
    s.send(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(q.read(&mut iov), Ok(Frame::Whole(9014)));
    assert_eq!(bufs.concat()[..9014], f);
    s.send(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(q.read(&mut []), Ok(Frame::Truncated));
    let mut many = [[0u8; 1]; 41];
    let mut iov: Vec<_> = many.iter_mut().map(|b| IoSliceMut::new(b)).collect();
    assert_eq!(q.read(&mut iov), Err(Fault::Invalid));
    // A write is not held to the MTU.
    t.set_mtu(68).unwrap();
    assert_eq!(q.write(&[IoSlice::new(&f)]), Ok(9014));
    assert_eq!(next_frame(&s).0, f);
    let big = frame(65_535, &[]);
    assert_eq!(q.write(&[IoSlice::new(&big)]), Ok(65_535));
    assert_eq!(next_frame(&s).0, big);
}

#[test]
fn an_interface_moved_and_renamed_is_still_ours() {
    let (ns, other) = (namespace_or_skip!(), namespace_or_skip!());
    let t = tap_in(&ns, "mv0", 2);
    // Its index is taken where it goes.
    let old = t.ifindex().unwrap();
    ip(&other, &format!("link add blocker index {old} type veth peer name blocker2 index 900"));
    ip(&other, "link add mv0 type veth peer name mv1");
    ip(&other, "link set mv0 mtu 1234");
    // `ip link set netns` wants a name or a process: a child that sits in the other namespace.
    let mut child =
        other.run_in(|| Command::new("sleep").arg("60").spawn().map_err(|e| Error::from_io(&e, "sleep"))).unwrap();
    t.set_mtu(1400).unwrap();
    ip(&ns, &format!("link set mv0 netns {} name moved7", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();

    assert_eq!((t.name().unwrap().as_str(), t.netns().unwrap() == other), ("moved7", true));
    assert_ne!(t.ifindex().unwrap(), old);
    assert_eq!(t.mtu().unwrap(), 1400);
    t.set_mtu(2000).unwrap();
    t.set_mac(&[2, 9, 9, 9, 9, 9]).unwrap();
    t.set_up(true).unwrap();
    let j = link_json(&other, "moved7");
    assert_eq!((&j["mtu"], &j["address"]), (&2000.into(), &"02:09:09:09:09:09".into()));
    let s = capture(&other, t.ifindex().unwrap(), PacketOptions::default());
    let before = t.stats().unwrap().rx_packets;
    let f = frame(80, &[]);
    t.queues()[1].write(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(next_frame(&s).0, f);
    assert_eq!(t.stats().unwrap().rx_packets, before + 1);
    assert_eq!(link_json(&other, "mv0")["mtu"], 1234, "the namesake is untouched");
}

#[test]
fn down_then_up_and_gone_have_their_own_faults() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "dn0", 2);
    let q = &t.queues()[0];
    let f = frame(60, &[]);
    let dropped = t.stats().unwrap().rx_dropped;
    assert_eq!(q.write(&[IoSlice::new(&f)]), Err(Fault::Down));
    assert_eq!(t.stats().unwrap().rx_dropped, dropped + 1, "the device counts what it refused");
    let mut buf = [0u8; 100];
    assert_eq!(q.read(&mut [IoSliceMut::new(&mut buf)]), Err(Fault::Again));
    t.set_up(true).unwrap();
    assert_eq!(q.write(&[IoSlice::new(&f)]), Ok(60));
    t.set_up(false).unwrap();
    assert_eq!(q.write(&[IoSlice::new(&f)]), Err(Fault::Down));
    ip(&ns, "link del dn0");
    assert_eq!(q.write(&[IoSlice::new(&f)]), Err(Fault::Gone));
    assert_eq!(q.read(&mut [IoSliceMut::new(&mut buf)]), Err(Fault::Gone));
    assert!(t.name().unwrap_err().text().contains("gone"));
    assert!(t.mtu().is_err() && t.stats().is_err() && t.set_carrier(true).is_err());
}

#[test]
fn a_stopped_queue_gets_no_frames_until_it_starts_again() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "sq0", 2);
    t.set_up(true).unwrap();
    let s = capture(&ns, t.ifindex().unwrap(), PacketOptions::default());
    let info = |what: &str| link_json(&ns, "sq0")["linkinfo"]["info_data"][what].clone();
    t.queues()[0].set_attached(false).unwrap();
    t.queues()[0].set_attached(false).unwrap();
    assert_eq!((info("numqueues"), info("numdisabled")), (1.into(), 1.into()));
    let f = frame(60, &[]);
    for _ in 0..20 {
        s.send(&[IoSlice::new(&f)]).unwrap();
        assert_eq!(next_read(&t.queues()[1], 100).1, f);
    }
    let mut buf = [0u8; 100];
    // Only the kernel's side is stopped: a write still arrives.
    assert_eq!(t.queues()[0].read(&mut [IoSliceMut::new(&mut buf)]), Err(Fault::Again));
    assert_eq!(t.queues()[0].write(&[IoSlice::new(&f)]), Ok(60));
    assert_eq!(next_frame(&s).0, f);
    assert_eq!(t.name().unwrap(), "sq0", "a detached queue still knows its device");
    t.queues()[1].set_attached(false).unwrap();
    // With no queue the carrier stays on, may go off but not on, and each frame is dropped and counted.
    assert!(t.link().unwrap().up);
    assert_eq!(t.set_carrier(true).unwrap_err().errno(), Errno::PERM);
    let before = t.stats().unwrap();
    assert_eq!(s.send(&[IoSlice::new(&f)]), Ok(60));
    assert_eq!(t.stats().unwrap().tx_dropped, before.tx_dropped + 1);
    t.set_mtu(1600).unwrap();
    t.queues()[0].set_attached(true).unwrap();
    t.queues()[1].set_attached(true).unwrap();
    until("carrier", || t.link().unwrap().up);
    assert_eq!((info("numqueues"), info("numdisabled")), (2.into(), 0.into()));
    t.queues()[0].set_sndbuf(1 << 20).unwrap();
    t.queues()[0].write(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(next_frame(&s).0, f);
}

#[test]
fn a_full_queue_drops_and_the_device_counts_each_frame_once() {
    let ns = namespace_or_skip!();
    let t = tap_in(&ns, "fq0", 1);
    t.set_up(true).unwrap();
    let s = capture(&ns, t.ifindex().unwrap(), PacketOptions { qdisc_bypass: true, ..PacketOptions::default() });
    let before = t.stats().unwrap();
    let f = frame(60, &[]);
    let sent = (0..3000).filter(|_| s.send(&[IoSlice::new(&f)]).is_ok()).count() as u64;
    let mut read = 0;
    let mut buf = [0u8; 100];
    while let Ok(Frame::Whole(n)) = t.queues()[0].read(&mut [IoSliceMut::new(&mut buf)]) {
        read += u64::from(is_ours(&buf[..n]));
    }
    let after = t.stats().unwrap();
    let (tx, dropped) = (after.tx_packets - before.tx_packets, after.tx_dropped - before.tx_dropped);
    assert!(read >= 500 && sent == read);
    assert_eq!((tx, tx + dropped), (read, 3000));
}

#[test]
fn ready_made_descriptors_are_accepted_and_checked() {
    let ns = namespace_or_skip!();
    let made = tap_in(&ns, "fd0", 2);
    let dup = |q: &TapQueue| q.as_fd().try_clone_to_owned().unwrap();
    let t = Tap::from_fds(made.queues().iter().map(dup).collect()).unwrap();
    drop(made);
    assert_eq!((t.name().unwrap().as_str(), t.queues().len(), t.netns().unwrap() == ns), ("fd0", 2, true));
    t.set_mtu(1300).unwrap();

    let other = tap_in(&ns, "fd1", 1);
    let e = Tap::from_fds(vec![dup(&t.queues()[0]), dup(&other.queues()[0])]).unwrap_err();
    assert!(e.text().contains("another device than 'fd0'"), "{e}");
    let null = std::fs::File::open("/dev/null").unwrap();
    assert!(Tap::from_fds(vec![null.into()]).unwrap_err().text().contains("not a descriptor of /dev/net/tun"));
    let tun = std::fs::File::options().read(true).write(true).open("/dev/net/tun").unwrap();
    assert!(Tap::from_fds(vec![tun.into()]).unwrap_err().text().contains("never attached"));
    assert!(Tap::from_fds(vec![]).is_err());
}

#[test]
fn an_index_above_65535_works_everywhere() {
    let ns = namespace_or_skip!();
    ip(&ns, "link add index 70000 name va type veth peer name vb index 16777300");
    ip(&ns, "link set va up");
    ip(&ns, "link set vb up");
    let c = Ctl::in_ns(&ns).unwrap();
    assert_eq!((c.index_of("va").unwrap(), c.index_of("vb").unwrap()), (70_000, 16_777_300));
    assert_eq!(c.name_of(70_000).unwrap(), "va");
    let (a, b) = (capture(&ns, 70_000, Default::default()), capture(&ns, 16_777_300, Default::default()));
    assert_eq!(a.ifindex(), 70_000);
    let st = StatsReader::in_ns(&ns).unwrap();
    let before = st.get(16_777_300).unwrap().rx_packets;
    for tag in [&[][..], &[0x81, 0, 0, 7]] {
        let f = frame(300, tag);
        until("link of the pair", || c.link("va").unwrap().up);
        a.send(&[IoSlice::new(&f)]).unwrap();
        assert_eq!(next_frame(&b).0, f);
    }
    assert!(StatsReader::beside(&c).unwrap().get(16_777_300).unwrap().rx_packets >= before + 2);
    assert_eq!(c.link("va").unwrap().full_duplex, Some(true));
    c.set_promisc("va", true).unwrap();
    c.set_allmulti("va", true).unwrap();
    let flags = i32::from(c.flags("va").unwrap());
    assert_eq!(flags & (libc::IFF_PROMISC | libc::IFF_ALLMULTI), libc::IFF_PROMISC | libc::IFF_ALLMULTI);
}

#[test]
fn what_this_machine_sends_is_captured_only_when_asked() {
    let ns = namespace_or_skip!();
    ip(&ns, "link add d0 type veth peer name d1");
    quiet(&ns, "d0");
    quiet(&ns, "d1");
    ip(&ns, "link set d1 up");
    ip(&ns, "link set d0 up");
    until("link of the pair", || Ctl::in_ns(&ns).unwrap().link("d0").unwrap().up);
    let i = Ctl::in_ns(&ns).unwrap().index_of("d0").unwrap();
    let quiet = capture(&ns, i, Default::default());
    let all = capture(&ns, i, PacketOptions { ignore_outgoing: false, ..Default::default() });
    let sender = capture(&ns, i, Default::default());
    let f = frame(64, &[]);
    sender.send(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(next_frame(&all).0, f);
    let mut buf = [0u8; 100];
    assert_eq!(quiet.recv_frame(&mut buf).unwrap_err(), Errno::AGAIN);
    // Down is said once, then the socket waits; up again it works (T6).
    Ctl::in_ns(&ns).unwrap().set_up("d0", false).unwrap();
    assert_eq!(quiet.recv_frame(&mut buf).unwrap_err().0, libc::ENETDOWN);
    assert_eq!(quiet.recv_frame(&mut buf).unwrap_err(), Errno::AGAIN);
    let e: Vec<_> = (0..2).map(|_| sender.send(&[IoSlice::new(&f)]).unwrap_err().0).collect();
    assert_eq!(e, [libc::ENETDOWN; 2]);
    Ctl::in_ns(&ns).unwrap().set_up("d0", true).unwrap();
    sender.send(&[IoSlice::new(&f)]).unwrap();
    assert_eq!(next_frame(&all).0, f);
}

#[test]
fn a_device_without_ethernet_is_refused_with_its_type() {
    let ns = namespace_or_skip!();
    ip(&ns, "tuntap add dev tun9 mode tun");
    let c = Ctl::in_ns(&ns).unwrap();
    let i = c.index_of("tun9").unwrap();
    let r: Result<PacketSocket> = ns.run_in(|| PacketSocket::open(i, &Default::default()));
    let e = r.unwrap_err();
    assert!(e.errno() == Errno::NOTSUP && e.text().contains("not Ethernet") && e.text().contains("65534"), "{e}");
    assert!(c.mac("tun9").unwrap_err().text().contains("ARPHRD 65534"));
    let gone = ns.run_in(|| PacketSocket::open(99_999, &Default::default())).unwrap_err();
    assert!(gone.errno() == Errno::NODEV && gone.text().contains("99999"), "{gone}");
}
