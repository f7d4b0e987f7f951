//! One mapping: private to the process, or a file in memory that a device or a peer can map too.
//!
//! Every page is filled at creation. A hugepage that cannot be had then shows as a lower rung of the ladder, instead of
//! as SIGBUS in a burst; and no burst pays for a page fault.

use core::ptr::NonNull;
use std::alloc::Layout;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::ladder::Ladder;
use super::page::{PagePolicy, PageSize};
use crate::base::bits::align_up;
use crate::base::{Errno, Error, Result};
use crate::{fail, invalid, log_debug};

/// Memory from the kernel; zeroed when made, unmapped on drop. A child made by fork does not have it (MADV_DONTFORK).
#[derive(Debug)]
pub struct Segment {
    map: Map,
    page: PageSize,
    fd: Option<OwnedFd>,
    hint: Option<String>,
}

/// The mapping alone, so that a half-made segment gives back what it took.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    len: usize,
    /// hugepage_rs takes back what it gave by the layout that was asked for.
    hugepage_rs: Option<Layout>,
}

// SAFETY: a mapping belongs to the process, not to a thread; the struct only holds its address, and hands out nothing
// but that address: whoever dereferences it answers for what threads do to the bytes.
unsafe impl Send for Map {}
// SAFETY: as for Send; no method changes the struct through a shared reference.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        match self.hugepage_rs {
            // SAFETY: `base` came from hugepage_rs::alloc with this very layout, and is given back once.
            Some(layout) => unsafe { hugepage_rs::dealloc(self.base.as_ptr(), layout) },
            // SAFETY: base and len are a mapping that this struct made and alone owns.
            None => unsafe {
                libc::munmap(self.base.as_ptr().cast(), self.len);
            },
        }
    }
}

impl Map {
    /// Maps `len` bytes, of `fd` where there is one.
    fn new(len: usize, fd: Option<&OwnedFd>) -> Result<Map> {
        let (flags, raw) = match fd {
            Some(fd) => (libc::MAP_SHARED, fd.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: no address is asked for, so no mapping of ours can be replaced.
        let p = unsafe { libc::mmap(core::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, raw, 0) };
        if p == libc::MAP_FAILED {
            return Err(Error::os(format_args!("mmap of {len} bytes")));
        }
        match NonNull::new(p.cast()) {
            Some(base) => Ok(Map { base, len, hugepage_rs: None }),
            None => fail!(NOMEM, "mmap of {len} bytes gave address 0"),
        }
    }

    fn advise(&self, advice: i32) -> Result<(), Errno> {
        // SAFETY: the range is our own mapping; the two advices in use change no byte that anyone has written.
        match unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, advice) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    /// Keeps the mapping out of children, and fills its pages.
    fn settle(&self) -> Result<()> {
        // First, so that no fork between the two makes a filled page copy-on-write.
        self.advise(libc::MADV_DONTFORK).map_err(|e| Error::from_errno(e, "madvise(MADV_DONTFORK)"))?;
        // A signal may cut a filling short; what is filled stays so, and each try gets further. Bounded all the same.
        let mut filled = Err(Errno(libc::EINTR));
        for _ in 0..1000 {
            filled = self.advise(libc::MADV_POPULATE_WRITE);
            if filled != Err(Errno(libc::EINTR)) {
                break;
            }
        }
        match filled {
            // EINVAL: before Linux 5.14. Pages then come as they are touched.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(e) => Err(Error::from_errno(e, format_args!("filling {} bytes", self.len))),
        }
    }
}

impl Segment {
    /// Memory that only this process sees: packet headers, rings, queue state.
    ///
    /// One run of pages of the kernel's default hugepage size where enough of them are free, `policy` allows that size,
    /// and `len` fills half of one; ordinary pages otherwise. Errors: -EINVAL for a `len` of 0 or too long to round,
    /// -ENOMEM with what was needed and what there is.
    pub fn private(len: usize, policy: PagePolicy) -> Result<Segment> {
        Segment::private_from(&Ladder::system(), len, policy)
    }

    fn private_from(ladder: &Ladder, len: usize, policy: PagePolicy) -> Result<Segment> {
        check_len(len)?;
        let wanted = ladder.wanted_private(len, policy);
        let mut refused = None;
        if let Some(page) = wanted.filter(|&page| ladder.enough(len, page)) {
            match hugepages(len, page) {
                Ok(map) => return Ok(Segment { map, page, fd: None, hint: None }),
                Err(e) => refused = Some(e),
            }
        }
        let map = ordinary_fits(ladder, len, wanted).and_then(|len| {
            let map = Map::new(len, None)?;
            map.settle()?;
            Ok(map)
        });
        let map = map.map_err(|e| e.context(format_args!("private memory of {len} bytes")))?;
        Ok(Segment { map, page: PageSize::Normal, fd: None, hint: hint(ladder, len, wanted, refused) })
    }

    /// Memory in a file of its own (memfd_create(2), close-on-exec) that can be lent: packet rooms.
    ///
    /// 1 GiB pages, then 2 MiB pages, where enough are free, `policy` allows them and `len` fills half of one; ordinary
    /// pages otherwise. The file is sealed: no one who is lent it can shrink it below us. `name` shows in
    /// `/proc/self/maps`; at most 249 bytes. Errors as for [`Segment::private`].
    pub fn shared(name: &str, len: usize, policy: PagePolicy) -> Result<Segment> {
        Segment::shared_from(&Ladder::system(), name, len, policy)
    }

    fn shared_from(ladder: &Ladder, name: &str, len: usize, policy: PagePolicy) -> Result<Segment> {
        check_len(len)?;
        let Ok(c_name) = CString::new(name) else { return invalid!("segment name {name:?} holds a zero byte") };
        if name.len() > 249 {
            return invalid!("segment name of {} bytes, at most 249 (memfd_create(2))", name.len());
        }
        let wanted = ladder.wanted_shared(len, policy);
        let mut refused = None;
        for &page in &wanted {
            if !ladder.enough(len, page) {
                continue;
            }
            match file(&c_name, len, page) {
                Ok((map, fd)) => return Ok(Segment { map, page, fd: Some(fd), hint: None }),
                Err(e) => refused = Some(e),
            }
        }
        // The smallest hugepage that would do is the cheapest remedy.
        let wanted = wanted.last().copied();
        let made = ordinary_fits(ladder, len, wanted).and_then(|len| file(&c_name, len, PageSize::Normal));
        let (map, fd) = made.map_err(|e| e.context(format_args!("shared memory '{name}' of {len} bytes")))?;
        Ok(Segment { map, page: PageSize::Normal, fd: Some(fd), hint: hint(ladder, len, wanted, refused) })
    }

    /// The first byte; aligned to the page size.
    pub fn base(&self) -> NonNull<u8> {
        self.map.base
    }

    /// Bytes mapped: what was asked for, rounded up to whole pages.
    pub fn len(&self) -> usize {
        self.map.len
    }

    /// Never: a segment has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn page(&self) -> PageSize {
        self.page
    }

    /// The file behind shared memory, to lend to a peer; None for private memory.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(|fd| fd.as_fd())
    }

