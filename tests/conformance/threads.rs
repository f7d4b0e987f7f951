//! Whose a queue is, and what other threads may do meanwhile.

use crate::bench::*;
use crate::child::{alone, is_child};
use crate::refdev;
use crate::rigs::{Ask, RefRig, Rig, each};
use crate::support::run::{loops, wait_until};
use burstline::base::Errno;
use burstline::mbuf::Burst;
use burstline::pool::slot::{self, ThreadSlot};
use burstline::port::Port;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// One thread bursts both ways, this one stops and starts; at the end everything adds up.
fn stop_during_traffic(rig: &dyn Rig, times: usize, register: bool) {
    let mut b = Bench::started(rig, &Ask { offer: 2000, ..Ask::default() });
    let (end, took, got) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut undrained = 0;
    std::thread::scope(|s| {
        s.spawn(|| {
            let _slot = register.then(|| ThreadSlot::register().unwrap());
            let mut v = Vec::new();
            while !end.load(Acquire) {
                let new = rx(b.id(), 0, 32);
                got.fetch_add(new.len() as u64, Relaxed);
                v.extend(new);
                if v.len() < 8 {
                    v.extend((0..8).map(|i| packet(&b.pool, i, 64)));
                }
                v.truncate(64);
                took.fetch_add(tx(b.id(), 0, &mut v) as u64, Relaxed);
                took.fetch_add(tx_more(b.id(), 0, &mut v) as u64, Relaxed);
                tx_flush(b.id(), 0);
            }
        });
        for _ in 0..times {
            std::thread::sleep(Duration::from_micros(300));
            undrained += b.port.stop().expect("stop");
            let s = b.port.stats();
            std::thread::sleep(Duration::from_micros(100));
            assert_eq!(b.port.stats(), s, "nothing moves on a stopped port");
            b.port.start().unwrap();
        }
        end.store(true, Release);
    });
    b.port.stop().unwrap();
    let s = b.port.stats();
    assert_eq!(took.load(Relaxed), s.opackets + s.oerrors, "taken = sent + errors");
    assert_eq!(got.load(Relaxed), s.ipackets, "received = counted");
    assert_eq!(undrained, 0);
    if let Some(offered) = b.far.offered() {
        let starts = if rig.starts_over() { times as u64 + 1 } else { 1 };
        assert!(s.ipackets + s.imissed + s.ierrors + s.rx_nombuf <= starts * offered);
    }
    if let Some(out) = b.left(s.opackets as usize) {
        assert_eq!(out.len() as u64, s.opackets, "what was counted as sent left");
    }
    b.end();
}

#[test]
fn stop_from_another_thread_during_traffic_loses_nothing() {
    each(|rig| {
        stop_during_traffic(rig, loops(20, 200), true);
        stop_during_traffic(rig, 5, false);
    });
}

#[test]
fn stop_works_where_membarrier_is_refused() {
    if alone("threads::stop_works_where_membarrier_is_refused") {
        return;
    }
    burstline::base::cpu::membarrier_refuse_for_test();
    assert!(!burstline::base::cpu::membarrier_init());
    each(|rig| stop_during_traffic(rig, loops(20, 200), true));
}

#[test]
fn a_pool_is_closed_from_another_thread_during_traffic() {
    each(|rig| {
        for _ in 0..loops(5, 100) {
            let b = Bench::plain(rig);
            let other = pool_with(512, 64);
            let name = other.name().to_string();
            let end = AtomicBool::new(false);
            let (to, from) = std::sync::mpsc::sync_channel(4);
            std::thread::scope(|s| {
                let (b, end) = (&b, &end);
                s.spawn(move || {
                    let _slot = ThreadSlot::register().unwrap();
                    while let Ok(mut v) = from.recv_timeout(Duration::from_secs(5)) {
                        while !Vec::is_empty(&v) {
                            tx(b.id(), 0, &mut v);
                        }
                        if end.load(Relaxed) {
                            break;
                        }
                    }
                });
                for i in 0..20 {
                    let _ = to.send(packets(&other, 10 + i % 3, 64));
                    std::thread::yield_now();
                }
                let last = packets(&other, 8, 64);
                assert!(other.close().is_ok(), "packets and caches are in use, and the handle ends all the same");
                end.store(true, Relaxed);
                let _ = to.send(last);
                drop(to);
            });
            b.end();
            let gone = wait_until(ARRIVES, || !burstline::pool::list().iter().any(|i| i.name == name));
            assert!(gone, "the memory went with its last packet");
        }
    });
}

