//! Worker threads: one an lcore, named, pinned before it does anything, and joined with what it returned.

use super::affinity::pin_current;
use super::cpulist::LcoreSpec;
use crate::base::{Error, Result};
use crate::{fail, invalid};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// What a worker is told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcoreCtx {
    /// Position in the list that was launched.
    pub index: usize,
    pub lcore: u32,
    /// What the thread is pinned to.
    pub cpus: Vec<u32>,
}

/// Says "stop" to every clone of it; polled once a burst. Setting it is one store: a signal handler may do it.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    /// What was written before is seen by whoever sees the flag. There is no way back.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Running workers. Dropped without [`Workers::join`], they go on by themselves: nothing waits for them.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<(u32, JoinHandle<Result<()>>)>,
}

impl Workers {
    /// Starts one thread `bl-lcore-N` for each spec, pins it, and then runs `f` in it. `f` runs in no thread before
    /// every thread is pinned: when one cannot be started or pinned, its error is returned and none is left.
    pub fn launch(specs: &[LcoreSpec], f: impl Fn(LcoreCtx) -> Result<()> + Send + Sync + 'static) -> Result<Workers> {
        if let Some((at, twice)) =
            specs.iter().enumerate().find(|(i, s)| specs[..*i].iter().any(|o| o.lcore == s.lcore))
        {
            return invalid!("lcore {}: stands twice in the list to launch (entry {at})", twice.lcore);
        }
        let f = Arc::new(f);
        let mut threads = Vec::with_capacity(specs.len());
        let mut starts = Vec::with_capacity(specs.len());
        let mut failed = None;
        let (pinned, answers) = channel();
        for (index, spec) in specs.iter().enumerate() {
            let (start, go) = channel::<()>();
            let (spec, lcore, f, pinned) = (spec.clone(), spec.lcore, f.clone(), pinned.clone());
            let body = move || {
                if !report_pin(&spec, pinned) || go.recv().is_err() {
                    return Ok(());
                }
                run(LcoreCtx { index, lcore, cpus: spec.cpus }, &*f)
            };
            match Builder::new().name(format!("bl-lcore-{lcore}")).spawn(body) {
                Ok(thread) => threads.push((lcore, thread)),
                Err(e) => {
                    failed = Some(Error::from_io(&e, format!("lcore {lcore}: start a thread")));
                    break;
                }
            }
            starts.push(start);
        }
        // Each thread answers once and drops its sender, so this ends when all have.
        drop(pinned);
        let refused = answers.iter().find_map(Result::err);
        match failed.or(refused) {
            None => {
                for start in starts {
                    // It waits for this; should it be gone all the same, join tells why.
                    let _ = start.send(());
                }
                Ok(Workers { threads })
            }
            Some(e) => {
                // Each `go.recv()` fails now.
                drop(starts);
                for (_, thread) in threads {
                    let _ = thread.join();
                }
                Err(e)
            }
        }
    }

    /// Workers that have not returned yet.
    pub fn running(&self) -> usize {
        self.threads.iter().filter(|(_, thread)| !thread.is_finished()).count()
    }

