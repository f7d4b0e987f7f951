//!
//! [`Segment::private`] holds what only this process may see (packet headers, rings, queue state); [`Segment::shared`]
//! holds packet rooms, which a device or a peer may map. Both take hugepages where the kernel has them free and
//! ordinary pages where not: running without hugepages is a mode, not a failure.

pub mod arena;
pub mod foreign;
pub mod iova;
pub mod ladder;
pub mod numa;
pub mod page;
pub mod segment;

pub use arena::ArenaBox;
pub use foreign::{Foreign, ForeignRegion, Pod};
pub use iova::IovaMode;
pub use ladder::Ladder;
pub use page::{PagePolicy, PageSize};
pub use segment::Segment;
