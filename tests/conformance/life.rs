//! One state machine for all drivers, and nothing left behind.

use crate::bench::*;
use crate::child::{alone, is_child, of_its_own};
use crate::rigs::{Ask, Rig, each};
use crate::support::run::{loops, wait_until};
use burstline::base::{Errno, Result};
use burstline::driver::Caps;
use burstline::pool::Pool;
use burstline::port::{MAX_QUEUES, Port, PortConfig, State};

const STATES: [State; 5] = [State::Probed, State::Configured, State::Started, State::Stopped, State::Closed];

/// A port in a state.
fn in_state(rig: &dyn Rig, state: State, pool: &Pool) -> (Port, Box<dyn crate::rigs::Far>) {
    let (port, far) = rig.open(&Ask::default());
    if state == State::Probed {
        return (port, far);
    }
    set_up(&port, &Ask::default(), pool);
    if state != State::Configured {
        port.start().unwrap();
    }
    match state {
        State::Stopped => _ = port.stop().unwrap(),
        State::Closed => port.close().unwrap(),
        _ => {}
    }
    assert_eq!(port.state(), state);
    (port, far)
}

type Call = fn(&Port, &Pool) -> Result<()>;

/// A call, and its answer in each of `STATES`; None: it works.
const TABLE: &[(&str, Call, [Option<Errno>; 5])] = {
    const OK: Option<Errno> = None;
    const BUSY: Option<Errno> = Some(Errno::BUSY);
    const INVAL: Option<Errno> = Some(Errno::INVAL);
    const NODEV: Option<Errno> = Some(Errno::NODEV);
    &[
        ("configure", |p, _| p.configure(&PortConfig::default()), [OK, OK, BUSY, OK, NODEV]),
        ("rx_queue_setup", |p, pool| p.rx_queue_setup(0, 0, pool), [BUSY, OK, BUSY, OK, NODEV]),
        ("tx_queue_setup", |p, _| p.tx_queue_setup(0, 0), [BUSY, OK, BUSY, OK, NODEV]),
        ("start", |p, _| p.start(), [BUSY, OK, OK, OK, NODEV]),
        ("stop", |p, _| p.stop().map(|n| assert_eq!(n, 0)), [OK, OK, OK, OK, OK]),
        ("close", |p, _| p.close(), [OK, OK, OK, OK, NODEV]),
        ("wrap", |p, _| p.wrap(Ok), [OK, BUSY, BUSY, BUSY, NODEV]),
        ("rx_queue", |p, _| p.rx_queue(0).map(drop), [INVAL, OK, OK, OK, INVAL]),
        ("tx_queue", |p, _| p.tx_queue(0).map(drop), [INVAL, OK, OK, OK, INVAL]),
        ("rx_queue_stats", |p, _| p.rx_queue_stats(0).map(drop), [INVAL, OK, OK, OK, INVAL]),
        ("unbind_queue", |p, _| p.unbind_queue(0), [INVAL, OK, OK, OK, INVAL]),
    ]
};

#[test]
fn every_call_in_every_state_gives_the_documented_answer() {
    each(|rig| {
        let pool = pool(1024);
        for (what, call, answers) in TABLE {
            for (state, want) in STATES.into_iter().zip(answers) {
                let (port, far) = in_state(rig, state, &pool);
                let got = call(&port, &pool);
                match (want, &got) {
                    (None, Ok(())) => {}
                    (Some(e), Err(got)) if got.errno() == *e && !got.text().is_empty() => {}
                    _ => panic!("{what} on a port that is {}: {got:?}, not {want:?}", state.as_str()),
                }
                // What never fails.
                let _ = (port.info(), port.stats(), port.xstats(), port.link(), port.mtu(), port.mac());
                port.stats_reset();
                port.take_events();
                for q in [0, 1] {
                    assert_eq!(tx(port.id(), q, &mut Vec::new()), 0);
                    drop(rx(port.id(), q, 4));
                }
                let _ = port.close();
                drop((port, far));
                all_back(&pool);
            }
        }
        assert!(pool.free().is_ok());
    });
}

