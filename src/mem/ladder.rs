//! The page ladder: which hugepages the kernel has free, which of them suit a length, and the command that gives more.
//!
//! Sources: Documentation/admin-guide/mm/hugetlbpage.rst (`/sys/kernel/mm/hugepages/*`), proc(5) (`/proc/meminfo`).

use std::fs;
use std::path::{Path, PathBuf};

use super::page::{PagePolicy, PageSize};

/// The kernel's books for one size of hugepage, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HugeCount {
    /// Persistent pages (`nr_hugepages`).
    pub nr: usize,
    /// Pages that no one has filled (`free_hugepages`).
    pub free: usize,
    /// Of those free, promised to a mapping that has not touched them yet (`resv_hugepages`).
    pub resv: usize,
    /// Pages above `nr` that the kernel may still make on demand (`nr_overcommit_hugepages` less `surplus_hugepages`).
    pub spare: usize,
}

impl HugeCount {
    /// Pages that a new mapping can have.
    pub fn available(self) -> usize {
        self.free.saturating_sub(self.resv) + self.spare
    }
}

/// Reads the kernel's hugepage books, below a root that tests replace.
#[derive(Clone, Debug)]
pub struct Ladder {
    root: PathBuf,
}

impl Ladder {
    /// The running kernel's.
    pub fn system() -> Ladder {
        Ladder::at("/")
    }

    /// `root` stands for `/`: `root/sys/kernel/mm/hugepages/…` and `root/proc/meminfo` are read.
    pub fn at(root: impl AsRef<Path>) -> Ladder {
        Ladder { root: root.as_ref().to_path_buf() }
    }

    fn dir(&self, page: PageSize) -> PathBuf {
        self.root.join(hugepage_dir(page))
    }

    /// The books for one page size; None where this kernel does not have it, and for ordinary pages.
    pub fn count(&self, page: PageSize) -> Option<HugeCount> {
        if !page.is_huge() {
            return None;
        }
        let dir = self.dir(page);
        let read = |name: &str| -> Option<usize> { fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok() };
        Some(HugeCount {
            nr: read("nr_hugepages")?,
            free: read("free_hugepages")?,
            resv: read("resv_hugepages")?,
            // Absent where the size cannot be made on demand (a kernel that makes 1 GiB pages only at boot).
            spare: read("nr_overcommit_hugepages").unwrap_or(0).saturating_sub(read("surplus_hugepages").unwrap_or(0)),
        })
    }

    fn meminfo_line(&self, token: &str) -> Option<usize> {
        let text = fs::read_to_string(self.root.join("proc/meminfo")).ok()?;
        let rest = text.lines().find_map(|l| l.strip_prefix(token))?;
        let mut words = rest.split_whitespace();
        let n: usize = words.next()?.parse().ok()?;
        match words.next() {
            None => Some(n),
            Some("kB") => n.checked_mul(1024),
            Some(_) => None,
        }
    }

    /// The default hugepage's size in bytes (`Hugepagesize:`), of whatever size; None where the kernel names none.
    pub fn default_bytes(&self) -> Option<usize> {
        self.meminfo_line("Hugepagesize:").filter(|n| n.is_power_of_two())
    }

    /// Bytes of ordinary memory that can be filled without driving out programs: `MemAvailable` and free swap.
    pub fn ordinary_available(&self) -> Option<usize> {
        let swap = self.meminfo_line("SwapFree:").unwrap_or(0);
        self.meminfo_line("MemAvailable:").map(|n| n.saturating_add(swap))
    }

    /// Hugepages wanted for shared memory of this length, largest first: allowed, known to the kernel, and at least
    /// half filled by it. Empty: ordinary pages are what is wanted.
    pub fn wanted_shared(&self, len: usize, policy: PagePolicy) -> Vec<PageSize> {
        [PageSize::Huge1G, PageSize::Huge2M]
            .into_iter()
            .filter(|&p| policy.allows(p) && len >= p.bytes() / 2 && self.count(p).is_some())
            .collect()
    }

    /// The hugepage wanted for private memory of this length: the default one, or none.
    pub fn wanted_private(&self, len: usize, policy: PagePolicy) -> Option<PageSize> {
        if policy.no_huge {
            return None;
        }
        let page = PageSize::from_bytes(self.default_bytes()?)?;
        (page.is_huge() && policy.allows(page) && len >= page.bytes() / 2 && self.count(page).is_some()).then_some(page)
    }

    /// True where the kernel has enough pages of this size for `len` bytes.
    pub fn enough(&self, len: usize, page: PageSize) -> bool {
        self.count(page).is_some_and(|c| c.available() >= len.div_ceil(page.bytes()))
    }

    /// The command that gives the pages of this size that `len` bytes lack. None where this kernel does not have the
    /// size, or has enough.
    pub fn command(&self, len: usize, page: PageSize) -> Option<String> {
        let c = self.count(page)?;
        let missing = len.div_ceil(page.bytes()).checked_sub(c.available()).filter(|&n| n > 0)?;
        Some(format!("echo {} > /{}/nr_hugepages", c.nr.saturating_add(missing), hugepage_dir(page)))
    }

    /// Need, stock and remedy in one line: `8 pages of 2 MiB needed, 3 free: echo 5 > …`. None as for [`Ladder::command`].
    pub fn shortage(&self, len: usize, page: PageSize) -> Option<String> {
        let command = self.command(len, page)?;
        let (need, free) = (len.div_ceil(page.bytes()), self.count(page)?.available());
        Some(format!("{need} pages of {page} needed, {free} free: {command}"))
    }
}

