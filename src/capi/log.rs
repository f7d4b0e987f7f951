//! What the library says, to a callback of the program.

use super::guard::{c_text, control};
use crate::base::log;
use crate::invalid;
use core::ffi::{c_char, c_int, c_void};
use std::sync::RwLock;

/// Log levels: each holds those before it.
pub const BL_LOG_ERROR: u32 = 1;
pub const BL_LOG_WARNING: u32 = 2;
pub const BL_LOG_NOTICE: u32 = 3;
pub const BL_LOG_DEBUG: u32 = 4;
pub const BL_LOG_TRACE: u32 = 5;

/// One line, without its newline; `text` is good during the call.
pub type bl_log_fn = Option<unsafe extern "C" fn(level: u32, text: *const c_char, user: *mut c_void)>;

#[derive(Clone, Copy)]
struct Callback(unsafe extern "C" fn(u32, *const c_char, *mut c_void), *mut c_void);
// SAFETY: the program gives `user` for calls from any thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

static CALLBACK: RwLock<Option<Callback>> = RwLock::new(None);

fn forward(level: u32, text: &str, _: usize) {
    // A copy: the callback may itself set the callback.
    let callback = *CALLBACK.read().unwrap_or_else(|e| e.into_inner());
    if let Some(Callback(f, user)) = callback {
        let text = c_text(text);
        // SAFETY: the program's function and its argument, as it gave them together.
        unsafe { f(level, text.as_ptr(), user) }
    }
}

/// Gives what the library says, up to `level`, to `cb`; NULL: to nobody, as at the start. `cb` is called on any thread, on
/// more than one at once, and may call anything. A call may be under way on another thread when this returns.
/// Nothing is said in a burst but what happens once in a while. Errors: -EINVAL for a level that is none. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_log_set(cb: bl_log_fn, user: *mut c_void, level: u32) -> c_int {
    control(|| {
        if !(BL_LOG_ERROR..=BL_LOG_TRACE).contains(&level) {
            return invalid!("log level {level}; there are {BL_LOG_ERROR} (errors) to {BL_LOG_TRACE} (everything)");
        }
        *CALLBACK.write().unwrap_or_else(|e| e.into_inner()) = cb.map(|f| Callback(f, user));
        log::set_sink(cb.map(|_| forward as log::LogFn), 0, level);
        Ok(())
    })
}
