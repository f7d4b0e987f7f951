//! Packet pools: headers and rooms, and the per-thread cache.