#[test]
fn a_queue_that_was_not_set_up_keeps_the_port_from_starting_by_its_number() {
    each(|rig| {
        let (port, _far) = rig.open(&Ask::default());
        port.configure(&PortConfig::default()).unwrap();
        let pool = pool(1024);
        let (e, text) = errno(port.start());
        assert!(e == Errno::INVAL && text.contains("receive queue 0"), "{text}");
        port.rx_queue_setup(0, 0, &pool).unwrap();
        let (_, text) = errno(port.start());
        assert!(text.contains("send queue 0"), "{text}");
        port.tx_queue_setup(0, 0).unwrap();
        port.start().unwrap();
        port.close().unwrap();
    });
}

#[test]
fn a_port_is_configured_again_with_other_numbers_of_queues() {
    each(|rig| {
        let all = Ask { n_rx: 4, n_tx: 4, ..Ask::default() };
        let mut b = Bench::ready(rig, &all);
        let most = (b.info.max_rx_queues.min(4), b.info.max_tx_queues.min(4));
        for (n_rx, n_tx) in [(most.0, most.1), (1, 1), (most.0, 1), (1, most.1), (0, 1), (1, 0), most] {
            let ask = Ask { n_rx, n_tx, ..Ask::default() };
            set_up(&b.port, &ask, &b.pool);
            b.port.start().unwrap();
            let i = b.port.info();
            assert_eq!((i.n_rx, i.n_tx), (n_rx, n_tx));
            for q in 0..4 {
                let n = tx(b.id(), q, &mut packets(&b.pool, 1, 64));
                assert_eq!(n == 1, q < n_tx, "send queue {q} of {n_tx}");
                drop(rx(b.id(), q, 1));
            }
            b.port.stop().unwrap();
        }
        drop(b.far.sent());
        b.end();
    });
}

#[test]
fn limits_are_named_with_the_value() {
    each(|rig| {
        let (port, _far) = rig.open(&Ask::default());
        let i = port.info().device;
        let named = |r: Result<()>, value: u32, limit: u32| {
            let (e, text) = errno(r);
            assert_eq!(e, Errno::INVAL, "{text}");
            assert!(text.contains(&value.to_string()) && text.contains(&limit.to_string()), "{text}");
            assert!(text.contains(port.name()), "whose: {text}");
        };
        let most = i.max_rx_queues.min(MAX_QUEUES as u16);
        let c = |n_rx, n_tx| PortConfig { n_rx, n_tx, ..PortConfig::default() };
        named(port.configure(&c(i.max_rx_queues + 1, 1)), i.max_rx_queues as u32 + 1, most.into());
        named(port.configure(&c(1, i.max_tx_queues + 1)), i.max_tx_queues as u32 + 1, i.max_tx_queues.into());
        named(port.configure(&c(0, 0)), 0, 0);
        for mtu in [i.mtu.0 - 1, i.mtu.1 + 1, u32::MAX] {
            named(port.configure(&PortConfig { mtu: Some(mtu), ..c(1, 1) }), mtu, i.mtu.1);
            named(port.set_mtu(mtu), mtu, i.mtu.0);
        }
        assert_eq!(port.state(), State::Probed, "a refusal changes nothing");
        port.configure(&c(1, 1)).unwrap();
        let pool = pool(1024);
        named(port.rx_queue_setup(1, 0, &pool), 1, 1);
        named(port.tx_queue_setup(7, 0), 7, 1);
        named(port.rx_queue_setup(0, i.desc.1 + 1, &pool), i.desc.1 + 1, i.desc.1);
        named(port.tx_queue_setup(0, i.desc.1 + 1), i.desc.1 + 1, i.desc.1);
        if i.desc.0 > 1 {
            named(port.tx_queue_setup(0, i.desc.0 - 1), i.desc.0 - 1, i.desc.0);
        }
        named(port.set_mac([1, 0, 0, 0, 0, 0]), 1, 0);
        named(port.set_mac([0; 6]), 0, 0);
        port.close().unwrap();
        assert!(pool.free().is_ok(), "refused queues hold no pool");
    });
}

