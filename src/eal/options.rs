//! The table of options: names, arity, what help says, and those of DPDK that mean nothing here.

use super::options::Arity::{AfterEqual, Must, Never, Word};

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Never,
    /// `--opt VALUE` or `--opt=VALUE`
    Must,
    /// `--opt` or `--opt=VALUE`
    AfterEqual,
    /// As AfterEqual, and a next argument without `-` in front is taken too.
    Word,
}

/// What the parser does with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    List,
    Mask,
    Lcores,
    MainLcore,
    Vdev,
    Allow,
    Block,
    NoPci,
    NoHuge,
    Memory,
    InMemory,
    FilePrefix,
    LogLevel,
    Wrap,
    DebugPools,
    Help,
    Version,
    ProcType,
    /// Accepted, and named in the one warning.
    Ignored,
}

#[derive(Debug)]
pub struct Opt {
    pub id: Id,
    pub arity: Arity,
    /// The first is the one that errors and help name; the others are older names.
    pub names: &'static [&'static str],
    /// For help; empty for what is ignored.
    pub value: &'static str,
    pub help: &'static str,
}

const fn opt(id: Id, arity: Arity, names: &'static [&'static str], value: &'static str, help: &'static str) -> Opt {
    Opt { id, arity, names, value, help }
}

const fn ignored(arity: Arity, names: &'static [&'static str]) -> Opt {
    opt(Id::Ignored, arity, names, "", "")
}

pub static OPTIONS: &[Opt] = &[
    opt(Id::List, Must, &["-l"], "LIST", "cores to run on: 0,2-4"),
    opt(Id::Mask, Must, &["-c"], "MASK", "cores to run on, as a hexadecimal mask: 0x3"),
    opt(Id::Lcores, Must, &["--lcores"], "MAP", "lcores and the CPUs of each: 0@1,(1-2)@3"),
    opt(Id::MainLcore, Must, &["--main-lcore", "--master-lcore"], "N", "lcore of the calling thread (default: lowest)"),
    opt(Id::Vdev, Must, &["--vdev"], "NAME[,KEY=VALUE]", "add a virtual device; may be repeated"),
    opt(
        Id::Allow,
        Must,
        &["-a", "--allow", "-w", "--pci-whitelist"],
        "ADDR",
        "use only these PCI devices; may be repeated",
    ),
    opt(Id::Block, Must, &["-b", "--block", "--pci-blacklist"], "ADDR", "leave this PCI device alone; may be repeated"),
    opt(Id::NoPci, Never, &["--no-pci"], "", "look for no PCI devices"),
    opt(Id::NoHuge, Never, &["--no-huge"], "", "ordinary pages in place of hugepages"),
    opt(Id::Memory, Must, &["-m"], "MB", "packet memory, in MiB"),
    opt(Id::InMemory, Never, &["--in-memory"], "", "leave nothing in the file system (this is always so)"),
    opt(Id::FilePrefix, Must, &["--file-prefix"], "NAME", "prefix of names that other processes see"),
    opt(Id::LogLevel, Must, &["--log-level"], "LEVEL", "1-8, a name such as debug, or PATTERN:LEVEL"),
    opt(Id::Wrap, Must, &["--wrap"], "NAME,SPEC", "put a tracing or fault-injecting port around a device"),
    opt(Id::DebugPools, Never, &["--debug-pools"], "", "keep owner and last operation of each packet"),
    opt(Id::Help, Never, &["-h", "--help"], "", "print this"),
    opt(Id::Version, Never, &["-v", "--version"], "", "print the version"),
    // The others that tutorials for DPDK type, with the arity that they have there.
    opt(Id::ProcType, Must, &["--proc-type"], "", ""),
    ignored(Must, &["-n"]),
    ignored(Must, &["-r"]),
    ignored(Must, &["-d"]),
    ignored(Must, &["-s"]),
    ignored(Must, &["-S"]),
    ignored(Must, &["--socket-mem", "--numa-mem"]),
    ignored(Must, &["--socket-limit", "--numa-limit"]),
    ignored(Must, &["--huge-dir"]),
    ignored(AfterEqual, &["--huge-unlink"]),
    ignored(AfterEqual, &["--huge-worker-stack"]),
    ignored(Must, &["--iova-mode"]),
    ignored(Must, &["--base-virtaddr"]),
    ignored(Never, &["--legacy-mem"]),
    ignored(Never, &["--single-file-segments"]),
    ignored(Never, &["--match-allocations"]),
    ignored(Must, &["--mbuf-pool-ops-name"]),
    ignored(Never, &["--telemetry"]),
    ignored(Never, &["--no-telemetry"]),
    ignored(Must, &["--vfio-intr"]),
    ignored(Must, &["--vfio-vf-token"]),
    ignored(Never, &["--create-uio-dev"]),
    ignored(Never, &["--no-hpet"]),
    ignored(Never, &["--no-shconf"]),
    ignored(Never, &["--vmware-tsc-map"]),
    ignored(Must, &["--force-max-simd-bitwidth"]),
    ignored(Word, &["--syslog"]),
    ignored(AfterEqual, &["--log-timestamp"]),
    ignored(AfterEqual, &["--log-color"]),
    ignored(Must, &["--trace"]),
    ignored(Must, &["--trace-dir"]),
    ignored(Must, &["--trace-bufsz"]),
    ignored(Must, &["--trace-mode"]),
];

/// The option of this exact name, and the name as the table spells it.
pub fn find(name: &str) -> Option<(&'static Opt, &'static str)> {
    OPTIONS.iter().find_map(|o| o.names.iter().find(|n| **n == name).map(|n| (o, *n)))
}

/// Help: one line an option.
pub fn usage() -> String {
    let mut out = String::from("EAL options (those of the program stand after --):\n");
    let (shown, ignored): (Vec<_>, Vec<_>) = OPTIONS.iter().partition(|o| !o.help.is_empty());
    for o in shown {
        let head = format!("{} {}", o.names.join(", "), o.value);
        out += &format!("  {head:<46} {}\n", o.help);
    }
    out += "Accepted for DPDK's sake, without effect:\n";
    for o in ignored {
        let value = match o.arity {
            Never => "",
            Must => " VALUE",
            AfterEqual | Word => "[=VALUE]",
        };
        let why =
            if o.id == Id::ProcType { "primary or auto; several processes are not supported" } else { "no effect" };
        let head = format!("{}{value}", o.names.join(", "));
        out += &format!("  {head:<46} {why}\n");
    }
    out
}
