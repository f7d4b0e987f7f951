//! A port's control side: one state machine for all drivers.
//!
//! probed → configured → started ⇄ stopped → closed. Every call is allowed from any thread; one at a time gets in.

use super::ends::{RxEnd, TxEnd};
use super::events::PortEvents;
use super::row::{self, MAX_PORTS, MAX_QUEUES};
use super::stats::Totals;
use super::{PortConfig, STOP_LIMIT, State};
use crate::base::log::Held;
use crate::base::{Errno, Error, Result};
use crate::driver::{Caps, Device, DeviceConfig, DeviceInfo, Driver, Link, RxCounters, RxCtx, TxCounters, TxCtx};
use crate::pool::Pool;
use crate::{fail, invalid};
use std::sync::{Arc, Mutex, MutexGuard};

pub struct PortInner {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) driver: &'static Driver,
    pub(super) ctl: Mutex<Ctl>,
    pub(super) events: Arc<PortEvents>,
}

pub(super) struct Ctl {
    pub(super) state: State,
    // Before the device: queues go first.
    pub(super) rx: Vec<Option<Box<RxEnd>>>,
    pub(super) tx: Vec<Option<(Box<TxEnd>, u32)>>,
    pub(super) dev: Box<dyn Device>,
    pub(super) info: DeviceInfo,
    pub(super) config: PortConfig,
    pub(super) totals: Totals,
}

/// A port. Cheap to clone; all clones are the same port.
#[derive(Clone)]
pub struct Port(pub(super) Arc<PortInner>);

static TABLE: Mutex<[Slot; MAX_PORTS]> = Mutex::new([const { Slot::Free }; MAX_PORTS]);

/// A number stays taken until the last handle on its closed port is gone, so that no old handle meets a new port.
enum Slot {
    Free,
    Open(Arc<PortInner>),
    Closed,
}

fn table() -> MutexGuard<'static, [Slot; MAX_PORTS]> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}

impl Drop for PortInner {
    fn drop(&mut self) {
        if let Some(s) = table().get_mut(usize::from(self.id)) {
            *s = Slot::Free;
        }
    }
}

/// What a port is now. Lengths in bytes, without FCS.
#[derive(Clone, Debug)]
pub struct PortInfo {
    pub id: u16,
    pub name: String,
    pub driver: &'static str,
    pub doorbell: crate::driver::Doorbell,
    pub state: State,
    pub device: DeviceInfo,
    pub n_rx: u16,
    pub n_tx: u16,
    pub mac: [u8; 6],
    pub mtu: u32,
    pub promiscuous: bool,
    pub scatter: bool,
    /// Bytes of the pages under the first receive queue's pool; 0 without one.
    pub pool_page: usize,
}

impl Port {
    /// Puts a device into the port table. -EEXIST for a name in use, -ENOSPC beyond [`MAX_PORTS`].
    pub fn attach(name: &str, driver: &'static Driver, mut dev: Box<dyn Device>) -> Result<Port> {
        super::install();
        let mut t = table();
        if t.iter().any(|s| matches!(s, Slot::Open(p) if p.name == name)) {
            return fail!(EXIST, "there is a port '{name}' already");
        }
        let Some(id) = t.iter().position(|s| matches!(s, Slot::Free)) else {
            return fail!(NOSPC, "port '{name}': all {MAX_PORTS} port numbers are taken");
        };
        for row in (0..MAX_QUEUES as u16).filter_map(|q| row::row(id as u16, q)) {
            row.rx.shut(STOP_LIMIT); // A closed port of this number may have left it to a poll group.
        }
        let events = PortEvents::new(id as u16, dev.link());
        dev.set_events(events.sink());
        let info = dev.info();
        let inner = Arc::new(PortInner {
            id: id as u16,
            name: name.into(),
            driver,
            ctl: Mutex::new(Ctl {
                state: State::Probed,
                dev,
                info,
                config: PortConfig::default(),
                rx: Vec::new(),
                tx: Vec::new(),
                totals: Totals::default(),
            }),
            events,
        });
        t[id] = Slot::Open(inner.clone());
        Ok(Port(inner))
    }

    /// The open port of a number.
    pub fn by_id(id: u16) -> Result<Port> {
        match table().get(usize::from(id)) {
            Some(Slot::Open(p)) => Ok(Port(p.clone())),
            Some(_) => fail!(NODEV, "there is no port {id}"),
            None => fail!(NODEV, "there is no port {id}: numbers go to {}", MAX_PORTS - 1),
        }
    }

