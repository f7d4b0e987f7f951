//! Whether an interface is a tap that nobody uses: asked before joining it, since a queue that joins takes frames away from
//! the others. RTM_GETLINK (rtnetlink(7)) tells a tap's flags and queues (linux/if_link.h, IFLA_TUN_*).

use crate::driver::{Errno, Error, Result, fail};
use crate::sock::Ctl;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_HDR: usize = 16;
const IFINFOMSG: usize = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_TUN_PERSIST: u16 = 6;
const IFLA_TUN_NUM_QUEUES: u16 = 8;
const IFLA_TUN_NUM_DISABLED_QUEUES: u16 = 9;

/// Refuses all but a persistent tap without open descriptors, in the calling thread's namespace. A tap of one queue does
/// not say whether it is open; joining it fails then, and disturbs nobody.
pub(super) fn check(name: &str) -> Result<()> {
    let link = ask(Ctl::new()?.index_of(name)?).map_err(|e| e.context(format!("interface '{name}'")))?;
    let info = attribute(link.get(NLMSG_HDR + IFINFOMSG..).unwrap_or(&[]), IFLA_LINKINFO).unwrap_or(&[]);
    if attribute(info, IFLA_INFO_KIND) != Some(b"tun\0") {
        return fail!(EXIST, "interface '{name}' is there, and is no tap");
    }
    let data = attribute(info, IFLA_INFO_DATA).unwrap_or(&[]);
    let count = |kind| attribute(data, kind).and_then(|b| Some(u32::from_ne_bytes(b.try_into().ok()?))).unwrap_or(0);
    let queues = count(IFLA_TUN_NUM_QUEUES) + count(IFLA_TUN_NUM_DISABLED_QUEUES);
    if attribute(data, IFLA_TUN_PERSIST) != Some(&[1]) || queues != 0 {
        return fail!(BUSY, "tap '{name}' belongs to a program that runs");
    }
    Ok(())
}

/// The kernel's description of an interface.
fn ask(ifindex: u32) -> Result<Vec<u8>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes three integers.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(Error::os("netlink socket"));
    }
    // SAFETY: a descriptor that was just made and is owned by nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut q = [0u8; NLMSG_HDR + IFINFOMSG];
    q[0..4].copy_from_slice(&((NLMSG_HDR + IFINFOMSG) as u32).to_ne_bytes());
    q[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    q[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    q[20..24].copy_from_slice(&ifindex.to_ne_bytes());
    let mut buf = vec![0u8; 32 * 1024];
    // SAFETY: pointers and lengths are those of `q` and `buf`. The kernel answers before send returns.
    let n = unsafe {
        if libc::send(fd.as_raw_fd(), q.as_ptr().cast(), q.len(), 0) != q.len() as isize {
            return Err(Error::os("netlink send"));
        }
        libc::recv(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), 0)
    };
    if n < 0 {
        return Err(Error::os("netlink receive"));
    }
    buf.truncate(n as usize);
    let len = buf.get(..4).and_then(|b| Some(u32::from_ne_bytes(b.try_into().ok()?))).unwrap_or(0);
    let kind = buf.get(4..6).and_then(|b| Some(u16::from_ne_bytes(b.try_into().ok()?)));
    if kind != Some(RTM_NEWLINK) || len as usize > buf.len() {
        return Err(Error::from_errno(Errno::IO, "netlink: no description"));
    }
    Ok(buf)
}

/// The payload of the first attribute of this kind (struct nlattr; the top two bits of the kind are flags).
fn attribute(mut b: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let head: [u8; 4] = b.get(..4)?.try_into().ok()?;
        let (len, this) = (u16::from_ne_bytes([head[0], head[1]]), u16::from_ne_bytes([head[2], head[3]]));
        let payload = b.get(4..len.into())?;
        if this & 0x3fff == kind {
            return Some(payload);
        }
        b = b.get(usize::from(len).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tap_is_refused_without_privilege() {
        let e = check("lo").unwrap_err();
        assert!(e.errno() == Errno::EXIST && e.text().contains("no tap"), "{e}");
        assert_eq!(check("no-such-if").unwrap_err().errno(), Errno::NODEV);
    }

    #[test]
    fn attributes_are_never_read_past_their_end() {
        let b = [8, 0, 1, 0, 1, 2, 3, 4, 5, 0, 2, 0, 9, 0, 0, 0];
        assert_eq!((attribute(&b, 1), attribute(&b, 2), attribute(&b, 3)), (Some(&b[4..8]), Some(&b[12..13]), None));
        for n in 0..b.len() {
            let _ = attribute(&b[..n], 2);
        }
        assert_eq!(attribute(&[3, 0, 1, 0], 1), None, "a length that is shorter than its head");
    }
}
