//! Two network namespaces that reach each other only through a forwarding program between two `net_tap` ports.

use super::clib::{self, Lang};
use super::e2e::{Books, LIMIT};
use super::netns::NetNs;
use super::run::{ChildGuard, Output, TempDir, run_args, wait_until};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/traffic.py");

/// A program with l2fwd's command line.
pub struct Program {
    pub path: PathBuf,
}

pub fn rust_l2fwd() -> Program {
    Program { path: env!("CARGO_BIN_EXE_l2fwd").into() }
}

pub fn c_source() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples-c/l2fwd.c").into()
}

/// The C program, built as its users build it: against the header and the static library.
#[track_caller]
pub fn c_l2fwd(dir: &TempDir) -> Program {
    let (object, path) = (dir.join("l2fwd-c.o"), dir.join("l2fwd-c"));
    clib::object("gcc", Lang::C11, c_source(), &object);
    clib::link("gcc", &object, false, &[], &path);
    Program { path }
}

/// The rig. Fields drop in this order: the program ends, then its namespaces go.
pub struct Between {
    forwarder: ChildGuard,
    pub a: NetNs,
    pub b: NetNs,
    /// Where the program runs and makes its interfaces.
    here: NetNs,
    pub dir: TempDir,
    mtu: u32,
}

pub const A: &str = "e2e-a";
pub const B: &str = "e2e-b";

impl Between {
    #[track_caller]
    pub fn start(program: &Program, mtu: u32) -> Between {
        let (here, a, b) = (NetNs::new("bl-e2e-h"), NetNs::new("bl-e2e-a"), NetNs::new("bl-e2e-b"));
        // Interfaces that are up here for a moment say nothing.
        here.sysctl("net/ipv6/conf/default/disable_ipv6", "1");
        let dir = TempDir::new("bl-between");
        let forwarder = launch(program, &here, &dir, mtu);
        let rig = Between { forwarder, a, b, here, dir, mtu };
        rig.wire();
        rig
    }

    /// A new program in the place of one that has ended.
    #[track_caller]
    pub fn restart(&mut self, program: &Program) {
        self.forwarder = launch(program, &self.here, &self.dir, self.mtu);
        self.wire();
    }

    /// The interfaces go into their namespaces once their ports run, and get addresses there.
    #[track_caller]
    fn wire(&self) {
        for (ns, ifname, n) in [(&self.a, A, 1), (&self.b, B, 2)] {
            let args = ["-n", self.here.name(), "-o", "link", "show", "dev", ifname, "up"];
            let up = || !run_args("ip", &args, LIMIT).stdout.is_empty();
            assert!(wait_until(LIMIT, up), "{ifname}: {}", self.log());
            self.here.ip(&["link", "set", ifname, "netns", ns.name()]);
            ns.quiet(ifname);
            ns.addr(ifname, &format!("10.77.0.{n}/24"));
            ns.up(ifname);
        }
        for (ns, ifname) in [(&self.a, A), (&self.b, B)] {
            let carrier = || ns.run(&["cat", &format!("/sys/class/net/{ifname}/carrier")]).stdout.trim() == "1";
            assert!(wait_until(LIMIT, carrier), "{ifname} has no carrier: {}", self.log());
        }
        // An address of IPv6 is announced at once, so the other end should be up by now.
        self.a.addr(A, "fd77::1/64");
        self.b.addr(B, "fd77::2/64");
    }

    /// What the program said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    pub fn signal(&self, signal: i32) {
        self.forwarder.signal(signal);
    }

    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let status = self.forwarder.wait(LIMIT);
        status.unwrap_or_else(|| panic!("it does not end: {}", self.log()))
    }

    /// Ends the program as a user does: exit 0, interfaces gone, books written.
    #[track_caller]
    pub fn stop(&mut self) -> Books {
        self.signal(libc::SIGTERM);
        let status = self.ended();
        assert!(status.success(), "{status}: {}", self.log());
        self.interfaces_go();
        Books::read(&self.dir.join("books.json"))
    }

    #[track_caller]
    pub fn interfaces_go(&self) {
        for (ns, ifname) in [(&self.a, A), (&self.b, B)] {
            assert!(wait_until(LIMIT, || !ns.has_link(ifname)), "{ifname} stays");
            assert!(!self.here.has_link(ifname));
        }
    }

    /// `n` pings from A, quick ones; each is answered. The first may have to wait for the neighbour's address.
    #[track_caller]
    pub fn ping(&self, address: &str, n: u32, len: u32) {
        let (n, len) = (n.to_string(), len.to_string());
        let args = ["ping", "-n", "-q", "-i", "0.02", "-W", "20", "-M", "do", "-c", &n, "-s", &len, address];
        let out = self.a.run_for(&args, LIMIT);
        let all = format!("{n} packets transmitted, {n} received");
        assert!(out.ok() && out.stdout.contains(&all), "{}{}{}", out.stdout, out.stderr, self.log());
    }
}

