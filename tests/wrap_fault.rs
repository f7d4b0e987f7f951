//! `fault` around a port: what goes wrong is counted once, and every packet is accounted for.

use burstline::driver::{DevArgs, Driver};
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig, State, Stats, wrap};

const RING: &Driver = &burstline::pmd::ring::DRIVER;
const NULL: &Driver = &burstline::pmd::null::DRIVER;

fn pool(name: &str) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 512, cache: 0, ..PoolConfig::default() }).unwrap()
}

fn wrapped(d: &'static Driver, args: &str, spec: &str, pool: &Pool) -> Port {
    let args = DevArgs::parse(args).unwrap();
    let p = Port::attach(&args.name, d, (d.probe)(&args).unwrap()).unwrap();
    wrap::parse_and_wrap(&p, spec).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p
}

fn packets(pool: &Pool, n: usize) -> Burst<64> {
    let mut b = Burst::new();
    for i in 0..n {
        b.push(Mbuf::alloc_with(pool, &[i as u8; 64]).unwrap()).unwrap();
    }
    b
}

fn xstat(p: &Port, name: &str) -> u64 {
    p.xstats().into_iter().find(|(n, _)| n == name).unwrap().1
}

/// Sends and receives `rounds` bursts of 32 over a loopback; returns what was offered for sending, and what came.
fn traffic(p: &Port, pool: &Pool, rounds: usize) -> (u64, u64, Stats) {
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let (mut taken, mut came, mut before) = (0, 0, Stats::default());
    let mut got = Burst::<64>::new();
    for _ in 0..rounds {
        taken += tx.burst(&mut packets(pool, 32)) as u64;
        came += rx.burst(&mut got) as u64;
        got.clear();
        let s = p.stats();
        assert!(s.ipackets >= before.ipackets && s.imissed >= before.imissed && s.ibytes >= before.ibytes);
        before = s;
    }
    (taken, came, p.stats())
}

#[test]
fn what_is_lost_on_the_way_is_counted_once_and_the_sums_hold() {
    let pool = pool("wf-sums");
    let spec = "fault,seed=3,rx_drop=0.1,tx_drop=0.2,nombuf=0.05,rx_corrupt=0.1,tx_full=0.1";
    let p = wrapped(RING, "net_ring50", spec, &pool);
    p.start().unwrap();
    let (taken, came, s) = traffic(&p, &pool, 500);
    assert_eq!(taken, s.opackets + s.oerrors);
    assert_eq!(s.opackets, s.ipackets + s.imissed + s.rx_nombuf);
    assert_eq!((came, came * 64), (s.ipackets, s.ibytes));
    for (name, is) in [("rx_dropped", s.imissed), ("tx_dropped", s.oerrors), ("nombuf", s.rx_nombuf)] {
        assert_eq!(xstat(&p, &format!("fault_{name}")), is);
        assert!(is > 100, "{name}: {is}");
    }
    assert!(xstat(&p, "fault_tx_full") > 20 && xstat(&p, "fault_rx_corrupted") > 500);
    p.close().unwrap();
    assert_eq!(pool.available(), 512);
}

#[test]
fn the_same_seed_and_calls_lose_the_same_packets() {
    let pool = pool("wf-seed");
    let run = |n: u32, seed: u32| {
        let spec = format!("fault,seed={seed},rx_drop=0.3,tx_drop=0.3");
        let p = wrapped(RING, &format!("net_ring5{n}"), &spec, &pool);
        p.start().unwrap();
        let (_, _, s) = traffic(&p, &pool, 50);
        p.close().unwrap();
        (s.ipackets, s.imissed, s.oerrors)
    };
    let first = run(1, 9);
    assert_eq!(first, run(2, 9));
    assert_ne!(first, run(3, 10));
}

#[test]
fn everything_lost_is_an_empty_burst_and_a_full_device_takes_no_error() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("wf-all");
    let p = wrapped(NULL, "net_null50", "fault,rx_drop=1,tx_full=1", &pool);
    p.start().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    assert_eq!(rx.burst(&mut Burst::<32>::new()), 0);
    let mut b = packets(&pool, 32);
    let mut n = 0;
    for _ in 0..10_000 {
        let left = b.len();
        n += tx.burst(&mut b);
        assert!(left == 0 || !b.is_empty(), "a full device takes less than all");
    }
    let s = p.stats();
    assert_eq!((s.ipackets, s.ibytes, s.imissed), (0, 0, 32));
    assert_eq!((s.opackets, s.oerrors), (n as u64, 0));
    drop(b);
    assert_eq!(pool.available(), 512);
}

#[test]
fn a_packet_lost_at_the_end_of_a_burst_keeps_no_other_back() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("wf-last");
    let p = wrapped(RING, "net_ring54", "fault,seed=11,tx_drop=0.5", &pool);
    p.start().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    for _ in 0..200 {
        let before = p.stats();
        assert_eq!(tx.burst(&mut packets(&pool, 3)), 3);
        let lost = p.stats().oerrors - before.oerrors;
        assert_eq!(rx.burst(&mut Burst::<64>::new()) as u64, 3 - lost);
        assert_eq!(p.stats().tx_flush[0] - before.tx_flush[0], u64::from(lost != 3), "one ring a burst");
    }
}

#[test]
fn a_corrupt_packet_differs_in_one_bit() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("wf-bit");
    let p = wrapped(RING, "net_ring55", "fault,rx_corrupt=1", &pool);
    p.start().unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    assert_eq!(tx.burst(&mut packets(&pool, 32)), 32);
    let mut got = Burst::<64>::new();
    assert_eq!(rx.burst(&mut got), 32);
    for (i, m) in got.iter().enumerate() {
        let flipped: u32 = m.data().unwrap().iter().map(|b| (b ^ i as u8).count_ones()).sum();
        assert_eq!(flipped, 1);
    }
}

#[test]
fn a_start_that_fails_may_be_tried_again_and_a_stop_that_fails_stops() {
    let pool = pool("wf-start");
    let p = wrapped(NULL, "net_null51", "fault,start_fail=2,stop_fail=1", &pool);
    for i in 1..=2 {
        let why = p.start().unwrap_err().to_string();
        assert!(why.contains(&format!("start {i} of 2")), "{why}");
        assert_eq!(p.state(), State::Configured);
    }
    p.start().unwrap();
    p.stop().unwrap();
    assert_eq!(p.state(), State::Stopped);
    p.start().unwrap();
    p.close().unwrap();
    assert_eq!(pool.available(), 512);
}

#[test]
fn a_delay_holds_each_call_up() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("wf-delay");
    let p = wrapped(NULL, "net_null52", "fault,delay_us=2000", &pool);
    p.start().unwrap();
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let begun = std::time::Instant::now();
    for _ in 0..5 {
        rx.burst(&mut Burst::<4>::new());
    }
    assert!(begun.elapsed().as_micros() >= 9_000);
}
