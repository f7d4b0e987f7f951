//! Interface requests (netdevice(7), linux/sockios.h) by name, in the namespace of a control socket.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::netns::NetNs;
use crate::base::{Errno, Error, Result};

// The kernel copies exactly this much, whatever the request (linux/if.h).
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<libc::ifreq>() == 40);
const _: () = assert!(std::mem::offset_of!(libc::ifreq, ifr_ifru) == libc::IFNAMSIZ);

// linux/sockios.h
const SIOCGIFNAME: libc::Ioctl = 0x8910;
const SIOCGIFFLAGS: libc::Ioctl = 0x8913;
const SIOCSIFFLAGS: libc::Ioctl = 0x8914;
const SIOCGIFMTU: libc::Ioctl = 0x8921;
const SIOCSIFMTU: libc::Ioctl = 0x8922;
const SIOCSIFHWADDR: libc::Ioctl = 0x8924;
const SIOCGIFHWADDR: libc::Ioctl = 0x8927;
const SIOCGIFINDEX: libc::Ioctl = 0x8933;
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const SIOCGSKNS: libc::Ioctl = 0x894c;

// linux/if_arp.h
pub const ARPHRD_ETHER: u16 = 1;
pub const ARPHRD_LOOPBACK: u16 = 772;

/// A MAC address as people write it.
pub fn mac_text(m: &[u8; 6]) -> String {
    format!("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", m[0], m[1], m[2], m[3], m[4], m[5])
}

/// What the kernel takes as an interface name: 1 to 15 bytes, no '/', ':' or white space, not "." or "..".
pub fn check_name(name: &str) -> Result<()> {
    let bad = |why: &str| crate::invalid!("interface name '{}' {why}", name.escape_debug());
    match name.len() {
        0 => return bad("is empty"),
        16.. => return bad(&format!("has {} bytes, the limit is {}", name.len(), libc::IFNAMSIZ - 1)),
        _ => {}
    }
    if name == "." || name == ".." {
        return bad("is a directory's");
    }
    // isspace() of the kernel: the ASCII ones, vertical tab, and the no-break space of Latin-1.
    if name.bytes().any(|b| matches!(b, 0 | b'/' | b':' | b' ' | 9..=13 | 0xa0)) {
        return bad("contains '/', ':' or white space");
    }
    Ok(())
}

/// A zeroed request with the name in it. Names longer than 15 bytes are cut: check first.
pub fn request(name: &str) -> libc::ifreq {
    // SAFETY: ifreq is plain old data; all zeros is a valid value of each of its members.
    let mut r: libc::ifreq = unsafe { std::mem::zeroed() };
    for (d, s) in r.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *d = s as libc::c_char;
    }
    r
}

