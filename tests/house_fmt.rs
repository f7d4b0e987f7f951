//! Every Rust file is laid out by rustfmt, also one that no build reaches yet.

mod support;

use std::process::Command;
use std::time::Duration;
use support::{house, need, run};

#[test]
fn every_rust_file_is_laid_out_by_rustfmt() {
    need!("rustfmt");
    let files: Vec<String> = house::files()
        .into_iter()
        .filter(|f| f.ends_with(".rs"))
        .filter(|f| ["src/", "pmd/", "tests/", "benches/"].iter().any(|d| f.starts_with(d)))
        .collect();
    assert!(files.iter().any(|f| f.starts_with("pmd/")) && files.iter().any(|f| f.starts_with("src/")));
    let mut cmd = Command::new("rustfmt");
    let out = run::run(
        cmd.current_dir(house::root()).args(["--check", "--color", "never", "-l", "--edition", "2024"]).args(&files),
        Duration::from_secs(60),
    );
    assert!(out.ok(), "not laid out (cargo fmt, or rustfmt FILE):\n{}{}", out.stdout, out.stderr);
}