/// Without its leading slash, so that it can be joined to a root.
fn hugepage_dir(page: PageSize) -> String {
    format!("sys/kernel/mm/hugepages/hugepages-{}kB", page.bytes() / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const M: usize = 1 << 20;
    const G: usize = 1 << 30;

    /// A kernel's files in a directory of their own, removed on drop.
    struct Fake(PathBuf);

    impl Fake {
        fn new(default_kb: Option<usize>) -> Fake {
            static N: AtomicU32 = AtomicU32::new(0);
            let n = N.fetch_add(1, Ordering::Relaxed);
            let dir = std::env::temp_dir().join(format!("burstline-ladder-{}-{n}", std::process::id()));
            fs::create_dir_all(dir.join("proc")).unwrap();
            let line = default_kb.map(|kb| format!("Hugepagesize:    {kb} kB\n")).unwrap_or_default();
            fs::write(dir.join("proc/meminfo"), format!("MemAvailable:  1000 kB\nSwapFree: 24 kB\n{line}")).unwrap();
            Fake(dir)
        }

        fn pages(self, page: PageSize, nr: usize, free: usize, resv: usize) -> Fake {
            let dir = self.0.join(hugepage_dir(page));
            fs::create_dir_all(&dir).unwrap();
            for (name, n) in [("nr_hugepages", nr), ("free_hugepages", free), ("resv_hugepages", resv)] {
                fs::write(dir.join(name), format!("{n}\n")).unwrap();
            }
            self
        }

        fn ladder(&self) -> Ladder {
            Ladder::at(&self.0)
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const ANY: PagePolicy = PagePolicy { no_huge: false, max: None };

    #[test]
    fn a_promised_page_is_not_available() {
        let k = Fake::new(Some(2048)).pages(PageSize::Huge2M, 10, 8, 3);
        assert_eq!(k.ladder().count(PageSize::Huge2M).unwrap().available(), 5);
        assert!(k.ladder().enough(10 * M, PageSize::Huge2M));
        assert!(!k.ladder().enough(10 * M + 1, PageSize::Huge2M));
    }

    #[test]
    fn pages_that_can_be_made_on_demand_count() {
        let k = Fake::new(Some(2048)).pages(PageSize::Huge2M, 0, 0, 0);
        let dir = k.0.join(hugepage_dir(PageSize::Huge2M));
        fs::write(dir.join("nr_overcommit_hugepages"), "7\n").unwrap();
        fs::write(dir.join("surplus_hugepages"), "3\n").unwrap();
        assert_eq!(k.ladder().count(PageSize::Huge2M).unwrap().available(), 4);
    }

    #[test]
    fn the_command_asks_for_what_is_there_plus_what_is_missing() {
        let k = Fake::new(Some(2048)).pages(PageSize::Huge2M, 10, 4, 1);
        assert_eq!(
            k.ladder().command(20 * M, PageSize::Huge2M).unwrap(),
            "echo 17 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        );
        assert_eq!(
            k.ladder().shortage(20 * M, PageSize::Huge2M).unwrap(),
            "10 pages of 2 MiB needed, 3 free: echo 17 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        );
        assert_eq!(k.ladder().command(6 * M, PageSize::Huge2M), None);
    }

    #[test]
    fn a_gigantic_page_is_wanted_only_when_half_filled() {
        let k = Fake::new(Some(2048)).pages(PageSize::Huge2M, 0, 0, 0).pages(PageSize::Huge1G, 1, 1, 0);
        let l = k.ladder();
        assert_eq!(l.wanted_shared(512 * M, ANY), [PageSize::Huge1G, PageSize::Huge2M]);
        assert_eq!(l.wanted_shared(512 * M - 1, ANY), [PageSize::Huge2M]);
        assert!(l.wanted_shared(M - 1, ANY).is_empty());
        let max = PagePolicy { no_huge: false, max: Some(PageSize::Huge2M) };
        assert_eq!(l.wanted_shared(4 * G, max), [PageSize::Huge2M]);
        assert!(l.wanted_shared(4 * G, PagePolicy::NO_HUGE).is_empty());
    }

    #[test]
    fn private_memory_wants_the_default_page_and_no_other() {
        let k = Fake::new(Some(1048576)).pages(PageSize::Huge2M, 9, 9, 0).pages(PageSize::Huge1G, 1, 1, 0);
        assert_eq!(k.ladder().wanted_private(G, ANY), Some(PageSize::Huge1G));
        assert_eq!(k.ladder().wanted_private(2 * M, ANY), None, "a 1 GiB page for 2 MiB is a waste");
        let max = PagePolicy { no_huge: false, max: Some(PageSize::Huge2M) };
        assert_eq!(k.ladder().wanted_private(G, max), None);
        assert_eq!(k.ladder().wanted_private(G, PagePolicy::NO_HUGE), None);
    }

    #[test]
    fn a_kernel_that_names_no_hugepage_size_wants_none() {
        let k = Fake::new(None).pages(PageSize::Huge2M, 9, 9, 0);
        assert_eq!(k.ladder().wanted_private(16 * M, ANY), None);
        // A default size that this library does not use is left alone too.
        let k = Fake::new(Some(32768)).pages(PageSize::Huge2M, 9, 9, 0);
        assert_eq!(k.ladder().wanted_private(64 * M, ANY), None);
    }

    #[test]
    fn a_kernel_without_hugepages_gives_no_command() {
        let k = Fake::new(None);
        assert!(k.ladder().wanted_shared(G, ANY).is_empty());
        assert_eq!(k.ladder().command(G, PageSize::Huge2M), None);
        assert!(!k.ladder().enough(1, PageSize::Huge2M));
        assert_eq!(k.ladder().ordinary_available(), Some(1024 * 1024));
    }
}