    /// Waits until all have returned, at most `limit`. True if they have; [`Workers::join`] then does not wait.
    pub fn wait(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while self.running() > 0 {
            if begun.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Waits for each worker and gives what it returned, in the order of the launch. A panic is an error that names
    /// its lcore.
    pub fn join(self) -> Vec<(u32, Result<()>)> {
        let ended = |(lcore, thread): (u32, JoinHandle<Result<()>>)| {
            (lcore, thread.join().unwrap_or_else(|panic| panicked(lcore, panic)))
        };
        self.threads.into_iter().map(ended).collect()
    }
}

fn report_pin(spec: &LcoreSpec, to: Sender<Result<()>>) -> bool {
    let result = pin_current(spec);
    let ok = result.is_ok();
    // The launcher reads until every sender is gone.
    let _ = to.send(result);
    ok
}

pub(super) fn run(ctx: LcoreCtx, f: &(impl Fn(LcoreCtx) -> Result<()> + ?Sized)) -> Result<()> {
    let lcore = ctx.lcore;
    // Nothing of ours is touched after a panic but the lcore's number.
    catch_unwind(AssertUnwindSafe(|| f(ctx))).unwrap_or_else(|panic| panicked(lcore, panic))
}

fn panicked(lcore: u32, panic: Box<dyn Any + Send>) -> Result<()> {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    fail!(FAULT, "lcore {lcore}: the worker panicked: {}", text.unwrap_or("(no text)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Errno;
    use crate::eal::affinity::{allowed_cpus, current_cpus};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    fn specs(lcores: &[u32]) -> Vec<LcoreSpec> {
        let cpus = allowed_cpus();
        let on = |lcore: &u32| LcoreSpec { lcore: *lcore, cpus: vec![cpus[*lcore as usize % cpus.len()]] };
        lcores.iter().map(on).collect()
    }

    #[test]
    fn each_worker_is_named_pinned_and_told_who_it_is() {
        let specs = specs(&[3, 5, 127]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let workers = Workers::launch(&specs, move |ctx| {
            assert_eq!(std::thread::current().name(), Some(format!("bl-lcore-{}", ctx.lcore).as_str()));
            assert_eq!(current_cpus()?, ctx.cpus);
            log.lock().unwrap().push((ctx.index, ctx.lcore));
            Ok(())
        })
        .unwrap();
        assert_eq!(workers.join(), [(3, Ok(())), (5, Ok(())), (127, Ok(()))]);
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, [(0, 3), (1, 5), (2, 127)]);
    }

    #[test]
    fn errors_and_panics_come_back_with_their_lcore() {
        let workers = Workers::launch(&specs(&[0, 1, 2]), |ctx| match ctx.lcore {
            0 => Ok(()),
            1 => fail!(BUSY, "port 0 is busy"),
            n => panic!("lcore {n} gave up"),
        })
        .unwrap();
        let ends = workers.join();
        assert_eq!(ends[0], (0, Ok(())));
        assert_eq!(ends[1].1.as_ref().unwrap_err().errno(), Errno::BUSY);
        assert_eq!(ends[2].1.as_ref().unwrap_err().text(), "lcore 2: the worker panicked: lcore 2 gave up");
    }

    #[test]
    fn when_one_cannot_be_pinned_none_runs_and_none_is_left() {
        let mut specs = specs(&[0, 1]);
        specs.push(LcoreSpec { lcore: 9, cpus: vec![1023] });
        if allowed_cpus().contains(&1023) {
            return;
        }
        let (runs, held) = (Arc::new(AtomicU32::new(0)), Arc::new(()));
        let (count, hold) = (runs.clone(), held.clone());
        let e = Workers::launch(&specs, move |_| {
            let _ = &hold;
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap_err();
        assert!(e.text().starts_with("lcore 9: pin to CPU 1023"), "{e}");
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        assert_eq!(Arc::strong_count(&held), 1, "a thread still holds the function");
    }

    #[test]
    fn an_lcore_that_stands_twice_is_refused() {
        let e = Workers::launch(&specs(&[1, 2, 1]), |_| Ok(())).unwrap_err();
        assert!(e.text().starts_with("lcore 1: stands twice"), "{e}");
        assert!(Workers::launch(&[], |_| Ok(())).unwrap().join().is_empty());
    }

    #[test]
    fn workers_run_until_the_flag_is_set() {
        let flag = StopFlag::new();
        let seen = flag.clone();
        let workers = Workers::launch(&specs(&[0, 1]), move |_| {
            while !seen.is_stopped() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
        .unwrap();
        assert!(!workers.wait(Duration::from_millis(5)));
        assert_eq!(workers.running(), 2);
        flag.stop();
        assert!(workers.wait(Duration::from_secs(10)));
        assert_eq!(workers.join(), [(0, Ok(())), (1, Ok(()))]);
    }
}
