//! What a port says outside its bursts.

use crate::bench::*;
use crate::rigs::{Ask, each};
use crate::support::run::wait_until;
use burstline::driver::{Caps, Event};
use burstline::port::{Port, State, events_fd};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex};

/// Events of one port since `seen` was made.
fn listen(port: &Port) -> Arc<AtomicU32> {
    let seen = Arc::new(AtomicU32::new(0));
    let s = seen.clone();
    let id = port.id();
    port.on_event(move |p, e| {
        assert_eq!(p, id);
        s.fetch_or(e.bits(), AcqRel);
    })
    .unwrap();
    seen
}

fn has(seen: &AtomicU32, e: Event) -> bool {
    wait_until(ARRIVES, || Event::from_bits_truncate(seen.load(Acquire)).contains(e))
}

fn readable(fd: i32) -> bool {
    let mut p = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut p, 1, 5000) == 1 }
}

#[test]
fn a_change_of_the_link_is_told_to_callbacks_and_to_those_who_poll() {
    each(|rig| {
        let b = Bench::plain(rig);
        if !b.info.caps.contains(Caps::SET_LINK) {
            b.end();
            return;
        }
        assert!(wait_until(ARRIVES, || b.port.link().up));
        let seen = listen(&b.port);
        b.port.take_events();
        seen.store(0, Release);
        b.port.set_link(false).unwrap();
        assert!(has(&seen, Event::LINK), "callback");
        assert!(readable(events_fd().unwrap()), "descriptor");
        assert!(wait_until(ARRIVES, || b.port.take_events().contains(Event::LINK)), "taken");
        seen.store(0, Release);
        b.port.set_link(true).unwrap();
        assert!(has(&seen, Event::LINK), "and up again");
        b.end();
    });
}

#[test]
fn the_first_change_of_a_link_is_told_to_one_who_never_asked_before() {
    each(|rig| {
        let b = Bench::plain(rig);
        // A kernel's interface needs a moment to come up; that may be an event of its own.
        if b.info.caps.contains(Caps::SET_LINK) && b.info.if_name.is_none() {
            b.port.set_link(false).unwrap();
            assert_eq!(b.port.take_events(), Event::LINK);
            assert_eq!(b.port.take_events(), Event::empty(), "once");
        }
        b.end();
    });
}

#[test]
fn the_end_of_an_input_is_told_and_the_port_goes_on() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 20, ..Ask::default() });
        if b.info.caps.contains(Caps::FINITE_INPUT) {
            let seen = listen(&b.port);
            assert_eq!(b.receive(20, 8).len(), 20);
            for _ in 0..3 {
                assert!(rx(b.id(), 0, 8).is_empty());
            }
            assert!(has(&seen, Event::END_OF_INPUT));
            assert!(b.port.take_events().contains(Event::END_OF_INPUT));
            assert!(b.port.link().up, "the link stays up");
            let mut v = packets(&b.pool, 5, 64);
            assert_eq!(b.send(&mut v), 5, "send goes on");
            assert_eq!(b.port.stats().oerrors, 0);
        } else {
            drop(b.receive(20, 8));
            assert!(!b.port.take_events().contains(Event::END_OF_INPUT));
        }
        b.end();
    });
}

#[test]
fn a_callback_may_close_its_port() {
    each(|rig| {
        let b = Bench::plain(rig);
        if !b.info.caps.contains(Caps::SET_LINK) {
            b.end();
            return;
        }
        assert!(wait_until(ARRIVES, || b.port.link().up));
        let result = Arc::new(Mutex::new(None));
        let r = result.clone();
        b.port
            .on_event(move |id, e| {
                if e.contains(Event::LINK)
                    && let Ok(p) = Port::by_id(id)
                    && !p.link().up
                {
                    *r.lock().unwrap() = Some(p.close());
                }
            })
            .unwrap();
        b.port.set_link(false).unwrap();
        assert!(wait_until(ARRIVES, || result.lock().unwrap().is_some()));
        assert_eq!(*result.lock().unwrap(), Some(Ok(())));
        assert_eq!(b.port.state(), State::Closed);
        b.end_closed();
    });
}

#[test]
fn a_callback_that_holds_its_port_does_not_keep_the_closed_ports_number() {
    each(|rig| {
        let b = Bench::plain(rig);
        let own = b.port.clone();
        b.port.on_event(move |_, _| assert!(own.id() < 64)).unwrap();
        let id = b.id();
        b.end();
        // Other tests' ports take numbers too: a lower one may come first, so all up to `id` are held meanwhile.
        let mut held = Vec::new();
        let got = wait_until(ARRIVES, || {
            let (dev, _) = crate::refdev::device();
            let name = format!("after{}", crate::support::run::unique());
            match Port::attach(&name, &crate::refdev::DRIVER, dev) {
                Ok(p) if p.id() < id => {
                    held.push(p);
                    false
                }
                Ok(p) => {
                    let again = p.id() == id;
                    p.close().unwrap();
                    again
                }
                Err(_) => false,
            }
        });
        held.iter().for_each(|p| p.close().unwrap());
        assert!(got, "number {id} never came back");
    });
}

#[test]
fn a_link_that_goes_down_by_itself_makes_the_descriptor_readable() {
    if crate::child::alone("events::a_link_that_goes_down_by_itself_makes_the_descriptor_readable") {
        return;
    }
    let b = Bench::plain(&crate::rigs::RefRig);
    let fd = events_fd().unwrap();
    assert!(b.port.take_events().is_empty());
    b.far.reference().unwrap().link.store(false, Release);
    assert!(readable(fd), "nobody asked the port, and nobody has a callback");
    assert_eq!(b.port.take_events(), Event::LINK);
    b.end();
}
