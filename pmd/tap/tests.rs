//! The queues on a socket pair, which is full, cut and broken when the test wants it: no privilege.

use super::Shared;
use super::kernel::TapQueue;
use super::rx::TapRx;
use super::tx::TapTx;
use crate::driver::*;
use core::sync::atomic::Ordering::Relaxed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

fn pair() -> (TapQueue, UnixDatagram) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (TapQueue::from(OwnedFd::from(ours)), theirs)
}

fn shared(events: EventSink) -> Arc<Shared> {
    Arc::new(Shared { max_frame: 5000.into(), gone: false.into(), cut: false.into(), multi_queue: false, events })
}

fn pool(name: &str, n: u32) -> Pool {
    Pool::new(pool::PoolConfig { name: name.into(), n, cache: 0, ..Default::default() }).unwrap()
}

fn send(q: &mut TapTx, pkts: Vec<Mbuf>) -> Vec<Mbuf> {
    let e = q.entry();
    let mut raw: Vec<_> = pkts.into_iter().map(|m| m.into_raw().as_ptr()).collect();
    // SAFETY: the entry's queue is borrowed for the call; `raw` holds that many packets, and those taken are not used again.
    unsafe {
        let n = (e.burst)(e.queue, raw.as_mut_ptr(), raw.len() as u16);
        raw.drain(usize::from(n)..).map(|m| Mbuf::from_raw(core::ptr::NonNull::new(m).unwrap())).collect()
    }
}

fn receive(q: &mut TapRx, n: usize) -> Vec<Mbuf> {
    let e = q.entry();
    let mut raw = vec![core::ptr::null_mut(); n];
    // SAFETY: the entry's queue is borrowed for the call, and there is room for `n`.
    unsafe {
        let got = (e.burst)(e.queue, raw.as_mut_ptr(), n as u16);
        raw.truncate(got.into());
        raw.into_iter().map(|m| Mbuf::from_raw(core::ptr::NonNull::new(m).unwrap())).collect()
    }
}

#[test]
fn a_full_kernel_leaves_the_rest_with_the_caller_and_a_failing_write_takes_its_packet() {
    let pool = pool("tap-tx", 1024);
    let (q, peer) = pair();
    let counters = Arc::new(TxCounters::default());
    let mut tx = TapTx::new(TxCtx::new(0, 0, 65_535, 8, counters.clone()), q, shared(EventSink::default()));
    let packet = |i: usize| Mbuf::alloc_with(&pool, &[i as u8; 1000]).unwrap();
    let left = send(&mut tx, (0..1000).map(packet).collect());
    let sent = 1000 - left.len();
    assert!(sent > 0 && !left.is_empty(), "{sent}");
    assert_eq!(left[0].to_vec(), [sent as u8; 1000], "the first that did not fit");
    assert_eq!(counters.opackets.load(Relaxed), sent as u64);
    assert_eq!(pool.available(), 1024 - left.len() as u32);
    // Room for some: the rest goes on in order.
    let mut buf = [0; 2000];
    while peer.recv(&mut buf).is_ok() {}
    let left = send(&mut tx, left);
    assert_eq!((peer.recv(&mut buf).unwrap(), buf[0]), (1000, sent as u8));
    drop(left);
    // The other side is gone: each packet is taken, freed once and counted.
    let before = counters.opackets.load(Relaxed);
    drop(peer);
    assert!(send(&mut tx, (0..40).map(packet).collect()).is_empty());
    assert_eq!((counters.opackets.load(Relaxed), counters.oerrors.load(Relaxed)), (before, 40));
    assert_eq!(pool.available(), 1024);
}

#[test]
fn a_frame_that_does_not_fit_is_counted_and_the_burst_goes_on() {
    let pool = pool("tap-rx", 256);
    for scatter in [false, true] {
        let (q, peer) = pair();
        let counters = Arc::new(RxCounters::default());
        let ctx = RxCtx::new(3, 0, pool.reference(), counters.clone());
        let room = usize::from(ctx.pool().data_room());
        let mut rx = TapRx::new(ctx, q, shared(EventSink::default()), scatter);
        let most = if scatter { 5000usize.div_ceil(room) * room } else { room };
        for len in [60, most, most + 1, 20_000, 61] {
            peer.send(&vec![7; len]).unwrap();
        }
        let got = receive(&mut rx, 32);
        assert_eq!(got.iter().map(Mbuf::pkt_len).collect::<Vec<_>>(), [60, most, 61]);
        assert!(got.iter().all(|m| m.validate().is_ok() && m.port() == 3 && m.to_vec().iter().all(|b| *b == 7)));
        assert_eq!((counters.ipackets.load(Relaxed), counters.ierrors.load(Relaxed)), (3, 2));
        assert_eq!(counters.ibytes.load(Relaxed), (60 + most + 61) as u64);
        drop(got);
        // A stop reads what is there, and counts it.
        for _ in 0..5 {
            peer.send(&[1; 60]).unwrap();
        }
        rx.stop();
        assert_eq!((counters.imissed.load(Relaxed), pool.available()), (5, 256));
    }
}

#[test]
fn a_burst_into_an_empty_pool_reads_nothing_and_loses_no_segment() {
    let pool = pool("tap-none", 64);
    let (q, peer) = pair();
    let counters = Arc::new(RxCounters::default());
    let ctx = RxCtx::new(0, 0, pool.reference(), counters.clone());
    let mut rx = TapRx::new(ctx, q, shared(EventSink::default()), true);
    peer.send(&[9; 3000]).unwrap();
    let mut all: Vec<_> = (0..63).map(|_| Mbuf::alloc(&pool).unwrap()).collect();
    // One room of the three that a frame may need: it is kept, and the frame waits.
    assert!(receive(&mut rx, 4).is_empty() && receive(&mut rx, 4).is_empty());
    assert_eq!((pool.available(), counters.rx_nombuf_waits.load(Relaxed)), (0, 2));
    all.truncate(50);
    assert_eq!(receive(&mut rx, 4)[0].to_vec(), [9; 3000]);
    drop((all, rx));
    assert_eq!(pool.available(), 64);
}

#[test]
fn the_end_of_a_device_is_raised_once() {
    let n = Arc::new(AtomicU32::new(0));
    let seen = n.clone();
    let s = shared(EventSink::new(move |e| {
        assert_eq!(e, Event::REMOVED);
        seen.fetch_add(1, Relaxed);
    }));
    s.gone();
    s.gone();
    assert!(s.is_gone() && n.load(Relaxed) == 1);
    s.set_mtu(u32::MAX);
    assert_eq!(s.max_frame(), 65_535);
    let (q, _peer) = pair();
    assert!(std::os::fd::AsFd::as_fd(&q).as_raw_fd() >= 0);
}
