//! Debug mode: who took each packet, who freed it, and whether somebody wrote to it after that.
//!
//! Nothing of this is in the packet or on the quick path: a pool in debug mode has no caches, so that each take and each
//! free passes through here.

use super::inner::PoolInner;
use crate::log_error;
use crate::mbuf::layout::RawMbuf;
use std::backtrace::Backtrace;
use std::sync::Mutex;

/// Fills the room of a free packet.
pub(super) const POISON: u8 = 0xdb;
/// Reports kept for the program to read.
const MAX_REPORTS: usize = 64;

#[derive(Default)]
struct Entry {
    out: bool,
    freed_once: bool,
    taken: Option<Backtrace>,
    freed: Option<Backtrace>,
}

pub(super) struct DebugTable {
    entries: Mutex<Vec<Entry>>,
    reports: Mutex<Vec<String>>,
}

impl DebugTable {
    pub(super) fn new(n: u32) -> Box<DebugTable> {
        let entries = (0..n).map(|_| Entry::default()).collect();
        Box::new(DebugTable { entries: Mutex::new(entries), reports: Mutex::new(Vec::new()) })
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn report(&self, text: String) {
        log_error!("{text}");
        let mut r = self.reports.lock().unwrap_or_else(|e| e.into_inner());
        if r.len() < MAX_REPORTS {
            r.push(text);
        }
    }

    pub(super) fn reports(&self) -> Vec<String> {
        self.reports.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn on_alloc(&self, pool: &PoolInner, m: *mut RawMbuf) {
        let i = pool.index_of(m);
        let mut entries = self.entries();
        let e = &mut entries[i];
        let late = e.freed_once && !poison_intact(pool, m);
        e.out = true;
        e.taken = Some(Backtrace::force_capture());
        if late {
            let by = place(e.freed.as_ref());
            drop(entries);
            self.report(format!("pool '{}': packet {i} was written to after it was freed at {by}", pool.name()));
        }
    }

    /// False where the packet is free already: it must not be freed again.
    #[cold]
    #[inline(never)]
    pub(super) fn on_free(&self, pool: &PoolInner, m: *mut RawMbuf) -> bool {
        if !pool.owns(m) {
            self.report(format!("pool '{}': a packet of another pool was put into it, at {}", pool.name(), here()));
            return false;
        }
        let i = pool.index_of(m);
        let now = Backtrace::force_capture();
        let mut entries = self.entries();
        let e = &mut entries[i];
        if !e.out {
            let (first, second) = (place(e.freed.as_ref()), place(Some(&now)));
            drop(entries);
            self.report(format!(
                "pool '{}': packet {i} was freed twice: first at {first}, again at {second}; the second was stopped",
                pool.name()
            ));
            return false;
        }
        poison(pool, m);
        e.out = false;
        e.freed_once = true;
        e.freed = Some(now);
        true
    }

    /// A line for each packet that is out: its number and where it was taken.
    pub(super) fn outstanding(&self) -> Vec<String> {
        let entries = self.entries();
        let out = entries.iter().enumerate().filter(|(_, e)| e.out);
        out.map(|(i, e)| format!("packet {i}, taken at {}", place(e.taken.as_ref()))).collect()
    }
}

fn poison(pool: &PoolInner, m: *mut RawMbuf) {
    let p = pool.room_of(m);
    if !p.is_null() {
        // SAFETY: the room is `room` bytes of the pool's segment; its packet is free, so nobody else may use it.
        unsafe { p.write_bytes(POISON, pool.room.into()) };
    }
}

fn poison_intact(pool: &PoolInner, m: *mut RawMbuf) -> bool {
    let p = pool.room_of(m);
    // SAFETY: as in `poison`.
    p.is_null() || unsafe { core::slice::from_raw_parts(p, pool.room.into()) }.iter().all(|&b| b == POISON)
}

fn here() -> String {
    place(Some(&Backtrace::force_capture()))
}

/// The first frame outside this library, as `function (file:line)`.
fn place(b: Option<&Backtrace>) -> String {
    let Some(b) = b else { return "an unknown place".into() };
    let text = b.to_string();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((number, name)) = line.split_once(": ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let ours =
            ["burstline::", "<burstline::", "std::", "core::", "<core::", "<alloc::", "alloc::", "bl_", "<std::"];
        if ours.iter().any(|p| name.starts_with(p)) || name.contains("as core::ops::drop::Drop") {
            continue;
        }
        return match lines.peek().and_then(|l| l.strip_prefix("at ")) {
            Some(at) => format!("{name} ({at})"),
            None => name.to_string(),
        };
    }
    "an unknown place".into()
}
