//! When the next record may be handed out.

use super::Pace;
use super::args::Timing;

const NS: u64 = 1_000_000_000;

/// Nanoseconds since the start at which each record is due. What comes late because nobody called is due at once, so the
/// mean rate is kept.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    timing: Timing,
    pace: Pace,
    /// When the next record is due, for rates; the rest of the division beside it.
    next: u64,
    rest: u64,
}

impl Schedule {
    pub fn new(timing: Timing) -> Schedule {
        Schedule { timing, pace: Pace::new(), next: 0, rest: 0 }
    }

    pub fn is_asap(&self) -> bool {
        self.timing == Timing::Asap
    }

    /// When the record that comes next is due. Call it once a record, in order.
    pub fn due(&mut self, ts_ns: u64, len: usize) -> u64 {
        match self.timing {
            Timing::Asap => 0,
            Timing::Original(speed) => {
                let due = self.pace.due(ts_ns);
                if speed == 1.0 { due } else { (due as f64 / speed) as u64 }
            }
            Timing::PacketsPerSecond(rate) => self.step(NS, rate),
            Timing::BitsPerSecond(rate) => self.step((len as u64).saturating_mul(8 * NS), rate),
        }
    }

    /// The answer now, and `of / rate` later for the next one.
    fn step(&mut self, of: u64, rate: u64) -> u64 {
        let due = self.next;
        let sum = of.saturating_add(self.rest);
        self.next = self.next.saturating_add(sum / rate.max(1));
        self.rest = sum % rate.max(1);
        due
    }

    /// The files start again.
    pub fn rewind(&mut self) {
        self.pace.rewind();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_to_the_nanosecond_over_many_records() {
        let mut s = Schedule::new(Timing::PacketsPerSecond(3_000_000));
        let mut last = 0;
        for _ in 0..3_000_001 {
            last = s.due(0, 60);
        }
        assert_eq!(last, NS);
        let mut s = Schedule::new(Timing::BitsPerSecond(10_000_000));
        assert_eq!([1250, 125, 125].map(|len| s.due(0, len)), [0, 1_000_000, 1_100_000]);
    }

    #[test]
    fn a_scaled_capture_keeps_its_gaps_in_proportion() {
        let mut s = Schedule::new(Timing::Original(2.0));
        assert_eq!([7 * NS, 8 * NS, 10 * NS].map(|t| s.due(t, 60)), [0, NS / 2, 3 * NS / 2]);
        s.rewind();
        assert_eq!(s.due(7 * NS, 60), 3 * NS / 2);
    }
}
