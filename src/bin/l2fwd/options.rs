//! The options after `--`.

use burstline::base::{Error, Result};
use burstline::{eal, invalid};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::path::PathBuf;

/// Packets of a burst at most.
pub const MAX_BURST: usize = 512;

#[derive(Parser, Clone, Debug)]
#[command(no_binary_name = true, disable_version_flag = true, name = "l2fwd")]
pub struct Options {
    /// Ports to use, as a hexadecimal mask (default: all)
    #[arg(short = 'p', value_name = "PORTMASK", value_parser = mask)]
    pub portmask: Option<u64>,
    /// Ports that an lcore serves at most (default: shared out evenly)
    #[arg(short = 'q', value_name = "NQ", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub per_lcore: Option<u16>,
    /// Seconds between tables, 0 for none (default: 10; 1 for the built-in capture)
    #[arg(short = 'T', value_name = "PERIOD", value_parser = clap::value_parser!(u32).range(0..=86400))]
    pub period: Option<u32>,
    /// All ports are promiscuous where they can be; taken for the sake of DPDK's users
    #[arg(short = 'P')]
    pub promiscuous: bool,
    /// Which ports forward to each other: (0,1)(2,3) (default: neighbours; an odd one out to itself)
    #[arg(long, value_name = "PAIRS", value_parser = pairs)]
    pub portmap: Option<Pairs>,
    /// Write the output port's address as source, 02:00:00:00:00:<port> as destination (the default)
    #[arg(long, overrides_with = "no_mac_updating")]
    pub mac_updating: bool,
    /// Leave the addresses as they are
    #[arg(long)]
    pub no_mac_updating: bool,
    /// End after this time; fractions are allowed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// End after this many received packets, all ports together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// End when every input that can end has ended and what came in is sent
    #[arg(long)]
    pub exit_on_eof: bool,
    /// At exit, write the counters to this file as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub stats_json: Option<PathBuf>,
    /// Say how many cycles a packet cost
    #[arg(long)]
    pub perf: bool,
    /// Packets of a burst: 1 to 512
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=MAX_BURST as i64))]
    pub burst: u16,
    /// Packets in the pool (default: what the queues, bursts and caches need, 8192 at least)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub pool_size: Option<u32>,
    /// Descriptors of a receive queue (default: the device's usual number)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub rxd: Option<u32>,
    /// Descriptors of a send queue (default: the device's usual number)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub txd: Option<u32>,
}

/// What `--portmap` pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs(pub Vec<(u16, u16)>);

impl Options {
    /// None: `-h`.
    pub fn read(args: &[String]) -> Result<Option<Options>> {
        match Options::try_parse_from(args) {
            Ok(o) => Ok(Some(o)),
            Err(e) if e.kind() == ErrorKind::DisplayHelp => Ok(None),
            Err(e) => Err(Error::invalid(one_line(&e.to_string()))),
        }
    }
}

/// clap's message without its headline, usage and advice.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let end = text.find("\n\nUsage").or_else(|| text.find("\n\nFor more")).unwrap_or(text.len());
    let lines: Vec<&str> = text[..end].lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    format!("{} (l2fwd -h lists the options)", lines.join("; "))
}

/// Help: the EAL's options, the program's, and the drivers.
pub fn help() -> String {
    let own = Options::command().help_template("{options}").render_help().to_string();
    format!(
        "l2fwd: forwards between pairs of ports.\n\n\
         Usage: l2fwd [EAL options] [-- [program options]]\n\
         Without a device the capture that is built in is replayed: no privilege and no hugepages are needed.\n\n\
         {}\nProgram options (after --):\n{own}\nDrivers:\n{}",
        eal::EalArgs::usage(),
        eal::drivers_text()
    )
}

fn mask(s: &str) -> std::result::Result<u64, String> {
    let digits = s.strip_prefix("0x").or_else(|| s.strip_prefix("0X")).unwrap_or(s);
    let no_sign = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(0) => Err("the mask has no port in it".into()),
        Ok(n) if no_sign => Ok(n),
        _ => Err("no hexadecimal mask of up to 64 ports (for example 0x3)".into()),
    }
}

fn seconds(s: &str) -> std::result::Result<f64, String> {
    match s.parse::<f64>() {
        Ok(n) if n > 0.0 && n <= 1e9 => Ok(n),
        _ => Err("no number of seconds above 0 and up to 1000000000".into()),
    }
}

fn pairs(s: &str) -> std::result::Result<Pairs, String> {
    read_pairs(s).map(Pairs).map_err(|e| e.text().into())
}

/// `(0,1)(2,3)`, with commas between the pairs if you like.
fn read_pairs(s: &str) -> Result<Vec<(u16, u16)>> {
    let text: String = s.chars().filter(|c| !c.is_whitespace()).collect();
    let mut out: Vec<(u16, u16)> = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() || out.is_empty() {
        let pair = rest.strip_prefix('(').and_then(|r| r.split_once(')'));
        let Some((inner, after)) = pair else { return invalid!("not (A,B)(C,D): '{rest}'") };
        let number = |s: &str| s.parse::<u16>().ok().filter(|n| *n < 64 && s.bytes().all(|b| b.is_ascii_digit()));
        let Some((a, b)) = inner.split_once(',').and_then(|(a, b)| Some((number(a)?, number(b)?))) else {
            return invalid!("'({inner})' is no pair of port numbers (0 to 63)");
        };
        if let Some(twice) = [a, b].into_iter().find(|n| out.iter().any(|(x, y)| x == n || y == n)) {
            return invalid!("port {twice} stands in two pairs");
        }
        out.push((a, b));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Ok(out)
}
