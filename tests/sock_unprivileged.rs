//! TAP and packet sockets without privilege: errors that say which capability, and descriptors made by a helper.

use std::os::fd::AsFd;

use burstline::base::{Errno, Result};
use burstline::pmd::tap::kernel::{Tap, TapOptions};
use burstline::sock::NetNs;
use burstline::sock::packet::{PacketOptions, PacketSocket};

/// `f` on a thread in the namespace that has given up root and with it every capability.
fn as_nobody<T: Send>(ns: &NetNs, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    ns.run_in(|| {
        // SAFETY: three integers; the bare system call changes this short-lived thread only (libc's changes them all).
        let r = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        assert_eq!(r, 0);
        f()
    })
}

#[test]
fn without_privilege_the_error_names_the_capability_and_passed_descriptors_work() {
    let ns = match NetNs::create() {
        Ok(ns) if std::path::Path::new("/dev/net/tun").exists() => ns,
        r => {
            assert!(std::env::var("BURSTLINE_REQUIRE_ALL").as_deref() != Ok("1"), "required: {r:?}");
            println!("skipped: no new namespace or no /dev/net/tun");
            return;
        }
    };
    let o = TapOptions { name: "np%d", n_queues: 1, attach: false };
    let e = as_nobody(&ns, || Tap::open(&o)).unwrap_err();
    // A machine may keep the device file itself from others.
    assert!(e.text().contains("CAP_NET_ADMIN") || e.errno() == Errno::ACCES, "{e}");
    let e = as_nobody(&ns, || PacketSocket::open(1, &PacketOptions::default())).unwrap_err();
    assert!(e.errno() == Errno::PERM && e.text().contains("CAP_NET_RAW"), "{e}");
    let e = as_nobody(&ns, NetNs::create).unwrap_err();
    assert!(e.errno() == Errno::PERM && e.text().contains("CAP_SYS_ADMIN"), "{e}");

    let made = ns.run_in(|| Tap::open(&o)).unwrap();
    made.set_mtu(1300).unwrap();
    let fd = || vec![made.queues()[0].as_fd().try_clone_to_owned().unwrap()];
    // Beside the interface: what needs no privilege is answered, the rest names the capability.
    as_nobody(&ns, || {
        let t = Tap::from_fds(fd())?;
        assert_eq!((t.name()?.as_str(), t.mtu()?, t.mac()?), ("np0", 1300, made.mac()?));
        t.stats()?;
        assert!(!t.link()?.up);
        let e = t.set_mtu(1400).unwrap_err();
        assert!(e.errno() == Errno::PERM && e.text().contains("'np0': set MTU 1400 (needs CAP_NET_ADMIN"), "{e}");
        Ok(())
    })
    .unwrap();
    // In another namespace, with a namesake that has another address: not mistaken for it.
    let other = NetNs::create().unwrap();
    let namesake = other.run_in(|| Tap::open(&o)).unwrap();
    as_nobody(&other, || {
        let e = Tap::from_fds(fd())?.mtu().unwrap_err();
        assert!(e.errno() == Errno::PERM && e.text().contains("CAP_NET_ADMIN"), "{e}");
        Ok(())
    })
    .unwrap();
    assert_eq!(namesake.name().unwrap(), "np0");
}
