//! `--stats-json`: one object, written at exit.

use burstline::base::{Error, Result};
use burstline::driver::FlushCause;
use burstline::pool::PoolInfo;
use burstline::port::{Port, Stats};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the object goes. Opened at the start, so that a path that cannot be written is known before anything runs; a file
/// that was not there before goes again if nothing is written.
pub enum Target {
    Stdout,
    File { path: PathBuf, file: File, made: bool },
}

impl Target {
    pub fn open(path: &Path) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let made = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Error::from_io(&e, format!("--stats-json '{}'", path.display())))?;
        Ok(Target::File { path: path.into(), file, made })
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self, Target::Stdout)
    }

    pub fn write(mut self, value: &Value) -> Result<()> {
        let text = format!("{value:#}\n");
        match &mut self {
            Target::Stdout => {
                let mut out = std::io::stdout().lock();
                let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                done.map_err(|e| Error::from_io(&e, "--stats-json -"))
            }
            Target::File { path, file, made } => {
                // A pipe or a device has no length to cut.
                if file.metadata().is_ok_and(|m| m.is_file()) {
                    file.set_len(0).map_err(|e| Error::from_io(&e, format!("--stats-json '{}'", path.display())))?;
                }
                let done = file.write_all(text.as_bytes());
                *made = false;
                done.map_err(|e| Error::from_io(&e, format!("--stats-json '{}'", path.display())))
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::File { path, made: true, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

pub fn object(ports: &[(Port, Stats)], pool: &PoolInfo) -> Value {
    let port = |(p, s): &(Port, Stats)| {
        let flush: Map<String, Value> =
            FlushCause::NAMES.iter().zip(s.tx_flush).map(|(cause, n)| (cause.to_string(), n.into())).collect();
        json!({
            "port": p.id(), "name": p.name(), "driver": p.driver().name,
            "ipackets": s.ipackets, "opackets": s.opackets, "ibytes": s.ibytes, "obytes": s.obytes,
            "imissed": s.imissed, "ierrors": s.ierrors, "oerrors": s.oerrors, "rx_nombuf": s.rx_nombuf,
            "tx_flush": flush,
        })
    };
    json!({
        "ports": ports.iter().map(port).collect::<Vec<_>>(),
        "pools": [{"name": pool.name, "size": pool.size, "available": pool.available}],
        "memory": {"page_size": pool.room_page},
    })
}
