//! A packet socket (packet(7), linux/if_packet.h) bound to one interface: whole Ethernet frames in and out, one system
//! call each. The kernel takes the outer VLAN tag out of a received frame, whatever the device; it comes back here.

use std::io::{IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::iface::{ARPHRD_ETHER, ARPHRD_LOOPBACK, link_type};
use crate::base::{Errno, Error, Result};

// linux/if_packet.h
const PACKET_ADD_MEMBERSHIP: i32 = 1;
const PACKET_STATISTICS: i32 = 6;
const PACKET_AUXDATA: i32 = 8;
const PACKET_QDISC_BYPASS: i32 = 20;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const PACKET_MR_PROMISC: u16 = 1;
const PACKET_OUTGOING: u8 = 4;
const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const ETH_P_8021Q: u16 = 0x8100;

/// struct tpacket_auxdata
#[repr(C)]
#[derive(Clone, Copy)]
struct AuxData {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}
const _: () = assert!(size_of::<AuxData>() == 20);
const _: () = assert!(size_of::<libc::sockaddr_ll>() == 20);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<libc::msghdr>() == 56 && size_of::<libc::cmsghdr>() == 16);
const _: () = assert!(size_of::<IoSlice<'_>>() == size_of::<libc::iovec>());

/// struct packet_mreq
#[repr(C)]
struct Membership {
    ifindex: i32,
    kind: u16,
    alen: u16,
    address: [u8; 8],
}
const _: () = assert!(size_of::<Membership>() == 16);

/// struct tpacket_stats
#[repr(C)]
#[derive(Default)]
struct RawStats {
    packets: u32,
    drops: u32,
}

/// Bytes of a VLAN tag, and of the addresses before it.
const TAG: usize = 4;
const ADDRS: usize = 12;

#[derive(Clone, Copy, Debug)]
pub struct PacketOptions {
    /// All frames on the wire; ends with the socket.
    pub promisc: bool,
    /// Do not receive what this machine sends on the interface (this socket's frames among it).
    pub ignore_outgoing: bool,
    /// Send past the queueing discipline: faster, and a full device queue drops instead of waiting.
    pub qdisc_bypass: bool,
    /// SO_RCVBUF in bytes; None: the system's default.
    pub rcvbuf: Option<u32>,
}

impl Default for PacketOptions {
    fn default() -> Self {
        PacketOptions { promisc: true, ignore_outgoing: true, qdisc_bypass: false, rcvbuf: None }
    }
}

/// What came with a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes written, without what was cut.
    pub len: usize,
    /// Bytes of the frame; more than `len` where the buffer was too short.
    pub orig_len: usize,
    /// Nanoseconds since the epoch, by the kernel's software clock; 0 where it gave none.
    pub ts_ns: u64,
    /// (TPID, TCI) of a tag that the kernel took out and that is *not* in the bytes.
    pub vlan: Option<(u16, u16)>,
    /// The sender left the L4 checksum to a device that is not there (a frame of this machine's own stack).
    pub csum_partial: bool,
}

impl Received {
    pub fn truncated(&self) -> bool {
        self.orig_len > self.len
    }
}

/// Counts since the call before (the kernel resets them at each read).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStats {
    /// Frames offered to the socket, dropped ones included.
    pub packets: u32,
    /// Frames lost because the socket's buffer was full.
    pub drops: u32,
}

