//! The contract that a driver signs.
pub mod devargs;
