//! The device keys of `net_pcap`: DPDK's, and ours beside them.

use super::MAX_RECORD;
use crate::driver::{DevArgs, Result, invalid};
use std::path::PathBuf;

pub(super) const KEYS: &[(&str, &str)] = &[
    ("rx_pcap", "capture file to receive from; once per receive queue"),
    ("tx_pcap", "capture file to send to, pcapng where it ends in .pcapng; once per send queue"),
    ("rx_iface", "interface to receive from, both directions of it; once per receive queue"),
    ("rx_iface_in", "as rx_iface, without what the interface sends"),
    ("tx_iface", "interface to send to; once per send queue"),
    ("iface", "one interface to receive from and send to"),
    ("infinite_rx", "1: hold the files in memory and receive them again and again (0)"),
    ("loops", "receive the files this many times; 0: for ever, read anew each time (1)"),
    ("timing", "asap, original, or a rate: 1000pps, 10M (bits per second)  (asap)"),
    ("speed", "with timing=original: that many times as fast (1)"),
    ("snaplen", "bytes of a sent packet that are written: 1 to 262144 (262144)"),
    ("tx_ts", "now: the time of sending; keep: the time of receipt where a packet has one (now)"),
    ("phy_mac", "1: the interface's own MAC address (0)"),
    ("mac", "station address (a locally administered one)"),
];

