//! Instructions a packet stay what they were: counted by valgrind, beside the figures in `benches/instructions.txt`.
//!
//! A figure that fell is good news; take it over with `scripts/count-instructions.sh > benches/instructions.txt`.

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use support::{house, need};

/// What a figure may rise by: another patch release of the compiler moves some by this much.
const RISE: f64 = 1.03;
/// What deferring may cost a burst more than announcing it.
const DEFERRING: f64 = 2.0;

fn figures(text: &str) -> BTreeMap<String, f64> {
    let rows = text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once('\t'));
    rows.map(|(kind, n)| (kind.to_string(), n.parse().unwrap_or_else(|e| panic!("{kind}: {n}: {e}")))).collect()
}

fn counted() -> BTreeMap<String, f64> {
    let out = Command::new(house::root().join("scripts/count-instructions.sh")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    figures(&String::from_utf8_lossy(&out.stdout))
}

#[test]
fn no_packet_costs_more_instructions_than_it_did_and_deferring_costs_no_more_than_ringing() {
    need!("valgrind");
    let now = counted();
    let then = figures(&house::text("benches/instructions.txt").unwrap());
    let mut bad = Vec::new();
    for (kind, then) in &then {
        match now.get(kind) {
            Some(n) if *n <= then * RISE => {}
            n => bad.push(format!("{kind}: {n:?}, and it was {then}")),
        }
    }
    for kind in now.keys().filter(|k| !then.contains_key(*k)) {
        bad.push(format!("{kind}: not in benches/instructions.txt"));
    }
    for burst in [1.0, 32.0, 64.0] {
        let of = |how: &str| now[&format!("tx-{how}-{burst}")] * burst;
        if of("more") > of("burst") + DEFERRING {
            bad.push(format!("a burst of {burst}: {} instructions deferred, {} announced", of("more"), of("burst")));
        }
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn figures_are_read_as_they_are_written() {
    let f = figures("# a line that tells\nnull\t12.50\nring\t7.00\n");
    assert_eq!((f.len(), f["null"], f["ring"]), (2, 12.5, 7.0));
}
