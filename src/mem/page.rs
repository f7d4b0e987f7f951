//! Page sizes, and which of them a program allows.

use std::sync::OnceLock;

/// Size of the pages behind a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum PageSize {
    /// The machine's ordinary page: 4 KiB on x86_64.
    Normal,
    Huge2M,
    Huge1G,
}

impl PageSize {
    /// Bytes of one page.
    pub fn bytes(self) -> usize {
        match self {
            PageSize::Normal => normal_page(),
            PageSize::Huge2M => 2 << 20,
            PageSize::Huge1G => 1 << 30,
        }
    }

    /// As people write it: `4 KiB`, `2 MiB`, `1 GiB`.
    pub fn as_str(self) -> &'static str {
        match self {
            PageSize::Normal => match normal_page() {
                4096 => "4 KiB",
                16384 => "16 KiB",
                65536 => "64 KiB",
                _ => "ordinary",
            },
            PageSize::Huge2M => "2 MiB",
            PageSize::Huge1G => "1 GiB",
        }
    }

    /// The size that `bytes` names; None for one that this library does not use (such as 32 MiB on some aarch64 kernels).
    pub fn from_bytes(bytes: usize) -> Option<PageSize> {
        [PageSize::Normal, PageSize::Huge2M, PageSize::Huge1G].into_iter().find(|p| p.bytes() == bytes)
    }

    pub fn is_huge(self) -> bool {
        self != PageSize::Normal
    }
}

impl std::fmt::Display for PageSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

fn normal_page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
        let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(n).ok().filter(|n| n.is_power_of_two()).unwrap_or(4096)
    })
}

/// Which pages a program allows. The default allows all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagePolicy {
    /// Ordinary pages only; hugetlb is not touched, not even to look.
    pub no_huge: bool,
    /// The largest page to use. None: any.
    pub max: Option<PageSize>,
}

impl PagePolicy {
    /// Ordinary pages only.
    pub const NO_HUGE: PagePolicy = PagePolicy { no_huge: true, max: None };

    /// True where pages of this size may be used.
    pub fn allows(self, page: PageSize) -> bool {
        match page {
            PageSize::Normal => true,
            _ => !self.no_huge && self.max.is_none_or(|max| page <= max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_allows_its_largest_page_and_all_below() {
        let p = PagePolicy { no_huge: false, max: Some(PageSize::Huge2M) };
        assert!(p.allows(PageSize::Normal) && p.allows(PageSize::Huge2M) && !p.allows(PageSize::Huge1G));
        assert!(PagePolicy::default().allows(PageSize::Huge1G));
        assert!(!PagePolicy::NO_HUGE.allows(PageSize::Huge2M));
        assert!(PagePolicy::NO_HUGE.allows(PageSize::Normal));
    }

    #[test]
    fn page_sizes_read_as_people_write_them() {
        assert_eq!(PageSize::Huge2M.to_string(), "2 MiB");
        assert_eq!(PageSize::Huge1G.as_str(), "1 GiB");
        assert_eq!(PageSize::from_bytes(2 << 20), Some(PageSize::Huge2M));
        assert_eq!(PageSize::from_bytes(32 << 20), None);
        #[cfg(target_arch = "x86_64")]
        assert_eq!((PageSize::Normal.bytes(), PageSize::Normal.as_str()), (4096, "4 KiB"));
    }
}
