//! The contract that a driver signs.
