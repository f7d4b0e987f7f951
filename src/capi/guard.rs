//! Where Rust ends: results become numbers and texts, and a panic goes no further.

use crate::base::{Errno, Error, Result};
use crate::log_error;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
    /// How many guards the thread is inside.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The next guarded call of the thread panics: see `bl_debug_set`.
    static PLANTED: Cell<bool> = const { Cell::new(false) };
}

/// A C string of `text`, without the NULs that it may hold.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// The text that the thread's last error left; the address is good until the next one.
pub(super) fn last_text() -> *const c_char {
    TEXT.try_with(|t| t.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(super) fn plant(on: bool) {
    PLANTED.set(on);
}

/// Keeps the text and gives the number.
pub(super) fn report(e: &Error) -> c_int {
    let _ = TEXT.try_with(|t| t.replace(c_text(e.text())));
    -e.errno().0
}

struct Inside;

impl Inside {
    fn new() -> Inside {
        DEPTH.set(DEPTH.get() + 1);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A panic inside a guard is told through the log, not on stderr; elsewhere the hook of before serves.
fn hook_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match DEPTH.try_with(Cell::get) {
            Ok(n) if n > 0 => log_error!("{info}"),
            _ => before(info),
        }));
    });
}

fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    hook_once();
    let _inside = Inside::new();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        if PLANTED.take() {
            panic!("asked for by bl_debug_set");
        }
        f()
    }));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::new(Errno::FAULT, format!("internal error: {}", text.unwrap_or("(no text)"))))
    })
}

/// A control call: 0 or `-errno`.
pub(super) fn control(f: impl FnOnce() -> Result<()>) -> c_int {
    guarded(f).map_or_else(|e| report(&e), |()| 0)
}

/// A call that gives a count or a number: that, or `-errno`.
pub(super) fn number(f: impl FnOnce() -> Result<u32>) -> c_int {
    guarded(f).map_or_else(|e| report(&e), |n| c_int::try_from(n).unwrap_or(c_int::MAX))
}

/// A constructor: a pointer or NULL.
pub(super) fn pointer<T>(f: impl FnOnce() -> Result<*mut T>) -> *mut T {
    guarded(f).unwrap_or_else(|e| {
        report(&e);
        core::ptr::null_mut()
    })
}

/// A string that C hands in. -EINVAL where it is NULL or not UTF-8; `what` names it.
///
/// # Safety
/// `s` is NULL or a C string that lives for `'a`.
pub(super) unsafe fn str_arg<'a>(s: *const c_char, what: &str) -> Result<&'a str> {
    if s.is_null() {
        return crate::invalid!("{what} is NULL");
    }
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(s) }.to_str() {
        Ok(s) => Ok(s),
        Err(_) => crate::invalid!("{what} is not UTF-8"),
    }
}

/// -EINVAL where a pointer that must be there is NULL.
pub(super) fn not_null<T>(p: *const T, what: &str) -> Result<()> {
    if p.is_null() { crate::invalid!("{what} is NULL") } else { Ok(()) }
}
