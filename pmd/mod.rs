//! The driver table.

pub mod tap;
