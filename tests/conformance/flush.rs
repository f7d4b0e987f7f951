//! Deferred tail flush: what is staged, and what rings it.

use crate::bench::*;
use crate::rigs::{Ask, each};
use burstline::base::Errno;
use burstline::driver::Doorbell;
use burstline::port::PollGroup;
use std::time::{Duration, Instant};

const BURST: usize = 0;
const FILL: usize = 1;
const IDLE: usize = 2;
const DEADLINE: usize = 3;
const EXPLICIT: usize = 4;
/// A deadline that no test reaches.
const NEVER: u32 = 60_000_000;

impl Bench {
    fn defers(&self) -> bool {
        self.port.info().doorbell != Doorbell::None
    }
    fn rings(&self) -> [u64; 5] {
        self.port.stats().tx_flush
    }
    fn sent_now(&self) -> u64 {
        self.port.stats().opackets
    }
    /// A group of queue 0, both ways.
    fn group(&self, fill: u32, deadline_us: u32) -> PollGroup {
        let mut g = PollGroup::new();
        g.add_rx(&self.port, 0).unwrap();
        g.add_tx(&self.port, 0, fill, deadline_us).unwrap();
        g
    }
    fn stage(&self, n: usize) {
        let mut v = packets(&self.pool, n, 64);
        assert_eq!(tx_more(self.id(), 0, &mut v), n);
    }
}

/// Runs `f` for each driver that can defer, on a port whose receive side is empty.
fn deferring(f: impl Fn(&mut Bench)) {
    each(|rig| {
        let mut b = Bench::plain(rig);
        if b.defers() {
            // Whatever a device says by itself at its start is out of the way.
            drop(rx(b.id(), 0, 32));
            f(&mut b);
        }
        b.end();
    });
}

#[test]
fn deferring_is_refused_where_nothing_is_staged() {
    each(|rig| {
        let b = Bench::plain(rig);
        if !b.defers() {
            let mut g = PollGroup::new();
            g.add_rx(&b.port, 0).unwrap();
            let (e, text) = errno(g.add_tx(&b.port, 0, 1, 10));
            assert_eq!(e, Errno::NOTSUP, "{text}");
            // The hint never errs.
            b.stage(5);
            assert_eq!(b.sent_now(), 5);
        }
        b.end();
    });
}

#[test]
fn a_fill_level_of_0_or_above_the_descriptors_is_refused() {
    deferring(|b| {
        let usual = b.info.desc.2;
        let mut g = PollGroup::new();
        for fill in [0, usual + 1, u32::MAX] {
            let (e, text) = errno(g.add_tx(&b.port, 0, fill, 10));
            assert_eq!(e, Errno::INVAL);
            assert!(text.contains(&fill.to_string()) && text.contains(&usual.to_string()), "{text}");
        }
        g.add_tx(&b.port, 0, usual, 10).unwrap();
        assert_eq!(errno(g.add_tx(&b.port, 0, 1, 10)).0, Errno::EXIST);
        let mut other = PollGroup::new();
        assert_eq!(errno(other.add_tx(&b.port, 0, 1, 10)).0, Errno::EXIST);
        assert_eq!(errno(other.add_tx(&b.port, 99, 1, 10)).0, Errno::INVAL);
        drop(g);
        other.add_tx(&b.port, 0, 1, 10).unwrap();
    });
}

#[test]
fn outside_a_group_more_follows_changes_nothing() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        b.stage(3);
        assert_eq!(b.sent_now(), 3);
        if b.defers() {
            assert_eq!(b.rings(), [1, 0, 0, 0, 0]);
        }
        assert_eq!(tx_flush(b.id(), 0), 0);
        if let Some(out) = b.left(3) {
            assert_eq!(out.len(), 3);
        }
        b.end();
    });
}

