//! `net_tap` in a namespace of this process: the far side is a packet socket on the interface, on a thread of its own.

use crate::bench;
use crate::rigs::{Ask, Far, Rig, probe};
use crate::support::tools::need;
use burstline::base::{Error, Result};
use burstline::port::Port;
use burstline::sock::packet::{PacketOptions, PacketSocket};
use burstline::sock::stats::StatsReader;
use burstline::sock::{Ctl, NetNs};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Frames that wait in the kernel at most: far below its queue, so that the far side loses none.
const OUTSTANDING: u64 = 200;

pub struct TapRig;

/// Nameless, so that it ends with the process.
fn namespace() -> &'static NetNs {
    static NS: OnceLock<NetNs> = OnceLock::new();
    NS.get_or_init(|| {
        let ns = NetNs::create().unwrap();
        // Not a frame that no test sent.
        let quiet = ns.run_in(|| {
            for of in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6");
                std::fs::write(&path, "1").map_err(|e| Error::from_io(&e, &path))?;
            }
            Ok(())
        });
        quiet.unwrap();
        ns
    })
}

impl Rig for TapRig {
    fn name(&self) -> &'static str {
        "net_tap"
    }
    fn here(&self) -> bool {
        need("root") && need("netns") && need("/dev/net/tun")
    }
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>) {
        let args = if ask.len > 1500 { format!(",mtu={}", ask.len) } else { String::new() };
        let open = || -> Result<(Port, PacketSocket)> {
            let port = probe("net_tap", &args);
            let name = port.info().device.if_name.expect("an interface");
            let o = PacketOptions { qdisc_bypass: true, rcvbuf: Some(8 << 20), ..PacketOptions::default() };
            Ok((port, PacketSocket::open(Ctl::new()?.index_of(&name)?, &o)?))
        };
        let (port, socket) = namespace().run_in(open).unwrap();
        let index = socket.ifindex();
        let stats = StatsReader::in_ns(namespace()).unwrap();
        let shared = Arc::new(Shared {
            ask: ask.clone(),
            port: port.clone(),
            socket,
            offer: AtomicBool::new(false),
            end: AtomicBool::new(false),
            out: Mutex::new(Vec::new()),
        });
        let thread = {
            let s = shared.clone();
            std::thread::spawn(move || s.run())
        };
        (port, Box::new(TapFar { shared, thread: Some(thread), stats, index }))
    }
}

struct Shared {
    ask: Ask,
    port: Port,
    socket: PacketSocket,
    offer: AtomicBool,
    end: AtomicBool,
    out: Mutex<Vec<Vec<u8>>>,
}

struct TapFar {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    stats: StatsReader,
    index: u32,
}

impl Shared {
    fn run(&self) {
        let mut buf = vec![0; 70_000];
        let mut offered = 0u64;
        while !self.end.load(Acquire) {
            let mut idle = true;
            while let Ok((start, r)) = self.socket.recv_frame(&mut buf) {
                self.out.lock().unwrap().push(buf[start..start + r.len].to_vec());
                idle = false;
            }
            if self.offer.load(Acquire) && offered < self.ask.offer as u64 {
                let s = self.port.stats();
                let room = (s.ipackets + s.imissed + s.ierrors + OUTSTANDING).saturating_sub(offered);
                for _ in 0..room.min(self.ask.offer as u64 - offered) {
                    // A stopped port's interface is down: later.
                    if self.socket.send(&[IoSlice::new(&bench::frame(offered as u32, self.ask.len))]).is_err() {
                        break;
                    }
                    offered += 1;
                    idle = false;
                }
            }
            if idle {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

impl Far for TapFar {
    fn offer(&mut self) {
        self.shared.offer.store(true, Release);
    }
    /// What the interface sent and what it dropped, as its namespace counts.
    fn offered(&mut self) -> Option<u64> {
        let s = self.stats.get(self.index).ok()?;
        Some(s.tx_packets + s.tx_dropped)
    }
    fn sent(&mut self) -> Option<Vec<Vec<u8>>> {
        Some(std::mem::take(&mut *self.shared.out.lock().unwrap()))
    }
}

impl Drop for TapFar {
    fn drop(&mut self) {
        self.shared.end.store(true, Release);
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}
