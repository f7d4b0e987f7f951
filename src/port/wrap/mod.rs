//! A port around a port: devices that stand around a port's device and are not noticed by it.
//!
//! `trace` writes down every packet that passes, `fault` loses, spoils and delays them at a stated rate. Either is put
//! around a port before it is configured; several may be nested, and the last one is outermost. What a wrapper drops is
//! counted on the port as a driver's drop is, so that offered = received + the sum of drops holds as without it.
//!
//! ```
//! # use burstline::{driver::DevArgs, port::{Port, wrap}};
//! # let driver = &burstline::pmd::null::DRIVER;
//! let device = (driver.probe)(&DevArgs::parse("net_null0").unwrap()).unwrap();
//! let port = Port::attach("net_null0", driver, device).unwrap();
//! wrap::parse_and_wrap(&port, "fault,seed=7,rx_drop=0.01").unwrap();
//! let why = wrap::parse_and_wrap(&port, "fault,rx_drop=2").unwrap_err();
//! assert_eq!(why.to_string(), "fault: rx_drop='2' is no probability; allowed are 0 to 1");
//! # port.close().unwrap();
//! ```

mod fault;
mod trace;
/// The page on wrappers: its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/wrap.md")]
struct Page;

use super::Port;
use super::row::{NULL_TX, TxFns, null_rx};
use crate::base::Result;
use crate::driver::{
    DevArgs, Device, DeviceConfig, DeviceInfo, DeviceStats, EventSink, Link, RxCtx, RxEntry, RxQueue, TxCtx, TxEntry,
    TxQueue,
};
use crate::{fail, invalid};
use std::os::fd::RawFd;
use std::sync::Arc;

/// Puts the device that `spec` describes around the port's: `trace[,file=PATH][,bytes=N]`, or `fault` with any of
/// `seed=N rx_drop=P tx_drop=P rx_corrupt=P tx_full=P nombuf=P delay_us=N start_fail=N stop_fail=N`.
///
/// -EINVAL names the key, the value and what is allowed; -EBUSY once the port is configured; -errno where the file cannot
/// be made. On an error the port is as before.
pub fn parse_and_wrap(port: &Port, spec: &str) -> Result<()> {
    let args = DevArgs::parse(spec)?;
    let kind = match args.name.as_str() {
        "trace" => Kind::Trace(Arc::new(trace::Trace::new(&args)?)),
        "fault" => Kind::Fault(Arc::new(fault::Plan::new(&args)?)),
        other => return invalid!("'{other}' is no wrapper; there are trace and fault"),
    };
    port.wrap(|inner| Ok(Box::new(Around { inner, kind, starts: 0, stops: 0 })))
}

enum Kind {
    Trace(Arc<trace::Trace>),
    Fault(Arc<fault::Plan>),
}

/// Everything but the queues is the inner device's.
struct Around {
    inner: Box<dyn Device>,
    kind: Kind,
    starts: u32,
    stops: u32,
}

impl Device for Around {
    fn rx_queue(&mut self, queue: u16, n_desc: u32, mut ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        let port = ctx.port();
        Ok(match &self.kind {
            Kind::Trace(t) => Box::new(trace::TraceRx::new(t, port, queue, self.inner.rx_queue(queue, n_desc, ctx)?)),
            Kind::Fault(p) => {
                let counters = ctx.split_counters();
                Box::new(fault::FaultRx::new(p, queue, self.inner.rx_queue(queue, n_desc, ctx)?, counters))
            }
        })
    }

    fn tx_queue(&mut self, queue: u16, n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        let (port, counters) = (ctx.port(), ctx.shared_counters());
        let inner = self.inner.tx_queue(queue, n_desc, ctx)?;
        Ok(match &self.kind {
            Kind::Trace(t) => Box::new(trace::TraceTx::new(t, port, queue, inner)),
            Kind::Fault(p) => Box::new(fault::FaultTx::new(p, queue, inner, counters)),
        })
    }

    fn start(&mut self) -> Result<()> {
        if let Kind::Fault(p) = &self.kind
            && self.starts < p.start_fail
        {
            self.starts += 1;
            return fail!(IO, "fault: start {} of {} that fail", self.starts, p.start_fail);
        }
        self.inner.start()
    }

