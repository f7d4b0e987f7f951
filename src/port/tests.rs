//! What a port does at moments that a program outside cannot hit on purpose.

use super::*;
use crate::driver::DevArgs;
use crate::pool::slot::ThreadSlot;
use crate::pool::{Pool, PoolConfig};

fn ring(name: &str, pool: &Pool) -> Port {
    let d = &crate::pmd::ring::DRIVER;
    let p = Port::attach(name, d, (d.probe)(&DevArgs::parse(name).unwrap()).unwrap()).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

fn pool(name: &str) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 64, cache: 0, ..PoolConfig::default() }).unwrap()
}

#[test]
fn a_first_burst_while_stop_has_begun_gets_nothing_and_returns() {
    let _slot = ThreadSlot::register().unwrap();
    let pool = pool("pt-bind");
    let p = ring("net_ring90", &pool);
    // Stop has said so to the queues, and has not come to the rows yet.
    p.inner().ctl().set_started(false);
    let row = row::row(p.id(), 0).unwrap();
    let mut out = [core::ptr::null_mut(); 4];
    // SAFETY: room for four; nobody else bursts on this port.
    unsafe {
        assert_eq!(row.rx.burst(out.as_mut_ptr(), 4), 0);
        assert_eq!(row.tx.burst(out.as_mut_ptr(), 0), 0);
        assert_eq!(row.tx.burst_more(out.as_mut_ptr(), 0), 0);
    }
    p.inner().ctl().set_started(true);
    p.close().unwrap();
}

#[test]
fn a_queue_that_is_unbound_with_frames_staged_rings_them() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("pt-unbind");
    let p = ring("net_ring91", &pool);
    let mut group = PollGroup::new();
    group.add_tx(&p, 0, 32, 60_000_000).unwrap();
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let mut b = crate::mbuf::Burst::<4>::new();
    b.push(crate::mbuf::Mbuf::alloc_with(&pool, &[0; 64]).unwrap()).unwrap();
    assert_eq!((tx.burst_more(&mut b), p.stats().opackets), (1, 0));
    p.unbind_queue(0).unwrap();
    assert_eq!((p.stats().opackets, p.stats().tx_flush), (1, [0, 0, 0, 0, 1]));
    drop((group, tx));
    p.close().unwrap();
    assert_eq!(pool.available(), 64);
}

#[test]
fn a_stop_that_times_out_leaves_the_other_queues_running_and_the_busy_one_alone() {
    let _slot = ThreadSlot::register().unwrap();
    let pool = pool("pt-busy");
    let p = ring("net_ring92", &pool);
    let row = row::row(p.id(), 0).unwrap();
    let mut out = [core::ptr::null_mut(); 4];
    let m = crate::mbuf::Mbuf::alloc_with(&pool, &[0; 64]).unwrap().into_raw().as_ptr();
    // SAFETY: room for four; one packet of ours; nobody else bursts on this port.
    unsafe {
        assert_eq!(row.rx.burst(out.as_mut_ptr(), 4), 0);
        assert_eq!(row.tx.burst(out.as_mut_ptr(), 0), 0);
        // As a thread that hangs inside a send.
        row.tx.set_inside(true);
        let why = p.stop().unwrap_err();
        assert!(why.to_string().contains("send queue 0"), "{why}");
        assert_eq!(p.state(), State::Started);
        row.tx.set_inside(false);
        out[0] = m;
        assert_eq!(row.tx.burst(out.as_mut_ptr(), 1), 1);
        assert_eq!(row.rx.burst(out.as_mut_ptr(), 4), 1);
        drop(crate::mbuf::Mbuf::from_raw(core::ptr::NonNull::new(out[0]).unwrap()));
    }
    p.stop().unwrap();
    p.close().unwrap();
    assert_eq!(pool.available(), 64);
}

#[test]
fn a_group_goes_though_a_port_of_its_queues_was_closed_before() {
    let pool = pool("pt-closed");
    let p = ring("net_ring93", &pool);
    let mut group = PollGroup::new();
    group.add_rx(&p, 0).unwrap();
    group.add_tx(&p, 0, 32, 1000).unwrap();
    p.close().unwrap();
    let before = poll_group::gone();
    drop(group);
    assert_eq!(poll_group::gone(), before + 1, "its memory is given back");
}

#[test]
fn send_calls_take_no_detour_once_the_group_has_a_receive_queue() {
    let pool = pool("pt-detour");
    let p = ring("net_ring94", &pool);
    let ticks = || p.inner().with_tx(0, |e, _| Ok(e.tick_in_send.load(Relaxed))).unwrap();
    let mut group = PollGroup::new();
    group.add_tx(&p, 0, 32, 1000).unwrap();
    assert!(ticks());
    group.add_rx(&p, 0).unwrap();
    assert!(!ticks());
    drop(group);
    p.close().unwrap();
}
