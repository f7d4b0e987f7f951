//! Arguments, threads and lcores, probe, init.

pub mod affinity;
pub mod args;
pub mod cpulist;
pub mod launch;
mod options;
pub mod vdev;
