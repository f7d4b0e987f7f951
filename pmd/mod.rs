//! The driver table.
