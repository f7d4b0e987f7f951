//! A log callback may call anything: also what is said while the program is being set up, and while memory is taken.

use burstline::capi::init::{bl_cleanup, bl_init};
use burstline::capi::log::{BL_LOG_DEBUG, bl_log_set};
use burstline::capi::pool::{bl_pool_conf, bl_pool_create, bl_pool_free};
use core::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

static DEPTH: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);

fn make_pool() {
    // SAFETY: zero is every field's default; the handle is given back once.
    unsafe {
        let mut c: bl_pool_conf = core::mem::zeroed();
        c.size = size_of::<bl_pool_conf>();
        let p = bl_pool_create(&c);
        assert!(!p.is_null());
        assert_eq!(bl_pool_free(p), 0);
    }
}

unsafe extern "C" fn makes_a_pool(_level: u32, _text: *const c_char, _user: *mut c_void) {
    CALLS.fetch_add(1, Relaxed);
    if DEPTH.fetch_add(1, Relaxed) == 0 {
        make_pool();
    }
    DEPTH.fetch_sub(1, Relaxed);
}

#[test]
fn a_log_callback_may_make_a_pool_while_the_program_is_set_up() {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        assert_eq!(bl_log_set(Some(makes_a_pool), core::ptr::null_mut(), BL_LOG_DEBUG), 0);
        let mut argv = [c"prog", c"-n", c"4"].map(|s| s.as_ptr().cast_mut());
        // SAFETY: three strings that live for ever.
        assert_eq!(unsafe { bl_init(3, argv.as_mut_ptr()) }, 2);
        make_pool();
        assert_eq!(bl_cleanup(), 0);
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(20)).expect("a call hangs in the log callback");
    assert!(CALLS.load(Relaxed) > 0);
}
