//! Bad input at every door: l2fwd ends with 1, names what is wrong, leaves nothing behind and takes nothing away.

mod support;

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use support::e2e::*;
use support::need;
use support::netns::NetNs;
use support::run::{Output, TempDir, run};

#[track_caller]
fn refused(out: &Output, line: &str, says: &[&str]) {
    assert_eq!(out.code(), 1, "{line}\n{}{}", out.stdout, out.stderr);
    for word in says {
        assert!(out.stderr.contains(word), "{line}: no '{word}' in: {}", out.stderr);
    }
    assert!(!out.stderr.contains("panicked"), "{line}: {}", out.stderr);
}

#[test]
fn a_refused_run_names_the_culprit_and_makes_no_file() {
    let dir = TempDir::new("bl-refused");
    std::fs::copy(demo(), dir.join("in")).unwrap();
    std::fs::create_dir(dir.join("folder")).unwrap();
    let before = entries(dir.path());
    let cables = "--vdev=net_ring0,link=x --vdev=net_ring1,link=x";
    for (line, says) in [
        ("-l 99999 --vdev=net_null0", "99999"),
        ("-l 127 --vdev=net_null0", "127"),
        ("-l 0-x --vdev=net_null0", "0-x"),
        ("-c 0x0 --vdev=net_null0", "-c"),
        ("--lcores 0@4095 --vdev=net_null0", "4095"),
        ("-m x --vdev=net_null0", "-m"),
        ("--vdev", "--vdev"),
        ("--vdev=", "--vdev"),
        ("--vdev=net_nothing0", "net_nothing"),
        ("--vdev=net_pcap0,rxpcap=in", "rxpcap"),
        ("--vdev=net_pcap0,rx_pcap=", "rx_pcap"),
        ("--vdev=net_pcap0,rx_pcap=nowhere", "'nowhere'"),
        ("--vdev=net_pcap0,rx_pcap=folder", "'folder' is a directory"),
        ("--vdev=net_pcap0,tx_pcap=folder", "'folder'"),
        ("--vdev=net_pcap0,tx_pcap=nowhere/out", "'nowhere/out'"),
        ("--vdev=net_pcap0,tx_pcap=/proc/out", "/proc/out"),
        ("--vdev=net_pcap0,rx_pcap=in,tx_pcap=in", "'in'"),
        ("--vdev=net_pcap0,rx_pcap=in,loops=x", "loops"),
        ("--vdev=net_pcap0,rx_pcap=in,timing=fast", "timing"),
        ("--vdev=net_pcap0,tx_pcap=out,snaplen=0", "snaplen"),
        ("--vdev=net_pcap0,iface=no-such-iface0", "no-such-iface0"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_pcap0,tx_pcap=out2", "net_pcap0"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_pcap1,tx_pcap=out", "'out' is written by another port"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_pcap1,rx_pcap=nowhere", "'nowhere'"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_null0 -- -p 0x9", "port 3"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_null0 -- --pool-size 3", "--pool-size 3"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_null0 -- --txd 1048577", "1048577"),
        ("--vdev=net_pcap0,tx_pcap=out -- --stats-json folder", "--stats-json 'folder'"),
        ("--vdev=net_pcap0,tx_pcap=out -- --stats-json nowhere/s", "--stats-json 'nowhere/s'"),
        ("--vdev=net_pcap0,tx_pcap=out -- --stats-json s --exit-on-eof", "--exit-on-eof"),
        ("--vdev=net_ring0,size=0", "size='0'"),
        ("--vdev=net_ring0,size=1048577", "1048577"),
        ("--vdev=net_ring0,link=x --vdev=net_ring1,link=x --vdev=net_ring2,link=x", "net_ring2"),
        ("--vdev=net_null0,size=70000", "70000"),
        ("--vdev=net_null0,mac=01:00:5e:00:00:01", "01:00:5e:00:00:01"),
        ("--vdev=net_null0,mac=banana", "banana"),
        ("--vdev=net_null0 -- --portmap (0,1", "--portmap"),
        ("--vdev=net_null0 -- --portmap (0,64)", "64"),
        ("--vdev=net_null0 -- -q 65", "65"),
        ("--vdev=net_null0 -- -T -1", "-1"),
        ("--vdev=net_null0 -- --duration never", "never"),
        ("--vdev=net_null0 -- --packets 18446744073709551616", "18446744073709551616"),
        ("--vdev=net_null0 -- --burst 0", "--burst"),
        (&format!("-l 0 {cables} -- -q 1"), "-q 1"),
    ] {
        let out = l2fwd(&format!("--no-pci {line}"), &dir);
        refused(&out, line, &[says]);
        assert_eq!(entries(dir.path()), before, "{line}");
    }
}

