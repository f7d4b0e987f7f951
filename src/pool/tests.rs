use super::*;
use crate::mbuf::Mbuf;

pub(super) fn pool(name: &str, n: u32, cache: u32) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n, cache, room: 512, ..PoolConfig::default() }).unwrap()
}

/// True once `f` is, within ten seconds. A listing on another thread keeps every pool for as long as it looks.
pub(super) fn soon(f: impl Fn() -> bool) -> bool {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !f() {
        if std::time::Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

pub(super) fn gone(name: &str) -> bool {
    soon(|| !list().iter().any(|i| i.name == name))
}

#[test]
fn every_packet_can_be_taken_once_and_comes_back() {
    let p = pool("all", 100, 16);
    let all: Vec<Mbuf> = (0..100).map(|_| Mbuf::alloc(&p).unwrap()).collect();
    assert_eq!(p.available(), 0);
    let e = Mbuf::alloc(&p).unwrap_err();
    assert!(e.text().contains("'all' is empty: all 100"), "{e}");
    drop(all);
    assert_eq!(p.available(), 100);
    assert!(p.free().is_ok());
}

#[test]
fn a_cache_never_holds_more_than_its_bound() {
    let slot = slot::ThreadSlot::register().unwrap();
    let p = pool("bound", 1000, 64);
    let all: Vec<Mbuf> = (0..1000).map(|_| Mbuf::alloc(&p).unwrap()).collect();
    for m in all {
        drop(m);
        assert!(p.info().caches[0].len <= 64);
    }
    let c = p.info().caches[0];
    assert_eq!((c.slot, c.capacity), (slot.id(), 64));
    assert!(c.put_hits > 900 && c.put_misses > 10, "{c:?}");
    assert_eq!(p.available(), 1000);
}

#[test]
fn a_packet_outlives_its_pool() {
    let p = pool("outlive", 8, 0);
    let m = Mbuf::alloc(&p).unwrap();
    let (p, e) = p.free().unwrap_err();
    assert!(e.text().contains("1 packets are out"), "{e}");
    assert!(p.close().is_ok());
    assert!(list().iter().any(|i| i.name == "outlive" && i.in_use == 1));
    drop(m);
    assert!(gone("outlive"));
}
