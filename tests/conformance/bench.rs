//! A port on the bench: opened, started, with a pool and a far side; and packets, good and bad.

use crate::rigs::{Ask, Far, Rig};
use crate::support::run::{unique, wait_until};
use burstline::base::Result;
use burstline::driver::{Caps, DeviceInfo, FlushCause};
use burstline::mbuf::{Mbuf, RawMbuf};
use burstline::pool::{Pool, PoolConfig};
use burstline::port::row::{Row, row};
use burstline::port::{Port, PortConfig, Stats};
use std::time::Duration;

/// How long a frame may take through a kernel.
pub const ARRIVES: Duration = Duration::from_secs(5);

pub struct Bench {
    pub port: Port,
    pub pool: Pool,
    pub far: Box<dyn Far>,
    pub info: DeviceInfo,
}

pub fn pool(n: u32) -> Pool {
    pool_with(n, 0)
}

pub fn pool_with(n: u32, cache: u32) -> Pool {
    Pool::new(PoolConfig { name: format!("conf{}", unique()), n, cache, ..PoolConfig::default() }).unwrap()
}

/// Configures and sets up every queue.
pub fn set_up(port: &Port, ask: &Ask, pool: &Pool) {
    let info = port.info().device;
    let n = |want: u16, most: u16| want.min(most);
    let scatter = info.caps.contains(Caps::RX_SCATTER);
    port.configure(&PortConfig {
        n_rx: n(ask.n_rx, info.max_rx_queues),
        n_tx: n(ask.n_tx, info.max_tx_queues),
        scatter,
        ..PortConfig::default()
    })
    .unwrap();
    let i = port.info();
    (0..i.n_rx).for_each(|q| port.rx_queue_setup(q, 0, pool).unwrap());
    (0..i.n_tx).for_each(|q| port.tx_queue_setup(q, 0).unwrap());
}

impl Bench {
    /// Configured with every queue set up, not started.
    pub fn ready(rig: &dyn Rig, ask: &Ask) -> Bench {
        Bench::ready_on(rig, ask, pool_with(4096, 128))
    }

    pub fn ready_on(rig: &dyn Rig, ask: &Ask, pool: Pool) -> Bench {
        let (port, far) = rig.open(ask);
        set_up(&port, ask, &pool);
        let info = port.info().device;
        Bench { port, pool, far, info }
    }

    pub fn started(rig: &dyn Rig, ask: &Ask) -> Bench {
        let mut b = Bench::ready(rig, ask);
        b.port.start().unwrap();
        b.far.offer();
        b
    }

    /// Started, with nothing asked for.
    pub fn plain(rig: &dyn Rig) -> Bench {
        Bench::started(rig, &Ask::default())
    }

    pub fn id(&self) -> u16 {
        self.port.id()
    }

    /// Receives on queue 0 until there are `n` packets, or nothing came for long.
    pub fn receive(&self, n: usize, burst: usize) -> Vec<Mbuf> {
        let mut all = Vec::new();
        wait_until(ARRIVES, || {
            loop {
                let want = burst.min(n - all.len());
                let got = rx(self.id(), 0, want);
                if got.is_empty() || want == 0 {
                    return all.len() == n;
                }
                all.extend(got);
            }
        });
        all
    }

    /// Sends all of `pkts` on queue 0 and returns how many were taken, within a limit.
    pub fn send(&self, pkts: &mut Vec<Mbuf>) -> usize {
        let mut n = 0;
        wait_until(ARRIVES, || {
            n += tx(self.id(), 0, pkts);
            pkts.is_empty()
        });
        n
    }

    /// The frames that left, once `n` did; None where nobody sees them.
    pub fn left(&mut self, n: usize) -> Option<Vec<Vec<u8>>> {
        let mut all = self.far.sent()?;
        wait_until(ARRIVES, || {
            if all.len() < n {
                all.extend(self.far.sent().unwrap_or_default());
            }
            all.len() >= n
        });
        Some(all)
    }

    /// Closes the port; every packet must be back in the pool, which then goes.
    #[track_caller]
    pub fn end(self) -> Stats {
        self.port.close().unwrap();
        let s = self.port.stats();
        self.end_closed();
        s
    }

    /// As `end`, of a port that was closed already.
    #[track_caller]
    pub fn end_closed(self) {
        drop((self.port, self.far));
        all_back(&self.pool);
        assert!(self.pool.free().is_ok());
    }
}

/// Waits for every packet to be back: some are on their way through a far side.
#[track_caller]
pub fn all_back(pool: &Pool) {
    wait_until(ARRIVES, || pool.available() == pool.size());
    assert_eq!(pool.available(), pool.size(), "packets that did not come back");
}

pub fn fast(port: u16, queue: u16) -> &'static Row {
    row(port, queue).unwrap()
}

/// Receives up to `n` on the row, as C does.
pub fn rx(port: u16, queue: u16, n: usize) -> Vec<Mbuf> {
    let mut v: Vec<Mbuf> = Vec::with_capacity(n);
    // SAFETY: room for `n`; the row says how many it wrote. Each test's threads keep to their own queues.
    unsafe {
        let got = fast(port, queue).rx.burst(v.as_mut_ptr().cast::<*mut RawMbuf>(), n as u16);
        assert!(usize::from(got) <= n);
        v.set_len(got.into());
    }
    v
}

