//! What follows `--vdev`: a device's name and its `key=value` arguments, in DPDK's spelling.
//!
//! ```
//! use burstline::driver::devargs::DevArgs;
//! let d = DevArgs::parse("net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap,infinite_rx=1").unwrap();
//! assert_eq!((d.name.as_str(), d.driver.as_str()), ("net_pcap0", "net_pcap"));
//! assert_eq!(d.all("rx_pcap").collect::<Vec<_>>(), ["a.pcap", "b.pcap"]);
//! assert_eq!(d.flag("infinite_rx").unwrap(), Some(true));
//! ```

use crate::base::{Error, Result};
use crate::invalid;
use std::ops::RangeInclusive;

/// Longest device name, in bytes (DPDK's RTE_DEV_NAME_MAX_LEN less its NUL).
pub const MAX_NAME: usize = 63;

/// A device as the user wrote it. Arguments keep their order; a key may stand more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevArgs {
    /// `net_pcap0`
    pub name: String,
    /// The name without its trailing digits, and without one `_`, `-` or `.` before them: `net_pcap`.
    pub driver: String,
    /// `key=value`, or a bare `key`. A value may hold `=`.
    pub args: Vec<(String, Option<String>)>,
}

impl DevArgs {
    /// Reads `name[,key[=value]]…`.
    ///
    /// A value that starts with `[` runs to the matching `]`, commas included, as in DPDK's kvargs; a pair of brackets
    /// around the whole value is taken off (`rx_pcap=[a,b.pcap]` is the file `a,b.pcap`).
    ///
    /// Errors: empty, too long or ill-spelt name, a name that is a number only, an empty argument or key, a bracket
    /// that is not closed.
    pub fn parse(s: &str) -> Result<DevArgs> {
        let (name, rest) = match s.split_once(',') {
            Some((name, rest)) => (name, Some(rest)),
            None => (s, None),
        };
        check_name(name)?;
        let driver = driver_of(name);
        if driver.is_empty() {
            return invalid!("{name}: no driver name before the number (expected for example net_null0)");
        }
        DevArgs { name: name.into(), driver: driver.into(), args: Vec::new() }.with_args(rest)
    }

    /// The arguments of a device that is named by its bus: `name` is taken as it is, `driver` stays empty.
    pub fn of_bus_device(name: &str, args: &str) -> Result<DevArgs> {
        DevArgs { name: name.into(), driver: String::new(), args: Vec::new() }.with_args(Some(args))
    }

    fn with_args(mut self, rest: Option<&str>) -> Result<DevArgs> {
        let mut rest = rest;
        while let Some(text) = rest {
            let (arg, next) = self.cut_arg(text)?;
            let (key, value) = match arg.split_once('=') {
                Some((key, value)) => (key, Some(unbracket(value).to_owned())),
                None => (arg, None),
            };
            if arg.is_empty() {
                return invalid!(
                    "{}: empty argument {} (two commas, or one at the end)",
                    self.name,
                    self.args.len() + 1
                );
            }
            if key.is_empty() || !key.bytes().all(is_name_byte) {
                return invalid!("{}: '{}' is no key (allowed: A-Z a-z 0-9 _ . -)", self.name, shown(key));
            }
            self.args.push((key.to_owned(), value));
            rest = next;
        }
        Ok(self)
    }

