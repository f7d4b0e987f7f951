//! Which memory node a CPU belongs to. Unknown is normal: kernels without NUMA, containers that hide /sys.
//!
//! Source: Documentation/ABI/stable/sysfs-devices-node, Documentation/ABI/testing/sysfs-devices-system-cpu.

use std::fs;
use std::path::Path;

/// The node of a CPU; None where the kernel does not say.
pub fn node_of_cpu(cpu: usize) -> Option<i32> {
    node_of_cpu_at(Path::new("/"), cpu)
}

/// The nodes that are online, ascending; empty where the kernel does not say.
pub fn nodes() -> Vec<i32> {
    nodes_at(Path::new("/"))
}

fn node_of_cpu_at(root: &Path, cpu: usize) -> Option<i32> {
    // The CPU's directory holds a link named node<N>.
    let dir = fs::read_dir(root.join(format!("sys/devices/system/cpu/cpu{cpu}"))).ok()?;
    dir.flatten().find_map(|e| e.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

fn nodes_at(root: &Path) -> Vec<i32> {
    let text = fs::read_to_string(root.join("sys/devices/system/node/online")).unwrap_or_default();
    parse_list(text.trim()).unwrap_or_default()
}

/// `0-1,4` as 0, 1, 4. None where it is no such list; above 1024 nodes (MAX_NUMNODES) it is none either.
fn parse_list(text: &str) -> Option<Vec<i32>> {
    let mut out = Vec::new();
    for part in text.split(',') {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        let (a, b): (i32, i32) = (a.parse().ok()?, b.parse().ok()?);
        if a < 0 || b < a || b >= 1024 {
            return None;
        }
        out.extend(a..=b);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_list_of_ranges_is_read() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0-1,4"), Some(vec![0, 1, 4]));
        for bad in ["", "a", "1-0", "-1", "0-99999999", "0,"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_unknown_node_is_none() {
        assert_eq!(node_of_cpu(usize::MAX), None);
        assert_eq!(node_of_cpu_at(Path::new("/nonexistent"), 0), None);
        assert!(nodes_at(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn the_node_of_a_cpu_is_among_the_nodes() {
        if let Some(node) = node_of_cpu(0) {
            assert!(nodes().is_empty() || nodes().contains(&node));
        }
    }
}
