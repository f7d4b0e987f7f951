//! l2fwd as its users run it: what it forwards, what it writes, and what it says when it cannot.

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::need;
use support::run::{ChildGuard, Output, TempDir, run, wait_until};

const LIMIT: Duration = Duration::from_secs(30);

fn l2fwd(args: &[&str], tmp: &TempDir) -> Output {
    run(&mut command(args, tmp), LIMIT)
}

/// With temporary and current directory of the test's own.
fn command(args: &[&str], tmp: &TempDir) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_l2fwd"));
    c.args(args).env("TMPDIR", tmp.path()).current_dir(tmp.path());
    c
}

fn line(s: &str) -> Vec<&str> {
    s.split_whitespace().collect()
}

fn n(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {v}"))
}

/// Entries of a directory, by name.
fn entries(dir: &TempDir) -> Vec<String> {
    std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn bad_input_is_named_ends_with_1_and_leaves_nothing_behind() {
    let tmp = TempDir::new("l2fwd-bad");
    for (args, says) in [
        ("--vdev net_null0 --burst 8", "unknown EAL option '--burst'"),
        (
            "--vdev net_null0 -- --brust 8",
            "unexpected argument '--brust' found; tip: a similar argument exists: '--burst'",
        ),
        ("--vdev net_null0 -- more", "unexpected argument 'more'"),
        ("--vdev net_nul0", "no driver 'net_nul', did you mean 'net_null'? (built in: net_null"),
        ("--vdev net_null0,sise=64", "unknown key 'sise', did you mean 'size'?"),
        ("--vdev net_null0,size=13", "size='13' is outside 14..=65535"),
        ("--vdev net_null0 --vdev net_null0", "there is a device of this name already"),
        ("--vdev net_pcap0,rx_pcap=missing.pcap", "missing.pcap"),
        ("--vdev net_pcap0,tx_pcap=no-such-dir/out.pcap", "no-such-dir/out.pcap"),
        ("--vdev net_null0 --wrap net_null0,tarce", "'tarce' is no wrapper"),
        ("--vdev net_null0 --wrap net_null1,trace", "there is no device 'net_null1'"),
        ("--lcores 0@1023 --vdev net_null0", "CPU 1023 not there or not allowed"),
        ("-l 0 --main-lcore 1 --vdev net_null0", "--main-lcore 1 is not among the lcores 0"),
        ("-m 1048576 --vdev net_null0", "-m 1048576: 1048576 MiB of packet memory, available are"),
        ("-m 1 --vdev net_null0", "-m 1: a pool of 8192 packets needs"),
        ("-a 03:00.0", "-a 0000:03:00.0: no PCI driver is built in"),
        ("-- -p 3", "no port was found"),
        ("--vdev net_null0 -- -p 0", "the mask has no port in it"),
        ("--vdev net_null0 -- -p +3", "no hexadecimal mask"),
        ("--vdev net_null0 -- -p 4", "-p 0x4: there is no port 2: the ports are [0]"),
        ("--vdev net_null0 -- -q 0", "0 is not in 1..=64"),
        ("-l 0 --vdev net_null0 --vdev net_null1 -- -q 1", "-q 1: 2 ports need 2 lcores, there are 1"),
        ("--vdev net_null0 -- -T x", "invalid value 'x' for '-T <PERIOD>'"),
        ("--vdev net_null0 -- --portmap (0,1)", "--portmap: there is no port 1"),
        ("--vdev net_null0 -- --portmap (0,0)(0,0)", "port 0 stands in two pairs"),
        ("--vdev net_null0 -- --portmap 0,1", "not (A,B)(C,D): '0,1'"),
        ("--vdev net_null0 --vdev net_null1 -- -p 1 --portmap (0,1)", "port 1 is not in the mask of -p"),
        ("--vdev net_null0 -- --duration 0", "no number of seconds above 0"),
        ("--vdev net_null0 -- --packets 0", "invalid value '0' for '--packets <N>'"),
        ("--vdev net_null0 -- --burst 513", "513 is not in 1..=512"),
        (
            "--vdev net_null0 -- --rxd 40000",
            "--rxd 40000: port net_null0: 40000 descriptors for receive queue 0; the device takes 1 to 32768",
        ),
        ("--vdev net_null0 -- --txd 40000", "the device takes 1 to 32768"),
        ("--vdev net_null0 -- --pool-size 31", "--pool-size 31: 1 ports with bursts of 32 need 32 packets at least"),
        ("--vdev net_null0 -- --stats-json no-such-dir/x.json", "--stats-json 'no-such-dir/x.json': No such file"),
        ("--vdev net_null0 -- --stats-json x.json --exit-on-eof", "--exit-on-eof: no port's input ends by itself"),
    ] {
        let out = l2fwd(&line(args), &tmp);
        assert_eq!(out.code(), 1, "{args}\n{}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains("l2fwd: error: "), "{args}: {}", out.stderr);
        assert!(out.stderr.contains(says), "{args}: {}", out.stderr);
        assert_eq!(entries(&tmp), [""; 0], "{args}");
    }
}

#[test]
fn help_and_version_end_with_0_and_make_nothing() {
    let tmp = TempDir::new("l2fwd-help");
    for args in ["-h", "--help", "--vdev net_null0 -- -h", "--vdev net_null0 -- --help"] {
        let out = l2fwd(&line(args), &tmp).expect_ok();
        for part in ["--vdev", "-p <PORTMASK>", "--exit-on-eof", "net_null", "size="] {
            assert!(out.stdout.contains(part), "{args}: no {part} in\n{}", out.stdout);
        }
    }
    assert!(l2fwd(&["-v"], &tmp).expect_ok().stdout.starts_with("l2fwd, burstline "));
    assert_eq!(entries(&tmp), [""; 0]);
}

/// The object of `--stats-json`, with the books checked.
fn books(text: &str) -> Value {
    let v: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let keys: Vec<&String> = v.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ports", "pools", "memory"]);
    let (mut received, mut sent) = (0, 0);
    for port in v["ports"].as_array().unwrap() {
        received += n(port, "ipackets");
        sent += n(port, "opackets") + n(port, "oerrors");
        for cause in ["burst", "fill", "idle", "deadline", "explicit"] {
            n(&port["tx_flush"], cause);
        }
    }
    assert_eq!(received, sent, "what came in went out or was counted: {v}");
    for pool in v["pools"].as_array().unwrap() {
        assert_eq!(n(pool, "available"), n(pool, "size"), "{v}");
    }
    assert!(n(&v["memory"], "page_size") >= 4096);
    v
}

#[test]
fn exactly_as_many_packets_as_asked_for_are_forwarded_and_the_books_agree() {
    let tmp = TempDir::new("l2fwd-packets");
    for (devices, options, n_packets) in [
        ("--vdev net_null0 --vdev net_null1", "--burst 32", 1000),
        ("--vdev net_null0 --vdev net_null1", "--burst 512 --perf", 100_001),
        ("--vdev net_null0 --vdev net_null1 --vdev net_null2", "-p 5", 4242),
        ("--vdev net_null0 --debug-pools --vdev net_ring0", "--pool-size 600", 5000),
    ] {
        let args = format!("--no-huge {devices} -- --packets {n_packets} --stats-json - {options}");
        let out = l2fwd(&line(&args), &tmp).expect_ok();
        let v = books(&out.stdout);
        let received: u64 = v["ports"].as_array().unwrap().iter().map(|p| n(p, "ipackets")).sum();
        assert_eq!(received, n_packets, "{args}");
        assert!(out.stderr.contains("totals"), "people read stderr when stdout is JSON: {}", out.stderr);
        assert_eq!(out.stderr.contains("cycles a packet"), options.contains("--perf"));
    }
}

#[test]
fn ports_forward_as_the_map_says() {
    let tmp = TempDir::new("l2fwd-map");
    // Port 0 makes packets, 3 is its pair by the map; 1 and 2 make none.
    let devices = "--vdev net_null0 --vdev net_null1,no-rx=1 --vdev net_null2,no-rx=1 --vdev net_null3,no-rx=1";
    for (map, out_port) in [("(0,3)(1,2)", 3), ("(0,2),(1,3)", 2), ("(0,0)", 0)] {
        let args = format!("{devices} -- --packets 640 --stats-json - --portmap {map}");
        let v = books(&l2fwd(&line(&args), &tmp).expect_ok().stdout);
        for port in v["ports"].as_array().unwrap() {
            let expect = if n(port, "port") == out_port { 640 } else { 0 };
            assert_eq!(n(port, "opackets"), expect, "{map}: {port}");
        }
    }
}

#[test]
fn a_signal_ends_it_with_0_and_the_json_is_written() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let tmp = TempDir::new("l2fwd-signal");
        let args = "--vdev net_null0 --vdev net_null1 -- -T 0 --stats-json out.json";
        let mut child = ChildGuard::spawn(command(&line(args), &tmp).stdout(Stdio::piped()).stderr(Stdio::null()));
        // It says which lcore serves which port once it runs.
        let mut first = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        child.signal(signal);
        let status = child.wait(LIMIT).expect("it ends");
        assert!(status.success(), "{status}");
        books(&std::fs::read_to_string(tmp.join("out.json")).unwrap());
    }
}

