//! `net_null`: makes packets out of nothing and drops what is sent. The floor of what a port costs.

mod queue;

use crate::driver::*;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use queue::{NullRx, NullTx, Shape};
use std::sync::Arc;

pub static DRIVER: Driver = Driver {
    name: "net_null",
    summary: "makes packets and drops what is sent: the floor of what a port costs",
    keys: &[
        ("size", "bytes of a received packet, without FCS: 14 to 65535 (64)"),
        ("copy", "1: touch every byte, at receive and at send (0)"),
        ("no-rx", "1: receive nothing (0)"),
        ("mac", "station address (a locally administered one)"),
    ],
    needs: "nothing",
    doorbell: Doorbell::None,
    probe,
};

const MTU: u32 = 1500;
const KEYS: &[&str] = &["size", "copy", "no-rx", "mac"];
/// A frame's least length without FCS and, by IEEE 802.3, what senders pad to; DPDK's null device has 64 too.
const DEFAULT_SIZE: u64 = 64;

struct Null {
    shape: Shape,
    config: DeviceConfig,
    mac: [u8; 6],
    link: Arc<AtomicBool>,
}

fn probe(args: &DevArgs) -> Result<Box<dyn Device>> {
    args.check_keys(KEYS)?;
    let size = args.number("size", u64::from(ETHER_HDR_LEN)..=65535)?.unwrap_or(DEFAULT_SIZE);
    let shape = Shape {
        size: size as u16,
        copy: args.flag("copy")?.unwrap_or(false),
        no_rx: args.flag("no-rx")?.unwrap_or(false),
    };
    let number = args.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    let mac = args.mac("mac")?.unwrap_or(local_mac(number));
    Ok(Box::new(Null { shape, config: DeviceConfig::default(), mac, link: Arc::new(AtomicBool::new(true)) }))
}

impl Device for Null {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            max_rx_queues: 32,
            max_tx_queues: 32,
            tx_max_len: u32::MAX,
            tx_max_segs: u16::MAX,
            caps: Caps::SET_MAC | Caps::SET_LINK | Caps::RX_SCATTER | Caps::TX_MULTI_SEG,
            ..DeviceInfo::default()
        }
    }

    fn configure(&mut self, c: &DeviceConfig) -> Result<()> {
        if let Some(mtu) = c.mtu.filter(|&m| m != MTU) {
            return fail!(NOTSUP, "MTU {mtu}: this driver has {MTU} and none to set");
        }
        self.config = *c;
        Ok(())
    }

    fn rx_queue(&mut self, _queue: u16, _n_desc: u32, ctx: RxCtx) -> Result<Box<dyn RxQueue>> {
        let room = ctx.pool().data_room();
        if self.shape.size > room && !self.config.scatter {
            return invalid!(
                "size {} does not fit into the {room} bytes of a room of pool '{}': make rooms larger, or ask for scatter",
                self.shape.size,
                ctx.pool().name()
            );
        }
        Ok(Box::new(NullRx::new(ctx, self.shape)))
    }

    fn tx_queue(&mut self, _queue: u16, _n_desc: u32, ctx: TxCtx) -> Result<Box<dyn TxQueue>> {
        Ok(Box::new(NullTx::new(ctx, self.shape.copy, self.link.clone())))
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }

    fn link(&mut self) -> Link {
        Link { up: self.link.load(Relaxed), speed: 10_000, full_duplex: true }
    }

    fn set_link(&mut self, up: bool) -> Result<()> {
        self.link.store(up, Relaxed);
        Ok(())
    }

    fn mac(&mut self) -> [u8; 6] {
        self.mac
    }

    fn set_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        self.mac = mac;
        Ok(())
    }

    fn mtu(&mut self) -> u32 {
        MTU
    }
}
