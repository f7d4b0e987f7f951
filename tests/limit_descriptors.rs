//! A program that is out of descriptors, and then has some again.

use burstline::driver::{DevArgs, Event};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

fn limit_descriptors(n: u64) -> u64 {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and writes one rlimit.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut l), 0);
        let before = l.rlim_cur;
        l.rlim_cur = n;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &l), 0);
        before
    }
}

#[test]
fn events_are_refused_without_descriptors_and_come_once_there_are_some() {
    let p = burstline::eal::attach(&DevArgs::parse("net_ring_fds").unwrap()).unwrap();
    let before = limit_descriptors(3);
    let refused = p.on_event(|_, _| ());
    limit_descriptors(before);
    assert!(refused.is_err());
    let seen = Arc::new(AtomicU32::new(0));
    let s = seen.clone();
    p.on_event(move |_, e| s.store(e.bits(), Relaxed)).unwrap();
    p.set_link(false).unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    while seen.load(Relaxed) != Event::LINK.bits() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(seen.load(Relaxed), Event::LINK.bits());
    p.close().unwrap();
}
