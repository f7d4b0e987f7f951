//! A pool that has nothing left.

use crate::bench::*;
use crate::rigs::{Ask, each};
use crate::support::run::wait_until;
use burstline::mbuf::Mbuf;

fn xstat(p: &burstline::port::Port, name: &str) -> u64 {
    p.xstats().into_iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("xstat {name}")).1
}

#[test]
fn an_empty_pool_gives_no_packets_is_counted_and_recovers() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 300, ..Ask::default() });
        if !rig.receives_into_its_pool() {
            // What does not need the pool goes on without it.
            let hoard: Vec<Mbuf> = std::iter::from_fn(|| Mbuf::alloc(&b.pool).ok()).collect();
            assert_eq!(b.receive(300, 32).len(), 300);
            drop(hoard);
            assert_eq!(b.end().rx_nombuf, 0);
            return;
        }
        let mut hoard = Vec::new();
        while let Ok(m) = Mbuf::alloc(&b.pool) {
            hoard.push(m);
        }
        // A driver may hold packets of its own: those it can still fill.
        let mut got = 0;
        let counted = |p: &burstline::port::Port| p.stats().rx_nombuf + xstat(p, "rx_nombuf_waits");
        assert!(
            wait_until(ARRIVES, || {
                let v = rx(b.id(), 0, 32);
                got += v.len();
                hoard.extend(v);
                counted(&b.port) != 0
            }),
            "nobody counted that there was no buffer"
        );
        assert!(rx(b.id(), 0, 32).is_empty());
        hoard.clear();
        let lost = b.port.stats().rx_nombuf as usize;
        let rest = b.receive(300 - got - lost, 32).len();
        assert!(rest > 0, "receive recovers when packets are back");
        let s = b.port.stats();
        assert_eq!(s.ipackets as usize, got + rest);
        b.end();
    });
}

#[test]
fn fewer_packets_than_asked_for_come_while_the_pool_runs_low() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 200, ..Ask::default() });
        let mut hoard: Vec<Mbuf> = Vec::new();
        while let Ok(m) = Mbuf::alloc(&b.pool) {
            hoard.push(m);
        }
        hoard.truncate(hoard.len() - 5);
        let got = b.receive(5, 32);
        assert_eq!(got.len(), 5);
        drop((got, hoard));
        b.end();
    });
}

#[test]
fn a_pool_too_small_for_the_queues_is_refused_with_the_number_needed() {
    each(|rig| {
        let (port, _far) = rig.open(&Ask::default());
        port.configure(&burstline::port::PortConfig::default()).unwrap();
        let tiny = pool(16);
        let (e, text) = errno(port.rx_queue_setup(0, 0, &tiny));
        assert_eq!(e, burstline::base::Errno::NOSPC, "{text}");
        let need: u32 = text.split("needs ").nth(1).unwrap().split(':').next().unwrap().trim().parse().unwrap();
        let (e, _) = errno(port.rx_queue_setup(0, 0, &pool(need - 1)));
        assert_eq!(e, burstline::base::Errno::NOSPC);
        let enough = pool(need);
        port.rx_queue_setup(0, 0, &enough).unwrap();
        port.tx_queue_setup(0, 0).unwrap();
        port.start().unwrap();
        port.close().unwrap();
        assert!(tiny.free().is_ok(), "a refused queue holds no pool");
        assert!(enough.free().is_ok());
    });
}
