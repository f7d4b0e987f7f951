//! The reader's steady state does not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use burstline::pmd::pcap::{Next, Reader, Writer};

struct Counting;
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        unsafe { System.dealloc(p, l) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test in this file: another thread's allocations would be counted too.
#[test]
fn reading_a_long_capture_allocates_nothing_once_it_is_open() {
    for name in ["a.pcap", "a.pcapng"] {
        let path = std::env::temp_dir().join(format!("burstline-alloc-{}-{name}", std::process::id()));
        let mut w = Writer::create(&path, 0).unwrap();
        let data = [7u8; 1514];
        for i in 0..2_000 {
            w.write(i, &[&data[..i as usize % 1514]]).unwrap();
        }
        w.flush().unwrap();
        let mut r = Reader::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let before = CALLS.load(Ordering::Relaxed);
        let mut n = 0;
        while let Next::Record(_) = r.next().unwrap() {
            n += 1;
        }
        assert_eq!((n, CALLS.load(Ordering::Relaxed) - before), (2_000, 0), "{name}");
    }
}
