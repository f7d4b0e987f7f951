//! The helpers of tests/support, tested: a test that leaves namespaces or processes behind spoils the next one.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::need;
use support::netns::{NetNs, veth_pair, veth_pair_up};
use support::run::{ChildGuard, TempDir, bin, loops, run, run_args, wait_until};

fn alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_pair_of_namespaces_pings_over_a_veth_and_is_gone_after_drop() {
    need!("root", "netns", "ip", "ping");
    let (a_path, b_path);
    {
        let a = NetNs::new("blself");
        let b = NetNs::new("blself");
        veth_pair_up(&a, "a0", "192.0.2.1/24", &b, "b0", "192.0.2.2/24");
        a.addr("a0", "2001:db8::1/64");
        b.addr("b0", "2001:db8::2/64");
        a.run(&["ping", "-q", "-c", "2", "-i", "0.05", "-W", "2", "192.0.2.2"]).expect_ok();
        // The first solicitation can be lost while the link comes up; ping then waits out its second.
        a.run(&["ping", "-q", "-c", "3", "-i", "0.5", "-W", "3", "2001:db8::2"]).expect_ok();
        assert!(b.stat("b0", "rx_packets") >= 2);
        (a_path, b_path) = (a.path(), b.path());
        assert!(a_path.exists() && b_path.exists() && a_path != b_path);
    }
    assert!(!a_path.exists() && !b_path.exists());
}

#[test]
fn a_quiet_interface_sends_nothing_unasked() {
    need!("root", "netns", "ip");
    let a = NetNs::new("blself");
    let b = NetNs::new("blself");
    veth_pair(&a, "a0", &b, "b0");
    for (ns, ifname) in [(&a, "a0"), (&b, "b0")] {
        ns.quiet(ifname);
        ns.no_ipv6(ifname);
        ns.mtu(ifname, 1400);
        ns.mac(ifname, "02:00:00:00:00:07");
        ns.up(ifname);
    }
    assert!(a.ip(&["link", "show", "a0"]).stdout.contains("mtu 1400"));
    // Duplicate address detection and router solicitation would have begun within this second.
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!((a.stat("a0", "tx_packets"), b.stat("b0", "tx_packets")), (0, 0));
}

#[test]
fn an_interface_can_be_moved_in() {
    need!("root", "netns", "ip");
    let from = NetNs::new("blself");
    let to = NetNs::new("blself");
    veth_pair(&from, "x0", &from, "x1");
    from.run(&["ip", "link", "set", "x1", "netns", to.name()]).expect_ok();
    assert!(from.has_link("x0") && to.has_link("x1") && !from.has_link("x1"));
    // move_in takes it from the caller's namespace, so it is made there.
    let name = format!("blv{}", std::process::id());
    run_args("ip", &["link", "add", &name, "type", "veth", "peer", "name", "y1", "netns", from.name()], SHORT)
        .expect_ok();
    to.move_in(&name);
    assert!(to.has_link(&name));
}

const SHORT: Duration = Duration::from_secs(10);

#[test]
fn a_namespace_ends_the_programs_left_in_it_also_when_the_test_panics() {
    need!("root", "netns", "ip");
    let seen = std::sync::Mutex::new(None);
    let result = std::panic::catch_unwind(|| {
        let ns = NetNs::new("blself");
        // Forgotten on purpose: its guard never drops.
        let child = ns.spawn(&["sleep", "600"]);
        let pid = child.id();
        assert!(wait_until(SHORT, || ns.pids() == [pid as i32]), "{:?}", ns.pids());
        *seen.lock().unwrap() = Some((pid, ns.path(), Box::leak(Box::new(child))));
        panic!("planned");
    });
    assert!(result.is_err());
    let (pid, path, child) = seen.into_inner().unwrap().unwrap();
    assert!(!path.exists());
    assert!(!child.running(), "{pid} still runs");
}

#[test]
fn a_guard_ends_its_program_and_waits_for_it() {
    let polite = ChildGuard::spawn(Command::new("sleep").arg("600"));
    let pid = polite.id();
    assert!(alive(pid));
    drop(polite);
    assert!(!alive(pid));

    // One that does not hear SIGTERM gets SIGKILL after the limit.
    let mut deaf =
        ChildGuard::spawn(Command::new("sh").args(["-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"]))
            .term_limit(Duration::from_millis(300));
    std::thread::sleep(Duration::from_millis(200));
    let t = Instant::now();
    assert!(!deaf.stop().success());
    assert!(t.elapsed() >= Duration::from_millis(300) && t.elapsed() < SHORT);
    assert!(!alive(deaf.id()));
}

#[test]
fn a_run_gives_both_streams_the_code_and_an_end() {
    let out = run(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]), SHORT);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str(), out.code()), ("one\n", "two\n", 3));
    assert!(!out.ok() && !out.timed_out);

    let t = Instant::now();
    let out = run(Command::new("sh").args(["-c", "echo begun; exec sleep 600"]), Duration::from_millis(300));
    assert!(out.timed_out && out.stdout == "begun\n" && out.code() == -libc::SIGTERM, "{out:?}");
    assert!(t.elapsed() < SHORT);

    // More than a pipe holds.
    let out = run(Command::new("sh").args(["-c", "head -c 1000000 /dev/zero | tr '\\0' x"]), SHORT);
    assert_eq!(out.stdout.len(), 1_000_000);
}

#[test]
fn a_temp_dir_is_removed_with_what_is_in_it() {
    let dir = TempDir::new("blself");
    std::fs::write(dir.join("f"), "x").unwrap();
    let path = dir.path().to_owned();
    assert!(path.is_dir());
    drop(dir);
    assert!(!path.exists());
}

#[test]
fn wait_until_says_whether_it_came_true() {
    let mut n = 0;
    assert!(wait_until(SHORT, || {
        n += 1;
        n == 3
    }));
    assert!(!wait_until(Duration::from_millis(20), || false));
}

#[test]
fn programs_and_tools_are_found() {
    assert!(bin("l2fwd").is_file());
    assert!(support::tools::find_program("sh").is_some());
    assert!(support::tools::find_program("no-such-program").is_none());
    assert!(loops(1, 1000) >= 1);
}
