//! `net_pcap`: capture files and interfaces as ports. The driver, and under it the codec.
//!
//! ```text
//! args     the device keys
//! device   probe, limits, link, counters of the kernel
//! feed     a file's records, read as they go or held in memory
//! schedule when a record may be handed out
//! rx       receive from files
//! stage    packets taken and not written yet
//! sink     a file that is written to, and what a failed write did to it
//! tx       send to files
//! live     receive from and send to interfaces
//!
//! source   a file, FIFO or device as a window of bytes that only moves forward
//! classic  pcap records            (draft-ietf-opsawg-pcap)
//! ng       pcapng blocks           (draft-ietf-opsawg-pcapng)
//! stamp    any time resolution to nanoseconds since the epoch
//! reader   open, next, rewind: the two formats behind one face
//! writer   headers and trailers ready for writev, and a small buffered writer
//! pace     time stamps of a file, looped or not, as a clock that never goes back
//! ```
//!
//! A capture is somebody else's file: nothing in it is believed before it is checked, and no input makes the reader panic,
//! overflow, allocate without bound or stand still.

pub mod pace;
pub mod reader;
pub mod writer;

mod args;
mod classic;
mod device;
mod feed;
mod live;
mod ng;
mod rx;
mod schedule;
mod sink;
mod source;
mod stage;
mod stamp;
mod tx;

pub use device::DRIVER;
pub use feed::{FIFO_LIMIT, MAX_REPLAY};
pub use pace::Pace;
pub use reader::{CaptureInfo, Counts, Next, Reader, Record};
pub use writer::{Encoder, Writer};

/// Longest packet of a record that is read or written: 256 KiB, the snap length that tcpdump and Wireshark take for "all".
pub const MAX_RECORD: u32 = 256 * 1024;

/// Longest pcapng block that is held whole (a packet or an interface, with its options): 1 MiB. Blocks that are only skipped
/// may have any length.
pub const MAX_BLOCK: u32 = 1024 * 1024;

/// Most interfaces that one pcapng section may describe.
pub const MAX_INTERFACES: usize = 65536;

/// LINKTYPE_ETHERNET (<https://www.tcpdump.org/linktypes.html>).
pub const LINKTYPE_ETHERNET: u16 = 1;

/// The two file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap.
    Pcap,
    /// pcapng.
    PcapNg,
}

impl Format {
    /// What a file of that name holds: pcapng where it ends in `.pcapng` (any case), classic pcap otherwise.
    pub fn of_path(path: &std::path::Path) -> Format {
        match path.extension() {
            Some(e) if e.eq_ignore_ascii_case("pcapng") => Format::PcapNg,
            _ => Format::Pcap,
        }
    }
}

#[cfg(test)]
mod tests;
