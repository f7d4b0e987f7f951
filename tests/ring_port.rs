//! `net_ring` through its ports: loopback, cable, full rings, refused packets, and every order of closing.

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig, RxPoller, TxPoller};

fn pool(name: &str, n: u32) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n, cache: 0, ..PoolConfig::default() }).unwrap()
}

fn open(args: &str, pool: &Pool, config: &PortConfig) -> Port {
    let d = &burstline::pmd::ring::DRIVER;
    let args = DevArgs::parse(args).unwrap();
    let p = Port::attach(&args.name, d, (d.probe)(&args).unwrap()).unwrap();
    p.configure(config).unwrap();
    for q in 0..config.n_rx {
        p.rx_queue_setup(q, 0, pool).unwrap();
    }
    for q in 0..config.n_tx {
        p.tx_queue_setup(q, 0).unwrap();
    }
    p.start().unwrap();
    p
}

fn one(args: &str, pool: &Pool) -> Port {
    open(args, pool, &PortConfig::default())
}

fn ends<'s>(p: &Port, slot: &'s ThreadSlot) -> (RxPoller<'s>, TxPoller<'s>) {
    (p.rx_queue(0).unwrap().bind(slot), p.tx_queue(0).unwrap().bind(slot))
}

/// `n` packets of 64 bytes that carry the numbers from `from` on.
fn numbered(pool: &Pool, from: u32, n: u32) -> Burst<64> {
    let mut b = Burst::new();
    for i in from..from + n {
        let mut bytes = [0u8; 64];
        bytes[..4].copy_from_slice(&i.to_be_bytes());
        b.push(Mbuf::alloc_with(pool, &bytes).unwrap()).unwrap();
    }
    b
}

fn number(m: &Mbuf) -> u32 {
    let mut b = [0; 4];
    m.read(0, &mut b).unwrap();
    u32::from_be_bytes(b)
}

fn numbers(b: &Burst<64>) -> Vec<u32> {
    b.iter().map(number).collect()
}

#[test]
fn a_loopback_receives_on_a_queue_what_was_sent_on_it() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-loop", 256);
    let p = open("net_ring10", &pool, &PortConfig { n_rx: 2, n_tx: 2, ..PortConfig::default() });
    let mut rx: Vec<_> = (0..2).map(|q| p.rx_queue(q).unwrap().bind(&slot)).collect();
    let mut tx: Vec<_> = (0..2).map(|q| p.tx_queue(q).unwrap().bind(&slot)).collect();
    assert_eq!(tx[1].burst(&mut numbered(&pool, 7, 20)), 20);
    let mut b = Burst::<64>::new();
    assert_eq!(rx[0].burst(&mut b), 0);
    assert_eq!(rx[1].burst(&mut b), 20);
    assert_eq!(numbers(&b), (7..27).collect::<Vec<_>>());
    assert!(b.iter().all(|m| m.port() == p.id() && m.flags() == 0));
    let s = p.stats();
    assert_eq!((s.opackets, s.obytes, s.ipackets, s.ibytes), (20, 1280, 20, 1280));
    assert_eq!(s.tx_flush, [1, 0, 0, 0, 0]);
    drop(b);
    drop((rx, tx));
    p.close().unwrap();
    assert_eq!(pool.available(), 256);
}

#[test]
fn a_full_ring_leaves_the_rest_with_the_caller_and_keeps_the_order() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-full", 256);
    // Not a power of two.
    let p = one("net_ring11,size=10", &pool);
    let (mut rx, mut tx) = ends(&p, &slot);
    let mut b = numbered(&pool, 0, 16);
    assert_eq!(tx.burst(&mut b), 10);
    assert_eq!(numbers(&b), (10..16).collect::<Vec<_>>());
    assert_eq!(tx.burst(&mut b), 0);
    assert_eq!(p.stats().tx_flush, [1, 0, 0, 0, 0], "nothing staged, nothing rung");
    let mut got = Burst::<64>::new();
    assert_eq!(rx.burst(&mut got), 10);
    assert_eq!(tx.burst(&mut b), 6);
    assert_eq!(rx.burst(&mut got), 6);
    assert_eq!(numbers(&got), (0..16).collect::<Vec<_>>());
    let s = p.stats();
    assert_eq!((s.opackets, s.ipackets, s.oerrors, s.imissed), (16, 16, 0, 0));
}

