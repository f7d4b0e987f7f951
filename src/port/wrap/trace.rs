//! `trace`: one line a packet, for a person to read.
//!
//! `<ns since the epoch> <port> <queue> rx|tx <bytes> <hex of the first bytes>[..]`; a packet whose chain is broken has
//! `bad` in place of its bytes. A send line stands for a packet that the device took.

use super::{InnerRx, InnerTx};
use crate::base::{Error, Result, time};
use crate::driver::{
    DevArgs, FlushCause, RxCtx, RxEntry, RxHot, RxQueue, TxBatch, TxCtx, TxEntry, TxHot, TxQueue, rx_entry, tx_entry,
};
use crate::mbuf::{Mbuf, check};
use crate::{log_debug, log_warn};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};

const KEYS: &[&str] = &["file", "bytes"];
/// Ethernet, IPv4 or IPv6 and TCP fit.
const DEFAULT_BYTES: u64 = 64;
/// A queue keeps its lines to itself up to here.
const SPILL: usize = 32 * 1024;
/// Packets that are written down before the device is asked whether it takes them.
const CHUNK: usize = 64;

/// Where the lines of all queues of a port go.
pub(super) struct Trace {
    bytes: usize,
    /// None: the log, at debug level.
    file: Option<Mutex<File>>,
    lines: AtomicU64,
    lost: AtomicU64,
    complained: AtomicBool,
}

impl Trace {
    pub fn new(args: &DevArgs) -> Result<Trace> {
        args.check_keys(KEYS)?;
        let bytes = args.number("bytes", 0..=65535)?.unwrap_or(DEFAULT_BYTES) as usize;
        let file = match args.str("file")? {
            Some(path) => {
                let f = File::create(path).map_err(|e| Error::from_io(&e, format!("trace: file '{path}'")))?;
                Some(Mutex::new(f))
            }
            None => None,
        };
        Ok(Trace { bytes, file, lines: AtomicU64::new(0), lost: AtomicU64::new(0), complained: AtomicBool::new(false) })
    }

    pub fn xstats(&self, out: &mut Vec<(String, u64)>) {
        out.push(("trace_lines".into(), self.lines.load(Relaxed)));
        out.push(("trace_lines_lost".into(), self.lost.load(Relaxed)));
    }

    /// Writes whole lines.
    fn write(&self, text: &[u8]) {
        let n = text.iter().filter(|&&c| c == b'\n').count() as u64;
        let Some(file) = &self.file else {
            String::from_utf8_lossy(text).lines().for_each(|line| log_debug!("{line}"));
            self.lines.fetch_add(n, Relaxed);
            return;
        };
        match file.lock().unwrap_or_else(|e| e.into_inner()).write_all(text) {
            Ok(()) => {
                self.lines.fetch_add(n, Relaxed);
            }
            Err(e) => {
                self.lost.fetch_add(n, Relaxed);
                if !self.complained.swap(true, Relaxed) {
                    log_warn!("trace: {e}; lines are lost (xstat trace_lines_lost)");
                }
            }
        }
    }
}

/// A queue's lines on their way.
struct Recorder {
    to: Arc<Trace>,
    port: u16,
    queue: u16,
    way: &'static str,
    buf: Vec<u8>,
}

impl Recorder {
    fn new(to: &Arc<Trace>, port: u16, queue: u16, way: &'static str) -> Recorder {
        Recorder { to: to.clone(), port, queue, way, buf: Vec::with_capacity(2 * SPILL) }
    }

    #[inline(never)]
    fn record(&mut self, ns: u64, m: &Mbuf) {
        let len = m.pkt_len();
        // Writing to a Vec does not fail.
        let _ = write!(self.buf, "{ns} {} {} {} {len} ", self.port, self.queue, self.way);
        // SAFETY: we look at a packet that is in our hands.
        if !unsafe { check::is_sound(m.as_ptr()) } {
            self.buf.extend_from_slice(b"bad\n");
            return;
        }
        let (wanted, mut at, mut part) = (len.min(self.to.bytes), 0, [0u8; 64]);
        while at < wanted {
            let n = part.len().min(wanted - at);
            let part = &mut part[..n];
            if m.read(at, part).is_err() {
                break;
            }
            for b in part.iter() {
                let hex = |v: u8| if v < 10 { b'0' + v } else { b'a' + v - 10 };
                self.buf.extend_from_slice(&[hex(b >> 4), hex(b & 15)]);
            }
            at += n;
        }
        self.buf.extend_from_slice(if wanted < len { b"..\n" } else { b"\n" });
    }

    fn spill_at(&mut self, limit: usize) {
        if self.buf.len() > limit {
            self.to.write(&self.buf);
            self.buf.clear();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.spill_at(0);
    }
}

pub(super) struct TraceRx {
    inner: InnerRx,
    rec: Recorder,
}

impl TraceRx {
    pub fn new(to: &Arc<Trace>, port: u16, queue: u16, q: Box<dyn RxQueue>) -> TraceRx {
        TraceRx { inner: InnerRx::new(q), rec: Recorder::new(to, port, queue, "rx") }
    }
}

impl RxQueue for TraceRx {
    fn entry(&mut self) -> RxEntry {
        self.inner.refresh();
        rx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut RxCtx {
        self.inner.q.ctx()
    }
    fn start(&mut self) -> Result<()> {
        self.inner.q.start()
    }
    fn stop(&mut self) {
        self.inner.q.stop();
        self.rec.spill_at(0);
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot for TraceRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let n = self.inner.burst(out);
        if n != 0 {
            let now = time::realtime_ns();
            for m in out.iter().take(n) {
                // SAFETY: the inner queue wrote the first `n`.
                self.rec.record(now, unsafe { m.assume_init_ref() });
            }
            self.rec.spill_at(SPILL);
        }
        n
    }
}

pub(super) struct TraceTx {
    inner: InnerTx,
    rec: Recorder,
}

impl TraceTx {
    pub fn new(to: &Arc<Trace>, port: u16, queue: u16, q: Box<dyn TxQueue>) -> TraceTx {
        TraceTx { inner: InnerTx::new(q), rec: Recorder::new(to, port, queue, "tx") }
    }
}

impl TxQueue for TraceTx {
    fn entry(&mut self) -> TxEntry {
        self.inner.refresh();
        tx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut TxCtx {
        self.inner.q.ctx()
    }
    fn start(&mut self) -> Result<()> {
        self.inner.q.start()
    }
    fn stop(&mut self, limit: Duration) -> u32 {
        let left = self.inner.q.stop(limit);
        self.rec.spill_at(0);
        left
    }
}

impl TxHot for TraceTx {
    fn burst<const MORE: bool>(&mut self, batch: &mut TxBatch<'_>) {
        let now = time::realtime_ns();
        loop {
            // A packet is gone once it is taken: its line is written before, and taken out again where it was not.
            let n = batch.len().min(CHUNK);
            let mut ends = [self.rec.buf.len(); CHUNK + 1];
            for (m, end) in batch.pkts().iter().zip(ends.iter_mut().skip(1)).take(n) {
                self.rec.record(now, m);
                *end = self.rec.buf.len();
            }
            let last = n == batch.len();
            let took = self.inner.offer(batch, n, MORE || !last);
            self.rec.buf.truncate(ends.get(took).copied().unwrap_or(0));
            self.rec.spill_at(SPILL);
            if last || took != n {
                return;
            }
        }
    }

    fn flush(&mut self, cause: FlushCause) -> u32 {
        self.inner.flush(cause)
    }
}
