//! A packet's whole road through two ports of `net_null`: what the library itself costs.

use burstline::driver::DevArgs;
use burstline::mbuf::Burst;
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig, RxPoller, TxPoller};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn null(name: &str, pool: &Pool) -> Port {
    let d = &burstline::pmd::null::DRIVER;
    let dev = (d.probe)(&DevArgs::parse(name).unwrap()).unwrap();
    let p = Port::attach(name, d, dev).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

/// One lap: a burst from each port to the other.
#[inline(always)]
fn lap(rx: &mut [RxPoller<'_>; 2], tx: &mut [TxPoller<'_>; 2], b: &mut Burst<32>, rewrite: bool) -> usize {
    let mut n = 0;
    for i in 0..2 {
        rx[i].burst(b);
        if rewrite {
            for (j, m) in b.iter_mut().enumerate() {
                if let Some(d) = m.data_mut().and_then(|d| d.first_chunk_mut::<8>()) {
                    *d = ((u64::from_ne_bytes(*d) << 16) ^ j as u64).to_ne_bytes();
                }
            }
        }
        n += tx[1 - i].burst(b);
    }
    n
}

fn forward(c: &mut Criterion) {
    let slot = ThreadSlot::register().unwrap();
    let pool = Pool::new(PoolConfig { name: "fwd".into(), n: 16384, ..PoolConfig::default() }).unwrap();
    let ports = [null("net_null0", &pool), null("net_null1", &pool)];
    let mut rx = [0, 1].map(|i| ports[i].rx_queue(0).unwrap().bind(&slot));
    let mut tx = [0, 1].map(|i| ports[i].tx_queue(0).unwrap().bind(&slot));
    let mut b = Burst::<32>::new();
    let mut g = c.benchmark_group("null_to_null");
    g.throughput(Throughput::Elements(64));
    g.bench_function("io", |t| t.iter(|| assert_eq!(lap(&mut rx, &mut tx, &mut b, false), 64)));
    g.bench_function("mac", |t| t.iter(|| assert_eq!(lap(&mut rx, &mut tx, &mut b, true), 64)));
    g.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
