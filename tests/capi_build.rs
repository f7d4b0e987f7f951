//! The C tests: each compiled as C11 and as C++17 by each compiler there is, linked with the shared and the static library, run.

mod support;

use std::path::{Path, PathBuf};
use support::clib::{self, LANGS, Lang};
use support::run::TempDir;
use support::{house, need};

/// Every C test.
fn sources() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(house::root().join("capi-tests"))
        .expect("capi-tests")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "c"))
        .collect();
    all.sort();
    assert!(all.len() >= 9, "{all:?}");
    all
}

fn stem(p: &Path) -> String {
    p.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Compiles every test in every way; links one compiler's objects with the library and runs them.
fn build_and_run(compiler: &str, lang: Lang, shared: bool) {
    let dir = TempDir::new("bl-capi");
    for source in sources() {
        let name = stem(&source);
        let (object, program) = (dir.join(format!("{name}.o")), dir.join(&name));
        clib::object(compiler, lang, &source, &object);
        let linker = if lang == Lang::Cpp17 { "g++" } else { "gcc" };
        clib::link(linker, &object, shared, &[], &program);
        let out = clib::run_program(&program);
        assert!(out.ok(), "{name}, {compiler} {lang:?}, shared {shared}: {}\n{}", out.code(), out.stderr);
        // What the library has to say, it says through its log.
        assert_eq!(out.stderr, "", "{name}");
    }
}

#[test]
fn c_tests_pass_as_c11_with_the_shared_library() {
    need!("gcc");
    build_and_run("gcc", Lang::C11, true);
}

#[test]
fn c_tests_pass_as_c11_with_the_static_library() {
    need!("gcc");
    build_and_run("gcc", Lang::C11, false);
}

#[test]
fn c_tests_pass_as_cpp17_with_the_shared_library() {
    need!("g++");
    build_and_run("gcc", Lang::Cpp17, true);
}

#[test]
fn c_tests_pass_by_clang_as_c11_and_cpp17() {
    need!("clang", "clang++", "g++");
    build_and_run("clang", Lang::C11, true);
    build_and_run("clang", Lang::Cpp17, true);
}

#[test]
fn each_header_stands_alone_and_twice_in_each_language() {
    need!("gcc", "g++");
    let dir = TempDir::new("bl-headers");
    for header in ["burstline.h", "burstline/mbuf.h", "burstline/fastpath.h", "burstline/burstline.hpp"] {
        let source = dir.join("h.c");
        std::fs::write(
            &source,
            format!("#include \"{header}\"\n#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )
        .expect("write");
        for lang in LANGS.into_iter().filter(|l| !header.ends_with("hpp") || *l == Lang::Cpp17) {
            for compiler in clib::compilers() {
                clib::object(compiler, lang, &source, &dir.join("h.o"));
            }
        }
    }
}

#[test]
fn raii_of_the_cpp_header_gives_everything_back() {
    need!("g++");
    let dir = TempDir::new("bl-raii");
    for compiler in clib::compilers() {
        clib::object(compiler, Lang::Cpp17, "capi-tests/raii.cpp", &dir.join("raii.o"));
        clib::link("g++", &dir.join("raii.o"), true, &[], &dir.join("raii"));
        clib::run_program(&dir.join("raii")).expect_ok();
    }
}

#[test]
fn shared_static_stripped_and_lto_links_list_the_drivers_that_rust_lists() {
    need!("gcc");
    let dir = TempDir::new("bl-drivers");
    let rust: Vec<&str> = burstline::eal::drivers().iter().map(|d| d.name).collect();
    let ways: [(bool, &[&str]); 4] = [
        (true, &[]),
        (false, &[]),
        (false, &["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--as-needed"]),
        (false, &["-flto", "-O2", "-Wl,--gc-sections"]),
    ];
    for (shared, flags) in ways {
        let mut cmd = clib::cc("gcc", Lang::C11);
        let object = dir.join("drivers.o");
        let compile: Vec<&&str> = flags.iter().filter(|f| f.starts_with("-f")).collect();
        cmd.args(compile).args(["-c", "capi-tests/drivers.c", "-o"]).arg(&object);
        support::run::run(&mut cmd, std::time::Duration::from_secs(60)).expect_ok();
        clib::link("gcc", &object, shared, flags, &dir.join("drivers"));
        let out = clib::run_program(&dir.join("drivers")).expect_ok();
        assert_eq!(out.stdout.lines().collect::<Vec<_>>(), rust, "shared {shared}, {flags:?}");
    }
}
