//! The library as C programs link it: where cargo put it, and how a compiler is called.

use super::run::{self, Output};
use super::{house, tools};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// What a static link needs besides: `rustc --print native-static-libs`.
pub const STATIC_LIBS: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];
const LIMIT: Duration = Duration::from_secs(120);

/// The directory with libburstline.so and libburstline.a of this build: next to the test itself.
pub fn lib_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let exe = std::env::current_exe().expect("the test's own path");
        let dir = exe.parent().expect("a directory").to_path_buf();
        let there = |d: &Path| d.join("libburstline.so").is_file() && d.join("libburstline.a").is_file();
        if there(&dir) {
            return dir;
        }
        // Cargo made the test without the other kinds of library: ask for them, in the same profile and directory.
        let profile = dir.parent().expect("a profile").to_path_buf();
        let mut cmd = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cmd.current_dir(house::root())
            .args(["build", "--lib", "--quiet", "--target-dir"])
            .arg(profile.parent().unwrap());
        if profile.file_name().is_some_and(|n| n == "release") {
            cmd.arg("--release");
        }
        run::run(&mut cmd, Duration::from_secs(900)).expect_ok();
        [dir, profile].into_iter().find(|d| there(d)).expect("libburstline.so and .a")
    })
}

/// A language, by its compiler's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    C11,
    C17,
    Cpp17,
}

pub const LANGS: [Lang; 3] = [Lang::C11, Lang::C17, Lang::Cpp17];

/// gcc, and clang where it is.
pub fn compilers() -> Vec<&'static str> {
    ["gcc", "clang"].into_iter().filter(|c| tools::find_program(c).is_some()).collect()
}

/// A compiler for `lang`, warnings as errors, with our headers.
pub fn cc(compiler: &str, lang: Lang) -> Command {
    let (std, x) = match lang {
        Lang::C11 => ("-std=c11", "c"),
        Lang::C17 => ("-std=c17", "c"),
        Lang::Cpp17 => ("-std=c++17", "c++"),
    };
    let program = match (compiler, lang) {
        ("gcc", Lang::Cpp17) => "g++",
        ("clang", Lang::Cpp17) => "clang++",
        (c, _) => c,
    };
    // As a crate's build script would call it.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cc::Build::new();
    build.compiler(program).cpp(lang == Lang::Cpp17).host(&target).target(&target).opt_level(2).debug(true);
    build.cargo_metadata(false).warnings(true).extra_warnings(true);
    let mut cmd = build.get_compiler().to_command();
    cmd.current_dir(house::root());
    cmd.args([std, "-D_POSIX_C_SOURCE=200809L", "-Wpedantic", "-Werror"]);
    cmd.args(["-Iinclude", "-Icapi-tests", "-x", x]);
    cmd
}

/// Compiles to an object.
pub fn object(compiler: &str, lang: Lang, source: impl AsRef<Path>, out: &Path) {
    let mut cmd = cc(compiler, lang);
    run::run(cmd.arg("-c").arg(source.as_ref()).arg("-o").arg(out), LIMIT).expect_ok();
}

/// Links an object with the library, shared or static, by `linker` (gcc, g++, …) with `flags`.
pub fn link(linker: &str, object: &Path, shared: bool, flags: &[&str], out: &Path) {
    let dir = lib_dir();
    let mut cmd = Command::new(linker);
    cmd.args(flags).arg(object).arg("-o").arg(out);
    if shared {
        cmd.arg(dir.join("libburstline.so")).arg(format!("-Wl,-rpath,{}", dir.display())).arg("-lpthread");
    } else {
        cmd.arg(dir.join("libburstline.a")).args(STATIC_LIBS);
    }
    run::run(&mut cmd, LIMIT).expect_ok();
}

/// Runs a test program.
pub fn run_program(program: &Path) -> Output {
    run::run(&mut Command::new(program), Duration::from_secs(60))
}