#[test]
fn a_packet_that_can_never_be_sent_is_taken_and_counted_and_the_others_keep_their_order() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-odd", 256);
    let p = open("net_ring12,size=3", &pool, &PortConfig { mtu: Some(128), ..PortConfig::default() });
    let (mut rx, mut tx) = ends(&p, &slot);
    let mut b = Burst::<64>::new();
    for i in 0..6u8 {
        // The second and the fourth: too long (150 = 128 + 14 + 8), and empty.
        let len = [64, 151, 64, 0, 150, 64][usize::from(i)];
        b.push(Mbuf::alloc_with(&pool, &vec![i; len]).unwrap()).unwrap();
    }
    assert_eq!(tx.burst(&mut b), 5, "the sixth finds the ring full");
    assert_eq!(p.stats().oerrors, 2);
    let mut got = Burst::<64>::new();
    assert_eq!(rx.burst(&mut got), 3);
    assert_eq!(got.iter().map(|m| m.data().unwrap()[0]).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!((p.stats().opackets, p.stats().obytes), (3, 64 + 64 + 150));
    drop((b, got));
    assert_eq!(pool.available(), 256);
}

#[test]
fn a_chain_is_received_where_the_port_asked_for_scatter_and_else_dropped_and_counted() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-chain", 256);
    let chained = || {
        let mut b = numbered(&pool, 0, 3);
        let mut m = Mbuf::alloc_with(&pool, &[9; 60]).unwrap();
        m.chain(Mbuf::alloc_with(&pool, &[9; 40]).unwrap()).ok().unwrap();
        b.push(m).unwrap();
        b.push(Mbuf::alloc_with(&pool, &[0, 0, 0, 3]).unwrap()).unwrap();
        b
    };
    for scatter in [false, true] {
        let p = open(&format!("net_ring13,size={}", 16), &pool, &PortConfig { scatter, ..PortConfig::default() });
        let (mut rx, mut tx) = ends(&p, &slot);
        assert_eq!(tx.burst(&mut chained()), 5);
        let mut got = Burst::<64>::new();
        let n = rx.burst(&mut got);
        let s = p.stats();
        if scatter {
            assert_eq!((n, s.ipackets, s.ibytes, s.ierrors), (5, 5, 3 * 64 + 100 + 4, 0));
        } else {
            assert_eq!((n, s.ipackets, s.ibytes, s.ierrors), (4, 4, 3 * 64 + 4, 1));
            assert_eq!(numbers(&got), [0, 1, 2, 3]);
        }
        drop((got, rx, tx));
        p.close().unwrap();
        assert_eq!(pool.available(), 256);
    }
}

#[test]
fn packets_wait_through_a_stop_and_nothing_is_sent_on_a_stopped_port() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-stop", 256);
    let p = one("net_ring14", &pool);
    let (mut rx, mut tx) = ends(&p, &slot);
    assert_eq!(tx.burst(&mut numbered(&pool, 0, 5)), 5);
    assert_eq!(p.stop().unwrap(), 0);
    let mut b = numbered(&pool, 5, 1);
    assert_eq!((tx.burst(&mut b), b.len()), (0, 1));
    let mut got = Burst::<64>::new();
    assert_eq!(rx.burst(&mut got), 0);
    p.start().unwrap();
    assert_eq!(tx.burst(&mut b), 1);
    assert_eq!(rx.burst(&mut got), 6);
    assert_eq!(numbers(&got), [0, 1, 2, 3, 4, 5]);
    drop(got);
    assert_eq!(tx.burst(&mut numbered(&pool, 0, 9)), 9);
    p.close().unwrap();
    assert_eq!(p.stats().imissed, 9, "left at the last close");
    assert_eq!(pool.available(), 256);
}

