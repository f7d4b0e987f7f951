//! Cables: two ports that share rings by a name.
//!
//! A cable has two seats. Its rings belong to the cable, so that either port may go and come back while the other runs:
//!
//! | who leaves | what is in the rings |
//! |---|---|
//! | the receiver of a ring | freed, and `imissed` of the leaving port |
//! | the sender of a ring, its receiver stays | stays, and is received |
//! | the last of the two | all that is left is freed, and `imissed` of this port |
//!
//! What a sender puts in while its peer is leaving is found by the next port on that seat, or at the last close.

use super::{MAX_QUEUES, drain, new_ring};
use crate::driver::ring::Ring;
use crate::driver::{Errno, fail};
use crate::driver::{Error, Event, EventSink, Result, invalid};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

struct Link {
    name: String,
    size: u32,
    carrier: Arc<AtomicBool>,
    seats: [Option<Sitter>; 2],
    /// By the seat that sends.
    rings: [Vec<Option<Arc<Ring>>>; 2],
}

struct Sitter {
    port: String,
    up: bool,
    events: EventSink,
}

static LINKS: Mutex<Vec<Link>> = Mutex::new(Vec::new());

fn links() -> MutexGuard<'static, Vec<Link>> {
    LINKS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Link {
    /// Up where both seats are taken and neither was set down. Tells both ports of a change.
    fn look(&self) {
        let up = self.seats.iter().all(|s| s.as_ref().is_some_and(|s| s.up));
        if self.carrier.swap(up, Relaxed) != up {
            for s in self.seats.iter().flatten() {
                s.events.raise(Event::LINK);
            }
        }
    }

    fn drain(&self, sender: usize) -> u64 {
        self.rings[sender].iter().flatten().map(|r| drain(r)).sum()
    }
}

/// One end of a cable, held by a device.
pub(super) struct Seat {
    link: String,
    side: usize,
}

impl Seat {
    /// Sits down at a cable, which is made where there is none of that name. -EBUSY with the names of the two that sit
    /// there, -EINVAL for another size than the first port's.
    pub fn take(name: &str, size: u32, port: &str) -> Result<(Seat, Arc<AtomicBool>)> {
        let mut all = links();
        let at = match all.iter().position(|l| l.name == name) {
            Some(at) => at,
            None => {
                all.push(Link {
                    name: name.into(),
                    size,
                    carrier: Arc::new(AtomicBool::new(false)),
                    seats: [None, None],
                    rings: [vec![None; MAX_QUEUES], vec![None; MAX_QUEUES]],
                });
                all.len() - 1
            }
        };
        let link = &mut all[at];
        let Some(side) = link.seats.iter().position(Option::is_none) else {
            let [a, b] = link.seats.each_ref().map(|s| s.as_ref().map_or("", |s| &s.port));
            return fail!(BUSY, "{port}: link '{name}' has its two ports already: {a} and {b}");
        };
        if link.size != size {
            let first = link.seats.iter().flatten().next().map_or("", |s| &s.port);
            return invalid!("{port}: size={size}, but link '{name}' has rings of {}, as {first} set it", link.size);
        }
        link.seats[side] = Some(Sitter { port: port.into(), up: true, events: EventSink::default() });
        link.look();
        Ok((Seat { link: name.into(), side }, link.carrier.clone()))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Link) -> Result<T>) -> Result<T> {
        match links().iter_mut().find(|l| l.name == self.link) {
            Some(l) => f(l),
            None => Err(Error::new(Errno::NODEV, format!("link '{}' is gone", self.link))),
        }
    }

    /// The ring of queue `i` to receive from, or to send into.
    pub fn ring(&self, i: usize, receive: bool) -> Result<Arc<Ring>> {
        let sender = if receive { 1 - self.side } else { self.side };
        self.with(|l| {
            let Some(place) = l.rings[sender].get_mut(i) else {
                return invalid!("link '{}': queue {i}; the limit is {MAX_QUEUES}", l.name);
            };
            if let Some(r) = place {
                return Ok(r.clone());
            }
            Ok(place.insert(new_ring(&format!("{}_{sender}_{i}", l.name), l.size)?).clone())
        })
    }

    fn sitter(&self, f: impl FnOnce(&mut Sitter)) {
        let _ = self.with(|l| {
            if let Some(s) = &mut l.seats[self.side] {
                f(s);
            }
            l.look();
            Ok(())
        });
    }

    pub fn set_up(&self, up: bool) {
        self.sitter(|s| s.up = up);
    }

    pub fn set_events(&self, sink: EventSink) {
        self.sitter(|s| s.events = sink);
    }

    /// Stands up, its queues being gone. Returns how many packets were freed that nobody will receive.
    pub fn leave(self) -> u64 {
        let mut all = links();
        let Some(at) = all.iter().position(|l| l.name == self.link) else { return 0 };
        let link = &mut all[at];
        link.seats[self.side] = None;
        link.look();
        let mut left = link.drain(1 - self.side);
        if link.seats.iter().all(Option::is_none) {
            left += link.drain(self.side);
            all.swap_remove(at);
        }
        left
    }
}
