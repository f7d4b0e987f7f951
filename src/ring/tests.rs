use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::base::Errno;

type Word = *mut ();

fn w(n: usize) -> Word {
    core::ptr::without_provenance_mut(n)
}

fn words(from: usize, n: usize) -> Vec<Word> {
    (from..from + n).map(w).collect()
}

fn room(n: usize) -> Vec<MaybeUninit<Word>> {
    vec![MaybeUninit::uninit(); n]
}

/// The first `n` of `out` as numbers.
fn got(out: &[MaybeUninit<Word>], n: usize) -> Vec<usize> {
    // SAFETY: the ring said that it filled `n`.
    out[..n].iter().map(|m| unsafe { m.assume_init() }.addr()).collect()
}

fn ring(count: u32, side: Sync) -> Ring {
    Ring::new("t", count, side, side, true).unwrap()
}

const BOTH: [Sync; 2] = [Sync::Single, Sync::Multi];

#[test]
fn every_slot_of_a_power_of_two_is_usable() {
    for side in BOTH {
        let r = Ring::new("r", 8, side, side, false).unwrap();
        assert_eq!((r.capacity(), r.len(), r.free_count()), (8, 0, 8));
        // SAFETY: one thread.
        assert_eq!(unsafe { r.enqueue::<true>(&words(0, 8)) }, 8);
        assert!(r.is_full() && !r.is_empty());
        assert_eq!(r.enqueue_burst(&words(8, 1)), 0);
        let mut out = room(9);
        // SAFETY: one thread.
        assert_eq!(unsafe { r.dequeue::<false>(&mut out) }, 8);
        assert_eq!(got(&out, 8), (0..8).collect::<Vec<_>>());
        assert!(r.is_empty());
    }
}

