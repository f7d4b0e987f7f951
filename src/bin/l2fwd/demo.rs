//! What runs when no device is named: the capture that is built in, from one port to the other, into a file.

use burstline::base::{Errno, Error, Result};
use burstline::driver::DevArgs;
use burstline::eal::EalArgs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const CAPTURE: &[u8] = include_bytes!("../../../captures/demo.pcap");

/// The directory with what goes in and what comes out. Dropped before [`Demo::keep`], it goes with all in it.
pub struct Demo {
    dir: PathBuf,
    kept: bool,
}

impl Demo {
    /// Writes the capture where the system keeps temporary files.
    pub fn new() -> Result<Demo> {
        let dir = std::env::temp_dir().join(format!("burstline-{}", std::process::id()));
        let failed = |what: &Path| {
            let what = what.display().to_string();
            move |e: std::io::Error| Error::from_io(&e, format!("'{what}' (TMPDIR names another place)"))
        };
        std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(failed(&dir))?;
        let demo = Demo { dir, kept: false };
        std::fs::write(demo.input(), CAPTURE).map_err(failed(&demo.input()))?;
        Ok(demo)
    }

    fn input(&self) -> PathBuf {
        self.dir.join("demo.pcap")
    }

    pub fn output(&self) -> PathBuf {
        self.dir.join("l2fwd-out.pcap")
    }

    /// Adds both devices.
    pub fn add_devices(&self, args: &mut EalArgs) -> Result<()> {
        let text = |p: PathBuf| match p.to_str() {
            Some(s) => Ok(s.to_owned()),
            None => Err(Error::new(Errno::INVAL, format!("'{}' is not UTF-8: set TMPDIR", p.display()))),
        };
        // In brackets: a path may hold a comma.
        for device in [
            format!("net_pcap0,rx_pcap=[{}],tx_pcap=/dev/null", text(self.input())?),
            format!("net_pcap1,tx_pcap=[{}]", text(self.output())?),
        ] {
            args.vdevs.push(DevArgs::parse(&device)?);
        }
        Ok(())
    }

    pub fn begin_text(&self) -> String {
        format!(
            "l2fwd: no device is named: replaying the capture that is built in (IPv4, IPv6, ARP, VLAN; {} bytes)\n\
             l2fwd: it comes in on port 0 (net_pcap0) and goes out on port 1 (net_pcap1)\n\
             l2fwd: what goes out is written to {}\n",
            CAPTURE.len(),
            self.output().display()
        )
    }

    /// The device has opened the input: its copy is not needed any more.
    pub fn remove_input(&self) {
        let _ = std::fs::remove_file(self.input());
    }

    /// Leaves the output to the user, and says how to look at it.
    pub fn keep(mut self, forwarded: u64) -> String {
        self.kept = true;
        let file = self.output();
        let file = file.display();
        format!("l2fwd: {forwarded} packets forwarded. Look at them: tcpdump -r {file}   or: tshark -r {file}\n")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.remove_input();
        if !self.kept {
            let _ = std::fs::remove_file(self.output());
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}
