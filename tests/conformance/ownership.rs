//! Whose a packet is, before and after each call.

use crate::bench::*;
use crate::rigs::{Ask, each};
use burstline::driver::Caps;
use burstline::mbuf::{Mbuf, RawMbuf};
use burstline::port::Stats;

fn taken(s: Stats) -> u64 {
    s.opackets + s.oerrors
}

#[test]
fn received_packets_are_the_callers() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 8, ..Ask::default() });
        let mut got = b.receive(8, 8);
        assert_eq!(got.len(), 8);
        for m in &mut got {
            assert!(m.pkt_len() >= 64 && m.port() == b.id());
            m.data_mut().expect("a received packet can be written").fill(0xee);
        }
        // The port goes first: the packets stay whole.
        b.port.close().unwrap();
        assert!(got.iter().all(|m| m.data().unwrap().iter().all(|&x| x == 0xee)));
        drop(got);
        b.end_closed();
    });
}

#[test]
fn send_returns_how_many_it_took_and_frees_them() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        let mut pkts = packets(&b.pool, 20, 64);
        assert_eq!(b.send(&mut pkts), 20);
        assert!(pkts.is_empty());
        if let Some(out) = b.left(20) {
            let want: Vec<_> = (0..20).map(|i| frame(i, 64)).collect();
            assert_eq!(out, want, "what left, in order");
        }
        let s = b.end();
        assert_eq!((s.opackets, s.obytes, s.oerrors), (20, 20 * 64, 0));
    });
}

#[test]
fn a_full_ring_leaves_the_rest_with_the_caller_and_is_no_error() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        if !b.far.credit(0) {
            // A device that never fills takes everything at once.
            let mut pkts = packets(&b.pool, 600, 64);
            assert_eq!(b.send(&mut pkts), 600);
            b.end();
            return;
        }
        let mut pkts = packets(&b.pool, 1500, 64);
        let mut n = 0;
        loop {
            let took = tx(b.id(), 0, &mut pkts);
            n += took;
            if took == 0 {
                break;
            }
        }
        assert!(n > 0 && n < 1500, "{n} fitted");
        assert_eq!(pkts.len(), 1500 - n);
        assert_eq!(b.port.stats().oerrors, 0);
        for (i, m) in pkts.iter().enumerate() {
            assert_eq!(m.to_vec(), frame((n + i) as u32, 64), "what stays is whole, and in order");
        }
        // Partial: room for 10 more.
        b.far.credit(10);
        let more = b.send_some(&mut pkts, 10);
        assert_eq!(more, 10, "as many as fit");
        b.far.credit(usize::MAX);
        n += more;
        n += b.send(&mut pkts);
        assert_eq!(n, 1500);
        let out = b.left(1500).unwrap();
        assert!(out.iter().enumerate().all(|(i, f)| *f == frame(i as u32, 64)), "each once, in order");
        let s = b.end();
        assert_eq!((s.opackets, s.oerrors), (1500, 0));
    });
}

impl Bench {
    /// Sends until `n` were taken or nothing more fits.
    fn send_some(&self, pkts: &mut Vec<Mbuf>, n: usize) -> usize {
        let mut got = 0;
        crate::support::run::wait_until(ARRIVES, || {
            got += tx(self.id(), 0, pkts);
            got >= n
        });
        got + tx(self.id(), 0, pkts)
    }
}

#[test]
fn packets_that_can_never_be_sent_are_taken_freed_and_counted_and_the_others_go() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        let bad = hopeless(&b.pool, &b.info);
        let n_bad = bad.len();
        let mut burst = Vec::new();
        for (i, (_, m)) in bad.into_iter().enumerate() {
            burst.push(packet(&b.pool, i as u32, 80));
            burst.push(m);
        }
        burst.push(packet(&b.pool, n_bad as u32, 80));
        let all = burst.len();
        assert_eq!(b.send(&mut burst), all, "bad ones are taken too");
        let good = n_bad + 1;
        if let Some(out) = b.left(good) {
            let want: Vec<_> = (0..good).map(|i| frame(i as u32, 80)).collect();
            assert_eq!(out, want, "the good ones, in order");
        }
        let s = b.port.stats();
        assert_eq!((s.opackets, s.obytes), (good as u64, good as u64 * 80));
        assert_eq!(s.oerrors, n_bad as u64);
        b.end();
    });
}

#[test]
fn each_kind_of_hopeless_packet_alone_is_refused() {
    each(|rig| {
        let b = Bench::plain(rig);
        for (i, (what, m)) in hopeless(&b.pool, &b.info).into_iter().enumerate() {
            let (free, mut segs, mut seg) = (b.pool.available(), 0, m.as_ptr());
            while !seg.is_null() {
                segs += 1;
                // SAFETY: a live segment of the packet.
                seg = unsafe { (*seg).next };
            }
            assert_eq!(b.send(&mut vec![m]), 1, "{what}: taken");
            let s = b.port.stats();
            assert_eq!((s.opackets, s.oerrors), (0, i as u64 + 1), "{what}: counted as an error, once");
            assert_eq!(b.pool.available(), free + segs, "{what}: every segment came back");
        }
        b.end();
    });
}

#[test]
fn a_pool_is_sound_after_bad_chains_were_freed() {
    each(|rig| {
        let b = Bench::plain(rig);
        let mut bad: Vec<Mbuf> = hopeless(&b.pool, &b.info).into_iter().map(|(_, m)| m).collect();
        b.send(&mut bad);
        let all: Vec<Mbuf> = (0..b.pool.size()).map(|_| Mbuf::alloc(&b.pool).unwrap()).collect();
        for m in &all {
            let r = m.raw();
            assert!(r.nb_segs == 1 && r.next.is_null(), "a header went back with its chain");
        }
        drop(all);
        b.end();
    });
}

