//! The control side: every request goes to the interface by its name and namespace of now.

use super::idle;
use super::kernel::{MAX_FRAME, MAX_SEGS, Tap, TapOptions};
use super::rx::TapRx;
use super::tx::TapTx;
use super::{AROUND_MTU, KEYS, MAX_PORT_QUEUES, MAX_TX_SEGS, Shared};
use crate::driver::*;
use core::sync::atomic::Ordering::Relaxed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// tun.c: MAX_MTU less its Ethernet header.
const MTU: (u32, u32) = (68, 65_521);
/// What is taken for the MTU where it cannot be read (descriptors from another namespace, without privilege).
const USUAL_MTU: u32 = 1500;

struct TapDevice {
    tap: Tap,
    shared: Arc<Shared>,
    config: DeviceConfig,
    max_queues: u16,
    /// The queues are descriptors that were given to us: there are no others.
    ready_made: bool,
    /// Rooms of the receive queues' pools, the smallest.
    room: u32,
    /// Of the last answer, for when the interface is gone.
    mac: [u8; 6],
    mtu: u32,
    /// The interface's count of frames that it could not queue for us, when it was opened, and since.
    dropped_before: Option<u64>,
    dropped: u64,
}

pub(super) fn probe(args: &DevArgs) -> Result<Box<dyn Device>> {
    args.check_keys(KEYS)?;
    let number = args.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0u32);
    let mac = match args.str("mac")? {
        // DPDK's: "\0dtap" and a number.
        Some("fixed") => Some([0, b'd', b't', b'a', b'p', number as u8]),
        _ => args.mac("mac")?,
    };
    let mtu = args.number("mtu", MTU.0.into()..=MTU.1.into())?;
    let carrier = args.flag("carrier")?;
    let persist = args.flag("persist")?;
    let tap = match args.str("fds")? {
        Some(_) if args.str("iface")?.is_some() => {
            return invalid!("{}: iface and fds exclude each other: descriptors have an interface", args.name);
        }
        Some(text) => Tap::from_fds(descriptors(&args.name, text)?),
        None => open(args.str("iface")?.unwrap_or("dtap%d")),
    };
    let of = |e: Error| e.context(&args.name);
    let tap = tap.map_err(of)?;
    let multi_queue = tap.is_multi_queue().map_err(of)?;
    let max_queues = match args.str("fds")? {
        Some(_) => tap.queues().len() as u16,
        None if multi_queue => MAX_PORT_QUEUES,
        None => 1,
    };
    let events = EventSink::default();
    let shared = Arc::new(Shared {
        max_frame: (MAX_FRAME as u32).into(),
        gone: false.into(),
        cut: false.into(),
        multi_queue,
        events,
    });
    let config = DeviceConfig::default();
    let mut d = TapDevice {
        tap,
        shared,
        config,
        max_queues,
        ready_made: args.str("fds")?.is_some(),
        room: u32::MAX,
        mac: [0; 6],
        mtu: USUAL_MTU,
        dropped_before: None,
        dropped: 0,
    };
    d.set_up(mac, mtu.map(|m| m as u32), carrier, persist).map_err(of)?;
    Ok(Box::new(d))
}

/// A new interface; or, by its whole name, a persistent one that nobody uses.
fn open(name: &str) -> Result<Tap> {
    let fresh = Tap::open(&TapOptions { name, n_queues: 1, attach: false });
    let taken = |e: &Error| e.errno() == Errno::BUSY || e.errno() == Errno::EXIST;
    if name.contains('%') || !fresh.as_ref().is_err_and(taken) {
        return fresh;
    }
    idle::check(name)?;
    Tap::open(&TapOptions { name, n_queues: 1, attach: true })
}

/// Copies of the descriptors that `fds=` names, so that the program's own stay its own.
fn descriptors(name: &str, text: &str) -> Result<Vec<OwnedFd>> {
    let dup = |t: &str| {
        let Some(fd) = t.parse::<RawFd>().ok().filter(|f| *f >= 0) else {
            return invalid!("{name}: fds='{text}': '{t}' is no descriptor (expected numbers, as 3:4)");
        };
        // SAFETY: the number is only duplicated: one that is closed, or something else, gives an error here or in the
        // checks that follow, and the copy is ours.
        let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
        copy.map_err(|e| Error::from_io(&e, format!("{name}: fds='{text}': descriptor {fd}")))
    };
    let all = text.split(':').map(dup).collect::<Result<Vec<_>>>()?;
    if all.len() > MAX_PORT_QUEUES.into() {
        return invalid!("{name}: {} descriptors in fds, the limit is {MAX_PORT_QUEUES}", all.len());
    }
    Ok(all)
}

