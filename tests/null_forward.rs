//! The least of a port's life: two null ports, one thread, every packet counted.

use burstline::driver::DevArgs;
use burstline::mbuf::Burst;
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig};

fn null(name: &str, args: &str, pool: &Pool) -> Port {
    let d = &burstline::pmd::null::DRIVER;
    let args = DevArgs::parse(&format!("{name}{args}")).unwrap();
    let p = Port::attach(name, d, (d.probe)(&args).unwrap()).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

#[test]
fn packets_go_from_one_null_port_to_another_and_come_back_to_the_pool() {
    let slot = ThreadSlot::register().unwrap();
    let pool = Pool::new(PoolConfig { name: "fwd".into(), n: 1024, ..PoolConfig::default() }).unwrap();
    let (a, b) = (null("net_null0", "", &pool), null("net_null1", ",size=100", &pool));
    let mut rx = a.rx_queue(0).unwrap().bind(&slot);
    let mut tx = b.tx_queue(0).unwrap().bind(&slot);
    assert!(a.rx_queue(0).is_err(), "a queue's handle is handed out once");
    let mut burst = Burst::<32>::new();
    for _ in 0..1000 {
        assert_eq!(rx.burst(&mut burst), 32);
        assert_eq!(tx.burst(&mut burst), 32);
    }
    assert_eq!((a.stats().ipackets, a.stats().ibytes), (32_000, 2_048_000));
    assert_eq!((b.stats().opackets, b.stats().obytes), (32_000, 2_048_000));
    assert_eq!(pool.available(), 1024);
    a.stop().unwrap();
    assert_eq!(rx.burst(&mut burst), 0, "a stopped port gives nothing");
    a.start().unwrap();
    assert_eq!(rx.burst_up_to(&mut burst, 7), 7);
    assert_eq!(rx.burst_up_to(&mut burst, 99), 25);
    drop(burst);
    a.close().unwrap();
    b.close().unwrap();
    drop((rx, tx));
    assert!(pool.free().is_ok());
}