/// A non-blocking packet socket. Receive and send errors on the hot road are bare numbers: EAGAIN empty or full,
/// ENETDOWN interface down (by receive: said once, or not at all where a send met it first), ENXIO or ENODEV interface gone, EMSGSIZE longer than the MTU,
/// ENOBUFS device queue full.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ifindex: u32,
    /// The kernel is too old for PACKET_IGNORE_OUTGOING (Linux 4.20): look at each frame's type.
    filter_outgoing: bool,
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PacketSocket {
    /// In the calling thread's namespace (see [`NetNs::run_in`](super::netns::NetNs::run_in)). Needs CAP_NET_RAW.
    pub fn open(ifindex: u32, o: &PacketOptions) -> Result<PacketSocket> {
        PacketSocket::open_inner(ifindex, o).map_err(|e| e.context(format!("interface index {ifindex}")))
    }

    fn open_inner(ifindex: u32, o: &PacketOptions) -> Result<PacketSocket> {
        if ifindex == 0 || i32::try_from(ifindex).is_err() {
            return crate::invalid!("not an index: 1 to {} is", i32::MAX);
        }
        // Protocol 0: nothing arrives, from whichever interface, before bind names one.
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket(2) takes three integers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            let hint = if Errno::last() == Errno::PERM { " (needs CAP_NET_RAW)" } else { "" };
            return Err(Error::os(format!("packet socket{hint}")));
        }
        // SAFETY: a descriptor that was just made and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut s = PacketSocket { fd, ifindex, filter_outgoing: false };
        s.set(libc::SOL_PACKET, PACKET_AUXDATA, &1i32, "PACKET_AUXDATA")?;
        s.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, "SO_TIMESTAMPNS")?;
        if o.ignore_outgoing {
            s.filter_outgoing = s.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32, "").is_err();
        }
        if o.qdisc_bypass {
            s.set(libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32, "PACKET_QDISC_BYPASS")?;
        }
        if let Some(n) = o.rcvbuf {
            let v = i32::try_from(n).unwrap_or(i32::MAX);
            // The forced form passes net.core.rmem_max and needs CAP_NET_ADMIN; the plain one is cut to it.
            if s.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &v, "").is_err() {
                s.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &v, &format!("SO_RCVBUF {n}"))?;
            }
        }
        s.bind()?;
        if o.promisc {
            let m = Membership { ifindex: ifindex as i32, kind: PACKET_MR_PROMISC, alen: 0, address: [0; 8] };
            s.set(libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, "promiscuous")?;
        }
        Ok(s)
    }

    fn bind(&self) -> Result<()> {
        // SAFETY: plain integers and bytes; all zeros is a valid value.
        let mut a: libc::sockaddr_ll = unsafe { zeroed() };
        a.sll_family = libc::AF_PACKET as u16;
        a.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        a.sll_ifindex = self.ifindex as i32;
        let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: address and length are those of `a`.
        if unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const a).cast(), len) } != 0 {
            return Err(Error::os("bind"));
        }
        // SAFETY: as above; the kernel writes at most `len` bytes.
        if unsafe { libc::getsockname(self.fd.as_raw_fd(), (&raw mut a).cast(), &mut len) } != 0 {
            return Err(Error::os("getsockname"));
        }
        match a.sll_hatype {
            ARPHRD_ETHER | ARPHRD_LOOPBACK => Ok(()),
            t => crate::fail!(NOTSUP, "not Ethernet: link type {}", link_type(t)),
        }
    }

    /// `T` is what the option takes, without padding.
    fn set<T>(&self, level: i32, option: i32, v: &T, what: &str) -> Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: pointer and length are those of `v`.
        match unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, (v as *const T).cast(), len) } {
            0 => Ok(()),
            _ => Err(Error::os(format!("set {what}"))),
        }
    }

    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Counters since the last call, and resets them.
    pub fn take_stats(&self) -> Result<PacketStats> {
        let mut s = RawStats::default();
        let mut len = size_of::<RawStats>() as libc::socklen_t;
        let p = (&raw mut s).cast();
        // SAFETY: the kernel writes at most `len` bytes, the size of `s`.
        if unsafe { libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_PACKET, PACKET_STATISTICS, p, &mut len) } != 0 {
            return Err(Error::os(format!("interface index {}: PACKET_STATISTICS", self.ifindex)));
        }
        Ok(PacketStats { packets: s.packets, drops: s.drops })
    }

    /// One frame into `buf` with its outer tag in it: the frame is `&buf[start..start + r.len]` with the returned
    /// start (4 without a tag, 0 with one: four bytes are kept free so that only the addresses move).
    /// `r.vlan` is None. `buf` shorter than 16 bytes: EINVAL.
    pub fn recv_frame(&self, buf: &mut [u8]) -> Result<(usize, Received), Errno> {
        if buf.len() < ADDRS + TAG {
            return Err(Errno::INVAL);
        }
        let mut r = self.recv(&mut [IoSliceMut::new(&mut buf[TAG..])])?;
        let start = put_tag_back(buf, &mut r);
        Ok((start, r))
    }

    /// One frame across `bufs`, the outer tag beside it in `vlan`.
    pub fn recv(&self, bufs: &mut [IoSliceMut<'_>]) -> Result<Received, Errno> {
        loop {
            let (r, pkttype) = self.recv_once(bufs)?;
            if !(self.filter_outgoing && pkttype == PACKET_OUTGOING) {
                return Ok(r);
            }
        }
    }

    fn recv_once(&self, bufs: &mut [IoSliceMut<'_>]) -> Result<(Received, u8), Errno> {
        // Room for the two messages that were asked for, aligned as cmsghdr.
        let mut control = MaybeUninit::<[u64; 16]>::uninit();
        let mut from = MaybeUninit::<libc::sockaddr_ll>::zeroed();
        // SAFETY: plain integers and null pointers; all zeros is a valid value.
        let mut m: libc::msghdr = unsafe { zeroed() };
        m.msg_iov = bufs.as_mut_ptr().cast();
        m.msg_iovlen = bufs.len() as _;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = size_of::<[u64; 16]>() as _;
        if self.filter_outgoing {
            m.msg_name = from.as_mut_ptr().cast();
            m.msg_namelen = size_of::<libc::sockaddr_ll>() as _;
        }
        // SAFETY: IoSliceMut has the layout of iovec; each, the control room and the address are borrowed for the call.
        let n = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &mut m, libc::MSG_TRUNC) };
        if n < 0 {
            return Err(Errno::last());
        }
        let orig_len = n as usize;
        let mut r = Received { orig_len, ..Received::default() };
        r.len = orig_len.min(bufs.iter().map(|b| b.len()).sum());
        // SAFETY: the kernel set msg_controllen to what it wrote; the CMSG walk stays inside that.
        let mut c = unsafe { libc::CMSG_FIRSTHDR(&m) };
        while !c.is_null() {
            // SAFETY: `c` came from the walk: a whole header inside the control room.
            let (level, kind, len) = unsafe { ((*c).cmsg_level, (*c).cmsg_type, (*c).cmsg_len as usize) };
            // SAFETY: as above; the data follows the header.
            let data = unsafe { libc::CMSG_DATA(c) };
            let room = len.saturating_sub(data as usize - c as usize);
            if level == libc::SOL_PACKET && kind == PACKET_AUXDATA && room >= size_of::<AuxData>() {
                // SAFETY: `room` bytes are there; unaligned read of plain integers.
                let a = unsafe { data.cast::<AuxData>().read_unaligned() };
                r.csum_partial = a.status & TP_STATUS_CSUMNOTREADY != 0;
                if a.status & TP_STATUS_VLAN_VALID != 0 {
                    let known = a.status & TP_STATUS_VLAN_TPID_VALID != 0;
                    r.vlan = Some((if known { a.vlan_tpid } else { ETH_P_8021Q }, a.vlan_tci));
                }
            } else if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS && room >= size_of::<libc::timespec>()
            {
                // SAFETY: as above.
                let t = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                r.ts_ns = (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64);
            }
            // SAFETY: `c` is a header of this message.
            c = unsafe { libc::CMSG_NXTHDR(&m, c) };
        }
        // SAFETY: zeroed at first, plain integers.
        Ok((r, unsafe { from.assume_init() }.sll_pkttype))
    }

    /// One frame. Errors as the type says; nothing is kept of a frame that failed.
    pub fn send(&self, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
        // An interface that goes down leaves ENETDOWN pending on the socket, and the first send after it is up again
        // would be lost to that old news. Taken off, and tried once more: then the answer is about now.
        match self.send_once(bufs) {
            Err(Errno(libc::ENETDOWN)) if self.take_error() => self.send_once(bufs),
            r => r,
        }
    }

    /// Clears the socket's pending error; true where there was one.
    fn take_error(&self) -> bool {
        let (mut e, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
        let p = (&raw mut e).cast();
        // SAFETY: the kernel writes at most `len` bytes, the size of `e`.
        let r = unsafe { libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, p, &mut len) };
        r == 0 && e != 0
    }

    fn send_once(&self, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
        // SAFETY: plain integers and null pointers; all zeros is a valid value.
        let mut m: libc::msghdr = unsafe { zeroed() };
        m.msg_iov = bufs.as_ptr().cast_mut().cast();
        m.msg_iovlen = bufs.len() as _;
        // SAFETY: IoSlice has the layout of iovec and each is borrowed for the call; sendmsg only reads them.
        let n = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &m, libc::MSG_DONTWAIT) };
        if n < 0 { Err(Errno::last()) } else { Ok(n as usize) }
    }
}

