//! Arguments, threads and lcores, probe, init.

pub mod affinity;
pub mod args;
pub mod cpulist;
pub mod init;
pub mod launch;
mod options;
mod probe;
pub mod signal;

pub use args::EalArgs;
pub use cpulist::LcoreSpec;
pub use init::Eal;
pub use launch::{LcoreCtx, StopFlag, Workers};
pub use probe::{DriverInfo, attach, drivers, drivers_text};