impl TapDevice {
    /// What the user asked for, and the state that later answers build on.
    fn set_up(
        &mut self,
        mac: Option<[u8; 6]>,
        mtu: Option<u32>,
        carrier: Option<bool>,
        persist: Option<bool>,
    ) -> Result<()> {
        if let Some(mac) = mac {
            self.tap.set_mac(&mac)?;
        }
        if let Some(mtu) = mtu {
            self.tap.set_mtu(mtu)?;
        }
        if let Some(on) = carrier {
            self.tap.set_carrier(on)?;
            self.shared.cut.store(!on, Relaxed);
        }
        if let Some(on) = persist {
            self.tap.set_persistent(on)?;
        }
        self.attach(0)?;
        // With descriptors from a helper the interface may be in a namespace that we may not look into.
        match self.tap.stats() {
            Ok(s) => self.dropped_before = Some(s.tx_dropped),
            Err(e) if e.errno() == Errno::PERM => log_warn!("its drops will not be counted: {e}"),
            Err(e) => return Err(e),
        }
        self.read_mtu();
        self.mac = self.tap.mac()?;
        Ok(())
    }

    /// Lets the kernel choose among the first `n` queues. Where none can be detached, all are attached for ever.
    fn attach(&self, n: usize) -> Result<()> {
        if self.shared.multi_queue {
            for (i, q) in self.tap.queues().iter().enumerate() {
                q.set_attached(i < n)?;
            }
        }
        Ok(())
    }

    /// After a request failed: because the interface is gone?
    fn look_if_gone(&self) {
        if self.tap.is_gone() {
            self.shared.gone();
        }
    }

    fn read_mtu(&mut self) {
        match self.tap.mtu() {
            Ok(m) => {
                self.mtu = m;
                self.shared.set_mtu(m);
            }
            Err(_) => self.look_if_gone(),
        }
    }

    /// Whether frames of an MTU fit into what the receive queues have.
    fn check_room(&self, mtu: u32, room: u32) -> Result<()> {
        let most = if self.config.scatter { room.saturating_mul(MAX_SEGS as u32) } else { room };
        let frame = (mtu + AROUND_MTU).min(MAX_FRAME as u32);
        if frame > most {
            let (how, hint) = if self.config.scatter { (MAX_SEGS, "") } else { (1, ", or ask for scattered receive") };
            return invalid!(
                "MTU {mtu} means frames of {frame} bytes; {how} of the pool's rooms hold {most}: make rooms larger{hint}"
            );
        }
        Ok(())
    }
}