#[test]
fn a_staged_frame_is_sent_after_one_empty_lap() {
    deferring(|b| {
        let _g = b.group(100, NEVER);
        b.stage(3);
        assert_eq!(b.sent_now(), 0, "staged");
        assert!(b.far.sent().is_none_or(|f| f.is_empty()), "nothing left yet");
        assert!(rx(b.id(), 0, 32).is_empty());
        assert_eq!(b.sent_now(), 3);
        assert_eq!(b.rings()[IDLE], 1);
        if let Some(out) = b.left(3) {
            assert_eq!(out, (0..3).map(|i| frame(i, 64)).collect::<Vec<_>>());
        }
        // Nothing staged: nothing to ring.
        assert!(rx(b.id(), 0, 32).is_empty());
        assert_eq!(b.rings(), [0, 0, 1, 0, 0]);
    });
}

#[test]
fn the_fill_level_rings() {
    deferring(|b| {
        let _g = b.group(8, NEVER);
        b.stage(7);
        assert_eq!((b.sent_now(), b.rings()[FILL]), (0, 0));
        b.stage(1);
        assert_eq!((b.sent_now(), b.rings()[FILL]), (8, 1));
        b.stage(20);
        assert_eq!(b.sent_now(), 28, "a burst above the level leaves nothing staged");
    });
}

#[test]
fn a_plain_burst_rings_what_was_staged_before_it() {
    deferring(|b| {
        let _g = b.group(100, NEVER);
        b.stage(3);
        b.send(&mut packets(&b.pool, 2, 64));
        assert_eq!((b.sent_now(), b.rings()), (5, [1, 0, 0, 0, 0]));
    });
}

#[test]
fn flush_rings_and_says_how_many() {
    deferring(|b| {
        let mut g = b.group(100, NEVER);
        b.stage(4);
        assert_eq!(tx_flush(b.id(), 0), 4);
        assert_eq!(tx_flush(b.id(), 0), 0);
        assert_eq!((b.sent_now(), b.rings()[EXPLICIT]), (4, 1));
        b.stage(2);
        assert_eq!(g.flush(), 2);
        assert_eq!((b.sent_now(), b.rings()[EXPLICIT]), (6, 2));
    });
}

#[test]
fn not_all_fitting_rings_so_that_the_ring_can_drain() {
    deferring(|b| {
        if !b.far.credit(0) {
            return;
        }
        let n = b.info.desc.2;
        let _g = b.group(n, NEVER);
        let mut v = packets(&b.pool, n as usize + 10, 64);
        let took = tx_more(b.id(), 0, &mut v);
        assert!(took < n as usize + 10);
        assert_eq!(b.sent_now(), took as u64, "nothing stays staged in a full ring");
        b.far.credit(usize::MAX);
        b.send(&mut v);
    });
}

#[test]
fn the_deadline_rings_between_bursts_that_receive() {
    each(|rig| {
        let mut b = Bench::ready(rig, &Ask { offer: 3000, ..Ask::default() });
        if !b.defers() || b.far.offered().is_none() {
            b.port.close().unwrap();
            return b.end_closed();
        }
        b.port.start().unwrap();
        b.far.offer();
        let g = b.group(100, 2_000);
        b.stage(1);
        let start = Instant::now();
        let mut laps = 0;
        while b.sent_now() == 0 && start.elapsed() < Duration::from_secs(2) {
            if rx(b.id(), 0, 1).is_empty() {
                laps += 1;
            }
        }
        let r = b.rings();
        assert!(r[DEADLINE] == 1 || laps > 0, "rung by {r:?} after {laps} empty laps");
        if r[DEADLINE] == 1 {
            assert!(start.elapsed() >= Duration::from_millis(2), "not before its time");
            let x = b.port.xstats();
            let wait = x.iter().find(|(n, _)| n == "tx_longest_wait_ns").unwrap().1;
            assert!((1_900_000..2_000_000_000).contains(&wait), "longest wait: {wait} ns");
        }
        drop(g);
        b.end();
    });
}