    pub fn by_name(name: &str) -> Result<Port> {
        let found = table().iter().find_map(|s| match s {
            Slot::Open(p) if p.name == name => Some(Port(p.clone())),
            _ => None,
        });
        found.ok_or_else(|| Error::new(Errno::NODEV, format!("there is no port '{name}'")))
    }

    /// Every open port, by number.
    pub fn all() -> Vec<Port> {
        let open = |s: &Slot| match s {
            Slot::Open(p) => Some(Port(p.clone())),
            _ => None,
        };
        table().iter().filter_map(open).collect()
    }

    pub fn id(&self) -> u16 {
        self.0.id
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn driver(&self) -> &'static Driver {
        self.0.driver
    }

    pub(super) fn inner(&self) -> &Arc<PortInner> {
        &self.0
    }

    pub fn state(&self) -> State {
        self.0.ctl().state
    }

    pub fn info(&self) -> PortInfo {
        let mut c = self.0.ctl();
        let open = c.state != State::Closed;
        PortInfo {
            id: self.id(),
            name: self.0.name.clone(),
            driver: self.0.driver.name,
            doorbell: self.0.driver.doorbell,
            state: c.state,
            device: if open { c.dev.info() } else { c.info.clone() },
            n_rx: c.config.n_rx,
            n_tx: c.config.n_tx,
            mac: c.dev.mac(),
            mtu: c.dev.mtu(),
            promiscuous: c.dev.promiscuous(),
            scatter: c.config.scatter,
            pool_page: c
                .rx
                .iter()
                .flatten()
                .find_map(|e| e.lock().pool.rooms().map(|(s, _)| s.page().bytes()))
                .unwrap_or(0),
        }
    }

    /// Puts a device around the port's device: tracing, faults. Before the port is configured; else -EBUSY.
    pub fn wrap(
        &self,
        f: impl FnOnce(Box<dyn Device>) -> Result<Box<dyn Device>, (Box<dyn Device>, Error)>,
    ) -> Result<()> {
        let mut c = self.0.ctl();
        if c.state != State::Probed {
            return c.state.refuse(&self.0.name, "wrap it before it is configured");
        }
        let inner = core::mem::replace(&mut c.dev, Box::new(super::closed::ClosedDevice));
        let (dev, result) = match f(inner) {
            Ok(d) => (d, Ok(())),
            Err((d, e)) => (d, Err(e)),
        };
        c.dev = dev;
        c.dev.set_events(self.0.events.sink());
        c.info = c.dev.info();
        result
    }

    /// Sets queue counts, MTU and scatter. Allowed while the port is not started; queues set up before are gone.
    /// -EINVAL names what the device cannot do; -EBUSY while it runs or queue handles are out.
    pub fn configure(&self, config: &PortConfig) -> Result<()> {
        let mut c = self.0.ctl();
        let name = &self.0.name;
        if let s @ (State::Started | State::Closed) = c.state {
            return s.refuse(name, "stop it first");
        }
        let info = c.dev.info();
        let queues = |what: &str, n: u16, max: u16| {
            if n > max {
                return invalid!("port {name}: {n} {what} queues; the device has {max} at most");
            }
            if usize::from(n) > MAX_QUEUES {
                return invalid!("port {name}: {n} {what} queues; the limit is {MAX_QUEUES}");
            }
            Ok(())
        };
        queues("receive", config.n_rx, info.max_rx_queues)?;
        queues("send", config.n_tx, info.max_tx_queues)?;
        if config.n_rx == 0 && config.n_tx == 0 {
            return invalid!("port {name}: 0 receive and 0 send queues; at least one queue is needed");
        }
        if let Some(mtu) = config.mtu
            && !(info.mtu.0..=info.mtu.1).contains(&mtu)
        {
            return invalid!("port {name}: MTU {mtu}; the device takes {} to {}", info.mtu.0, info.mtu.1);
        }
        if config.scatter && !info.caps.contains(Caps::RX_SCATTER) {
            return fail!(NOTSUP, "port {name}: scattered receive is not supported by {}", self.0.driver.name);
        }
        c.check_no_handles(name)?;
        c.drop_queues();
        c.state = State::Probed; // What it is without queues, should the device refuse.
        c.dev
            .configure(&DeviceConfig { n_rx: config.n_rx, n_tx: config.n_tx, mtu: config.mtu, scatter: config.scatter })
            .map_err(|e| e.context(format!("port {name}")))?;
        c.info = c.dev.info();
        c.config = config.clone();
        c.rx = (0..config.n_rx).map(|_| None).collect();
        c.tx = (0..config.n_tx).map(|_| None).collect();
        c.state = State::Configured;
        Ok(())
    }