    /// The first argument of `text`, and what follows its comma.
    fn cut_arg<'a>(&self, text: &'a str) -> Result<(&'a str, Option<&'a str>)> {
        let comma = text.find(',').unwrap_or(text.len());
        let from = match text.find('=') {
            Some(eq) if eq < comma && text[eq + 1..].starts_with('[') => match closing(&text[eq + 1..]) {
                Some(len) => eq + 1 + len,
                None => return invalid!("{}: '{}' has no closing ']'", self.name, shown(text)),
            },
            _ => 0,
        };
        Ok(match text[from..].find(',') {
            Some(at) => (&text[..from + at], Some(&text[from + at + 1..])),
            None => (text, None),
        })
    }

    /// Refuses a key that is not in `known`; the error lists `known` and suggests the nearest.
    pub fn check_keys(&self, known: &[&str]) -> Result<()> {
        let Some((key, _)) = self.args.iter().find(|(key, _)| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let key = shown(key);
        if known.is_empty() {
            return invalid!("{}: unknown key '{key}': this device takes none", self.name);
        }
        let hint = nearest(key, known).map(|n| format!(", did you mean '{n}'?")).unwrap_or_default();
        invalid!("{}: unknown key '{key}'{hint} (known: {})", self.name, known.join(", "))
    }

    /// The one value of `key`. None: not given. Errors: given twice, bare, or empty.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        match self.one(key)? {
            None => Ok(None),
            Some(Some(v)) if !v.is_empty() => Ok(Some(v)),
            Some(_) => invalid!("{}: {key} needs a value ({key}=…)", self.name),
        }
    }

    /// All values of `key`, in order. A bare key gives an empty one.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.args.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_deref().unwrap_or(""))
    }

    /// 1/0, yes/no, on/off or true/false; a bare key is true.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        Ok(match self.one(key)? {
            None => None,
            Some(None) => Some(true),
            Some(Some(v)) => match v.to_ascii_lowercase().as_str() {
                "1" | "yes" | "on" | "true" => Some(true),
                "0" | "no" | "off" | "false" => Some(false),
                _ => return self.bad(key, v, "is neither 1/yes/on/true nor 0/no/off/false"),
            },
        })
    }

    /// A decimal or 0x number within `range`.
    pub fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(v) = self.str(key)? else { return Ok(None) };
        match parse_number(v) {
            Number::Is(n) if range.contains(&n) => Ok(Some(n)),
            Number::Is(_) | Number::TooBig => {
                self.bad(key, v, &format!("is outside {}..={}", range.start(), range.end()))
            }
            Number::Not => {
                self.bad(key, v, &format!("is no number (decimal or 0x…, {}..={})", range.start(), range.end()))
            }
        }
    }

    /// Bytes: a number with an optional suffix k, M or G (1024, 1024², 1024³), within `range` (in bytes).
    pub fn size(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(v) = self.str(key)? else { return Ok(None) };
        let (digits, shift) = match v.as_bytes().last() {
            Some(b'k' | b'K') => (&v[..v.len() - 1], 10),
            Some(b'm' | b'M') => (&v[..v.len() - 1], 20),
            Some(b'g' | b'G') => (&v[..v.len() - 1], 30),
            _ => (v, 0),
        };
        let n = match parse_number(digits) {
            Number::Is(n) => n.checked_mul(1u64 << shift),
            Number::TooBig => None,
            Number::Not => return self.bad(key, v, "is no size (a number, then nothing, k, M or G)"),
        };
        match n {
            Some(n) if range.contains(&n) => Ok(Some(n)),
            _ => self.bad(key, v, &format!("is outside {}..={} bytes", range.start(), range.end())),
        }
    }

    /// The index in `choices` of the value of `key`.
    pub fn choice(&self, key: &str, choices: &[&str]) -> Result<Option<usize>> {
        let Some(v) = self.str(key)? else { return Ok(None) };
        match choices.iter().position(|c| *c == v) {
            Some(at) => Ok(Some(at)),
            None => self.bad(key, v, &format!("is none of {}", choices.join(", "))),
        }
    }

    /// A station's address, six hex pairs with colons or dashes. Refuses group addresses and zero.
    pub fn mac(&self, key: &str) -> Result<Option<[u8; 6]>> {
        let Some(v) = self.str(key)? else { return Ok(None) };
        let Some(mac) = parse_mac(v) else {
            return self.bad(key, v, "is no MAC address (six hex pairs: 02:00:00:00:00:01)");
        };
        if mac[0] & 1 != 0 {
            return self.bad(
                key,
                v,
                "is a multicast address (lowest bit of the first byte is set); a port needs unicast",
            );
        }
        if mac == [0; 6] {
            return self.bad(key, v, "is all zero; a port needs an address of its own");
        }
        Ok(Some(mac))
    }

    fn one(&self, key: &str) -> Result<Option<Option<&str>>> {
        let mut found = self.args.iter().filter(|(k, _)| k == key);
        let first = found.next().map(|(_, v)| v.as_deref());
        match found.count() {
            0 => Ok(first),
            more => invalid!("{}: {key} is given {} times, allowed once", self.name, more + 1),
        }
    }

    fn bad<T>(&self, key: &str, value: &str, why: &str) -> Result<T> {
        Err(Error::invalid(format!("{}: {key}='{}' {why}", self.name, shown(value))))
    }
}

/// Refuses a device name that is empty, over [`MAX_NAME`] bytes, or holds a byte outside `[A-Za-z0-9_.-]`.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return invalid!("'': a device needs a name (for example net_null0)");
    }
    if name.len() > MAX_NAME {
        return invalid!("{}…: device name of {} bytes, limit {MAX_NAME}", shown(name), name.len());
    }
    match name.chars().find(|c| !u8::try_from(*c).is_ok_and(is_name_byte)) {
        Some(c) => invalid!("{}: {c:?} in a device name (allowed: A-Z a-z 0-9 _ . -)", shown(name)),
        None => Ok(()),
    }
}