/// The frame lies at `buf[4..]`; where a tag came beside it, the addresses move to the front and the tag goes between.
fn put_tag_back(buf: &mut [u8], r: &mut Received) -> usize {
    let Some((tpid, tci)) = r.vlan else { return TAG };
    if r.len < ADDRS {
        return TAG;
    }
    buf.copy_within(TAG..TAG + ADDRS, 0);
    buf[ADDRS..ADDRS + 2].copy_from_slice(&tpid.to_be_bytes());
    buf[ADDRS + 2..ADDRS + 4].copy_from_slice(&tci.to_be_bytes());
    r.vlan = None;
    r.len += TAG;
    r.orig_len += TAG;
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_tag_goes_back_between_addresses_and_type() {
        let mut buf: Vec<u8> = (0..24).collect();
        let mut r = Received { len: 20, orig_len: 30, vlan: Some((0x88a8, 0x6064)), ..Received::default() };
        assert_eq!(put_tag_back(&mut buf, &mut r), 0);
        let mut want: Vec<u8> = (4..16).collect();
        want.extend([0x88, 0xa8, 0x60, 0x64]);
        want.extend(16..24);
        assert_eq!(buf, want);
        assert_eq!((r.len, r.orig_len, r.vlan), (24, 34, None));
        assert!(r.truncated());
        assert_eq!(put_tag_back(&mut buf, &mut r), TAG);
    }

    #[test]
    fn an_index_that_cannot_be_is_refused() {
        for i in [0, 1 << 31, u32::MAX] {
            let e = PacketSocket::open(i, &PacketOptions::default()).unwrap_err();
            assert!(e.errno() == Errno::INVAL && e.text().contains(&i.to_string()), "{e}");
        }
    }
}
