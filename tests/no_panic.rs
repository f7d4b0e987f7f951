//! No panic can be reached from a burst: the release program is disassembled, and every call is followed from each burst
//! function on.
//!
//! A call into `panicking` (or into the allocator's failure) fails the test, and the way to it is printed. The walk ends at
//! the doors listed in `DOORS`: what lies behind them happens once in a while by design, not in a burst's course.

mod support;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::process::Command;
use support::need;

/// Burst functions: what a row of the table can hold, and what C calls.
const BURSTS: &[&str] = &[
    "burstline::driver::hot::rx_burst",
    "burstline::driver::hot::tx_burst",
    "burstline::driver::hot::tx_flush",
    "burstline::port::ends::rx_group",
    "burstline::port::ends::rx_detour",
    "burstline::port::ends::tx_detour",
    "burstline::port::row::null_",
];

/// Where the walk ends, and why.
const DOORS: &[(&str, &str)] = &[
    ("alloc::fmt::format::format_inner", "the text of an error that ends an input or a device; our texts cannot fail"),
    ("burstline::base::log::say", "a line for a thing that happens once, formatted by then"),
    ("burstline::driver::event::EventSink::raise", "an event: once, at the end of an input or of a device"),
    ("burstline::pmd::pcap::sink::Sink::failed", "a capture that cannot be written any more, said once"),
    ("burstline::port::wrap::trace::Recorder::", "a port that was asked to write down each packet as text"),
    ("burstline::pool::inner::PoolInner::destroy", "the last packet of a closed pool frees the pool"),
    ("burstline::pool::inner::PoolInner::complain_of_twice", "a program that frees twice, outside debug mode"),
    ("burstline::pool::debug::", "debug mode, which names places and is not fast"),
    ("burstline::pool::inner::PoolInner::make_cache", "a thread's first packet of a pool"),
    ("burstline::port::ends::RxEnd::bind", "the first burst on a queue"),
    ("burstline::port::ends::TxEnd::bind", "the first burst on a queue"),
    ("burstline::port::ends::Owner::complain", "debug mode: a queue used from two threads, said once"),
    ("burstline::pmd::pcap::live::Live::failed", "an interface failed, said once"),
    ("burstline::pmd::pcap::rx::FileRx::end", "a file ended, said once"),
    ("burstline::pmd::pcap::sink::Sink::failed", "a write failed, said once"),
    (
        "burstline::pmd::pcap::feed::Feed::read",
        "read(2) and the parser: what they refuse is a text, and the file ends there",
    ),
    ("burstline::base::cpu::fence_light_slow", "membarrier is asked for once"),
    ("burstline::base::time::tsc_hz", "measured once"),
];

struct Program {
    /// Function → what it calls, by address.
    calls: BTreeMap<u64, Vec<u64>>,
    names: HashMap<u64, String>,
}

fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The release program, built where cargo keeps it.
fn release_program() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = run(&cargo, &["build", "--release", "--bin", "l2fwd", "--message-format=json", "--quiet"]);
    let paths = out.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    paths
        .filter_map(|v| v["executable"].as_str().map(str::to_string))
        .next_back()
        .expect("cargo names the program that it built")
}

fn hex(s: &str) -> Option<u64> {
    u64::from_str_radix(s.trim_start_matches("0x"), 16).ok()
}

fn read(program: &str) -> Program {
    // Slots of the global offset table, through which calls of far functions go.
    let mut slots = HashMap::new();
    for line in run("objdump", &["-R", program]).lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        if let [at, "R_X86_64_RELATIVE", to] = w[..]
            && let (Some(at), Some(to)) = (hex(at), to.split_once('+').and_then(|t| hex(t.1)))
        {
            slots.insert(at, to);
        }
    }
    let (mut calls, mut names, mut here) = (BTreeMap::<u64, Vec<u64>>::new(), HashMap::new(), 0);
    for line in run("objdump", &["-d", "-C", "--no-show-raw-insn", program]).lines() {
        if let Some((at, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            if let Some(at) = hex(at) {
                here = at;
                names.insert(at, name.trim_end_matches(">:").to_string());
                calls.entry(at).or_default();
            }
            continue;
        }
        let Some((_, insn)) = line.split_once(":\t") else { continue };
        let (op, arg) = insn.trim().split_once(char::is_whitespace).unwrap_or((insn.trim(), ""));
        if !(op.starts_with("call") || op.starts_with('j')) {
            continue;
        }
        let arg = arg.trim();
        let to = if arg.starts_with('*') {
            arg.split_once("# ")
                .and_then(|(_, a)| hex(a.split_whitespace().next()?))
                .and_then(|a| slots.get(&a).copied())
        } else {
            arg.split_whitespace().next().and_then(hex)
        };
        if let Some(to) = to {
            calls.entry(here).or_default().push(to);
        }
    }
    Program { calls, names }
}

impl Program {
    fn name(&self, at: u64) -> &str {
        self.names.get(&at).map_or("", String::as_str)
    }

    /// The way from `from` to something that panics.
    fn way_to_panic(&self, from: u64) -> Option<Vec<&str>> {
        let (mut seen, mut queue) = (HashMap::from([(from, from)]), VecDeque::from([from]));
        while let Some(at) = queue.pop_front() {
            let name = self.name(at);
            let panics = ["panicking::", "option::unwrap_failed", "result::unwrap_failed", "handle_alloc_error"];
            // What happens *if* something unwinds (into an `extern "C"` function, out of a destructor), and the question
            // whether a lock's holder did: on their own they lead nowhere.
            if ["panic_cannot_unwind", "panic_in_cleanup", "panic_count"].iter().any(|p| name.contains(p)) {
                continue;
            }
            if panics.iter().any(|p| name.contains(p)) {
                let mut way = vec![name];
                let mut at = at;
                while at != from {
                    at = seen[&at];
                    way.insert(0, self.name(at));
                }
                return Some(way);
            }
            if DOORS.iter().any(|d| name.contains(d.0)) {
                continue;
            }
            for &to in self.calls.get(&at).into_iter().flatten() {
                if self.names.contains_key(&to) && !seen.contains_key(&to) {
                    seen.insert(to, at);
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

#[test]
fn no_panic_is_reachable_from_a_burst() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: no_panic_is_reachable_from_a_burst: reads x86_64 code");
        return;
    }
    need!("objdump");
    let p = read(&release_program());
    let bursts: Vec<u64> =
        p.calls.keys().copied().filter(|&a| BURSTS.iter().any(|b| p.name(a).starts_with(b))).collect();
    // Two functions a variant: fewer means that the pattern has lost them.
    assert!(bursts.len() >= 12, "only {} burst functions were found", bursts.len());
    let ways: BTreeSet<String> = bursts.iter().filter_map(|&b| p.way_to_panic(b)).map(|w| w.join("\n    → ")).collect();
    assert!(
        ways.is_empty(),
        "{} ways lead from a burst to a panic:\n{}",
        ways.len(),
        Vec::from_iter(ways).join("\n\n")
    );
}

#[test]
fn the_walk_finds_a_panic_behind_a_call() {
    let names = [(1, "burst"), (2, "helper"), (3, "core::panicking::panic_bounds_check"), (4, "clean")];
    let p = Program {
        calls: BTreeMap::from([(1, vec![2]), (2, vec![3]), (3, vec![]), (4, vec![])]),
        names: names.iter().map(|&(a, n)| (a, n.to_string())).collect(),
    };
    assert_eq!(p.way_to_panic(1).unwrap().len(), 3);
    assert!(p.way_to_panic(4).is_none());
}
