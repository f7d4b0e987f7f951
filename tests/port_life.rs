//! Life cycles that go wrong in programs: forks, panics in callbacks, calls out of a callback, descriptors that run out.

use burstline::driver::{DevArgs, Event};
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

const NEVER: u32 = 60_000_000;

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

fn open_tx(args: &str) -> Port {
    let p = burstline::eal::attach(&DevArgs::parse(args).unwrap()).unwrap();
    p.configure(&PortConfig { n_rx: 0, ..PortConfig::default() }).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
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

fn until(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_child_of_a_registered_thread_may_exit() {
    let done = std::thread::spawn(|| {
        let _slot = ThreadSlot::register().unwrap();
        let pool = pool("bl-fork", 64);
        let file = std::env::temp_dir().join(format!("burstline-fork-{}.pcap", std::process::id()));
        let p = open_tx(&format!("net_pcap_fork,tx_pcap={}", file.display()));
        let mut group = PollGroup::new();
        group.add_tx(&p, 0, 32, NEVER).unwrap();
        let mut tx = p.tx_queue(0).unwrap().bind(&_slot);
        assert_eq!(tx.burst_more(&mut packets(&pool, 1)), 1);
        // SAFETY: the child only leaves its thread, as exit(3) would have it do.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // What exit runs of this thread: its destructors.
            burstline::pool::slot::unregister_current();
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for the child above.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        let written = std::fs::metadata(&file).unwrap().len();
        drop(tx);
        drop(group);
        p.close().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(written, 24, "the file's header, and nothing of the child's");
        status
    });
    assert_eq!(done.join().unwrap(), 0, "the child's status");
}

#[test]
fn a_callback_that_panics_does_not_end_the_events_of_others() {
    let pool = pool("bl-panic", 0);
    let (a, b) = (open("net_ring_cb0", &pool, 1), open("net_ring_cb1", &pool, 1));
    let seen = Arc::new(AtomicU32::new(0));
    let s = seen.clone();
    a.on_event(|_, _| panic!("a callback's own")).unwrap();
    b.on_event(move |_, e| {
        s.fetch_or(e.bits(), Relaxed);
    })
    .unwrap();
    a.set_link(false).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    b.set_link(false).unwrap();
    assert!(until(|| seen.load(Relaxed) & Event::LINK.bits() != 0), "no event after the panic");
    a.close().unwrap();
    b.close().unwrap();
}

#[test]
fn in_a_group_without_receive_queues_every_send_call_looks_at_the_deadlines() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("bl-no-rx", 0);
    let p = open("net_ring_nr0", &pool, 2);
    let mut group = PollGroup::new();
    group.add_tx(&p, 0, 32, 1000).unwrap();
    group.add_tx(&p, 1, 32, NEVER).unwrap();
    let mut a = p.tx_queue(0).unwrap().bind(&slot);
    let mut b = p.tx_queue(1).unwrap().bind(&slot);
    assert_eq!(a.burst_more(&mut packets(&pool, 1)), 1);
    for _ in 0..20 {
        assert_eq!(b.burst(&mut packets(&pool, 1)), 1);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(p.tx_queue_stats(0).unwrap().opackets, 1, "20 ms after a deadline of 1 ms");
    drop((a, b));
    drop(group);
    p.close().unwrap();
}

#[test]
fn what_a_started_queue_staged_leaves_by_its_deadline_when_the_thread_sends_on_a_stopped_one() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("bl-stopped-tx", 0);
    let (p, q) = (open("net_ring_st0", &pool, 1), open("net_ring_st1", &pool, 1));
    let mut group = PollGroup::new();
    group.add_tx(&p, 0, 32, 1000).unwrap();
    group.add_tx(&q, 0, 32, 1000).unwrap();
    let mut a = p.tx_queue(0).unwrap().bind(&slot);
    let mut b = q.tx_queue(0).unwrap().bind(&slot);
    q.stop().unwrap();
    assert_eq!(a.burst_more(&mut packets(&pool, 1)), 1);
    let mut more = packets(&pool, 1);
    for _ in 0..20 {
        assert_eq!(b.burst_more(&mut more), 0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(p.stats().opackets, 1, "20 ms after a deadline of 1 ms");
    q.start().unwrap();
    assert_eq!(b.burst_more(&mut more), 1);
    assert_eq!(q.stats().opackets, 0, "restarted, it defers again");
    assert_eq!(group.flush(), 1);
    drop((a, b));
    drop(group);
    p.close().unwrap();
    q.close().unwrap();
}

#[test]
fn a_queue_is_bound_to_the_calling_thread_whatever_slot_it_shows() {
    let slot = ThreadSlot::register().unwrap();
    let pool = pool("bl-stale", 64);
    let p = open("net_ring_sl0", &pool, 1);
    assert!(burstline::pool::slot::unregister_current());
    let other = std::thread::spawn(|| {
        let s = ThreadSlot::register().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        s.id()
    });
    std::thread::sleep(Duration::from_millis(100));
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    // A cache of the other thread's slot would be used from here.
    tx.burst(&mut packets(&pool, 8));
    let mut rx = p.rx_queue(0).unwrap().bind(&slot);
    let mut b = Burst::<64>::new();
    rx.burst(&mut b);
    drop(b);
    let id = other.join().unwrap();
    let caches: Vec<u32> = pool.info().caches.iter().map(|c| c.slot).collect();
    assert!(!caches.contains(&id), "slot {id} is another thread's, and its cache was made for us: {caches:?}");
    drop((tx, rx));
    p.close().unwrap();
}

#[test]
fn a_queue_of_another_thread_does_not_join_a_group() {
    let pool = pool("bl-elsewhere", 0);
    let p = open("net_ring_el0", &pool, 1);
    let (bound, wait) = std::sync::mpsc::channel();
    let (end, until_end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|s| {
        let p = &p;
        s.spawn(move || {
            let slot = ThreadSlot::register().unwrap();
            let _queues = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
            bound.send(()).unwrap();
            until_end.recv().unwrap();
        });
        wait.recv().unwrap();
        let mut group = PollGroup::new();
        let busy = burstline::driver::Errno::BUSY;
        assert_eq!(group.add_rx(p, 0).unwrap_err().errno(), busy);
        assert_eq!(group.add_tx(p, 0, 8, 100).unwrap_err().errno(), busy);
        end.send(()).unwrap();
    });
    let mut group = PollGroup::new();
    assert!(until(|| p.rx_queue_stats(0).is_ok()));
    group.add_rx(&p, 0).unwrap();
    group.add_tx(&p, 0, 8, 100).unwrap();
    drop(group);
    p.close().unwrap();
}
