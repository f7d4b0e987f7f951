//! The requests of /dev/net/tun (linux/if_tun.h), one function each.

use super::kernel::TapOptions;
use crate::driver::{Errno, Error, Result, invalid};
use crate::sock::iface;
use crate::sock::netns::NetNs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const DEV: &str = "/dev/net/tun";

// linux/if_tun.h: _IOC(direction, 'T', number, 4)
const fn iow(n: u32) -> libc::Ioctl {
    (0x4000_0000 | 4 << 16 | (b'T' as u32) << 8 | n) as libc::Ioctl
}
pub(super) const TUNSETIFF: libc::Ioctl = iow(202);
pub(super) const TUNSETPERSIST: libc::Ioctl = iow(203);
pub(super) const TUNGETIFF: libc::Ioctl = (0x8000_0000u32 | 4 << 16 | (b'T' as u32) << 8 | 210) as libc::Ioctl;
pub(super) const TUNSETSNDBUF: libc::Ioctl = iow(212);
pub(super) const TUNSETQUEUE: libc::Ioctl = iow(217);
pub(super) const TUNSETCARRIER: libc::Ioctl = iow(226);
pub(super) const TUNGETDEVNETNS: libc::Ioctl = ((b'T' as u32) << 8 | 227) as libc::Ioctl;
const _: () = assert!(TUNSETIFF == 0x4004_54ca as libc::Ioctl && TUNGETDEVNETNS == 0x54e3 as libc::Ioctl);
pub(super) const SIOCGIFHWADDR: libc::Ioctl = 0x8927;

pub(super) const IFF_TAP: u16 = 0x0002;
pub(super) const IFF_MULTI_QUEUE: u16 = 0x0100;
pub(super) const IFF_ATTACH_QUEUE: u16 = 0x0200;
pub(super) const IFF_DETACH_QUEUE: u16 = 0x0400;
pub(super) const IFF_PERSIST: u16 = 0x0800;
pub(super) const IFF_NO_PI: u16 = 0x1000;
pub(super) const IFF_VNET_HDR: u16 = 0x4000;
pub(super) const IFF_TUN_EXCL: u16 = 0x8000;

pub(super) fn check_pattern(name: &str) -> Result<()> {
    match name.matches('%').count() {
        0 => iface::check_name(name),
        1 if name.contains("%d") => iface::check_name(&name.replace("%d", "0")).and_then(|()| iface::check_name(name)),
        _ => invalid!("tap name '{name}': one '%d' and no other '%' may stand in it"),
    }
}

pub(super) fn open_dev() -> Result<OwnedFd> {
    let r = std::fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEV);
    r.map(OwnedFd::from).map_err(|e| {
        let hint = match e.raw_os_error() {
            Some(libc::ENOENT) | Some(libc::ENODEV) | Some(libc::ENXIO) => {
                " (modprobe tun; a container must be given the device)"
            }
            Some(libc::EACCES) | Some(libc::EPERM) => " (the device file's mode, or the container's device rules)",
            _ => "",
        };
        Error::from_io(&e, format!("open {DEV}{hint}"))
    })
}

pub(super) fn set_iff(fd: &OwnedFd, name: &str, flags: u16) -> Result<String, Errno> {
    let mut r = iface::request(name);
    r.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF takes an ifreq without pointers and writes the name back.
    unsafe { iface::ioctl(fd.as_fd(), TUNSETIFF, &mut r) }?;
    Ok(iface::name_in(&r))
}

pub(super) fn attach_error(e: Errno, o: &TapOptions<'_>, queue: usize) -> Error {
    let hint = match e.0 {
        libc::EPERM => " (needs CAP_NET_ADMIN, or a persistent device that belongs to this user)",
        libc::EBUSY if o.attach => " (in use by another program)",
        libc::EBUSY | libc::EEXIST => " (the name is in use)",
        libc::EINVAL if o.attach => " (not a tap device, or one without multi_queue)",
        libc::EINVAL => " (the name belongs to a device of another kind)",
        libc::E2BIG => " (too many queues)",
        _ => "",
    };
    Error::from_errno(e, format!("tap '{}' queue {queue}{hint}", o.name))
}

pub(super) fn get_iff(fd: BorrowedFd<'_>) -> Result<(String, u16)> {
    let mut r = iface::request("");
    // SAFETY: TUNGETIFF takes an ifreq without pointers.
    unsafe { iface::ioctl(fd, TUNGETIFF, &mut r) }.map_err(|e| {
        let what = match e.0 {
            libc::EBADFD => "its tap device is gone or was never attached",
            libc::ENOTTY | libc::EINVAL => "not a descriptor of /dev/net/tun",
            _ => "TUNGETIFF",
        };
        Error::from_errno(e, format!("descriptor {}: {what}", fd.as_raw_fd()))
    })?;
    // SAFETY: a successful TUNGETIFF filled this member.
    Ok((iface::name_in(&r), unsafe { r.ifr_ifru.ifru_flags } as u16))
}

pub(super) fn dev_netns(fd: BorrowedFd<'_>) -> Result<NetNs> {
    // SAFETY: TUNGETDEVNETNS takes no argument and returns a new descriptor.
    let ns = unsafe { libc::ioctl(fd.as_raw_fd(), TUNGETDEVNETNS) };
    if ns < 0 {
        return Err(Error::os("network namespace of a tap (TUNGETDEVNETNS, needs CAP_NET_ADMIN)"));
    }
    // SAFETY: a descriptor that was just made and is owned by nobody else.
    NetNs::from_fd(unsafe { OwnedFd::from_raw_fd(ns) })
}

/// Runs `f` in the namespace of a descriptor's interface; where that cannot be asked for want of privilege, here.
pub(super) fn in_ns_of<T: Send>(fd: BorrowedFd<'_>, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match dev_netns(fd) {
        Ok(ns) => ns.run_in(f),
        Err(e) if e.errno() == Errno::PERM => f(),
        Err(e) => Err(e),
    }
}

pub(super) fn set_int(fd: BorrowedFd<'_>, req: libc::Ioctl, v: i32, what: &str) -> Result<()> {
    // TUNSETPERSIST takes the value, the others a pointer to it (drivers/net/tun.c).
    let r = if req == TUNSETPERSIST {
        // SAFETY: an integer argument.
        unsafe { libc::ioctl(fd.as_raw_fd(), req, libc::c_long::from(v)) }
    } else {
        // SAFETY: a pointer to an int that lives through the call.
        unsafe { libc::ioctl(fd.as_raw_fd(), req, &raw const v) }
    };
    if r < 0 { Err(Error::os(format!("tap: set {what} to {v}"))) } else { Ok(()) }
}
