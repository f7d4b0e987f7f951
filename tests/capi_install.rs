//! `make install` into a directory of its own; then the C examples are built out of tree on what was installed, and run.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::run::{self, Output, TempDir};
use support::{house, need};

const MINUTE: Duration = Duration::from_secs(60);

fn readelf(args: &[&str]) -> String {
    run::run_args("readelf", args, MINUTE).expect_ok().stdout
}

fn install(prefix: &Path) {
    let mut cmd = Command::new("make");
    cmd.current_dir(house::root()).env("INSTALL_LIB", "1").arg("install");
    cmd.arg(format!("PREFIX={}", prefix.display())).arg("DESTDIR=");
    run::run(&mut cmd, 15 * MINUTE).expect_ok();
}

/// Copies the examples out of the tree, and builds them with pkg-config.
fn build_examples(prefix: &Path, to: &Path, vars: &[&str]) {
    std::fs::create_dir(to).unwrap();
    for f in house::files().iter().filter(|f| f.starts_with("examples-c/")) {
        std::fs::copy(house::root().join(f), to.join(f.strip_prefix("examples-c/").unwrap())).unwrap();
    }
    let mut cmd = Command::new("make");
    cmd.arg("-C").arg(to).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    cmd.arg("CFLAGS=-O2 -Wpedantic -Werror").args(vars);
    run::run(&mut cmd, 5 * MINUTE).expect_ok();
}

/// Runs a program built on the shared library that was installed.
fn run_example(prefix: &Path, program: &Path, args: &[&str]) -> Output {
    let mut cmd = Command::new(program);
    cmd.args(args).env("LD_LIBRARY_PATH", prefix.join("lib"));
    run::run(&mut cmd, MINUTE)
}

fn packets_through(prefix: &Path, program: &Path, dir: &Path) -> serde_json::Value {
    let input = house::root().join("captures/demo.pcap");
    let json = dir.join("stats.json");
    let (rx, out) = (format!("net_pcap0,rx_pcap={}", input.display()), dir.join("out.pcap"));
    let tx = format!("net_pcap1,tx_pcap={}", out.display());
    let args =
        ["--no-huge", "--vdev", &rx, "--vdev", &tx, "--", "-p", "3", "-T", "1", "--exit-on-eof", "--no-mac-updating"];
    let args: Vec<&str> = args.into_iter().chain(["--stats-json", json.to_str().unwrap()]).collect();
    run_example(prefix, program, &args).expect_ok();
    serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap()
}

#[test]
fn what_is_installed_builds_and_runs_the_c_examples() {
    need!("make", "gcc", "pkg-config", "readelf");
    let dir = TempDir::new("bl-install");
    let prefix = dir.join("usr");
    install(&prefix);

    let so = prefix.join("lib/libburstline.so");
    let so = so.to_str().unwrap();
    assert!(readelf(&["-d", so]).contains("[libburstline.so.1]"));
    let symbols = readelf(&["--dyn-syms", "-W", so]);
    let mut exported: Vec<&str> =
        symbols.lines().filter_map(|l| l.split_whitespace().last()?.strip_suffix("@@BURSTLINE_1")).collect();
    exported.sort();
    let listed = house::text("capi-tests/symbols.txt").unwrap();
    assert_eq!(exported, listed.lines().collect::<Vec<_>>());

    for (name, vars) in [("shared", &[][..]), ("static", &["STATIC=1"][..])] {
        let built = dir.join(name);
        build_examples(&prefix, &built, vars);
        let needed = readelf(&["-d", built.join("l2fwd").to_str().unwrap()]);
        assert_eq!(needed.contains("libburstline.so.1"), name == "shared", "{needed}");

        let args =
            ["--no-huge", "--vdev", "net_null0", "--vdev", "net_null1,no-rx=1", "--", "--packets", "1000", "-T", "0"];
        let args: Vec<&str> = args.into_iter().chain(["--stats-json", "-"]).collect();
        let out = run_example(&prefix, &built.join("l2fwd"), &args).expect_ok();
        let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        assert_eq!(json["ports"][0]["ipackets"], 1000);
        assert_eq!(json["ports"][1]["opackets"], 1000);
        assert_eq!(json["pools"][0]["size"], json["pools"][0]["available"]);

        // A capture comes out as it went in, and the C program counts as the Rust one does.
        let c = packets_through(&prefix, &built.join("l2fwd"), dir.path());
        assert_eq!(c["ports"][0]["ipackets"], c["ports"][1]["opackets"]);
        assert!(c["ports"][0]["ipackets"].as_u64().unwrap() > 100, "{c}");
        let rust = packets_through(&prefix, &run::bin("l2fwd"), dir.path());
        for (port, field) in [(0, "ipackets"), (0, "ibytes"), (1, "opackets"), (1, "obytes"), (0, "imissed")] {
            assert_eq!(c["ports"][port][field], rust["ports"][port][field], "{field} of port {port}");
        }

        skeleton_runs_until_it_is_told(&prefix, &built.join("skeleton"));
    }
}

fn skeleton_runs_until_it_is_told(prefix: &Path, program: &Path) {
    let mut cmd = Command::new(program);
    cmd.args(["--no-huge", "--vdev", "net_null0", "--vdev", "net_null1"]).env("LD_LIBRARY_PATH", prefix.join("lib"));
    let mut child = run::ChildGuard::spawn(cmd.stdout(std::process::Stdio::null()));
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.running());
    child.signal(libc::SIGTERM);
    assert!(child.wait(Duration::from_secs(10)).expect("it ends").success());
}
