//! What everything else stands on: errors, log, bit tricks, time, and the CPU.
//! Imports nothing of the crate.

pub mod bits;
pub mod cpu;
pub mod errno;
pub mod log;
pub mod time;

pub use errno::{Errno, Error, Result};
