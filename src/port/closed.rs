//! What stands in a closed port's place of a device.

use crate::driver::{Device, DeviceConfig, DeviceInfo, Link, Result, RxCtx, RxQueue, TxCtx, TxQueue, fail};

pub(super) struct ClosedDevice;

impl Device for ClosedDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { max_rx_queues: 0, max_tx_queues: 0, ..DeviceInfo::default() }
    }
    fn configure(&mut self, _: &DeviceConfig) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn rx_queue(&mut self, _: u16, _: u32, _: RxCtx) -> Result<Box<dyn RxQueue>> {
        fail!(NODEV, "the port is closed")
    }
    fn tx_queue(&mut self, _: u16, _: u32, _: TxCtx) -> Result<Box<dyn TxQueue>> {
        fail!(NODEV, "the port is closed")
    }
    fn start(&mut self) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
    fn link(&mut self) -> Link {
        Link::default()
    }
    fn set_link(&mut self, _: bool) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn set_mac(&mut self, _: [u8; 6]) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn set_mtu(&mut self, _: u32) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn set_promiscuous(&mut self, _: bool) -> Result<()> {
        fail!(NODEV, "the port is closed")
    }
    fn mac(&mut self) -> [u8; 6] {
        [0; 6]
    }
    fn mtu(&mut self) -> u32 {
        0
    }
}