    /// Sets up receive queue `queue` with `n_desc` descriptors (0: the device's usual number), fed from `pool`.
    /// -ENOSPC with the number needed where the pool is too small for the queues that use it.
    pub fn rx_queue_setup(&self, queue: u16, n_desc: u32, pool: &Pool) -> Result<()> {
        let mut c = self.0.ctl();
        let name = &self.0.name;
        let n_desc = c.check_setup(name, "receive", queue, c.rx.len(), n_desc)?;
        let Some(row) = row::row(self.id(), queue) else { return invalid!("port {name}: no row for queue {queue}") };
        c.rx_free(queue, name)?;
        if pool.inner().room_size() == 0 {
            return invalid!("port {name}: pool '{}' has headers and no rooms to receive into", pool.name());
        }
        let counters = Arc::new(RxCounters::default());
        let share = pool.reference();
        let held = c.dev.rx_held(n_desc);
        share.reserve(held).map_err(|e| e.context(format!("port {name} receive queue {queue}")))?;
        let ctx = RxCtx::new(self.id(), queue, share.clone(), counters.clone());
        match c.dev.rx_queue(queue, n_desc, ctx) {
            Ok(q) => {
                let end = RxEnd::new(&row.rx, self.id(), queue, q, share, held, counters);
                c.rx[usize::from(queue)] = Some(end);
                Ok(())
            }
            Err(e) => {
                share.unreserve(held);
                Err(e.context(format!("port {name} receive queue {queue}")))
            }
        }
    }

    /// Sets up send queue `queue` with `n_desc` descriptors (0: the device's usual number).
    pub fn tx_queue_setup(&self, queue: u16, n_desc: u32) -> Result<()> {
        let mut c = self.0.ctl();
        let name = &self.0.name;
        let n_desc = c.check_setup(name, "send", queue, c.tx.len(), n_desc)?;
        let Some(row) = row::row(self.id(), queue) else { return invalid!("port {name}: no row for queue {queue}") };
        c.tx_free(queue, name)?;
        let counters = Arc::new(TxCounters::default());
        let ctx = TxCtx::new(self.id(), queue, c.info.tx_max_len, c.info.tx_max_segs, counters.clone());
        let q = c.dev.tx_queue(queue, n_desc, ctx).map_err(|e| e.context(format!("port {name} send queue {queue}")))?;
        c.tx[usize::from(queue)] = Some((TxEnd::new(&row.tx, self.id(), queue, q, counters), n_desc));
        Ok(())
    }

    /// Starts the queues and the device. On an error nothing runs, and it may be tried again.
    pub fn start(&self) -> Result<()> {
        let mut c = self.0.ctl();
        let name = &self.0.name;
        match c.state {
            State::Started => return Ok(()),
            State::Configured | State::Stopped => {}
            s => return s.refuse(name, "configure it first"),
        }
        let missing = |n: Option<usize>, what: &str| match n {
            Some(q) => invalid!("port {name}: {what} queue {q} was not set up"),
            None => Ok(()),
        };
        missing(c.rx.iter().position(Option::is_none), "receive")?;
        missing(c.tx.iter().position(Option::is_none), "send")?;
        c.start().map_err(|e| e.context(format!("port {name}")))
    }

    /// Stops the port: from the return on no queue runs, what was staged is rung, and every packet that the queues held is
    /// back. Returns how many announced packets the device had not sent within the limit (also xstat `tx_undrained`).
    ///
    /// May be called from any thread, while others burst. -EBUSY, with nothing changed, where a thread stays inside a
    /// burst for longer than a second.
    pub fn stop(&self) -> Result<u32> {
        let mut c = self.0.ctl();
        if c.state != State::Started {
            return Ok(0);
        }
        c.stop().map_err(|e| e.context(format!("port {}", self.0.name)))
    }

