//! Receive from files.

use super::feed::{Feed, Peek};
use super::schedule::Schedule;
use crate::driver::flags::RX_TIMESTAMP;
use crate::driver::*;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex};

/// Variants: a file in memory whose records all fit into a room, as fast as it goes; anything else.
const REPLAY: u8 = 0;
const FILE: u8 = 1;

/// Where a feed or a sink waits between the queues that use it.
pub(super) type Parked<T> = Arc<Mutex<Option<T>>>;

pub(super) fn parked<T>(v: T) -> Parked<T> {
    Arc::new(Mutex::new(Some(v)))
}

pub(super) fn unpark<T>(p: &Parked<T>) -> Result<T> {
    match p.lock().unwrap_or_else(|e| e.into_inner()).take() {
        Some(v) => Ok(v),
        None => fail!(BUSY, "an older queue still has the file"),
    }
}

/// The inputs of a port that have not ended: the last one raises the event.
pub(super) struct Ends {
    pub running: AtomicU32,
    pub sink: EventSink,
}

pub(super) struct FileRx {
    ctx: RxCtx,
    feed: Option<Feed>,
    home: Parked<Feed>,
    schedule: Schedule,
    /// What `schedule` was when the port was started.
    fresh: Schedule,
    /// CLOCK_MONOTONIC at the first call after the start; due times count from there.
    since: Option<u64>,
    /// When the record at the front is due.
    due: Option<u64>,
    scatter: bool,
    ended: bool,
    broken: u32,
    ends: Arc<Ends>,
}

impl FileRx {
    pub fn new(ctx: RxCtx, home: Parked<Feed>, schedule: Schedule, scatter: bool, ends: Arc<Ends>) -> Result<FileRx> {
        let feed = unpark(&home)?;
        ends.running.fetch_add(1, AcqRel);
        Ok(FileRx {
            ctx,
            feed: Some(feed),
            home,
            fresh: schedule.clone(),
            schedule,
            since: None,
            due: None,
            scatter,
            ended: false,
            broken: 0,
            ends,
        })
    }

    /// What stands in front, if it may be handed out now.
    #[inline]
    fn ready(&mut self, now: &mut Option<u64>) -> bool {
        loop {
            let Some(feed) = &mut self.feed else { return false };
            match feed.peek() {
                Peek::Record => break,
                Peek::NotYet => return false,
                Peek::Again => self.schedule.rewind(),
                Peek::End => {
                    self.end(None);
                    return false;
                }
                Peek::Broken(e) => {
                    self.end(Some(e));
                    return false;
                }
            }
        }
        if self.schedule.is_asap() {
            return true;
        }
        let Some(feed) = &self.feed else { return false };
        let due = match self.due {
            Some(due) => due,
            None => {
                let (_, ts_ns, data) = feed.record();
                *self.due.insert(self.schedule.due(ts_ns, data.len()))
            }
        };
        // One clock read a burst.
        let now = *now.get_or_insert_with(time::monotonic_ns);
        let since = *self.since.get_or_insert(now);
        due <= now.saturating_sub(since)
    }

