//! Which lcores there are and which CPUs each may run on: `-l`, `-c` and `--lcores`, as DPDK reads them.
//!
//! ```text
//! -l 0,2-4                 lcore 0 on CPU 0, lcores 2, 3, 4 on CPUs 2, 3, 4
//! -c 0x1d                  the same, as a mask
//! --lcores 0@4,1@5-6       lcore 0 on CPU 4, lcore 1 on CPUs 5 and 6
//! --lcores (1-2)@(3,7)     lcores 1 and 2, each on CPUs 3 and 7
//! --lcores (0,6)           lcores 0 and 6, each on CPUs 0 and 6
//! ```

use crate::base::Result;
use crate::invalid;

/// Lcores are numbered below this (DPDK's RTE_MAX_LCORE as it is built by default).
pub const MAX_LCORE: u32 = 128;
/// CPUs are numbered below this (bits of a cpu_set_t, sched.h).
pub const MAX_CPU: u32 = libc::CPU_SETSIZE as u32;

/// One lcore and the CPUs its thread may run on (sorted, at least one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcoreSpec {
    pub lcore: u32,
    pub cpus: Vec<u32>,
}

/// Reads the list of `-l` and `--lcores` (`option` is named in errors): items `LCORES` or `LCORES@CPUS` with commas
/// between; each side is `N`, `N-M` or `(…)` of these. Without `@`, an lcore runs on the CPU of its number, and those
/// of a group on all CPUs of the group. Sorted by lcore; an lcore that stands twice is refused.
pub fn parse_list(option: &str, s: &str) -> Result<Vec<LcoreSpec>> {
    let mut p = Parser { option, text: s, at: 0 };
    let mut specs: Vec<LcoreSpec> = Vec::new();
    loop {
        let (lcores, group) = p.set("lcore", MAX_LCORE)?;
        let cpus = if p.eat('@') { Some(p.set("CPU", MAX_CPU)?.0) } else { group.then(|| lcores.clone()) };
        for &lcore in &lcores {
            if specs.iter().any(|spec| spec.lcore == lcore) {
                return invalid!("{option} {}: lcore {lcore} stands twice", p.shown());
            }
            specs.push(LcoreSpec { lcore, cpus: cpus.clone().unwrap_or_else(|| vec![lcore]) });
        }
        if p.rest().is_empty() {
            break;
        }
        if !p.eat(',') {
            return p.expected("a comma or the end");
        }
    }
    specs.sort_by_key(|spec| spec.lcore);
    Ok(specs)
}

/// Reads the hexadecimal mask of `-c`, with or without `0x`: bit N is lcore N on CPU N.
pub fn parse_mask(option: &str, s: &str) -> Result<Vec<LcoreSpec>> {
    let p = Parser { option, text: s, at: 0 };
    let digits = s.strip_prefix("0x").or_else(|| s.strip_prefix("0X")).unwrap_or(s);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return invalid!("{option} {}: no hexadecimal mask (for example 0x3; a list of cores is -l)", p.shown());
    }
    let mut specs = Vec::new();
    for (nibble, digit) in digits.bytes().rev().enumerate() {
        let bits = (digit as char).to_digit(16).unwrap_or(0);
        for bit in (0..4).filter(|bit| bits & (1 << bit) != 0) {
            let lcore = nibble * 4 + bit;
            if lcore >= MAX_LCORE as usize {
                return invalid!("{option} {}: lcore {lcore}, limit {}", p.shown(), MAX_LCORE - 1);
            }
            specs.push(LcoreSpec { lcore: lcore as u32, cpus: vec![lcore as u32] });
        }
    }
    if specs.is_empty() {
        return invalid!("{option} {}: the mask has no core in it", p.shown());
    }
    Ok(specs)
}