#[test]
fn a_group_without_receive_queues_rings_at_fill_deadline_and_explicitly_only() {
    deferring(|b| {
        let mut g = PollGroup::new();
        g.add_tx(&b.port, 0, 10, 2_000).unwrap();
        b.stage(1);
        for _ in 0..100 {
            assert!(rx(b.id(), 0, 32).is_empty(), "a queue outside of the group");
        }
        assert_eq!(b.sent_now(), 0);
        let until = Instant::now() + Duration::from_secs(2);
        std::thread::sleep(Duration::from_millis(3));
        while b.rings()[DEADLINE] == 0 && Instant::now() < until {
            // An empty call looks at the clock too.
            assert_eq!(tx_more(b.id(), 0, &mut Vec::new()), 0);
        }
        assert_eq!((b.sent_now(), b.rings()), (1, [0, 0, 0, 1, 0]));
        b.stage(10);
        assert_eq!(b.rings()[FILL], 1);
        b.stage(1);
        assert_eq!(g.flush(), 1);
    });
}

#[test]
fn a_lap_is_every_receive_queue_once() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { n_rx: 2, ..Ask::default() });
        if b.defers() && b.port.info().n_rx == 2 {
            let mut g = PollGroup::new();
            g.add_rx(&b.port, 0).unwrap();
            g.add_rx(&b.port, 1).unwrap();
            g.add_tx(&b.port, 0, 100, NEVER).unwrap();
            b.stage(1);
            for _ in 0..5 {
                assert!(rx(b.id(), 0, 32).is_empty());
            }
            assert_eq!(b.sent_now(), 0, "the other queue was not asked");
            assert!(rx(b.id(), 1, 32).is_empty());
            assert_eq!((b.sent_now(), b.rings()[IDLE]), (1, 1));
        }
        b.end();
    });
}

#[test]
fn a_packet_received_starts_the_lap_anew() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { n_rx: 2, ..Ask::default() });
        if let Some(far) = b.far.reference() {
            let mut g = PollGroup::new();
            g.add_rx(&b.port, 0).unwrap();
            g.add_rx(&b.port, 1).unwrap();
            g.add_tx(&b.port, 0, 100, NEVER).unwrap();
            b.stage(1);
            assert!(rx(b.id(), 0, 32).is_empty());
            far.offer(1, frame(1, 64));
            assert_eq!(rx(b.id(), 1, 32).len(), 1);
            assert!(rx(b.id(), 1, 32).is_empty());
            assert_eq!(b.sent_now(), 0, "queue 0 was not asked since");
            assert!(rx(b.id(), 0, 32).is_empty());
            assert_eq!(b.sent_now(), 1);
        }
        b.end();
    });
}

#[test]
fn the_null_object_of_a_stopped_queue_still_ticks() {
    each(|rig| {
        let a = Bench::plain(rig);
        let b = Bench::plain(rig);
        if a.defers() {
            let mut g = PollGroup::new();
            g.add_rx(&b.port, 0).unwrap();
            g.add_tx(&a.port, 0, 100, NEVER).unwrap();
            b.port.stop().unwrap();
            a.stage(2);
            assert_eq!(a.sent_now(), 0);
            assert!(rx(b.id(), 0, 32).is_empty());
            assert_eq!((a.sent_now(), a.rings()[IDLE]), (2, 1), "a stopped queue's call is an empty lap");
        }
        b.end();
        a.end();
    });
}

#[test]
fn a_stopped_queue_is_no_part_of_the_lap() {
    each(|rig| {
        let a = Bench::plain(rig);
        let b = Bench::plain(rig);
        if a.defers() {
            let mut g = PollGroup::new();
            g.add_rx(&a.port, 0).unwrap();
            g.add_rx(&b.port, 0).unwrap();
            g.add_tx(&a.port, 0, 100, NEVER).unwrap();
            b.port.stop().unwrap();
            a.stage(2);
            assert!(rx(a.id(), 0, 32).is_empty());
            assert_eq!(a.sent_now(), 2, "the stopped one is not waited for");
            b.port.start().unwrap();
            a.stage(1);
            assert!(rx(a.id(), 0, 32).is_empty());
            assert_eq!(a.sent_now(), 2, "started again, it counts");
            assert!(rx(b.id(), 0, 32).is_empty());
            assert_eq!(a.sent_now(), 3);
        }
        b.end();
        a.end();
    });
}

