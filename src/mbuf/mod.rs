//! Packet buffers.
