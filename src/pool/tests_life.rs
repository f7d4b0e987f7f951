//! Who keeps a pool, and what happens as it is made and ended.

use super::tests::{gone, pool, soon};
use super::*;
use crate::base::Errno;
use crate::mbuf::Mbuf;
use crate::mem::PagePolicy;
use core::sync::atomic::{AtomicBool, Ordering::*};

fn tried(c: PoolConfig) -> crate::base::Error {
    Pool::new(c).err().expect("refused")
}

#[test]
fn a_room_below_the_headroom_is_refused_with_both_numbers() {
    for room in [1, u32::from(HEADROOM) - 1, HEADROOM.into(), u32::from(HEADROOM) + 63, 65_536, u32::MAX] {
        let e = tried(PoolConfig { name: "b9".into(), n: 8, room, cache: 0, ..PoolConfig::default() });
        assert_eq!(e.errno(), Errno::INVAL);
        assert!(e.text().contains(&room.to_string()) && e.text().contains("256"), "{e}");
    }
    for room in [320, 65_535] {
        let c = PoolConfig { name: format!("b9-{room}"), n: 8, room, cache: 0, ..PoolConfig::default() };
        let p = Pool::new(c).unwrap();
        assert_eq!(u32::from(p.inner().data_room()), room - u32::from(HEADROOM));
    }
}

#[test]
fn limits_are_named() {
    let c = |name: &str, n, cache| PoolConfig { name: name.into(), n, cache, ..PoolConfig::default() };
    for (c, want) in [
        (c("", 8, 0), "1 to 63"),
        (c(&"x".repeat(64), 8, 0), "1 to 63"),
        (c("n", 0, 0), "1 to 67108864"),
        (c("n", u32::MAX, 0), "1 to 67108864"),
        (c("n", 8192, 513), "512"),
        (c("n", 8192, u32::MAX), "512"),
        (c("n", 383, 256), "384"),
    ] {
        let e = tried(c);
        assert!(e.errno() == Errno::INVAL && e.text().contains(want), "{e}");
    }
    assert!(tried(c("a\0b", 8, 0)).text().contains("zero byte"));
}

#[test]
fn a_name_is_taken_while_its_pool_is_open_and_no_longer() {
    let p = pool("name", 8, 0);
    let e = tried(PoolConfig { name: "name".into(), n: 8, cache: 0, ..PoolConfig::default() });
    assert!(e.errno() == Errno::EXIST && e.text().contains("'name'"), "{e}");
    let m = Mbuf::alloc(&p).unwrap();
    drop(p);
    let again = pool("name", 8, 0);
    assert_eq!(list().iter().filter(|i| i.name == "name").count(), 2);
    drop(m);
    assert!(soon(|| list().iter().filter(|i| i.name == "name").count() == 1));
    assert_eq!(again.available(), 8);
}

/// Mappings and descriptors of ours with this name.
fn traces(name: &str) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let fds = std::fs::read_dir("/proc/self/fd").unwrap();
    let fds = fds.filter_map(|f| std::fs::read_link(f.ok()?.path()).ok());
    maps.lines().filter(|l| l.contains(name)).count() + fds.filter(|f| f.to_string_lossy().contains(name)).count()
}

#[test]
fn a_pool_that_cannot_be_made_leaves_nothing() {
    let (n, room) = (1 << 26, 65_535);
    for pages in [PagePolicy::default(), PagePolicy::NO_HUGE] {
        let e = tried(PoolConfig { name: "absurd".into(), n, room, pages, ..PoolConfig::default() });
        assert!(e.errno() == Errno::NOMEM && e.text().contains("'absurd': rooms"), "{e}");
    }
    let kept = pool("kept", 8, 0);
    assert_ne!(traces("burstline-kept"), 0);
    tried(PoolConfig { name: "kept".into(), n: 4096, ..PoolConfig::default() });
    assert!(soon(|| (traces("burstline-absurd"), traces("burstline-kept")) == (0, 2)));
    drop(kept);
    assert!(soon(|| traces("burstline-kept") == 0));
    assert!(gone("absurd"));
}

