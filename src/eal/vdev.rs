//! From `--vdev`'s text to a port.

use crate::base::Result;
use crate::driver::{DevArgs, Driver, devargs};
use crate::fail;
use crate::pmd;
use crate::port::Port;

/// Every driver that is built in.
pub fn drivers() -> &'static [&'static Driver] {
    pmd::DRIVERS
}

/// Makes the device of `net_null0,key=value` and puts it into the port table.
pub fn probe(args: &str) -> Result<Port> {
    let args = DevArgs::parse(args)?;
    let Some(driver) = drivers().iter().find(|d| d.name == args.driver) else {
        let names: Vec<_> = drivers().iter().map(|d| d.name).collect();
        let near = devargs::nearest(&args.driver, &names).map_or(String::new(), |n| format!("; did you mean {n}?"));
        return fail!(NODEV, "{}: no driver '{}'; there are {}{near}", args.name, args.driver, names.join(", "));
    };
    let dev = (driver.probe)(&args).map_err(|e| e.context(&args.name))?;
    Port::attach(&args.name, driver, dev)
}