    /// Where hugepages were wanted and ordinary pages were taken: the command that would have given hugepages for this
    /// length, or, where enough were free, why the kernel refused them.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

/// A length that can be rounded to the largest page and still be an object's size.
fn check_len(len: usize) -> Result<()> {
    const MAX: usize = isize::MAX as usize - ((1 << 30) - 1);
    match len {
        0 => invalid!("segment of 0 bytes, at least 1"),
        1..=MAX => Ok(()),
        _ => invalid!("segment of {len} bytes, at most {MAX}"),
    }
}

/// `len` in ordinary pages, where that much memory is to be had.
///
/// Filling pages that are not there would have the kernel kill a process, maybe this one.
fn ordinary_fits(ladder: &Ladder, len: usize, wanted: Option<PageSize>) -> Result<usize> {
    let page = PageSize::Normal;
    let Some(rounded) = align_up(len, page.bytes()) else { return invalid!("{len} bytes cannot be rounded to {page}") };
    match ladder.ordinary_available() {
        Some(free) if rounded > free => {
            let more = wanted.and_then(|p| ladder.shortage(len, p)).map(|s| format!("; {s}")).unwrap_or_default();
            fail!(NOMEM, "{} pages of {page} needed, {} free{more}", rounded / page.bytes(), free / page.bytes())
        }
        _ => Ok(rounded),
    }
}

/// Private hugepages of the default size, which `page` is and which /proc/meminfo names.
fn hugepages(len: usize, page: PageSize) -> Result<Map> {
    let (Some(rounded), Ok(layout)) = (align_up(len, page.bytes()), Layout::from_size_align(len, page.bytes())) else {
        return invalid!("{len} bytes cannot be rounded to {page}");
    };
    // SAFETY: the layout's size is not 0 (checked at the entry). It does not panic: the ladder has read the default size.
    let p = unsafe { hugepage_rs::alloc(layout) };
    let Some(base) = NonNull::new(p) else {
        return Err(Error::os(format_args!("mmap of {rounded} bytes of {page} pages")));
    };
    let map = Map { base, len: rounded, hugepage_rs: Some(layout) };
    map.settle()?;
    Ok(map)
}

/// A sealed file in memory and its mapping.
fn file(name: &CString, len: usize, page: PageSize) -> Result<(Map, OwnedFd)> {
    let Some(len) = align_up(len, page.bytes()) else { return invalid!("{len} bytes cannot be rounded to {page}") };
    let mut flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    if page.is_huge() {
        flags |= libc::MFD_HUGETLB | (page.bytes().trailing_zeros() << libc::MFD_HUGE_SHIFT);
    }
    // SAFETY: `name` ends in a zero byte and outlives the call.
    let raw = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if raw < 0 {
        return Err(Error::os(format_args!("memfd_create with {page} pages")));
    }
    // SAFETY: the descriptor is new and no one else's.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // Beyond a file-size limit the kernel would send SIGXFSZ, which ends the process.
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: the call writes one rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    if len as u64 > limit.rlim_cur {
        return fail!(
            NOSPC,
            "{len} bytes of memory in a file; the file-size limit (ulimit -f) is {} bytes",
            limit.rlim_cur
        );
    }
    // check_len keeps it below isize::MAX, so it fits off_t.
    // SAFETY: the call takes integers only.
    if unsafe { libc::ftruncate(raw, len as libc::off_t) } != 0 {
        return Err(Error::os(format_args!("ftruncate to {len} bytes")));
    }
    // Mapping a hugetlb file reserves all its pages or fails.
    let map = Map::new(len, Some(&fd))?;
    map.settle()?;
    // A peer that holds the descriptor must not be able to take pages from under us (SIGBUS), nor to add any.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the call takes integers only.
    if unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, seals) } != 0 {
        return Err(Error::os("fcntl(F_ADD_SEALS)"));
    }
    Ok((map, fd))
}

