use super::*;
use crate::driver::pool::PoolConfig;

fn probed(s: &str) -> Result<Box<dyn Device>> {
    probe(&DevArgs::parse(s).unwrap())
}

fn error(s: &str) -> String {
    probed(s).err().unwrap().to_string()
}

fn ring(name: &str, prod: Sync, cons: Sync) -> Arc<Ring> {
    Arc::new(Ring::new(name, 8, prod, cons, true).unwrap())
}

#[test]
fn a_bad_key_or_value_is_refused_by_its_name() {
    assert!(error("net_ring0,sise=3").contains("did you mean 'size'"));
    assert!(error("net_ring0,size=0").contains("size"));
    assert!(error("net_ring0,size=1048577").contains("1048576"));
    assert!(error("net_ring0,link=").contains("link"));
    assert!(error("net_ring0,mac=01:00:00:00:00:00").contains("multicast"));
}

#[test]
fn a_third_port_of_a_link_is_refused_by_name_and_gets_the_seat_that_is_left() {
    let a = probed("net_ring0,link=third").unwrap();
    let b = probed("net_ring1,link=third").unwrap();
    let why = error("net_ring2,link=third");
    assert!(why.contains("net_ring0") && why.contains("net_ring1") && why.contains("third"), "{why}");
    drop(a);
    let mut c = probed("net_ring2,link=third").unwrap();
    assert!(c.link().up);
    drop((b, c));
    assert!(!links_left("third"));
}

fn links_left(name: &str) -> bool {
    // A cable that is gone takes any size again.
    let first = probed(&format!("net_ring8,link={name},size=3"));
    first.is_err()
}

#[test]
fn the_ports_of_a_link_agree_on_its_size() {
    let _a = probed("net_ring0,link=sizes,size=16").unwrap();
    let why = error("net_ring1,link=sizes");
    assert!(why.contains("size=1024") && why.contains("16") && why.contains("net_ring0"), "{why}");
}

#[test]
fn a_cable_is_up_when_both_ends_are_there_and_up() {
    let mut a = probed("net_ring0,link=updown").unwrap();
    assert!(!a.link().up, "one end alone");
    let mut b = probed("net_ring1,link=updown").unwrap();
    assert!(a.link().up && b.link().up);
    b.set_link(false).unwrap();
    assert!(!a.link().up && !b.link().up);
    b.set_link(true).unwrap();
    assert!(a.link().up);
    drop(b);
    assert!(!a.link().up);
}

#[test]
fn a_ring_for_many_threads_is_refused_on_the_side_that_the_port_takes() {
    let ok = |rx: Vec<Arc<Ring>>, tx: Vec<Arc<Ring>>| {
        // SAFETY: the rings are empty, and nobody uses them.
        unsafe { from_rings("net_ring9", rx, tx) }.map(drop).map_err(|e| e.to_string())
    };
    let (s, m) = (Sync::Single, Sync::Multi);
    assert!(ok(vec![ring("in", m, s)], vec![ring("out", s, m)]).is_ok(), "the other side is the program's");
    let why = ok(vec![], vec![ring("out", m, s)]).unwrap_err();
    assert!(why.contains("'out'") && why.contains("producer"), "{why}");
    let why = ok(vec![ring("in", s, m)], vec![]).unwrap_err();
    assert!(why.contains("'in'") && why.contains("consumer"), "{why}");
    let twice = ring("twice", s, s);
    let why = ok(vec![], vec![twice.clone(), twice.clone()]).unwrap_err();
    assert!(why.contains("'twice'"), "{why}");
    assert!(ok(vec![twice.clone()], vec![twice]).is_ok(), "once on each side is a loopback");
    assert!(ok(vec![], vec![]).is_err());
    let many: Vec<_> = (0..33).map(|_| ring("many", s, s)).collect();
    assert!(ok(many, vec![]).unwrap_err().contains("33"));
}

#[test]
fn the_last_to_let_go_of_a_given_ring_frees_what_is_in_it() {
    let pool = Pool::new(PoolConfig { name: "given".into(), n: 64, cache: 0, ..PoolConfig::default() }).unwrap();
    let r = ring("given", Sync::Single, Sync::Single);
    let m = Mbuf::alloc(&pool).unwrap().into_raw().as_ptr().cast();
    assert_eq!(r.enqueue_bulk(&[m]), 1);
    // SAFETY: the ring holds a packet, and only this test puts into it.
    let mut d = unsafe { from_rings("net_ring9", vec![r.clone()], vec![]) }.unwrap();
    d.close();
    assert_eq!((d.stats().imissed, r.len()), (0, 1), "the program holds the ring");
    // SAFETY: as above.
    let mut d = unsafe { from_rings("net_ring9", vec![r], vec![]) }.unwrap();
    d.close();
    assert_eq!(d.stats().imissed, 1);
    assert_eq!(pool.available(), 64);
}

#[test]
fn what_was_asked_of_the_sender_does_not_arrive() {
    use crate::driver::flags::*;
    for (sent, arrives) in [
        (TX_TCP_SEG | TX_IPV4 | TX_IP_CKSUM | RX_LRO | RX_IP_CKSUM_GOOD, 0),
        (TX_VLAN, RX_VLAN | RX_VLAN_STRIPPED),
        (FOREIGN | EXTERNAL | TX_UDP_CKSUM, FOREIGN | EXTERNAL),
        (INDIRECT | READ_ONLY | RX_VLAN, INDIRECT | READ_ONLY),
    ] {
        assert_eq!(queue::on_arrival(sent), arrives, "{sent:#x}");
    }
}
