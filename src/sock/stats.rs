//! Netdev counters by RTM_GETSTATS (rtnetlink(7), linux/if_link.h; Linux 4.7 and newer). /sys and /proc show the
//! namespace they were mounted or opened in; a netlink socket asks in its own.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

use super::iface::Ctl;
use super::netns::NetNs;
use crate::base::{Errno, Error, Result};

/// The head of struct rtnl_link_stats64, in its order: the fields that every kernel with RTM_GETSTATS has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
    pub rx_compressed: u64,
    pub tx_compressed: u64,
}

const N_FIELDS: usize = 23;

impl LinkStats {
    fn parse(b: &[u8]) -> Option<LinkStats> {
        let f = |i: usize| Some(u64::from_ne_bytes(b.get(i * 8..i * 8 + 8)?.try_into().ok()?));
        if b.len() < N_FIELDS * 8 {
            return None;
        }
        Some(LinkStats {
            rx_packets: f(0)?,
            tx_packets: f(1)?,
            rx_bytes: f(2)?,
            tx_bytes: f(3)?,
            rx_errors: f(4)?,
            tx_errors: f(5)?,
            rx_dropped: f(6)?,
            tx_dropped: f(7)?,
            multicast: f(8)?,
            collisions: f(9)?,
            rx_length_errors: f(10)?,
            rx_over_errors: f(11)?,
            rx_crc_errors: f(12)?,
            rx_frame_errors: f(13)?,
            rx_fifo_errors: f(14)?,
            rx_missed_errors: f(15)?,
            tx_aborted_errors: f(16)?,
            tx_carrier_errors: f(17)?,
            tx_fifo_errors: f(18)?,
            tx_heartbeat_errors: f(19)?,
            tx_window_errors: f(20)?,
            rx_compressed: f(21)?,
            tx_compressed: f(22)?,
        })
    }
}

// linux/rtnetlink.h, linux/netlink.h, linux/if_link.h
const NLMSG_ERROR: u16 = 2;
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const NLM_F_REQUEST: u16 = 1;
const IFLA_STATS_LINK_64: u16 = 1;
const NLMSG_HDR: usize = 16;
const IF_STATS_MSG: usize = 12;

/// A netlink socket that reads the counters of one namespace. Any thread may use it; requests take turns.
#[derive(Debug)]
pub struct StatsReader {
    fd: OwnedFd,
    seq: Mutex<u32>,
}

