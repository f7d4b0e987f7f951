//! Pause, prefetch, and the asymmetric fence that lets stop be called from any thread without a fence in a burst.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// Tells the core that this is a spin loop.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// Brings the line of `p` near for reading and writing. Any address is allowed; a bad one is ignored.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Not asked yet, membarrier works, membarrier was refused.
static MEMBARRIER: AtomicU8 = AtomicU8::new(0);
const UNKNOWN: u8 = 0;
const WORKS: u8 = 1;
const REFUSED: u8 = 2;

// linux/membarrier.h
const MEMBARRIER_CMD_PRIVATE_EXPEDITED: i32 = 1 << 3;
const MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

fn membarrier(cmd: i32) -> bool {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, cmd, 0u32, 0i32) == 0 }
}

/// Registers the process for membarrier(2), once. True where the kernel grants it.
pub fn membarrier_init() -> bool {
    match MEMBARRIER.load(Ordering::Acquire) {
        WORKS => true,
        REFUSED => false,
        _ => {
            let works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
            // Two threads that race here got the same answer from the kernel. A refusal never turns into a grant:
            // from then on readers fence.
            let to = if works { WORKS } else { REFUSED };
            let _ = MEMBARRIER.compare_exchange(UNKNOWN, to, Ordering::AcqRel, Ordering::Acquire);
            MEMBARRIER.load(Ordering::Acquire) == WORKS
        }
    }
}

/// The reader's half, in every bracket: a compiler fence where membarrier works, a full fence where it does not.
/// Partner: [`fence_heavy`].
#[inline(always)]
pub fn fence_light() {
    if cfg!(target_arch = "x86_64") && MEMBARRIER.load(Ordering::Relaxed) == WORKS {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence_light_slow();
    }
}

/// [`fence_light`] where that is a compiler fence. False: nothing was fenced, and [`fence_light`] must be called.
#[inline(always)]
pub fn fence_is_light() -> bool {
    let light = cfg!(target_arch = "x86_64") && MEMBARRIER.load(Ordering::Relaxed) == WORKS;
    compiler_fence(Ordering::SeqCst);
    light
}

#[cold]
fn fence_light_slow() {
    if membarrier_init() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The writer's half: after it, every other thread of the process has passed a full fence.
/// Partner: [`fence_light`].
pub fn fence_heavy() {
    fence(Ordering::SeqCst);
    if membarrier_init() {
        // Registered, so it cannot be refused (membarrier(2)); a full fence stands here in any case.
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    fence(Ordering::SeqCst);
}

/// Makes this process behave as on a kernel that refuses membarrier. For tests; cannot be undone.
#[doc(hidden)]
pub fn membarrier_refuse_for_test() {
    MEMBARRIER.store(REFUSED, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetch_of_null_is_ignored() {
        prefetch(core::ptr::null::<u8>());
    }

    #[test]
    fn membarrier_answers_the_same_twice() {
        assert_eq!(membarrier_init(), membarrier_init());
        fence_light();
        fence_heavy();
    }
}
