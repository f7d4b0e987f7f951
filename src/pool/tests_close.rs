//! Closing a pool against the threads that are inside it: the hand-over of a cache from its owner to the closer.

use super::tests::{gone, pool, soon};
use super::*;
use crate::mbuf::{Mbuf, RawMbuf};
use core::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::Barrier;

#[test]
fn a_pool_closes_while_another_thread_allocates_through_its_cache() {
    const ROUNDS: u32 = 300;
    for round in 0..ROUNDS {
        let p = pool("closing", 256, 32);
        let q = p.reference();
        let both = Barrier::new(2);
        std::thread::scope(|s| {
            s.spawn(|| {
                let slot = slot::ThreadSlot::register().unwrap();
                let mut rx = RxPool::new(q.clone());
                rx.bind(slot.id());
                let mut pkts = [core::ptr::null_mut::<RawMbuf>(); 8];
                both.wait();
                for i in 0..200 + round {
                    let n = 1 + i as usize % 8;
                    // SAFETY: on the slot's thread; what is taken is put back or freed, once.
                    unsafe {
                        assert_eq!(rx.take(pkts.as_mut_ptr(), n), n);
                        let half = n / 2;
                        rx.put(pkts.as_ptr(), half);
                        for m in &pkts[half..n] {
                            free_packet(*m);
                        }
                    }
                }
            });
            both.wait();
            for _ in 0..round % 50 {
                core::hint::spin_loop();
            }
            assert!(p.close().is_ok());
        });
        assert_eq!(q.in_use(), 0, "round {round}");
        assert!(q.each_cache().all(|(_, c)| c.len() == 0));
        drop(q);
        assert!(gone("closing"), "round {round}");
    }
}

/// The owner holds nothing but the packets that it frees: the last of them takes the pool, and the cache, from under it.
#[test]
fn the_last_packet_goes_as_the_pool_closes() {
    let made = AtomicU32::new(0);
    for round in 0..500u32 {
        let p = pool("last", 64, 32);
        let both = Barrier::new(2);
        std::thread::scope(|s| {
            let pkts: Vec<Mbuf> = (0..=round % 40).map(|_| Mbuf::alloc(&p).unwrap()).collect();
            s.spawn(|| {
                let _slot = slot::ThreadSlot::register().unwrap();
                both.wait();
                for m in pkts {
                    drop(m);
                    made.fetch_add(1, Relaxed);
                }
            });
            both.wait();
            for _ in 0..round % 100 {
                core::hint::spin_loop();
            }
            drop(p);
        });
        assert!(gone("last"), "round {round}");
    }
    assert!(made.load(Relaxed) > 500);
}

#[test]
fn a_slot_ends_while_its_pool_closes() {
    for round in 0..300 {
        let p = pool("ends", 64, 16);
        let q = p.reference();
        let both = Barrier::new(2);
        std::thread::scope(|s| {
            s.spawn(|| {
                let slot = slot::ThreadSlot::register().unwrap();
                let mut rx = RxPool::new(q.clone());
                rx.bind(slot.id());
                let mut m = core::ptr::null_mut();
                // SAFETY: on the slot's thread, before the slot ends; freed once.
                unsafe {
                    assert_eq!(rx.take(&mut m, 1), 1);
                    both.wait();
                    drop((rx, slot));
                    free_packet(m);
                }
            });
            both.wait();
            for _ in 0..round % 64 {
                core::hint::spin_loop();
            }
            assert!(p.close().is_ok());
        });
        assert_eq!(q.in_use(), 0, "round {round}");
    }
}

#[test]
fn pools_come_and_go_while_slots_do_and_others_look() {
    std::thread::scope(|s| {
        for t in 0..3 {
            s.spawn(move || {
                for i in 0..100 {
                    let _slot = (i % 3 != 0).then(|| slot::ThreadSlot::register().unwrap());
                    let p = pool(&format!("come-{t}"), 64, 16);
                    let m = Mbuf::alloc(&p).unwrap();
                    drop(p);
                    let other = std::thread::spawn(move || {
                        let _slot = slot::ThreadSlot::register().unwrap();
                        drop(m);
                    });
                    assert!(list().iter().all(|i| i.available <= i.size));
                    other.join().unwrap();
                }
            });
        }
    });
    assert!(soon(|| !list().iter().any(|i| i.name.starts_with("come-"))));
}
