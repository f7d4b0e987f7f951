//! `net_pcap` sends to files, FIFOs and devices, through ports as a program uses them.

mod pcap_common;
mod support;

use pcap_common::*;
use std::path::Path;

use burstline::driver::{Errno, Event};
use burstline::mbuf::flags::FOREIGN;
use burstline::mbuf::{Burst, Mbuf};
use burstline::pmd::pcap::{Next, Reader};
use burstline::pool::slot::ThreadSlot;
use burstline::port::{PollGroup, PortConfig, TxPoller};

#[test]
fn a_packet_of_many_segments_is_one_record_of_its_whole_length() {
    let dir = Dir::new();
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(8192));
    for name in ["o.pcap", "o.pcapng"] {
        let out = dir.at(name);
        let p = port(&format!("tx_pcap={out}"), &pool);
        let mut tx = p.tx_queue(0).unwrap().bind(&slot);
        let mut burst = Burst::<32>::new();
        let mut want = Vec::new();
        // The last ones have more segments than one writev takes; so has the burst as a whole.
        for lens in [vec![60, 1, 2047], vec![1; 2500], vec![60], vec![3; 1023]] {
            let m = chain(&pool, &lens);
            want.push(m.to_vec());
            burst.push(m).unwrap();
        }
        // Too long for a record.
        burst.push(chain(&pool, &[2000; 132])).unwrap();
        assert_eq!(tx.burst(&mut burst), 5);
        let s = p.stats();
        assert_eq!((s.opackets, s.oerrors), (4, 1));
        assert_eq!(s.obytes, want.iter().map(|w| w.len() as u64).sum::<u64>());
        assert!(records(&out).iter().map(|r| &r.1).eq(&want), "{name}");
        assert_eq!(pool.available(), 8192);
    }
}

#[test]
fn a_port_without_a_sink_drops_and_counts_whole_packets() {
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    let p = port(&format!("rx_pcap={}", demo()), &pool);
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let mut burst = Burst::<32>::new();
    burst.push(chain(&pool, &[60, 100, 1000])).unwrap();
    assert_eq!(tx.burst(&mut burst), 1);
    assert_eq!((p.stats().opackets, p.stats().obytes), (1, 1160));
    assert_eq!(pool.available(), 64);
    // And a port without a source receives nothing.
    let p = port("tx_pcap=/dev/null", &pool);
    assert_eq!(p.rx_queue(0).unwrap().bind(&slot).burst(&mut burst), 0);
}

#[test]
fn snaplen_cuts_what_is_written_and_foreign_packets_are_written_too() {
    let dir = Dir::new();
    let out = dir.at("o.pcapng");
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    let p = port(&format!("tx_pcap={out},snaplen=70"), &pool);
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    let mut burst = Burst::<32>::new();
    let mut m = chain(&pool, &[60, 100]);
    let want = m.to_vec();
    // SAFETY: a flag that says less of the bytes than before.
    unsafe { m.raw_mut().ol_flags |= FOREIGN };
    burst.push(m).unwrap();
    tx.burst(&mut burst);
    let mut r = Reader::open(Path::new(&out)).unwrap();
    let Next::Record(rec) = r.next().unwrap() else { panic!("no record") };
    assert!(rec.orig_len == 160 && rec.data == &want[..70]);
    assert_eq!(p.stats().obytes, 160);
}

#[test]
fn a_full_device_costs_its_packets_and_says_so_in_oerrors() {
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let p = port("tx_pcap=/dev/full", &pool);
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    send(&mut tx, &pool, &vec![frame(0, 60); 40]);
    assert_eq!((p.stats().opackets, p.stats().oerrors, pool.available()), (0, 40, 128));
    drop(tx);
    p.close().unwrap();
}

/// A file system of 64 KiB at `dir`, seen by the calling thread alone and gone with it.
fn small_disk(dir: &str) {
    let d = std::ffi::CString::new(dir).unwrap();
    let (none, tmpfs, size) = (c"none", c"tmpfs", c"size=64k");
    // SAFETY: strings that end; the namespace is this thread's own, and made private before anything is mounted in it.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        let private = libc::MS_REC | libc::MS_PRIVATE;
        assert_eq!(libc::mount(none.as_ptr(), c"/".as_ptr(), none.as_ptr(), private, std::ptr::null()), 0);
        assert_eq!(libc::mount(tmpfs.as_ptr(), d.as_ptr(), tmpfs.as_ptr(), 0, size.as_ptr().cast()), 0);
    }
}

