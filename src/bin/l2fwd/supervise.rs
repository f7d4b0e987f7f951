//! Beside the lcores: events, the reasons to end, and the table.

use crate::forward::Shared;
use crate::table::Table;
use burstline::base::Result;
use burstline::driver::{Caps, Event};
use burstline::eal::StopFlag;
use burstline::invalid;
use burstline::port::Port;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);
/// Events and links are looked at this often.
const EVENT_PERIOD: Duration = Duration::from_millis(5);
/// After the last input ended: how long a source without an end may go on before it is cut off, and how long packets that
/// wait may stand still.
const ENDLESS: Duration = Duration::from_secs(1);
const STUCK: Duration = Duration::from_secs(2);
/// How long lcores that others keep from their cores may take for a few laps.
const STARVED: Duration = Duration::from_secs(10);

/// When to end.
pub struct Ends {
    pub signalled: StopFlag,
    pub duration: Option<Duration>,
    pub on_eof: bool,
    pub packets: Option<u64>,
}

pub struct Supervisor {
    pairs: Vec<(Port, Port)>,
    /// Which of the inputs end by themselves.
    finite: Vec<bool>,
    ends: Ends,
    period: Option<Duration>,
}

/// Packets moved, and laps of each lcore, at one moment.
#[derive(Clone)]
struct Mark {
    received: u64,
    taken: u64,
    laps: Vec<u64>,
    at: Instant,
    /// Rounds of all lcores since packets last moved.
    rounds: u32,
}

impl Mark {
    fn now(shared: &Shared) -> Mark {
        Mark {
            received: shared.lanes.iter().map(|l| l.received.load(Relaxed)).sum(),
            taken: shared.lanes.iter().map(|l| l.taken.load(Relaxed)).sum(),
            laps: shared.lcores.iter().map(|l| l.laps.load(Relaxed)).collect(),
            at: Instant::now(),
            rounds: 0,
        }
    }
}

impl Supervisor {
    /// Refuses to wait for the end of inputs that have none.
    pub fn new(pairs: Vec<(Port, Port)>, ends: Ends, period: Option<Duration>) -> Result<Supervisor> {
        let finite: Vec<bool> = pairs.iter().map(|(p, _)| p.info().device.caps.contains(Caps::FINITE_INPUT)).collect();
        if ends.on_eof && !finite.contains(&true) {
            return invalid!("--exit-on-eof: no port's input ends by itself (a capture's does: rx_pcap=FILE)");
        }
        Ok(Supervisor { pairs, finite, ends, period })
    }

    /// Returns when `shared.stop` is set, by itself or by an lcore.
    pub fn run(&self, shared: &Shared, table: &mut Table) {
        let begun = Instant::now();
        let (mut next_table, mut next_events) = (self.period.map(|p| begun + p), begun);
        let mut ended = vec![false; self.pairs.len()];
        let mut finished: Option<(Instant, Mark)> = None;
        while !shared.stop.is_stopped() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            if self.ends.signalled.is_stopped() || self.ends.duration.is_some_and(|d| now - begun >= d) {
                shared.stop.stop();
            }
            if now >= next_events {
                next_events = now + EVENT_PERIOD;
                self.events(shared, &mut ended);
            }
            if let (Some(at), Some(period)) = (next_table, self.period)
                && now >= at
            {
                next_table = Some(at + period * ((now - at).as_nanos() / period.as_nanos() + 1) as u32);
                table.show(shared);
            }
            if self.over(shared, &ended) {
                let (since, mark) = finished.get_or_insert_with(|| (now, Mark::now(shared)));
                if quiet(shared, *since, mark) {
                    shared.stop.stop();
                }
            }
        }
    }

    fn events(&self, shared: &Shared, ended: &mut [bool]) {
        for (i, (from, _)) in self.pairs.iter().enumerate() {
            let e = from.take_events();
            if e.contains(Event::END_OF_INPUT) {
                ended[i] = true;
            }
            if e.contains(Event::REMOVED) {
                ended[i] = true;
                for (lane, _) in shared.lanes.iter().zip(&self.pairs).filter(|(_, (_, to))| to.id() == from.id()) {
                    lane.output_gone.store(true, Relaxed);
                }
            }
        }
    }

    /// No more packets are wanted: the input has ended, or there were as many as asked for.
    fn over(&self, shared: &Shared, ended: &[bool]) -> bool {
        let received = || shared.lanes.iter().map(|l| l.received.load(Relaxed)).sum::<u64>();
        if self.ends.packets.is_some_and(|n| received() >= n) {
            return true;
        }
        self.ends.on_eof && self.finite.iter().zip(ended).all(|(finite, ended)| *ended || !finite)
    }
}

/// Rounds without a packet until all is sent. In the first, what was staged is announced; it may go into a ring whose
/// reader had its laps before, and has others in the second.
const QUIET_ROUNDS: u32 = 2;

/// Nothing waits, and nothing moved while every lcore went round a few times, twice over; or there is no use in waiting.
fn quiet(shared: &Shared, since: Instant, mark: &mut Mark) -> bool {
    let now = Mark::now(shared);
    let held: u64 = shared.lanes.iter().map(|l| l.held.load(Relaxed)).sum();
    if (now.received, now.taken) != (mark.received, mark.taken) {
        *mark = now;
        return held == 0 && since.elapsed() >= ENDLESS;
    }
    if mark.at.elapsed() >= if held == 0 { STARVED } else { STUCK } {
        return true;
    }
    // One that serves a port has no lap until its thread has begun.
    let mut laps = shared.lcores.iter().zip(mark.laps.iter().zip(&now.laps));
    let round = laps.all(|(l, (a, b))| !l.serves || b.wrapping_sub(*a) >= 3);
    if held == 0 && round {
        let rounds = mark.rounds + 1;
        *mark = Mark { rounds, at: mark.at, ..now };
    }
    mark.rounds >= QUIET_ROUNDS
}
