//! Lcores: the cores that `bl_init` was given, and work on them.

use super::guard::{control, number};
use crate::base::log::Held;
use crate::base::{Errno, Error, Result};
use crate::eal::affinity::{current_cpus, pin_current};
use crate::eal::{Eal, EalArgs, LcoreSpec, Workers};
use crate::mem::PagePolicy;
use crate::pool::slot;
use crate::{fail, invalid, log_info};
use core::ffi::{c_int, c_void};
use core::time::Duration;
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{ThreadId, current};

/// What `bl_init` made.
struct Env {
    eal: Eal,
    /// The thread that was pinned, and its CPUs before.
    pinned: Option<(ThreadId, LcoreSpec)>,
    running: Vec<Job>,
}

struct Job {
    lcore: u32,
    workers: Workers,
    result: Arc<AtomicI32>,
}

static ENV: Mutex<Option<Env>> = Mutex::new(None);

fn env() -> MutexGuard<'static, Option<Env>> {
    ENV.lock().unwrap_or_else(|e| e.into_inner())
}

/// Reads the arguments and makes the devices; the index of the program's own first argument.
pub(super) fn init(args: &[String]) -> Result<usize> {
    // Said once the lock is free: a log callback may call anything.
    let _held = Held::begin();
    let mut env = env();
    if env.is_some() {
        return Err(Error::new(Errno(libc::EALREADY), "bl_init was called before, and bl_cleanup was not"));
    }
    let (eal, used) = Eal::init(args)?;
    if eal.args().help {
        return Err(Error::new(Errno(libc::ECANCELED), EalArgs::usage()));
    }
    if eal.args().version {
        log_info!("burstline {}", env!("CARGO_PKG_VERSION"));
    }
    let main = eal.lcores().iter().find(|l| l.lcore == eal.main_lcore());
    let pinned = match main.filter(|_| eal.args().lcores.is_some()) {
        Some(spec) => {
            let before = LcoreSpec { lcore: spec.lcore, cpus: current_cpus()? };
            pin_current(spec)?;
            Some((current().id(), before))
        }
        None => None,
    };
    *env = Some(Env { eal, pinned, running: Vec::new() });
    Ok(used)
}

/// -EBUSY while an lcore was launched and not waited for.
pub(super) fn may_end() -> Result<()> {
    match env().as_ref().and_then(|e| e.running.first()) {
        Some(j) => fail!(BUSY, "lcore {} was launched and not waited for", j.lcore),
        None => Ok(()),
    }
}

/// Ends what `init` made, and gives its thread the CPUs back.
pub(super) fn end() -> Result<()> {
    may_end()?;
    let Some(Env { eal, pinned, .. }) = env().take() else { return Ok(()) };
    if let Some((_, before)) = pinned.filter(|(id, _)| *id == current().id()) {
        pin_current(&before)?;
    }
    eal.close()
}

/// The pages that pools may use.
pub(super) fn pages() -> PagePolicy {
    env().as_ref().map_or_else(PagePolicy::default, |e| e.eal.pages())
}

fn with_env<T>(f: impl FnOnce(&mut Env) -> Result<T>) -> Result<T> {
    match env().as_mut() {
        Some(e) => f(e),
        None => fail!(AGAIN, "bl_init was not called"),
    }
}

/// Work for an lcore. What it returns is given to bl_lcore_wait; it must not throw.
pub type bl_lcore_fn = Option<unsafe extern "C" fn(arg: *mut c_void) -> c_int>;

struct Work(unsafe extern "C" fn(*mut c_void) -> c_int, *mut c_void);
// SAFETY: the program gives `arg` for a call on another thread.
unsafe impl Send for Work {}
// SAFETY: as above; it is called once.
unsafe impl Sync for Work {}

impl Work {
    fn run(&self, result: &AtomicI32) -> Result<()> {
        // Without a slot it works all the same, through the shared rings.
        let _slot = slot::ThreadSlot::register();
        let Work(f, arg) = self;
        // SAFETY: the program's function and its argument, as it gave them together.
        result.store(unsafe { f(*arg) }, Release);
        Ok(())
    }
}

/// How many lcores there are: those of `-l`; without it the main one alone. Errors: -EAGAIN before bl_init. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_lcore_count() -> c_int {
    number(|| with_env(|e| Ok(e.eal.lcores().len() as u32)))
}

/// The number of lcore `i` of bl_lcore_count, in ascending order. Errors: -EINVAL, -EAGAIN. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_lcore_get(i: u32) -> c_int {
    number(|| {
        with_env(|e| match e.eal.lcores().get(i as usize) {
            Some(l) => Ok(l.lcore),
            None => invalid!("lcore number {i} of {}", e.eal.lcores().len()),
        })
    })
}

/// The main lcore: that of the thread which called bl_init. Errors: -EAGAIN. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_lcore_main() -> c_int {
    number(|| with_env(|e| Ok(e.eal.main_lcore())))
}

/// Runs `f(arg)` on a thread of its own, registered and pinned to the CPUs of the lcore, which is not the main one. `arg` is the
/// caller's, and must live until `f` returns. Wait for it by bl_lcore_wait before the lcore is launched again.
/// Errors: -EBUSY where it was not waited for, -EINVAL, -EAGAIN, what pinning says. Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_lcore_launch(lcore: u32, f: bl_lcore_fn, arg: *mut c_void) -> c_int {
    control(|| {
        let Some(f) = f else { return invalid!("f is NULL") };
        with_env(|e| {
            if lcore == e.eal.main_lcore() {
                return invalid!("lcore {lcore} is the main one: its thread is the program's own");
            }
            if e.running.iter().any(|j| j.lcore == lcore) {
                return fail!(BUSY, "lcore {lcore} was launched and not waited for");
            }
            let Some(spec) = e.eal.lcores().iter().find(|l| l.lcore == lcore) else {
                return invalid!("there is no lcore {lcore}");
            };
            let (work, result) = (Work(f, arg), Arc::new(AtomicI32::new(0)));
            let out = result.clone();
            let workers = Workers::launch(core::slice::from_ref(spec), move |_| work.run(&out))?;
            e.running.push(Job { lcore, workers, result });
            Ok(())
        })
    })
}

/// Waits until what the lcore was launched with has returned, `timeout_ms` milliseconds at most, and writes what it returned to
/// `result`, unless that is NULL. Errors: -ETIMEDOUT: it still runs, wait again; -EINVAL where it was not launched; -EAGAIN.
/// Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_lcore_wait(lcore: u32, timeout_ms: u32, result: *mut c_int) -> c_int {
    control(|| {
        let job = with_env(|e| match e.running.iter().position(|j| j.lcore == lcore) {
            Some(at) => Ok(e.running.swap_remove(at)),
            None => invalid!("lcore {lcore} was not launched"),
        })?;
        // Outside the lock: another lcore may be launched or waited for meanwhile.
        if !job.workers.wait(Duration::from_millis(timeout_ms.into())) {
            with_env(|e| {
                e.running.push(job);
                Ok(())
            })?;
            return fail!(TIMEDOUT, "lcore {lcore} still runs after {timeout_ms} ms");
        }
        job.workers.join().into_iter().try_for_each(|(_, r)| r)?;
        // SAFETY: NULL, or room for one by this function's contract.
        if let Some(r) = unsafe { result.as_mut() } {
            *r = job.result.load(Acquire);
        }
        Ok(())
    })
}