#[test]
fn a_capability_is_there_or_refused_and_never_ignored() {
    each(|rig| {
        let (port, _far) = rig.open(&Ask::default());
        let caps = port.info().device.caps;
        let said = |r: Result<()>, cap: Caps, what: &str| match r {
            Ok(()) => assert!(caps.contains(cap), "{what} worked, and is no capability"),
            Err(e) => assert!(!caps.contains(cap) && e.errno() == Errno::NOTSUP, "{what}: {e}"),
        };
        said(port.set_mac([2, 0, 0, 0, 9, 9]), Caps::SET_MAC, "set_mac");
        assert_eq!(port.mac() == [2, 0, 0, 0, 9, 9], caps.contains(Caps::SET_MAC));
        said(port.set_mtu(1400), Caps::SET_MTU, "set_mtu");
        assert_eq!(port.mtu() == 1400, caps.contains(Caps::SET_MTU));
        said(port.set_promiscuous(true), Caps::PROMISC, "promiscuous mode");
        said(port.set_link(true), Caps::SET_LINK, "set_link");
        let c = |scatter, mtu| PortConfig { scatter, mtu, ..PortConfig::default() };
        said(port.configure(&c(true, None)), Caps::RX_SCATTER, "scatter");
        match port.configure(&c(false, Some(1300))) {
            Ok(()) => assert_eq!(port.mtu(), 1300, "an MTU that was asked for is there"),
            Err(e) => assert_eq!(e.errno(), Errno::NOTSUP, "{e}"),
        }
        port.configure(&PortConfig::default()).unwrap();
        let setters: [fn(&Port) -> Result<()>; 4] =
            [|p| p.set_mac([2, 0, 0, 0, 9, 9]), |p| p.set_mtu(1400), |p| p.set_promiscuous(true), |p| p.set_link(true)];
        assert_eq!(port.rx_fd(0).is_ok(), caps.contains(Caps::RX_FD));
        port.close().unwrap();
        for (i, set) in setters.iter().enumerate() {
            assert_eq!(errno(set(&port)).0, Errno::NODEV, "setter {i} of a closed port");
        }
    });
}

#[test]
fn names_are_unique_among_open_ports() {
    each(|rig| {
        let (port, _far) = rig.open(&Ask::default());
        let again = || {
            let (dev, _) = crate::refdev::device();
            Port::attach(port.name(), &crate::refdev::DRIVER, dev)
        };
        let (e, text) = errno(again());
        assert!(e == Errno::EXIST && text.contains(port.name()), "{text}");
        assert_eq!(Port::by_name(port.name()).unwrap().id(), port.id());
        assert_eq!(Port::by_id(port.id()).unwrap().name(), port.name());
        port.close().unwrap();
        assert_eq!(errno(Port::by_name(port.name())).0, Errno::NODEV);
        let second = again().unwrap();
        assert_ne!(second.id(), port.id(), "the closed port's handle is still out");
        second.close().unwrap();
    });
}

#[test]
fn an_old_handle_of_a_closed_port_is_safe_and_keeps_its_number() {
    use burstline::mbuf::Burst;
    use burstline::pool::slot::ThreadSlot;
    each(|rig| {
        let slot = ThreadSlot::register().unwrap();
        let b = Bench::plain(rig);
        let id = b.id();
        let mut r = b.port.rx_queue(0).unwrap().bind(&slot);
        let mut t = b.port.tx_queue(0).unwrap().bind(&slot);
        b.port.close().unwrap();
        let mut burst = Burst::<8>::new();
        burst.push(packet(&b.pool, 1, 64)).unwrap();
        assert_eq!((r.burst(&mut burst), t.burst(&mut burst), t.burst_more(&mut burst), t.flush()), (0, 0, 0, 0));
        assert_eq!(burst.len(), 1);
        drop(burst);
        b.end_closed();
        // Others open meanwhile and never get that number.
        for _ in 0..3 {
            let other = Bench::plain(rig);
            assert_ne!(other.id(), id);
            assert_eq!((r.burst(&mut Burst::<8>::new()), t.flush()), (0, 0));
            other.end();
        }
        assert_eq!(errno(Port::by_id(id)).0, Errno::NODEV);
        drop((r.unbind(), t.unbind()));
    });
}

