//! `net_pcap` on files: what arrives is in one capture from the start, what leaves is read from the other.

use crate::bench::frame;
use crate::rigs::{Ask, Far, Rig, probe};
use crate::support::run::TempDir;
use burstline::pmd::pcap::{Next, Reader, Writer};
use burstline::port::Port;
use std::path::PathBuf;

pub struct PcapRig;

impl Rig for PcapRig {
    fn name(&self) -> &'static str {
        "net_pcap"
    }
    fn starts_over(&self) -> bool {
        true
    }
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>) {
        let dir = TempDir::new("burstline-rig");
        let mut args = String::new();
        for q in 0..ask.n_rx {
            let path = dir.join(format!("in{q}.pcap"));
            let mut w = Writer::create(&path, 0).unwrap();
            for i in 0..if q == 0 { ask.offer } else { 0 } {
                w.write(i as u64, &[&frame(i as u32, ask.len)]).unwrap();
            }
            w.flush().unwrap();
            args += &format!(",rx_pcap={}", path.display());
        }
        let out: Vec<_> = (0..ask.n_tx).map(|q| dir.join(format!("out{q}.pcap"))).collect();
        out.iter().for_each(|path| args += &format!(",tx_pcap={}", path.display()));
        let port = probe("net_pcap", &args);
        let out = out.into_iter().map(|path| (path, None)).collect();
        (port, Box::new(PcapFar { _dir: dir, out, offered: ask.offer as u64 }))
    }
}

struct PcapFar {
    _dir: TempDir,
    /// Opened when something is looked for: the file's header is written at the port's first start.
    out: Vec<(PathBuf, Option<Reader>)>,
    offered: u64,
}

impl Far for PcapFar {
    fn offer(&mut self) {}
    fn offered(&mut self) -> Option<u64> {
        Some(self.offered)
    }
    fn sent(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        for (path, r) in &mut self.out {
            if r.is_none() && std::fs::metadata(&*path).is_ok_and(|m| m.len() != 0) {
                *r = Some(Reader::open(path).unwrap());
            }
            let Some(r) = r else { continue };
            // Only whole records are ever in the file; its end is looked at again at the next call.
            while let Next::Record(f) = r.next().unwrap() {
                all.push(f.data.to_vec());
            }
        }
        Some(all)
    }
}
