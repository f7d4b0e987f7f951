//! Helpers of the integration tests: `mod support;` in a file under tests/. Unix and std only, apart from libc.
//!
//! `need!` says when a test cannot run here; `netns` makes network namespaces; `run` starts, waits for and ends programs.
//! Each test binary uses its own part of this, so what one leaves unused is no warning.
#![allow(dead_code, unused_imports, unused_macros)]

pub mod between;
pub mod e2e;
pub mod tools;
pub mod house;
pub mod netns;
pub mod run;
pub mod clib;

pub(crate) use tools::need;
