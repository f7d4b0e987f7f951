//! The TAP driver: a port that is an interface of this kernel.

pub mod kernel;
