//! Deferred sending over `net_ring`: when a poll group rings what is staged, and under which cause it is counted.

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig, RxPoller, TxPoller};

const NEVER: u32 = 60_000_000;

fn pool(name: &str) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 256, cache: 0, ..PoolConfig::default() }).unwrap()
}

fn open(args: &str, pool: &Pool) -> Port {
    let d = &burstline::pmd::ring::DRIVER;
    let args = DevArgs::parse(args).unwrap();
    let p = Port::attach(&args.name, d, (d.probe)(&args).unwrap()).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

/// A port that sends from a group, its peer that shows what has arrived, and a port that the group polls and that never
/// has anything.
struct Bench<'s> {
    from: Port,
    to: Port,
    quiet: Port,
    tx: TxPoller<'s>,
    arrived: RxPoller<'s>,
    idle: RxPoller<'s>,
    group: PollGroup,
}

fn bench<'s>(n: u16, pool: &Pool, slot: &'s ThreadSlot, fill: u32, deadline_us: u32) -> Bench<'s> {
    let link = format!("link=rg-{n}");
    let from = open(&format!("net_ring{n}1,{link},size=64"), pool);
    let to = open(&format!("net_ring{n}2,{link},size=64"), pool);
    let quiet = open(&format!("net_ring{n}3"), pool);
    let mut group = PollGroup::new();
    group.add_rx(&quiet, 0).unwrap();
    group.add_tx(&from, 0, fill, deadline_us).unwrap();
    Bench {
        tx: from.tx_queue(0).unwrap().bind(slot),
        arrived: to.rx_queue(0).unwrap().bind(slot),
        idle: quiet.rx_queue(0).unwrap().bind(slot),
        from,
        to,
        quiet,
        group,
    }
}

fn packets(pool: &Pool, n: usize) -> Burst<64> {
    let mut b = Burst::new();
    for _ in 0..n {
        b.push(Mbuf::alloc_with(pool, &[0; 64]).unwrap()).unwrap();
    }
    b
}

impl Bench<'_> {
    fn arrived(&mut self) -> usize {
        self.arrived.burst(&mut Burst::<64>::new())
    }

    /// A poll of the group's receive queue, which finds nothing.
    fn lap(&mut self) {
        assert_eq!(self.idle.burst(&mut Burst::<64>::new()), 0);
    }

    fn causes(&self) -> [u64; 5] {
        self.from.stats().tx_flush
    }
}

#[test]
fn a_staged_frame_is_sent_after_one_empty_lap() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-idle");
    let mut b = bench(1, &pool, &slot, 32, NEVER);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 1)), 1);
    assert_eq!((b.arrived(), b.from.stats().opackets), (0, 0), "staged, not announced");
    b.lap();
    assert_eq!((b.arrived(), b.from.stats().opackets), (1, 1));
    b.lap();
    assert_eq!(b.causes(), [0, 0, 1, 0, 0], "an empty lap with nothing staged rings nothing");
}

#[test]
fn a_lap_is_every_started_receive_queue_of_the_group() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-lap");
    let mut b = bench(2, &pool, &slot, 32, NEVER);
    let second = open("net_ring24", &pool);
    b.group.add_rx(&second, 0).unwrap();
    let mut other = second.rx_queue(0).unwrap().bind(&slot);
    let mut feed = second.tx_queue(0).unwrap().bind(&slot);
    let mut got = Burst::<64>::new();
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 1)), 1);
    b.lap();
    assert_eq!(feed.burst(&mut packets(&pool, 1)), 1);
    assert_eq!(other.burst(&mut got), 1);
    b.lap();
    assert_eq!(b.arrived(), 0, "the packet began the lap anew");
    assert_eq!(other.burst(&mut got), 0);
    assert_eq!(b.arrived(), 1);
    // A stopped queue does not hold the lap up, and its null object still ticks.
    second.stop().unwrap();
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 1)), 1);
    b.lap();
    assert_eq!(b.arrived(), 1);
    b.quiet.stop().unwrap();
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 1)), 1);
    b.lap();
    assert_eq!(b.arrived(), 1, "all stopped: each empty call is a lap");
    assert_eq!(b.causes(), [0, 0, 3, 0, 0]);
}

#[test]
fn the_fill_level_rings_once_for_all_that_is_staged() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-fill");
    let mut b = bench(3, &pool, &slot, 16, NEVER);
    for n in [5, 5, 5] {
        assert_eq!(b.tx.burst_more(&mut packets(&pool, n)), n);
        assert_eq!(b.arrived(), 0);
    }
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 3)), 3);
    assert_eq!(b.arrived(), 18);
    assert_eq!(b.causes(), [0, 1, 0, 0, 0]);
    b.lap();
    assert_eq!(b.causes(), [0, 1, 0, 0, 0]);
}

#[test]
fn a_ring_with_no_room_for_all_rings_what_is_staged() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-room");
    let mut b = bench(4, &pool, &slot, 64, NEVER);
    assert_eq!(b.tx.burst(&mut packets(&pool, 10)), 10);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 50)), 50);
    let mut more = packets(&pool, 10);
    assert_eq!((b.tx.burst_more(&mut more), more.len()), (4, 6));
    assert_eq!(b.causes(), [1, 1, 0, 0, 0]);
    assert_eq!(b.tx.burst_more(&mut more), 0);
    assert_eq!(b.causes(), [1, 1, 0, 0, 0], "nothing staged, nothing rung");
    assert_eq!(b.arrived(), 64);
}