#[test]
fn a_link_that_is_down_takes_frees_and_counts() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-down", 256);
    let (a, b) = (one("net_ring15,link=rp-down", &pool), one("net_ring16,link=rp-down", &pool));
    let (_, mut tx) = ends(&a, &slot);
    let (mut rx, _) = ends(&b, &slot);
    a.take_events();
    b.set_link(false).unwrap();
    assert!(a.take_events().contains(burstline::driver::Event::LINK), "the peer is told");
    assert_eq!(tx.burst(&mut numbered(&pool, 0, 8)), 8);
    assert_eq!((a.stats().oerrors, a.stats().opackets), (8, 0));
    b.set_link(true).unwrap();
    assert_eq!(tx.burst(&mut numbered(&pool, 0, 8)), 8);
    let mut got = Burst::<64>::new();
    assert_eq!(rx.burst(&mut got), 8);
    drop((got, rx));
    b.close().unwrap();
    assert_eq!(tx.burst(&mut numbered(&pool, 0, 8)), 8, "no peer");
    assert_eq!(a.stats().oerrors, 16);
    assert_eq!(pool.available(), 256);
}

/// Sends `total` numbered packets and receives as many; returns the sum of what came.
fn both_ways(p: &Port, pool: &Pool, total: u32) -> u64 {
    let slot = ThreadSlot::register().unwrap();
    let (mut rx, mut tx) = ends(p, &slot);
    let (mut sent, mut seen, mut sum) = (0, 0, 0u64);
    let mut out = Burst::<64>::new();
    let mut got = Burst::<64>::new();
    while seen < total || sent < total || !out.is_empty() {
        if out.is_empty() && sent < total {
            let n = 48.min(total - sent);
            out = numbered(pool, sent, n);
            sent += n;
        }
        tx.burst(&mut out);
        if rx.burst(&mut got) == 0 {
            std::thread::yield_now();
        }
        for m in got.iter() {
            assert_eq!(number(m), seen, "in order");
            seen += 1;
            sum += u64::from(number(m));
        }
        got.clear();
    }
    sum
}

#[test]
fn a_cable_carries_both_ways_on_two_threads_without_loss() {
    const N: u32 = 100_000;
    let pool = pool("rp-pair", 2048);
    let (a, b) = (one("net_ring17,link=rp-pair,size=100", &pool), one("net_ring18,link=rp-pair,size=100", &pool));
    let want = u64::from(N) * u64::from(N - 1) / 2;
    std::thread::scope(|s| {
        let other = s.spawn(|| both_ways(&b, &pool, N));
        assert_eq!(both_ways(&a, &pool, N), want);
        assert_eq!(other.join().unwrap(), want);
    });
    for p in [&a, &b] {
        let s = p.stats();
        assert_eq!((s.opackets, s.ipackets, s.oerrors, s.imissed), (N.into(), N.into(), 0, 0));
    }
    a.close().unwrap();
    b.close().unwrap();
    assert_eq!(pool.available(), 2048);
}

#[test]
fn every_packet_has_a_counter_in_whatever_order_the_ends_close() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-order", 256);
    for sender_first in [false, true] {
        let (a, b) = (one("net_ring19,link=rp-order", &pool), one("net_ring20,link=rp-order", &pool));
        let (_, mut tx) = ends(&a, &slot);
        let (mut rx, _) = ends(&b, &slot);
        assert_eq!(tx.burst(&mut numbered(&pool, 0, 30)), 30);
        let mut got = Burst::<64>::new();
        if sender_first {
            a.close().unwrap();
            assert_eq!(rx.burst(&mut got), 30, "sent is sent");
            b.close().unwrap();
            assert_eq!(b.stats().imissed, 0);
        } else {
            b.close().unwrap();
            assert_eq!(b.stats().imissed, 30);
            a.close().unwrap();
            assert_eq!(a.stats().imissed, 0);
        }
        drop(got);
        assert_eq!(pool.available(), 256);
    }
}

