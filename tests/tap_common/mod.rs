//! What the tests of `net_tap` share: ports in a test's namespace, and a packet socket on the kernel's side.
#![allow(dead_code)]

use crate::support::netns::NetNs;
use crate::support::run::{unique, wait_until};
use burstline::base::{Errno, Result};
use burstline::driver::DevArgs;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pmd::tap::DRIVER;
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{Port, PortConfig, RxPoller, TxPoller};
use burstline::sock::packet::{PacketOptions, PacketSocket};
use burstline::sock::{self, Ctl, wait_readable};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

macro_rules! needs_tap {
    ($($what:expr),*) => {
        need!("root", "netns", "ip", "/dev/net/tun" $(, $what)*);
    };
}
pub(crate) use needs_tap;

pub fn pool(n: u32) -> Pool {
    pool_with_cache(n, 32)
}

pub fn pool_with_cache(n: u32, cache: u32) -> Pool {
    Pool::new(PoolConfig { name: format!("tap{}", unique()), n, cache, ..PoolConfig::default() }).unwrap()
}

pub fn in_ns<T: Send>(ns: &NetNs, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    sock::NetNs::from_path(ns.path()).unwrap().run_in(f)
}

/// A port whose interface is made in `ns`, closed when the test ends however it ends.
pub struct OwnPort(Port);

impl std::ops::Deref for OwnPort {
    type Target = Port;
    fn deref(&self) -> &Port {
        &self.0
    }
}

impl Drop for OwnPort {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

pub fn attach(ns: &NetNs, args: &str) -> OwnPort {
    let name = format!("net_tap{}", unique());
    let args = DevArgs::parse(&format!("{name},{args}")).unwrap();
    // A program that another test starts holds copies of this process's descriptors from its fork to its exec, so an
    // interface may outlive its port by that.
    let end = Instant::now() + Duration::from_secs(5);
    let dev = loop {
        match in_ns(ns, || (DRIVER.probe)(&args)) {
            Err(e) if e.errno() == Errno::BUSY && Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            r => break r.unwrap(),
        }
    };
    OwnPort(Port::attach(&name, &DRIVER, dev).unwrap())
}

pub fn setup(p: &Port, pool: &Pool, n_rx: u16, n_tx: u16) {
    (0..n_rx).for_each(|q| p.rx_queue_setup(q, 0, pool).unwrap());
    (0..n_tx).for_each(|q| p.tx_queue_setup(q, 0).unwrap());
}

pub fn start(ns: &NetNs, args: &str, pool: &Pool, c: &PortConfig) -> OwnPort {
    let p = attach(ns, args);
    ns.no_ipv6(p.info().device.if_name.as_deref().unwrap());
    p.configure(c).unwrap();
    setup(&p, pool, c.n_rx, c.n_tx);
    p.start().unwrap();
    p
}

/// A frame with a local experimental type (IEEE 802 88b5), so that no stack answers it.
pub fn frame(len: usize, tag: &[u8]) -> Vec<u8> {
    let mut f = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    f.extend_from_slice(tag);
    f.extend_from_slice(&[0x88, 0xb5]);
    (f.len()..len).for_each(|i| f.push(i as u8));
    f
}

/// A UDP datagram without payload, from a port of its own.
pub fn udp_frame(port: u16) -> Vec<u8> {
    let mut f = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 8, 0];
    f.extend_from_slice(&[0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    f.extend_from_slice(&port.to_be_bytes());
    f.extend_from_slice(&[0, 9, 0, 8, 0, 0]);
    f.resize(60, 0);
    f
}

fn is_ours(f: &[u8]) -> bool {
    f.len() > 14 && f[..6] == [0x02, 0, 0, 0, 0, 2]
}

/// A packet socket on the port's interface.
pub struct Peer(PacketSocket);

impl Peer {
    pub fn new(ns: &NetNs, p: &Port) -> Peer {
        Peer::on(ns, &p.info().device.if_name.unwrap())
    }

    pub fn on(ns: &NetNs, name: &str) -> Peer {
        let s = in_ns(ns, || {
            let o = PacketOptions { qdisc_bypass: true, ..PacketOptions::default() };
            PacketSocket::open(Ctl::new()?.index_of(name)?, &o)
        });
        Peer(s.unwrap())
    }

    pub fn ifindex(&self) -> u32 {
        self.0.ifindex()
    }

    #[track_caller]
    pub fn send(&self, f: &[u8]) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            match self.0.send(&[IoSlice::new(f)]) {
                Ok(n) => return assert_eq!(n, f.len()),
                Err(e) if (e == Errno::AGAIN || e.0 == libc::ENETDOWN) && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(e) => panic!("send: {e}"),
            }
        }
    }

    pub fn try_send(&self, f: &[u8]) -> bool {
        self.0.send(&[IoSlice::new(f)]).is_ok()
    }

    /// The next frame of the test's that the kernel received.
    #[track_caller]
    pub fn next(&self) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(10);
        let mut buf = vec![0u8; 70_000];
        while Instant::now() < end {
            match self.0.recv_frame(&mut buf) {
                Ok((start, r)) if is_ours(&buf[start..start + r.len]) => return buf[start..start + r.len].to_vec(),
                Ok(_) => {}
                Err(_) => drop(wait_readable(self.0.as_fd(), Duration::from_millis(100))),
            }
        }
        panic!("no frame in 10 s");
    }
}

