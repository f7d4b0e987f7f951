//! The arguments before `--`: what users of DPDK type, read once, with an error for all that cannot be done.

use super::affinity::allowed_cpus;
use super::cpulist::{LcoreSpec, MAX_LCORE, check_allowed, format_list, parse_list, parse_mask};
use super::options::{Arity, Id, OPTIONS, Opt, find};
use crate::base::{Error, Result};
use crate::driver::devargs::{DevArgs, MAX_NAME, check_name, nearest};
use crate::{fail, invalid};
use log::Level;

/// Most that `-m` takes: 1 TiB.
pub const MAX_MEMORY_MB: u64 = 1 << 20;

/// What the options ask for. `Default` is what no option gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EalArgs {
    /// From `-l`, `-c` or `--lcores`, sorted. None: not asked for, and then nothing is pinned.
    pub lcores: Option<Vec<LcoreSpec>>,
    pub main_lcore: Option<u32>,
    /// In the order given; no two of one name.
    pub vdevs: Vec<DevArgs>,
    /// PCI addresses as `0000:03:00.1`, in the order given, each once. Not both of `allow` and `block` hold any.
    pub allow: Vec<String>,
    pub block: Vec<String>,
    /// What followed the address in `-a 0000:03:00.1,key=value`; the name is the address.
    pub pci_args: Vec<DevArgs>,
    pub no_pci: bool,
    pub no_huge: bool,
    pub memory_mb: Option<u64>,
    pub in_memory: bool,
    pub file_prefix: Option<String>,
    /// The last level given without a pattern. Messages carry no type here, so `PATTERN:LEVEL` can only make the
    /// whole library say more (than that level, or than Info).
    pub log_level: Option<Level>,
    /// `--wrap NAME,SPEC`, in the order given.
    pub wraps: Vec<(String, String)>,
    pub debug_pools: bool,
    pub help: bool,
    pub version: bool,
    /// Options without effect, as they were typed; see [`EalArgs::ignored_text`].
    pub ignored: Vec<String>,
}

impl EalArgs {
    /// Reads `args`, program name included. Gives also the index of the first argument of the program: the one after
    /// `--`, or the first that is no option, or the length. Reading ends at `-h`.
    ///
    /// Errors name the option, the value and what is allowed; a CPU must be one the calling thread may use.
    pub fn parse(args: &[String]) -> Result<(EalArgs, usize)> {
        EalArgs::parse_on(args, &allowed_cpus())
    }

    /// As [`EalArgs::parse`], for a machine with these CPUs (sorted; empty: any).
    pub fn parse_on(args: &[String], allowed: &[u32]) -> Result<(EalArgs, usize)> {
        let mut reader = Reader { out: EalArgs::default(), cores_from: None, quiet: None, loud: None, allowed };
        let mut at = args.len().min(1);
        while at < args.len() {
            let arg = args[at].as_str();
            if arg == "--" {
                at += 1;
                break;
            }
            if !arg.starts_with('-') || arg == "-" {
                break;
            }
            let (opt, name, glued) = split(arg)?;
            at += 1;
            let next = args.get(at).map(String::as_str);
            let value = match (opt.arity, glued, next) {
                (Arity::Never, Some(v), _) => return invalid!("{name} takes no value, found '{}'", shown(v)),
                (Arity::Must, None, None) => return invalid!("{name} needs a value, and nothing follows it"),
                (Arity::Must, None, Some(v)) if v.starts_with('-') && v.len() > 1 => {
                    return invalid!("{name} needs a value, and '{}' follows it", shown(v));
                }
                (Arity::Must, None, Some(v)) => {
                    at += 1;
                    Some(v)
                }
                (Arity::Word, None, Some(v)) if !v.starts_with('-') => {
                    at += 1;
                    Some(v)
                }
                (_, glued, _) => glued,
            };
            if opt.arity == Arity::Must && value == Some("") {
                return invalid!("{name} needs a value, and it is empty");
            }
            reader.take(opt.id, name, value)?;
            if reader.out.help {
                break;
            }
        }
        Ok((reader.finish()?, at))
    }

    /// The one warning about [`EalArgs::ignored`], if there is anything to say.
    pub fn ignored_text(&self) -> Option<String> {
        (!self.ignored.is_empty()).then(|| format!("without effect here: {}", self.ignored.join(", ")))
    }

    /// The text for `--help`: one line an option.
    pub fn usage() -> String {
        super::options::usage()
    }
}

