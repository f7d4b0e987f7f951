//! Words through a ring on one core: what a put and a take cost without a second core's cache.

use core::hint::black_box;
use core::mem::MaybeUninit;

use burstline::ring::{Ring, Sync};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn one<const N: usize>(c: &mut Criterion) {
    let mut g = c.benchmark_group(format!("ring_bulk{N}"));
    g.throughput(Throughput::Elements(N as u64));
    let objs = [core::ptr::null_mut::<()>(); N];
    let mut out = [MaybeUninit::uninit(); N];

    let r = Ring::new("spsc", 1024, Sync::Single, Sync::Single, false).unwrap();
    g.bench_function("spsc", |b| {
        b.iter(|| {
            // SAFETY: one thread.
            let n = unsafe { r.sp_enqueue::<true>(black_box(&objs)) + r.sc_dequeue::<true>(&mut out) };
            assert_eq!(n, 2 * N);
            black_box(&out);
        })
    });
    // The size of a burst is known to the compiler above, and not here.
    g.bench_function("spsc_any_n", |b| {
        b.iter(|| {
            let n = black_box(N);
            // SAFETY: one thread.
            let n = unsafe { r.sp_enqueue::<true>(black_box(&objs[..n])) + r.sc_dequeue::<true>(&mut out[..n]) };
            assert_eq!(n, 2 * N);
            black_box(&out);
        })
    });

    let r = Ring::new("mpmc", 1024, Sync::Multi, Sync::Multi, false).unwrap();
    g.bench_function("mpmc", |b| {
        b.iter(|| {
            let n = r.mp_enqueue::<true>(black_box(&objs)) + r.mc_dequeue::<true>(&mut out);
            assert_eq!(n, 2 * N);
            black_box(&out);
        })
    });
    g.finish();
}

fn ring(c: &mut Criterion) {
    one::<8>(c);
    one::<32>(c);
}

criterion_group!(benches, ring);
criterion_main!(benches);
