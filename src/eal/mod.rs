//! Arguments, threads and lcores, probe, init.

pub mod affinity;
pub mod cpulist;
pub mod launch;
