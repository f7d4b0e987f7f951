//! Burstline: poll-mode packet drivers with burst receive and send, hugepage pools, and deferred tail flush.
//!
//! The modules stand in the order in which a packet meets them.
//!
#![doc = include_str!("../docs/rust-api.md")]

pub mod base;
pub mod mem;
pub mod ring;
pub mod mbuf;
pub mod pool;
pub mod wire;
pub mod driver;
pub mod sock;
#[path = "../pmd/mod.rs"]
pub mod pmd;
pub mod port;
pub mod eal;
pub mod capi;