/// The option, its name as typed, and the value that is part of the same argument.
fn split(arg: &str) -> Result<(&'static Opt, &'static str, Option<&str>)> {
    let (name, glued) = if arg.starts_with("--") {
        arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)))
    } else {
        // `-` and one character; `-l0` and, for those who expect it, `-l=0`.
        let len = 1 + arg[1..].chars().next().map_or(0, char::len_utf8);
        let glued = &arg[len..];
        (&arg[..len], (!glued.is_empty()).then(|| glued.strip_prefix('=').unwrap_or(glued)))
    };
    // `-vdev=…` is a long option with a dash too few, not `-v` with a value.
    let with_dash = format!("-{}", arg.split('=').next().unwrap_or(arg));
    let long = find(&with_dash).map(|(_, long)| long);
    if let (Some((opt, name)), None) = (find(name), long) {
        return Ok((opt, name, glued));
    }
    let name = if long.is_some() { &with_dash[1..] } else { name };
    let known: Vec<&str> = OPTIONS.iter().flat_map(|o| o.names).copied().collect();
    let near = long.or_else(|| nearest(name, &known));
    let hint = near.map(|n| format!(", did you mean '{n}'?")).unwrap_or_default();
    invalid!("unknown EAL option '{}'{hint} (--help lists them; options of the program stand after --)", shown(name))
}

struct Reader<'a> {
    out: EalArgs,
    /// Which option gave the cores.
    cores_from: Option<&'static str>,
    /// The level given without a pattern, and the highest given with one.
    quiet: Option<Level>,
    loud: Option<Level>,
    allowed: &'a [u32],
}

impl Reader<'_> {
    fn take(&mut self, id: Id, name: &'static str, value: Option<&str>) -> Result<()> {
        // Those that need a value have one: parse_on saw to it.
        let v = value.unwrap_or("");
        let out = &mut self.out;
        match id {
            Id::List | Id::Lcores => self.cores(name, parse_list(name, v)?)?,
            Id::Mask => self.cores(name, parse_mask(name, v)?)?,
            Id::MainLcore => out.main_lcore = Some(number(name, v, 0, u64::from(MAX_LCORE) - 1)? as u32),
            Id::Vdev => self.vdev(v)?,
            Id::Allow => self.allow(name, v)?,
            Id::Block => push_new(&mut out.block, pci_address(name, v)?),
            Id::NoPci => out.no_pci = true,
            Id::NoHuge => out.no_huge = true,
            Id::Memory => out.memory_mb = Some(number(name, v, 1, MAX_MEMORY_MB)?),
            Id::InMemory => out.in_memory = true,
            Id::FilePrefix => {
                check_name(v).map_err(|e| e.context(name))?;
                out.file_prefix = Some(v.into());
            }
            Id::LogLevel => self.log_level(name, v)?,
            Id::Wrap => out.wraps.push(wrap(name, v)?),
            Id::DebugPools => out.debug_pools = true,
            Id::Help => out.help = true,
            Id::Version => out.version = true,
            Id::ProcType => match v {
                "primary" | "auto" => out.ignored.push(format!("{name} {v}")),
                "secondary" => {
                    return fail!(
                        NOTSUP,
                        "{name} secondary: several processes on one memory are not supported; \
                         connect threads of one process with net_ring, processes with net_tap"
                    );
                }
                _ => return invalid!("{name} '{}' is none of primary, auto", shown(v)),
            },
            Id::Ignored => out.ignored.push(value.map_or(name.into(), |v| format!("{name} {}", shown(v)))),
        }
        Ok(())
    }

    fn cores(&mut self, name: &'static str, specs: Vec<LcoreSpec>) -> Result<()> {
        if let Some(first) = self.cores_from {
            return invalid!("{name}: the cores are given already by {first}; one of -l, -c, --lcores, once");
        }
        check_allowed(name, &specs, self.allowed)?;
        self.cores_from = Some(name);
        self.out.lcores = Some(specs);
        Ok(())
    }

    fn vdev(&mut self, v: &str) -> Result<()> {
        let dev = DevArgs::parse(v).map_err(|e| e.context("--vdev"))?;
        if self.out.vdevs.iter().any(|d| d.name == dev.name) {
            return fail!(EXIST, "--vdev {}: there is a device of this name already", dev.name);
        }
        self.out.vdevs.push(dev);
        Ok(())
    }

    fn allow(&mut self, name: &str, v: &str) -> Result<()> {
        let (address, args) = v.split_once(',').map_or((v, None), |(a, args)| (a, Some(args)));
        let address = pci_address(name, address)?;
        if let Some(args) = args {
            if self.out.pci_args.iter().any(|d| d.name == address) {
                return fail!(EXIST, "{name} {address}: arguments of this device are given already");
            }
            self.out.pci_args.push(DevArgs::of_bus_device(&address, args).map_err(|e| e.context(name))?);
        }
        push_new(&mut self.out.allow, address);
        Ok(())
    }

    fn log_level(&mut self, name: &str, v: &str) -> Result<()> {
        let (pattern, level) = v.rsplit_once([':', ',']).map_or((None, v), |(p, l)| (Some(p), l));
        let Some(level) = parse_level(level) else {
            return invalid!(
                "{name} '{}': '{}' is no level (1-8, or {})",
                shown(v),
                shown(level),
                LEVELS.map(|(l, _)| l).join(", ")
            );
        };
        match pattern {
            None | Some("*" | ".*") => self.quiet = Some(level),
            Some("") => return invalid!("{name} '{}': no pattern before the level", shown(v)),
            Some(p) => {
                self.loud = self.loud.max(Some(level));
                self.out.ignored.push(format!("the pattern of {name} {} (levels hold for all)", shown(p)));
            }
        }
        Ok(())
    }

    /// What can be checked only when all options are known.
    fn finish(self) -> Result<EalArgs> {
        let mut out = self.out;
        out.log_level = match self.loud {
            Some(loud) if loud > self.quiet.unwrap_or(Level::Info) => Some(loud),
            _ => self.quiet,
        };
        if out.help {
            return Ok(out);
        }
        if let (Some(a), Some(b)) = (out.allow.first(), out.block.first()) {
            return invalid!("-a {a} and -b {b} exclude each other: allow some devices, or block some");
        }
        match (out.main_lcore, &out.lcores) {
            (Some(main), Some(specs)) if !specs.iter().any(|s| s.lcore == main) => {
                let list: Vec<u32> = specs.iter().map(|s| s.lcore).collect();
                invalid!("--main-lcore {main} is not among the lcores {}", format_list(&list))
            }
            (Some(main), None) => {
                check_allowed("--main-lcore", &[LcoreSpec { lcore: main, cpus: vec![main] }], self.allowed)?;
                Ok(out)
            }
            _ => Ok(out),
        }
    }
}

