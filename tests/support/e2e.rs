//! l2fwd from end to end: capture files as other tools read them, and the books that `--stats-json` writes.

use super::run::{Output, TempDir, run, run_args};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Generous: the machine may be shared.
pub const LIMIT: Duration = Duration::from_secs(120);

/// `l2fwd` run to its end in a directory, which its relative paths and temporary files belong to.
#[track_caller]
pub fn l2fwd(line: &str, dir: &TempDir) -> Output {
    run(&mut l2fwd_command(line, dir), LIMIT)
}

pub fn l2fwd_command(line: &str, dir: &TempDir) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_l2fwd"));
    c.args(line.split_whitespace()).env("TMPDIR", dir.path()).current_dir(dir.path());
    c
}

/// Names in a directory, sorted.
pub fn entries(dir: &Path) -> Vec<String> {
    let entry = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().to_string_lossy().into_owned();
    let mut all: Vec<String> = std::fs::read_dir(dir).unwrap().map(entry).collect();
    all.sort();
    all
}

pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/demo.pcap")
}

/// Nanoseconds of the wall clock.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

// ---- what was written by `--stats-json`

/// The object that l2fwd writes at exit.
pub struct Books(pub Value);

impl Books {
    #[track_caller]
    pub fn read(path: &Path) -> Books {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Books::parse(&text)
    }

    #[track_caller]
    pub fn parse(text: &str) -> Books {
        Books(serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in\n{text}")))
    }

    #[track_caller]
    pub fn n(&self, port: usize, key: &str) -> u64 {
        self.0["ports"][port][key].as_u64().unwrap_or_else(|| panic!("no number {key} of port {port} in {}", self.0))
    }

    pub fn n_ports(&self) -> usize {
        self.0["ports"].as_array().map_or(0, Vec::len)
    }

    pub fn sum(&self, key: &str) -> u64 {
        (0..self.n_ports()).map(|p| self.n(p, key)).sum()
    }

    /// How often a port's tail was rung, all causes together.
    pub fn rings(&self, port: usize) -> u64 {
        let flush = self.0["ports"][port]["tx_flush"].as_object().unwrap();
        flush.values().map(|n| n.as_u64().unwrap()).sum()
    }

    /// What holds after every clean exit: each packet that came in went out or was counted, and every buffer is back.
    #[track_caller]
    pub fn balance(&self) -> &Books {
        assert_eq!(self.sum("ipackets"), self.sum("opackets") + self.sum("oerrors"), "in = out + drops: {}", self.0);
        if self.sum("oerrors") == 0 {
            assert_eq!(self.sum("ibytes"), self.sum("obytes"), "{}", self.0);
        }
        self.pool_is_whole();
        for port in 0..self.n_ports() {
            let staged = self.0["ports"][port]["driver"] != "net_tap" && self.0["ports"][port]["driver"] != "net_null";
            assert_eq!(self.rings(port) > 0, staged && self.n(port, "opackets") > 0, "port {port}: {}", self.0);
        }
        self
    }

    #[track_caller]
    pub fn pool_is_whole(&self) {
        let pools = self.0["pools"].as_array().unwrap();
        assert!(!pools.is_empty());
        for pool in pools {
            assert!(pool["size"].as_u64().unwrap() > 0 && pool["available"] == pool["size"], "{pool}");
        }
    }
}

// ---- capture files

/// One frame of a capture: its stamp in nanoseconds, its length on the wire, and the bytes that were captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    pub ns: u64,
    pub len: u32,
    pub bytes: Vec<u8>,
}

/// The frames of a capture of any kind, read by Wireshark's library (editcap makes the simplest kind of file of it).
#[track_caller]
pub fn frames(capture: &Path, dir: &TempDir) -> Vec<Frame> {
    let simple = dir.join(format!("frames-{}", super::run::unique()));
    let args = ["-F", "nsecpcap", capture.to_str().unwrap(), simple.to_str().unwrap()];
    run_args("editcap", &args, LIMIT).expect_ok();
    let bytes = std::fs::read(&simple).unwrap();
    std::fs::remove_file(&simple).unwrap();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(u32_at(0), 0xa1b2_3c4d, "editcap writes nanoseconds in this machine's order");
    let (mut at, mut all) = (24, Vec::new());
    while at < bytes.len() {
        let n = u32_at(at + 8) as usize;
        all.push(Frame {
            ns: u64::from(u32_at(at)) * 1_000_000_000 + u64::from(u32_at(at + 4)),
            len: u32_at(at + 12),
            bytes: bytes[at + 16..at + 16 + n].to_vec(),
        });
        at += 16 + n;
    }
    all
}

/// What tshark calls these fields of each frame.
#[track_caller]
pub fn tshark(capture: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut args = vec!["-n", "-r", capture.to_str().unwrap(), "-T", "fields"];
    for field in fields {
        args.extend(["-e", field]);
    }
    let out = run_args("tshark", &args, LIMIT).expect_ok();
    out.stdout.lines().map(|l| l.split('\t').map(str::to_string).collect()).collect()
}

/// Frames in a capture that may still be written.
pub fn tshark_quietly(capture: &Path) -> Option<usize> {
    let out = run_args("tshark", &["-n", "-r", capture.to_str()?, "-T", "fields", "-e", "frame.number"], LIMIT);
    out.ok().then(|| out.stdout.lines().count())
}

pub fn editcap(args: &[&str], from: &Path, to: &Path) {
    let all: Vec<&str> = args.iter().copied().chain([from.to_str().unwrap(), to.to_str().unwrap()]).collect();
    run_args("editcap", &all, LIMIT).expect_ok();
}

/// A classic capture, built by hand. `big`: as a big-endian machine writes it.
pub struct Classic {
    pub bytes: Vec<u8>,
    big: bool,
}

impl Classic {
    pub const MICROS: u32 = 0xa1b2_c3d4;
    pub const NANOS: u32 = 0xa1b2_3c4d;

    pub fn new(magic: u32, snap_len: u32, link_type: u32, big: bool) -> Classic {
        let mut c = Classic { bytes: Vec::new(), big };
        c.u32(magic);
        // Version 2.4: two half words.
        c.u32(if big { 0x0002_0004 } else { 0x0004_0002 });
        for field in [0, 0, snap_len, link_type] {
            c.u32(field);
        }
        c
    }

    fn u32(&mut self, n: u32) {
        self.bytes.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
    }

    pub fn record(&mut self, sec: u32, frac: u32, bytes: &[u8], len: u32) -> &mut Classic {
        for field in [sec, frac, bytes.len() as u32, len] {
            self.u32(field);
        }
        self.bytes.extend(bytes);
        self
    }
}

/// A frame of the experimental EtherType, of which each byte tells where it belongs.
pub fn frame(i: usize, len: usize) -> Vec<u8> {
    let mut f: Vec<u8> = (0..len).map(|b| (b * 7 + i * 13) as u8).collect();
    let head = [0x02, 0xaa, 0, 0, 0, 1, 0x02, 0xbb, 0, 0, 0, 2, 0x88, 0xb5];
    let n = head.len().min(len);
    f[..n].copy_from_slice(&head[..n]);
    f
}
