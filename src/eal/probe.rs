//! Finds the driver of each device that was asked for, and makes a port of it.

use crate::base::{Errno, Error, Result};
use crate::driver::devargs::{DevArgs, nearest};
use crate::driver::{Doorbell, Driver};
use crate::log_warn;
use crate::pmd::DRIVERS;
use crate::port::Port;
use std::path::Path;

/// What a list of drivers says of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    pub name: &'static str,
    pub summary: &'static str,
    /// Device keys and what they mean.
    pub keys: &'static [(&'static str, &'static str)],
    /// What it needs of the machine.
    pub needs: &'static str,
    pub doorbell: Doorbell,
}

/// The drivers built in, in the order of the driver table.
pub fn drivers() -> Vec<DriverInfo> {
    let info = |d: &&Driver| DriverInfo {
        name: d.name,
        summary: d.summary,
        keys: d.keys,
        needs: d.needs,
        doorbell: d.doorbell,
    };
    DRIVERS.iter().map(info).collect()
}

/// The drivers built in, for help: name, summary, needs and keys.
pub fn drivers_text() -> String {
    let mut out = String::new();
    for d in drivers() {
        out += &format!("  {:<18} {}\n  {:<18} needs: {}\n", d.name, d.summary, "", d.needs);
        for (key, what) in d.keys {
            out += &format!("  {:<18}   {key}=  {what}\n", "");
        }
    }
    out
}

fn names() -> Vec<&'static str> {
    DRIVERS.iter().map(|d| d.name).collect()
}

/// The driver of a device: the one it is named by, else the longest that its name begins with (`net_null_left`).
fn find(args: &DevArgs) -> Result<&'static Driver> {
    let exact = DRIVERS.iter().find(|d| d.name == args.driver);
    let prefix = || DRIVERS.iter().filter(|d| args.name.starts_with(d.name)).max_by_key(|d| d.name.len());
    match exact.or_else(prefix) {
        Some(d) => Ok(d),
        None => {
            let hint = nearest(&args.driver, &names()).map(|n| format!(", did you mean '{n}'?")).unwrap_or_default();
            Err(Error::new(
                Errno::NODEV,
                format!("--vdev {}: no driver '{}'{hint} (built in: {})", args.name, args.driver, names().join(", ")),
            ))
        }
    }
}

/// Makes a port of each device in `vdevs`, in order. On an error those made are closed.
pub(super) fn attach_all(vdevs: &[DevArgs]) -> Result<Vec<Port>> {
    let mut ports = Vec::with_capacity(vdevs.len());
    for args in vdevs {
        match attach(args) {
            Ok(port) => ports.push(port),
            Err(e) => {
                close_all(&ports);
                return Err(e);
            }
        }
    }
    Ok(ports)
}

/// Makes a port of one device; nothing is left on an error.
pub fn attach(args: &DevArgs) -> Result<Port> {
    let driver = find(args)?;
    // Asked before the device is made: a second of this name would fight with the first over a file or an interface.
    if Port::by_name(&args.name).is_ok() {
        return Err(Error::new(Errno::EXIST, format!("--vdev {}: there is a port of this name already", args.name)));
    }
    // The driver names its device in its errors; where it did not, we do.
    let named = |e: Error| if e.text().contains(&args.name) { e } else { e.context(&args.name) };
    Port::attach(&args.name, driver, (driver.probe)(args).map_err(named)?)
}

/// Closes what a failed init has made.
pub(super) fn close_all(ports: &[Port]) {
    for port in ports.iter().rev() {
        if let Err(e) = port.close() {
            log_warn!("{e}");
        }
    }
}

/// Network devices on the PCI bus, and why none became a port: one line each.
pub(super) fn skipped_pci(no_pci: bool) -> Vec<String> {
    if no_pci {
        return vec!["PCI devices: --no-pci, not looked for".into()];
    }
    let mut found = network_devices(Path::new("/sys/bus/pci/devices"));
    if found.is_empty() {
        found.push("PCI devices: none on this machine is a network device".into());
    }
    found
}

fn network_devices(root: &Path) -> Vec<String> {
    let read = |dir: &Path, file: &str| std::fs::read_to_string(dir.join(file)).unwrap_or_default().trim().to_owned();
    let mut found: Vec<String> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        // Class 02: network controller (PCI Code and ID Assignment Specification).
        .filter(|dir| read(dir, "class").starts_with("0x02"))
        .map(|dir| {
            let address = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let id = |file| read(&dir, file).trim_start_matches("0x").to_owned();
            format!("{address} ({}:{}): no PCI driver is built in", id("vendor"), id("device"))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_finds_its_driver_by_name_or_by_prefix() {
        for name in ["net_null0", "net_null", "net_null_left", "net_nullx9y"] {
            assert_eq!(find(&DevArgs::parse(name).unwrap()).unwrap().name, "net_null", "{name}");
        }
        let e = find(&DevArgs::parse("net_nul0").unwrap()).err().unwrap();
        assert_eq!(e.errno(), Errno::NODEV);
        assert!(
            e.text().starts_with("--vdev net_nul0: no driver 'net_nul', did you mean 'net_null'? (built in: net_null")
        );
    }

    #[test]
    fn a_network_device_without_a_driver_is_listed() {
        let root = std::env::temp_dir().join(format!("burstline-pci-{}", std::process::id()));
        for (address, class) in [("0000:00:03.0", "0x020000\n"), ("0000:00:04.0", "0x010000\n")] {
            let dir = root.join(address);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("class"), class).unwrap();
            std::fs::write(dir.join("vendor"), "0x8086\n").unwrap();
            std::fs::write(dir.join("device"), "0x10d3\n").unwrap();
        }
        let found = network_devices(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, ["0000:00:03.0 (8086:10d3): no PCI driver is built in"]);
    }
}
