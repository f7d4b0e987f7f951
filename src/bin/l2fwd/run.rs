//! From start to exit: devices, lanes, lcores, and the books at the end.

use crate::demo::Demo;
use crate::forward::{LaneCounters, LcoreCounters, Route, Shared, forward};
use crate::json::{self, Target};
use crate::options::Options;
use crate::plan;
use crate::supervise::{Ends, Supervisor};
use crate::table::{Screen, Table};
use burstline::base::{Errno, Error, Result};
use burstline::driver::ETHER_HDR_LEN;
use burstline::eal::{Eal, EalArgs, StopFlag, signal};
use burstline::fail;
use burstline::pool::Pool;
use burstline::port::Port;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// DPDK's period of the table; the built-in capture is over sooner.
const PERIOD: u32 = 10;
const DEMO_PERIOD: u32 = 1;

pub fn run(mut args: EalArgs, mut options: Options) -> Result<()> {
    let json = options.stats_json.as_deref().map(Target::open).transpose()?;
    let mut screen = Screen::new(json.as_ref().is_some_and(Target::is_stdout));
    let signalled = signal::stop_on_signals()?;
    // Who chooses ports means devices of their own.
    let no_device = args.vdevs.is_empty() && args.allow.is_empty();
    let demo = (no_device && options.portmask.is_none() && options.portmap.is_none()).then(Demo::new).transpose()?;
    if let Some(demo) = &demo {
        demo.add_devices(&mut args)?;
        options.exit_on_eof = true;
    }
    let period = options.period.unwrap_or(if demo.is_some() { DEMO_PERIOD } else { PERIOD });
    let eal = Eal::from_args(args)?;
    if eal.ports().is_empty() {
        return Err(Error::new(Errno::NODEV, eal.no_ports_text()));
    }
    if let Some(demo) = &demo {
        demo.remove_input();
        screen.say(&demo.begin_text());
    }
    let all: Vec<Port> = eal.ports().to_vec();
    let pairs = plan::pairs(&all, &options)?;
    let ends = Ends {
        signalled,
        duration: options.duration.map(Duration::from_secs_f64),
        on_eof: options.exit_on_eof,
        packets: options.packets,
    };
    let period = (period > 0).then(|| Duration::from_secs(period.into()));
    let supervisor = Supervisor::new(pairs.clone(), ends, period)?;
    let per_lcore = plan::per_lcore(pairs.len(), eal.lcores().len(), &options)?;
    let pool = Arc::new(plan::pool(&eal, &pairs, &options)?);
    let routes = plan::start(&pairs, &pool, &options)?;
    if demo.is_none() {
        screen.say(&intro(&pairs, &eal, per_lcore, &pool));
    }
    let shared = Arc::new(Shared {
        stop: StopFlag::new(),
        budget: options.packets.map(AtomicU64::new),
        lanes: routes.iter().map(|_| LaneCounters::default()).collect(),
        lcores: (0..eal.lcores().len())
            .map(|i| LcoreCounters { serves: i * per_lcore < routes.len(), ..LcoreCounters::default() })
            .collect(),
        burst: options.burst,
        perf: options.perf,
        pool: pool.clone(),
    });
    let table = Table::new(screen, pairs);
    let (ran, mut table) = on_lcores(&eal, routes, per_lcore, &shared, supervisor, table)?;

    // Everything is given back before it is counted: rings drain when their ports close.
    let closed = eal.close();
    let stats: Vec<_> = all.into_iter().map(|p| (p.clone(), p.stats())).collect();
    let info = pool.info();
    table.totals(&stats, &shared);
    if let Some(json) = json {
        json.write(&json::object(&stats, &info))?;
    }
    ran.and(closed)?;
    if info.available != info.size {
        let out = pool.outstanding();
        let hint = if out.is_empty() { " (--debug-pools tells who has them)".into() } else { format!(": {out:?}") };
        return fail!(FAULT, "pool '{}': {} of {} packets came back{hint}", info.name, info.available, info.size);
    }
    if let Some(demo) = demo {
        let sent = stats.get(1).map_or(0, |(_, s)| s.opackets);
        table.screen.say(&demo.keep(sent));
    }
    Ok(())
}

/// Runs the lanes until the end. The outer error: nothing has run.
fn on_lcores(
    eal: &Eal,
    routes: Vec<Route>,
    per_lcore: usize,
    shared: &Arc<Shared>,
    supervisor: Supervisor,
    mut table: Table,
) -> Result<(Result<()>, Table)> {
    let mut shares: Vec<Vec<Route>> = eal.lcores().iter().map(|_| Vec::new()).collect();
    for route in routes {
        // In order: the first lcore is filled first, as DPDK does it.
        if let Some(share) = shares.get_mut(route.lane / per_lcore.max(1)) {
            share.push(route);
        }
    }
    let shares = Mutex::new(shares);
    let watched = shared.clone();
    let watcher = std::thread::Builder::new()
        .name("l2fwd-watch".into())
        .spawn(move || {
            supervisor.run(&watched, &mut table);
            table
        })
        .map_err(|e| Error::from_io(&e, "start a thread"))?;
    let used = shared.clone();
    let ran = eal.run_on_lcores(move |ctx, slot| {
        let mut shares = shares.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.get_mut(ctx.index).map(std::mem::take).unwrap_or_default();
        drop(shares);
        forward(share, ctx.index, &used, slot)
    });
    shared.stop.stop();
    let table = watcher.join().map_err(|_| Error::new(Errno::FAULT, "the watching thread panicked"))?;
    let ran = ran?.into_iter().find_map(|(_, r)| r.err()).map_or(Ok(()), Err);
    Ok((ran, table))
}

fn intro(pairs: &[(Port, Port)], eal: &Eal, per_lcore: usize, pool: &Pool) -> String {
    let mut text = String::new();
    for (lane, (from, to)) in pairs.iter().enumerate() {
        let lcore = eal.lcores().get(lane / per_lcore.max(1)).map_or(0, |l| l.lcore);
        text += &format!(
            "l2fwd: lcore {lcore}: port {} ({}) to port {} ({}), frames to {} bytes\n",
            from.id(),
            from.name(),
            to.id(),
            to.name(),
            from.mtu() + ETHER_HDR_LEN
        );
    }
    let info = pool.info();
    text += &format!("l2fwd: {} packets in pool '{}', pages of {} KiB\n", info.size, info.name, info.room_page >> 10);
    if let (Some(hint), false) = (info.hugepage_hint, eal.pages().no_huge) {
        text += &format!("l2fwd: too few free hugepages; enough of them: {hint}\n");
    }
    text
}
