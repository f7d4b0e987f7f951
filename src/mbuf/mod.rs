//! Packet buffers. `layout` is the frozen struct that C sees; the rest are the operations on it.

pub mod burst;
pub mod chain;
pub mod check;
pub mod clone;
pub mod data;
pub use layout::flags;
pub mod layout;
pub mod owner;
pub mod view;

pub use burst::Burst;
pub use layout::{ExtShared, RawMbuf};
pub use owner::Mbuf;
pub use view::{Seg, Segments};
