//! `include/burstline.h` is what cbindgen makes of `src/capi`. `BURSTLINE_BLESS=1` writes it anew.

mod support;

use std::path::Path;
use support::house;

/// In the order of the header. Not here: `accessors`, whose names mbuf.h has; `fastpath`, which fastpath.h declares; and what
/// exports nothing.
const FILES: &[&str] = &[
    "init",
    "log",
    "driver",
    "pool",
    "mbuf",
    "ring",
    "port",
    "queue",
    "link",
    "burst",
    "poll_group",
    "stats",
    "event",
    "thread",
    "lcore",
];
const WITHOUT_HEADER: &[&str] = &["mod", "guard", "sized", "accessors", "fastpath"];

/// What follows from Cargo.toml, and the check that ties program and library together.
fn additions() -> String {
    let [v, major, minor, patch] = [
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ];
    format!(
        "/** The version of these headers; bl_version() gives the library's. */\n\
         #define BL_VERSION \"{v}\"\n#define BL_VERSION_MAJOR {major}\n#define BL_VERSION_MINOR {minor}\n\
         #define BL_VERSION_PATCH {patch}\n\n\
         /** 0 where the library has the packet layout that the program was compiled for, else -EPROTO with a text. Once, before\n \
         * the first packet. Any thread. */\n\
         #define bl_check_abi() bl_layout_check(BL_LAYOUT_VERSION)\n"
    )
}

fn generate() -> String {
    let root = house::root();
    let mut config = cbindgen::Config::from_file(Path::new(&root).join("cbindgen.toml")).expect("cbindgen.toml");
    config.after_includes = Some(additions());
    let mut builder = cbindgen::Builder::new().with_config(config);
    for f in FILES {
        builder = builder.with_src(Path::new(&root).join(format!("src/capi/{f}.rs")));
    }
    let mut out = Vec::new();
    builder.generate().expect("cbindgen reads src/capi").write(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(&house::root()).join("include/burstline.h");
    let fresh = generate();
    if std::env::var_os("BURSTLINE_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &fresh).expect("write the header");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == fresh, "include/burstline.h is old: BURSTLINE_BLESS=1 cargo test --test header_fresh");
}

#[test]
fn every_file_of_the_surface_is_in_the_header_or_said_not_to_be() {
    for f in house::files().iter().filter_map(|f| f.strip_prefix("src/capi/")?.strip_suffix(".rs")) {
        assert!(FILES.contains(&f) || WITHOUT_HEADER.contains(&f), "src/capi/{f}.rs: in neither list");
    }
}
