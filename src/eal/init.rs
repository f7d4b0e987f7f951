//! From options to ports and lcores, and back to nothing.

use super::affinity::{current_cpus, pin_current};
use super::args::EalArgs;
use super::cpulist::LcoreSpec;
use super::launch::{LcoreCtx, Workers, run};
use super::probe;
use crate::base::{Error, Result};
use crate::driver::pool::{self, slot::ThreadSlot};
use crate::mem::{Ladder, PagePolicy, PageSize, arena};
use crate::port::Port;
use crate::{fail, log_warn};
use std::sync::Arc;

/// What the options of a program asked for, made: ports and lcores.
///
/// Several may live in one process; two ports of one name are refused. Page policy, debug mode and log level hold for the
/// process, and the last init sets them. Dropping it closes its ports.
pub struct Eal {
    args: EalArgs,
    ports: Vec<Port>,
    lcores: Vec<LcoreSpec>,
    main: u32,
    /// What the calling thread is pinned to while it runs its share; None without `-l`.
    pin_main: Option<LcoreSpec>,
    pages: PagePolicy,
    skipped: Vec<String>,
}

impl Eal {
    /// Reads the options in `args` (program name included) and makes what they ask for. Gives also the index of the
    /// program's first own argument.
    ///
    /// On an error nothing is left: no port, no file, no interface. With `-h` nothing is made: see [`Eal::args`].
    pub fn init(args: &[String]) -> Result<(Eal, usize)> {
        let (parsed, used) = EalArgs::parse(args)?;
        Ok((Eal::from_args(parsed)?, used))
    }

    /// As [`Eal::init`], from options already read, or filled in by hand from [`EalArgs::default`].
    pub fn from_args(args: EalArgs) -> Result<Eal> {
        let before = current_cpus()?;
        let lowest = args.lcores.as_ref().and_then(|l| l.first()).map_or(0, |s| s.lcore);
        let main = args.main_lcore.unwrap_or(lowest);
        let lcores = match &args.lcores {
            Some(list) => list.clone(),
            None => vec![LcoreSpec { lcore: main, cpus: before }],
        };
        let pin_main = args.lcores.as_ref().and_then(|l| l.iter().find(|s| s.lcore == main)).cloned();
        let pages = PagePolicy { no_huge: args.no_huge, max: None };
        let mut eal = Eal { args, ports: Vec::new(), lcores, main, pin_main, pages, skipped: Vec::new() };
        if eal.args.help {
            return Ok(eal);
        }
        if let Some(level) = eal.args.log_level {
            log::set_max_level(level.to_level_filter());
        }
        if let Some(text) = eal.args.ignored_text() {
            log_warn!("{text}");
        }
        if let Some(address) = eal.args.allow.first() {
            return fail!(
                NOTSUP,
                "-a {address}: no PCI driver is built in; virtual devices are added with --vdev (drivers: {})",
                probe::drivers().iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
            );
        }
        if let Some(mb) = eal.args.memory_mb {
            check_memory(mb, pages)?;
        }
        arena::set_policy(pages);
        pool::set_debug(eal.args.debug_pools);
        crate::port::set_checks(eal.args.debug_pools);
        eal.skipped = probe::skipped_pci(eal.args.no_pci);
        eal.ports = probe::attach_all(&eal.args.vdevs)?;
        // From here on a return closes the ports: Drop.
        for (name, spec) in &eal.args.wraps {
            let Some(port) = eal.ports.iter().find(|p| p.name() == name) else {
                return fail!(NODEV, "--wrap {name},{spec}: there is no device '{name}' (name one of --vdev)");
            };
            crate::port::wrap::parse_and_wrap(port, spec).map_err(|e| e.context(format!("--wrap {name}")))?;
        }
        Ok(eal)
    }

    /// The options that it was made from.
    pub fn args(&self) -> &EalArgs {
        &self.args
    }

    /// Its ports, in the order of the options.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The lcores to run on, by number, the main one included. Without `-l` there is the main lcore alone, on whatever
    /// CPUs the calling thread had at init.
    pub fn lcores(&self) -> &[LcoreSpec] {
        &self.lcores
    }

    /// The lcore whose share runs on the calling thread.
    pub fn main_lcore(&self) -> u32 {
        self.main
    }

    /// Which pages pools shall use: for [`pool::PoolConfig::pages`].
    pub fn pages(&self) -> PagePolicy {
        self.pages
    }

    /// Bytes of packet memory that `-m` allows; None: no limit was given.
    pub fn memory_limit(&self) -> Option<u64> {
        self.args.memory_mb.map(|mb| mb << 20)
    }

