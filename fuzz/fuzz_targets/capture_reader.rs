//! Any bytes as a capture file: the reader must come to an end, and no record may break its promises.
//! `cargo fuzz run capture_reader` (needs cargo-fuzz and a nightly toolchain).
#![no_main]

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use burstline::pmd::pcap::{MAX_RECORD, Next, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Memory, not a disk, and gone with the descriptor.
    let path = format!("/dev/shm/burstline-fuzz-{}", std::process::id());
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let Ok(mut reader) = Reader::from_file(file, Path::new("fuzz")) else { return };
    // No record is shorter than 12 bytes with what stands around it.
    for _ in 0..=bytes.len() / 12 {
        match reader.next() {
            Ok(Next::Record(r)) => {
                assert!(r.data.len() <= MAX_RECORD as usize);
                assert!(r.orig_len as usize >= r.data.len());
            }
            Ok(Next::Truncated { offset }) => {
                assert!(offset < bytes.len() as u64);
                return;
            }
            Ok(Next::NotYet) => panic!("a file is always there"),
            Ok(Next::Eof) | Err(_) => return,
        }
    }
    panic!("no end");
});