#[test]
fn a_queues_handle_is_handed_out_once() {
    each(|rig| {
        let b = Bench::plain(rig);
        let (r, t) = (b.port.rx_queue(0).unwrap(), b.port.tx_queue(0).unwrap());
        let (e, text) = errno(b.port.rx_queue(0));
        assert!(e == Errno::BUSY && text.contains("queue 0"), "{text}");
        assert_eq!(errno(b.port.tx_queue(0)).0, Errno::BUSY);
        b.port.stop().unwrap();
        assert_eq!(errno(b.port.configure(&Default::default())).0, Errno::BUSY, "handles are out");
        assert_eq!(errno(b.port.rx_queue_setup(0, 0, &b.pool)).0, Errno::BUSY);
        assert_eq!(errno(b.port.tx_queue_setup(0, 0)).0, Errno::BUSY);
        drop((r, t));
        let _ = (b.port.rx_queue(0).unwrap(), b.port.tx_queue(0).unwrap());
        assert_eq!(errno(b.port.rx_queue(77)).0, Errno::INVAL);
        b.end();
    });
}

#[test]
fn a_queue_moves_to_another_thread_by_unbind_and_bind() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 64, ..Ask::default() });
        let here = ThreadSlot::register().unwrap();
        let mut r = b.port.rx_queue(0).unwrap().bind(&here);
        let mut t = b.port.tx_queue(0).unwrap().bind(&here);
        let mut burst = Burst::<32>::new();
        let pass = |r: &mut burstline::port::RxPoller, t: &mut burstline::port::TxPoller, burst: &mut Burst<32>| {
            assert!(wait_until(ARRIVES, || r.burst(burst) != 0));
            while !burst.is_empty() {
                t.burst(burst);
            }
        };
        pass(&mut r, &mut t, &mut burst);
        let (r, t) = (r.unbind(), t.unbind());
        let (r, t) = std::thread::scope(|s| {
            let over_there = s.spawn(move || {
                let there = ThreadSlot::register().unwrap();
                let (mut r, mut t, mut burst) = (r.bind(&there), t.bind(&there), Burst::<32>::new());
                let mut v = Vec::new();
                assert!(wait_until(ARRIVES, || r.burst(&mut burst) != 0));
                while let Some(m) = burst.pop_front() {
                    v.push(m);
                }
                v.into_iter().for_each(|m| assert!(burst.push(m).is_ok()));
                while !burst.is_empty() {
                    t.burst(&mut burst);
                }
                (r.unbind(), t.unbind())
            });
            over_there.join().unwrap()
        });
        drop((r.bind(&here), t.bind(&here)));
        b.end();
    });
}

#[test]
fn a_thread_without_a_slot_works_through_the_shared_ring() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 64, ..Ask::default() });
        assert_eq!(slot::current(), slot::NO_SLOT);
        let got = b.receive(64, 32);
        assert_eq!(got.len(), 64);
        let mut got = got;
        assert_eq!(b.send(&mut got), 64);
        assert!(b.pool.info().caches.is_empty(), "no cache was made for it");
        b.end();
    });
}

#[test]
fn the_end_of_a_threads_slot_unbinds_its_queues_and_gives_its_caches_back() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 64, ..Ask::default() });
        std::thread::scope(|s| {
            s.spawn(|| {
                // Ends with the thread, without a word.
                slot::register_current().unwrap();
                let mut v = b.receive(32, 16);
                assert_eq!(v.len(), 32);
                b.send(&mut v);
            })
            .join()
            .unwrap();
        });
        assert!(b.pool.info().caches.iter().all(|c| c.len == 0), "caches were given back");
        // This thread takes over, with another slot or with none.
        let mut v = b.receive(16, 16);
        assert_eq!(v.len(), 16);
        b.send(&mut v);
        b.end();
    });
}

#[test]
fn what_is_staged_when_a_thread_ends_is_sent() {
    each(|rig| {
        let b = Bench::plain(rig);
        if b.port.info().doorbell != burstline::driver::Doorbell::None {
            let mut g = burstline::port::PollGroup::new();
            g.add_tx(&b.port, 0, 100, 60_000_000).unwrap();
            std::thread::scope(|s| {
                s.spawn(|| {
                    slot::register_current().unwrap();
                    assert_eq!(tx_more(b.id(), 0, &mut packets(&b.pool, 3, 64)), 3);
                })
                .join()
                .unwrap();
            });
            assert_eq!(b.port.stats().opackets, 3, "unbinding rings");
        }
        b.end();
    });
}

/// A port whose queue 0 has a thread stuck inside; `f` runs meanwhile.
fn with_a_stuck_thread(f: impl FnOnce(&Port, &refdev::Far, &burstline::pool::Pool)) {
    let b = Bench::started(&RefRig, &Ask { n_rx: 2, n_tx: 2, ..Ask::default() });
    let far = b.far.reference().unwrap();
    // Bound first, so that what blocks is the driver.
    std::thread::scope(|s| {
        s.spawn(|| {
            drop(rx(b.id(), 0, 4));
            far.stuck.store(0, Release);
            drop(rx(b.id(), 0, 4));
        });
        assert!(wait_until(ARRIVES, || far.inside.load(Acquire)));
        f(&b.port, far, &b.pool);
        far.stuck.store(refdev::NO_QUEUE, Release);
    });
    b.end();
}

