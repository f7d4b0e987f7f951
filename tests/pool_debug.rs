//! Debug pools: what they find, and whether the report names the place.

mod mbuf_support;

use burstline::mbuf::{Mbuf, RawMbuf};
use burstline::pool::{Pool, PoolConfig, free_packet};
use mbuf_support::{config, filled, pool_is_whole};
use std::sync::Mutex;

fn debug_pool(name: &str) -> Pool {
    Pool::new(PoolConfig { debug: Some(true), ..config(name, 4, 1024) }).unwrap()
}

#[inline(never)]
fn the_one_that_takes(p: &Pool) -> *mut RawMbuf {
    Mbuf::alloc(p).unwrap().into_raw().as_ptr()
}

#[inline(never)]
fn the_first_that_frees(m: *mut RawMbuf) {
    // SAFETY: taken by the test, not freed yet.
    unsafe { free_packet(m) };
    std::hint::black_box(m);
}

#[inline(never)]
fn the_second_that_frees(m: *mut RawMbuf) {
    // Not the same code as the first: optimised, two functions of one code become one, with one name.
    std::hint::black_box(2);
    // SAFETY: wrong on purpose; a debug pool that still lives stops it.
    unsafe { free_packet(m) };
    std::hint::black_box(m);
}

#[test]
fn a_second_free_is_stopped_and_both_places_are_named() {
    let p = debug_pool("twice");
    let m = the_one_that_takes(&p);
    the_first_that_frees(m);
    the_second_that_frees(m);
    let reports = p.debug_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let (first, second) = reports[0].split_once("again at").unwrap();
    assert!(first.contains("the_first_that_frees") && second.contains("the_second_that_frees"), "{}", reports[0]);
    assert!(first.contains("pool_debug.rs"), "the line is named: {first}");
    pool_is_whole(&p);
}

#[test]
fn a_write_after_free_is_found_at_the_next_take_and_names_who_freed() {
    let p = debug_pool("late");
    let m = the_one_that_takes(&p);
    // SAFETY: the header is live while the pool is.
    let room = unsafe { (*m).buf_addr };
    the_first_that_frees(m);
    // SAFETY: wrong on purpose; the room is mapped while the pool lives.
    unsafe { *room.add(300) = 1 };
    let all: Vec<Mbuf> = (0..4).map(|_| Mbuf::alloc(&p).unwrap()).collect();
    let reports = p.debug_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("written to after it was freed"), "{}", reports[0]);
    assert!(reports[0].contains("the_first_that_frees"), "{}", reports[0]);
    drop(all);
    assert_eq!(p.debug_reports().len(), 1);
}

#[test]
fn what_is_out_is_listed_with_the_place_that_took_it() {
    let p = debug_pool("out");
    let m = the_one_that_takes(&p);
    let c = filled(&p, b"x");
    let out = p.outstanding();
    assert_eq!(out.len(), 2);
    assert!(out.iter().any(|l| l.contains("the_one_that_takes")), "{out:?}");
    assert!(out.iter().any(|l| l.contains("filled")), "{out:?}");
    drop(c);
    the_first_that_frees(m);
    assert!(p.outstanding().is_empty());
    assert!(p.free().is_ok());
}

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());
struct Keep;
impl log::Log for Keep {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, r: &log::Record<'_>) {
        LOGGED.lock().unwrap().push(r.args().to_string());
    }
    fn flush(&self) {}
}

#[test]
fn closing_logs_what_is_out_and_where_it_was_taken() {
    log::set_logger(&Keep).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let p = debug_pool("closing");
    let m = the_one_that_takes(&p);
    assert!(p.close().is_ok());
    let logged = LOGGED.lock().unwrap().clone();
    let line = logged.iter().find(|l| l.contains("'closing'")).unwrap();
    assert!(line.contains("the_one_that_takes"), "{line}");
    the_first_that_frees(m);
}

#[test]
fn a_clone_keeps_its_buffer_out_until_both_are_free() {
    let p = debug_pool("clone");
    let m = filled(&p, b"kept");
    let c = m.clone(&p).unwrap();
    drop(m);
    assert_eq!((p.outstanding().len(), c.to_vec()), (2, b"kept".to_vec()));
    drop(c);
    assert!(p.outstanding().is_empty() && p.debug_reports().is_empty());
    pool_is_whole(&p);
}

#[test]
fn packets_of_a_debug_pool_cross_threads() {
    let p = debug_pool("threads");
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let _slot = burstline::pool::slot::ThreadSlot::register().unwrap();
                for _ in 0..50 {
                    let m = Mbuf::alloc(&p);
                    std::thread::scope(|s| {
                        s.spawn(|| drop(m));
                    });
                }
            });
        }
    });
    assert!(p.debug_reports().is_empty(), "{:?}", p.debug_reports());
    pool_is_whole(&p);
}