/// The name that the kernel wrote into a request.
pub fn name_in(r: &libc::ifreq) -> String {
    let bytes: Vec<u8> = r.ifr_name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One ioctl that reads and writes an ifreq.
///
/// # Safety
/// `req` must be a request whose argument is a `struct ifreq`, and what it points to, if anything, must be valid for it.
pub unsafe fn ioctl(fd: BorrowedFd<'_>, req: libc::Ioctl, r: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: `r` is a whole ifreq, borrowed for the call; the rest is the caller's promise.
    match unsafe { libc::ioctl(fd.as_raw_fd(), req, r as *mut libc::ifreq) } {
        0.. => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// What the device says about its link now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Administratively up and with carrier (IFF_UP and IFF_RUNNING).
    pub up: bool,
    /// Mbit/s; None where the driver does not know or does not say.
    pub speed_mbps: Option<u32>,
    pub full_duplex: Option<bool>,
    pub autoneg: bool,
}

/// A datagram socket for interface requests in one namespace. Any thread may use it.
#[derive(Debug)]
pub struct Ctl {
    fd: OwnedFd,
}

impl AsFd for Ctl {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Ctl {
    /// In the calling thread's namespace.
    pub fn new() -> Result<Ctl> {
        // SAFETY: socket(2) takes three integers.
        let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(Error::os("socket for interface requests"));
        }
        // SAFETY: a descriptor that was just made and is owned by nobody else.
        Ok(Ctl { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    pub fn in_ns(ns: &NetNs) -> Result<Ctl> {
        ns.run_in(Ctl::new)
    }

    /// The namespace that the requests go to. Needs CAP_NET_ADMIN in it.
    pub fn netns(&self) -> Result<NetNs> {
        // SAFETY: SIOCGSKNS takes no argument and returns a new descriptor.
        let fd = unsafe { libc::ioctl(self.fd.as_raw_fd(), SIOCGSKNS) };
        if fd < 0 {
            return Err(Error::os("network namespace of a socket (SIOCGSKNS, needs CAP_NET_ADMIN)"));
        }
        // SAFETY: a descriptor that was just made and is owned by nobody else.
        NetNs::from_fd(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn call(&self, req: libc::Ioctl, r: &mut libc::ifreq, name: &str, what: &str) -> Result<()> {
        check_name(name)?;
        // SAFETY: every request of this module that comes here takes an ifreq without pointers.
        unsafe { ioctl(self.as_fd(), req, r) }.map_err(|e| os_error(e, name, what))
    }

    /// The full 32 bits of the index.
    pub fn index_of(&self, name: &str) -> Result<u32> {
        let mut r = request(name);
        self.call(SIOCGIFINDEX, &mut r, name, "get index")?;
        // SAFETY: a successful SIOCGIFINDEX filled this member.
        Ok(unsafe { r.ifr_ifru.ifru_ifindex } as u32)
    }

    pub fn name_of(&self, ifindex: u32) -> Result<String> {
        let mut r = request("");
        r.ifr_ifru.ifru_ifindex = ifindex as i32;
        // SAFETY: SIOCGIFNAME takes an ifreq without pointers.
        unsafe { ioctl(self.as_fd(), SIOCGIFNAME, &mut r) }
            .map_err(|e| Error::from_errno(e, format!("interface of index {ifindex}: get name")))?;
        Ok(name_in(&r))
    }

    pub fn mtu(&self, name: &str) -> Result<u32> {
        let mut r = request(name);
        self.call(SIOCGIFMTU, &mut r, name, "get MTU")?;
        // SAFETY: a successful SIOCGIFMTU filled this member.
        Ok(unsafe { r.ifr_ifru.ifru_mtu } as u32)
    }

    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<()> {
        let mut r = request(name);
        r.ifr_ifru.ifru_mtu = i32::try_from(mtu)
            .map_err(|_| Error::invalid(format!("interface '{name}': MTU {mtu} above {}", i32::MAX)))?;
        self.call(SIOCSIFMTU, &mut r, name, &format!("set MTU {mtu}"))
    }

    /// Hardware type (ARPHRD_*, linux/if_arp.h) and the first six bytes of the address.
    pub fn hw_addr(&self, name: &str) -> Result<(u16, [u8; 6])> {
        let mut r = request(name);
        self.call(SIOCGIFHWADDR, &mut r, name, "get MAC address")?;
        Ok(hw_addr_in(&r))
    }

    pub fn mac(&self, name: &str) -> Result<[u8; 6]> {
        let (kind, mac) = self.hw_addr(name)?;
        if kind != ARPHRD_ETHER && kind != ARPHRD_LOOPBACK {
            return crate::fail!(NOTSUP, "interface '{name}' is not Ethernet: link type {}", link_type(kind));
        }
        Ok(mac)
    }

    pub fn set_mac(&self, name: &str, mac: &[u8; 6]) -> Result<()> {
        let mut r = request(name);
        set_hw_addr(&mut r, mac);
        self.call(SIOCSIFHWADDR, &mut r, name, &format!("set MAC address {}", mac_text(mac)))
    }

    /// IFF_UP, IFF_RUNNING, IFF_PROMISC… : the low 16 bits of net/if.h.
    pub fn flags(&self, name: &str) -> Result<u16> {
        let mut r = request(name);
        self.call(SIOCGIFFLAGS, &mut r, name, "get flags")?;
        // SAFETY: a successful SIOCGIFFLAGS filled this member.
        Ok(unsafe { r.ifr_ifru.ifru_flags } as u16)
    }

    fn change_flag(&self, name: &str, flag: i32, on: bool, what: &str) -> Result<()> {
        let old = self.flags(name)?;
        let new = if on { old | flag as u16 } else { old & !(flag as u16) };
        if new == old {
            return Ok(());
        }
        let mut r = request(name);
        r.ifr_ifru.ifru_flags = new as libc::c_short;
        self.call(SIOCSIFFLAGS, &mut r, name, &format!("set {what} {}", if on { "on" } else { "off" }))
    }

    pub fn set_up(&self, name: &str, on: bool) -> Result<()> {
        self.change_flag(name, libc::IFF_UP, on, "up")
    }

    pub fn set_promisc(&self, name: &str, on: bool) -> Result<()> {
        self.change_flag(name, libc::IFF_PROMISC, on, "promiscuous")
    }

    pub fn set_allmulti(&self, name: &str, on: bool) -> Result<()> {
        self.change_flag(name, libc::IFF_ALLMULTI, on, "all-multicast")
    }

    pub fn link(&self, name: &str) -> Result<LinkState> {
        let f = i32::from(self.flags(name)?);
        let mut l = LinkState {
            up: f & libc::IFF_UP != 0 && f & libc::IFF_RUNNING != 0,
            speed_mbps: None,
            full_duplex: None,
            autoneg: false,
        };
        // Many virtual devices have no ethtool operations: then speed and duplex stay unknown.
        if let Some(s) = self.link_settings(name) {
            l.speed_mbps = Some(s.speed).filter(|&v| v != u32::MAX && v != 0);
            l.full_duplex = match s.duplex {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            };
            l.autoneg = s.autoneg == 1;
        }
        Ok(l)
    }

    fn link_settings(&self, name: &str) -> Option<LinkSettings> {
        check_name(name).ok()?;
        let mut s = LinkSettings { cmd: ETHTOOL_GLINKSETTINGS, ..LinkSettings::default() };
        // The kernel answers a wrong number of mask words (0) with minus the right one; the second call says that one.
        for _ in 0..2 {
            let mut r = request(name);
            r.ifr_ifru.ifru_data = (&raw mut s).cast();
            // SAFETY: `s` is large enough for the largest number of mask words that an i8 can say.
            unsafe { ioctl(self.as_fd(), SIOCETHTOOL, &mut r) }.ok()?;
            if s.nwords > 0 {
                return Some(s);
            }
            s = LinkSettings { nwords: s.nwords.checked_neg()?, cmd: ETHTOOL_GLINKSETTINGS, ..LinkSettings::default() };
        }
        None
    }
}

fn os_error(e: Errno, name: &str, what: &str) -> Error {
    let hint = if e == Errno::PERM { " (needs CAP_NET_ADMIN in its network namespace)" } else { "" };
    Error::from_errno(e, format!("interface '{name}': {what}{hint}"))
}

/// Type and address of a request that SIOCGIFHWADDR filled.
pub fn hw_addr_in(r: &libc::ifreq) -> (u16, [u8; 6]) {
    // SAFETY: a sockaddr is plain bytes; every value of the union's 16 bytes (zeroed at first) is valid.
    let a = unsafe { r.ifr_ifru.ifru_hwaddr };
    (a.sa_family, std::array::from_fn(|i| a.sa_data[i] as u8))
}

/// Puts an Ethernet address into a request for SIOCSIFHWADDR.
pub fn set_hw_addr(r: &mut libc::ifreq, mac: &[u8; 6]) {
    let mut a = libc::sockaddr { sa_family: ARPHRD_ETHER, sa_data: [0; 14] };
    for (d, s) in a.sa_data.iter_mut().zip(mac) {
        *d = *s as libc::c_char;
    }
    r.ifr_ifru.ifru_hwaddr = a;
}

/// The name of a hardware type (linux/if_arp.h) for error texts.
pub fn link_type(kind: u16) -> String {
    let n = match kind {
        ARPHRD_ETHER => "Ethernet",
        32 => "InfiniBand",
        280 => "CAN",
        512 => "PPP",
        519 => "raw IP",
        768 => "IP-in-IP tunnel",
        769 => "IPv6 tunnel",
        ARPHRD_LOOPBACK => "loopback",
        776 => "SIT tunnel",
        778 => "GRE over IPv4",
        801..=803 => "IEEE 802.11",
        804 | 805 => "IEEE 802.15.4",
        823 => "GRE over IPv6",
        824 => "netlink monitor",
        826 => "vsock monitor",
        0xfffe => "none (TUN or WireGuard)",
        _ => return format!("ARPHRD {kind}"),
    };
    format!("{n} (ARPHRD {kind})")
}

const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

/// struct ethtool_link_settings (linux/ethtool.h) with room for three masks of up to 127 words.
#[repr(C)]
struct LinkSettings {
    cmd: u32,
    speed: u32,
    duplex: u8,
    port: u8,
    phy_address: u8,
    autoneg: u8,
    mdio_support: u8,
    eth_tp_mdix: u8,
    eth_tp_mdix_ctrl: u8,
    nwords: i8,
    more: [u8; 4],
    reserved: [u32; 7],
    masks: [u32; 3 * 127],
}

const _: () = assert!(std::mem::offset_of!(LinkSettings, nwords) == 15);
const _: () = assert!(std::mem::offset_of!(LinkSettings, masks) == 48);

impl Default for LinkSettings {
    fn default() -> Self {
        // SAFETY: integers and arrays of integers; all zeros is a valid value.
        unsafe { std::mem::zeroed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_refuses_are_refused_with_a_reason() {
        for n in ["", ".", "..", "a/b", "a b", "eth0:1", "a\tb", "sixteen-bytes-xx", "a\0b"] {
            assert_eq!(check_name(n).unwrap_err().errno(), Errno::INVAL, "{n:?}");
        }
        for n in ["a", "fifteen-bytes-x", "eth0.100", "wlan-0"] {
            check_name(n).unwrap();
        }
    }

    #[test]
    fn loopback_is_read_without_privilege() {
        let c = Ctl::new().unwrap();
        let i = c.index_of("lo").unwrap();
        assert_eq!(c.name_of(i).unwrap(), "lo");
        assert!(c.mtu("lo").unwrap() >= 68);
        assert_eq!(c.hw_addr("lo").unwrap(), (ARPHRD_LOOPBACK, [0; 6]));
        assert_eq!(c.link("lo").unwrap().speed_mbps, None);
    }

    #[test]
    fn errors_name_interface_request_and_value() {
        let c = Ctl::new().unwrap();
        let e = c.set_mtu("no-such-if", 1234).unwrap_err();
        assert_eq!(e.errno(), Errno::NODEV);
        assert!(e.text().starts_with("interface 'no-such-if': set MTU 1234: "), "{e}");
        assert!(c.set_mtu("lo", u32::MAX).unwrap_err().text().contains("4294967295"));
        assert!(c.name_of(0x7fff_fff0).unwrap_err().text().contains("2147483632"));
    }
}
