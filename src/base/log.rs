//! The library says things only here: through the `log` facade, or through a callback that a C program sets.

use std::sync::RwLock;

/// 1 error, 2 warning, 3 notice, 4 debug, 5 trace.
pub type LogFn = fn(level: u32, text: &str, user: usize);

static SINK: RwLock<Option<(LogFn, usize, u32)>> = RwLock::new(None);

/// Sends everything at `max_level` or below to `f`, in place of the `log` facade. None: back to the facade.
/// `user` is handed to each call. May be called from any thread at any time.
pub fn set_sink(f: Option<LogFn>, user: usize, max_level: u32) {
    *SINK.write().unwrap_or_else(|e| e.into_inner()) = f.map(|f| (f, user, max_level));
}

/// One line, without its newline.
pub fn say(level: log::Level, text: &str) {
    // A copy: the callback may itself set the sink.
    let sink = *SINK.read().unwrap_or_else(|e| e.into_inner());
    match sink {
        Some((f, user, max)) => {
            if level as u32 <= max {
                f(level as u32, text, user);
            }
        }
        None => log::log!(target: "burstline", level, "{text}"),
    }
}

#[macro_export]
macro_rules! log_error { ($($arg:tt)*) => { $crate::base::log::say(::log::Level::Error, &format!($($arg)*)) }; }
#[macro_export]
macro_rules! log_warn { ($($arg:tt)*) => { $crate::base::log::say(::log::Level::Warn, &format!($($arg)*)) }; }
#[macro_export]
macro_rules! log_info { ($($arg:tt)*) => { $crate::base::log::say(::log::Level::Info, &format!($($arg)*)) }; }
#[macro_export]
macro_rules! log_debug { ($($arg:tt)*) => { $crate::base::log::say(::log::Level::Debug, &format!($($arg)*)) }; }
