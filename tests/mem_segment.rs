//! Segments against the running kernel: hugepages taken, given back, and lost with a killed process.

#[path = "support/hugepages.rs"]
mod hugepages;

use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use burstline::base::Errno;
use burstline::mem::{Ladder, PagePolicy, PageSize, Segment, arena};
use hugepages::{Hugepages, free, free_becomes, skip, total};

const M: usize = 1 << 20;
const ANY: PagePolicy = PagePolicy { no_huge: false, max: None };
const ROLE: &str = "BURSTLINE_TEST_ROLE";

/// This binary again, running one test only, as `role`.
fn again(test: &str, role: &str) -> Command {
    let mut c = Command::new(std::env::current_exe().unwrap());
    c.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ROLE, role);
    c
}

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn default_is_2m() -> bool {
    let yes = Ladder::system().default_bytes() == Some(2 * M);
    if !yes {
        skip("the default hugepage is not 2 MiB");
    }
    yes
}

#[test]
fn both_kinds_take_hugepages_and_give_them_back() {
    let Some(_pages) = Hugepages::reserve(8) else { return };
    if !default_is_2m() {
        return;
    }
    let before = free();
    let a = Segment::private(7 * M, ANY).unwrap();
    let b = Segment::shared("rooms", 8 * M, ANY).unwrap();
    for s in [&a, &b] {
        assert_eq!((s.page(), s.len(), s.hint()), (PageSize::Huge2M, 8 * M, None));
        assert_eq!(s.base().addr().get() % (2 * M), 0);
        // SAFETY: the last byte is inside the mapping, which no one else uses.
        unsafe {
            assert_eq!(s.base().as_ptr().add(s.len() - 1).read(), 0);
            s.base().as_ptr().add(s.len() - 1).write(1);
        }
    }
    assert_eq!(free(), before - 8);
    drop((a, b));
    assert!(free_becomes(before));
}

#[test]
fn the_arena_stands_on_one_hugepage_and_returns_it() {
    let Some(_pages) = Hugepages::reserve(2) else { return };
    if !default_is_2m() {
        return;
    }
    let before = free();
    let boxes: Vec<_> = (0..100u64).map(|n| arena::boxed(n).unwrap()).collect();
    let s = arena::stats();
    assert_eq!((s.segments, s.bytes, s.used, s.page), (1, 2 * M, 6400, PageSize::Huge2M));
    assert_eq!((free(), arena::hint()), (before - 1, None));
    assert!(boxes.iter().enumerate().all(|(i, b)| **b == i as u64));
    drop(boxes);
    assert!(free_becomes(before));
}

#[test]
fn a_policy_without_hugepages_leaves_them_alone() {
    let Some(_pages) = Hugepages::reserve(8) else { return };
    let before = free();
    let a = Segment::private(8 * M, PagePolicy::NO_HUGE).unwrap();
    let b = Segment::shared("rooms", 8 * M, PagePolicy::NO_HUGE).unwrap();
    let c = Segment::shared("rooms", 8 * M, PagePolicy { no_huge: false, max: Some(PageSize::Normal) }).unwrap();
    for s in [&a, &b, &c] {
        assert_eq!((s.page(), s.hint()), (PageSize::Normal, None));
    }
    assert_eq!(free(), before);
}

#[test]
fn the_hint_when_followed_gives_hugepages() {
    let Some(pages) = Hugepages::reserve(2) else { return };
    let len = (free() + 3) * 2 * M;
    let s = Segment::shared("rooms", len, ANY).unwrap();
    assert_eq!(s.page(), PageSize::Normal);
    let hint = s.hint().unwrap();
    assert_eq!(hint, format!("echo {} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", total() + 3));
    drop(s);
    let n = hint.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(pages.raise_to(n));
    assert_eq!(Segment::shared("rooms", len, ANY).unwrap().page(), PageSize::Huge2M);
}

#[test]
fn rooms_that_fill_half_a_gigantic_page_take_one() {
    // Under the same lock: it changes the machine's hugepages too.
    let Some(_lock) = Hugepages::reserve(0) else { return };
    const NR: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    struct Restore(String);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = std::fs::write(NR, &self.0);
        }
    }
    let Ok(old) = std::fs::read_to_string(NR) else { return skip("this kernel has no 1 GiB pages") };
    let old = Restore(old.trim().into());
    let _ = std::fs::write(NR, (old.0.parse::<usize>().unwrap() + 1).to_string());
    if !Ladder::system().enough(1, PageSize::Huge1G) {
        // Not one of those that must be had: it hangs on how scattered the machine's memory is.
        return println!("skipped: no free 1 GiB page");
    }
    assert_eq!(Segment::shared("rooms", 512 * M, ANY).unwrap().page(), PageSize::Huge1G);
}