#[test]
fn free_says_how_many_packets_and_queues_hold_it_and_changes_nothing() {
    let p = pool("busy", 8, 0);
    let (a, b, q) = (Mbuf::alloc(&p).unwrap(), Mbuf::alloc(&p).unwrap(), p.reference());
    let (p, e) = p.free().unwrap_err();
    assert_eq!(e.errno(), Errno::BUSY);
    assert!(e.text().contains("2 packets are out and 1 queues"), "{e}");
    drop((a, b));
    let (p, e) = p.free().unwrap_err();
    assert!(e.text().contains("0 packets are out and 1 queues"), "{e}");
    drop(q);
    assert_eq!(Mbuf::alloc(&p).map(|_| p.available()).unwrap(), 7);
    assert!(p.free().is_ok());
}

#[test]
fn a_clone_keeps_the_pools_of_bytes_and_header() {
    let (p, h) = (pool("bytes", 8, 0), pool("heads", 8, 0));
    let m = Mbuf::alloc_with(&p, b"bytes").unwrap();
    let c = m.clone(&h).unwrap();
    drop(m);
    drop((p, h));
    let alive = || list().iter().filter(|i| i.name == "bytes" || i.name == "heads").count();
    assert_eq!((alive(), c.to_vec()), (2, b"bytes".to_vec()));
    std::thread::spawn(move || drop(c)).join().unwrap();
    assert!(soon(|| (alive(), traces("burstline-bytes")) == (0, 0)));
}

#[test]
fn a_packet_outlives_a_pool_whose_caches_are_in_use() {
    let slot = slot::ThreadSlot::register().unwrap();
    let p = pool("cached", 64, 16);
    let m = Mbuf::alloc(&p).unwrap();
    drop((0..20).map(|_| Mbuf::alloc(&p).unwrap()).collect::<Vec<_>>());
    assert_ne!(p.info().caches[0].len, 0);
    drop(p);
    let info = list().into_iter().find(|i| i.name == "cached").unwrap();
    assert_eq!((info.in_use, info.caches[0].len, info.caches[0].capacity), (1, 0, 0));
    let other = std::thread::spawn(move || drop(m));
    other.join().unwrap();
    assert!(gone("cached"));
    drop(slot);
}

#[test]
fn a_queue_keeps_a_closed_pool_and_works_on_through_the_ring() {
    let slot = slot::ThreadSlot::register().unwrap();
    let p = pool("queue", 64, 16);
    let mut rx = RxPool::new(p.reference());
    rx.bind(slot.id());
    let mut tx = TxRecycler::default();
    tx.bind(slot.id());
    let mut pkts = [core::ptr::null_mut(); 8];
    // SAFETY: on the slot's thread; each packet taken is freed once.
    unsafe {
        assert_eq!(rx.take(pkts.as_mut_ptr(), 8), 8);
        tx.free(pkts.as_ptr(), 8);
        assert!(p.close().is_ok());
        assert_eq!(rx.take(pkts.as_mut_ptr(), 8), 8);
        assert_eq!(rx.pool().in_use(), 8);
        rx.put(pkts.as_ptr(), 4);
        rx.put(pkts.as_ptr(), 0);
        tx.free(pkts.as_ptr().add(4), 4);
        tx.free(pkts.as_ptr(), 0);
    }
    assert_eq!(rx.pool().in_use(), 0);
    drop(rx);
    assert!(list().iter().any(|i| i.name == "queue"), "the recycler still holds the memory");
    drop(tx);
    assert!(gone("queue"));
}