#[test]
fn a_peer_that_closes_under_traffic_leaks_nothing_and_every_packet_is_counted() {
    let pool = pool("rp-race", 1024);
    for _ in 0..20 {
        let (a, b) = (one("net_ring21,link=rp-race,size=64", &pool), one("net_ring22,link=rp-race,size=64", &pool));
        let stop = std::sync::atomic::AtomicBool::new(false);
        let received = std::thread::scope(|s| {
            let sender = s.spawn(|| {
                let slot = ThreadSlot::register().unwrap();
                let (_, mut tx) = ends(&a, &slot);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    tx.burst(&mut numbered(&pool, 0, 16));
                }
            });
            {
                let slot = ThreadSlot::register().unwrap();
                let (mut rx, _) = ends(&b, &slot);
                let mut got = Burst::<64>::new();
                let mut n = 0;
                while n < 500 {
                    n += rx.burst(&mut got);
                    got.clear();
                    std::thread::yield_now();
                }
                b.close().unwrap();
            }
            // Another takes the free seat, and goes again.
            let c = one("net_ring23,link=rp-race,size=64", &pool);
            let slot = ThreadSlot::register().unwrap();
            let (mut rx, _) = ends(&c, &slot);
            let mut got = Burst::<64>::new();
            let mut n = 0;
            while n < 100 {
                n += rx.burst(&mut got);
                got.clear();
                std::thread::yield_now();
            }
            drop(rx);
            c.close().unwrap();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            sender.join().unwrap();
            let (b, c) = (b.stats(), c.stats());
            b.ipackets + b.imissed + c.ipackets + c.imissed
        });
        a.close().unwrap();
        assert_eq!(a.stats().opackets, received + a.stats().imissed);
        assert_eq!(pool.available(), 1024);
    }
}

#[test]
fn a_program_puts_packets_into_rings_of_its_own() {
    use burstline::ring::{Ring, Sync};
    use std::sync::Arc;
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-given", 64);
    let ring = |n| Arc::new(Ring::new(n, 16, Sync::Single, Sync::Single, false).unwrap());
    let (to, from) = (ring("to"), ring("from"));
    // SAFETY: only packets are put in, and this thread alone is at the rings' other sides.
    let dev = unsafe { burstline::pmd::ring::from_rings("mine", vec![to.clone()], vec![from.clone()]) }.unwrap();
    let p = Port::attach("mine", &burstline::pmd::ring::DRIVER, dev).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, &pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    let (mut rx, mut tx) = ends(&p, &slot);
    let m = Mbuf::alloc_with(&pool, &[1; 64]).unwrap().into_raw().as_ptr().cast::<()>();
    assert_eq!(to.enqueue_bulk(&[m]), 1);
    let mut b = Burst::<64>::new();
    assert_eq!(rx.burst(&mut b), 1);
    assert_eq!(tx.burst(&mut b), 1);
    assert_eq!(from.len(), 1);
    drop((rx, tx, to, from));
    p.close().unwrap();
    assert_eq!((p.stats().imissed, pool.available()), (1, 64));
}

#[test]
fn two_devices_over_the_same_rings_crossed_are_a_cable() {
    use burstline::ring::{Ring, Sync};
    use std::sync::Arc;
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("rp-crossed", 64);
    let ring = |n| Arc::new(Ring::new(n, 10, Sync::Single, Sync::Single, true).unwrap());
    let (ab, ba) = (ring("ab"), ring("ba"));
    let port = |name: &str, rx: &Arc<Ring>, tx: &Arc<Ring>| {
        // SAFETY: the rings are used by these two devices alone, crossed.
        let dev = unsafe { burstline::pmd::ring::from_rings(name, vec![rx.clone()], vec![tx.clone()]) }.unwrap();
        let p = Port::attach(name, &burstline::pmd::ring::DRIVER, dev).unwrap();
        p.configure(&PortConfig::default()).unwrap();
        p.rx_queue_setup(0, 0, &pool).unwrap();
        p.tx_queue_setup(0, 0).unwrap();
        p.start().unwrap();
        p
    };
    let (a, b) = (port("crossed0", &ba, &ab), port("crossed1", &ab, &ba));
    drop((ab, ba));
    let ((mut arx, mut atx), (mut brx, mut btx)) = (ends(&a, &slot), ends(&b, &slot));
    let mut got = Burst::<64>::new();
    assert_eq!(atx.burst(&mut numbered(&pool, 0, 8)), 8);
    assert_eq!(brx.burst(&mut got), 8);
    assert_eq!(btx.burst(&mut got), 8);
    assert_eq!(arx.burst(&mut got), 8);
    assert!(numbers(&got) == (0..8).collect::<Vec<_>>() && got.iter().all(|m| m.port() == a.id()));
    assert_eq!(atx.burst(&mut got), 8);
    drop((arx, atx, brx, btx));
    a.close().unwrap();
    b.close().unwrap();
    assert_eq!((a.stats().imissed, b.stats().imissed), (0, 8));
    assert_eq!(pool.available(), 64);
}