fn allowed(task: &str) -> Option<(String, String)> {
    let status = std::fs::read_to_string(format!("{task}/status")).ok()?;
    let field = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(|v| v.trim().to_owned());
    Some((field("Name:")?, field("Cpus_allowed_list:")?))
}

#[test]
fn threads_are_pinned_as_l_says_and_not_without_it() {
    let cpus = burstline::eal::affinity::allowed_cpus();
    let (a, b) = (cpus[0], cpus[cpus.len() - 1]);
    let all = burstline::eal::cpulist::format_list(&cpus);
    let tmp = TempDir::new("l2fwd-pin");
    let devices = "--vdev net_null0 --vdev net_null1 -- -T 0";
    let pinned = format!("--lcores 0@{a},1@{b} {devices}");
    for (args, main, worker) in [(pinned.as_str(), a.to_string(), Some(b.to_string())), (devices, all, None)] {
        let child = ChildGuard::spawn(command(&line(args), &tmp).stdout(Stdio::null()));
        let tasks = format!("/proc/{}/task", child.id());
        let list = || -> Vec<(String, String)> {
            let dir = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            dir.filter_map(|t| allowed(t.path().to_str()?)).collect()
        };
        let there = |name: &str, cpus: &str| list().iter().any(|(n, c)| n == name && c == cpus);
        let watch = || list().iter().any(|(n, _)| n == "l2fwd-watch");
        assert!(wait_until(LIMIT, watch), "{:?}", list());
        assert!(wait_until(LIMIT, || there("l2fwd", &main)), "{args}: main not on {main}: {:?}", list());
        match worker {
            Some(cpu) => assert!(wait_until(LIMIT, || there("bl-lcore-1", &cpu)), "{:?}", list()),
            None => assert!(!list().iter().any(|(n, _)| n.starts_with("bl-lcore"))),
        }
    }
}

