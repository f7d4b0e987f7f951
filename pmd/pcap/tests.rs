//! The codec against files made byte by byte, and against noise.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;

mod broken;
mod classic_files;
mod ng_files;
mod written;

/// A file of its own for each call, gone when dropped.
pub(super) struct Temp(pub(super) PathBuf);

impl Temp {
    pub(super) fn named(suffix: &str) -> Temp {
        static N: AtomicU32 = AtomicU32::new(0);
        let n = N.fetch_add(1, Ordering::Relaxed);
        Temp(std::env::temp_dir().join(format!("burstline-pcap-{}-{n}{suffix}", std::process::id())))
    }

    pub(super) fn of(bytes: &[u8]) -> Temp {
        let t = Temp::named("");
        File::create(&t.0).unwrap().write_all(bytes).unwrap();
        t
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Owned, to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Eof,
    Truncated(u64),
    NotYet,
    Error(String),
}

pub(super) type Packet = (u64, Vec<u8>, u32);

pub(super) fn drain(r: &mut Reader) -> (Vec<Packet>, End) {
    let mut packets = Vec::new();
    loop {
        match r.next() {
            Ok(Next::Record(p)) => packets.push((p.ts_ns, p.data.to_vec(), p.orig_len)),
            Ok(Next::Eof) => return (packets, End::Eof),
            Ok(Next::Truncated { offset }) => return (packets, End::Truncated(offset)),
            Ok(Next::NotYet) => return (packets, End::NotYet),
            Err(e) => return (packets, End::Error(e.to_string())),
        }
    }
}

pub(super) fn read(bytes: &[u8]) -> (Vec<Packet>, End) {
    let t = Temp::of(bytes);
    drain(&mut Reader::open(&t.0).unwrap())
}

pub(super) fn refusal(bytes: &[u8]) -> crate::driver::Error {
    Reader::open(&Temp::of(bytes).0).unwrap_err()
}

/// Builds a file in the byte order asked for.
#[derive(Clone)]
pub(super) struct Make {
    pub(super) big: bool,
    pub(super) out: Vec<u8>,
}

impl Make {
    pub(super) fn new(big: bool) -> Make {
        Make { big, out: Vec::new() }
    }

    pub(super) fn u32(mut self, v: u32) -> Make {
        self.out.extend(if self.big { v.to_be_bytes() } else { v.to_le_bytes() });
        self
    }

    pub(super) fn u16(mut self, v: u16) -> Make {
        self.out.extend(if self.big { v.to_be_bytes() } else { v.to_le_bytes() });
        self
    }

    pub(super) fn bytes(mut self, b: &[u8]) -> Make {
        self.out.extend(b);
        self
    }

    pub(super) fn classic(self, magic: u32, snaplen: u32, network: u32) -> Make {
        self.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(snaplen).u32(network)
    }

    pub(super) fn record(self, sec: u32, frac: u32, data: &[u8], orig: u32) -> Make {
        self.u32(sec).u32(frac).u32(data.len() as u32).u32(orig).bytes(data)
    }

    pub(super) fn block(self, kind: u32, body: impl FnOnce(Make) -> Make) -> Make {
        let mut body = body(Make::new(self.big)).out;
        body.resize(body.len().next_multiple_of(4), 0);
        let total = body.len() as u32 + 12;
        self.u32(kind).u32(total).bytes(&body).u32(total)
    }

    pub(super) fn section(self) -> Make {
        self.block(0x0a0d_0d0a, |b| b.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX))
    }

    /// `options`: (code, value).
    pub(super) fn interface(self, linktype: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Make {
        self.block(1, |mut b| {
            b = b.u16(linktype).u16(0).u32(snaplen);
            for (code, value) in options {
                b = b.u16(*code).u16(value.len() as u16).bytes(value);
                b.out.resize(b.out.len().next_multiple_of(4), 0);
            }
            b
        })
    }

    pub(super) fn packet(self, interface: u32, units: u64, data: &[u8], orig: u32) -> Make {
        self.block(6, |b| {
            b.u32(interface).u32((units >> 32) as u32).u32(units as u32).u32(data.len() as u32).u32(orig).bytes(data)
        })
    }
}

#[test]
fn a_reader_may_move_to_another_thread() {
    fn send<T: Send>() {}
    send::<Reader>();
    send::<Writer>();
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let e = Reader::open(Path::new("/nonexistent/x.pcap")).unwrap_err();
    assert_eq!(e.errno().0, libc::ENOENT);
    assert!(e.text().contains("'/nonexistent/x.pcap'"), "{e}");
    let e = Reader::open(&std::env::temp_dir()).unwrap_err();
    assert_eq!(e.errno().0, libc::EISDIR);
    assert!(e.text().contains("is a directory"), "{e}");
    assert_eq!(Reader::open(Path::new("a\0b")).unwrap_err().errno().0, libc::EINVAL);
}

#[test]
fn a_fifo_is_read_once_and_cannot_be_rewound() {
    let (mut tx, rx) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(rx));
    let m = Make::new(false).classic(0xa1b2_c3d4, 65535, 1).record(1, 2, b"abc", 3);
    tx.write_all(&m.out).unwrap();
    let mut r = Reader::from_file(file, Path::new("stream")).unwrap();
    drop(tx);
    assert_eq!(drain(&mut r), (vec![(1_000_002_000, b"abc".to_vec(), 3)], End::Eof));
    let e = r.rewind().unwrap_err();
    assert_eq!(e.errno().0, libc::ESPIPE);
    assert!(e.text().contains("'stream' cannot be read a second time"), "{e}");
}

#[test]
fn a_non_blocking_stream_says_not_yet_at_every_byte_and_loses_nothing() {
    let ng = Make::new(true)
        .section()
        .interface(1, 0, &[(9, &[9])])
        .block(0x0bad, |b| b.bytes(&[7; 40]))
        .packet(0, 5, b"hello", 9)
        .block(4, |b| b.bytes(&[1; 12]))
        .packet(0, 6, b"world!", 6);
    let classic = Make::new(false).classic(0xa1b2_3c4d, 65535, 1).record(0, 5, b"hello", 9).record(0, 6, b"world!", 6);
    for (m, head) in [(ng, 28 + 28), (classic, 24)] {
        let (mut tx, rx) = std::os::unix::net::UnixStream::pair().unwrap();
        rx.set_nonblocking(true).unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(rx));
        tx.write_all(&m.out[..head]).unwrap();
        let mut r = Reader::from_file(file, Path::new("stream")).unwrap();
        let mut got = Vec::new();
        for b in &m.out[head..] {
            tx.write_all(&[*b]).unwrap();
            let (packets, end) = drain(&mut r);
            assert_eq!(end, End::NotYet);
            got.extend(packets);
        }
        drop(tx);
        assert_eq!(drain(&mut r), (vec![], End::Eof));
        assert_eq!(got, [(5, b"hello".to_vec(), 9), (6, b"world!".to_vec(), 6)]);
    }
}
