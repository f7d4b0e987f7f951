//! A poll group whose receive port was closed: the thread that still polls it still rings.

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig};
use std::time::Duration;

fn pool(name: &str, cache: u32) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 1024, cache, ..PoolConfig::default() }).unwrap()
}

fn open(args: &str, pool: &Pool, n_tx: u16) -> Port {
    let p = burstline::eal::attach(&DevArgs::parse(args).unwrap()).unwrap();
    p.configure(&PortConfig { n_tx, ..PortConfig::default() }).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    for q in 0..n_tx {
        p.tx_queue_setup(q, 0).unwrap();
    }
    p.start().unwrap();
    p
}

fn packets(pool: &Pool, n: usize) -> Burst<64> {
    let mut b = Burst::new();
    for _ in 0..n {
        b.push(Mbuf::alloc_with(pool, &[0; 64]).unwrap()).unwrap();
    }
    b
}

#[test]
fn what_is_staged_leaves_by_its_deadline_when_the_groups_receive_port_was_closed() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("bl-closed-rx", 0);
    let (quiet, out) = (open("net_ring_cr0", &pool, 1), open("net_ring_cr1", &pool, 1));
    let mut group = PollGroup::new();
    group.add_rx(&quiet, 0).unwrap();
    group.add_tx(&out, 0, 32, 1000).unwrap();
    let mut idle = quiet.rx_queue(0).unwrap().bind(&slot);
    let mut tx = out.tx_queue(0).unwrap().bind(&slot);
    quiet.close().unwrap();
    assert_eq!(tx.burst_more(&mut packets(&pool, 1)), 1);
    for _ in 0..20 {
        idle.burst(&mut Burst::<64>::new());
        tx.burst_more(&mut Burst::<64>::new());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(out.stats().opackets, 1, "20 ms after a deadline of 1 ms");
    drop(group);
    drop(tx);
    out.close().unwrap();
}

#[test]
fn a_queue_that_moves_to_another_thread_leaves_its_group() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("bl-moves", 0);
    let p = open("net_ring_mv0", &pool, 1);
    let mut group = PollGroup::new();
    group.add_rx(&p, 0).unwrap();
    group.add_tx(&p, 0, 32, 60_000_000).unwrap();
    let (rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    assert_eq!(tx.burst_more(&mut packets(&pool, 3)), 3);
    assert_eq!(p.stats().opackets, 0, "staged");
    let (rx, tx) = (rx.unbind(), tx.unbind());
    assert_eq!(p.stats().opackets, 3, "rung as it left");
    std::thread::scope(|s| {
        s.spawn(|| {
            let slot = ThreadSlot::register().unwrap();
            let (mut rx, mut tx) = (rx.bind(&slot), tx.bind(&slot));
            assert_eq!(tx.burst_more(&mut packets(&pool, 2)), 2);
            assert_eq!(p.stats().opackets, 5, "outside a group, more follows changes nothing");
            let mut b = Burst::<64>::new();
            assert_eq!(rx.burst(&mut b), 5);
        });
    });
    // In again, here: it is nobody else's.
    group.add_tx(&p, 0, 32, 60_000_000).unwrap();
    drop(group);
    p.close().unwrap();
    assert!(pool.free().is_ok());
}

#[test]
fn a_port_of_a_closed_ports_number_does_not_tick_the_old_group() {
    let pool = pool("bl-renumber", 0);
    let (quiet, out) = (open("net_ring_rn0", &pool, 1), open("net_ring_rn1", &pool, 1));
    let id = quiet.id();
    let mut group = PollGroup::new();
    group.add_rx(&quiet, 0).unwrap();
    group.add_tx(&out, 0, 32, 60_000_000).unwrap();
    quiet.close().unwrap();
    drop(quiet);
    let slot = ThreadSlot::register().unwrap();
    let mut tx = out.tx_queue(0).unwrap().bind(&slot);
    assert_eq!(tx.burst_more(&mut packets(&pool, 1)), 1);
    let next = open("net_ring_rn2", &pool, 1);
    assert_eq!(next.id(), id, "the number is free again");
    let mut rx = next.rx_queue(0).unwrap().bind(&slot);
    rx.burst(&mut Burst::<64>::new());
    assert_eq!(out.stats().opackets, 0, "another port's call");
    assert_eq!(group.flush(), 1);
    drop((group, rx, tx));
    next.close().unwrap();
    out.close().unwrap();
}