#[test]
fn a_full_disk_leaves_whole_records_and_what_follows_once_there_is_room_is_read_too() {
    support::need!("root", "netns");
    let dir = Dir::new();
    std::thread::scope(|s| {
        s.spawn(|| {
            small_disk(&dir.at(""));
            let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
            for name in ["o.pcap", "o.pcapng"] {
                let (out, ballast) = (dir.at(name), dir.at("ballast"));
                std::fs::write(&ballast, vec![0; 20_000]).unwrap();
                let p = port(&format!("tx_pcap={out}"), &pool);
                let mut tx = p.tx_queue(0).unwrap().bind(&slot);
                send(&mut tx, &pool, &(0..60).map(|i| frame(i, 1000)).collect::<Vec<_>>());
                let full = p.stats();
                assert!(full.opackets > 20 && full.oerrors > 5 && full.opackets + full.oerrors == 60, "{full:?}");
                assert_eq!(records(&out).len() as u64, full.opackets, "no record in part");
                std::fs::remove_file(&ballast).unwrap();
                send(&mut tx, &pool, &[frame(7, 900), frame(8, 900)]);
                let got = records(&out);
                assert_eq!(got.len() as u64, full.opackets + 2);
                assert!(got[got.len() - 1].1 == frame(8, 900));
                assert_eq!((p.stats().opackets, pool.available()), (full.opackets + 2, 128));
                drop(tx);
                p.close().unwrap();
                std::fs::remove_file(&out).unwrap();
            }
        });
    });
}

#[test]
fn dev_null_takes_everything() {
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(128));
    let p = port("tx_pcap=/dev/null", &pool);
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    for _ in 0..100 {
        send(&mut tx, &pool, &vec![frame(0, 60); 32]);
    }
    assert_eq!((p.stats().opackets, p.stats().obytes, pool.available()), (3200, 192_000, 128));
    assert_eq!(p.stats().tx_flush[0], 100);
}

fn mkfifo(path: &str) {
    let c = std::ffi::CString::new(path).unwrap();
    // SAFETY: a string that ends.
    assert_eq!(unsafe { libc::mkfifo(c.as_ptr(), 0o600) }, 0);
}

#[test]
fn a_fifo_carries_a_capture_from_one_port_to_another_and_nothing_is_lost_when_it_is_full() {
    let dir = Dir::new();
    let fifo = dir.at("fifo");
    mkfifo(&fifo);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(2048));
    let f = fifo.clone();
    let reading = std::thread::spawn(move || probe(&format!("rx_pcap={f}")).unwrap());
    let out = port_with(&format!("tx_pcap={fifo}"), &pool, &PortConfig::default(), 64);
    let input = reading.join().unwrap();
    input.configure(&PortConfig::default()).unwrap();
    input.rx_queue_setup(0, 0, &pool).unwrap();
    input.tx_queue_setup(0, 0).unwrap();
    input.start().unwrap();
    let (mut rx, mut tx) = (input.rx_queue(0).unwrap().bind(&slot), out.tx_queue(0).unwrap().bind(&slot));
    let mut burst = Burst::<32>::new();
    assert_eq!(rx.burst(&mut burst), 0, "nothing waits, and the call does not");
    // 64 KiB of pipe and 64 descriptors: then the queue says it is full.
    let mut sent = 0;
    loop {
        while burst.room() != 0 {
            burst.push(Mbuf::alloc_with(&pool, &frame(sent + burst.len(), 1000)).unwrap()).unwrap();
        }
        let n = tx.burst(&mut burst);
        sent += n;
        if !burst.is_empty() {
            break;
        }
    }
    let s = out.stats();
    assert!(sent as u64 == s.opackets + 64 && s.oerrors == 0, "{sent} {s:?}");
    burst.clear();
    let mut got = receive(&mut rx, s.opackets as usize);
    assert_eq!(tx.flush() as usize, sent - s.opackets as usize);
    got.extend(receive(&mut rx, sent - got.len()));
    assert_eq!(out.stats().opackets, sent as u64);
    assert!(got.iter().enumerate().all(|(i, m)| m.data().unwrap() == frame(i, 1000)));
    assert!(!input.take_events().contains(Event::END_OF_INPUT));
    // The writer goes: the capture has ended.
    drop(tx);
    out.close().unwrap();
    assert_eq!(rx.burst(&mut burst), 0);
    assert!(input.take_events().contains(Event::END_OF_INPUT));
    assert_eq!(input.stats().ierrors, 0);
}