#[test]
fn the_table_is_redrawn_on_a_terminal_and_plain_elsewhere() {
    let tmp = TempDir::new("l2fwd-table");
    let args = "--vdev net_null0 --vdev net_null1 -- -T 1 --duration 2.5";
    let out = l2fwd(&line(args), &tmp).expect_ok();
    assert!(!out.stdout.contains('\x1b'), "{}", out.stdout);
    assert!(out.stdout.matches("rx pps").count() >= 2, "{}", out.stdout);
    need!("script");
    let line = format!("{} {args}", env!("CARGO_BIN_EXE_l2fwd"));
    let out = run(Command::new("script").args(["-qec", &line, "/dev/null"]), LIMIT).expect_ok();
    assert!(out.stdout.contains("\x1b[4A\r\x1b[J"), "four lines are taken back: {:?}", out.stdout);
}

fn has(driver: &str) -> bool {
    burstline::eal::drivers().iter().any(|d| d.name == driver)
}

const DEMO: &[u8] = include_bytes!("../captures/demo.pcap");

/// Frames of a classic pcap, little-endian.
fn frames(file: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut out) = (&file[24..], Vec::new());
    while rest.len() >= 16 {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        out.push(&rest[16..16 + len]);
        rest = &rest[16 + len..];
    }
    out
}

#[test]
fn without_options_the_built_in_capture_is_forwarded_into_a_file() {
    if !has("net_pcap") {
        return;
    }
    let tmp = TempDir::new("l2fwd-demo");
    let out = l2fwd(&[], &tmp).expect_ok();
    let before = frames(DEMO);
    assert!(out.stdout.contains(&format!("{} packets forwarded", before.len())), "{}", out.stdout);
    assert!(out.stdout.contains("tcpdump -r "), "{}", out.stdout);
    let dirs = entries(&tmp);
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    let files: Vec<_> = std::fs::read_dir(tmp.join(&dirs[0])).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, ["l2fwd-out.pcap"], "the input's copy is gone");
    let written = std::fs::read(tmp.join(&dirs[0]).join("l2fwd-out.pcap")).unwrap();
    let after = frames(&written);
    assert_eq!(after.len(), before.len());
    for (a, b) in after.iter().zip(&before) {
        assert_eq!(a[..6], [2, 0, 0, 0, 0, 1], "destination: the output port");
        assert_eq!(a[12..], b[12..], "the rest is as it was");
    }
}

#[test]
fn a_replayed_capture_is_forwarded_whole_through_the_smallest_rings() {
    if !has("net_pcap") || !has("net_ring") {
        return;
    }
    let tmp = TempDir::new("l2fwd-replay");
    std::fs::write(tmp.join("in.pcap"), DEMO).unwrap();
    for options in ["--burst 1", "--burst 32 --txd 8", "--burst 512 --pool-size 1024", "--no-mac-updating"] {
        let args = format!(
            "--no-huge --vdev net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap --vdev net_ring0 -- --exit-on-eof -T 0 \
             --stats-json - {options}"
        );
        let v = books(&l2fwd(&line(&args), &tmp).expect_ok().stdout);
        let written = std::fs::read(tmp.join("out.pcap")).unwrap();
        let (after, before) = (frames(&written), frames(DEMO));
        assert_eq!(after.len(), before.len(), "{options}: {v}");
        if options == "--no-mac-updating" {
            assert_eq!(after, before, "byte for byte");
        }
    }
}

#[test]
fn an_output_that_stays_full_holds_its_input_up_and_does_not_hold_up_the_end() {
    let tmp = TempDir::new("l2fwd-full");
    // The wrapped device never takes the last packet of a call.
    let args = "--vdev net_null0 --vdev net_null1,no-rx=1 --wrap net_null1,fault,tx_full=1 -- --duration 0.5 -T 0 \
                --stats-json -";
    let out = l2fwd(&line(args), &tmp).expect_ok();
    let v: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(n(&v["ports"][0], "ipackets"), 32, "the input waited: {v}");
    assert_eq!(n(&v["ports"][1], "opackets"), 31, "{v}");
    assert!(out.stderr.contains("dropped before it 1, forward_waits 1"), "{}", out.stderr);
}
