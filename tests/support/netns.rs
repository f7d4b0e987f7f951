//! Network namespaces of a test's own: made by `ip netns add`, gone with their value.

use super::run::{ChildGuard, Output, run, run_args, unique, wait_until};
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// A named network namespace with its loopback up. Drop ends the programs that run in it, and removes it.
///
/// Values drop in reverse order of their making: guards of programs started in it end first.
#[derive(Debug)]
pub struct NetNs {
    name: String,
}

impl NetNs {
    /// The name is `prefix`, the process id and a counter, so tests of many processes do not meet.
    #[track_caller]
    pub fn new(prefix: &str) -> NetNs {
        let ns = NetNs { name: format!("{prefix}-{}-{}", std::process::id(), unique()) };
        run_args("ip", &["netns", "add", &ns.name], LIMIT).expect_ok();
        ns.ip(&["link", "set", "lo", "up"]);
        ns
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that setns(2) and `ip link set netns` take.
    pub fn path(&self) -> std::path::PathBuf {
        std::path::Path::new("/run/netns").join(&self.name)
    }

    /// A command that will run in the namespace. `ip netns exec` becomes the program, so a child's id is the program's.
    pub fn command(&self, cmd: &[&str]) -> Command {
        let mut c = Command::new("ip");
        c.args(["netns", "exec", &self.name]).args(cmd);
        c
    }

    /// Runs a program in the namespace to its end, for at most 20 s.
    #[track_caller]
    pub fn run(&self, cmd: &[&str]) -> Output {
        run(&mut self.command(cmd), LIMIT)
    }

    #[track_caller]
    pub fn run_for(&self, cmd: &[&str], limit: Duration) -> Output {
        run(&mut self.command(cmd), limit)
    }

    /// Starts a program in the namespace; it is ended by its id when the guard drops. Its output goes nowhere.
    pub fn spawn(&self, cmd: &[&str]) -> ChildGuard {
        ChildGuard::spawn(self.command(cmd).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// `ip` in the namespace; panics with what ip said when it refuses.
    #[track_caller]
    pub fn ip(&self, args: &[&str]) -> Output {
        let all: Vec<&str> = ["-n", &self.name].iter().chain(args).copied().collect();
        run_args("ip", &all, LIMIT).expect_ok()
    }

    /// Brings an interface of the caller's namespace into this one.
    #[track_caller]
    pub fn move_in(&self, ifname: &str) {
        run_args("ip", &["link", "set", ifname, "netns", &self.name], LIMIT).expect_ok();
    }

    pub fn has_link(&self, ifname: &str) -> bool {
        run_args("ip", &["-n", &self.name, "link", "show", ifname], LIMIT).ok()
    }

    #[track_caller]
    pub fn up(&self, ifname: &str) {
        self.ip(&["link", "set", ifname, "up"]);
    }

    #[track_caller]
    pub fn down(&self, ifname: &str) {
        self.ip(&["link", "set", ifname, "down"]);
    }

    #[track_caller]
    pub fn mtu(&self, ifname: &str, mtu: u32) {
        self.ip(&["link", "set", ifname, "mtu", &mtu.to_string()]);
    }

    #[track_caller]
    pub fn mac(&self, ifname: &str, mac: &str) {
        self.ip(&["link", "set", ifname, "address", mac]);
    }

    /// `addr` with its prefix length. An IPv6 address is usable at once: no duplicate address detection.
    #[track_caller]
    pub fn addr(&self, ifname: &str, addr: &str) {
        if addr.contains(':') {
            self.ip(&["addr", "add", addr, "dev", ifname, "nodad"]);
        } else {
            self.ip(&["addr", "add", addr, "dev", ifname]);
        }
    }

    /// Stops what an interface sends unasked (router solicitation, duplicate address detection, MLD of link-local
    /// addresses), for tests that count every frame. Addresses set by [`NetNs::addr`] still work. Before [`NetNs::up`].
    #[track_caller]
    pub fn quiet(&self, ifname: &str) {
        self.ip(&["link", "set", ifname, "addrgenmode", "none"]);
        for (key, value) in [("accept_ra", 0), ("accept_dad", 0), ("dad_transmits", 0), ("router_solicitations", 0)] {
            self.sysctl(&format!("net/ipv6/conf/{ifname}/{key}"), &value.to_string());
        }
    }

    /// No IPv6 at all on an interface: not one frame of it.
    #[track_caller]
    pub fn no_ipv6(&self, ifname: &str) {
        self.sysctl(&format!("net/ipv6/conf/{ifname}/disable_ipv6"), "1");
    }

    /// Writes a file under /proc/sys as the namespace sees it.
    #[track_caller]
    pub fn sysctl(&self, key: &str, value: &str) {
        self.run(&["sh", "-c", &format!("echo {value} > /proc/sys/{key}")]).expect_ok();
    }

    /// Turns the offloads of an interface off, so frames are as on a cable: whole checksums, nothing above the MTU.
    #[track_caller]
    pub fn no_offloads(&self, ifname: &str) {
        self.run(&["ethtool", "-K", ifname, "tx", "off", "tso", "off", "gso", "off", "gro", "off"]).expect_ok();
    }

    /// A number of /sys/class/net/<ifname>/statistics.
    #[track_caller]
    pub fn stat(&self, ifname: &str, key: &str) -> u64 {
        let out = self.run(&["cat", &format!("/sys/class/net/{ifname}/statistics/{key}")]).expect_ok();
        out.stdout.trim().parse().unwrap_or_else(|e| panic!("{ifname} {key}: {e}: {:?}", out.stdout))
    }

    /// Ids of the processes whose network namespace this is.
    pub fn pids(&self) -> Vec<i32> {
        let out = run_args("ip", &["netns", "pids", &self.name], LIMIT);
        out.stdout.split_whitespace().filter_map(|p| p.parse().ok()).collect()
    }

    /// Ends what still runs in here, by process id. Nobody else's programs can be in a namespace that this value made;
    /// a test process whose own thread has entered it is left alone.
    fn end_processes(&self) {
        let own = std::process::id() as i32;
        let others = || self.pids().into_iter().filter(|&p| p != own).collect::<Vec<_>>();
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let pids = others();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                // SAFETY: kill touches no memory of ours.
                unsafe { libc::kill(pid, signal) };
            }
            wait_until(Duration::from_secs(2), || others().is_empty());
        }
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        // Also when a test panics, so nothing here may panic again: a second panic would abort the test binary.
        let quietly = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.end_processes();
            run_args("ip", &["netns", "del", &self.name], LIMIT)
        }));
        match quietly {
            Ok(out) if out.ok() => {}
            Ok(out) => eprintln!("ip netns del {}: {}", self.name, out.stderr),
            Err(_) => eprintln!("ip netns del {}: could not be run", self.name),
        }
    }
}

/// A veth pair with one end in each namespace, both down: `veth_pair(&a, "a0", &b, "b0")`.
#[track_caller]
pub fn veth_pair(a: &NetNs, a_if: &str, b: &NetNs, b_if: &str) {
    let args = ["link", "add", a_if, "netns", &a.name, "type", "veth", "peer", "name", b_if, "netns", &b.name];
    run_args("ip", &args, LIMIT).expect_ok();
}

/// A veth pair, both ends up, with these addresses (each with its prefix length).
#[track_caller]
pub fn veth_pair_up(a: &NetNs, a_if: &str, a_addr: &str, b: &NetNs, b_if: &str, b_addr: &str) {
    veth_pair(a, a_if, b, b_if);
    for (ns, ifname, addr) in [(a, a_if, a_addr), (b, b_if, b_addr)] {
        ns.addr(ifname, addr);
        ns.up(ifname);
    }
}
