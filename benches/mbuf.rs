//! What a packet costs: taken from its pool and given back, single and in bursts, and the operations of a forwarder.
//!
//! Beside criterion's times, counter cycles a packet are printed: the smallest of many rounds, which is what the code costs
//! where nothing disturbs it, and the median.

use burstline::base::time::tsc;
use burstline::mbuf::{Mbuf, RawMbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig, RxPool, TxRecycler, alloc_raw, free_packet};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::ptr::null_mut;

const BURST: usize = 32;

/// Prints cycles a packet of `f`, which handles `n` packets a call.
fn cycles(name: &str, n: usize, mut f: impl FnMut()) {
    const CALLS: usize = 2000;
    let mut rounds: Vec<u64> = (0..200)
        .map(|_| {
            let t = tsc();
            (0..CALLS).for_each(|_| f());
            tsc() - t
        })
        .collect();
    rounds.sort_unstable();
    let a = |c: u64| c as f64 / (CALLS * n) as f64;
    println!("{name:<28} {:8.2} cycles a packet, median {:8.2}", a(rounds[0]), a(rounds[rounds.len() / 2]));
}

fn both(c: &mut Criterion, name: &str, n: usize, mut f: impl FnMut()) {
    cycles(name, n, &mut f);
    let mut g = c.benchmark_group("mbuf");
    g.throughput(Throughput::Elements(n as u64));
    g.bench_function(name, |b| b.iter(&mut f));
    g.finish();
}

fn benches(c: &mut Criterion) {
    let slot = ThreadSlot::register().expect("a slot");
    let pool = Pool::new(PoolConfig { name: "bench".into(), n: 16_383, ..PoolConfig::default() }).expect("a pool");
    let (mut rx, mut tx) = (RxPool::new(pool.reference()), TxRecycler::default());
    rx.bind(slot.id());
    tx.bind(slot.id());
    let mut pkts: [*mut RawMbuf; BURST] = [null_mut(); BURST];

    both(c, "queue_take_free_32", BURST, || {
        // SAFETY: bound to this thread's slot; each packet taken is freed once.
        unsafe {
            let n = rx.take(pkts.as_mut_ptr(), BURST);
            tx.free(black_box(pkts.as_ptr()), n);
        }
    });
    both(c, "alloc_free_bulk_32", BURST, || {
        // SAFETY: `pkts` has room for a burst, and the recycler gets what was taken.
        unsafe {
            let rx_pool = rx.pool();
            assert!(alloc_raw(rx_pool, pkts.as_mut_ptr(), BURST));
            tx.free(black_box(pkts.as_ptr()), BURST);
        }
    });
    both(c, "alloc_free_single", 1, || {
        let mut m = null_mut();
        // SAFETY: room for one; it is freed once.
        unsafe {
            assert!(alloc_raw(rx.pool(), &mut m, 1));
            free_packet(black_box(m));
        }
    });
    both(c, "safe_alloc_drop", 1, || drop(black_box(Mbuf::alloc(&pool))));
    let m = Mbuf::alloc_with(&pool, &[0; 64]).expect("a packet");
    both(c, "clone_free", 1, || drop(black_box(m.clone(&pool))));
    both(c, "copy_64_free", 1, || drop(black_box(m.copy(&pool, 0, 64))));
    drop(m);
    let mut m = Mbuf::alloc_with(&pool, &[0; 64]).expect("a packet");
    both(c, "prepend_adj", 1, || {
        let _ = black_box(m.prepend(8));
        let _ = black_box(m.adj(8));
    });
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = benches
}
criterion_main!(all);