#[test]
fn a_device_that_fails_leaves_a_port_that_can_be_tried_again() {
    use std::sync::atomic::Ordering::Relaxed;
    let mut b = Bench::ready(&crate::rigs::RefRig, &Ask::default());
    let set = |b: &Bench, configure, start| {
        let far = b.far.reference().unwrap();
        far.fail_configure.store(configure, Relaxed);
        far.fail_start.store(start, Relaxed);
    };
    set(&b, false, true);
    let (e, text) = errno(b.port.start());
    assert!(e == Errno::IO && text.contains(b.port.name()), "{text}");
    assert_eq!(b.port.state(), State::Configured);
    assert!(rx(b.id(), 0, 4).is_empty());
    set(&b, true, false);
    assert_eq!(errno(b.port.configure(&PortConfig::default())).0, Errno::IO);
    assert_eq!(b.port.state(), State::Probed, "its queues are gone");
    assert_eq!(errno(b.port.start()).0, Errno::BUSY, "a port without queues does not start");
    set(&b, false, false);
    set_up(&b.port, &Ask::default(), &b.pool);
    b.port.start().unwrap();
    b.far.offer();
    b.send(&mut packets(&b.pool, 3, 64));
    b.end();
}

#[test]
fn start_and_stop_many_times() {
    each(|rig| {
        let b = Bench::plain(rig);
        for i in 0..loops(20, 1000) as u64 {
            assert_eq!(b.send(&mut packets(&b.pool, 2, 64)), 2);
            drop(rx(b.id(), 0, 8));
            assert_eq!(b.port.stop().unwrap(), 0);
            assert_eq!(b.port.stats().opackets, 2 * (i + 1));
            b.port.start().unwrap();
            b.port.start().unwrap();
        }
        b.end();
    });
}

fn count(dir: &str) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Descriptors, threads, mappings.
fn held() -> [usize; 3] {
    [count("/proc/self/fd"), count("/proc/self/task"), maps()]
}

#[test]
fn open_and_close_leak_nothing() {
    if alone("life::open_and_close_leak_nothing") {
        return;
    }
    each(|rig| {
        let round = || {
            let b = Bench::started(rig, &Ask { n_rx: 2, n_tx: 2, offer: 8, ..Ask::default() });
            if b.port.info().doorbell != burstline::driver::Doorbell::None {
                let mut g = burstline::port::PollGroup::new();
                g.add_tx(&b.port, 0, 8, 1000).unwrap();
                tx_more(b.id(), 0, &mut packets(&b.pool, 2, 64));
            }
            b.send(&mut packets(&b.pool, 4, 64));
            drop(rx(b.id(), 0, 8));
            b.end();
        };
        // What is made once is made.
        (0..3).for_each(|_| round());
        let before = held();
        (0..loops(20, 1000)).for_each(|_| round());
        // A thread that ended may take a moment to leave the list; an allocator may keep a few maps.
        let same =
            || held().iter().zip(&before).enumerate().all(|(i, (now, was))| *now <= was + if i == 2 { 6 } else { 0 });
        assert!(wait_until(ARRIVES, same), "descriptors, threads, maps: {before:?} before, {:?} now", held());
        assert!(burstline::pool::list().is_empty(), "pools: {:?}", burstline::pool::list());
        assert!(Port::all().is_empty());
    });
}

#[test]
fn a_program_that_exits_with_live_ports_ends_cleanly() {
    if !is_child() {
        let out = of_its_own("life::a_program_that_exits_with_live_ports_ends_cleanly");
        assert_eq!(out.code(), 0, "{}\n{}", out.stdout, out.stderr);
        assert!(out.stdout.contains("leaving"), "{}", out.stdout);
        return;
    }
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 8, ..Ask::default() });
        b.send(&mut packets(&b.pool, 4, 64));
        let id = b.id();
        let held = packets(&b.pool, 4, 64);
        std::mem::forget((b, held));
        // One thread is in the middle of traffic as the process ends.
        std::thread::spawn(move || {
            let _ = burstline::pool::slot::register_current();
            loop {
                drop(rx(id, 1, 4));
            }
        });
    });
    let _ = burstline::pool::slot::register_current();
    println!("leaving");
    std::process::exit(0);
}
