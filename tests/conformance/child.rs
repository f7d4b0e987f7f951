//! Tests that change what belongs to the whole process, or count it, run in a process of their own.

use crate::support::run::{Output, run};
use std::process::Command;
use std::time::Duration;

const VAR: &str = "BURSTLINE_CONFORMANCE_CHILD";

/// True in the parent, once the child that ran this one test has ended well. False in the child: go on.
#[track_caller]
pub fn alone(test: &str) -> bool {
    if is_child() {
        return false;
    }
    let out = of_its_own(test).expect_ok();
    assert!(out.stdout.contains("1 passed"), "{test} did not run:\n{}", out.stdout);
    true
}

pub fn is_child() -> bool {
    std::env::var_os(VAR).is_some()
}

/// Runs one test of this binary in a process of its own.
#[track_caller]
pub fn of_its_own(test: &str) -> Output {
    let me = std::env::current_exe().expect("this binary");
    let mut cmd = Command::new(me);
    cmd.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(VAR, "1");
    run(&mut cmd, Duration::from_secs(120))
}
