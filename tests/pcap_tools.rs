//! The capture codec against the tools that people use: what we write, tshark reads; what editcap writes, we read.

use std::path::{Path, PathBuf};
use std::process::Command;

use burstline::pmd::pcap::{Encoder, Format, Next, Reader, Writer};

/// (nanoseconds, captured length, length on the wire)
type Line = (u64, usize, u32);

/// True where all `tools` can be run; says what is missed otherwise.
fn have(tools: &[&str]) -> bool {
    for tool in tools {
        if Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success()) {
            continue;
        }
        assert!(std::env::var("BURSTLINE_REQUIRE_ALL").as_deref() != Ok("1"), "{tool} is required and missing");
        println!("skipped: {tool} is not installed");
        return false;
    }
    true
}

/// A directory of its own, gone when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let d = std::env::temp_dir().join(format!("burstline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&d).unwrap();
        Dir(d)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(cmd: &mut Command) -> String {
    let out = cmd.output().unwrap();
    assert!(out.status.success(), "{cmd:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn tshark(path: &Path) -> Vec<Line> {
    let mut cmd = Command::new("tshark");
    cmd.args(["-n", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.len", "-r"])
        .arg(path);
    run(&mut cmd)
        .lines()
        .map(|line| {
            let mut f = line.split('\t');
            let (sec, frac) = f.next().unwrap().split_once('.').unwrap();
            assert_eq!(frac.len(), 9, "{line}");
            let ns = sec.parse::<u64>().unwrap() * 1_000_000_000 + frac.parse::<u64>().unwrap();
            (ns, f.next().unwrap().parse().unwrap(), f.next().unwrap().parse().unwrap())
        })
        .collect()
}

fn ours(path: &Path) -> (Vec<Line>, Vec<Vec<u8>>) {
    let mut r = Reader::open(path).unwrap();
    let (mut lines, mut data) = (Vec::new(), Vec::new());
    loop {
        match r.next().unwrap() {
            Next::Record(p) => {
                lines.push((p.ts_ns, p.data.len(), p.orig_len));
                data.push(p.data.to_vec());
            }
            Next::Eof => return (lines, data),
            end => panic!("{end:?}"),
        }
    }
}

fn frames() -> Vec<(u64, Vec<u8>)> {
    (0..200u64)
        .map(|i| {
            let len = [60, 61, 62, 63, 64, 590, 1514, 9000][i as usize % 8];
            let mut f: Vec<u8> = (0..len).map(|b| (b as u64 * 7 + i) as u8).collect();
            f[12..14].copy_from_slice(&[0x88, 0xb5]);
            (1_700_000_000_999_999_000 + i * 1_001, f)
        })
        .collect()
}

fn write(path: &Path, encoder: Encoder) {
    let mut w = Writer::with(path, encoder).unwrap();
    for (ts, f) in frames() {
        let (a, b) = f.split_at(f.len() / 3);
        w.write(ts, &[a, b]).unwrap();
    }
    w.flush().unwrap();
}

#[test]
fn tshark_reads_what_we_write() {
    if !have(&["tshark"]) {
        return;
    }
    let dir = Dir::new("pcap-write");
    for (name, format, nanos, snap) in [
        ("n.pcap", Format::Pcap, true, 0),
        ("u.pcap", Format::Pcap, false, 0),
        ("g.pcapng", Format::PcapNg, true, 0),
        ("s.pcapng", Format::PcapNg, true, 61),
        ("s.pcap", Format::Pcap, true, 61),
    ] {
        let path = dir.0.join(name);
        write(&path, Encoder::new(format, nanos, snap).unwrap());
        let unit = if nanos { 1 } else { 1000 };
        let cut = if snap == 0 { usize::MAX } else { snap as usize };
        let want: Vec<Line> =
            frames().iter().map(|(ts, f)| (ts / unit * unit, f.len().min(cut), f.len() as u32)).collect();
        assert_eq!(tshark(&path), want, "{name}");
        assert_eq!(ours(&path).0, want, "{name}");
    }
}

#[test]
fn we_read_what_editcap_and_mergecap_write() {
    if !have(&["tshark", "editcap", "mergecap"]) {
        return;
    }
    let dir = Dir::new("pcap-read");
    let source = dir.0.join("source.pcap");
    write(&source, Encoder::new(Format::Pcap, true, 0).unwrap());
    let data: Vec<Vec<u8>> = frames().into_iter().map(|(_, f)| f).collect();
    for (kind, format, nanos) in
        [("pcap", Format::Pcap, false), ("nsecpcap", Format::Pcap, true), ("pcapng", Format::PcapNg, true)]
    {
        let path = dir.0.join(kind);
        run(Command::new("editcap").args(["-F", kind]).arg(&source).arg(&path));
        let info = Reader::open(&path).unwrap().info();
        assert_eq!((info.format, info.nanos), (format, nanos));
        let (lines, bytes) = ours(&path);
        assert_eq!(lines, tshark(&path), "{kind}");
        assert!(bytes == data, "{kind}");
        // The same file as the other kind of machine would have written it.
        if format == Format::Pcap {
            let swapped = dir.0.join(format!("{kind}-swapped"));
            std::fs::write(&swapped, swap_classic(&std::fs::read(&path).unwrap())).unwrap();
            assert_ne!(Reader::open(&swapped).unwrap().info().big_endian, info.big_endian);
            assert_eq!(tshark(&swapped), lines);
            assert!(ours(&swapped) == (lines, bytes));
        }
    }
    // Two interfaces with resolutions of their own, comments, and a snap length.
    let merged = dir.0.join("merged.pcapng");
    run(Command::new("mergecap")
        .args(["-I", "none", "-w"])
        .arg(&merged)
        .arg(dir.0.join("pcap"))
        .arg(dir.0.join("pcapng")));
    assert_eq!(ours(&merged).0, tshark(&merged));
    assert_eq!(ours(&merged).0.len(), 400);
    let comments = dir.0.join("comments.pcapng");
    run(Command::new("editcap").args(["-s", "70", "-a", "3:look here"]).arg(&merged).arg(&comments));
    assert_eq!(ours(&comments).0, tshark(&comments));
}

/// A classic capture in the other byte order.
fn swap_classic(file: &[u8]) -> Vec<u8> {
    let mut out = file.to_vec();
    let swap = |b: &mut [u8], fields: &[usize]| {
        let mut at = 0;
        for n in fields {
            b[at..at + n].reverse();
            at += n;
        }
    };
    swap(&mut out, &[4, 2, 2, 4, 4, 4, 4]);
    let mut at = 24;
    while at < out.len() {
        let len = u32::from_ne_bytes(out[at + 8..at + 12].try_into().unwrap()) as usize;
        swap(&mut out[at..], &[4, 4, 4, 4]);
        at += 16 + len;
    }
    out
}
