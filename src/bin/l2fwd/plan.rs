//! From options and ports to lanes: who forwards where, on which lcore, from which pool.

use crate::forward::Route;
use crate::options::Options;
use burstline::base::{Errno, Result};
use burstline::driver::{Caps, Doorbell, VLAN_TAG_LEN};
use burstline::eal::Eal;
use burstline::pool::{HEADROOM, Pool, PoolConfig};
use burstline::port::{Port, PortConfig};
use burstline::wire::eth::Mac;
use burstline::{fail, invalid, log_warn};

const CACHE: u32 = 256;
/// DPDK's l2fwd has no smaller pool.
const LEAST_POOL: u32 = 8192;
const FCS_LEN: u32 = 4;

/// Each port that receives, and the one it forwards to; by number of the first.
pub fn pairs(ports: &[Port], options: &Options) -> Result<Vec<(Port, Port)>> {
    let known: Vec<u16> = ports.iter().map(Port::id).collect();
    let by_id = |id: u16| match ports.iter().find(|p| p.id() == id) {
        Some(p) => Ok(p.clone()),
        None => invalid!("there is no port {id}: the ports are {known:?}"),
    };
    let in_mask = |id: u16| options.portmask.is_none_or(|m| m & (1 << id) != 0);
    if let Some(mask) = options.portmask {
        for id in (0..64).filter(|id| mask & (1 << id) != 0) {
            by_id(id).map_err(|e| e.context(format!("-p {mask:#x}")))?;
        }
    }
    let mut out = Vec::new();
    if let Some(map) = &options.portmap {
        for &(a, b) in &map.0 {
            let (pa, pb) = (by_id(a), by_id(b));
            let (pa, pb) = (pa.map_err(|e| e.context("--portmap"))?, pb.map_err(|e| e.context("--portmap"))?);
            if let Some(id) = [a, b].into_iter().find(|id| !in_mask(*id)) {
                return invalid!("--portmap: port {id} is not in the mask of -p");
            }
            out.push((pa.clone(), pb.clone()));
            if a != b {
                out.push((pb, pa));
            }
        }
    } else {
        let used: Vec<&Port> = ports.iter().filter(|p| in_mask(p.id())).collect();
        for pair in used.chunks(2) {
            match pair {
                [a, b] => out.extend([((*a).clone(), (*b).clone()), ((*b).clone(), (*a).clone())]),
                [a] => out.push(((*a).clone(), (*a).clone())),
                _ => {}
            }
        }
    }
    out.sort_by_key(|(from, _)| from.id());
    Ok(out)
}

/// Ports that one lcore serves.
pub fn per_lcore(n_ports: usize, n_lcores: usize, options: &Options) -> Result<usize> {
    let Some(nq) = options.per_lcore else { return Ok(n_ports.div_ceil(n_lcores.max(1))) };
    let needed = n_ports.div_ceil(usize::from(nq).max(1));
    if needed > n_lcores {
        return invalid!(
            "-q {nq}: {n_ports} ports need {needed} lcores, there are {n_lcores} (give more with -l, or -q {})",
            n_ports.div_ceil(n_lcores.max(1))
        );
    }
    Ok(usize::from(nq))
}

fn descriptors(port: &Port, options: &Options) -> (u32, u32) {
    let usual = port.info().device.desc.2;
    (options.rxd.unwrap_or(usual), options.txd.unwrap_or(usual))
}

/// One pool for all: every descriptor may hold a packet, every lane a burst, every lcore a cache.
pub fn pool(eal: &Eal, routes: &[(Port, Port)], options: &Options) -> Result<Pool> {
    let n_lcores = eal.lcores().len() as u64;
    let queues: u64 =
        routes.iter().map(|(p, _)| descriptors(p, options)).map(|(r, t)| u64::from(r) + u64::from(t)).sum();
    let bursts = routes.len() as u64 * u64::from(options.burst);
    // A cache may hold half as much again before it gives back.
    let wanted = (queues + bursts + n_lcores * u64::from(CACHE) * 3 / 2).max(LEAST_POOL.into());
    let n = u64::from(options.pool_size.unwrap_or(wanted.min(1 << 26) as u32));
    if n < bursts {
        return invalid!(
            "--pool-size {n}: {} ports with bursts of {} need {bursts} packets at least",
            routes.len(),
            options.burst
        );
    }
    // With a small pool, caches must not keep from one lcore what another needs.
    let cache = if n >= wanted { CACHE } else { ((n - bursts) / (2 * n_lcores)).min(CACHE.into()) as u32 };
    let config = PoolConfig { name: "l2fwd".into(), n: n as u32, cache, pages: eal.pages(), ..PoolConfig::default() };
    let bytes = n * u64::from(config.room + 128);
    if let Some(limit) = eal.memory_limit()
        && bytes > limit
    {
        return fail!(
            NOMEM,
            "-m {}: a pool of {n} packets needs {} MiB; allow that much, or fewer packets with --pool-size",
            limit >> 20,
            (bytes >> 20) + 1
        );
    }
    Pool::new(config)
}

/// Sets the ports up and starts them; gives a route for each receive queue.
pub fn start(pairs: &[(Port, Port)], pool: &Pool, options: &Options) -> Result<Vec<Route>> {
    let data_room = u32::from(pool.info().room) - u32::from(HEADROOM);
    for (port, _) in pairs {
        let info = port.info();
        let jumbo = info.mtu + burstline::driver::ETHER_HDR_LEN + VLAN_TAG_LEN + FCS_LEN > data_room + FCS_LEN;
        let scatter = jumbo && info.device.caps.contains(Caps::RX_SCATTER);
        let (rxd, txd) = descriptors(port, options);
        port.configure(&PortConfig { n_rx: 1, n_tx: 1, mtu: None, scatter })?;
        port.rx_queue_setup(0, rxd, pool).map_err(|e| match (e.errno(), options.rxd, options.pool_size) {
            (Errno::NOSPC, _, Some(n)) => e.context(format!("--pool-size {n}")),
            (Errno::INVAL, Some(n), _) => e.context(format!("--rxd {n}")),
            _ => e,
        })?;
        port.tx_queue_setup(0, txd).map_err(|e| match options.txd {
            Some(n) => e.context(format!("--txd {n}")),
            None => e,
        })?;
    }
    for (port, _) in pairs {
        port.start()?;
        if port.info().device.caps.contains(Caps::PROMISC)
            && let Err(e) = port.set_promiscuous(true)
        {
            log_warn!("{e}");
        }
    }
    let mut routes = Vec::with_capacity(pairs.len());
    for (lane, (from, to)) in pairs.iter().enumerate() {
        let (_, txd) = descriptors(to, options);
        let fill = (u32::from(options.burst) * 2).max(64).min(txd);
        routes.push(Route {
            lane,
            rx: from.rx_queue(0)?,
            tx: to.tx_queue(0)?,
            fill: (to.driver().doorbell != Doorbell::None).then_some(fill),
            macs: (!options.no_mac_updating).then(|| (Mac([2, 0, 0, 0, 0, to.id() as u8]), Mac(to.mac()))),
        });
    }
    Ok(routes)
}