#[test]
fn a_fifo_whose_reader_goes_costs_packets_and_not_the_process() {
    let dir = Dir::new();
    let fifo = dir.at("fifo");
    mkfifo(&fifo);
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(64));
    let f = fifo.clone();
    let reader = std::thread::spawn(move || std::fs::File::open(f).unwrap());
    let p = port(&format!("tx_pcap={fifo}"), &pool);
    drop(reader.join().unwrap());
    // As in a C program: the signal would end it. SAFETY: sets the default; a raised one would end this test.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let mut tx = p.tx_queue(0).unwrap().bind(&slot);
    send(&mut tx, &pool, &vec![frame(0, 60); 3]);
    send(&mut tx, &pool, &vec![frame(0, 60); 2]);
    assert_eq!((p.stats().opackets, p.stats().oerrors), (0, 5));
    assert!(p.take_events().contains(Event::REMOVED));
    assert_eq!(pool.available(), 64);
}

#[test]
fn what_cannot_be_is_refused_with_the_file_and_the_reason() {
    let dir = Dir::new();
    let file = dir.at("in.pcap");
    write(&file, &frames(1, 60));
    for (args, words) in [
        (format!("rx_pcap={}", dir.at("none")), "No such file"),
        (format!("rx_pcap={}", dir.at("")), "directory"),
        (format!("rx_pcap={file},tx_pcap={file}"), "before it is read"),
        (format!("tx_pcap={0},tx_pcap={0}", dir.at("x")), "twice"),
        (format!("tx_pcap={}", dir.at("no/x")), "No such file"),
    ] {
        let e = refused(&args);
        assert!(e.text().contains(words) && e.text().starts_with("net_pcap"), "{args}: {e}");
    }
    assert_eq!(records(&file).len(), 1, "not emptied");
    // Link type 113 in place of Ethernet.
    let mut raw = std::fs::read(&file).unwrap();
    raw[20..24].copy_from_slice(&113u32.to_ne_bytes());
    std::fs::write(&file, raw).unwrap();
    let e = refused(&format!("rx_pcap={file}"));
    assert!(e.errno() == Errno::INVAL && e.text().contains("LINUX_SLL"), "{e}");
}

#[test]
fn a_poll_group_rings_a_file_at_fill_when_idle_and_at_the_deadline() {
    let dir = Dir::new();
    let out = dir.at("o.pcap");
    let (slot, pool) = (ThreadSlot::register().unwrap(), pool(256));
    let p = port(&format!("tx_pcap={out}"), &pool);
    let mut group = PollGroup::new();
    group.add_rx(&p, 0).unwrap();
    assert!(group.add_tx(&p, 0, 1000, 50).is_err(), "above the descriptors");
    group.add_tx(&p, 0, 8, 5_000_000).unwrap();
    let (mut rx, mut tx) = (p.rx_queue(0).unwrap().bind(&slot), p.tx_queue(0).unwrap().bind(&slot));
    let mut burst = Burst::<32>::new();
    let more = |tx: &mut TxPoller<'_>, n: usize| {
        let mut b = Burst::<32>::new();
        (0..n).for_each(|i| b.push(Mbuf::alloc_with(&pool, &frame(i, 60)).unwrap()).unwrap());
        assert_eq!(tx.burst_more(&mut b), n);
    };
    more(&mut tx, 5);
    assert_eq!((p.stats().opackets, records(&out).len()), (0, 0), "staged");
    more(&mut tx, 5);
    assert_eq!((p.stats().opackets, p.stats().tx_flush), (10, [0, 1, 0, 0, 0]), "at the fill level");
    more(&mut tx, 2);
    rx.burst(&mut burst);
    assert_eq!((p.stats().opackets, p.stats().tx_flush), (12, [0, 1, 1, 0, 0]), "after one empty lap");
    more(&mut tx, 3);
    assert_eq!(tx.flush(), 3);
    more(&mut tx, 4);
    drop((rx, tx));
    p.stop().unwrap();
    assert_eq!((p.stats().opackets, p.stats().tx_flush), (19, [0, 1, 1, 0, 2]), "stop rings what is staged");
    assert_eq!(records(&out).len(), 19);
    assert_eq!(pool.available(), 256);
}