    /// Why there is no port: the drivers built in, and what was passed over.
    pub fn no_ports_text(&self) -> String {
        let mut out = String::from("no port was found: no device is named with --vdev\ndrivers built in:\n");
        for d in probe::drivers() {
            out += &format!("  {:<18} {} (needs: {})\n", d.name, d.summary, d.needs);
        }
        out += "skipped:\n";
        for line in &self.skipped {
            out += &format!("  {line}\n");
        }
        out + "for example: --vdev net_null0 --vdev net_null1"
    }

    /// Starts `f` on every lcore but the main one, each on a thread of its own, pinned.
    pub fn launch(&self, f: impl Fn(LcoreCtx) -> Result<()> + Send + Sync + 'static) -> Result<Workers> {
        let others: Vec<LcoreSpec> = self.lcores.iter().filter(|s| s.lcore != self.main).cloned().collect();
        let order: Vec<u32> = self.lcores.iter().map(|s| s.lcore).collect();
        Workers::launch(&others, move |mut ctx| {
            ctx.index = order.iter().position(|l| *l == ctx.lcore).unwrap_or(ctx.index);
            f(ctx)
        })
    }

    /// Runs `f` once on every lcore, and returns when all have: the main lcore's share on the calling thread, the others'
    /// on threads of their own. Each has a thread slot meanwhile. Gives what each returned, in the order of
    /// [`Eal::lcores`]; a panic is an error that names its lcore.
    ///
    /// The calling thread is pinned only if `-l`, `-c` or `--lcores` was given, and gets its old CPUs back. It must not
    /// have a slot already (-EEXIST). An error before `f` ran anywhere is the outer one.
    pub fn run_on_lcores<F>(&self, f: F) -> Result<Vec<(u32, Result<()>)>>
    where
        F: Fn(LcoreCtx, &ThreadSlot) -> Result<()> + Send + Sync + 'static,
    {
        let slot = ThreadSlot::register()?;
        let _restore = match &self.pin_main {
            Some(spec) => Some(Pinned::pin(spec)?),
            None => None,
        };
        let f = Arc::new(f);
        let shared = f.clone();
        let workers = self.launch(move |ctx| shared(ctx, &ThreadSlot::register()?))?;
        let index = self.lcores.iter().position(|s| s.lcore == self.main).unwrap_or(0);
        let cpus = self.lcores.get(index).map(|s| s.cpus.clone()).unwrap_or_default();
        let own = run(LcoreCtx { index, lcore: self.main, cpus }, &|ctx| f(ctx, &slot));
        let mut ended = workers.join();
        ended.push((self.main, own));
        ended.sort_by_key(|(lcore, _)| *lcore);
        Ok(ended)
    }

    /// Stops and closes its ports. The error tells of the first that would not; the others are closed all the same.
    pub fn close(mut self) -> Result<()> {
        self.close_ports()
    }

    fn close_ports(&mut self) -> Result<()> {
        let mut failed: Vec<Error> = Vec::new();
        for port in self.ports.drain(..).rev() {
            // The program may have closed it.
            if port.state() != crate::port::State::Closed
                && let Err(e) = port.close()
            {
                failed.push(e);
            }
        }
        let more = failed.len().saturating_sub(1);
        match failed.into_iter().next() {
            None => Ok(()),
            Some(e) if more == 0 => Err(e),
            Some(e) => Err(Error::new(e.errno(), format!("{e} (and {more} more ports)"))),
        }
    }
}

impl Drop for Eal {
    fn drop(&mut self) {
        if let Err(e) = self.close_ports() {
            log_warn!("{e}");
        }
    }
}

/// The calling thread on other CPUs, until dropped.
struct Pinned(LcoreSpec);

impl Pinned {
    fn pin(spec: &LcoreSpec) -> Result<Pinned> {
        let before = current_cpus()?;
        pin_current(spec)?;
        Ok(Pinned(LcoreSpec { lcore: spec.lcore, cpus: before }))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Err(e) = pin_current(&self.0) {
            log_warn!("the calling thread keeps its CPUs: {e}");
        }
    }
}

