//! A log callback may call anything: also what is said while a port is being worked on.

use burstline::capi::log::{BL_LOG_DEBUG, bl_log_set};
use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig};
use core::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn asks(_level: u32, _text: *const c_char, _user: *mut c_void) {
    for p in Port::all() {
        p.stats();
    }
    CALLS.fetch_add(1, Relaxed);
}

#[test]
fn a_log_callback_may_read_the_stats_of_a_port_that_is_being_stopped() {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let slot = ThreadSlot::register().unwrap();
        let pool = Pool::new(PoolConfig { n: 512, cache: 0, ..PoolConfig::default() }).unwrap();
        let p = burstline::eal::attach(&DevArgs::parse("net_pcap_log,tx_pcap=/dev/full").unwrap()).unwrap();
        p.configure(&PortConfig { n_rx: 0, ..PortConfig::default() }).unwrap();
        p.tx_queue_setup(0, 0).unwrap();
        p.start().unwrap();
        let mut group = PollGroup::new();
        group.add_tx(&p, 0, 32, u32::MAX).unwrap();
        let mut tx = p.tx_queue(0).unwrap().bind(&slot);
        let mut b = Burst::<8>::new();
        b.push(Mbuf::alloc_with(&pool, &[0; 64]).unwrap()).unwrap();
        assert_eq!(tx.burst_more(&mut b), 1);
        assert_eq!(bl_log_set(Some(asks), core::ptr::null_mut(), BL_LOG_DEBUG), 0);
        p.stop().unwrap(); // Rings what is staged, which fails, which is said.
        drop(tx);
        drop(group);
        p.close().unwrap();
        done.send(p.stats().oerrors).unwrap();
    });
    let oerrors = wait.recv_timeout(Duration::from_secs(10)).expect("stop hangs in the log callback");
    assert_eq!(oerrors, 1);
    assert!(CALLS.load(Relaxed) > 0);
}
