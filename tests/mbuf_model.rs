//! Random operations against a model: each packet is a `Vec<u8>`, and at the end every buffer is back and whole.

mod mbuf_support;

use burstline::mbuf::Mbuf;
use burstline::pool::{Pool, PoolConfig};
use mbuf_support::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Debug)]
enum Op {
    Alloc(Vec<u8>),
    External(Vec<u8>),
    Prepend(usize, Vec<u8>),
    Append(usize, Vec<u8>),
    Adj(usize, usize),
    Trim(usize, usize),
    Write(usize, usize, Vec<u8>),
    Chain(usize, usize),
    SplitAt(usize, usize),
    SplitSegments(usize, u16),
    Clone(usize),
    Copy(usize, usize, usize),
    Linearize(usize),
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..64usize;
    let bytes = |n| prop::collection::vec(any::<u8>(), 0..n);
    prop_oneof![
        bytes(300).prop_map(Op::Alloc),
        bytes(100).prop_map(Op::External),
        (who.clone(), bytes(300)).prop_map(|(i, b)| Op::Prepend(i, b)),
        (who.clone(), bytes(80)).prop_map(|(i, b)| Op::Append(i, b)),
        (who.clone(), 0..200usize).prop_map(|(i, n)| Op::Adj(i, n)),
        (who.clone(), 0..300usize).prop_map(|(i, n)| Op::Trim(i, n)),
        (who.clone(), 0..300usize, bytes(200)).prop_map(|(i, n, b)| Op::Write(i, n, b)),
        (who.clone(), who.clone()).prop_map(|(i, j)| Op::Chain(i, j)),
        (who.clone(), 0..400usize).prop_map(|(i, n)| Op::SplitAt(i, n)),
        (who.clone(), 0..5u16).prop_map(|(i, n)| Op::SplitSegments(i, n)),
        who.clone().prop_map(Op::Clone),
        (who.clone(), 0..200usize, 0..300usize).prop_map(|(i, o, n)| Op::Copy(i, o, n)),
        who.clone().prop_map(Op::Linearize),
        who.prop_map(Op::Free),
    ]
}

type Pair = (Mbuf, Vec<u8>);

/// Applies one operation to packet and model; a refusal must leave the packet as it was, which the caller checks.
fn apply(p: &Pool, all: &mut Vec<Pair>, op: Op) {
    let n = all.len();
    if n == 0 && !matches!(op, Op::Alloc(_) | Op::External(_)) {
        return;
    }
    match op {
        Op::Alloc(b) => all.extend(Mbuf::alloc_with(p, &b).ok().map(|m| (m, b))),
        Op::External(b) => all.extend(Mbuf::from_owned(p, b.clone()).ok().map(|m| (m, b))),
        Op::Prepend(i, b) => {
            let (m, v) = &mut all[i % n];
            if let Ok(s) = m.prepend(b.len()) {
                s.copy_from_slice(&b);
                v.splice(0..0, b);
            }
        }
        Op::Append(i, b) => {
            let (m, v) = &mut all[i % n];
            if let Ok(s) = m.append(b.len()) {
                s.copy_from_slice(&b);
                v.extend(b);
            }
        }
        Op::Adj(i, k) => {
            let (m, v) = &mut all[i % n];
            let first = m.seg_len();
            assert_eq!(m.adj(k).is_ok(), k <= first);
            v.drain(..v.len() - m.pkt_len());
        }
        Op::Trim(i, k) => {
            let (m, v) = &mut all[i % n];
            assert_eq!(m.trim(k).is_ok(), k <= v.len());
            v.truncate(m.pkt_len());
        }
        Op::Write(i, at, b) => {
            let (m, v) = &mut all[i % n];
            if m.write(at, &b).is_ok() {
                v[at..at + b.len()].copy_from_slice(&b);
            }
        }
        Op::Chain(i, j) => {
            let (i, j) = (i % n, j % n);
            if i != j {
                let (tail, bytes) = all.remove(j);
                let (m, v) = &mut all[if j < i { i - 1 } else { i }];
                m.chain(tail).map_err(|e| e.1).unwrap();
                v.extend(bytes);
            }
        }
        Op::SplitAt(i, at) => {
            let (m, v) = &mut all[i % n];
            if let Ok(rest) = m.split_at(at, p) {
                let r = v.split_off(at);
                all.push((rest, r));
            }
        }
        Op::SplitSegments(i, at) => {
            let (m, v) = &mut all[i % n];
            let fits = (1..m.nb_segs()).contains(&at);
            let got = m.split_segments(at);
            assert_eq!(got.is_ok(), fits);
            if let Ok(rest) = got {
                let r = v.split_off(m.pkt_len());
                all.push((rest, r));
            }
        }
        Op::Clone(i) => {
            let (m, v) = &all[i % n];
            let pair = m.clone(p).ok().map(|c| (c, v.clone()));
            all.extend(pair);
        }
        Op::Copy(i, at, len) => {
            let (m, v) = &all[i % n];
            let got = m.copy(p, at, len).ok().map(|c| (c, v[at..at + len].to_vec()));
            all.extend(got);
        }
        Op::Linearize(i) => {
            let m = &mut all[i % n].0;
            assert!(m.linearize().is_err() || m.nb_segs() == 1);
        }
        Op::Free(i) => drop(all.swap_remove(i % n)),
    }
}

fn run(ops: Vec<Op>, debug: bool) {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let name = format!("model-{}", RUN.fetch_add(1, Ordering::Relaxed));
    let p = Pool::new(PoolConfig { debug: Some(debug), ..config(&name, 64, 384) }).unwrap();
    let mut all = Vec::new();
    for op in ops {
        let text = format!("{op:?}");
        apply(&p, &mut all, op);
        let mut used = 0;
        for (m, v) in &all {
            m.validate().unwrap();
            assert_eq!(m.to_vec(), *v, "after {text}");
            used += u32::from(m.nb_segs());
        }
        // A buffer that only clones refer to is out without a packet that shows it.
        assert!(used <= p.size() - p.available());
    }
    drop(all);
    pool_is_whole(&p);
    assert_eq!((p.debug_reports(), p.outstanding()), (Vec::<String>::new(), vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_hold_what_the_model_holds(ops in prop::collection::vec(op(), 1..80)) {
        run(ops, false);
    }
}

proptest! {
    // Few: each take and each free keeps a backtrace.
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn debug_pools_work_with_every_operation(ops in prop::collection::vec(op(), 1..60)) {
        run(ops, true);
    }
}