/// Refuses `-m` where the machine does not have that much, in hugepages and ordinary pages together.
fn check_memory(mb: u64, pages: PagePolicy) -> Result<()> {
    let ladder = Ladder::system();
    let Some(ordinary) = ladder.ordinary_available() else { return Ok(()) };
    let huge: usize = [PageSize::Huge2M, PageSize::Huge1G]
        .into_iter()
        .filter(|p| pages.allows(*p))
        .filter_map(|p| ladder.count(p).map(|c| c.available().saturating_mul(p.bytes())))
        .sum();
    let there = (ordinary.saturating_add(huge) >> 20) as u64;
    if mb > there {
        return fail!(NOMEM, "-m {mb}: {mb} MiB of packet memory, available are {there} MiB");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Errno;
    use crate::eal::affinity::allowed_cpus;
    use std::sync::Mutex;

    fn init(line: &str) -> Result<(Eal, usize)> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        Eal::init(&args)
    }

    #[test]
    fn devices_become_ports_in_order_and_go_with_close() {
        let (eal, used) = init("prog --no-huge --vdev net_null_b,size=100 --vdev net_null_a -- -p 3").unwrap();
        assert_eq!(used, 7);
        let names: Vec<&str> = eal.ports().iter().map(Port::name).collect();
        assert_eq!(names, ["net_null_b", "net_null_a"]);
        assert_eq!(eal.pages(), PagePolicy::NO_HUGE);
        let e = init("prog --vdev net_null_a").err().unwrap();
        assert_eq!(e.errno(), Errno::EXIST);
        let (other, _) = init("prog --vdev net_null_c").unwrap();
        drop(other);
        assert!(Port::by_name("net_null_c").is_err());
        eal.close().unwrap();
        assert!(Port::by_name("net_null_a").is_err() && Port::by_name("net_null_b").is_err());
    }

    #[test]
    fn a_failed_init_leaves_no_port() {
        for (line, says) in [
            ("prog --vdev net_null_f --vdev net_null_g,sise=9", "unknown key 'sise', did you mean 'size'?"),
            ("prog --vdev net_null_f --vdev net_nothing0", "built in: net_null"),
            ("prog --vdev net_null_f --wrap net_null_z,trace", "no device 'net_null_z'"),
            ("prog --vdev net_null_f --wrap net_null_f,tracer", "'tracer' is no wrapper"),
            ("prog --vdev net_null_f -a 0000:03:00.0", "-a 0000:03:00.0: no PCI driver is built in"),
            ("prog --vdev net_null_f -m 1048576", "-m 1048576: 1048576 MiB of packet memory, available are"),
        ] {
            let e = init(line).err().unwrap();
            assert!(e.text().contains(says), "{line}: {e}");
            assert!(Port::by_name("net_null_f").is_err(), "{line}");
        }
        assert_eq!(init("prog -a 03:00.0").err().unwrap().errno(), Errno::NOTSUP);
    }

    #[test]
    fn without_a_list_the_calling_thread_runs_alone_and_is_not_pinned() {
        std::thread::spawn(|| {
            let (eal, _) = init("prog").unwrap();
            let before = current_cpus().unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let log = seen.clone();
            let ends = eal.run_on_lcores(move |ctx, slot| {
                log.lock().unwrap().push((ctx.lcore, current_cpus()?, slot.id() == crate::pool::slot::current()));
                Ok(())
            });
            assert_eq!(ends.unwrap(), [(0, Ok(()))]);
            assert_eq!(*seen.lock().unwrap(), [(0, before, true)]);
            assert!(eal.no_ports_text().contains("net_null") && eal.no_ports_text().contains("skipped:"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn each_lcore_runs_pinned_with_a_slot_and_the_caller_gets_its_cpus_back() {
        std::thread::spawn(|| {
            let cpus = allowed_cpus();
            let (a, b) = (cpus[0], cpus[cpus.len() - 1]);
            let (eal, _) = init(&format!("prog --lcores 4@{a},9@{b} --main-lcore 9")).unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let log = seen.clone();
            let ends = eal.run_on_lcores(move |ctx, slot| {
                log.lock().unwrap().push((ctx.index, ctx.lcore, current_cpus()?, slot.id()));
                if ctx.lcore == 4 { fail!(BUSY, "no time") } else { panic!("no nerve") }
            });
            let ends = ends.unwrap();
            assert_eq!((ends[0].0, ends[1].0), (4, 9));
            assert_eq!(ends[0].1.as_ref().unwrap_err().errno(), Errno::BUSY);
            assert_eq!(ends[1].1.as_ref().unwrap_err().text(), "lcore 9: the worker panicked: no nerve");
            let mut seen = seen.lock().unwrap().clone();
            seen.sort();
            assert_eq!((seen[0].0, seen[0].1, &seen[0].2), (0, 4, &vec![a]));
            assert_eq!((seen[1].0, seen[1].1, &seen[1].2), (1, 9, &vec![b]));
            assert_ne!(seen[0].3, seen[1].3);
            assert_eq!(current_cpus().unwrap(), cpus);
            assert_eq!(crate::pool::slot::current(), crate::pool::slot::NO_SLOT);
        })
        .join()
        .unwrap();
    }
}