impl Device for TapDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            max_rx_queues: self.max_queues,
            max_tx_queues: self.max_queues,
            tx_max_len: MAX_FRAME as u32,
            tx_max_segs: MAX_TX_SEGS as u16,
            mtu: MTU,
            caps: Caps::PROMISC
                | Caps::SET_MAC
                | Caps::SET_MTU
                | Caps::RX_SCATTER
                | Caps::TX_MULTI_SEG
                | Caps::SET_LINK
                | Caps::RX_FD,
            if_name: self.tap.name().ok(),
            ..DeviceInfo::default()
        }
    }

    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        let n = usize::from(c.n_rx.max(c.n_tx));
        if !self.ready_made {
            self.tap.resize(n)?;
        }
        self.attach(0)?;
        self.config = *c;
        self.room = u32::MAX;
        if let Some(mtu) = c.mtu {
            self.tap.set_mtu(mtu)?;
        }
        self.read_mtu();
        Ok(())
    }

    fn rx_queue(&mut self, queue: u16, _n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        let Some(q) = self.tap.queues().get(usize::from(queue)).cloned() else {
            return invalid!("no queue {queue}");
        };
        self.read_mtu();
        let room = ctx.pool().data_room().into();
        self.check_room(self.mtu, room).map_err(|e| e.context(format!("pool '{}'", ctx.pool().name())))?;
        self.room = self.room.min(room);
        Ok(Box::new(TapRx::new(ctx, q, self.shared.clone(), self.config.scatter)))
    }

    fn tx_queue(&mut self, queue: u16, _n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        let Some(q) = self.tap.queues().get(usize::from(queue)).cloned() else {
            return invalid!("no queue {queue}");
        };
        Ok(Box::new(TapTx::new(ctx, q, self.shared.clone())))
    }

    /// The packets that wait for the next frame.
    fn rx_held(&self, _n_desc: u32) -> u32 {
        if self.config.scatter { MAX_SEGS as u32 } else { 1 }
    }

    fn start(&mut self) -> Result<()> {
        // The MTU may have been set from outside; a frame that does not fit is dropped and counted.
        self.read_mtu();
        self.attach(self.config.n_rx.into())?;
        match self.tap.set_up(true) {
            // Whoever holds the privilege sets it up: before, or later.
            Err(e) if e.errno() == Errno::PERM => {
                if !self.link().up {
                    log_warn!("{e}: nothing is received or sent until it is up");
                }
                Ok(())
            }
            r => r,
        }
    }

    /// Down first: then the queues' stop finds an end of what the kernel holds.
    fn stop(&mut self) -> Result<()> {
        match self.tap.set_up(false) {
            Err(e) if e.errno() == Errno::PERM => Ok(()),
            Err(e) => {
                self.look_if_gone();
                if self.shared.is_gone() { Ok(()) } else { Err(e) }
            }
            Ok(()) => Ok(()),
        }
    }

    fn link(&mut self) -> Link {
        match self.tap.link() {
            Ok(l) => Link { up: l.up, speed: l.speed_mbps.unwrap_or(0), full_duplex: l.full_duplex.unwrap_or(true) },
            Err(_) => {
                self.look_if_gone();
                Link::default()
            }
        }
    }

    /// The interface's carrier: what the kernel's side sees of a cable.
    fn set_link(&mut self, up: bool) -> Result<()> {
        let r = match self.tap.set_carrier(up) {
            // Without an attached queue it cannot come on: lend it one.
            Err(e) if up && e.errno() == Errno::PERM && self.shared.multi_queue => {
                let Some(q) = self.tap.queues().first() else { return Err(e) };
                q.set_attached(true)?;
                let r = self.tap.set_carrier(true);
                q.set_attached(false)?;
                r
            }
            r => r,
        };
        if r.is_ok() {
            self.shared.cut.store(!up, Relaxed);
        }
        r
    }

    fn mac(&mut self) -> [u8; 6] {
        if let Ok(mac) = self.tap.mac() {
            self.mac = mac;
        }
        self.mac
    }

    fn set_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        self.tap.set_mac(&mac)
    }

    fn mtu(&mut self) -> u32 {
        if let Ok(mtu) = self.tap.mtu() {
            self.mtu = mtu;
        }
        self.mtu
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<()> {
        if self.room != u32::MAX {
            self.check_room(mtu, self.room)?;
        }
        self.tap.set_mtu(mtu)?;
        self.mtu = mtu;
        self.shared.set_mtu(mtu);
        Ok(())
    }

    /// The flag as the interface has it. A TAP hands over every frame that it sends, with it or without.
    fn promiscuous(&mut self) -> bool {
        self.tap.flags().is_ok_and(|f| i32::from(f) & libc::IFF_PROMISC != 0)
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<()> {
        self.tap.set_promisc(on)
    }

    fn stats(&mut self) -> DeviceStats {
        if let (Some(before), Ok(s)) = (self.dropped_before, self.tap.stats()) {
            self.dropped = s.tx_dropped.saturating_sub(before);
        }
        DeviceStats { imissed: self.dropped, ..DeviceStats::default() }
    }

    fn xstats(&mut self, out: &mut Vec<(String, u64)>) {
        if let Ok(s) = self.tap.stats() {
            let named = [
                ("tx_packets", s.tx_packets),
                ("tx_dropped", s.tx_dropped),
                ("rx_packets", s.rx_packets),
                ("rx_dropped", s.rx_dropped),
                ("rx_frame_errors", s.rx_frame_errors),
            ];
            out.extend(named.map(|(n, v)| (format!("netdev_{n}"), v)));
        }
    }

    fn set_events(&mut self, sink: EventSink) {
        // Before any queue: nobody else holds it.
        if let Some(s) = Arc::get_mut(&mut self.shared) {
            s.events = sink;
        }
    }

    fn rx_fd(&self, queue: u16) -> Option<RawFd> {
        let q = self.tap.queues().get(usize::from(queue)).filter(|_| queue < self.config.n_rx)?;
        Some(q.as_fd().as_raw_fd())
    }
}
