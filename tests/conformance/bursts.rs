//! Every size of burst, and every kind of packet in one.

use crate::bench::*;
use crate::rigs::{Ask, each};
use crate::support::run::wait_until;
use burstline::driver::Caps;
use burstline::mbuf::{Mbuf, flags};
use burstline::pool::{Pool, PoolConfig};

const SIZES: [usize; 8] = [0, 1, 31, 32, 33, 255, 256, 512];

#[test]
fn receive_bursts_of_every_size() {
    each(|rig| {
        for size in SIZES {
            let b = Bench::started(rig, &Ask { offer: 2 * size, ..Ask::default() });
            if size == 0 {
                assert!(rx(b.id(), 0, 0).is_empty());
                assert_eq!(b.port.stats().ipackets, 0);
                b.end();
                continue;
            }
            let got = b.receive(2 * size, size);
            assert_eq!(got.len(), 2 * size, "bursts of {size}");
            if b.far.reference().is_some() {
                assert!(got.iter().enumerate().all(|(i, m)| m.to_vec() == frame(i as u32, 64)));
            }
            drop(got);
            let s = b.end();
            assert_eq!((s.ipackets, s.ibytes), (2 * size as u64, 128 * size as u64));
        }
    });
}

#[test]
fn send_bursts_of_every_size() {
    each(|rig| {
        for size in SIZES {
            let mut b = Bench::plain(rig);
            let mut pkts = packets(&b.pool, size, 64);
            if size == 0 {
                assert_eq!(tx(b.id(), 0, &mut pkts) + tx_more(b.id(), 0, &mut pkts), 0);
            }
            assert_eq!(b.send(&mut pkts), size);
            if let Some(out) = b.left(size) {
                assert!(out.iter().enumerate().all(|(i, f)| *f == frame(i as u32, 64)), "bursts of {size}");
                assert_eq!(out.len(), size);
            }
            assert_eq!(b.end().opackets, size as u64);
        }
    });
}

#[test]
fn packets_of_many_segments_are_sent_whole_and_counted_whole() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        assert!(
            b.info.caps.contains(Caps::TX_MULTI_SEG) == (b.info.tx_max_segs > 1),
            "the capability says what the limit says"
        );
        let cuts: [&[usize]; 5] = [&[14, 1, 85], &[64, 64], &[1, 1, 1, 1, 100], &[30, 0, 40], &[0, 64]];
        let mut pkts: Vec<Mbuf> = cuts.iter().enumerate().map(|(i, c)| chained(&b.pool, i as u32, c)).collect();
        let bytes: usize = cuts.iter().flat_map(|c| c.iter()).sum();
        assert_eq!(b.send(&mut pkts), cuts.len());
        if !b.info.caps.contains(Caps::TX_MULTI_SEG) {
            assert_eq!(b.port.stats().oerrors, cuts.len() as u64, "refused, not cut");
            b.end();
            return;
        }
        if let Some(out) = b.left(cuts.len()) {
            for (i, c) in cuts.iter().enumerate() {
                assert_eq!(out[i], frame(i as u32, c.iter().sum()), "segments {c:?}");
            }
        }
        let s = b.end();
        assert_eq!((s.opackets, s.obytes, s.oerrors), (cuts.len() as u64, bytes as u64, 0));
    });
}

#[test]
fn packets_longer_than_a_room_are_received_as_chains_where_asked_for() {
    each(|rig| {
        let small = Pool::new(PoolConfig {
            name: format!("small{}", crate::support::run::unique()),
            n: 2048,
            room: 256 + 256,
            cache: 64,
            ..PoolConfig::default()
        })
        .unwrap();
        let ask = Ask { offer: 20, len: 900, ..Ask::default() };
        let (port, mut far) = rig.open(&ask);
        if !port.info().device.caps.contains(Caps::RX_SCATTER) {
            let c = burstline::port::PortConfig { scatter: true, ..Default::default() };
            assert_eq!(errno(port.configure(&c)).0, burstline::base::Errno::NOTSUP);
            port.close().unwrap();
            return;
        }
        set_up(&port, &ask, &small);
        port.start().unwrap();
        far.offer();
        let mut got = Vec::new();
        wait_until(ARRIVES, || {
            got.extend(rx(port.id(), 0, 20 - got.len()));
            got.len() == 20
        });
        assert_eq!(got.len(), 20);
        for m in &got {
            assert_eq!((m.pkt_len(), m.nb_segs()), (900, 4), "four rooms of 256 bytes");
            m.validate().unwrap();
            assert!(m.segments().all(|s| s.raw().nb_segs == 1 || s.raw().pkt_len == 900));
        }
        drop(got);
        port.close().unwrap();
        let s = port.stats();
        assert_eq!((s.ipackets, s.ibytes), (20, 18_000), "bytes of whole packets");
        all_back(&small);
    });
}

