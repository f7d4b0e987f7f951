//! What the tests of `net_pcap` share.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pmd::pcap::{DRIVER, Next, Reader, Writer};
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig, RxPoller, TxPoller};

static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// A name that no other test of this process has.
pub fn fresh(prefix: &str) -> String {
    format!("{prefix}{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// A directory of its own, gone when dropped.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Dir {
        let d = std::env::temp_dir().join(format!("burstline-pcapdrv-{}-{}", std::process::id(), fresh("")));
        std::fs::create_dir_all(&d).unwrap();
        Dir(d)
    }
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn pool(n: u32) -> Pool {
    let c = PoolConfig { name: fresh("pcap"), n, cache: 32.min(n / 2), ..PoolConfig::default() };
    Pool::new(c).unwrap()
}

pub fn probe(args: &str) -> Result<Port, burstline::driver::Error> {
    let name = fresh("net_pcap");
    let d = DevArgs::parse(&format!("{name},{args}")).unwrap();
    Port::attach(&name, &DRIVER, (DRIVER.probe)(&d)?)
}

pub fn refused(args: &str) -> burstline::driver::Error {
    match probe(args) {
        Ok(_) => panic!("{args} was taken"),
        Err(e) => e,
    }
}

pub fn port_with(args: &str, pool: &Pool, config: &PortConfig, n_desc: u32) -> Port {
    let p = probe(args).unwrap();
    p.configure(config).unwrap();
    for q in 0..config.n_rx {
        p.rx_queue_setup(q, 0, pool).unwrap();
    }
    for q in 0..config.n_tx {
        p.tx_queue_setup(q, n_desc).unwrap();
    }
    p.start().unwrap();
    p
}

pub fn port(args: &str, pool: &Pool) -> Port {
    port_with(args, pool, &PortConfig::default(), 0)
}

/// (stamp, bytes) of each record.
pub fn records(path: &str) -> Vec<(u64, Vec<u8>)> {
    let mut r = Reader::open(Path::new(path)).unwrap();
    let mut all = Vec::new();
    loop {
        match r.next().unwrap() {
            Next::Record(p) => all.push((p.ts_ns, p.data.to_vec())),
            Next::Eof => return all,
            end => panic!("{path}: {end:?}"),
        }
    }
}

pub fn write(path: &str, frames: &[(u64, Vec<u8>)]) {
    let mut w = Writer::create(Path::new(path), 0).unwrap();
    for (ts, f) in frames {
        w.write(*ts, &[f]).unwrap();
    }
    w.flush().unwrap();
}

pub fn frame(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|b| (b * 7 + i) as u8).collect()
}

pub fn frames(n: usize, len: usize) -> Vec<(u64, Vec<u8>)> {
    (0..n).map(|i| (1_700_000_000_000_000_000 + i as u64 * 1000, frame(i, len))).collect()
}

/// Receives until `n` packets came, or nothing for a while.
pub fn receive(rx: &mut RxPoller<'_>, n: usize) -> Vec<Mbuf> {
    let (mut all, mut burst) = (Vec::new(), Burst::<32>::new());
    let mut idle = Instant::now();
    while all.len() < n && idle.elapsed() < Duration::from_millis(500) {
        if rx.burst(&mut burst) != 0 {
            idle = Instant::now();
        }
        while let Some(m) = burst.pop_front() {
            all.push(m);
        }
    }
    all
}

pub fn send(tx: &mut TxPoller<'_>, pool: &Pool, frames: &[Vec<u8>]) {
    let mut burst = Burst::<32>::new();
    for f in frames {
        burst.push(Mbuf::alloc_with(pool, f).unwrap()).unwrap();
        if burst.room() == 0 {
            tx.burst(&mut burst);
            assert!(burst.is_empty());
        }
    }
    tx.burst(&mut burst);
    assert!(burst.is_empty());
}

pub fn demo() -> String {
    format!("{}/captures/demo.pcap", env!("CARGO_MANIFEST_DIR"))
}

/// A packet of segments of these lengths.
pub fn chain(pool: &Pool, lens: &[usize]) -> Mbuf {
    let mut m = Mbuf::alloc_with(pool, &frame(0, lens[0])).unwrap();
    for (i, &n) in lens.iter().enumerate().skip(1) {
        m.chain(Mbuf::alloc_with(pool, &frame(i, n)).unwrap()).unwrap();
    }
    m
}
