//! What the shared library exports is what `capi-tests/symbols.txt` lists: no more, no less. `BURSTLINE_BLESS=1` writes it anew.

mod support;

use std::time::Duration;
use support::{clib, house, need, run};

fn exported() -> Vec<String> {
    let so = clib::lib_dir().join("libburstline.so");
    let out = run::run_args("nm", &["-D", "--defined-only", so.to_str().unwrap()], Duration::from_secs(60)).expect_ok();
    let mut all: Vec<String> =
        out.stdout.lines().filter_map(|l| l.split_whitespace().nth(2)).map(String::from).collect();
    all.sort();
    all
}

#[test]
fn the_shared_library_exports_what_is_listed_and_nothing_else() {
    need!("nm");
    let path = house::root().join("capi-tests/symbols.txt");
    let there = exported();
    if std::env::var_os("BURSTLINE_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, there.join("\n") + "\n").expect("write the list");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(there, listed.lines().collect::<Vec<_>>());
    assert!(there.iter().all(|s| s.starts_with("bl_")), "{there:?}");
}

#[test]
fn every_symbol_is_declared_in_a_header() {
    need!("nm");
    let headers: String = ["burstline.h", "burstline/mbuf.h", "burstline/fastpath.h"]
        .map(|h| house::text(&format!("include/{h}")).unwrap())
        .concat();
    for s in exported() {
        let declared = headers.contains(&format!("{s}(")) || headers.contains(&format!("{s};"));
        assert!(declared, "{s} is in no header");
    }
}
