//! Packet pools: headers and rooms in two segments, a shared ring of free headers, and a cache for each thread.

mod cache;
mod debug;
mod handle;
mod inner;
mod local;
mod release;
pub mod slot;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_close;
#[cfg(test)]
mod tests_life;

pub use cache::CacheStats;
pub use handle::{Pool, PoolConfig, PoolInfo, list, set_debug};
pub use inner::{HEADROOM, MAX_CACHE, PoolInner, PoolRef};
pub use local::{RxPool, TxRecycler};
pub use release::{
    alloc_one_raw, alloc_raw, free_chain, free_packet, free_packets, pool_of, release_segment, set_iova_for_room,
};