#[test]
fn an_exact_count_holds_exactly_that_many() {
    for side in BOTH {
        for count in [1u32, 2, 3, 5, 7, 1000] {
            let r = ring(count, side);
            assert_eq!(r.capacity(), count);
            for lap in 0..5 {
                // SAFETY: one thread.
                let n = unsafe { r.enqueue::<false>(&words(lap, count as usize + 3)) };
                assert_eq!((n as u32, r.len(), r.free_count()), (count, count, 0));
                let mut out = room(count as usize + 3);
                // SAFETY: one thread.
                assert_eq!(unsafe { r.dequeue::<false>(&mut out) } as u32, count);
                assert_eq!(got(&out, n), (lap..lap + n).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_count_that_is_no_power_of_two_is_refused_with_the_next_one() {
    let e = Ring::new("rx", 1000, Sync::Multi, Sync::Multi, false).err().unwrap();
    assert_eq!(e.errno(), Errno::INVAL);
    assert!(e.text().contains("1000") && e.text().contains("1024") && e.text().contains("'rx'"), "{e}");
    assert_eq!(Ring::new("z", 0, Sync::Multi, Sync::Multi, true).err().unwrap().errno(), Errno::INVAL);
}

#[test]
fn b6_a_count_above_the_limit_is_refused_and_the_limit_named() {
    for exact in [false, true] {
        for count in [MAX_COUNT + 1, 1 << 31, u32::MAX] {
            let e = Ring::new("big", count, Sync::Single, Sync::Single, exact).err().unwrap();
            assert_eq!(e.errno(), Errno::INVAL);
            assert!(e.text().contains("1073741824") && e.text().contains(&count.to_string()), "{e}");
        }
    }
}

#[test]
fn b6_slots_of_more_than_4_gib_are_all_there_or_refused_with_their_bytes() {
    // 2^30 words are 2^33 bytes. They are not touched, so little memory is needed where the kernel overcommits.
    match Ring::starting_at("big", MAX_COUNT, Sync::Single, Sync::Single, false, MAX_COUNT - 3) {
        Ok(r) => {
            assert_eq!(r.capacity(), MAX_COUNT);
            assert_eq!(r.enqueue_bulk(&words(7, 6)), 6); // over the last slot
            let mut out = room(6);
            assert_eq!(r.dequeue_bulk(&mut out), 6);
            assert_eq!(got(&out, 6), (7..13).collect::<Vec<_>>());
        }
        Err(e) => {
            assert_eq!(e.errno(), Errno::NOMEM);
            assert!(e.text().contains("8589934592"), "{e}");
        }
    }
}

#[test]
fn indices_wrap_around_u32_without_a_seam() {
    for side in BOTH {
        for count in [4u32, 6] {
            let r = Ring::starting_at("wrap", count, side, side, true, u32::MAX - 5).unwrap();
            let mut out = room(4);
            for i in 0..20 {
                // SAFETY: one thread.
                let (n, free) = unsafe { r.enqueue_with_free::<true>(&words(3 * i, 3)) };
                assert_eq!((n, free, r.len()), (3, count - 3, 3));
                // SAFETY: one thread.
                let (n, left) = unsafe { r.dequeue_with_avail::<false>(&mut out) };
                assert_eq!((n, left, r.free_count()), (3, 0, count));
                assert_eq!(got(&out, 3), (3 * i..3 * i + 3).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn bulk_moves_all_or_nothing_and_burst_what_fits() {
    for side in BOTH {
        let r = ring(5, side);
        // SAFETY: one thread, here and below.
        unsafe {
            assert_eq!(r.enqueue_with_free::<true>(&words(0, 6)), (0, 5));
            assert_eq!(r.enqueue_with_free::<true>(&words(0, 3)), (3, 2));
            assert_eq!(r.enqueue_with_free::<true>(&words(3, 3)), (0, 2));
            assert_eq!(r.enqueue_with_free::<false>(&words(3, 3)), (2, 0));
            assert_eq!(r.enqueue_with_free::<false>(&words(9, 3)), (0, 0));
            let mut out = room(8);
            assert_eq!(r.dequeue_with_avail::<true>(&mut out[..6]), (0, 5));
            assert_eq!(r.dequeue_with_avail::<true>(&mut out[..4]), (4, 1));
            assert_eq!(r.dequeue_with_avail::<true>(&mut out[4..6]), (0, 1));
            assert_eq!(r.dequeue_with_avail::<false>(&mut out[4..8]), (1, 0));
            assert_eq!(got(&out, 5), [0, 1, 2, 3, 4]);
            assert_eq!(r.dequeue::<false>(&mut out), 0);
        }
    }
}

#[test]
fn the_safe_calls_count_what_is_free_and_what_is_left() {
    let r = ring(4, Sync::Single);
    let mut out = room(4);
    assert_eq!(r.enqueue_bulk_with_free(&words(0, 3)), (3, 1));
    assert_eq!(r.enqueue_burst_with_free(&words(3, 3)), (1, 0));
    assert_eq!(r.dequeue_bulk_with_avail(&mut out[..1]), (1, 3));
    assert_eq!(r.dequeue_burst_with_avail(&mut out), (3, 0));
    assert_eq!(r.enqueue_bulk(&[]), 0);
    assert_eq!(r.dequeue_burst(&mut []), 0);
}

#[test]
fn calls_of_one_and_calls_of_many_may_take_turns() {
    let r = Ring::starting_at("turns", 3, Sync::Multi, Sync::Multi, true, u32::MAX - 40).unwrap();
    let (mut put, mut taken, mut out) = (0, 0, room(3));
    let mut rnd = 1u32;
    for _ in 0..10_000 {
        rnd = rnd.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let n = (rnd >> 8) as usize % 4;
        let many = rnd >> 16 & 1 == 0;
        if rnd >> 20 & 1 == 0 {
            let objs = words(put, n);
            // SAFETY: one thread.
            put += if many { r.mp_enqueue::<false>(&objs) } else { unsafe { r.sp_enqueue::<false>(&objs) } };
        } else {
            let out = &mut out[..n];
            // SAFETY: one thread.
            let n = if many { r.mc_dequeue::<false>(out) } else { unsafe { r.sc_dequeue::<false>(out) } };
            assert_eq!(got(out, n), (taken..taken + n).collect::<Vec<_>>());
            taken += n;
        }
        assert_eq!(r.len() as usize, put - taken);
    }
}

#[test]
fn staged_words_appear_at_once_when_they_are_published() {
    let r = ring(4, Sync::Single);
    let mut out = room(4);
    let mut tail = r.prod_tail();
    // SAFETY: one thread.
    unsafe {
        assert_eq!(r.sp_stage(&mut tail, &words(0, 2)), 2);
        assert_eq!(r.sp_stage(&mut tail, &words(2, 1)), 1);
        assert_eq!(r.len(), 0);
        assert_eq!(r.sc_dequeue::<false>(&mut out), 0);
        assert_eq!(r.sp_stage(&mut tail, &words(3, 5)), 1, "what is staged takes room");
        assert_eq!(r.sp_stage(&mut tail, &words(9, 1)), 0);
        r.sp_publish(tail);
        assert_eq!(r.len(), 4);
        assert_eq!(r.sc_dequeue::<true>(&mut out), 4);
        assert_eq!(got(&out, 4), [0, 1, 2, 3]);
        assert_eq!(r.sp_stage(&mut tail, &words(4, 4)), 4);
        r.sp_publish(tail);
    }
    assert_eq!(r.dequeue_bulk(&mut out), 4);
}

#[test]
fn the_halves_of_a_split_ring_carry_every_word_in_order() {
    let n = if cfg!(miri) { 100 } else { 200_000 };
    let mut r = Ring::starting_at("halves", 48, Sync::Single, Sync::Single, true, u32::MAX - 5).unwrap();
    let (mut tx, mut rx) = r.split();
    thread::scope(|s| {
        s.spawn(move || {
            let mut at = 0;
            while at < n {
                let k = tx.enqueue_burst(&words(at, 16.min(n - at)));
                at += k;
                if k == 0 {
                    thread::yield_now();
                }
            }
        });
        let (mut at, mut out) = (0, room(20));
        while at < n {
            let k = rx.dequeue_burst(&mut out);
            for g in got(&out, k) {
                assert_eq!(g, at);
                at += 1;
            }
            if k == 0 {
                thread::yield_now();
            }
        }
        assert!(rx.is_empty());
    });
}

#[test]
fn many_producers_and_many_consumers_lose_and_double_nothing() {
    const PER: usize = 30_000;
    let r = Ring::starting_at("stress", 24, Sync::Multi, Sync::Multi, true, u32::MAX - 1000).unwrap();
    let (sum, n_taken) = (AtomicU64::new(0), AtomicUsize::new(0));
    thread::scope(|s| {
        for p in 0..2usize {
            let r = &r;
            s.spawn(move || {
                let (mut at, mut turn) = (0, 0);
                while at < PER {
                    let objs = words(p * PER + at + 1, (1 + turn % 7).min(PER - at));
                    let (n, free) =
                        if turn % 2 == 0 { r.enqueue_bulk_with_free(&objs) } else { r.enqueue_burst_with_free(&objs) };
                    assert!(free <= 24, "{free} free of 24");
                    at += n;
                    turn += 1;
                    if n == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..2 {
            let (r, sum, n_taken) = (&r, &sum, &n_taken);
            s.spawn(move || {
                let mut out = room(5);
                let mut last = [0usize; 2];
                while n_taken.load(Ordering::Relaxed) < 2 * PER {
                    let (n, left) = r.dequeue_burst_with_avail(&mut out);
                    assert!(left <= 24, "{left} left of 24");
                    for g in got(&out, n) {
                        // Each producer's words come in its order.
                        let p = (g - 1) / PER;
                        assert!(g > last[p]);
                        last[p] = g;
                        sum.fetch_add(g as u64, Ordering::Relaxed);
                    }
                    n_taken.fetch_add(n, Ordering::Relaxed);
                    if n == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    let total = 2 * PER as u64;
    assert_eq!((n_taken.into_inner() as u64, sum.into_inner()), (total, total * (total + 1) / 2));
    assert!(r.is_empty());
}

#[test]
fn b7_counts_never_pass_the_capacity_while_cores_take_turns() {
    let r = ring(3, Sync::Multi);
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..2 {
            // Each is producer, then consumer, in turns.
            s.spawn(|| {
                let mut out = room(2);
                for i in 0..20_000 {
                    let (_, free) = r.enqueue_burst_with_free(&words(i, 2));
                    assert!(free <= 3);
                    let (_, left) = r.dequeue_burst_with_avail(&mut out);
                    assert!(left <= 3);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        while !stop.load(Ordering::Relaxed) {
            assert!(r.free_count() <= 3 && r.len() <= 3);
        }
    });
}

#[test]
fn a_snapshot_of_a_ring_in_use_is_within_bounds() {
    let mut r = Ring::new("snap", 16, Sync::Single, Sync::Multi, false).unwrap();
    let i = r.snapshot();
    assert_eq!((i.name.as_str(), i.capacity, i.len, i.prod, i.cons), ("snap", 16, 0, Sync::Single, Sync::Multi));
    r.enqueue_bulk(&words(0, 5));
    assert_eq!(r.snapshot().len, 5);
    let (mut tx, mut rx) = r.split();
    thread::scope(|s| {
        s.spawn(move || {
            for i in 0..20_000 {
                tx.enqueue_burst(&words(i, 3));
            }
        });
        let mut out = room(4);
        for _ in 0..20_000 {
            rx.dequeue_burst(&mut out);
            assert!(rx.len() <= 16);
        }
    });
}
