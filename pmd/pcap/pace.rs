//! The time stamps of a capture as a clock that never goes back.

/// A step back of this much is a clock that was set, or two captures in one file; less is packets out of order.
const STEP_NS: u64 = 1_000_000_000;

/// When to send each record so that the gaps of the capture are kept, over any number of loops.
///
/// [`Pace::due`] is nanoseconds since the first record of the first loop. Records out of order by less than a second are due
/// together with the latest before them, so that the mean rate is kept; after a longer step back the gaps are counted
/// from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Stamp of the record that the current stretch counts from.
    first: Option<u64>,
    /// When that record was due.
    base: u64,
    /// When the last record was due.
    last: u64,
    /// Latest stamp of the current stretch.
    high: u64,
}

impl Pace {
    pub fn new() -> Pace {
        Pace::default()
    }

    /// When the record stamped `ts_ns` is due; never less than the answer before.
    pub fn due(&mut self, ts_ns: u64) -> u64 {
        let first = match self.first {
            Some(first) if self.high.saturating_sub(ts_ns) < STEP_NS => first,
            _ => {
                self.base = self.last;
                self.high = ts_ns;
                *self.first.insert(ts_ns)
            }
        };
        self.high = self.high.max(ts_ns);
        self.last = self.last.max(self.base.saturating_add(ts_ns.saturating_sub(first)));
        self.last
    }

    /// The capture starts again: its first record is due with the last one, and all gaps are kept from there.
    pub fn rewind(&mut self) {
        self.first = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_gap_is_kept_in_every_loop_and_time_does_not_go_back_at_the_loop() {
        let mut p = Pace::new();
        let mut due = Vec::new();
        for _ in 0..3 {
            due.extend([1_700_000_000 * S, 1_700_000_001 * S, 1_700_000_001 * S + 5].map(|t| p.due(t)));
            p.rewind();
        }
        assert_eq!(due, [0, S, S + 5, S + 5, 2 * S + 5, 2 * S + 10, 2 * S + 10, 3 * S + 10, 3 * S + 15]);
    }

    #[test]
    fn a_stamp_before_the_first_one_gives_no_negative_time() {
        let mut p = Pace::new();
        assert_eq!([500, 400, 450, 501, 700].map(|t| p.due(t)), [0, 0, 0, 1, 200]);
    }

    #[test]
    fn after_a_clock_was_set_back_the_gaps_are_kept_from_there() {
        let mut p = Pace::new();
        assert_eq!([100 * S, 101 * S, 7 * S, 8 * S].map(|t| p.due(t)), [0, S, S, 2 * S]);
    }

    #[test]
    fn more_than_eight_seconds_and_the_ends_of_the_range_keep_rising() {
        let mut p = Pace::new();
        let mut last = 0;
        for t in (0..3600).map(|s| s * S).chain([u64::MAX, 0, u64::MAX, 1]) {
            let due = p.due(t);
            assert!(due >= last);
            last = due;
        }
    }
}
