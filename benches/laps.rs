//! Laps of a forwarding loop and nothing else, for valgrind: `laps KIND N`. Instructions a packet are the difference of two
//! runs with different N, divided by the packets between them (`scripts/count-instructions.sh`).

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig};

fn port(name: &str, driver: &'static burstline::driver::Driver, pool: &Pool) -> Port {
    let dev = (driver.probe)(&DevArgs::parse(name).unwrap()).unwrap();
    let p = Port::attach(name, driver, dev).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [kind, n] = &args[..] else {
        println!("laps null|ring|alloc N");
        return;
    };
    let n: u32 = n.parse().unwrap();
    let slot = ThreadSlot::register().unwrap();
    let pages = burstline::mem::PagePolicy { no_huge: true, ..Default::default() };
    let pool = Pool::new(PoolConfig { name: "laps".into(), n: 1024, pages, ..PoolConfig::default() }).unwrap();
    let mut b = Burst::<32>::new();
    match kind.as_str() {
        "null" => {
            let p = port("net_null0", &burstline::pmd::null::DRIVER, &pool);
            let mut rx = p.rx_queue(0).unwrap().bind(&slot);
            let mut tx = p.tx_queue(0).unwrap().bind(&slot);
            for _ in 0..n {
                rx.burst(&mut b);
                tx.burst(&mut b);
            }
        }
        "ring" => {
            let p = port("net_ring0", &burstline::pmd::ring::DRIVER, &pool);
            let mut rx = p.rx_queue(0).unwrap().bind(&slot);
            let mut tx = p.tx_queue(0).unwrap().bind(&slot);
            for _ in 0..32 {
                let _ = b.push(Mbuf::alloc_with(&pool, &[0; 64]).unwrap());
            }
            for _ in 0..n {
                tx.burst(&mut b);
                rx.burst(&mut b);
            }
        }
        _ => {
            for _ in 0..n * 32 {
                drop(Mbuf::alloc(&pool).unwrap());
            }
        }
    }
}