/// The next packet of the test's.
#[track_caller]
pub fn receive_packet(rx: &mut RxPoller<'_>) -> Mbuf {
    let end = Instant::now() + Duration::from_secs(10);
    let mut b = Burst::<1>::new();
    while Instant::now() < end {
        if rx.burst(&mut b) == 1
            && let Some(m) = b.pop_front()
            && is_ours(&m.to_vec())
        {
            return m;
        }
    }
    panic!("no packet in 10 s");
}

#[track_caller]
pub fn receive(rx: &mut RxPoller<'_>) -> Vec<u8> {
    receive_packet(rx).to_vec()
}

/// True once the interface is gone; see [`attach`] for why that may take a moment.
pub fn vanishes(ns: &NetNs, name: &str) -> bool {
    wait_until(Duration::from_secs(5), || !ns.has_link(name))
}

/// Everything that waits.
pub fn drain(rx: &mut RxPoller<'_>) -> u64 {
    let mut n = 0;
    loop {
        match rx.burst(&mut Burst::<32>::new()) {
            0 => return n,
            got => n += got as u64,
        }
    }
}

pub fn send(tx: &mut TxPoller<'_>, pool: &Pool, f: &[u8]) -> usize {
    let mut b = Burst::<1>::new();
    assert!(b.push(Mbuf::alloc_with(pool, f).unwrap()).is_ok());
    tx.burst(&mut b)
}

pub fn readable(fd: RawFd, ms: i32) -> bool {
    let mut p = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut p, 1, ms) == 1 && p.revents & libc::POLLIN != 0 }
}

pub fn raw(fd: &OwnedFd) -> RawFd {
    fd.as_raw_fd()
}

/// What a helper with the privilege does: a tap of `n` queues whose index is chosen (TUNSETIFFINDEX).
pub fn open_with_index(ns: &NetNs, name: &str, index: u32, n: usize) -> Vec<OwnedFd> {
    in_ns(ns, || {
        Ok((0..n)
            .map(|i| {
                let f = std::fs::File::options().read(true).write(true).open("/dev/net/tun").unwrap();
                let mut r = sock::iface::request(name);
                // IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE
                r.ifr_ifru.ifru_flags = 0x1102;
                // SAFETY: TUNSETIFFINDEX takes an unsigned int, TUNSETIFF an ifreq.
                unsafe {
                    assert!(i != 0 || libc::ioctl(f.as_raw_fd(), 0x400454da, &raw const index) == 0);
                    assert_eq!(libc::ioctl(f.as_raw_fd(), 0x400454ca, &raw mut r), 0);
                    OwnedFd::from_raw_fd(std::os::fd::IntoRawFd::into_raw_fd(f))
                }
            })
            .collect())
    })
    .unwrap()
}

/// A thread that carries packets between two ports.
pub struct Bridge {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Bridge {
    pub fn spawn(a: &Port, b: &Port) -> Bridge {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let queues = [(a, b), (b, a)].map(|(f, t)| (f.rx_queue(0).unwrap(), t.tx_queue(0).unwrap()));
        let thread = std::thread::spawn(move || {
            let slot = ThreadSlot::register().unwrap();
            let mut ways = queues.map(|(r, t)| (r.bind(&slot), t.bind(&slot)));
            while !flag.load(Relaxed) {
                let mut idle = true;
                for (rx, tx) in &mut ways {
                    let mut b = Burst::<32>::new();
                    idle &= rx.burst(&mut b) == 0;
                    tx.burst(&mut b);
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Bridge { stop, thread: Some(thread) }
    }

    pub fn stop(mut self) {
        self.end().unwrap();
    }

    fn end(&mut self) -> std::thread::Result<()> {
        self.stop.store(true, Relaxed);
        self.thread.take().map_or(Ok(()), |t| t.join())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Bytes that a packet of the pool takes behind its headroom.
pub fn data_room(pool: &Pool) -> usize {
    Mbuf::alloc(pool).unwrap().tailroom()
}

/// Runs `f` on this thread as a user without privilege (the raw call changes one thread, unlike libc's).
pub fn as_nobody<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: integers only. The thread ends with `f` or goes on without privilege.
    unsafe { assert_eq!(libc::syscall(libc::SYS_setresuid, -1, 65534, 0), 0) };
    let r = f();
    // SAFETY: as above; the saved id allows it.
    unsafe { assert_eq!(libc::syscall(libc::SYS_setresuid, -1, 0, -1), 0) };
    r
}

/// Back to root for `f`, on a thread that [`as_nobody`] runs on.
pub fn privileged<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: as above.
    unsafe { assert_eq!(libc::syscall(libc::SYS_setresuid, -1, 0, -1), 0) };
    let r = f();
    // SAFETY: as above.
    unsafe { assert_eq!(libc::syscall(libc::SYS_setresuid, -1, 65534, -1), 0) };
    r
}
