//! Checked views of protocol headers. No unsafe.

pub mod eth;
