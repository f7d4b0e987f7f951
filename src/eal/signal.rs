//! SIGINT and SIGTERM as a stop flag, for programs that ask for it. The library itself installs no handler.

use super::launch::StopFlag;
use crate::base::{Error, Result};
use std::sync::OnceLock;

static STOP: OnceLock<StopFlag> = OnceLock::new();

extern "C" fn on_signal(signal: libc::c_int) {
    // An atomic load and a store: both allowed in a handler (signal-safety(7)).
    match STOP.get() {
        Some(flag) if !flag.is_stopped() => flag.stop(),
        // SAFETY: _exit is async-signal-safe and takes an integer.
        _ => unsafe { libc::_exit(128 + signal) },
    }
}

/// The process's stop flag, set by the first SIGINT or SIGTERM from now on. A second one ends the process at once, with
/// 128 + its number, as a shell would say. Every call gives the same flag.
pub fn stop_on_signals() -> Result<StopFlag> {
    let flag = STOP.get_or_init(StopFlag::new).clone();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a zeroed sigaction is valid (no flags, empty mask); the handler only does what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
                return Err(Error::os(format!("sigaction({signal})")));
            }
        }
    }
    Ok(flag)
}
