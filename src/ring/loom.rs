//! The model checker runs these through every order the memory model allows, without a bound of preemptions:
//! `RUSTFLAGS="--cfg loom" cargo test --release --lib ring::loom`.
//!
//! Consumers of a single side are spawned: as the main thread, a weakened store of the producer went unnoticed.

use ::loom::sync::Arc;
use ::loom::thread;
use core::mem::MaybeUninit;

use super::*;

type Word = *mut ();

fn w(n: usize) -> Word {
    core::ptr::without_provenance_mut(n)
}

fn model(f: impl Fn() + core::marker::Sync + Send + 'static) {
    let b = ::loom::model::Builder::new();
    b.check(f);
}

/// Two slots, three steps from the wrap of the indices.
fn ring(side: Sync) -> Arc<Ring> {
    Arc::new(Ring::starting_at("loom", 2, side, side, false, u32::MAX - 2).unwrap())
}

fn take(r: &Ring, single: bool) -> Vec<usize> {
    let mut out = [MaybeUninit::uninit(); 2];
    let (n, left) = if single {
        // SAFETY: each model keeps the promise of `single`.
        unsafe { r.single_dequeue::<false, true>(&mut out) }
    } else {
        r.dequeue_burst_with_avail(&mut out)
    };
    assert!(left <= 2 && r.len() <= 2);
    // SAFETY: the ring filled `n`.
    out[..n].iter().map(|m| unsafe { m.assume_init() }.addr()).collect()
}

#[test]
fn one_producer_hands_words_to_one_consumer_in_order() {
    model(|| {
        let r = ring(Sync::Single);
        let p = r.clone();
        let t = thread::spawn(move || {
            // SAFETY: the only producer.
            let mut n = unsafe { p.sp_enqueue::<true>(&[w(1), w(2)]) };
            assert_eq!(n, 2);
            // Fits only if the consumer took one.
            // SAFETY: as above.
            n += unsafe { p.sp_enqueue::<true>(&[w(3)]) };
            n
        });
        let c = r.clone();
        let first = thread::spawn(move || take(&c, true));
        let mut got = first.join().unwrap();
        got.extend(take(&r, true));
        let n = t.join().unwrap();
        got.extend(take(&r, true));
        assert_eq!(got, (1..=n).collect::<Vec<_>>());
    });
}

#[test]
fn two_producers_and_one_consumer_lose_and_double_nothing() {
    model(|| {
        let r = ring(Sync::Multi);
        let ts = [1, 2].map(|v| {
            let p = r.clone();
            thread::spawn(move || {
                let (n, free) = p.enqueue_bulk_with_free(&[w(v)]);
                assert!(n == 1 && free <= 1);
            })
        });
        let mut got = take(&r, false);
        for t in ts {
            t.join().unwrap();
        }
        got.extend(take(&r, false));
        got.sort();
        assert_eq!(got, [1, 2]);
        assert_eq!(r.free_count(), 2);
    });
}

#[test]
fn two_consumers_share_what_one_producer_put() {
    model(|| {
        let r = ring(Sync::Multi);
        assert_eq!(r.enqueue_bulk(&[w(1), w(2)]), 2);
        let c = r.clone();
        let t = thread::spawn(move || {
            let mut out = [MaybeUninit::uninit(); 1];
            let (n, left) = c.dequeue_bulk_with_avail(&mut out);
            assert!(left <= 1);
            // SAFETY: filled if n is 1.
            if n == 1 { Some(unsafe { out[0].assume_init() }.addr()) } else { None }
        });
        let mut got = take(&r, false);
        // A slot that was taken is free for another lap.
        let more = r.enqueue_burst(&[w(3)]);
        got.extend(t.join().unwrap());
        got.extend(take(&r, false));
        got.sort();
        assert_eq!(got, (1..=2 + more).collect::<Vec<_>>());
    });
}

#[test]
fn b7_a_core_that_was_producer_and_consumer_is_followed_by_another() {
    model(|| {
        let r = ring(Sync::Multi);
        let a = r.clone();
        let t = thread::spawn(move || {
            assert!(a.enqueue_burst_with_free(&[w(1), w(2)]).1 <= 2);
            take(&a, false).len()
        });
        // No hand-over between them but the ring itself.
        let (n, free) = r.enqueue_burst_with_free(&[w(3)]);
        assert!(free <= 2 && n <= 1);
        assert!(r.free_count() <= 2);
        let mine = take(&r, false).len();
        let theirs = t.join().unwrap();
        assert!(mine + theirs <= 2 + n);
        assert!(r.free_count() <= 2);
    });
}

#[test]
fn a_single_consumer_may_be_followed_by_another_thread() {
    model(|| {
        let r = ring(Sync::Single);
        let p = r.clone();
        let producer = thread::spawn(move || {
            let mut n = 0;
            for v in [1, 2, 3] {
                // SAFETY: the only producer.
                let k = unsafe { p.sp_enqueue::<true>(&[w(n + 1)]) };
                assert!(v <= 2 || k <= 1);
                n += k;
            }
            n
        });
        let c = r.clone();
        let first = thread::spawn(move || take(&c, true));
        let mut got = first.join().unwrap();
        got.extend(take(&r, true));
        let n = producer.join().unwrap();
        got.extend(take(&r, true));
        assert_eq!(got, (1..=n).collect::<Vec<_>>());
    });
}

#[test]
fn staged_words_are_seen_only_when_published_and_then_whole() {
    model(|| {
        let r = ring(Sync::Single);
        let p = r.clone();
        let t = thread::spawn(move || {
            let mut tail = p.prod_tail();
            // SAFETY: the only producer.
            unsafe {
                assert_eq!(p.sp_stage(&mut tail, &[w(1)]), 1);
                assert_eq!(p.sp_stage(&mut tail, &[w(2)]), 1);
                assert_eq!(p.sp_stage(&mut tail, &[w(3)]), 0);
                p.sp_publish(tail);
            }
        });
        let c = r.clone();
        let first = thread::spawn(move || take(&c, true));
        let mut got = first.join().unwrap();
        assert!(got.is_empty() || got == [1, 2]);
        t.join().unwrap();
        got.extend(take(&r, true));
        assert_eq!(got, [1, 2]);
    });
}