#[test]
fn the_longest_packet_goes() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        // What a driver without a limit is given: a packet above 64 KiB.
        let len = (b.info.tx_max_len as usize).min(100_000);
        let segs = len.div_ceil(2000);
        if !b.info.caps.contains(Caps::TX_MULTI_SEG) && segs > 1 {
            b.end();
            return;
        }
        assert!(segs <= usize::from(b.info.tx_max_segs), "tx_max_len in segments of 2,000 bytes");
        let cuts: Vec<usize> = (0..segs).map(|i| (len - i * 2000).min(2000)).collect();
        let mut p = vec![chained(&b.pool, 3, &cuts)];
        assert_eq!(b.send(&mut p), 1);
        if let Some(out) = b.left(1) {
            assert_eq!(out[0], frame(3, len));
        }
        let s = b.end();
        assert_eq!((s.opackets, s.obytes, s.oerrors), (1, len as u64, 0));
    });
}

#[test]
fn with_the_link_down_packets_are_taken_freed_and_counted() {
    each(|rig| {
        let b = Bench::plain(rig);
        if !b.info.caps.contains(Caps::SET_LINK) {
            assert_eq!(errno(b.port.set_link(false)).0, burstline::base::Errno::NOTSUP);
            b.end();
            return;
        }
        b.port.set_link(false).unwrap();
        // A kernel may take its time to say so.
        assert!(crate::support::run::wait_until(ARRIVES, || !b.port.link().up));
        let mut pkts = packets(&b.pool, 9, 64);
        assert_eq!(b.send(&mut pkts), 9);
        let s = b.port.stats();
        assert_eq!((s.opackets, s.oerrors), (0, 9));
        all_back(&b.pool);
        b.port.set_link(true).unwrap();
        let mut pkts = packets(&b.pool, 9, 64);
        assert_eq!(b.send(&mut pkts), 9);
        let s = b.end();
        assert_eq!((s.opackets, s.oerrors), (9, 9), "up again");
    });
}

#[test]
fn a_stopped_port_takes_nothing_and_gives_nothing() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 64, ..Ask::default() });
        assert_eq!(b.receive(1, 1).len(), 1);
        b.port.stop().unwrap();
        let mut pkts = packets(&b.pool, 5, 64);
        assert_eq!(tx(b.id(), 0, &mut pkts), 0);
        assert_eq!(tx_more(b.id(), 0, &mut pkts), 0);
        assert_eq!(tx_flush(b.id(), 0), 0);
        assert!(rx(b.id(), 0, 32).is_empty());
        assert_eq!(pkts.len(), 5);
        assert!(pkts.iter().enumerate().all(|(i, m)| m.to_vec() == frame(i as u32, 64)), "the caller keeps all, whole");
        assert_eq!(taken(b.port.stats()), 0);
        b.port.start().unwrap();
        assert_eq!(b.send(&mut pkts), 5);
        b.end();
    });
}

#[test]
fn a_burst_never_touches_what_lies_beyond_its_count() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 64, ..Ask::default() });
        let guard = core::ptr::without_provenance_mut::<RawMbuf>(0xdead_beef_0040);
        let mut place = [guard; 64];
        let mut got = 0;
        crate::support::run::wait_until(ARRIVES, || {
            // SAFETY: room for 7.
            got = unsafe { fast(b.id(), 0).rx.burst(place.as_mut_ptr(), 7) }.into();
            got != 0
        });
        assert!((1..=7).contains(&got));
        assert!(place[got..].iter().all(|&p| p == guard), "receive wrote behind its packets");
        for &p in &place[..got] {
            // SAFETY: received just now.
            drop(unsafe { Mbuf::from_raw(core::ptr::NonNull::new(p).unwrap()) });
        }
        let mut pkts = packets(&b.pool, 10, 64);
        // SAFETY: the first 4 of 10 packets.
        let n = unsafe { fast(b.id(), 0).tx.burst(pkts.as_mut_ptr().cast(), 4) };
        assert_eq!(n, 4);
        pkts.drain(..4).for_each(core::mem::forget);
        for (i, m) in pkts.iter().enumerate() {
            assert_eq!(m.to_vec(), frame(4 + i as u32, 64), "send touched a packet beyond its count");
            assert_eq!((m.nb_segs(), m.pkt_len()), (1, 64));
        }
        drop(pkts);
        b.end();
    });
}

#[test]
fn the_typed_calls_keep_the_same_rules() {
    use burstline::mbuf::Burst;
    use burstline::pool::slot::ThreadSlot;
    each(|rig| {
        let slot = ThreadSlot::register().unwrap();
        let b = Bench::started(rig, &Ask { offer: 40, ..Ask::default() });
        let mut rxq = b.port.rx_queue(0).unwrap().bind(&slot);
        let mut txq = b.port.tx_queue(0).unwrap().bind(&slot);
        let mut burst = Burst::<32>::new();
        let mut n = 0;
        assert!(crate::support::run::wait_until(ARRIVES, || {
            rxq.burst(&mut burst);
            let had = burst.len();
            let sent = txq.burst(&mut burst);
            assert_eq!(burst.len(), had - sent);
            n += sent;
            n >= 40
        }));
        b.port.stop().unwrap();
        burst.push(packet(&b.pool, 1, 64)).unwrap();
        assert_eq!((rxq.burst(&mut burst), txq.burst(&mut burst), burst.len()), (0, 0, 1));
        drop((burst, rxq, txq));
        b.end();
    });
}
