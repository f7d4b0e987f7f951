//! What kernel-socket drivers share: interface requests, network namespaces, netdev counters, packet sockets.

pub mod iface;
pub mod netns;
pub mod packet;
pub mod poll;
pub mod stats;

pub use iface::{Ctl, LinkState};
pub use netns::NetNs;
pub use poll::wait_readable;
