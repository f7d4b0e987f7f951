//! Which CPUs a thread may run on, and pinning one.

use super::cpulist::{LcoreSpec, MAX_CPU, format_list};
use crate::base::{Error, Result};
use crate::invalid;

/// CPUs the calling thread is allowed to use, sorted. Empty where the system does not say (over 1024 CPUs).
///
/// Ask before pinning: a pinned thread, and each thread it starts from then on, is allowed its own CPUs only.
pub fn allowed_cpus() -> Vec<u32> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    ids.iter().filter_map(|core| u32::try_from(core.id).ok()).collect()
}

/// The calling thread's CPUs now, sorted: what [`pin_current`] set, and what to hand back to it to undo that.
pub fn current_cpus() -> Result<Vec<u32>> {
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is the calling thread, and the kernel writes at most the size given into `set`.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0 {
        return Err(Error::os("sched_getaffinity"));
    }
    // SAFETY: each index is below CPU_SETSIZE, the bits of a cpu_set_t.
    Ok((0..MAX_CPU).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) }).collect())
}

/// Lets the calling thread run on the CPUs of `spec` only. On an error its old CPUs stay.
pub fn pin_current(spec: &LcoreSpec) -> Result<()> {
    let LcoreSpec { lcore, cpus } = spec;
    if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= MAX_CPU) {
        return invalid!("lcore {lcore}: CPU {cpu}, limit {}", MAX_CPU - 1);
    }
    let wanted = format_list(cpus);
    let before = current_cpus()?;
    let done = match cpus[..] {
        [] => return invalid!("lcore {lcore}: no CPU to run on"),
        [cpu] => core_affinity::set_for_current(core_affinity::CoreId { id: cpu as usize }),
        _ => set_affinity(cpus),
    };
    if !done {
        return Err(Error::os(format!("lcore {lcore}: pin to CPU {wanted} (allowed: {})", format_list(&before))));
    }
    // Of a set the kernel keeps silently what the cpuset grants; half of what was asked for is not what was asked for.
    let now = current_cpus()?;
    if now.len() == cpus.len() && cpus.iter().all(|cpu| now.contains(cpu)) {
        return Ok(());
    }
    set_affinity(&before);
    invalid!("lcore {lcore}: asked for CPU {wanted}, the system grants {} only", format_list(&now))
}

fn set_affinity(cpus: &[u32]) -> bool {
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|cpu| **cpu < MAX_CPU) {
        // SAFETY: the index is below CPU_SETSIZE, the bits of a cpu_set_t.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: 0 is the calling thread, and the kernel reads the size given from `set`.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinning stays with its thread: each test uses one of its own.
    fn in_a_thread(f: impl FnOnce() + Send + 'static) {
        std::thread::spawn(f).join().unwrap();
    }

    #[test]
    fn a_thread_is_pinned_to_one_cpu_and_back() {
        in_a_thread(|| {
            let all = allowed_cpus();
            assert_eq!(all, current_cpus().unwrap());
            let last = *all.last().unwrap();
            pin_current(&LcoreSpec { lcore: 0, cpus: vec![last] }).unwrap();
            assert_eq!(current_cpus().unwrap(), [last]);
            pin_current(&LcoreSpec { lcore: 0, cpus: all.clone() }).unwrap();
            assert_eq!(current_cpus().unwrap(), all);
        });
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_the_old_ones_stay() {
        in_a_thread(|| {
            let all = allowed_cpus();
            if all.contains(&1023) {
                return;
            }
            for (cpus, says) in [
                (vec![1023], "lcore 7: pin to CPU 1023 (allowed: "),
                (vec![all[0], 1023], "the system grants"),
                (vec![1024], "CPU 1024, limit 1023"),
                (vec![0, u32::MAX], "CPU 4294967295, limit 1023"),
                (vec![], "no CPU to run on"),
            ] {
                let e = pin_current(&LcoreSpec { lcore: 7, cpus }).unwrap_err();
                assert!(e.text().starts_with("lcore 7: ") && e.text().contains(says), "{e}");
                assert_eq!(current_cpus().unwrap(), all);
            }
        });
    }
}
