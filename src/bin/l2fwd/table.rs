//! What is shown each period, and at the end.

use crate::forward::Shared;
use burstline::base::time;
use burstline::driver::FlushCause;
use burstline::port::{Port, Stats};
use std::io::{IsTerminal, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Where people read: stdout, or stderr where stdout carries the JSON.
pub struct Screen {
    stderr: bool,
    terminal: bool,
    /// Lines that the next table takes back.
    lines: usize,
}

impl Screen {
    pub fn new(stderr: bool) -> Screen {
        let terminal = if stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        Screen { stderr, terminal, lines: 0 }
    }

    /// Text that stays. A reader that went away is no error.
    pub fn say(&mut self, text: &str) {
        self.lines = 0;
        self.write(text);
    }

    /// A table that replaces the last one where this is a terminal and nothing was said between.
    fn redraw(&mut self, text: &str) {
        if !self.terminal {
            return self.write(text);
        }
        let up = if self.lines > 0 { format!("\x1b[{}A\r\x1b[J", self.lines) } else { String::new() };
        self.write(&format!("{up}{text}"));
        self.lines = text.lines().count();
    }

    fn write(&self, text: &str) {
        let _ = if self.stderr {
            std::io::stderr().lock().write_all(text.as_bytes())
        } else {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
    }
}

/// The ports in use, and what they had counted when last shown.
pub struct Table {
    pub screen: Screen,
    pairs: Vec<(Port, Port)>,
    before: Vec<Stats>,
    at: Instant,
    begun: Instant,
}

impl Table {
    pub fn new(screen: Screen, pairs: Vec<(Port, Port)>) -> Table {
        let before = pairs.iter().map(|(p, _)| p.stats()).collect();
        Table { screen, pairs, before, at: Instant::now(), begun: Instant::now() }
    }

    /// Rates since the last call.
    pub fn show(&mut self, shared: &Shared) {
        let now = Instant::now();
        let dt = (now - self.at).as_secs_f64().max(1e-9);
        let mut text = format!(
            "l2fwd: {:.0} s\n{:<16} {:>10} {:>9} {:>10} {:>9} {:>9}  rings: {}\n",
            (now - self.begun).as_secs_f64(),
            "port",
            "rx pps",
            "rx Mbps",
            "tx pps",
            "tx Mbps",
            "drops",
            FlushCause::NAMES.join("/")
        );
        for (i, (port, _)) in self.pairs.iter().enumerate() {
            let s = port.stats();
            let was = std::mem::replace(&mut self.before[i], s);
            let rate = |now: u64, was: u64| now.saturating_sub(was) as f64 / dt;
            let mbps = |now: u64, was: u64| rate(now, was) * 8.0 / 1e6;
            text += &format!(
                "{:<16} {:>10.0} {:>9.1} {:>10.0} {:>9.1} {:>9}  {}\n",
                format!("{} {}", port.id(), port.name()),
                rate(s.ipackets, was.ipackets),
                mbps(s.ibytes, was.ibytes),
                rate(s.opackets, was.opackets),
                mbps(s.obytes, was.obytes),
                lost(&s) + dropped_to(port, &self.pairs, shared),
                s.tx_flush.map(|n| n.to_string()).join("/")
            );
        }
        self.at = now;
        self.screen.redraw(&text);
    }

    /// Everything since the start, from the ports' counters as `stats` gives them.
    pub fn totals(&mut self, stats: &[(Port, Stats)], shared: &Shared) {
        let mut text = format!("l2fwd: totals after {:.3} s\n", self.begun.elapsed().as_secs_f64());
        for (port, s) in stats {
            let n = |what: &str, n: u64| if n == 0 { String::new() } else { format!(", {what} {n}") };
            text += &format!(
                "port {} {}: received {} packets ({} bytes), sent {} packets ({} bytes)",
                port.id(),
                port.name(),
                s.ipackets,
                s.ibytes,
                s.opackets,
                s.obytes
            );
            text += &n("missed", s.imissed);
            text += &n("receive errors", s.ierrors);
            text += &n("without buffer", s.rx_nombuf);
            text += &n("send errors", s.oerrors);
            let undrained = port.xstats().into_iter().find(|(name, _)| name == "tx_undrained");
            text += &n("not sent by the stop", undrained.map_or(0, |(_, n)| n));
            text += &n("dropped before it", dropped_to(port, &self.pairs, shared));
            text += &n("forward_waits", to(port, &self.pairs, shared, |l| l.waits.load(Relaxed)));
            text.push('\n');
            let rings: Vec<String> = FlushCause::NAMES
                .iter()
                .zip(s.tx_flush)
                .filter(|(_, n)| *n > 0)
                .map(|(c, n)| format!("{c} {n}"))
                .collect();
            if !rings.is_empty() {
                text += &format!("  tail rung: {}\n", rings.join(", "));
            }
        }
        if shared.perf {
            text += &perf(shared);
        }
        self.screen.say(&text);
    }
}

fn perf(shared: &Shared) -> String {
    let packets: u64 = shared.lanes.iter().map(|l| l.received.load(Relaxed)).sum();
    let cycles: u64 = shared.lcores.iter().map(|l| l.busy_cycles.load(Relaxed)).sum();
    let mut text = match packets {
        0 => "perf: no packet, no cycles\n".to_string(),
        _ => format!(
            "perf: {:.1} cycles a packet (time-stamp counter at {:.2} GHz, laps that moved packets)\n",
            cycles as f64 / packets as f64,
            time::tsc_hz() as f64 / 1e9
        ),
    };
    text += "perf: hardware counters (instructions, misses) are not read\n";
    text
}

fn lost(s: &Stats) -> u64 {
    s.imissed + s.ierrors + s.rx_nombuf + s.oerrors
}

fn dropped_to(port: &Port, pairs: &[(Port, Port)], shared: &Shared) -> u64 {
    to(port, pairs, shared, |l| l.drops.load(Relaxed))
}

/// Sum over the lanes that lead to a port.
fn to(port: &Port, pairs: &[(Port, Port)], shared: &Shared, f: impl Fn(&crate::forward::LaneCounters) -> u64) -> u64 {
    pairs.iter().zip(&shared.lanes).filter(|((_, out), _)| out.id() == port.id()).map(|(_, l)| f(l)).sum()
}
