//! The library says things only here: through the `log` facade, or through a callback that a C program sets.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use std::sync::RwLock;

/// 1 error, 2 warning, 3 notice, 4 debug, 5 trace.
pub type LogFn = fn(level: u32, text: &str, user: usize);

static SINK: RwLock<Option<(LogFn, usize, u32)>> = RwLock::new(None);

/// Sends everything at `max_level` or below to `f`, in place of the `log` facade. None: back to the facade.
/// `user` is handed to each call. May be called from any thread at any time.
pub fn set_sink(f: Option<LogFn>, user: usize, max_level: u32) {
    *SINK.write().unwrap_or_else(|e| e.into_inner()) = f.map(|f| (f, user, max_level));
}

thread_local! {
    /// How many [`Held`] the thread has, and what was said meanwhile.
    static HELD: (Cell<u32>, RefCell<Vec<(log::Level, String)>>) = const { (Cell::new(0), RefCell::new(Vec::new())) };
}

/// While it lives, what its thread says waits; its drop says it. For locks that a log callback may want: make it before the
/// lock is taken, and drop it after.
pub struct Held(PhantomData<*mut ()>);

impl Held {
    pub fn begin() -> Held {
        let _ = HELD.try_with(|(n, _)| n.set(n.get() + 1));
        Held(PhantomData)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let lines = HELD.try_with(|(n, lines)| {
            n.set(n.get() - 1);
            if n.get() == 0 { lines.take() } else { Vec::new() }
        });
        for (level, text) in lines.unwrap_or_default() {
            say(level, &text);
        }
    }
}

/// One line, without its newline.
pub fn say(level: log::Level, text: &str) {
    let kept = HELD.try_with(|(n, lines)| {
        n.get() != 0
            && lines.try_borrow_mut().is_ok_and(|mut l| {
                l.push((level, text.to_owned()));
                true
            })
    });
    if kept == Ok(true) {
        return;
    }
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
