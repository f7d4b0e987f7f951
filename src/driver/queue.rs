//! The cold side of a queue.

use super::ctx::{RxCtx, TxCtx};
use super::hot::{RxEntry, TxEntry};
use crate::base::Result;
use core::time::Duration;

/// A receive queue, as its port sees it. Called only while nobody bursts on it.
pub trait RxQueue: Send {
    /// The burst function for the settings of now, and the queue it wants. Asked at each start. The address stays valid
    /// as long as the box does.
    fn entry(&mut self) -> RxEntry;
    fn ctx(&mut self) -> &mut RxCtx;
    fn start(&mut self) -> Result<()> {
        Ok(())
    }
    /// Gives every packet back that the queue holds. What is thereby lost is counted.
    fn stop(&mut self) {}
}

/// A send queue, as its port sees it. Called only while nobody bursts on it.
pub trait TxQueue: Send {
    fn entry(&mut self) -> TxEntry;
    fn ctx(&mut self) -> &mut TxCtx;
    fn start(&mut self) -> Result<()> {
        Ok(())
    }
    /// Rings what is staged, waits for the device within `limit`, and frees every packet. Returns how many announced
    /// packets were not done by then.
    fn stop(&mut self, limit: Duration) -> u32;
}