    fn stop(&mut self) -> Result<()> {
        // The inner device stops in any case: a stop that fails is reported, not undone.
        let stopped = self.inner.stop();
        if let Kind::Fault(p) = &self.kind
            && self.stops < p.stop_fail
        {
            self.stops += 1;
            return fail!(IO, "fault: stop {} of {} that fail", self.stops, p.stop_fail);
        }
        stopped
    }

    fn xstats(&mut self, out: &mut Vec<(String, u64)>) {
        self.inner.xstats(out);
        match &self.kind {
            Kind::Trace(t) => t.xstats(out),
            Kind::Fault(p) => p.xstats(out),
        }
    }

    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }
    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        self.inner.configure(c)
    }
    fn rx_held(&self, n_desc: u32) -> u32 {
        self.inner.rx_held(n_desc)
    }
    fn close(&mut self) {
        self.inner.close();
    }
    fn link(&mut self) -> Link {
        self.inner.link()
    }
    fn set_link(&mut self, up: bool) -> Result<()> {
        self.inner.set_link(up)
    }
    fn mac(&mut self) -> [u8; 6] {
        self.inner.mac()
    }
    fn set_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        self.inner.set_mac(mac)
    }
    fn mtu(&mut self) -> u32 {
        self.inner.mtu()
    }
    fn set_mtu(&mut self, mtu: u32) -> Result<()> {
        self.inner.set_mtu(mtu)
    }
    fn promiscuous(&mut self) -> bool {
        self.inner.promiscuous()
    }
    fn set_promiscuous(&mut self, on: bool) -> Result<()> {
        self.inner.set_promiscuous(on)
    }
    fn stats(&mut self) -> DeviceStats {
        self.inner.stats()
    }
    fn set_events(&mut self, sink: EventSink) {
        self.inner.set_events(sink);
    }
    fn rx_fd(&self, queue: u16) -> Option<RawFd> {
        self.inner.rx_fd(queue)
    }
}

/// A receive queue inside another.
struct InnerRx {
    q: Box<dyn RxQueue>,
    live: RxEntry,
}

/// A send queue inside another.
struct InnerTx {
    q: Box<dyn TxQueue>,
    live: TxEntry,
}

// SAFETY: `live` leads to `q`, which is Send, or to nothing.
unsafe impl Send for InnerRx {}
// SAFETY: as above.
unsafe impl Send for InnerTx {}

impl InnerRx {
    fn new(q: Box<dyn RxQueue>) -> InnerRx {
        InnerRx { q, live: RxEntry { burst: null_rx, queue: core::ptr::null_mut() } }
    }

    /// Asked whenever the outer queue is: what was asked of the box meanwhile (its context) ended the old entry.
    fn refresh(&mut self) {
        self.live = self.q.entry();
    }

    fn burst(&mut self, out: &mut [core::mem::MaybeUninit<crate::mbuf::Mbuf>]) -> usize {
        let room = out.len().min(u16::MAX.into()) as u16;
        // SAFETY: `live` was refreshed by the outer queue's entry, and the box was not touched since; the outer queue's
        // thread is the inner one's; an Mbuf is a pointer.
        let n = unsafe { (self.live.burst)(self.live.queue, out.as_mut_ptr().cast(), room) };
        n.min(room).into()
    }
}

impl InnerTx {
    fn new(q: Box<dyn TxQueue>) -> InnerTx {
        let TxFns { burst, more, flush } = NULL_TX;
        InnerTx { q, live: TxEntry { burst, more, flush, queue: core::ptr::null_mut() } }
    }

    fn refresh(&mut self) {
        self.live = self.q.entry();
    }

    /// Offers the next `n` packets; `more`: the inner queue is told that others follow. Returns how many it took.
    fn offer(&mut self, batch: &mut crate::driver::TxBatch<'_>, n: usize, more: bool) -> usize {
        let f = if more { self.live.more } else { self.live.burst };
        // SAFETY: as in `InnerRx::burst`.
        unsafe { batch.offer(n, f, self.live.queue) }
    }

    fn flush(&mut self, cause: crate::driver::FlushCause) -> u32 {
        // SAFETY: as in `InnerRx::burst`.
        unsafe { (self.live.flush)(self.live.queue, cause as u8) }
    }
}