impl StatsReader {
    /// In the calling thread's namespace.
    pub fn new() -> Result<StatsReader> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket(2) takes three integers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(Error::os("netlink socket for counters"));
        }
        // SAFETY: a descriptor that was just made and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // The kernel answers before send returns; the limit is for the day it does not.
        let limit = libc::timeval { tv_sec: 1, tv_usec: 0 };
        // SAFETY: SO_RCVTIMEO takes a timeval; pointer and length are those of `limit`.
        let r = unsafe {
            let p = (&raw const limit).cast();
            libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, p, size_of_val(&limit) as u32)
        };
        if r != 0 {
            return Err(Error::os("time limit of a netlink socket"));
        }
        Ok(StatsReader { fd, seq: Mutex::new(0) })
    }

    pub fn in_ns(ns: &NetNs) -> Result<StatsReader> {
        ns.run_in(StatsReader::new)
    }

    /// In the namespace of a control socket. Needs CAP_NET_ADMIN in it.
    pub fn beside(ctl: &Ctl) -> Result<StatsReader> {
        StatsReader::in_ns(&ctl.netns()?)
    }

    /// The counters of the interface with this index. No privilege needed.
    pub fn get(&self, ifindex: u32) -> Result<LinkStats> {
        let mut seq = self.seq.lock().unwrap_or_else(|e| e.into_inner());
        *seq = seq.wrapping_add(1);
        self.ask(*seq, ifindex).map_err(|e| e.context(format!("counters of interface index {ifindex}")))
    }

    fn ask(&self, seq: u32, ifindex: u32) -> Result<LinkStats> {
        let mut q = [0u8; NLMSG_HDR + IF_STATS_MSG];
        q[0..4].copy_from_slice(&((NLMSG_HDR + IF_STATS_MSG) as u32).to_ne_bytes());
        q[4..6].copy_from_slice(&RTM_GETSTATS.to_ne_bytes());
        q[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        q[8..12].copy_from_slice(&seq.to_ne_bytes());
        q[20..24].copy_from_slice(&ifindex.to_ne_bytes());
        q[24..28].copy_from_slice(&(1u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
        // SAFETY: pointer and length are those of `q`. Without an address a netlink socket sends to the kernel.
        if unsafe { libc::send(self.fd.as_raw_fd(), q.as_ptr().cast(), q.len(), 0) } != q.len() as isize {
            return Err(Error::os("netlink send"));
        }
        let mut buf = [0u8; 4096];
        // An answer that came too late for an earlier request is skipped by its number, but not for ever.
        for _ in 0..16 {
            // SAFETY: pointer and length are those of `buf`.
            let n = unsafe { libc::recv(self.fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), libc::MSG_TRUNC) };
            if n < 0 {
                match Errno::last() {
                    Errno(libc::EINTR) => continue,
                    Errno::AGAIN => return crate::fail!(TIMEDOUT, "netlink: no answer in 1 s"),
                    e => return Err(Error::from_errno(e, "netlink receive")),
                }
            }
            let Some(msg) = buf.get(..n as usize) else {
                return crate::fail!(MSGSIZE, "netlink: answer of {n} bytes, room for {}", buf.len());
            };
            if let Some(r) = parse_answer(msg, seq, ifindex) {
                return r;
            }
        }
        crate::fail!(TIMEDOUT, "netlink: 16 answers, none to this request")
    }
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

/// None: no answer to request `seq`. Every length is checked against what was received.
fn parse_answer(mut b: &[u8], seq: u32, ifindex: u32) -> Option<Result<LinkStats>> {
    while b.len() >= NLMSG_HDR {
        let len = u32_at(b, 0)? as usize;
        if len < NLMSG_HDR || len > b.len() {
            return Some(crate::fail!(IO, "netlink: message length {len}, {} received", b.len()));
        }
        let (msg, kind) = (&b[..len], u16_at(b, 4)?);
        if u32_at(b, 8)? == seq {
            match kind {
                NLMSG_ERROR => {
                    // struct nlmsgerr: the negative errno; 0 is an acknowledgement, which was not asked for.
                    let e = u32_at(msg, NLMSG_HDR).map_or(-libc::EIO, |v| v as i32);
                    let e = if e < 0 && e > -4096 { -e } else { libc::EIO };
                    return Some(Err(Error::from_errno(Errno(e), "netlink")));
                }
                RTM_NEWSTATS if u32_at(msg, NLMSG_HDR + 4) == Some(ifindex) => {
                    let s = attribute(msg.get(NLMSG_HDR + IF_STATS_MSG..)?, IFLA_STATS_LINK_64);
                    return Some(match s.and_then(LinkStats::parse) {
                        Some(s) => Ok(s),
                        None => crate::fail!(IO, "netlink: answer without whole counters"),
                    });
                }
                _ => {}
            }
        }
        b = b.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    None
}

/// The payload of the first attribute of this kind (struct nlattr; the top two bits of the kind are flags).
fn attribute(mut b: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let len = u16_at(b, 0)? as usize;
        if len < 4 || len > b.len() {
            return None;
        }
        if u16_at(b, 2)? & 0x3fff == kind {
            return Some(&b[4..len]);
        }
        b = b.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(seq: u32, ifindex: u32, n: usize) -> Vec<u8> {
        let mut m = vec![0u8; NLMSG_HDR + IF_STATS_MSG];
        m[4..6].copy_from_slice(&RTM_NEWSTATS.to_ne_bytes());
        m[8..12].copy_from_slice(&seq.to_ne_bytes());
        m[20..24].copy_from_slice(&ifindex.to_ne_bytes());
        m.extend_from_slice(&[4, 0, 0, 0]); // a pad attribute
        m.extend_from_slice(&((4 + n * 8) as u16).to_ne_bytes());
        m.extend_from_slice(&IFLA_STATS_LINK_64.to_ne_bytes());
        (0..n as u64).for_each(|i| m.extend_from_slice(&(100 + i).to_ne_bytes()));
        let len = m.len() as u32;
        m[0..4].copy_from_slice(&len.to_ne_bytes());
        m
    }

    #[test]
    fn an_answer_is_read_and_others_are_skipped() {
        let s = parse_answer(&answer(7, 3, 25), 7, 3).unwrap().unwrap();
        assert_eq!((s.rx_packets, s.tx_dropped, s.tx_compressed), (100, 107, 122));
        assert!(parse_answer(&answer(6, 3, 25), 7, 3).is_none());
        let mut two = answer(6, 3, 25);
        two.extend(answer(7, 3, 23));
        assert!(parse_answer(&two, 7, 3).unwrap().is_ok());
        assert!(parse_answer(&answer(7, 3, 22), 7, 3).unwrap().is_err());
    }

    #[test]
    fn a_cut_or_broken_answer_is_never_read_past_its_end() {
        let whole = answer(7, 3, 25);
        for n in 0..whole.len() {
            assert!(!matches!(parse_answer(&whole[..n], 7, 3), Some(Ok(_))), "{n}");
        }
        // Every byte of the lengths and headers, every value.
        for at in 0..40 {
            for v in 0..=255 {
                let mut m = whole.clone();
                m[at] = v;
                let _ = parse_answer(&m, 7, 3);
            }
        }
    }

    #[test]
    fn loopback_has_counters_and_a_wrong_index_is_named() {
        let r = StatsReader::new().unwrap();
        let lo = Ctl::new().unwrap().index_of("lo").unwrap();
        r.get(lo).unwrap();
        let e = r.get(0x7fff_fff0).unwrap_err();
        assert_eq!(e.errno(), Errno::NODEV);
        assert!(e.text().contains("2147483632"), "{e}");
        r.get(lo).unwrap();
    }
}