/// Refuses CPUs outside `allowed`, naming them and the allowed ones. An empty `allowed` means that the system would
/// not say: then the kernel decides when a thread is pinned.
pub fn check_allowed(option: &str, specs: &[LcoreSpec], allowed: &[u32]) -> Result<()> {
    let mut bad: Vec<u32> = specs.iter().flat_map(|s| &s.cpus).filter(|c| !allowed.contains(c)).copied().collect();
    if allowed.is_empty() || bad.is_empty() {
        return Ok(());
    }
    bad.sort_unstable();
    bad.dedup();
    invalid!(
        "{option}: CPU {} not there or not allowed for this process (allowed: {})",
        format_list(&bad),
        format_list(allowed)
    )
}

/// `[0, 1, 2, 5]` as `0-2,5`.
pub fn format_list(sorted: &[u32]) -> String {
    let mut out = String::new();
    for run in sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        let comma = if out.is_empty() { "" } else { "," };
        out += &match run {
            [one] => format!("{comma}{one}"),
            _ => format!("{comma}{}-{}", run[0], run[run.len() - 1]),
        };
    }
    out
}

struct Parser<'a> {
    option: &'a str,
    text: &'a str,
    /// Always on a character's border: only ASCII is ever stepped over.
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// `N`, `N-M` or `(…)`: sorted numbers, and whether it was a group.
    fn set(&mut self, what: &str, limit: u32) -> Result<(Vec<u32>, bool)> {
        let mut set = Vec::new();
        let group = self.eat('(');
        loop {
            self.range(what, limit, &mut set)?;
            if !group {
                break;
            }
            if self.eat(')') {
                break;
            }
            if !self.eat(',') {
                return self.expected("',' or ')'");
            }
        }
        set.sort_unstable();
        match set.windows(2).find(|w| w[0] == w[1]) {
            Some(w) => invalid!("{} {}: {what} {} stands twice", self.option, self.shown(), w[0]),
            None => Ok((set, group)),
        }
    }

    /// `N` or `N-M`, either way round as in DPDK.
    fn range(&mut self, what: &str, limit: u32, set: &mut Vec<u32>) -> Result<()> {
        let a = self.number(what, limit)?;
        let b = if self.eat('-') { self.number(what, limit)? } else { a };
        set.extend(a.min(b)..=a.max(b));
        // Bounds the work on (0-127,0-127,…) before the duplicates are looked for.
        if set.len() > limit as usize {
            return invalid!("{} {}: more than {limit} numbers in one group", self.option, self.shown());
        }
        Ok(())
    }

    fn number(&mut self, what: &str, limit: u32) -> Result<u32> {
        let len = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 {
            return self.expected(if what == "CPU" { "a CPU number" } else { "an lcore number" });
        }
        let digits = &self.rest()[..len];
        match digits.parse::<u32>() {
            Ok(n) if n < limit => {
                self.at += len;
                Ok(n)
            }
            _ => invalid!("{} {}: {what} {:.24}, limit {}", self.option, self.shown(), digits, limit - 1),
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = match self.rest().chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end".into(),
        };
        invalid!("{} {}: expected {what} at position {}, found {found}", self.option, self.shown(), self.at + 1)
    }

    /// The list for an error: long ones are cut.
    fn shown(&self) -> String {
        if self.text.chars().count() <= 80 { format!("'{}'", self.text) } else { format!("'{:.80}…'", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(s: &str) -> Vec<(u32, Vec<u32>)> {
        parse_list("--lcores", s).unwrap().into_iter().map(|s| (s.lcore, s.cpus)).collect()
    }

    #[test]
    fn lists_mean_what_dpdk_means() {
        for (s, expect) in [
            ("0", vec![(0, vec![0])]),
            ("3,0-1", vec![(0, vec![0]), (1, vec![1]), (3, vec![3])]),
            ("2-1", vec![(1, vec![1]), (2, vec![2])]),
            ("0@4", vec![(0, vec![4])]),
            ("0@1,(1-2)@3", vec![(0, vec![1]), (1, vec![3]), (2, vec![3])]),
            ("0@(4-5)", vec![(0, vec![4, 5])]),
            ("0@4-5", vec![(0, vec![4, 5])]),
            ("(0,6)", vec![(0, vec![0, 6]), (6, vec![0, 6])]),
            ("(0,2-3)@(9,7)", vec![(0, vec![7, 9]), (2, vec![7, 9]), (3, vec![7, 9])]),
            ("127@1023", vec![(127, vec![1023])]),
            ("1,2@(5-7),(3-4)@(0,2)", vec![(1, vec![1]), (2, vec![5, 6, 7]), (3, vec![0, 2]), (4, vec![0, 2])]),
        ] {
            assert_eq!(list(s), expect, "{s}");
        }
    }

    #[test]
    fn a_bad_list_is_refused_with_value_and_limit() {
        let long = format!("({}0)", "0-127,".repeat(1000));
        for (s, says) in [
            ("", "expected an lcore number at position 1, found the end"),
            ("0,", "position 3, found the end"),
            (",0", "position 1, found ','"),
            ("a", "found 'a'"),
            ("é", "found 'é'"),
            ("0é", "expected a comma or the end at position 2, found 'é'"),
            ("-1", "found '-'"),
            ("0-", "found the end"),
            ("128", "lcore 128, limit 127"),
            ("0-4294967296", "lcore 4294967296, limit 127"),
            ("0@1024", "CPU 1024, limit 1023"),
            ("0@", "expected a CPU number at position 3"),
            ("0,0", "lcore 0 stands twice"),
            ("0-2,(2,3)@1", "lcore 2 stands twice"),
            ("(1,1)", "lcore 1 stands twice"),
            ("0@(1,1)", "CPU 1 stands twice"),
            ("(0", "expected ',' or ')' at position 3, found the end"),
            ("()", "found ')'"),
            ("((0))", "found '('"),
            ("0@1@2", "expected a comma or the end"),
            ("0 1", "found ' '"),
            (long.as_str(), "more than 128 numbers"),
        ] {
            let e = parse_list("--lcores", s).unwrap_err().text().to_owned();
            assert!(e.starts_with("--lcores '") && e.contains(says), "{s}: {e}");
            assert!(e.len() < 200, "{e}");
        }
    }

    #[test]
    fn a_mask_names_its_cores() {
        let cores = |s| parse_mask("-c", s).unwrap().iter().map(|s| s.lcore).collect::<Vec<_>>();
        assert_eq!(cores("0x1d"), [0, 2, 3, 4]);
        assert_eq!(cores("F"), [0, 1, 2, 3]);
        assert_eq!(cores("80000000000000000000000000000000"), [127]);
        assert_eq!(cores(&format!("0x{}1", "0".repeat(500))), [0]);
        for (s, says) in [
            ("", "no hexadecimal mask"),
            ("0x", "no hexadecimal mask"),
            ("0,1", "a list of cores is -l"),
            ("0x0", "no core in it"),
            ("100000000000000000000000000000000", "lcore 128, limit 127"),
        ] {
            let e = parse_mask("-c", s).unwrap_err();
            assert!(e.text().contains(says), "{s}: {e}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_named_with_the_allowed_ones() {
        let specs = parse_list("-l", "0-1,7-9").unwrap();
        let e = check_allowed("-l", &specs, &[0, 1, 2, 8]).unwrap_err();
        assert_eq!(e.text(), "-l: CPU 7,9 not there or not allowed for this process (allowed: 0-2,8)");
        check_allowed("-l", &specs, &[0, 1, 7, 8, 9]).unwrap();
        check_allowed("-l", &specs, &[]).unwrap();
    }

    proptest! {
        #[test]
        fn a_list_is_sorted_without_duplicates_or_refused(s in "[0-9,()@\\-é]{0,24}", any in "\\PC{0,40}") {
            for s in [s, any] {
                let _ = parse_mask("-c", &s);
                if let Ok(specs) = parse_list("-l", &s) {
                    prop_assert!(!specs.is_empty());
                    prop_assert!(specs.windows(2).all(|w| w[0].lcore < w[1].lcore));
                    prop_assert!(specs.iter().all(|s| s.lcore < MAX_LCORE && !s.cpus.is_empty()));
                    prop_assert!(specs.iter().all(|s| s.cpus.windows(2).all(|w| w[0] < w[1])));
                }
            }
        }
    }
}