#[test]
fn stop_rings_what_is_staged() {
    deferring(|b| {
        let _g = b.group(100, NEVER);
        b.stage(6);
        assert_eq!(b.port.stop().unwrap(), 0);
        assert_eq!((b.sent_now(), b.rings()[EXPLICIT]), (6, 1));
        if let Some(out) = b.left(6) {
            assert_eq!(out.len(), 6);
        }
        all_back(&b.pool);
    });
}

#[test]
fn leaving_a_group_rings_what_is_staged() {
    deferring(|b| {
        let g = b.group(100, NEVER);
        b.stage(6);
        drop(g);
        assert_eq!(b.sent_now(), 6);
        b.stage(1);
        assert_eq!(b.sent_now(), 7, "more follows means nothing outside");
    });
}

#[test]
fn two_send_queues_of_a_group_ring_together_when_idle_and_each_at_its_fill() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { n_tx: 2, ..Ask::default() });
        if b.defers() && b.port.info().n_tx == 2 {
            let mut g = PollGroup::new();
            g.add_rx(&b.port, 0).unwrap();
            g.add_tx(&b.port, 0, 4, NEVER).unwrap();
            g.add_tx(&b.port, 1, 100, NEVER).unwrap();
            let q = |n: u16| b.port.tx_queue_stats(n).unwrap();
            b.stage(3);
            tx_more(b.id(), 1, &mut packets(&b.pool, 5, 64));
            assert_eq!((q(0).opackets, q(1).opackets), (0, 0));
            b.stage(1);
            assert_eq!((q(0).opackets, q(1).opackets), (4, 0), "each has its own level");
            b.stage(1);
            assert!(rx(b.id(), 0, 32).is_empty());
            assert_eq!((q(0).opackets, q(1).opackets), (5, 5));
            assert_eq!((q(0).tx_flush, q(1).tx_flush), ([0, 1, 1, 0, 0], [0, 0, 1, 0, 0]));
        }
        b.end();
    });
}

#[test]
fn a_queue_in_a_group_keeps_its_port_from_being_configured_and_not_from_being_closed() {
    deferring(|b| {
        let mut g = b.group(100, NEVER);
        b.stage(2);
        b.port.stop().unwrap();
        let (e, text) = errno(b.port.configure(&Default::default()));
        assert_eq!(e, Errno::BUSY);
        assert!(text.contains("poll group"), "{text}");
        b.port.start().unwrap();
        b.stage(2);
        let other = b.port.clone();
        other.close().unwrap();
        assert_eq!(b.sent_now(), 4, "close rings");
        assert_eq!(g.flush(), 0);
        drop(g);
        // `end` wants an open port.
        let (port, _) = crate::rigs::Rig::open(&crate::rigs::RefRig, &Ask::default());
        b.port = port;
    });
}

#[test]
fn taken_is_sent_plus_errors_plus_staged_at_every_moment() {
    deferring(|b| {
        let _g = b.group(16, NEVER);
        let (mut took, mut seed) = (0u64, 12345u32);
        let mut staged = 0u64;
        for i in 0..400 {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            let mut v = packets(&b.pool, (seed >> 28) as usize, 64);
            let what = (seed >> 20) % 5;
            if i % 7 == 0 && !(1..=2).contains(&what) {
                v.extend(hopeless(&b.pool, &b.info).into_iter().map(|(_, m)| m));
            }
            let before = b.port.stats();
            match what {
                0 => took += tx(b.id(), 0, &mut v) as u64,
                1 => _ = tx_flush(b.id(), 0),
                2 => drop(rx(b.id(), 0, 8)),
                _ => took += tx_more(b.id(), 0, &mut v) as u64,
            }
            let s = b.port.stats();
            assert!(s.opackets >= before.opackets, "sent never falls");
            staged = took - s.opackets - s.oerrors;
            assert!(staged < 16, "{staged} staged at a fill level of 16");
        }
        assert_eq!(u64::from(tx_flush(b.id(), 0)), staged);
        let s = b.port.stats();
        assert_eq!(took, s.opackets + s.oerrors);
        assert!(s.tx_flush[BURST] > 0);
    });
}