#[test]
fn a_refused_run_takes_nothing_from_files_that_were_there() {
    let dir = TempDir::new("bl-refused");
    std::fs::copy(demo(), dir.join("in")).unwrap();
    for name in ["out", "stats"] {
        std::fs::write(dir.join(name), "the work of a day").unwrap();
    }
    for (line, says) in [
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_pcap1,rx_pcap=nowhere", "nowhere"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_null0 -- -p 0x9 --stats-json stats", "port 3"),
        ("--vdev=net_pcap0,tx_pcap=out --vdev=net_null0 -- --pool-size 3 --stats-json stats", "--pool-size"),
        ("--vdev=net_pcap0,rx_pcap=in --vdev=net_pcap1,tx_pcap=in", "'in' is read by another port"),
        ("--vdev=net_pcap0,tx_pcap=in --vdev=net_pcap1,rx_pcap=in", "'in' is written by another port"),
        ("--vdev=net_pcap0,rx_pcap=in --vdev=net_pcap1,tx_pcap=./../in/../in", "in"),
    ] {
        refused(&l2fwd(&format!("--no-pci {line}"), &dir), line, &[says]);
        assert_eq!(entries(dir.path()), ["in", "out", "stats"], "{line}");
        assert!(std::fs::read(dir.join("in")).unwrap() == std::fs::read(demo()).unwrap(), "{line}");
        for name in ["out", "stats"] {
            assert_eq!(std::fs::read_to_string(dir.join(name)).unwrap(), "the work of a day", "{line}");
        }
    }
    // What runs does replace them.
    l2fwd("--no-pci --vdev=net_pcap0,rx_pcap=in,tx_pcap=out -- -p 1 -T 0 --exit-on-eof --stats-json stats", &dir)
        .expect_ok();
    assert_eq!(Books::read(&dir.join("stats")).balance().n(0, "opackets"), 299);
    assert_eq!(std::fs::metadata(dir.join("out")).unwrap().len(), std::fs::metadata(demo()).unwrap().len());
}

#[test]
fn taps_that_cannot_be_are_refused_by_name_and_leave_no_interface() {
    need!("root", "netns", "ip", "/dev/net/tun");
    let (ns, dir) = (NetNs::new("bl-refused"), TempDir::new("bl-refused"));
    ns.ip(&["link", "add", "taken0", "type", "veth", "peer", "name", "taken1"]);
    let links = || ns.ip(&["-o", "link"]).stdout.lines().count();
    let before = links();
    for (line, says) in [
        ("--vdev=net_tap0,iface=good0,mtu=67", "mtu='67'"),
        ("--vdev=net_tap0,iface=good0,mtu=65522", "mtu='65522'"),
        ("--vdev=net_tap0,iface=good0,mtu=banana", "banana"),
        ("--vdev=net_tap0,iface=a-name-of-twenty-one", "a-name-of-twenty-one"),
        ("--vdev=net_tap0,iface=a/b", "a/b"),
        ("--vdev=net_tap0,iface=taken0", "'taken0'"),
        ("--vdev=net_tap0,iface=good0 --vdev=net_tap1,iface=good0", "'good0'"),
        ("--vdev=net_tap0,iface=good0 --vdev=net_tap0,iface=good1", "net_tap0"),
        ("--vdev=net_tap0,iface=good0 --vdev=net_tap1,iface=good1,mtu=1", "mtu='1'"),
        ("--vdev=net_tap0,iface=good0,mac=01:00:00:00:00:00", "01:00:00:00:00:00"),
        ("--vdev=net_tap0,fds=99", "99"),
        ("--vdev=net_tap0,iface=good0 --vdev=net_tap1,iface=good1 -- -p 0x7", "port 2"),
        ("--vdev=net_tap0,iface=good0 -- --pool-size 1", "--pool-size 1"),
        ("--vdev=net_tap0,iface=good0,mtu=65521 -- --pool-size 33", "pool"),
    ] {
        let mut cmd = ns.command(&[env!("CARGO_BIN_EXE_l2fwd"), "--no-pci"]);
        cmd.args(line.split_whitespace()).current_dir(dir.path());
        refused(&run(&mut cmd, LIMIT), line, &[says]);
        assert_eq!(links(), before, "{line}");
    }
}

#[test]
fn nobody_is_told_which_privilege_is_missing() {
    need!("root", "/dev/net/tun");
    let dir = TempDir::new("bl-refused");
    // The program may stand where nobody may go.
    let program = dir.join("l2fwd");
    std::fs::copy(env!("CARGO_BIN_EXE_l2fwd"), &program).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, bits| std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    mode(dir.path(), 0o755);
    mode(&program, 0o755);
    std::fs::write(dir.join("secret"), std::fs::read(demo()).unwrap()).unwrap();
    mode(&dir.join("secret"), 0o600);
    for (line, says) in [
        ("--vdev=net_tap0,iface=nobody0", &["CAP_NET_ADMIN", "'nobody0'"][..]),
        ("--vdev=net_pcap0,iface=lo", &["CAP_NET_RAW"]),
        ("--vdev=net_pcap0,rx_pcap=secret", &["'secret'", "ermission"]),
        ("--vdev=net_pcap0,tx_pcap=secret", &["'secret'", "ermission"]),
        ("--vdev=net_pcap0,tx_pcap=new", &["'new'", "ermission"]),
        ("--vdev=net_null0 -- --stats-json new", &["--stats-json 'new'", "ermission"]),
    ] {
        let mut cmd = Command::new(&program);
        cmd.args(format!("--no-pci {line}").split_whitespace()).current_dir(dir.path()).uid(65_534).gid(65_534);
        // Started by root, it would keep root's further groups.
        refused(&run(&mut cmd, LIMIT), line, says);
        assert_eq!(entries(dir.path()), ["l2fwd", "secret"], "{line}");
    }
    // And needs none for files of its own.
    let mut cmd = Command::new(&program);
    let line = "--no-pci --vdev=net_null0 --vdev=net_null1 -- -T 0 --packets 1000 --stats-json -";
    let out = run(cmd.args(line.split_whitespace()).uid(65_534).gid(65_534), LIMIT).expect_ok();
    Books::parse(&out.stdout).pool_is_whole();
    let _: Value = serde_json::from_str(&out.stdout).unwrap();
}
