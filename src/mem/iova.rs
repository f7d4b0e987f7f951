//! What address a device uses for a byte of a segment.

/// How a device names memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IovaMode {
    /// The device's address is the virtual address: behind an IOMMU, or a peer that is told our addresses.
    Va,
    /// No device reaches this memory: kernel-socket drivers, which copy or take offsets.
    #[default]
    None,
}

impl IovaMode {
    /// The device's address of `va`; None where no device reaches it.
    #[inline]
    pub fn iova(self, va: usize) -> Option<u64> {
        match self {
            IovaMode::Va => Some(va as u64),
            IovaMode::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_address_is_the_virtual_one_or_none() {
        assert_eq!(IovaMode::Va.iova(0x1000), Some(0x1000));
        assert_eq!(IovaMode::None.iova(0x1000), None);
    }
}
