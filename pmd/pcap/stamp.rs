//! Time stamps of any resolution as nanoseconds since the epoch.
//!
//! The result is always within u64 (to the year 2554): what a file puts outside is clamped, and the caller counts it.

const NS: u64 = 1_000_000_000;

/// A stamp, and whether it had to be clamped.
pub(super) type Stamp = (u64, bool);

/// Classic pcap: seconds and a fraction in units of 1/`units` s (10^6 or 10^9). A fraction of a second or more is clamped to
/// the last unit of its second: carrying it over would let one bad field move a packet by more than an hour.
pub(super) fn from_parts(sec: u32, frac: u32, nanos: bool) -> Stamp {
    let (units, ns_per_unit) = if nanos { (1_000_000_000, 1) } else { (1_000_000, 1_000) };
    let clamped = frac >= units;
    (u64::from(sec) * NS + u64::from(frac.min(units - 1)) * ns_per_unit, clamped)
}

/// How the units of a pcapng interface become nanoseconds (if_tsresol, if_tsoffset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    step: Step,
    offset_s: i64,
    /// True where a unit is a nanosecond or less.
    pub(super) nanos: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// 10^-9 s or coarser.
    Times(u64),
    /// Finer than 10^-9 s.
    Over(u64),
    /// 2^-n s.
    Binary(u32),
    /// So fine that 64 bits of it are less than a nanosecond.
    Nothing,
}

impl Scale {
    /// `resol` as in the file: the top bit chooses a power of two, the other seven are the exponent.
    pub(super) fn new(resol: u8, offset_s: i64) -> Scale {
        let exp = u32::from(resol & 0x7f);
        let (step, nanos) = if resol & 0x80 != 0 {
            // 2^64 units of 2^-94 s are less than a nanosecond.
            (if exp < 94 { Step::Binary(exp) } else { Step::Nothing }, exp >= 30)
        } else if exp <= 9 {
            (Step::Times(10u64.pow(9 - exp)), exp == 9)
        } else {
            // 10^19 is the largest power of ten within u64; beyond it the quotient is 0.
            (10u64.checked_pow(exp - 9).map_or(Step::Nothing, Step::Over), true)
        };
        Scale { step, offset_s, nanos }
    }

    pub(super) fn ns(&self, units: u64) -> Stamp {
        // 128 bits hold every product; only the power-of-ten division would be slow there, and it stays in 64.
        let ns: i128 = match self.step {
            Step::Times(k) => i128::from(units) * i128::from(k),
            Step::Over(k) => i128::from(units / k),
            Step::Binary(n) => (i128::from(units) * i128::from(NS)) >> n,
            Step::Nothing => 0,
        };
        let ns = ns + i128::from(self.offset_s) * i128::from(NS);
        match u64::try_from(ns) {
            Ok(v) => (v, false),
            Err(_) => (if ns < 0 { 0 } else { u64::MAX }, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_resolution_gives_the_right_nanoseconds() {
        // 2^-10 s, as the top bit says: 1536 units are 1.5 s.
        assert_eq!(Scale::new(0x8a, 0).ns(1536), (1_500_000_000, false));
        // 2^-32 s, NTP's: half a second past 1_700_000_000.
        assert_eq!(Scale::new(0xa0, 0).ns((1_700_000_000 << 32) | 0x8000_0000), (1_700_000_000_500_000_000, false));
        assert_eq!(Scale::new(0x80, 0).ns(7), (7 * NS, false));
        assert_eq!(Scale::new(0xbf, 0).ns(u64::MAX), (1_999_999_999, false));
    }

    #[test]
    fn a_power_of_ten_resolution_gives_the_right_nanoseconds() {
        assert_eq!(Scale::new(6, 0).ns(1_340_954_905_298_858), (1_340_954_905_298_858_000, false));
        assert_eq!(Scale::new(9, 0).ns(123), (123, false));
        assert_eq!(Scale::new(0, 0).ns(5), (5 * NS, false));
        assert_eq!(Scale::new(12, 0).ns(5_999), (5, false));
        assert_eq!(Scale::new(28, 0).ns(u64::MAX), (1, false));
    }

    #[test]
    fn no_resolution_and_no_offset_overflows_or_gives_a_negative_time() {
        for resol in 0..=255 {
            for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
                for units in [0, 1, u64::MAX / 2, u64::MAX] {
                    Scale::new(resol, offset).ns(units);
                }
            }
        }
        assert_eq!(Scale::new(9, -1).ns(5), (0, true));
        assert_eq!(Scale::new(9, 2).ns(5), (2_000_000_005, false));
        assert_eq!(Scale::new(9, i64::MAX).ns(5), (u64::MAX, true));
        assert_eq!(Scale::new(0x7f, 0).ns(u64::MAX), (0, false));
    }

    #[test]
    fn a_fraction_above_its_second_is_clamped_to_that_second() {
        assert_eq!(from_parts(7, 999_999, false), (7_999_999_000, false));
        assert_eq!(from_parts(7, 4_294_968, false), (7_999_999_000, true));
        assert_eq!(from_parts(u32::MAX, u32::MAX, false), (4_294_967_295_999_999_000, true));
        assert_eq!(from_parts(u32::MAX, u32::MAX, true), (4_294_967_295_999_999_999, true));
        assert_eq!(from_parts(7, 999_999_999, true), (7_999_999_999, false));
    }
}
