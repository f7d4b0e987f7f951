//! The forwarding work of `dpdk_micro.c` from Rust: owned packets, bound queues. One line, as the C programs print theirs.

use burstline::base::time::tsc;
use burstline::driver::DevArgs;
use burstline::mbuf::Burst;
use burstline::mem::PagePolicy;
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig};

fn from_env(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).filter(|&n| n > 0).unwrap_or(usual)
}

fn port(name: &str, pool: &Pool) -> Port {
    let driver = &burstline::pmd::null::DRIVER;
    let dev = (driver.probe)(&DevArgs::parse(name).unwrap()).unwrap();
    let p = Port::attach(name, driver, dev).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 512, pool).unwrap();
    p.tx_queue_setup(0, 512).unwrap();
    p.start().unwrap();
    p
}

fn main() {
    let slot = ThreadSlot::register().unwrap();
    let pages = if std::env::var_os("NO_HUGE").is_some() { PagePolicy::NO_HUGE } else { PagePolicy::default() };
    let config = PoolConfig { name: "peers".into(), n: 16383, cache: 256, pages, ..PoolConfig::default() };
    let pool = Pool::new(config).unwrap();
    let ports = [port("net_null0", &pool), port("net_null1", &pool)];
    let mut rx = ports.each_ref().map(|p| p.rx_queue(0).unwrap().bind(&slot));
    let mut tx = ports.each_ref().map(|p| p.tx_queue(0).unwrap().bind(&slot));
    let mut burst = Burst::<32>::new();
    let (rounds, laps) = (from_env("ROUNDS", 25), from_env("LAPS", 5000));
    let mut per_packet: Vec<f64> = (0..=rounds)
        .map(|_| {
            let (begin, mut n) = (tsc(), 0);
            for _ in 0..laps {
                for way in 0..2 {
                    rx[way].burst(&mut burst);
                    n += tx[way ^ 1].burst(&mut burst);
                }
            }
            (tsc() - begin) as f64 / n as f64
        })
        .skip(1)
        .collect();
    per_packet.sort_by(f64::total_cmp);
    println!("null_fwd32:rust\t{:.2}\t{:.2}", per_packet[0], per_packet[rounds / 2]);
}
