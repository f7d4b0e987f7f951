//! The control side of `net_pcap`.

use super::args::{Config, KEYS, MAX_QUEUES, RxSource, TxSink};
use super::feed::{FIFO_LIMIT, Feed};
use super::live::{Live, LiveRx, LiveTx, MAX_SEGS};
use super::rx::{Ends, FileRx, NoRx, Parked, parked};
use super::schedule::Schedule;
use super::sink::{Sink, same_file};
use super::tx::{FileTx, NoTx};
use super::{Encoder, MAX_RECORD};
use crate::driver::*;
use crate::sock::Ctl;
use core::sync::atomic::AtomicU32;
use std::path::Path;
use std::sync::Arc;

pub static DRIVER: Driver = Driver {
    name: "net_pcap",
    summary: "capture files (pcap, pcapng) and interfaces: replay, record, and a port without privileges",
    keys: KEYS,
    needs: "files: nothing; interfaces: CAP_NET_RAW",
    doorbell: Doorbell::Syscall,
    probe,
};

enum Rx {
    File(Parked<Feed>),
    Live(Arc<Live>),
}

enum Tx {
    File(Parked<Sink>),
    Live(Arc<Live>),
}

struct Pcap {
    config: Config,
    rx: Vec<Rx>,
    tx: Vec<Tx>,
    ctl: Option<Ctl>,
    /// Some file ends by itself.
    finite: bool,
    scatter: bool,
    running: bool,
    ends: Arc<Ends>,
    events: EventSink,
    mac: [u8; 6],
    /// Frames that the kernel dropped for want of room in a socket's buffer.
    missed: u64,
}

/// What a capture may hold, less an Ethernet header and a tag.
const FILE_MTU: u32 = MAX_RECORD - ETHER_HDR_LEN - VLAN_TAG_LEN;

fn probe(args: &DevArgs) -> Result<Box<dyn Device>> {
    let c = Config::parse(args)?;
    let named = |e: Error| e.context(&c.name);
    // Before anything is created or emptied.
    refuse_same_files(&c)?;
    let ctl = if c.iface().is_some() { Some(Ctl::new().map_err(named)?) } else { None };
    let open = |name: &str, receives, incoming_only| -> Result<Arc<Live>> {
        let Some(ctl) = &ctl else { return fail!(NODEV, "no interface") };
        // Says the link type by name where it is not Ethernet.
        ctl.mac(name)?;
        Ok(Arc::new(Live::open(name, ctl.index_of(name)?, receives, incoming_only)?))
    };
    let mut finite = false;
    let mut rx = Vec::new();
    for s in &c.rx {
        rx.push(match s {
            RxSource::File(path) => {
                let feed = Feed::open(path, c.loops, c.infinite).map_err(named)?;
                finite |= !feed.is_infinite();
                Rx::File(parked(feed))
            }
            RxSource::Iface { name, incoming_only } => Rx::Live(open(name, true, *incoming_only).map_err(named)?),
        });
    }
    let mut tx = Vec::new();
    for (i, s) in c.tx.iter().enumerate() {
        tx.push(match s {
            TxSink::File(path) => {
                let encoder = Encoder::for_path(path, c.snaplen).map_err(named)?;
                Tx::File(parked(Sink::create(path, encoder, FIFO_LIMIT).map_err(named)?))
            }
            TxSink::Iface(name) => match rx.get(i) {
                // One socket for both ways: it does not get back what it sent.
                Some(Rx::Live(l)) if l.name == *name => Tx::Live(l.clone()),
                _ => Tx::Live(open(name, false, true).map_err(named)?),
            },
        });
    }
    let mac = match (c.mac, c.phy_mac, c.iface(), &ctl) {
        (Some(mac), ..) => mac,
        (_, true, Some(name), Some(ctl)) => ctl.mac(name).map_err(named)?,
        _ => local_mac(c.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)),
    };
    let ends = Arc::new(Ends { running: AtomicU32::new(0), sink: EventSink::default() });
    Ok(Box::new(Pcap {
        config: c,
        rx,
        tx,
        ctl,
        finite,
        scatter: false,
        running: false,
        ends,
        events: EventSink::default(),
        mac,
        missed: 0,
    }))
}

/// One regular file twice among the sinks, or as source and sink, would be overwritten while it is in use.
fn refuse_same_files(c: &Config) -> Result<()> {
    let meta = |p: &Path| std::fs::metadata(p).ok();
    let sources: Vec<_> = c.rx.iter().filter_map(|s| if let RxSource::File(p) = s { Some(p) } else { None }).collect();
    let sinks: Vec<_> = c.tx.iter().filter_map(|s| if let TxSink::File(p) = s { Some(p) } else { None }).collect();
    for (i, sink) in sinks.iter().enumerate() {
        let twice = |other: &Path| {
            // By name where there is no file yet.
            match (meta(sink), meta(other)) {
                (Some(a), Some(b)) => same_file(&a, &b),
                (None, None) => *sink == other,
                _ => false,
            }
        };
        if let Some(s) = sources.iter().find(|s| twice(s)) {
            return invalid!(
                "{}: '{}' is rx_pcap and tx_pcap: it would be emptied before it is read",
                c.name,
                s.display()
            );
        }
        if let Some(s) = sinks.iter().take(i).find(|s| twice(s)) {
            return invalid!("{}: '{}' is tx_pcap twice: each queue needs a file of its own", c.name, s.display());
        }
    }
    Ok(())
}

