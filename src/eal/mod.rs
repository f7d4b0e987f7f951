//! Arguments, threads and lcores, probe, init.