#[test]
fn stop_and_close_give_up_within_the_limit_when_a_thread_stays_inside_and_nothing_is_touched() {
    with_a_stuck_thread(|port, far, pool| {
        far.offer(1, frame(1, 64));
        let start = Instant::now();
        let (e, text) = errno(port.stop());
        assert_eq!(e, Errno::BUSY);
        assert!(text.contains("receive queue 0"), "{text}");
        let took = start.elapsed();
        assert!(took >= burstline::port::STOP_LIMIT && took < 3 * burstline::port::STOP_LIMIT, "{took:?}");
        assert_eq!(port.state(), burstline::port::State::Started);
        // The other queues go on.
        assert_eq!(rx(port.id(), 1, 8).len(), 1);
        for q in 0..2 {
            assert_eq!(tx(port.id(), q, &mut packets(pool, 3, 64)), 3);
        }
        assert_eq!(errno(port.close()).0, Errno::BUSY);
        assert_eq!(port.state(), burstline::port::State::Started);
        far.stuck.store(refdev::NO_QUEUE, Release);
        assert_eq!(port.stop().unwrap(), 0, "and the next try works");
    });
}

#[test]
fn the_first_burst_of_a_queue_while_stop_waits_for_another_gives_nothing() {
    with_a_stuck_thread(|port, _, pool| {
        std::thread::scope(|s| {
            let stopper = s.spawn(|| errno(port.stop()).0);
            std::thread::sleep(Duration::from_millis(300));
            // Queue 1 was never bound: its row leads to the bind stub while stop waits for queue 0.
            for _ in 0..100 {
                assert!(rx(port.id(), 1, 4).is_empty());
                let mut v = packets(pool, 1, 64);
                tx(port.id(), 1, &mut v);
                v = packets(pool, 1, 64);
                tx_more(port.id(), 1, &mut v);
                tx_flush(port.id(), 1);
            }
            assert_eq!(stopper.join().unwrap(), Errno::BUSY);
        });
        assert_eq!(tx(port.id(), 1, &mut packets(pool, 3, 64)), 3, "all as before");
    });
}

#[test]
fn the_use_of_a_queue_by_a_second_thread_is_reported_and_does_nothing_in_debug_mode() {
    if alone("threads::the_use_of_a_queue_by_a_second_thread_is_reported_and_does_nothing_in_debug_mode") {
        return;
    }
    assert!(is_child());
    static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    struct Log;
    impl log::Log for Log {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }
        fn log(&self, r: &log::Record) {
            SAID.lock().unwrap().push(r.args().to_string());
        }
        fn flush(&self) {}
    }
    static LOG: Log = Log;
    let _ = log::set_logger(&LOG);
    log::set_max_level(log::LevelFilter::Warn);
    burstline::port::set_checks(true);
    each(|rig| {
        SAID.lock().unwrap().clear();
        let b = Bench::started(rig, &Ask { offer: 32, ..Ask::default() });
        assert_eq!(b.receive(8, 8).len(), 8);
        assert_eq!(b.send(&mut packets(&b.pool, 2, 64)), 2);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut v = packets(&b.pool, 2, 64);
                for _ in 0..3 {
                    assert!(rx(b.id(), 0, 8).is_empty());
                    assert_eq!(tx(b.id(), 0, &mut v) + tx_more(b.id(), 0, &mut v), 0);
                    assert_eq!(tx_flush(b.id(), 0), 0);
                }
            });
        });
        let said = SAID.lock().unwrap().clone();
        let of = |what: &str| said.iter().filter(|l| l.contains(what)).count();
        assert_eq!((of("receive queue 0"), of("send queue 0")), (1, 1), "once each: {said:?}");
        let s = b.port.stats();
        assert_eq!((s.ipackets, s.opackets), (8, 2));
        assert_eq!(b.receive(8, 8).len(), 8, "its owner goes on");
        b.port.unbind_queue(0).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| {
                assert_eq!(b.receive(8, 8).len(), 8, "unbound, it is the next one's");
                b.port.unbind_queue(0).unwrap();
            });
        });
        b.end();
    });
}

#[test]
fn threads_that_open_and_close_ports_do_not_meet() {
    each(|rig| {
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..loops(5, 100) {
                        let b = Bench::plain(rig);
                        b.send(&mut packets(&b.pool, 4, 64));
                        b.end();
                    }
                });
            }
        });
    });
}
