//! Threads that burst, and threads that stop, close, read, bind and go at the same time. Counts must add up at the end.

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::Duration;

fn open(args: &str, pool: &Pool) -> Port {
    let p = burstline::eal::attach(&DevArgs::parse(args).unwrap()).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p
}

/// One thread sends into a cable from a group, another receives; a third does `disturb` until time is up.
fn run(name: &str, wrap: Option<&str>, disturb: impl Fn(&Port, &Port, &Pool) + Sync) {
    let pool = Pool::new(PoolConfig { name: name.into(), n: 2048, cache: 64, ..PoolConfig::default() }).unwrap();
    let a = open(&format!("net_ring_{name}a,link={name},size=64"), &pool);
    let b = open(&format!("net_ring_{name}b,link={name},size=64"), &pool);
    if let Some(w) = wrap {
        for p in [&a, &b] {
            p.close().unwrap();
        }
        drop((a, b));
        let mk = |s: &str| {
            let p =
                burstline::eal::attach(&DevArgs::parse(&format!("net_ring_{name}{s},link={name},size=64")).unwrap())
                    .unwrap();
            burstline::port::wrap::parse_and_wrap(&p, w).unwrap();
            p.configure(&PortConfig::default()).unwrap();
            p.rx_queue_setup(0, 0, &pool).unwrap();
            p.tx_queue_setup(0, 0).unwrap();
            p
        };
        return go(mk("c"), mk("d"), pool, disturb);
    }
    go(a, b, pool, disturb)
}

fn go(a: Port, b: Port, pool: Pool, disturb: impl Fn(&Port, &Port, &Pool) + Sync) {
    a.start().unwrap();
    b.start().unwrap();
    let stop = AtomicBool::new(false);
    let (taken, got) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(Relaxed) {
                let slot = ThreadSlot::register().unwrap();
                let mut group = PollGroup::new();
                group.add_rx(&a, 0).unwrap();
                group.add_tx(&a, 0, 8, 100).unwrap();
                let mut rx = a.rx_queue(0).unwrap().bind(&slot);
                let mut tx = a.tx_queue(0).unwrap().bind(&slot);
                let mut hold = Burst::<32>::new();
                for i in 0..5000u32 {
                    if stop.load(Relaxed) {
                        break;
                    }
                    rx.burst(&mut Burst::<32>::new());
                    while hold.len() < 1 + (i % 20) as usize {
                        let Ok(m) = Mbuf::alloc_with(&pool, &[0; 60]) else { break };
                        hold.push(m).unwrap();
                    }
                    taken.fetch_add(tx.burst_more(&mut hold) as u64, Relaxed);
                }
                // Leaves in each of the ways in turn.
                match taken.load(Relaxed) % 3 {
                    0 => drop((tx, rx)),
                    1 => drop((tx.unbind(), rx.unbind())),
                    _ => {
                        drop(group);
                        continue;
                    }
                }
                drop(group);
            }
        });
        s.spawn(|| {
            while !stop.load(Relaxed) {
                let slot = ThreadSlot::register().unwrap();
                let mut rx = b.rx_queue(0).unwrap().bind(&slot);
                for _ in 0..5000 {
                    let mut x = Burst::<32>::new();
                    got.fetch_add(rx.burst(&mut x) as u64, Relaxed);
                }
            }
        });
        s.spawn(|| {
            let until = std::time::Instant::now() + Duration::from_secs(4);
            while std::time::Instant::now() < until {
                disturb(&a, &b, &pool);
            }
            stop.store(true, Relaxed);
        });
    });
    a.stop().unwrap();
    b.stop().unwrap();
    let (sa, sb) = (a.stats(), b.stats());
    assert_eq!(taken.load(Relaxed), sa.opackets + sa.oerrors, "taken = opackets + oerrors: {sa:?}");
    assert_eq!(got.load(Relaxed), sb.ipackets, "{sb:?}");
    a.close().unwrap();
    b.close().unwrap();
    let (sa, sb) = (a.stats(), b.stats());
    assert_eq!(sa.opackets, sb.ipackets + sb.imissed + sb.ierrors + sb.rx_nombuf + sa.imissed, "{sa:?} {sb:?}");
    assert_eq!(pool.available(), 2048);
    let (_, err) = match pool.free() {
        Ok(()) => return,
        Err((p, e)) => (p, e),
    };
    panic!("{err}");
}

#[test]
fn counts_add_up_while_ports_stop_and_start_under_their_threads() {
    run("stop", None, |a, b, _| {
        a.stop().unwrap();
        a.start().unwrap();
        b.stop().unwrap();
        b.start().unwrap();
    });
}

#[test]
fn counts_add_up_while_the_link_flaps() {
    run("flap", None, |a, b, _| {
        a.set_link(false).unwrap();
        b.set_link(false).unwrap();
        a.set_link(true).unwrap();
        b.set_link(true).unwrap();
    });
}

#[test]
fn counts_add_up_under_faults_and_stops() {
    let w = "fault,rx_drop=0.1,tx_drop=0.1,tx_full=0.2,nombuf=0.1,rx_corrupt=0.1";
    run("fault", Some(w), |a, b, _| {
        a.stop().unwrap();
        a.start().unwrap();
        b.set_link(false).unwrap();
        b.set_link(true).unwrap();
        thread::sleep(Duration::from_millis(1));
    });
}

#[test]
fn nothing_is_lost_while_other_threads_look() {
    let last = AtomicU64::new(0);
    run("look", None, |a, b, pool| {
        let s = a.stats();
        assert!(last.swap(s.opackets, Relaxed) <= s.opackets, "opackets fell");
        let i = pool.info();
        assert!(i.available <= i.size);
        a.xstats();
        b.xstats();
        a.info();
        b.take_events();
        burstline::pool::list();
    });
}