/// The one of `known` that `word` was probably meant to be: at most a third of its letters differ, or it is a prefix.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.is_empty() || word.len() > MAX_NAME {
        return None;
    }
    let near = known.iter().map(|k| (distance(word, k), *k)).min_by_key(|(d, _)| *d);
    match near {
        Some((d, k)) if d <= k.len().max(word.len()).div_ceil(3).min(3) && 2 * d < k.len() => Some(k),
        _ => known.iter().find(|k| word.len() >= 3 && k.starts_with(word)).copied(),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replace = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// A user's text for an error: not longer than a name may be.
fn shown(s: &str) -> &str {
    let end = (0..=s.len().min(MAX_NAME)).rev().find(|at| s.is_char_boundary(*at)).unwrap_or(0);
    &s[..end]
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.-".contains(&b)
}

fn driver_of(name: &str) -> &str {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if base.len() == name.len() { base } else { base.strip_suffix(['_', '-', '.']).unwrap_or(base) }
}

/// Length of a bracketed text up to and with the bracket that closes its first.
fn closing(s: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, b) in s.bytes().enumerate() {
        match b {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn unbracket(v: &str) -> &str {
    if v.starts_with('[') && closing(v) == Some(v.len()) { &v[1..v.len() - 1] } else { v }
}

enum Number {
    Is(u64),
    TooBig,
    Not,
}

/// Digits only: no sign, no blank, no underscore.
fn parse_number(s: &str) -> Number {
    let (digits, radix) = match s.strip_prefix("0x").or_else(|| s.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (s, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Number::Not;
    }
    // Only digits are left, so the one thing that can go wrong is the size.
    u64::from_str_radix(digits, radix).map_or(Number::TooBig, Number::Is)
}

fn parse_mac(s: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let separator = if s.contains('-') { '-' } else { ':' };
    let mut pairs = s.split(separator);
    for byte in &mut mac {
        let pair = pairs.next()?;
        if pair.len() != 2 || !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dev(s: &str) -> DevArgs {
        DevArgs::parse(s).unwrap()
    }

    fn text<T: std::fmt::Debug>(r: Result<T>) -> String {
        r.unwrap_err().text().to_owned()
    }

    #[test]
    fn the_driver_is_the_name_without_its_number() {
        for (name, driver) in [
            ("net_pcap0", "net_pcap"),
            ("net_pcap_12", "net_pcap"),
            ("net_pcap-1", "net_pcap"),
            ("net_null", "net_null"),
            ("net_null_x", "net_null_x"),
            ("net_null_", "net_null_"),
            ("net_virtio_user3", "net_virtio_user"),
        ] {
            assert_eq!(dev(name).driver, driver, "{name}");
        }
    }

    #[test]
    fn arguments_keep_order_repetition_and_equal_signs() {
        let d = dev("net_pcap0,rx_pcap=a=b.pcap,x,rx_pcap=[c,[d],e],y=,rx_pcap=[1]x");
        assert_eq!(d.all("rx_pcap").collect::<Vec<_>>(), ["a=b.pcap", "c,[d],e", "[1]x"]);
        assert_eq!(d.args[1], ("x".into(), None));
        assert_eq!(d.args[3], ("y".into(), Some("".into())));
    }

    #[test]
    fn a_bad_device_is_refused_with_its_reason() {
        let long = "n".repeat(64);
        for (input, says) in [
            ("", "needs a name"),
            (",iface=x", "needs a name"),
            ("0", "no driver name"),
            ("_7", "no driver name"),
            ("net null", "' ' in a device name"),
            ("net/null0", "'/' in a device name"),
            ("nét0", "'é' in a device name"),
            (long.as_str(), "64 bytes, limit 63"),
            ("net_null0,", "empty argument 1"),
            ("net_null0,a=1,,b=2", "empty argument 2"),
            ("net_null0,=1", "'' is no key"),
            ("net_null0,a b=1", "'a b' is no key"),
            ("net_null0,a=[1,2", "no closing ']'"),
        ] {
            let e = text(DevArgs::parse(input));
            assert!(e.contains(says), "{input}: {e}");
            let name = input.split(',').next().unwrap();
            assert!(name.len() > MAX_NAME || name.is_empty() || e.starts_with(name), "{input}: {e}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_and_the_list() {
        let e = text(dev("net_tap0,ifcae=x").check_keys(&["iface", "mac"]));
        assert_eq!(e, "net_tap0: unknown key 'ifcae', did you mean 'iface'? (known: iface, mac)");
        assert!(!text(dev("net_tap0,zzzzz=x").check_keys(&["iface", "mac"])).contains("did you mean"));
        assert!(text(dev("net_x0,a=1").check_keys(&[])).contains("takes none"));
        dev("net_tap0,iface=x,mac=y,iface=z").check_keys(&["iface", "mac"]).unwrap();
    }

    #[test]
    fn values_are_read_as_asked() {
        let d = dev("net_x0,n=12,h=0x1F,s=2k,g=1G,on=YES,off=0,bare,mac=02:00:00:aB:00:01,mode=zc");
        assert_eq!(d.number("n", 0..=12).unwrap(), Some(12));
        assert_eq!(d.number("h", 0..=99).unwrap(), Some(31));
        assert_eq!(d.number("none", 0..=99).unwrap(), None);
        assert_eq!(d.size("s", 0..=4096).unwrap(), Some(2048));
        assert_eq!(d.size("g", 0..=u64::MAX).unwrap(), Some(1 << 30));
        assert_eq!(
            [d.flag("on"), d.flag("off"), d.flag("bare"), d.flag("none")].map(|f| f.unwrap()),
            [Some(true), Some(false), Some(true), None]
        );
        assert_eq!(d.mac("mac").unwrap(), Some([2, 0, 0, 0xab, 0, 1]));
        assert_eq!(d.choice("mode", &["copy", "zc"]).unwrap(), Some(1));
        assert_eq!(d.str("mode").unwrap(), Some("zc"));
    }

    #[test]
    fn a_bad_value_names_device_key_value_and_limit() {
        let d = dev(concat!(
            "net_x0,n=13,neg=-1,plus=+1,huge=99999999999999999999,s=5x,big=17179869184G,k=k,f=maybe,m=02:00:00:00:00,",
            "mc=01:00:00:00:00:01,z=00-00-00-00-00-00,mode=fast,e=,bare,two=1,two=2"
        ));
        for (e, says) in [
            (text(d.number("n", 1..=12)), "net_x0: n='13' is outside 1..=12"),
            (text(d.number("neg", 1..=12)), "net_x0: neg='-1' is no number (decimal or 0x…, 1..=12)"),
            (text(d.number("plus", 1..=12)), "net_x0: plus='+1' is no number (decimal or 0x…, 1..=12)"),
            (text(d.number("huge", 1..=12)), "net_x0: huge='99999999999999999999' is outside 1..=12"),
            (text(d.size("s", 1..=12)), "net_x0: s='5x' is no size (a number, then nothing, k, M or G)"),
            (text(d.size("k", 1..=12)), "net_x0: k='k' is no size (a number, then nothing, k, M or G)"),
            (text(d.size("big", 1..=12)), "net_x0: big='17179869184G' is outside 1..=12 bytes"),
            (text(d.flag("f")), "net_x0: f='maybe' is neither 1/yes/on/true nor 0/no/off/false"),
            (text(d.mac("m")), "net_x0: m='02:00:00:00:00' is no MAC address (six hex pairs: 02:00:00:00:00:01)"),
            (text(d.choice("mode", &["copy", "zc"])), "net_x0: mode='fast' is none of copy, zc"),
            (text(d.str("e")), "net_x0: e needs a value (e=…)"),
            (text(d.str("bare")), "net_x0: bare needs a value (bare=…)"),
            (text(d.str("two")), "net_x0: two is given 2 times, allowed once"),
        ] {
            assert_eq!(e, says);
        }
        assert!(text(d.mac("mc")).contains("multicast"));
        assert!(text(d.mac("z")).contains("all zero"));
    }

    #[test]
    fn a_suggestion_is_near_or_absent() {
        let known = ["--vdev", "--lcores", "--no-huge", "-l"];
        for (word, near) in [
            ("--vdve", Some("--vdev")),
            ("--lcore", Some("--lcores")),
            ("--no-hugepages", None),
            ("-q", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), near, "{word}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(s in "\\PC{0,80}", t in "net_x[0-9](,[a-c=\\[\\]\\-,0-9:xkMGé]{0,30})?") {
            for s in [s, t] {
                if let Ok(d) = DevArgs::parse(&s) {
                    for key in ["a", "b", "ab", "c"] {
                        let _ = (d.number(key, 0..=9), d.size(key, 0..=9), d.flag(key), d.mac(key), d.str(key));
                        let _ = (d.check_keys(&["a"]), d.choice(key, &["a"]));
                    }
                }
            }
        }
    }
}