struct Counted(Vec<u8>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn clones_external_buffers_and_foreign_pools_mix_in_one_burst() {
    each(|rig| {
        let mut b = Bench::plain(rig);
        let other = pool(64);
        let headers = Pool::new(PoolConfig {
            name: format!("heads{}", crate::support::run::unique()),
            n: 64,
            room: 0,
            cache: 0,
            ..PoolConfig::default()
        })
        .unwrap();
        let dropped = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let kept = packet(&b.pool, 0, 100);
        let mut pkts = Vec::new();
        for i in 0..4u32 {
            pkts.push(kept.clone(&headers).unwrap());
            pkts.push(
                Mbuf::from_shared(&other, Counted(frame(4 * i + 1, 90), dropped.clone())).map_err(|e| e.1).unwrap(),
            );
            pkts.push(packet(&other, 4 * i + 2, 70));
            let mut m = packet(&b.pool, 4 * i + 3, 64);
            // SAFETY: says of the bytes what senders must bear.
            unsafe { m.raw_mut().ol_flags |= flags::FOREIGN };
            pkts.push(m);
        }
        // A chain of all kinds.
        let mut mixed = packet(&other, 77, 60);
        mixed
            .chain(Mbuf::from_shared(&other, Counted(vec![7; 50], dropped.clone())).map_err(|e| e.1).unwrap())
            .unwrap();
        mixed.chain(kept.clone(&headers).unwrap()).unwrap();
        let mixed_bytes = mixed.to_vec();
        pkts.push(mixed);
        assert_eq!(b.send(&mut pkts), 17);
        if let Some(out) = b.left(17) {
            for i in 0..4u32 {
                let at = 4 * i as usize;
                assert_eq!(out[at], frame(0, 100), "a clone");
                assert_eq!(out[at + 1], frame(4 * i + 1, 90), "an external buffer");
                assert_eq!(out[at + 2], frame(4 * i + 2, 70), "another pool's");
                assert_eq!(out[at + 3], frame(4 * i + 3, 64), "bytes of a peer");
            }
            assert_eq!(out[16], mixed_bytes, "a chain of all kinds");
        }
        assert_eq!(kept.to_vec(), frame(0, 100), "the original stays whole");
        b.port.close().unwrap();
        all_back(&other);
        all_back(&headers);
        assert_eq!(dropped.load(std::sync::atomic::Ordering::SeqCst), 5, "each owner dropped once");
        assert_eq!(b.port.stats().opackets, 17);
        drop(kept);
        b.end_closed();
    });
}

#[test]
fn packets_outlive_their_port_and_their_pool() {
    each(|rig| {
        let b = Bench::started(rig, &Ask { offer: 32, ..Ask::default() });
        if !rig.receives_into_its_pool() {
            b.end();
            return;
        }
        let name = b.pool.name().to_string();
        let got = b.receive(32, 32);
        b.port.close().unwrap();
        let (pool, e) = b.pool.free().unwrap_err();
        assert_eq!(e.errno(), burstline::base::Errno::BUSY);
        assert!(e.text().contains("32 packets"), "{e}");
        drop((b.port, b.far));
        assert!(pool.close().is_ok());
        assert!(burstline::pool::list().iter().any(|i| i.name == name && i.in_use == 32));
        assert!(got.iter().all(|m| m.pkt_len() >= 64 && m.data().is_some()));
        drop(got);
        assert!(!burstline::pool::list().iter().any(|i| i.name == name), "the memory went with the last packet");
    });
}

#[test]
fn packets_of_a_closed_pool_are_sent_and_the_pool_goes() {
    each(|rig| {
        let b = Bench::plain(rig);
        let gone = pool_with(64, 32);
        let name = gone.name().to_string();
        let mut pkts = packets(&gone, 10, 64);
        drop(gone);
        assert_eq!(b.send(&mut pkts), 10);
        b.port.stop().unwrap();
        b.end();
        assert!(wait_until(ARRIVES, || !burstline::pool::list().iter().any(|i| i.name == name)));
    });
}
