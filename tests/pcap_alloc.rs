//! The reader's steady state does not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use burstline::pmd::pcap::{Next, Reader, Writer};

struct Counting;

thread_local! {
    // Of this thread alone: the test harness allocates on its own. No destructor, so an allocator may use it.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        unsafe { System.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        unsafe { System.dealloc(p, l) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        let before = CALLS.get();
        let mut n = 0;
        while let Next::Record(_) = r.next().unwrap() {
            n += 1;
        }
        assert_eq!((n, CALLS.get() - before), (2_000, 0), "{name}");
    }
}
