//! The C surface: a thin skin, one file a noun, and the only place of exported symbols.
//!
//! Three shapes of functions. Control calls return 0 (or a count) or `-errno`; constructors a pointer or NULL; both leave a
//! text for `bl_last_error`, and a panic stops at them (guard.rs). Hot calls (bursts, packet alloc and free, rings) are
//! bare: no text, no guard, for nothing in them can panic.
//!
//! `include/burstline.h` is made of these files by cbindgen, the comments included; `tests/header_fresh.rs` holds the list.
//! The contract of each pointer stands in its function's comment, which C reads: hence no `# Safety` sections.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod guard;
mod sized;

pub mod init;
pub mod log;
pub mod driver;
pub mod pool;
pub mod mbuf;
pub mod accessors;
pub mod ring;
pub mod port;
pub mod queue;
pub mod link;
pub mod burst;
pub mod fastpath;
pub mod poll_group;
pub mod stats;
pub mod event;
pub mod thread;
pub mod lcore;
