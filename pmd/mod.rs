//! The driver table.

pub mod pcap;
