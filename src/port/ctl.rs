//! What a port's control side does under its lock: set-up checks, start, stop, and taking the queues out.

use super::poll_group::rx_echo;
use super::port::Ctl;
use super::{STOP_LIMIT, State};
use crate::base::Result;
use crate::{fail, invalid, log_warn};
use core::sync::atomic::Ordering::*;

impl Ctl {
    pub(super) fn check_setup(&self, name: &str, what: &str, queue: u16, n: usize, n_desc: u32) -> Result<u32> {
        match self.state {
            State::Configured | State::Stopped => {}
            s => return s.refuse(name, "queues are set up between configure and start"),
        }
        if usize::from(queue) >= n {
            return invalid!("port {name}: {what} queue {queue}; {n} are configured");
        }
        let (lo, hi, usual) = self.info.desc;
        if n_desc != 0 && !(lo..=hi).contains(&n_desc) {
            return invalid!(
                "port {name}: {n_desc} descriptors for {what} queue {queue}; the device takes {lo} to {hi}"
            );
        }
        Ok(if n_desc == 0 { usual } else { n_desc })
    }

    /// Takes out a receive queue that is set up again.
    pub(super) fn rx_free(&mut self, queue: u16, name: &str) -> Result<()> {
        if let Some(end) = &self.rx[usize::from(queue)] {
            if end.handed_out.load(Acquire) || !end.group.load(Acquire).is_null() {
                return fail!(
                    BUSY,
                    "port {name}: receive queue {queue} is in use: its handle is out, or it is in a poll group"
                );
            }
            self.totals.keep_rx(&end.counters);
            end.row.shut(STOP_LIMIT);
            self.rx[usize::from(queue)] = None;
        }
        Ok(())
    }

    pub(super) fn tx_free(&mut self, queue: u16, name: &str) -> Result<()> {
        if let Some((end, _)) = &self.tx[usize::from(queue)] {
            if end.handed_out.load(Acquire) || !end.group.load(Acquire).is_null() {
                return fail!(
                    BUSY,
                    "port {name}: send queue {queue} is in use: its handle is out, or it is in a poll group"
                );
            }
            self.totals.keep_tx(&end.counters);
            end.row.shut(STOP_LIMIT);
            self.tx[usize::from(queue)] = None;
        }
        Ok(())
    }

    pub(super) fn check_no_handles(&self, name: &str) -> Result<()> {
        let rx = self.rx.iter().flatten().find(|e| e.handed_out.load(Acquire) || !e.group.load(Acquire).is_null());
        let tx = self.tx.iter().flatten().find(|(e, _)| e.handed_out.load(Acquire) || !e.group.load(Acquire).is_null());
        let used = rx.map(|e| ("receive", e.queue)).or(tx.map(|(e, _)| ("send", e.queue)));
        if let Some((what, queue)) = used {
            return fail!(
                BUSY,
                "port {name}: {what} queue {queue} is in use: its handle is out, or it is in a poll group"
            );
        }
        Ok(())
    }

    pub(super) fn start(&mut self) -> Result<()> {
        let mut failed = None;
        for e in self.rx.iter().flatten() {
            failed = failed.or(e.lock().q.start().err());
        }
        for (e, _) in self.tx.iter().flatten() {
            failed = failed.or(e.lock().q.start().err());
        }
        if failed.is_none() {
            failed = self.dev.start().err();
        }
        if let Some(e) = failed {
            for e in self.rx.iter().flatten() {
                e.lock().q.stop();
            }
            for (e, _) in self.tx.iter().flatten() {
                e.lock().q.stop(core::time::Duration::ZERO);
            }
            return Err(e);
        }
        // Send before receive: a packet that comes in finds its way out.
        for (e, _) in self.tx.iter().flatten() {
            let mut i = e.lock();
            i.started = true;
            e.publish(&mut i);
        }
        for e in self.rx.iter().flatten() {
            e.count_for_lap(true);
            let mut i = e.lock();
            i.started = true;
            e.publish(&mut i);
        }
        self.state = State::Started;
        Ok(())
    }

    /// No burst runs from the return on; or -EBUSY, and all is as before.
    pub(super) fn shut_rows(&mut self) -> Result<()> {
        // First, so that a queue that is just being bound does not come alive again.
        self.set_started(false);
        let rx = self.rx.iter().flatten().position(|e| !e.shut(STOP_LIMIT));
        let tx = match rx {
            Some(_) => None,
            None => self.tx.iter().flatten().position(|(e, _)| !e.shut(STOP_LIMIT)),
        };
        let (n_rx, n_tx, what, queue) = match (rx, tx) {
            (Some(q), _) => (q, 0, "receive", q),
            (None, Some(q)) => (self.rx.len(), q, "send", q),
            (None, None) => return Ok(()),
        };
        self.set_started(true);
        // Those that were shut. The one that would not has its functions back, and a thread inside: its queue is not touched.
        for e in self.rx.iter().flatten().take(n_rx) {
            e.publish(&mut e.lock());
        }
        for (e, _) in self.tx.iter().flatten().take(n_tx) {
            e.publish(&mut e.lock());
        }
        fail!(BUSY, "a thread stayed inside a burst on {what} queue {queue} for over {STOP_LIMIT:?}")
    }

    pub(super) fn set_started(&self, on: bool) {
        for e in self.rx.iter().flatten() {
            e.lock().started = on;
        }
        for (e, _) in self.tx.iter().flatten() {
            e.lock().started = on;
        }
    }

    pub(super) fn stop(&mut self) -> Result<u32> {
        self.shut_rows()?;
        for e in self.rx.iter().flatten() {
            e.count_for_lap(false);
        }
        let mut undrained = 0;
        for (e, _) in self.tx.iter().flatten() {
            let mut i = e.lock();
            let n = i.q.stop(STOP_LIMIT);
            i.q.ctx().stopped();
            e.counters.undrained(n.into());
            undrained += n;
        }
        let stopped = self.dev.stop();
        for e in self.rx.iter().flatten() {
            e.lock().q.stop();
        }
        self.state = State::Stopped;
        if let Err(e) = stopped {
            log_warn!("device stop: {e}");
        }
        Ok(undrained)
    }

    /// Takes every queue out. The port does not run.
    pub(super) fn drop_queues(&mut self) {
        for e in self.rx.drain(..).flatten() {
            self.totals.keep_rx(&e.counters);
            // A grouped row leads to the end until here, and to the group from here on: its thread may still poll it.
            let grouped = !e.group.load(Acquire).is_null();
            if !e.row.shut(STOP_LIMIT) {
                // A thread is stuck in a null call: keep the memory it may look at.
                core::mem::forget(e);
            } else if grouped {
                e.row.set(rx_echo, e.echo.load(Acquire).cast());
            }
        }
        for (e, _) in self.tx.drain(..).flatten() {
            self.totals.keep_tx(&e.counters);
            if !e.row.shut(STOP_LIMIT) {
                core::mem::forget(e);
            }
        }
    }
}