fn take(pkts: &mut Vec<Mbuf>, f: impl FnOnce(*mut *mut RawMbuf, u16) -> u16) -> usize {
    let n = usize::from(f(pkts.as_mut_ptr().cast(), pkts.len() as u16));
    assert!(n <= pkts.len());
    pkts.drain(..n).for_each(core::mem::forget);
    n
}

/// Sends from the front of `pkts`, which keeps what was not taken.
pub fn tx(port: u16, queue: u16, pkts: &mut Vec<Mbuf>) -> usize {
    // SAFETY: the vector holds so many packets, and forgets those that the row says it took.
    take(pkts, |p, n| unsafe { fast(port, queue).tx.burst(p, n) })
}

pub fn tx_more(port: u16, queue: u16, pkts: &mut Vec<Mbuf>) -> usize {
    // SAFETY: as in `tx`.
    take(pkts, |p, n| unsafe { fast(port, queue).tx.burst_more(p, n) })
}

pub fn tx_flush(port: u16, queue: u16) -> u32 {
    // SAFETY: the queue is the calling thread's.
    unsafe { fast(port, queue).tx.flush(FlushCause::Explicit as u8) }
}

/// A frame of an experimental EtherType (IEEE 802, 0x88b5): addresses, type, number, and bytes that follow from both.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    assert!(len >= 14);
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    f.extend(number.to_be_bytes());
    while f.len() < len {
        f.push((f.len() as u32 ^ number) as u8);
    }
    f.truncate(len);
    f
}

pub fn packet(pool: &Pool, number: u32, len: usize) -> Mbuf {
    of_bytes(pool, &frame(number, len)).unwrap()
}

/// A packet of as many segments as its bytes need.
pub fn of_bytes(pool: &Pool, bytes: &[u8]) -> Result<Mbuf> {
    Mbuf::alloc_with(pool, bytes)
}

/// A packet cut into segments of these lengths.
pub fn chained(pool: &Pool, number: u32, cuts: &[usize]) -> Mbuf {
    let bytes = frame(number, cuts.iter().sum());
    let mut at = 0;
    let mut head: Option<Mbuf> = None;
    for &n in cuts {
        let mut seg = Mbuf::alloc(pool).unwrap();
        seg.append(n).unwrap().copy_from_slice(&bytes[at..at + n]);
        at += n;
        match &mut head {
            None => head = Some(seg),
            Some(h) => h.chain(seg).unwrap(),
        }
    }
    head.unwrap()
}

pub fn packets(pool: &Pool, n: usize, len: usize) -> Vec<Mbuf> {
    (0..n).map(|i| packet(pool, i as u32, len)).collect()
}

/// Packets that can never be sent, with what is wrong with each. Every one gives all its segments back when it is freed.
pub fn hopeless(pool: &Pool, info: &DeviceInfo) -> Vec<(&'static str, Mbuf)> {
    let mut all = Vec::new();
    let mut add = |what, mut m: Mbuf, f: &dyn Fn(&mut RawMbuf)| {
        // SAFETY: the invariants are broken on purpose; who sends must look.
        f(unsafe { m.raw_mut() });
        all.push((what, m));
    };
    add("nb_segs above the chain", chained(pool, 1, &[64, 64]), &|r| r.nb_segs = 3);
    add("nb_segs below the chain", chained(pool, 2, &[64, 64, 64]), &|r| r.nb_segs = 2);
    add("nb_segs 1 of two segments", chained(pool, 3, &[64, 64]), &|r| r.nb_segs = 1);
    add("nb_segs 0", packet(pool, 4, 64), &|r| r.nb_segs = 0);
    add("next null too early", packet(pool, 5, 64), &|r| r.nb_segs = 2);
    add("pkt_len above data_len", packet(pool, 6, 64), &|r| r.pkt_len = 65);
    add("pkt_len below data_len", packet(pool, 7, 64), &|r| r.pkt_len = 63);
    add("pkt_len above the chain", chained(pool, 8, &[64, 64]), &|r| r.pkt_len = 129);
    add("data_len beyond the buffer", packet(pool, 9, 64), &|r| {
        r.data_len = r.buf_len - r.data_off + 1;
        r.pkt_len = r.data_len.into();
    });
    add("data_off beyond the buffer", packet(pool, 10, 64), &|r| r.data_off = r.buf_len);
    add("second segment beyond its buffer", chained(pool, 11, &[64, 64]), &|r| {
        // SAFETY: the second segment is this packet's.
        let second = unsafe { &mut *r.next };
        second.data_len = second.buf_len;
        r.pkt_len = 64 + u32::from(second.buf_len);
    });
    add("no bytes", Mbuf::alloc(pool).unwrap(), &|_| ());
    if info.tx_max_len < 1 << 20 {
        // Whole segments, to need few of them.
        let part = 2000usize;
        let n = info.tx_max_len as usize / part + 1;
        add("longer than tx_max_len", chained(pool, 12, &vec![part; n]), &|_| ());
    }
    if info.tx_max_segs < 1000 {
        add("more segments than tx_max_segs", chained(pool, 13, &vec![20; usize::from(info.tx_max_segs) + 1]), &|_| ());
    }
    all
}

#[track_caller]
pub fn errno<T>(r: Result<T>) -> (burstline::base::Errno, String) {
    match r {
        Ok(_) => panic!("this should have been refused"),
        Err(e) => (e.errno(), e.text().to_string()),
    }
}
