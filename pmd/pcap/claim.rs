//! Which regular files this process's ports read and write: what one of them writes, no other may touch.

use crate::driver::*;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

static CLAIMS: Mutex<Vec<Claim>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq, Eq)]
struct Claim {
    dev: u64,
    ino: u64,
    writes: bool,
}

/// Held by who reads or writes a file.
pub(super) struct Claimed(Option<Claim>);

fn claims() -> MutexGuard<'static, Vec<Claim>> {
    CLAIMS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Claimed {
    pub fn none() -> Claimed {
        Claimed(None)
    }

    /// For reading (any number may), or for writing (alone). What is no regular file is free to all.
    pub fn take(path: &Path, meta: &Metadata, writes: bool) -> Result<Claimed> {
        if !meta.is_file() {
            return Ok(Claimed(None));
        }
        let own = Claim { dev: meta.dev(), ino: meta.ino(), writes };
        let mut all = claims();
        let other = all.iter().find(|c| (c.dev, c.ino) == (own.dev, own.ino) && (c.writes || writes));
        if let Some(other) = other {
            let does = if other.writes { "written" } else { "read" };
            return fail!(BUSY, "'{}' is {does} by another port: give each tx_pcap a file of its own", path.display());
        }
        all.push(own);
        Ok(Claimed(Some(own)))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut all = claims();
        if let Some(i) = self.0.and_then(|own| all.iter().position(|c| *c == own)) {
            all.swap_remove(i);
        }
    }
}