/// Queues of one kind at most.
pub(super) const MAX_QUEUES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RxSource {
    File(PathBuf),
    Iface { name: String, incoming_only: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TxSink {
    File(PathBuf),
    Iface(String),
}

/// When records are handed out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Timing {
    Asap,
    /// As in the capture, that many times as fast.
    Original(f64),
    PacketsPerSecond(u64),
    /// Bits of frames as they are received: without FCS, preamble and gap.
    BitsPerSecond(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Config {
    pub name: String,
    pub rx: Vec<RxSource>,
    pub tx: Vec<TxSink>,
    pub infinite: bool,
    /// 0: for ever.
    pub loops: u32,
    pub timing: Timing,
    pub snaplen: u32,
    pub keep_ts: bool,
    pub phy_mac: bool,
    pub mac: Option<[u8; 6]>,
}

impl Config {
    pub fn parse(a: &DevArgs) -> Result<Config> {
        let known: Vec<&str> = KEYS.iter().map(|k| k.0).collect();
        a.check_keys(&known)?;
        let name = &a.name;
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for (key, value) in &a.args {
            let value = value.as_deref().unwrap_or("");
            let source =
                matches!(key.as_str(), "rx_pcap" | "tx_pcap" | "rx_iface" | "rx_iface_in" | "tx_iface" | "iface");
            if source && value.is_empty() {
                return invalid!("{name}: {key} needs a value ({key}=…)");
            }
            match key.as_str() {
                "rx_pcap" => rx.push(RxSource::File(value.into())),
                "rx_iface" => rx.push(RxSource::Iface { name: value.into(), incoming_only: false }),
                "rx_iface_in" => rx.push(RxSource::Iface { name: value.into(), incoming_only: true }),
                "tx_pcap" => tx.push(TxSink::File(value.into())),
                "tx_iface" => tx.push(TxSink::Iface(value.into())),
                _ => {}
            }
        }
        if let Some(one) = a.str("iface")? {
            if !rx.is_empty() || !tx.is_empty() {
                return invalid!("{name}: iface={one} is both source and sink: give no rx_… or tx_… beside it");
            }
            rx.push(RxSource::Iface { name: one.into(), incoming_only: false });
            tx.push(TxSink::Iface(one.into()));
        }
        for (n, what) in [(rx.len(), "sources"), (tx.len(), "sinks")] {
            if n > MAX_QUEUES {
                return invalid!("{name}: {n} {what}, one queue each; the limit is {MAX_QUEUES}");
            }
        }
        let files = rx.iter().filter(|s| matches!(s, RxSource::File(_))).count();
        if files != 0 && files != rx.len() {
            return invalid!("{name}: receive from files or from interfaces, not from both");
        }
        if tx.iter().any(|s| matches!(s, TxSink::File(_))) && tx.iter().any(|s| matches!(s, TxSink::Iface(_))) {
            return invalid!("{name}: send to files or to interfaces, not to both");
        }
        let c = Config {
            name: name.clone(),
            infinite: a.flag("infinite_rx")?.unwrap_or(false),
            loops: a.number("loops", 0..=u64::from(u32::MAX))?.unwrap_or(1) as u32,
            timing: timing(a)?,
            snaplen: a.number("snaplen", 1..=u64::from(MAX_RECORD))?.unwrap_or(0) as u32,
            keep_ts: a.choice("tx_ts", &["now", "keep"])? == Some(1),
            phy_mac: a.flag("phy_mac")?.unwrap_or(false),
            mac: a.mac("mac")?,
            rx,
            tx,
        };
        c.check(a, files)?;
        Ok(c)
    }

    fn check(&self, a: &DevArgs, files: usize) -> Result<()> {
        let name = &self.name;
        let given = |key: &str| a.args.iter().any(|(k, _)| k == key);
        if self.infinite && given("loops") {
            return invalid!("{name}: infinite_rx=1 loops for ever: give no loops beside it");
        }
        for key in ["infinite_rx", "loops", "timing", "speed"] {
            if given(key) && files == 0 {
                return invalid!("{name}: {key} is of files: give rx_pcap=FILE with it");
            }
        }
        for key in ["snaplen", "tx_ts"] {
            if given(key) && !self.tx.iter().any(|s| matches!(s, TxSink::File(_))) {
                return invalid!("{name}: {key} is of files: give tx_pcap=FILE with it");
            }
        }
        if self.phy_mac && self.iface().is_none() {
            return invalid!("{name}: phy_mac=1 is the address of an interface: give iface=, rx_iface= or tx_iface=");
        }
        if self.phy_mac && self.mac.is_some() {
            return invalid!("{name}: phy_mac=1 and mac= are two addresses: give one");
        }
        Ok(())
    }

    /// The interface that the port stands for: where it receives, else where it sends.
    pub fn iface(&self) -> Option<&str> {
        let rx = self.rx.iter().find_map(|s| match s {
            RxSource::Iface { name, .. } => Some(name.as_str()),
            RxSource::File(_) => None,
        });
        rx.or(self.tx.iter().find_map(|s| match s {
            TxSink::Iface(name) => Some(name.as_str()),
            TxSink::File(_) => None,
        }))
    }
}

fn timing(a: &DevArgs) -> Result<Timing> {
    let text = a.str("timing")?.unwrap_or("asap");
    let speed = a.str("speed")?;
    let t = match text {
        "asap" => Timing::Asap,
        "original" => Timing::Original(1.0),
        rate => {
            return match (parse_rate(rate), speed) {
                (Some(t), None) => Ok(t),
                (Some(_), Some(_)) => invalid!("{}: speed= goes with timing=original, and timing is {rate}", a.name),
                (None, _) => invalid!(
                    "{}: timing={rate} is neither asap, original, nor a rate: 1 to 10^12 with pps (packets) or with bps, k, M or G (bits per second), as 1000pps, 2.5Mpps, 10M",
                    a.name
                ),
            };
        }
    };
    match (t, speed) {
        (t, None) => Ok(t),
        (Timing::Asap, Some(_)) => invalid!("{}: speed= goes with timing=original", a.name),
        (_, Some(s)) => match decimal(s) {
            Some(v) if (0.001..=1_000_000.0).contains(&v) => Ok(Timing::Original(v)),
            _ => invalid!("{}: speed={s}; allowed are 0.001 to 1000000", a.name),
        },
    }
}

fn parse_rate(text: &str) -> Option<Timing> {
    let (packets, rest) = match (text.strip_suffix("pps"), text.strip_suffix("bps")) {
        (Some(r), _) => (true, r),
        (_, Some(r)) => (false, r),
        // A number alone could be either.
        _ if text.ends_with(['k', 'K', 'M', 'G']) => (false, text),
        _ => return None,
    };
    let (number, unit) = match rest.as_bytes().last()? {
        b'k' | b'K' => (&rest[..rest.len() - 1], 1e3),
        b'M' => (&rest[..rest.len() - 1], 1e6),
        b'G' => (&rest[..rest.len() - 1], 1e9),
        _ => (rest, 1.0),
    };
    let v = decimal(number)? * unit;
    if !(1.0..=1e12).contains(&v) {
        return None;
    }
    Some(if packets { Timing::PacketsPerSecond(v as u64) } else { Timing::BitsPerSecond(v as u64) })
}

/// Digits with at most one point among them: no sign, no exponent, no name.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.len() <= 20;
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Config> {
        Config::parse(&DevArgs::parse(&format!("net_pcap0,{args}")).unwrap())
    }

    #[test]
    fn rates_are_packets_or_bits() {
        for (text, want) in [
            ("1000pps", Timing::PacketsPerSecond(1000)),
            ("2.5Mpps", Timing::PacketsPerSecond(2_500_000)),
            ("10M", Timing::BitsPerSecond(10_000_000)),
            ("1.5Gbps", Timing::BitsPerSecond(1_500_000_000)),
            ("64kbps", Timing::BitsPerSecond(64_000)),
            ("9600bps", Timing::BitsPerSecond(9600)),
        ] {
            assert_eq!(parse_rate(text), Some(want), "{text}");
        }
        for text in ["", "10", "pps", "k", "-1M", "nanM", "infG", "1e3M", "0pps", "0.1bps", "2000000G", "1..2M", "é"] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
    }

    #[test]
    fn keys_that_contradict_each_other_are_refused_with_both_names() {
        for (args, words) in [
            ("rx_pcap=a,rx_iface=b", "files or from interfaces"),
            ("tx_pcap=a,tx_iface=b", "files or to interfaces"),
            ("iface=a,tx_pcap=b", "iface=a"),
            ("infinite_rx=1,loops=2,rx_pcap=a", "loops"),
            ("infinite_rx=1", "rx_pcap"),
            ("snaplen=5,rx_pcap=a", "tx_pcap"),
            ("phy_mac=1,rx_pcap=a", "phy_mac"),
            ("timing=fast,rx_pcap=a", "timing=fast"),
            ("timing=5pps,speed=2,rx_pcap=a", "speed="),
            ("timing=original,speed=0,rx_pcap=a", "speed=0"),
            ("rx_pcap", "rx_pcap needs a value"),
            ("rx_pcpa=a", "did you mean 'rx_pcap'"),
        ] {
            let e = parse(args).unwrap_err();
            assert!(e.text().contains(words) && e.text().starts_with("net_pcap0: "), "{args}: {e}");
        }
        let c = parse("rx_pcap=a,rx_pcap=b,tx_pcap=c.pcapng,timing=original,speed=2.5").unwrap();
        assert_eq!((c.rx.len(), c.tx.len(), c.timing), (2, 1, Timing::Original(2.5)));
    }
}
