//! The rows, for the inline bursts of `burstline/fastpath.h`.

use crate::port::row::{MAX_PORTS, MAX_QUEUES, Row, TABLE};

/// The first of BL_MAX_PORTS × BL_MAX_QUEUES rows; that of a queue is number `port * BL_MAX_QUEUES + queue`. An exported pointer
/// and not the array itself, so that its place and length are the library's affair.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static bl_fastpath_rows: &[Row; MAX_PORTS * MAX_QUEUES] = TABLE;