#[test]
fn the_pages_of_a_killed_process_come_back() {
    const NAME: &str = "the_pages_of_a_killed_process_come_back";
    if role().as_deref() == Some("victim") {
        let _a = Segment::private(8 * M, ANY).unwrap();
        let _b = Segment::shared("rooms", 8 * M, ANY).unwrap();
        println!("\nmapped {} {}", _a.page(), _b.page());
        loop {
            std::thread::park();
        }
    }
    let Some(_pages) = Hugepages::reserve(8) else { return };
    if !default_is_2m() {
        return;
    }
    let before = free();
    let mut child = again(NAME, "victim").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).find(|l| l.starts_with("mapped"));
    let taken = before - free();
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert_eq!(said.as_deref(), Some("mapped 2 MiB 2 MiB"));
    assert_eq!(taken, 8);
    assert!(free_becomes(before), "free {} before {before}", free());
}

#[test]
fn a_failed_set_up_gives_back_all_it_took() {
    const NAME: &str = "a_failed_set_up_gives_back_all_it_took";
    // In a process of its own: mappings and descriptors are counted, and the address space is limited.
    if role().as_deref() != Some("failing") {
        let Some(_pages) = Hugepages::reserve(8) else { return };
        let before = free();
        let out = again(NAME, "failing").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(free_becomes(before));
        return;
    }
    let absurd = || (Segment::private(1 << 46, ANY), Segment::shared("rooms", 1 << 46, ANY));
    let _ = absurd();
    let (maps, fds, pages) = (mappings(), descriptors(), free());
    for e in [absurd().0.unwrap_err(), absurd().1.unwrap_err()] {
        assert_eq!(e.errno(), Errno::NOMEM);
        let text = e.text();
        assert!(text.contains("70368744177664") && text.contains("free") && text.contains("nr_hugepages"), "{text}");
    }
    assert_eq!((mappings(), descriptors(), free()), (maps, fds, pages));

    // A mapping that fails after its file was made, first on hugepages and then on ordinary ones.
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is a valid rlimit; it binds new mappings of this process only.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let failed = (Segment::private(16 * M, ANY).is_err(), Segment::shared("rooms", 16 * M, ANY).is_err());
    let open = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &open) }, 0);
    assert_eq!(failed, (true, true));
    assert_eq!((mappings(), descriptors(), free()), (maps, fds, pages));
    Segment::shared("rooms", 16 * M, ANY).unwrap();
}

#[test]
fn a_peer_that_maps_the_file_sees_the_same_bytes() {
    let s = Segment::shared("rooms", 8192, PagePolicy::NO_HUGE).unwrap();
    let fd = s.fd().unwrap().as_raw_fd();
    // SAFETY: a second mapping of our own file at an address the kernel chooses; unmapped below, used in between.
    unsafe {
        let p = libc::mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
        assert_ne!(p, libc::MAP_FAILED);
        s.base().as_ptr().add(4097).write_volatile(42);
        assert_eq!(p.cast::<u8>().add(4097).read_volatile(), 42);
        libc::munmap(p, 8192);
    }
}

#[test]
fn no_child_inherits_a_segment() {
    let s = Segment::private(4096, PagePolicy::NO_HUGE).unwrap();
    let r = Segment::shared("rooms", 4096, PagePolicy::NO_HUGE).unwrap();
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    for s in [&s, &r] {
        let at = s.base().addr().get();
        let mut inside = false;
        let flags = smaps.lines().find(|l| {
            let range = l.split(' ').next().and_then(|w| w.split_once('-'));
            if let Some((a, b)) =
                range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)))
            {
                inside = (a..b).contains(&at);
            }
            inside && l.starts_with("VmFlags:")
        });
        // "dc": do not copy on fork (proc(5)).
        assert!(flags.is_some_and(|f| f.split(' ').any(|w| w == "dc")), "{flags:?}");
    }
}
