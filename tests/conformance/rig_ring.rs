//! `net_ring` on a cable: the far side is the port at its other end, on a thread of its own.

use crate::bench;
use crate::rigs::{Ask, Far, Rig, probe};
use crate::support::run::unique;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Queues of the far port: no test has more.
const QUEUES: u16 = 8;

pub struct RingRig;

impl Rig for RingRig {
    fn name(&self) -> &'static str {
        "net_ring"
    }
    /// A packet comes by reference, from its sender's pool.
    fn receives_into_its_pool(&self) -> bool {
        false
    }
    fn open(&self, ask: &Ask) -> (Port, Box<dyn Far>) {
        let link = format!(",link=conf{}", unique());
        let (port, peer) = (probe("net_ring", &link), probe("net_ring", &link));
        // Rooms so small that a frame of a test on scattered receive comes as a chain.
        let pool = Pool::new(PoolConfig {
            name: format!("far{}", unique()),
            n: 16_384,
            room: 256 + 256,
            cache: 64,
            ..PoolConfig::default()
        })
        .unwrap();
        peer.configure(&PortConfig { n_rx: QUEUES, n_tx: QUEUES, scatter: true, ..PortConfig::default() }).unwrap();
        (0..QUEUES).for_each(|q| peer.rx_queue_setup(q, 0, &pool).unwrap());
        (0..QUEUES).for_each(|q| peer.tx_queue_setup(q, 0).unwrap());
        peer.start().unwrap();
        let shared = Arc::new(Shared {
            ask: ask.clone(),
            pool,
            port: peer,
            offer: AtomicBool::new(false),
            credit: AtomicUsize::new(usize::MAX),
            end: AtomicBool::new(false),
            out: Mutex::new(Vec::new()),
        });
        let thread = {
            let s = shared.clone();
            std::thread::spawn(move || s.run())
        };
        (port, Box::new(RingFar { shared, thread: Some(thread) }))
    }
}

struct Shared {
    ask: Ask,
    pool: Pool,
    port: Port,
    offer: AtomicBool,
    credit: AtomicUsize,
    end: AtomicBool,
    out: Mutex<Vec<Vec<u8>>>,
}

struct RingFar {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    fn run(&self) {
        let id = self.port.id();
        let mut offered = 0;
        while !self.end.load(Acquire) {
            let mut idle = true;
            for q in 0..QUEUES {
                let credit = self.credit.load(Acquire);
                let got = bench::rx(id, q, credit.min(64));
                if !got.is_empty() {
                    idle = false;
                    if credit != usize::MAX {
                        self.credit.fetch_sub(got.len(), AcqRel);
                    }
                    self.out.lock().unwrap().extend(got.iter().map(|m| m.to_vec()));
                }
            }
            if self.offer.load(Acquire) && offered < self.ask.offer {
                let n = (self.ask.offer - offered).min(64);
                let mut v: Vec<_> =
                    (0..n).map(|i| bench::packet(&self.pool, (offered + i) as u32, self.ask.len)).collect();
                let took = bench::tx(id, 0, &mut v);
                offered += took;
                idle &= took == 0;
            }
            if idle {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

impl Far for RingFar {
    fn offer(&mut self) {
        self.shared.offer.store(true, Release);
    }
    /// What was enqueued.
    fn offered(&mut self) -> Option<u64> {
        Some(self.shared.port.stats().opackets)
    }
    fn sent(&mut self) -> Option<Vec<Vec<u8>>> {
        Some(std::mem::take(&mut *self.shared.out.lock().unwrap()))
    }
    fn credit(&mut self, frames: usize) -> bool {
        self.shared.credit.store(frames, Release);
        true
    }
}

impl Drop for RingFar {
    fn drop(&mut self) {
        self.shared.end.store(true, Release);
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
        let _ = self.shared.port.close();
    }
}
