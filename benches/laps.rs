//! Laps of one piece of hot work and nothing else, for valgrind: `laps KIND N`. Instructions a packet are the difference of two
//! runs with different N, divided by the packets between them (`scripts/count-instructions.sh`). `laps list` names the kinds,
//! each with the packets of a lap.

use burstline::capi::{burst, mbuf};
use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf, RawMbuf};
use burstline::mem::PagePolicy;
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig};
use core::ptr::null_mut;

/// Kind and packets a lap.
const KINDS: &[(&str, u32)] = &[
    ("pool-bulk", 32),
    ("alloc-single", 1),
    ("alloc-single-c", 1),
    ("null-forward", 32),
    ("null-forward-c", 32),
    ("ring-forward", 32),
    ("tx-burst-1", 4),
    ("tx-more-1", 4),
    ("tx-burst-32", 128),
    ("tx-more-32", 128),
    ("tx-burst-64", 256),
    ("tx-more-64", 256),
];

fn port(name: &str, driver: &'static burstline::driver::Driver, pool: &Pool) -> Port {
    let dev = (driver.probe)(&DevArgs::parse(name).unwrap()).unwrap();
    let p = Port::attach(name, driver, dev).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

fn null(pool: &Pool) -> Port {
    port("net_null0", &burstline::pmd::null::DRIVER, pool)
}

fn ring(pool: &Pool) -> Port {
    port("net_ring0", &burstline::pmd::ring::DRIVER, pool)
}

fn full<const B: usize>(pool: &Pool) -> Burst<B> {
    let mut b = Burst::new();
    while b.room() != 0 {
        b.push(Mbuf::alloc_with(pool, &[0; 64]).unwrap()).unwrap();
    }
    b
}

/// Four bursts of `B` go out and come back. The sender is in a poll group that rings at the fourth: `MORE` stages and is
/// announced once, else each burst announces itself.
fn four<const B: usize, const MORE: bool>(n: u32, pool: &Pool, slot: &ThreadSlot) {
    let (p, quiet) = (ring(pool), null(pool));
    let mut rx = p.rx_queue(0).unwrap().bind(slot);
    let mut tx = p.tx_queue(0).unwrap().bind(slot);
    // A group without a receive queue would look at its deadlines in the send call. This one's is never polled.
    let mut group = PollGroup::new();
    group.add_rx(&quiet, 0).unwrap();
    group.add_tx(&p, 0, 4 * B as u32, 1_000_000).unwrap();
    let mut bursts: [Burst<B>; 4] = core::array::from_fn(|_| full(pool));
    for _ in 0..n {
        for b in &mut bursts {
            if MORE {
                tx.burst_more(b)
            } else {
                tx.burst(b)
            };
        }
        for b in &mut bursts {
            rx.burst(b);
        }
    }
    assert_eq!(bursts.map(|b| b.len()), [B; 4]);
    drop(group);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [kind, n] = &args[..] else {
        KINDS.iter().for_each(|(kind, pkts)| println!("{kind}\t{pkts}"));
        return;
    };
    let n: u32 = n.parse().unwrap();
    let slot = ThreadSlot::register().unwrap();
    let pages = PagePolicy { no_huge: true, ..Default::default() };
    let pool = Pool::new(PoolConfig { name: "laps".into(), n: 1024, pages, ..PoolConfig::default() }).unwrap();
    // What C holds: the same pool.
    let inner = pool.into_raw();
    let handle = inner.cast();
    // SAFETY: it came from there just now; `handle` is used while the pool lives.
    let pool = unsafe { Pool::from_raw(inner) }.unwrap();
    let mut b = Burst::<32>::new();
    let mut raw: [*mut RawMbuf; 32] = [null_mut(); 32];
    match kind.as_str() {
        "pool-bulk" => {
            for _ in 0..n {
                // SAFETY: the pool lives; room for 32, which are given back at once.
                unsafe {
                    assert_eq!(mbuf::bl_mbuf_alloc_bulk(handle, raw.as_mut_ptr(), 32), 0);
                    mbuf::bl_mbuf_free_bulk(raw.as_mut_ptr(), 32);
                }
            }
        }
        "alloc-single" => {
            for _ in 0..n {
                drop(Mbuf::alloc(&pool).unwrap());
            }
        }
        "alloc-single-c" => {
            for _ in 0..n {
                // SAFETY: the pool lives.
                unsafe { mbuf::bl_mbuf_free(mbuf::bl_mbuf_alloc(handle)) };
            }
        }
        "null-forward" => {
            let p = null(&pool);
            let mut rx = p.rx_queue(0).unwrap().bind(&slot);
            let mut tx = p.tx_queue(0).unwrap().bind(&slot);
            for _ in 0..n {
                rx.burst(&mut b);
                tx.burst(&mut b);
            }
        }
        "null-forward-c" => {
            let id = null(&pool).id();
            for _ in 0..n {
                // SAFETY: room for 32; what was received is sent.
                unsafe {
                    let got = burst::bl_rx_burst(id, 0, raw.as_mut_ptr(), 32);
                    assert_eq!(burst::bl_tx_burst(id, 0, raw.as_mut_ptr(), got), got);
                }
            }
        }
        "ring-forward" => {
            let p = ring(&pool);
            let mut rx = p.rx_queue(0).unwrap().bind(&slot);
            let mut tx = p.tx_queue(0).unwrap().bind(&slot);
            b = full(&pool);
            for _ in 0..n {
                tx.burst(&mut b);
                rx.burst(&mut b);
            }
        }
        "tx-burst-1" => four::<1, false>(n, &pool, &slot),
        "tx-more-1" => four::<1, true>(n, &pool, &slot),
        "tx-burst-32" => four::<32, false>(n, &pool, &slot),
        "tx-more-32" => four::<32, true>(n, &pool, &slot),
        "tx-burst-64" => four::<64, false>(n, &pool, &slot),
        "tx-more-64" => four::<64, true>(n, &pool, &slot),
        _ => panic!("no kind {kind}"),
    }
}