    /// Stops and closes the port. Its number is free again when the last handle on it is gone.
    pub fn close(&self) -> Result<()> {
        {
            let mut c = self.0.ctl();
            if c.state == State::Closed {
                return fail!(NODEV, "port {} is closed already", self.0.name);
            }
            if c.state == State::Started {
                c.stop().map_err(|e| e.context(format!("port {}", self.0.name)))?;
            }
            c.drop_queues();
            c.dev.close();
            let stats = c.dev.stats();
            c.totals.keep_device(stats);
            c.dev = Box::new(super::closed::ClosedDevice);
            c.state = State::Closed;
        }
        self.0.events.forget();
        let mut t = table();
        let was = core::mem::replace(&mut t[usize::from(self.id())], Slot::Closed);
        drop(t); // The last handle may go here, and its drop takes the table's lock.
        drop(was);
        Ok(())
    }

    pub fn link(&self) -> Link {
        self.0.ctl().dev.link()
    }

    pub fn set_link(&self, up: bool) -> Result<()> {
        self.named(|d| d.set_link(up))?;
        self.0.events.check_link(self.link());
        Ok(())
    }

    pub fn mac(&self) -> [u8; 6] {
        self.0.ctl().dev.mac()
    }

    /// -EINVAL for a group or an all-zero address, -ENOTSUP where the driver has none to set.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<()> {
        if mac[0] & 1 != 0 || mac == [0; 6] {
            return invalid!("port {}: {mac:02x?} is no station address", self.0.name);
        }
        self.named(|d| d.set_mac(mac))
    }

    pub fn mtu(&self) -> u32 {
        self.0.ctl().dev.mtu()
    }

    /// -EINVAL beyond the device's range, -ENOTSUP where the driver has none to set.
    pub fn set_mtu(&self, mtu: u32) -> Result<()> {
        let (lo, hi) = self.0.ctl().info.mtu;
        if !(lo..=hi).contains(&mtu) {
            return invalid!("port {}: MTU {mtu}; the device takes {lo} to {hi}", self.0.name);
        }
        self.named(|d| d.set_mtu(mtu))
    }

    pub fn promiscuous(&self) -> bool {
        self.0.ctl().dev.promiscuous()
    }

    pub fn set_promiscuous(&self, on: bool) -> Result<()> {
        self.named(|d| d.set_promiscuous(on))
    }

    fn named(&self, f: impl FnOnce(&mut dyn Device) -> Result<()>) -> Result<()> {
        f(&mut *self.0.ctl().dev).map_err(|e| e.context(format!("port {}", self.0.name)))
    }

    /// A descriptor that is readable when packets wait on the queue; valid while the port is open. -ENOTSUP without one.
    pub fn rx_fd(&self, queue: u16) -> Result<std::os::fd::RawFd> {
        let fd = self.0.ctl().dev.rx_fd(queue);
        fd.ok_or_else(|| {
            Error::new(Errno::NOTSUP, format!("port {} has no descriptor for receive queue {queue}", self.0.name))
        })
    }
}

/// The control side's lock. What is said under it is said after it: a log callback may call anything.
pub(super) struct CtlGuard<'a> {
    ctl: MutexGuard<'a, Ctl>,
    // Behind the lock: dropped after it.
    _held: Held,
}

impl core::ops::Deref for CtlGuard<'_> {
    type Target = Ctl;
    fn deref(&self) -> &Ctl {
        &self.ctl
    }
}

impl core::ops::DerefMut for CtlGuard<'_> {
    fn deref_mut(&mut self) -> &mut Ctl {
        &mut self.ctl
    }
}

impl PortInner {
    pub(super) fn ctl(&self) -> CtlGuard<'_> {
        let _held = Held::begin();
        CtlGuard { ctl: self.ctl.lock().unwrap_or_else(|e| e.into_inner()), _held }
    }

    pub(super) fn with_rx<T>(&self, queue: u16, f: impl FnOnce(&RxEnd, bool) -> Result<T>) -> Result<T> {
        let c = self.ctl();
        match c.rx.get(usize::from(queue)) {
            Some(Some(end)) => f(end, c.state == State::Started),
            _ => invalid!("port {} has no receive queue {queue}: {} are set up", self.name, c.rx.len()),
        }
    }

    pub(super) fn with_tx<T>(&self, queue: u16, f: impl FnOnce(&TxEnd, u32) -> Result<T>) -> Result<T> {
        let c = self.ctl();
        match c.tx.get(usize::from(queue)) {
            Some(Some((end, n_desc))) => f(end, *n_desc),
            _ => invalid!("port {} has no send queue {queue}: {} are set up", self.name, c.tx.len()),
        }
    }
}
