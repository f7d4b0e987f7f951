//! The atomics the ring stands on: core's, or loom's when the model checker drives the threads.

#[cfg(loom)]
pub(super) use ::loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, Ordering};

/// One turn of a wait for another thread's tail. `turn` counts them.
#[cfg(not(loom))]
#[inline(always)]
pub(super) fn relax(turn: u32) {
    // The thread waited for is in the middle of a copy of a few hundred bytes. Where it takes longer, it is not
    // running, and on a machine with fewer cores than threads it runs only if this one steps aside.
    if turn % SPINS == SPINS - 1 {
        step_aside();
    } else {
        crate::base::cpu::pause();
    }
}

#[cfg(not(loom))]
const SPINS: u32 = 1024;

#[cfg(not(loom))]
#[cold]
#[inline(never)]
fn step_aside() {
    std::thread::yield_now();
}

#[cfg(loom)]
pub(super) fn relax(_turn: u32) {
    ::loom::thread::yield_now();
}
