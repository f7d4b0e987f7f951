//! What `net_tap` leaves behind: nothing. One test a file, as it counts the descriptors of the process.

mod support;
mod tap_common;

use burstline::port::PortConfig;
use std::time::Duration;
use support::need;
use support::netns::NetNs;
use support::run::{ChildGuard, loops, wait_until};
use tap_common::*;

fn fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Set for a copy of this program that opens a port in the namespace of this path and waits to be killed.
const CHILD: &str = "BURSTLINE_TAP_CHILD";

#[test]
fn opened_and_closed_or_killed_nothing_is_left() {
    needs_tap!();
    if let Some(ns) = std::env::var_os(CHILD) {
        return child(std::path::Path::new(&ns));
    }
    let ns = NetNs::new("bl-tap-leak");
    let pool = pool(1024);
    let mut before = 0;
    for round in 0..loops(20, 1000) {
        let scatter = round % 2 == 1;
        let c = PortConfig { n_rx: 1 + (round % 3) as u16, n_tx: 2, scatter, ..PortConfig::default() };
        let p = start(&ns, "iface=lk%d,mtu=1400", &pool, &c);
        assert!(p.stats().imissed == 0 && p.mtu() == 1400);
        p.close().unwrap();
        assert!(!ns.has_link("lk0"), "round {round}");
        // The first round makes what a process has once: the events' descriptors.
        if round == 0 {
            before = fds();
        }
        assert_eq!((fds(), pool.available()), (before, 1024), "round {round}");
        // A device that failed to come up.
        let bad = in_ns(&ns, || {
            let a = burstline::driver::DevArgs::parse("net_tap0,iface=lk0,mac=02:00:00:00:00:01,fds=1")?;
            (burstline::pmd::tap::DRIVER.probe)(&a).map(|_| ())
        });
        assert!(bad.is_err() && fds() == before);
    }
    for round in 0..loops(3, 100) {
        let mut cmd = std::process::Command::new(std::env::current_exe().unwrap());
        cmd.env(CHILD, ns.path()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = ChildGuard::spawn(&mut cmd);
        assert!(wait_until(Duration::from_secs(20), || ns.has_link("killed0")), "round {round}");
        child.signal(libc::SIGKILL);
        assert!(child.wait(Duration::from_secs(10)).is_some());
        assert!(wait_until(Duration::from_secs(10), || !ns.has_link("killed0")), "round {round}");
    }
    assert!(pool.free().is_ok());
}

fn child(ns: &std::path::Path) {
    use burstline::driver::DevArgs;
    use burstline::pmd::tap::DRIVER;
    use burstline::port::Port;
    let ns = burstline::sock::NetNs::from_path(ns).unwrap();
    let args = DevArgs::parse("net_tap0,iface=killed0").unwrap();
    let dev = ns.run_in(|| (DRIVER.probe)(&args)).unwrap();
    let p = Port::attach("net_tap0", &DRIVER, dev).unwrap();
    let c = PortConfig { n_rx: 4, n_tx: 4, ..PortConfig::default() };
    p.configure(&c).unwrap();
    let pool = pool(1024);
    setup(&p, &pool, 4, 4);
    p.start().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}