impl Pcap {
    /// The interface that stands for the port, with what reads it.
    fn iface(&self) -> Option<(&Ctl, &str)> {
        Some((self.ctl.as_ref()?, self.config.iface()?))
    }

    fn sends_to_iface(&self) -> bool {
        matches!(self.tx.first(), Some(Tx::Live(_)))
    }

    /// Adds what the kernel dropped since the last call. While the port does not run, nobody misses anything.
    fn take_missed(&mut self) {
        for r in &self.rx {
            if let Rx::Live(l) = r
                && let Ok(s) = l.sock.take_stats()
                && self.running
            {
                self.missed += u64::from(s.drops);
            }
        }
    }
}

impl Device for Pcap {
    fn info(&self) -> DeviceInfo {
        let queues = |n: usize| if n == 0 { MAX_QUEUES } else { n } as u16;
        let live_tx = self.sends_to_iface();
        let mut caps = Caps::RX_SCATTER | Caps::TX_MULTI_SEG;
        caps.set(Caps::FINITE_INPUT, self.finite);
        caps.set(Caps::RX_FD, matches!(self.rx.first(), Some(Rx::Live(_))));
        caps.set(Caps::SET_MTU, self.iface().is_some());
        caps.set(Caps::SET_MAC, self.iface().is_none());
        DeviceInfo {
            max_rx_queues: queues(self.rx.len()),
            max_tx_queues: queues(self.tx.len()),
            desc: (1, 32768, 512),
            tx_max_len: if live_tx { 65535 + ETHER_HDR_LEN + VLAN_TAG_LEN } else { MAX_RECORD },
            tx_max_segs: if live_tx { MAX_SEGS as u16 } else { u16::MAX },
            mtu: (68, if self.iface().is_some() { 65535 } else { FILE_MTU }),
            caps,
            if_name: self.config.iface().map(String::from),
            numa: None,
        }
    }

    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        if let Some(mtu) = c.mtu
            && mtu != self.mtu()
        {
            self.set_mtu(mtu)?;
        }
        self.scatter = c.scatter;
        Ok(())
    }

    fn rx_queue(&mut self, queue: u16, _n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        Ok(match self.rx.get(usize::from(queue)) {
            Some(Rx::File(feed)) => {
                let schedule = Schedule::new(self.config.timing);
                Box::new(FileRx::new(ctx, feed.clone(), schedule, self.scatter, self.ends.clone())?)
            }
            Some(Rx::Live(l)) => Box::new(LiveRx::new(ctx, l.clone(), self.scatter, self.events.clone())),
            None => Box::new(NoRx(ctx)),
        })
    }

    fn tx_queue(&mut self, queue: u16, n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        Ok(match self.tx.get(usize::from(queue)) {
            Some(Tx::File(sink)) => {
                Box::new(FileTx::new(ctx, sink.clone(), n_desc, self.config.keep_ts, self.events.clone())?)
            }
            Some(Tx::Live(l)) => Box::new(LiveTx::new(ctx, l.clone(), n_desc, self.events.clone())),
            None => Box::new(NoTx { ctx }),
        })
    }

    fn rx_held(&self, _n_desc: u32) -> u32 {
        u32::from(matches!(self.rx.first(), Some(Rx::Live(_))))
    }

    fn start(&mut self) -> Result<()> {
        self.running = true;
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.take_missed();
        self.running = false;
        Ok(())
    }

    fn link(&mut self) -> Link {
        // A file is always there.
        let file = Link { up: true, speed: 10_000, full_duplex: true };
        let Some((ctl, name)) = self.iface() else { return file };
        ctl.link(name).map_or(Link::default(), |l| Link {
            up: l.up,
            speed: l.speed_mbps.unwrap_or(0),
            full_duplex: l.full_duplex.unwrap_or(true),
        })
    }

    fn mac(&mut self) -> [u8; 6] {
        self.mac
    }

    fn set_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        if let Some((_, name)) = self.iface() {
            return fail!(NOTSUP, "the address of interface '{name}' is the kernel's: set it there");
        }
        self.mac = mac;
        Ok(())
    }

    fn mtu(&mut self) -> u32 {
        self.iface().map_or(FILE_MTU, |(ctl, name)| ctl.mtu(name).unwrap_or(0))
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<()> {
        match self.iface() {
            Some((ctl, name)) => ctl.set_mtu(name, mtu),
            None => fail!(NOTSUP, "MTU {mtu}: a capture file takes packets of any length up to {MAX_RECORD} bytes"),
        }
    }

    fn stats(&mut self) -> DeviceStats {
        self.take_missed();
        DeviceStats { imissed: self.missed, ..DeviceStats::default() }
    }

    fn set_events(&mut self, sink: EventSink) {
        self.ends = Arc::new(Ends { running: AtomicU32::new(0), sink: sink.clone() });
        self.events = sink;
    }

    fn rx_fd(&self, queue: u16) -> Option<std::os::fd::RawFd> {
        match self.rx.get(usize::from(queue)) {
            Some(Rx::Live(l)) => Some(l.fd()),
            _ => None,
        }
    }
}
