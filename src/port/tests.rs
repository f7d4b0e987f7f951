//! What a port does at moments that a program outside cannot hit on purpose.

use super::*;
use crate::driver::DevArgs;
use crate::pool::slot::ThreadSlot;
use crate::pool::{Pool, PoolConfig};

fn ring(name: &str, pool: &Pool) -> Port {
    let d = &crate::pmd::ring::DRIVER;
    let p = Port::attach(name, d, (d.probe)(&DevArgs::parse(name).unwrap()).unwrap()).unwrap();
    p.configure(&PortConfig::default()).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
    p
}

fn pool(name: &str) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 64, cache: 0, ..PoolConfig::default() }).unwrap()
}

#[test]
fn a_first_burst_while_stop_has_begun_gets_nothing_and_returns() {
    let _slot = ThreadSlot::register().unwrap();
    let pool = pool("pt-bind");
    let p = ring("net_ring90", &pool);
    // Stop has said so to the queues, and has not come to the rows yet.
    p.inner().ctl().set_started(false);
    let row = row::row(p.id(), 0).unwrap();
    let mut out = [core::ptr::null_mut(); 4];
    // SAFETY: room for four; nobody else bursts on this port.
    unsafe {
        assert_eq!(row.rx.burst(out.as_mut_ptr(), 4), 0);
        assert_eq!(row.tx.burst(out.as_mut_ptr(), 0), 0);
        assert_eq!(row.tx.burst_more(out.as_mut_ptr(), 0), 0);
    }
    p.inner().ctl().set_started(true);
    p.close().unwrap();
}
