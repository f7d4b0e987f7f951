//! `trace` around a port: every packet that passes has its line, and nothing else changes.

use burstline::driver::{DevArgs, Driver};
use burstline::mbuf::{Burst, Mbuf};
use burstline::pool::slot::ThreadSlot;
use burstline::pool::{Pool, PoolConfig};
use burstline::port::{PollGroup, Port, PortConfig, wrap};
use std::path::PathBuf;

fn pool(name: &str) -> Pool {
    Pool::new(PoolConfig { name: name.into(), n: 512, cache: 0, ..PoolConfig::default() }).unwrap()
}

fn probed(d: &'static Driver, args: &str) -> Port {
    let args = DevArgs::parse(args).unwrap();
    Port::attach(&args.name, d, (d.probe)(&args).unwrap()).unwrap()
}

fn run(p: &Port, pool: &Pool) {
    p.configure(&PortConfig { scatter: true, ..PortConfig::default() }).unwrap();
    p.rx_queue_setup(0, 0, pool).unwrap();
    p.tx_queue_setup(0, 0).unwrap();
    p.start().unwrap();
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("burstline-{}-{name}", std::process::id()))
}

fn packets(pool: &Pool, from: u8, n: u8) -> Burst<300> {
    let mut b = Burst::new();
    for i in from..from + n {
        b.push(Mbuf::alloc_with(pool, &[i, 0xab, 0xcd, 0x01, 0x02, 0x03]).unwrap()).unwrap();
    }
    b
}

#[test]
fn each_packet_taken_and_each_received_has_its_line_in_order() {
    let slot = ThreadSlot::register().unwrap();
    let (pool, path) = (pool("wt-lines"), scratch("lines"));
    let p = probed(&burstline::pmd::ring::DRIVER, "net_ring60,size=100");
    wrap::parse_and_wrap(&p, &format!("trace,file={},bytes=4", path.display())).unwrap();
    run(&p, &pool);
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let mut b = packets(&pool, 0, 150);
    assert_eq!(tx.burst(&mut b), 100, "as without the trace");
    let mut got = Burst::<300>::new();
    assert_eq!(rx.burst(&mut got), 100);
    assert_eq!(p.stats().opackets, 100);
    let stats = p.xstats();
    p.stop().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
    assert_eq!(lines.len(), 200, "50 were not taken, and have no line");
    let id = p.id().to_string();
    let mut before = 0;
    for (i, l) in lines.iter().filter(|l| l[3] == "tx").enumerate() {
        let ns: u64 = l[0].parse().unwrap();
        assert!(ns >= before);
        before = ns;
        assert_eq!(l[1..], [&id, "0", "tx", "6", &format!("{i:02x}abcd01..")]);
    }
    assert_eq!(lines.iter().filter(|l| l[3] == "rx").count(), 100);
    assert_eq!(stats.iter().find(|(n, _)| n == "trace_lines_lost").unwrap().1, 0);
    drop((b, got, rx, tx));
    p.close().unwrap();
    assert_eq!(pool.available(), 512);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn chains_are_traced_over_their_segments_and_short_packets_whole() {
    let slot = ThreadSlot::register().unwrap();
    let (pool, path) = (pool("wt-chain"), scratch("chain"));
    let p = probed(&burstline::pmd::null::DRIVER, "net_null60,no-rx=1");
    wrap::parse_and_wrap(&p, &format!("trace,file={},bytes=100", path.display())).unwrap();
    run(&p, &pool);
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let mut m = Mbuf::alloc_with(&pool, &[1; 70]).unwrap();
    m.chain(Mbuf::alloc_with(&pool, &[2; 20]).unwrap()).ok().unwrap();
    let mut b = Burst::<4>::new();
    b.push(m).unwrap();
    b.push(Mbuf::alloc_with(&pool, &[]).unwrap()).unwrap();
    assert_eq!(tx.burst(&mut b), 2);
    drop(tx);
    p.close().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let hex: Vec<&str> = text.lines().map(|l| l.rsplit(' ').next().unwrap()).collect();
    assert_eq!(hex, ["01".repeat(70) + &"02".repeat(20), String::new()]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn deferral_works_through_two_wrappers() {
    let slot = ThreadSlot::register().unwrap();
    let (pool, path) = (pool("wt-group"), scratch("group"));
    let p = probed(&burstline::pmd::ring::DRIVER, "net_ring61");
    wrap::parse_and_wrap(&p, "fault,seed=1").unwrap();
    wrap::parse_and_wrap(&p, &format!("trace,file={}", path.display())).unwrap();
    run(&p, &pool);
    let mut group = PollGroup::new();
    group.add_rx(&p, 0).unwrap();
    group.add_tx(&p, 0, 200, 60_000_000).unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let mut got = Burst::<300>::new();
    assert_eq!(tx.burst_more(&mut packets(&pool, 0, 150)), 150);
    assert_eq!(p.stats().opackets, 0);
    assert_eq!(rx.burst(&mut got), 0, "an empty lap, which rings");
    assert_eq!(rx.burst(&mut got), 150);
    assert_eq!(tx.burst_more(&mut packets(&pool, 0, 10)), 10);
    assert_eq!(tx.burst(&mut packets(&pool, 0, 0)), 0);
    assert_eq!(p.stats().tx_flush, [1, 0, 1, 0, 0]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_bad_spec_is_refused_with_key_value_and_limit() {
    let p = probed(&burstline::pmd::null::DRIVER, "net_null61");
    let why = |spec: &str| wrap::parse_and_wrap(&p, spec).unwrap_err().to_string();
    assert!(why("tracer").contains("'tracer' is no wrapper"));
    assert!(why("trace,bytes=70000").contains("65535"));
    assert!(why("trace,fil=x").contains("did you mean 'file'"));
    assert!(why("trace,file=/no/such/place/x").contains("/no/such/place/x"));
    assert!(why("fault,tx_full=-0.1").contains("tx_full='-0.1'"));
    assert!(why("fault,rx_drop=nan").contains("allowed are 0 to 1"));
    assert!(why("fault,delay_us=100001").contains("100000"));
    p.configure(&PortConfig::default()).unwrap();
    assert!(why("fault").contains("before it is configured"));
}