fn launch(program: &Program, here: &NetNs, dir: &TempDir, mtu: u32) -> ChildGuard {
    let log = std::fs::File::create(dir.join("log")).unwrap();
    let line = format!(
        "-l 0 --no-pci --vdev=net_tap0,iface={A},mtu={mtu} --vdev=net_tap1,iface={B},mtu={mtu} -- -p 0x3 -T 0 \
         --no-mac-updating --stats-json books.json"
    );
    let mut cmd = here.command(&[program.path.to_str().unwrap()]);
    cmd.args(line.split_whitespace()).current_dir(dir.path()).env("TMPDIR", dir.path());
    ChildGuard::spawn(cmd.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log)).term_limit(LIMIT)
}

/// traffic.py in a namespace, its lines read as they come.
pub struct Traffic {
    child: ChildGuard,
    lines: BufReader<std::process::ChildStdout>,
    errors: std::process::ChildStderr,
}

impl Traffic {
    #[track_caller]
    pub fn start(ns: &NetNs, line: &str) -> Traffic {
        let mut cmd: Command = ns.command(&["timeout", "150", "python3", "-u", SCRIPT]);
        cmd.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut cmd);
        let lines = BufReader::new(child.stdout.take().unwrap());
        let errors = child.stderr.take().unwrap();
        Traffic { child, lines, errors }
    }

    /// [`Traffic::start`], and back when it says that it waits for others.
    #[track_caller]
    pub fn ready(ns: &NetNs, line: &str) -> Traffic {
        let mut traffic = Traffic::start(ns, line);
        traffic.until("ready");
        traffic
    }

    /// Its next line, which begins so. `timeout` ends what says nothing.
    #[track_caller]
    pub fn until(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        if !line.starts_with(word) {
            let mut errors = String::new();
            self.child.signal(libc::SIGTERM);
            let _ = self.errors.read_to_string(&mut errors);
            panic!("'{line}' instead of '{word}': {errors}");
        }
        line
    }

    /// All that it still has to say, at its end.
    #[track_caller]
    pub fn finish(mut self) -> String {
        let (mut said, mut errors) = (String::new(), String::new());
        self.lines.read_to_string(&mut said).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        let status = self.child.wait(LIMIT).expect("it ends after its last line");
        assert!(status.success(), "{status}\n{said}{errors}");
        said
    }
}

/// tcpdump on an interface; back when it listens.
pub struct Dump {
    child: ChildGuard,
    file: PathBuf,
}

impl Dump {
    #[track_caller]
    pub fn start(ns: &NetNs, ifname: &str, filter: &str, dir: &TempDir) -> Dump {
        let file = dir.join("dump.pcap");
        let cmd = ["tcpdump", "-n", "-U", "-Z", "root", "-i", ifname, "-Q", "in", "-w", file.to_str().unwrap(), filter];
        let child = ns.spawn(&cmd);
        // Its file has a header once the socket is there.
        assert!(wait_until(LIMIT, || file.metadata().is_ok_and(|m| m.len() >= 24)), "tcpdump does not start");
        Dump { child, file }
    }

    /// The capture, once it holds `n` frames by tshark's count or has had its time.
    #[track_caller]
    pub fn finish(mut self, n: usize) -> PathBuf {
        let count = || super::e2e::tshark_quietly(&self.file).is_some_and(|have| have >= n);
        wait_until(Duration::from_secs(20), count);
        self.child.signal(libc::SIGINT);
        self.child.wait(LIMIT).expect("tcpdump ends");
        std::mem::take(&mut self.file)
    }
}
