//! Hugepages for a test: reserved as root, given back when the test ends, also by a panic.
//!
//! Use: `#[path = "support/hugepages.rs"] mod hugepages;`
#![allow(dead_code)] // Each test binary uses its own part.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const DIR: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const LOCK: &str = "/tmp/burstline-hugepages.lock";

/// Prints why a test did not run; with BURSTLINE_REQUIRE_ALL=1 it fails instead.
pub fn skip(what: &str) {
    assert!(std::env::var("BURSTLINE_REQUIRE_ALL").as_deref() != Ok("1"), "required, but missed: {what}");
    println!("skipped: {what}");
}

fn read(name: &str) -> Option<usize> {
    fs::read_to_string(format!("{DIR}/{name}")).ok()?.trim().parse().ok()
}

/// Free 2 MiB pages now.
pub fn free() -> usize {
    read("free_hugepages").unwrap_or(0)
}

/// `nr_hugepages` of 2 MiB now.
pub fn total() -> usize {
    read("nr_hugepages").unwrap_or(0)
}

fn set_total(n: usize) -> bool {
    fs::write(format!("{DIR}/nr_hugepages"), n.to_string()).is_ok()
}

/// True once `free()` is `n`, within five seconds: the kernel may take a moment after a process ends.
pub fn free_becomes(n: usize) -> bool {
    let start = Instant::now();
    while free() != n {
        if start.elapsed() > Duration::from_secs(5) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Holds the 2 MiB pages of the machine against other tests, of this process and of others; restores `nr_hugepages`.
pub struct Hugepages {
    old: usize,
    // Last: the lock goes when the old number is back (fields drop after Drop::drop).
    _lock: File,
}

impl Hugepages {
    /// `n` more 2 MiB pages than before, all free. None, with a line that says so, where they are not to be had.
    pub fn reserve(n: usize) -> Option<Hugepages> {
        let Ok(lock) = File::options().create(true).truncate(false).write(true).open(LOCK) else {
            skip(&format!("{LOCK} cannot be opened"));
            return None;
        };
        // flock(2) belongs to the open file, so it also holds between threads that opened it each for itself. It ends
        // with the process, however that ends.
        // SAFETY: the call takes integers only.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } != 0 {
            skip("the hugepage lock was refused");
            return None;
        }
        let Some(old) = read("nr_hugepages") else {
            skip("this kernel has no 2 MiB pages");
            return None;
        };
        let before = free();
        if !set_total(old + n) {
            skip("nr_hugepages cannot be written: not root");
            return None;
        }
        // From here on the old number comes back whatever happens.
        let guard = Hugepages { old, _lock: lock };
        if free() < before + n {
            skip(&format!("{n} pages of 2 MiB: only {} came", free().saturating_sub(before)));
            return None;
        }
        Some(guard)
    }

    /// Raises `nr_hugepages` to `n` within the guard's life.
    pub fn raise_to(&self, n: usize) -> bool {
        set_total(n)
    }
}

impl Drop for Hugepages {
    fn drop(&mut self) {
        set_total(self.old);
    }
}