    /// The record in front is done with.
    #[inline]
    fn advance(&mut self) {
        self.due = None;
        if let Some(feed) = &mut self.feed {
            feed.advance();
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, broken: Option<Error>) {
        if self.ended {
            return;
        }
        self.ended = true;
        if let Some(e) = broken {
            self.ctx.counters().error(1);
            self.broken += 1;
            log_warn!("port {} receive queue {}: {e}", self.ctx.port(), self.ctx.queue());
        }
        if self.ends.running.fetch_sub(1, AcqRel) == 1 {
            self.ends.sink.raise(Event::END_OF_INPUT);
        }
    }

    /// A packet of one segment.
    #[inline]
    fn one(&mut self) -> Option<Mbuf> {
        let mut m = self.ctx.alloc_one()?;
        let (ts, _, data) = self.feed.as_ref()?.record();
        fill(&mut m, data, ts);
        Some(m)
    }

    /// A packet of as many segments as it takes; None where the pool has too few.
    #[cold]
    #[inline(never)]
    fn chain(&mut self) -> Option<Mbuf> {
        let room = usize::from(self.ctx.pool().data_room());
        let (ts, _, data) = self.feed.as_ref()?.record();
        let mut head: Option<Mbuf> = None;
        for part in data.chunks(room.max(1)) {
            let mut seg = self.ctx.alloc_one()?;
            fill(&mut seg, part, ts);
            match &mut head {
                None => head = Some(seg),
                Some(h) => h.try_chain(seg).ok()?,
            }
        }
        head
    }
}

/// Writes `data`, which fits into the room, and its stamp into a fresh packet.
#[inline(always)]
fn fill(m: &mut Mbuf, data: &[u8], ts_ns: u64) {
    let p = m.as_ptr();
    // SAFETY: the packet is fresh and ours alone: its room has data_room bytes behind data_off, and the length is cut to
    // what there is. A record is never in a packet's room.
    unsafe {
        let len = data.len().min(usize::from((*p).buf_len) - usize::from((*p).data_off).min(usize::from((*p).buf_len)));
        core::ptr::copy_nonoverlapping(data.as_ptr(), RawMbuf::data_ptr(p), len);
        (*p).data_len = len as u16;
        (*p).pkt_len = len as u32;
        (*p).timestamp = ts_ns;
        (*p).ol_flags = RX_TIMESTAMP;
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<REPLAY> for FileRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        let n = self.ctx.alloc(out, 0);
        if n < out.len() {
            self.ctx.counters().nombuf_wait();
        }
        let Some(m) = self.feed.as_mut().and_then(Feed::memory) else { return self.nothing(out, n) };
        let mut bytes = 0u64;
        for o in out.iter_mut().take(n) {
            if m.next >= m.entries.len() {
                m.next = 0;
                m.shift = m.shift.saturating_add(m.span);
            }
            let e = m.entries.get(m.next).copied().unwrap_or_default();
            m.next += 1;
            let data = m.bytes.get(e.at as usize..e.at as usize + e.len as usize).unwrap_or(&[]);
            bytes += data.len() as u64;
            // SAFETY: `alloc` wrote the first `n`.
            fill(unsafe { o.assume_init_mut() }, data, e.ts_ns.saturating_add(m.shift));
        }
        self.ctx.counters().received(n as u64, bytes);
        n
    }
}

impl FileRx {
    /// Gives the packets back: there is nothing to put into them.
    #[cold]
    fn nothing(&mut self, out: &mut [MaybeUninit<Mbuf>], n: usize) -> usize {
        for o in out.iter_mut().take(n) {
            // SAFETY: the first `n` are packets of `alloc`, read once.
            self.ctx.give_back(unsafe { o.assume_init_read() });
        }
        0
    }
}

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot<FILE> for FileRx {
    fn burst(&mut self, out: &mut [MaybeUninit<Mbuf>]) -> usize {
        if self.ended {
            return 0;
        }
        let room = usize::from(self.ctx.pool().data_room());
        let (mut n, mut bytes, mut now) = (0, 0u64, None);
        while let Some(o) = out.get_mut(n) {
            if !self.ready(&mut now) {
                break;
            }
            let len = self.feed.as_ref().map_or(0, |f| f.record().2.len());
            let m = if len <= room {
                self.one()
            } else if self.scatter && len.div_ceil(room.max(1)) <= self.ctx.pool().size() as usize {
                self.chain()
            } else {
                // Too long for a room, or for the whole pool.
                self.ctx.counters().error(1);
                self.advance();
                continue;
            };
            let Some(m) = m else {
                // The record waits; nothing is lost.
                self.ctx.counters().nombuf_wait();
                break;
            };
            o.write(m);
            n += 1;
            bytes += len as u64;
            self.advance();
        }
        self.ctx.counters().received(n as u64, bytes);
        n
    }
}

impl RxQueue for FileRx {
    fn entry(&mut self) -> RxEntry {
        let room = u32::from(self.ctx.pool().data_room());
        let asap = self.schedule.is_asap();
        match self.feed.as_mut().and_then(Feed::memory) {
            Some(m) if asap && m.longest <= room => rx_entry::<REPLAY, _>(self),
            _ => rx_entry::<FILE, _>(self),
        }
    }

    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.ctx
    }

    fn start(&mut self) -> Result<()> {
        let Some(feed) = &mut self.feed else { return fail!(NODEV, "no file") };
        feed.restart()?;
        if let Some(e) = feed.memory().and_then(|m| m.broken.take()) {
            log_warn!("port {} receive queue {}: {e}", self.ctx.port(), self.ctx.queue());
            self.ctx.counters().error(1);
        }
        self.schedule = self.fresh.clone();
        (self.since, self.due) = (None, None);
        if core::mem::take(&mut self.ended) {
            self.ends.running.fetch_add(1, AcqRel);
        }
        Ok(())
    }
}

impl Drop for FileRx {
    fn drop(&mut self) {
        if !self.ended {
            self.ends.running.fetch_sub(1, AcqRel);
        }
        *self.home.lock().unwrap_or_else(|e| e.into_inner()) = self.feed.take();
    }
}

/// A receive queue without a source.
pub(super) struct NoRx(pub RxCtx);

// SAFETY: it returns how many packets it wrote, from the front.
unsafe impl RxHot for NoRx {
    fn burst(&mut self, _out: &mut [MaybeUninit<Mbuf>]) -> usize {
        0
    }
}

impl RxQueue for NoRx {
    fn entry(&mut self) -> RxEntry {
        rx_entry::<0, _>(self)
    }
    fn ctx(&mut self) -> &mut RxCtx {
        &mut self.0
    }
}