fn hint(ladder: &Ladder, len: usize, wanted: Option<PageSize>, refused: Option<Error>) -> Option<String> {
    let page = wanted?;
    // Enough pages by the books and yet none: a hugetlb cgroup, a cpuset, or someone was faster and has gone again.
    let hint = ladder
        .command(len, page)
        .or_else(|| Some(format!("{page} pages are free, but the kernel refused them: {}", refused.as_ref()?.text())));
    if let Some(hint) = &hint {
        log_debug!("{len} bytes on ordinary pages; for {page} pages: {hint}");
    }
    hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(s: &Segment) -> &[u8] {
        // SAFETY: the mapping is readable for its whole length, lives as long as `s`, and no one else writes it here.
        unsafe { core::slice::from_raw_parts(s.base().as_ptr(), s.len()) }
    }

    #[test]
    fn both_kinds_are_zeroed_whole_pages_and_writable() {
        for s in [Segment::private(5000, PagePolicy::NO_HUGE), Segment::shared("t", 5000, PagePolicy::NO_HUGE)] {
            let s = s.unwrap();
            assert_eq!(s.len() % s.page().bytes(), 0);
            assert!(s.len() >= 5000 && !s.is_empty());
            assert!(bytes(&s).iter().all(|&b| b == 0));
            // SAFETY: the last byte is inside our own mapping.
            unsafe { s.base().as_ptr().add(s.len() - 1).write(7) };
            assert_eq!(bytes(&s)[s.len() - 1], 7);
        }
    }

    #[test]
    fn a_length_of_zero_or_beyond_the_limit_is_named() {
        for f in [|n| Segment::private(n, PagePolicy::default()), |n| Segment::shared("t", n, PagePolicy::default())] {
            let e = f(0).unwrap_err();
            assert_eq!((e.errno(), e.text()), (Errno::INVAL, "segment of 0 bytes, at least 1"));
            for n in [usize::MAX, isize::MAX as usize] {
                let e = f(n).unwrap_err();
                assert_eq!(e.errno(), Errno::INVAL);
                assert!(e.text().contains(&n.to_string()) && e.text().contains("at most"), "{e}");
            }
        }
    }

    #[test]
    fn a_bad_name_is_refused() {
        assert_eq!(Segment::shared("a\0b", 1, PagePolicy::NO_HUGE).unwrap_err().errno(), Errno::INVAL);
        let e = Segment::shared(&"x".repeat(250), 1, PagePolicy::NO_HUGE).unwrap_err();
        assert!(e.text().contains("250") && e.text().contains("249"), "{e}");
        Segment::shared(&"x".repeat(249), 1, PagePolicy::NO_HUGE).unwrap();
    }

    #[test]
    fn no_hint_where_ordinary_pages_were_asked_for() {
        let s = Segment::private(64 << 20, PagePolicy::NO_HUGE).unwrap();
        assert_eq!((s.page(), s.hint(), s.fd().is_none()), (PageSize::Normal, None, true));
    }

    #[test]
    fn shared_memory_is_a_sealed_close_on_exec_file() {
        let s = Segment::shared("sealed", 4096, PagePolicy::NO_HUGE).unwrap();
        let raw = s.fd().unwrap().as_raw_fd();
        // SAFETY: these calls take integers only.
        let (cut, flags) = unsafe { (libc::ftruncate(raw, 0), libc::fcntl(raw, libc::F_GETFD)) };
        assert_eq!(cut, -1, "a lent file must not be cut");
        assert_ne!(flags & libc::FD_CLOEXEC, 0);
    }
}
