//! kill -9 in a loop: hugepages and files come back each time, and the next run starts at once.

#[path = "support/hugepages.rs"]
mod hugepages;
mod support;

use hugepages::Hugepages;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use support::e2e::*;
use support::need;
use support::run::{ChildGuard, TempDir, loops};

const PAGES: usize = 64;

#[test]
fn killed_in_a_loop_it_gives_every_hugepage_back() {
    need!("root");
    let Some(_pages) = Hugepages::reserve(PAGES) else { return };
    let dir = TempDir::new("bl-killed");
    let free = hugepages::free();
    let line = "-l 0 --no-pci --vdev=net_null0 --vdev=net_ring0 --vdev=net_pcap0,tx_pcap=/dev/null -- -T 0";
    for round in 0..loops(5, 100) {
        let mut cmd = l2fwd_command(line, &dir);
        let mut child = ChildGuard::spawn(cmd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()));
        // It says where its packets are once it forwards.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).find(|l| l.contains(" packets in pool ")).expect("it runs");
        assert!(said.contains("pages of 2048 KiB"), "round {round}: {said}");
        let used = free - hugepages::free();
        assert!((1..=PAGES).contains(&used), "round {round}: {used} pages used");
        child.signal(libc::SIGKILL);
        assert!(!child.wait(LIMIT).expect("a killed program ends").success());
        assert!(hugepages::free_becomes(free), "round {round}: {} of {free} pages free", hugepages::free());
        assert_eq!(entries(dir.path()), [""; 0], "round {round}");
    }
    // And a clean exit gives them back too.
    let out = l2fwd("-l 0 --no-pci --vdev=net_null0 --vdev=net_null1 -- -T 0 --packets 100000 --stats-json S", &dir)
        .expect_ok();
    let books = Books::read(&dir.join("S"));
    books.pool_is_whole();
    assert_eq!(books.0["memory"]["page_size"], 2 << 20, "{}", out.stdout);
    assert!(hugepages::free_becomes(free));
}
