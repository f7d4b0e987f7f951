//! What the packet tests share.
#![allow(dead_code)]

use burstline::mbuf::Mbuf;
use burstline::mbuf::flags::ATTACHED;
use burstline::mem::PagePolicy;
use burstline::pool::{Pool, PoolConfig};

pub fn config(name: &str, n: u32, room: u32) -> PoolConfig {
    PoolConfig { name: name.into(), n, room, cache: 0, pages: PagePolicy::NO_HUGE, ..PoolConfig::default() }
}

/// A pool of `n` packets without caches.
pub fn pool(name: &str, n: u32, room: u32) -> Pool {
    Pool::new(config(name, n, room)).unwrap()
}

pub fn filled(p: &Pool, bytes: &[u8]) -> Mbuf {
    let mut m = Mbuf::alloc(p).unwrap();
    m.append(bytes.len()).unwrap().copy_from_slice(bytes);
    m
}

/// Every packet is back, and each header is as the layout says of one that lies in its pool.
pub fn pool_is_whole(p: &Pool) {
    assert_eq!(p.available(), p.size());
    let all: Vec<Mbuf> = (0..p.size()).map(|_| Mbuf::alloc(p).unwrap()).collect();
    let headroom = p.info().headroom;
    let mut rooms = std::collections::HashSet::new();
    for m in &all {
        let r = m.raw();
        assert_eq!((r.nb_segs, r.refcnt.load(std::sync::atomic::Ordering::Relaxed)), (1, 1));
        assert!(r.next.is_null() && r.ol_flags & ATTACHED == 0 && r.shinfo.is_null());
        assert_eq!((r.buf_len, r.data_off, r.data_len, r.pkt_len), (p.info().room, headroom, 0, 0));
        assert!(r.buf_addr.is_null() || rooms.insert(r.buf_addr.addr()), "two headers with one room");
        m.validate().unwrap();
    }
    drop(all);
    assert_eq!(p.available(), p.size());
}
