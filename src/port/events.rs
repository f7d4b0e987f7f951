//! Events: raised by devices, taken from an fd or by a callback on a control thread of ours.

use super::port::Port;
use crate::base::{Errno, Error, Result};
use crate::driver::{Event, EventSink, Link};
use crate::log_error;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use core::time::Duration;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

type Callback = Arc<dyn Fn(u16, Event) + Send + Sync>;

/// How often the control thread looks whether a link changed.
const LINK_PERIOD: Duration = Duration::from_millis(100);

pub(super) struct PortEvents {
    port: u16,
    /// For [`Port::take_events`], and for the callbacks.
    polled: AtomicU32,
    called: AtomicU32,
    /// The link as last reported: 1 down, 2 up.
    link: AtomicU32,
    callbacks: Mutex<Vec<Callback>>,
}

/// Readable while a port has events that nobody took.
struct Hub {
    fd: OwnedFd,
    wake: OwnedFd,
}

fn eventfd() -> Result<OwnedFd> {
    // SAFETY: eventfd returns a new descriptor or -1.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(Error::os("eventfd"));
    }
    // SAFETY: just made, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn signal(fd: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight readable bytes; a full counter (EAGAIN) is readable already.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), 8) };
}

fn clear(fd: &OwnedFd) {
    let mut v = [0u8; 8];
    // SAFETY: eight writable bytes; non-blocking.
    unsafe { libc::read(fd.as_raw_fd(), v.as_mut_ptr().cast(), 8) };
}

/// Somebody polls the descriptor: links are looked at also where there is no callback.
static WATCH_ALL: AtomicBool = AtomicBool::new(false);

static HUB: OnceLock<Hub> = OnceLock::new();

/// Made at the first call that has descriptors for it: one that fails is not the last word.
fn hub() -> Result<&'static Hub> {
    if HUB.get().is_none() {
        let _ = HUB.set(Hub { fd: eventfd()?, wake: eventfd()? });
    }
    HUB.get().ok_or_else(|| Error::new(Errno::NOMEM, "no descriptor for events"))
}

fn seen(link: Link) -> u32 {
    if link.up { 2 } else { 1 }
}

impl PortEvents {
    pub(super) fn new(port: u16, link: Link) -> Arc<PortEvents> {
        Arc::new(PortEvents {
            port,
            polled: AtomicU32::new(0),
            called: AtomicU32::new(0),
            link: AtomicU32::new(seen(link)),
            callbacks: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn sink(self: &Arc<PortEvents>) -> EventSink {
        let me = self.clone();
        EventSink::new(move |e| me.raise(e))
    }

    fn raise(&self, e: Event) {
        self.polled.fetch_or(e.bits(), AcqRel);
        self.called.fetch_or(e.bits(), AcqRel);
        if let Ok(h) = hub() {
            signal(&h.fd);
            signal(&h.wake);
        }
    }

    /// Raises LINK where the link is not as last seen.
    pub(super) fn check_link(&self, link: Link) {
        let now = seen(link);
        if self.link.swap(now, AcqRel) != now {
            self.raise(Event::LINK);
        }
    }

    /// The port is closed. A callback may hold a handle on it, which would keep its number for ever.
    pub(super) fn forget(&self) {
        let gone = core::mem::take(&mut *self.callbacks.lock().unwrap_or_else(|e| e.into_inner()));
        drop(gone); // Without the lock: what it captured may be anything.
    }

    fn call(&self) {
        let callbacks = self.callbacks.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if callbacks.is_empty() {
            return;
        }
        let e = Event::from_bits_truncate(self.called.swap(0, AcqRel));
        if !e.is_empty() {
            for c in callbacks {
                // The next callback, and every other port's, must not go with this one.
                if catch_unwind(AssertUnwindSafe(|| c(self.port, e))).is_err() {
                    log_error!("an event callback of port {} panicked", self.port);
                }
            }
        }
    }
}

/// A descriptor that is readable when some port has events to take. From the first call on, a control thread looks at every
/// port's link ten times a second. -errno where the kernel gives none.
pub fn events_fd() -> Result<RawFd> {
    WATCH_ALL.store(true, Release);
    control_thread()?;
    Ok(hub()?.fd.as_raw_fd())
}

impl Port {
    /// What happened since the last call. Clears the descriptor of [`events_fd`] when no port has more.
    pub fn take_events(&self) -> Event {
        self.inner().events.check_link(self.link());
        let e = Event::from_bits_truncate(self.inner().events.polled.swap(0, AcqRel));
        if let Ok(h) = hub() {
            clear(&h.fd);
            if Port::all().iter().any(|p| p.inner().events.polled.load(Acquire) != 0) {
                signal(&h.fd);
            }
        }
        e
    }

    /// Calls `f` with the port's number and its events, on a control thread. Links are looked at ten times a second.
    /// `f` may call anything but wait for another callback.
    pub fn on_event(&self, f: impl Fn(u16, Event) + Send + Sync + 'static) -> Result<()> {
        hub()?;
        self.inner().events.check_link(self.link());
        self.inner().events.callbacks.lock().unwrap_or_else(|e| e.into_inner()).push(Arc::new(f));
        control_thread()?;
        if let Ok(h) = hub() {
            signal(&h.wake); // Events that were raised before.
        }
        Ok(())
    }
}

fn control_thread() -> Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock().unwrap_or_else(|e| e.into_inner());
    if !*started {
        let h = hub()?;
        std::thread::Builder::new()
            .name("bl-control".into())
            .spawn(move || run(h))
            .map_err(|e| Error::from_io(&e, "control thread"))?;
        *started = true;
    }
    Ok(())
}

fn run(h: &'static Hub) {
    loop {
        let mut p = libc::pollfd { fd: h.wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut p, 1, LINK_PERIOD.as_millis() as i32) };
        clear(&h.wake);
        for port in Port::all() {
            let events = port.inner().events.clone();
            if WATCH_ALL.load(Acquire) || !events.callbacks.lock().unwrap_or_else(|e| e.into_inner()).is_empty() {
                events.check_link(port.link());
                drop(port); // A callback may close it.
                events.call();
            }
        }
    }
}
