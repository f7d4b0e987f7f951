//! Two network namespaces that reach each other only through l2fwd between two taps: ping, TCP, jumbo datagrams, tags, and
//! what happens when interfaces, or l2fwd itself, go away. The same tests for the program in Rust and the one in C.

mod support;

use std::time::{Duration, Instant};
use support::between::*;
use support::e2e::{LIMIT, entries, tshark};
use support::need;
use support::run::{TempDir, loops, run_args, wait_until};

macro_rules! needs {
    ($($what:expr),*) => {
        need!("root", "netns", "ip", "/dev/net/tun", "ping", "python3" $(, $what)*);
    };
}

/// Each direction of a TCP connection carries this.
const TRANSFER: u64 = 100_000_000;

/// 100 MB each way at once; what was received is what was sent, by its hash.
#[track_caller]
fn tcp_both_ways(rig: &Between, address: &str, who: &str) {
    let begun = Instant::now();
    let mut server = Traffic::ready(&rig.b, &format!("tcp_serve {address} 7777 {TRANSFER} 1"));
    let mut client = Traffic::start(&rig.a, &format!("tcp_connect {address} 7777 {TRANSFER} 2"));
    server.until("first");
    client.until("first");
    let (server, client) = (server.finish(), client.finish());
    let took = begun.elapsed();
    let line = |text: &str, word: &str| {
        let found = text.lines().find_map(|l| l.strip_prefix(word)).map(str::to_string);
        found.unwrap_or_else(|| panic!("no '{word}' in {text}"))
    };
    assert_eq!(line(&server, "sent "), line(&client, "received "));
    assert_eq!(line(&client, "sent "), line(&server, "received "));
    assert!(line(&server, "sent ").starts_with(&format!("{TRANSFER} ")));
    let mbps = 2.0 * 8.0 * TRANSFER as f64 / took.as_secs_f64() / 1e6;
    println!("{who}: TCP to {address}: 100 MB each way in {:.1} s, {mbps:.0} Mbit/s together", took.as_secs_f64());
}

/// `n` datagrams of 8,900 bytes arrive whole, each in one IP packet, as tcpdump in the receiving namespace saw them.
#[track_caller]
fn jumbo_datagrams(rig: &Between, address: &str, n: usize) {
    let dump = Dump::start(&rig.b, B, "udp or ip[6:2] & 0x3fff != 0 or ip6[6] == 44", &rig.dir);
    let server = Traffic::ready(&rig.b, &format!("udp_serve {address} 7778 {n} 8900"));
    let client = Traffic::start(&rig.a, &format!("udp_send {address} 7778 {n} 8900"));
    assert_eq!(server.finish().trim(), format!("good {n}"), "datagrams whose bytes are right");
    client.finish();
    let capture = dump.finish(n);
    let seen = tshark(&capture, &["frame.len", "ip.flags.mf", "ip.frag_offset", "ipv6.fraghdr.nxt", "udp.length"]);
    let head = if address.contains(':') { 40 } else { 20 };
    let no = |field: &str| field.is_empty() || field == "0" || field == "False";
    for f in &seen {
        assert_eq!((f[0].as_str(), f[4].as_str()), (&*(14 + head + 8908).to_string(), "8908"), "{f:?}");
        assert!(no(&f[1]) && no(&f[2]) && f[3].is_empty(), "a fragment: {f:?}");
    }
    assert_eq!(seen.len(), n);
}

#[track_caller]
fn tagged_frames(rig: &Between) {
    let receiver = Traffic::ready(&rig.b, &format!("vlan_receive {B} 40 42"));
    Traffic::start(&rig.a, &format!("vlan_send {A} 40 42")).finish();
    assert_eq!(receiver.finish().trim(), "good 40", "frames with their tag and bytes");
}

fn pings(rig: &Between, longest: u32) {
    for len in [0, 56, longest] {
        rig.ping("10.77.0.2", 20, len);
        rig.ping("fd77::2", 20, len.min(longest - 20));
    }
}

/// All that two hosts on a cable may expect.
fn carries_everything(program: &Program, who: &str) {
    let mut rig = Between::start(program, 1500);
    pings(&rig, 1472);
    tcp_both_ways(&rig, "10.77.0.2", who);
    tcp_both_ways(&rig, "fd77::2", who);
    tagged_frames(&rig);
    let books = rig.stop();
    books.balance();
    assert_eq!((books.sum("ierrors"), books.sum("oerrors"), books.sum("rx_nombuf")), (0, 0, 0), "{}", books.0);
    for port in 0..2 {
        assert!(books.n(port, "ibytes") > 2 * TRANSFER && books.n(port, "obytes") > 2 * TRANSFER, "{}", books.0);
    }
}

fn carries_jumbo_datagrams(program: &Program) {
    let mut rig = Between::start(program, 9000);
    pings(&rig, 8972);
    jumbo_datagrams(&rig, "10.77.0.2", 500);
    jumbo_datagrams(&rig, "fd77::2", 250);
    let books = rig.stop();
    assert_eq!(books.balance().sum("ierrors"), 0, "{}", books.0);
}

