//! The time-stamp counter, its rate, and wall time.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Cycles of a counter that never goes back. See [`tsc_hz`] for its rate.
#[inline(always)]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: rdtsc has no preconditions in user mode; CR4.TSD is not set by Linux unless a process asks for it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Rate of [`tsc`] in Hz: measured once against CLOCK_MONOTONIC over about 10 ms.
#[inline(never)]
pub fn tsc_hz() -> u64 {
    static HZ: OnceLock<u64> = OnceLock::new();
    *HZ.get_or_init(|| {
        if cfg!(not(target_arch = "x86_64")) {
            return 1_000_000_000;
        }
        let (t0, c0) = (Instant::now(), tsc());
        std::thread::sleep(Duration::from_millis(10));
        let (t1, c1) = (Instant::now(), tsc());
        let ns = t1.duration_since(t0).as_nanos().max(1);
        (u128::from(c1.saturating_sub(c0)) * 1_000_000_000 / ns).max(1) as u64
    })
}

/// Microseconds as counter cycles, saturating.
pub fn us_to_tsc(us: u32) -> u64 {
    (u128::from(us) * u128::from(tsc_hz()) / 1_000_000).min(u128::from(u64::MAX)) as u64
}

/// Nanoseconds since the epoch (CLOCK_REALTIME).
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Straight from the kernel: std's clocks panic where the call fails, and bursts ask for the time.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec; both clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_rises_at_its_stated_rate() {
        let hz = tsc_hz();
        let (t0, c0) = (Instant::now(), tsc());
        std::thread::sleep(Duration::from_millis(30));
        let cycles = tsc() - c0;
        let expect = t0.elapsed().as_nanos() as f64 * hz as f64 / 1e9;
        let ratio = cycles as f64 / expect;
        assert!((0.9..1.1).contains(&ratio), "ratio {ratio}");
        assert!(us_to_tsc(u32::MAX) > us_to_tsc(1));
    }
}