/// DPDK's levels 1 to 8, and ours.
const LEVELS: [(&str, Level); 8] = [
    ("emergency", Level::Error),
    ("alert", Level::Error),
    ("critical", Level::Error),
    ("error", Level::Error),
    ("warning", Level::Warn),
    ("notice", Level::Info),
    ("info", Level::Info),
    ("debug", Level::Debug),
];

fn parse_level(s: &str) -> Option<Level> {
    match s.as_bytes() {
        [n @ b'1'..=b'8'] => Some(LEVELS[usize::from(n - b'1')].1),
        _ => LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(s)).map(|(_, level)| *level),
    }
}

fn wrap(name: &str, v: &str) -> Result<(String, String)> {
    match v.split_once(',') {
        Some((device, spec)) if !device.is_empty() && !spec.is_empty() => {
            let device = if device.contains(':') { pci_address(name, device)? } else { device.into() };
            if !device.contains(':') {
                check_name(&device).map_err(|e| e.context(name))?;
            }
            Ok((device, spec.into()))
        }
        _ => invalid!("{name} '{}' is not NAME,SPEC (a device, a comma, what to put around it)", shown(v)),
    }
}

/// `[DDDD:]BB:DD.F`, in hexadecimal, as `dddd:bb:dd.f`.
fn pci_address(option: &str, s: &str) -> Result<String> {
    let bad = || {
        Error::invalid(format!("{option} '{}' is no PCI address ([DDDD:]BB:DD.F, for example 0000:03:00.1)", shown(s)))
    };
    let hex = |s: &str, len: std::ops::RangeInclusive<usize>| match len.contains(&s.len()) {
        true if s.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(s, 16).ok(),
        _ => None,
    };
    let (path, function) = s.split_once('.').ok_or_else(bad)?;
    let mut parts = path.rsplitn(3, ':');
    let device = parts.next().and_then(|p| hex(p, 1..=2)).ok_or_else(bad)?;
    let bus = parts.next().and_then(|p| hex(p, 1..=2)).ok_or_else(bad)?;
    // Eight digits: Linux numbers domains of VMD and Hyper-V above 0xffff.
    let domain = parts.next().map_or(Some(0), |p| hex(p, 1..=8)).ok_or_else(bad)?;
    let function = hex(function, 1..=1).ok_or_else(bad)?;
    if device > 0x1f {
        return invalid!("{option} '{s}': device {device:#x}, limit 0x1f");
    }
    if function > 7 {
        return invalid!("{option} '{s}': function {function:#x}, limit 7");
    }
    Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

fn number(option: &str, v: &str, min: u64, max: u64) -> Result<u64> {
    if !v.bytes().all(|b| b.is_ascii_digit()) {
        return invalid!("{option} '{}' is no number ({min} to {max})", shown(v));
    }
    match v.parse() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => invalid!("{option} {} is outside {min} to {max}", shown(v)),
    }
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// A user's text for an error: cut where it is long.
fn shown(s: &str) -> String {
    s.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests;
