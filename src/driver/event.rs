//! What a device tells its program outside the bursts.

use std::sync::Arc;

bitflags::bitflags! {
    /// Things that happened on a port since they were last taken.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Event: u32 {
        /// The link went up or down.
        const LINK = 1 << 0;
        /// A capture was read to its end: receive returns 0, the link stays up, send goes on.
        const END_OF_INPUT = 1 << 1;
        /// The device is gone (its interface was deleted, its file failed).
        const REMOVED = 1 << 2;
        /// The device was reset, and must be started again.
        const RESET = 1 << 3;
    }
}

/// Where a device puts its events. Cheap to clone; raising is allowed in a burst, as it happens once in a while.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(Event) + Send + Sync>);

impl EventSink {
    pub fn new(f: impl Fn(Event) + Send + Sync + 'static) -> EventSink {
        EventSink(Arc::new(f))
    }

    pub fn raise(&self, e: Event) {
        (self.0)(e);
    }
}

impl Default for EventSink {
    fn default() -> EventSink {
        EventSink::new(|_| {})
    }
}