#[test]
fn a_recycler_frees_packets_of_several_pools_shared_and_chained_ones_too() {
    let slot = slot::ThreadSlot::register().unwrap();
    let (a, b) = (pool("several-a", 64, 16), pool("several-b", 64, 16));
    let mut tx = TxRecycler::default();
    tx.bind(slot.id());
    for round in 0..20 {
        let mut m = Mbuf::alloc_with(&a, b"1").unwrap();
        let c = m.clone(&b).unwrap();
        m.chain(Mbuf::alloc(&b).unwrap()).map_err(|e| e.1).unwrap();
        let mut pkts = vec![m, c, Mbuf::alloc(if round % 2 == 0 { &a } else { &b }).unwrap()];
        pkts.rotate_left(round % 3);
        let raw: Vec<_> = pkts.into_iter().map(|m| m.into_raw().as_ptr()).collect();
        // SAFETY: on the slot's thread; the packets are given away.
        unsafe { tx.free(raw.as_ptr(), raw.len()) };
        assert_eq!((a.available(), b.available()), (64, 64));
    }
}

#[test]
fn a_look_from_another_thread_is_not_taken_for_a_packet() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(Relaxed) {
                let _ = list();
            }
        });
        let p = pool("glance", 8, 0);
        for _ in 0..20_000 {
            assert_eq!(p.available(), 8);
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn the_end_of_a_slot_gives_its_caches_back() {
    let p = pool("slot", 100, 32);
    let held = std::thread::scope(|s| {
        let t = s.spawn(|| {
            slot::register_current().unwrap();
            drop((0..30).map(|_| Mbuf::alloc(&p).unwrap()).collect::<Vec<_>>());
            p.info().caches.iter().map(|c| c.len).sum::<u32>()
        });
        t.join().unwrap()
    });
    assert_ne!(held, 0);
    assert_eq!(p.info().caches.iter().map(|c| c.len).sum::<u32>(), 0);
    // All of them can be had by a thread without a slot.
    let all: Vec<_> = (0..100).map(|_| Mbuf::alloc(&p).unwrap()).collect();
    assert_eq!(p.available(), 0);
    drop(all);
    assert!(p.free().is_ok());
}

#[test]
fn packets_freed_on_threads_with_and_without_a_slot_all_come_back() {
    let p = pool("both", 256, 32);
    let (send, take) = std::sync::mpsc::sync_channel::<Mbuf>(16);
    let take = std::sync::Mutex::new(take);
    std::thread::scope(|s| {
        let (p, take) = (&p, &take);
        for with in [true, false] {
            s.spawn(move || {
                let _slot = with.then(|| slot::ThreadSlot::register().unwrap());
                loop {
                    let got = take.lock().unwrap().recv();
                    let Ok(m) = got else { break };
                    drop(m);
                }
            });
        }
        let _slot = slot::ThreadSlot::register().unwrap();
        for _ in 0..4000 {
            if let Ok(m) = Mbuf::alloc(p) {
                send.send(m).unwrap();
            }
        }
        drop(send);
    });
    assert_eq!(p.available(), 256);
    assert!(p.free().is_ok());
}

#[test]
fn a_pool_is_looked_at_while_threads_use_it() {
    let p = pool("looked-at", 512, 64);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for with in [true, true, false] {
            let (p, stop) = (&p, &stop);
            s.spawn(move || {
                let _slot = with.then(|| slot::ThreadSlot::register().unwrap());
                let mut mine = Vec::new();
                while !stop.load(Relaxed) {
                    mine.extend((0..100).filter_map(|_| Mbuf::alloc(p).ok()));
                    mine.truncate(mine.len() / 3);
                }
            });
        }
        for _ in 0..3000 {
            let i = p.info();
            assert!(i.available <= i.size && i.in_use <= i.size && i.available + i.in_use == i.size);
            assert!(i.caches.iter().all(|c| c.len <= c.capacity));
            let l = list().into_iter().find(|i| i.name == "looked-at").unwrap();
            assert!(l.available <= l.size && p.available() <= 512);
        }
        stop.store(true, Relaxed);
    });
    assert_eq!((p.available(), p.info().in_use), (512, 0));
    assert!(p.free().is_ok());
}