/// SIGTERM in the middle of a transfer: exit 0, books in balance, pool whole.
fn stops_in_the_middle_of_a_transfer(program: &Program) {
    let mut rig = Between::start(program, 1500);
    let mut server = Traffic::ready(&rig.b, "tcp_serve 10.77.0.2 7777 10000000000 1");
    let mut client = Traffic::start(&rig.a, "tcp_connect 10.77.0.2 7777 10000000000 2");
    server.until("first");
    client.until("first");
    let before = rig.b.stat(B, "rx_bytes");
    assert!(wait_until(LIMIT, || rig.b.stat(B, "rx_bytes") > before + 1_000_000), "the transfer runs");
    let books = rig.stop();
    books.balance();
    assert!(books.sum("ipackets") > 1000, "{}", books.0);
}

/// Pings through an outage of each interface: those before and after it are answered.
fn outlives_an_interface_that_goes_down(program: &Program) {
    let mut rig = Between::start(program, 1500);
    rig.ping("10.77.0.2", 5, 56);
    for (ns, ifname) in [(&rig.b, B), (&rig.a, A)] {
        let file = std::fs::File::create(rig.dir.join("pings")).unwrap();
        let cmd = ["ping", "-n", "-O", "-i", "0.05", "-c", "100000", "10.77.0.2"];
        let mut ping = support::run::ChildGuard::spawn(
            rig.a.command(&cmd).stdout(file.try_clone().unwrap()).stderr(std::process::Stdio::null()),
        );
        let answers = || std::fs::read_to_string(rig.dir.join("pings")).unwrap().matches("bytes from").count();
        assert!(wait_until(LIMIT, || answers() > 5), "{}", rig.log());
        ns.down(ifname);
        let down = answers();
        std::thread::sleep(Duration::from_secs(loops(1, 7) as u64));
        // One may have been on its way.
        assert!(answers() <= down + 1, "nothing comes over an interface that is down");
        let at_up = answers();
        ns.up(ifname);
        assert!(wait_until(LIMIT, || answers() > at_up + 5), "no answers after {ifname} came up: {}", rig.log());
        ping.stop();
    }
    rig.ping("10.77.0.2", 20, 56);
    let books = rig.stop();
    books.pool_is_whole();
    assert_eq!(books.sum("ipackets"), books.sum("opackets") + books.sum("oerrors"), "{}", books.0);
}

fn namespaces() -> usize {
    let mine = format!("-{}-", std::process::id());
    run_args("ip", &["netns", "list"], LIMIT).stdout.lines().filter(|l| l.contains(&mine)).count()
}

/// Killed in the middle of traffic it leaves nothing, and the next one starts at once under the same names.
fn leaves_nothing_when_it_is_killed(program: &Program) {
    let mut rig = Between::start(program, 1500);
    let files = entries(rig.dir.path());
    for round in 0..loops(3, 100) {
        rig.ping("10.77.0.2", 3, 56);
        let mut server = Traffic::ready(&rig.b, "tcp_serve 10.77.0.2 7777 10000000000 1");
        let _client = Traffic::start(&rig.a, "tcp_connect 10.77.0.2 7777 10000000000 2");
        server.until("first");
        let before = namespaces();
        rig.signal(libc::SIGKILL);
        assert!(!rig.ended().success());
        rig.interfaces_go();
        assert_eq!(namespaces(), before, "round {round}");
        // The log is the test's own; the books were opened, and a killed program cannot take them back.
        let left: Vec<String> = entries(rig.dir.path()).into_iter().filter(|f| f != "books.json").collect();
        assert_eq!(left, files.iter().filter(|f| *f != "books.json").cloned().collect::<Vec<_>>(), "round {round}");
        rig.restart(program);
    }
    rig.ping("10.77.0.2", 5, 56);
    rig.stop();
}

#[test]
fn two_namespaces_ping_and_carry_tcp_and_tagged_frames_through_l2fwd() {
    needs!();
    carries_everything(&rust_l2fwd(), "l2fwd in Rust");
}

#[test]
fn datagrams_of_8900_bytes_pass_unfragmented() {
    needs!("tcpdump", "tshark");
    carries_jumbo_datagrams(&rust_l2fwd());
}

#[test]
fn stopped_in_the_middle_of_a_transfer_its_books_agree() {
    needs!();
    stops_in_the_middle_of_a_transfer(&rust_l2fwd());
}

#[test]
fn an_interface_that_goes_down_and_comes_up_carries_on() {
    needs!();
    outlives_an_interface_that_goes_down(&rust_l2fwd());
}

#[test]
fn killed_it_leaves_nothing_and_starts_again_at_once() {
    needs!();
    leaves_nothing_when_it_is_killed(&rust_l2fwd());
}

#[test]
fn the_c_program_does_all_the_same() {
    needs!("tcpdump", "tshark", "gcc", c_source().as_str());
    let dir = TempDir::new("bl-c-l2fwd");
    let program = c_l2fwd(&dir);
    carries_everything(&program, "l2fwd in C");
    carries_jumbo_datagrams(&program);
    stops_in_the_middle_of_a_transfer(&program);
    outlives_an_interface_that_goes_down(&program);
    leaves_nothing_when_it_is_killed(&program);
}