#[test]
fn a_burst_rings_what_was_staged_before_it() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-burst");
    let mut b = bench(5, &pool, &slot, 32, NEVER);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 3)), 3);
    assert_eq!(b.tx.burst(&mut packets(&pool, 2)), 2);
    assert_eq!(b.arrived(), 5);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 3)), 3);
    assert_eq!(b.tx.burst(&mut packets(&pool, 0)), 0);
    assert_eq!(b.arrived(), 3, "an empty burst, too");
    assert_eq!(b.causes(), [2, 0, 0, 0, 0]);
}

#[test]
fn a_staged_frame_is_sent_at_its_deadline_though_no_lap_is_empty() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-deadline");
    let mut b = bench(6, &pool, &slot, 32, 1000);
    let mut feed = b.quiet.tx_queue(0).unwrap().bind(&slot);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 1)), 1);
    let begun = std::time::Instant::now();
    let mut got = Burst::<64>::new();
    loop {
        assert_eq!(feed.burst(&mut packets(&pool, 1)), 1);
        assert_eq!(b.idle.burst(&mut got), 1);
        got.clear();
        if b.arrived() == 1 {
            break;
        }
        assert!(begun.elapsed().as_secs() < 10, "no deadline came");
    }
    assert!(begun.elapsed().as_micros() >= 900);
    assert_eq!(b.causes(), [0, 0, 0, 1, 0]);
    let longest = b.from.xstats().into_iter().find(|(n, _)| n == "tx_longest_wait_ns").unwrap().1;
    assert!(longest >= 900_000, "{longest}");
}

#[test]
fn a_group_without_receive_queues_looks_at_its_deadline_in_the_send_call() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-norx");
    let p = open("net_ring71", &pool);
    let mut group = PollGroup::new();
    group.add_tx(&p, 0, 64, 100).unwrap();
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    assert_eq!(tx.burst_more(&mut packets(&pool, 1)), 1);
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(p.stats().tx_flush, [0; 5], "a thread that makes no calls flushes nothing");
    assert_eq!(tx.burst_more(&mut packets(&pool, 1)), 1);
    assert_eq!((p.stats().tx_flush, p.stats().opackets), ([0, 0, 0, 1, 0], 2));
}

#[test]
fn what_is_staged_goes_out_by_an_explicit_flush_at_stop_and_with_the_group() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-explicit");
    let mut b = bench(8, &pool, &slot, 32, NEVER);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 2)), 2);
    assert_eq!((b.tx.flush(), b.tx.flush()), (2, 0));
    assert_eq!(b.arrived(), 2);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 3)), 3);
    assert_eq!(b.group.flush(), 3);
    assert_eq!(b.arrived(), 3);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 4)), 4);
    assert_eq!(b.from.stop().unwrap(), 0);
    assert_eq!(b.arrived(), 4);
    b.from.start().unwrap();
    assert_eq!(b.causes(), [0, 0, 0, 0, 3]);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 5)), 5);
    let Bench { from, to, quiet, mut tx, mut arrived, idle, group } = b;
    drop(group);
    assert_eq!(arrived.burst(&mut Burst::<64>::new()), 5);
    assert_eq!(tx.burst_more(&mut packets(&pool, 6)), 6);
    assert_eq!(arrived.burst(&mut Burst::<64>::new()), 6, "outside a group it is a burst");
    assert_eq!(from.stats().tx_flush, [1, 0, 0, 0, 4]);
    drop((tx, arrived, idle));
    for p in [&from, &to, &quiet] {
        p.close().unwrap();
    }
    assert_eq!(pool.available(), 256);
}

#[test]
fn a_chain_and_a_refused_packet_are_staged_and_counted_as_others_are() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-odd");
    let mut b = bench(9, &pool, &slot, 3, NEVER);
    let odd = || {
        let mut b = packets(&pool, 1);
        b.push(Mbuf::alloc_with(&pool, &[]).unwrap()).unwrap();
        b
    };
    for (arrives, causes) in [(0, [0; 5]), (0, [0; 5]), (3, [0, 1, 0, 0, 0])] {
        assert_eq!(b.tx.burst_more(&mut odd()), 2);
        assert_eq!((b.arrived(), b.causes()), (arrives, causes));
    }
    let mut only = Burst::<64>::new();
    only.push(Mbuf::alloc_with(&pool, &[]).unwrap()).unwrap();
    assert_eq!(b.tx.burst(&mut only), 1);
    assert_eq!(b.causes(), [0, 1, 0, 0, 0], "taken, and nothing to ring");
    assert_eq!(b.from.stats().oerrors, 4);
}

#[test]
fn closing_with_packets_staged_rings_and_counts_them() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rg-close");
    let mut b = bench(10, &pool, &slot, 32, NEVER);
    assert_eq!(b.tx.burst_more(&mut packets(&pool, 7)), 7);
    b.from.close().unwrap();
    assert_eq!((b.from.stats().opackets, b.from.stats().tx_flush), (7, [0, 0, 0, 0, 1]));
    assert_eq!(b.arrived(), 7);
    b.lap();
    b.to.close().unwrap();
    assert_eq!(pool.available(), 256);
}
