//! Who may import whom: read from the sources, test code apart. The table below is the rule.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use support::house::{self, Token};

/// A room of the house, and the rooms that its code may name. Its own is always allowed.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("mem", &["base"]),
    ("ring", &["base", "mem"]),
    ("mbuf/layout", &["base"]),
    ("pool", &["base", "mem", "ring", "mbuf/layout"]),
    // The rest of mbuf: owner, data, clone, chain.
    ("mbuf", &["base", "mem", "pool", "mbuf/layout"]),
    ("wire", &["base"]),
    ("offload", &["base", "mbuf", "mbuf/layout", "wire"]),
    ("driver", &["base", "mem", "ring", "pool", "mbuf", "mbuf/layout"]),
    ("bus", &["base", "mem"]),
    ("sock", &["base", "mem"]),
    ("virtq", &["base", "mem"]),
    // One driver. `driver` re-exports all else that it may use.
    ("pmd/*", &["driver", "bus", "sock", "virtq", "wire", "offload"]),
    // The driver table: one line a driver.
    ("pmd", &["driver", "pmd/*"]),
    ("port", &["driver", "mbuf", "mbuf/layout", "pool", "ring", "offload", "base"]),
    ("eal", &["base", "mem", "port", "driver", "pmd"]),
    ("capi", EVERYTHING),
    ("bin", EVERYTHING),
];

/// All but the drivers and the C surface. The driver table is eal's to read.
const EVERYTHING: &[&str] = &[
    "base",
    "mem",
    "ring",
    "mbuf/layout",
    "pool",
    "mbuf",
    "wire",
    "offload",
    "driver",
    "bus",
    "sock",
    "virtq",
    "port",
    "eal",
];

const NO_UNSAFE: &[&str] = &["wire", "offload", "bin"];

/// Rust sources by their path from the root: `src/…` and `pmd/…`.
type Sources = BTreeMap<String, String>;

struct House {
    /// The crate's modules at its root.
    top: BTreeSet<String>,
    /// The folders of pmd.
    drivers: BTreeSet<String>,
    /// Macros of the crate's root, and the room where each is written.
    macros: BTreeMap<String, String>,
    /// Tokens without test code.
    files: BTreeMap<String, Vec<Token>>,
}

/// The module path of a file. A program is the pseudo module `bin`; it sees the library as `burstline`.
fn module_of(file: &str) -> Vec<String> {
    let inner = file.strip_prefix("src/").unwrap_or(file).trim_end_matches(".rs");
    let mut path: Vec<String> = inner.split('/').map(str::to_string).collect();
    if path.len() > 1 && path.last().is_some_and(|l| l == "mod") || path == ["lib"] {
        path.pop();
    }
    path
}

/// The room that a module path lies in; None for the crate's root itself.
fn room(path: &[String], drivers: &BTreeSet<String>) -> Option<String> {
    Some(match path {
        [] => return None,
        [a, b, ..] if a == "mbuf" && b == "layout" => "mbuf/layout".into(),
        [a, b, ..] if a == "pmd" && drivers.contains(b) => format!("pmd/{b}"),
        [a, ..] => a.clone(),
    })
}

impl House {
    fn new(sources: &Sources) -> House {
        let mut house = House {
            top: BTreeSet::from(["pmd".to_string()]),
            drivers: sources
                .keys()
                .map(|f| module_of(f))
                .filter(|p| p.first().is_some_and(|f| f == "pmd"))
                .filter_map(|p| p.get(1).cloned())
                .collect(),
            macros: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        let mut tests = BTreeSet::new();
        for (file, text) in sources {
            let source = house::without_tests(file, text);
            tests.extend(source.test_modules);
            house.files.insert(file.clone(), source.tokens);
        }
        let is_test =
            |file: &str| tests.iter().any(|t| file == format!("{t}.rs") || file.starts_with(&format!("{t}/")));
        house.files.retain(|file, _| !is_test(file));
        for (file, tokens) in &house.files {
            let path = module_of(file);
            if let Some(first) = path.first().filter(|p| *p != "bin" && *p != "pmd") {
                house.top.insert(first.clone());
            }
            for pair in tokens.windows(3).filter(|w| w[0].text == "macro_rules") {
                house.macros.insert(pair[2].text.clone(), room(&path, &house.drivers).unwrap_or_else(|| "base".into()));
            }
        }
        house
    }

    /// Every breach, as `file:line: …`.
    fn breaches(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (file, tokens) in &self.files {
            let at = |line: usize, what: String| format!("{file}:{line}: {what}");
            let Some(here) = room(&module_of(file), &self.drivers) else {
                continue; // lib.rs: the table of contents
            };
            let key = if here.starts_with("pmd/") { "pmd/*" } else { here.as_str() };
            let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == key) else {
                all.push(at(1, format!("no line for {here} in the table of tests/house_layering.rs")));
                continue;
            };
            for (line, path) in paths(file, tokens) {
                let shown = path.join("::");
                match self.owner(&path) {
                    Err(why) => all.push(at(line, format!("crate::{shown}: {why}"))),
                    Ok(None) => {}
                    Ok(Some(there)) => {
                        let wild = if there.starts_with("pmd/") { "pmd/*" } else { there.as_str() };
                        if there != here && !allowed.contains(&wild) {
                            all.push(at(line, format!("{here} may not import {there} (crate::{shown})")));
                        }
                    }
                }
            }
            for token in tokens {
                let word = token.text.as_str();
                if word == "unsafe" && NO_UNSAFE.contains(&here.as_str()) {
                    all.push(at(token.line, format!("unsafe in {here}")));
                }
                if matches!(word, "no_mangle" | "export_name") && here != "capi" {
                    all.push(at(token.line, format!("{word} outside of src/capi")));
                }
            }
        }
        all
    }

    /// The room that owns a path from the crate's root.
    fn owner(&self, path: &[String]) -> Result<Option<String>, &'static str> {
        match path {
            [] => Err("names the crate's root: name the module"),
            [first, ..] if self.top.contains(first) => Ok(room(path, &self.drivers)),
            // Macros live at the root and cannot be handed on by `driver`, so base's are everyone's.
            [first] => match self.macros.get(first) {
                Some(owner) => Ok(Some(owner.clone()).filter(|o| o != "base")),
                None => Err("is neither a module nor a macro of the crate: name the module"),
            },
            _ => Err("is not a module of the crate"),
        }
    }
}

/// The paths from the crate's root that a file names, with their lines.
fn paths(file: &str, tokens: &[Token]) -> Vec<(usize, Vec<String>)> {
    let program = file.starts_with("src/bin/");
    let root = if program { "burstline" } else { "crate" };
    let mut here = module_of(file);
    // For each open brace, whether it opened an inline module.
    let mut braces = Vec::new();
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let text = tokens[i].text.as_str();
        let before = |n: usize| i.checked_sub(n).map_or("", |p| tokens[p].text.as_str());
        if text == "{" {
            let inline = before(2) == "mod";
            if inline {
                here.push(before(1).to_string());
            }
            braces.push(inline);
        } else if text == "}" && braces.pop() == Some(true) {
            here.pop();
        }
        let visibility = before(1) == "(" && before(2) == "pub" || before(1) == "in" && before(3) == "pub";
        let starts = text == root || (!program && matches!(text, "super" | "self"));
        let follows = tokens.get(i + 1).map_or("", |t| t.text.as_str());
        // `self` alone is a value.
        let path_like = follows == "::" || (before(1) == "use" && text != "self");
        if starts && path_like && before(1) != "::" && !visibility {
            i = tree(tokens, i, &here, root, &mut Vec::new(), true, &mut found);
            continue;
        }
        // `extern crate self as x` would be a way around.
        if !program && text == "crate" && before(1) == "extern" && follows == "self" {
            found.push((tokens[i].line, Vec::new()));
        }
        i += 1;
    }
    found
}

/// Reads a path, or a tree of a `use`, from `i`; returns the index behind it.
fn tree(
    tokens: &[Token],
    mut i: usize,
    here: &[String],
    root: &str,
    prefix: &mut Vec<String>,
    first: bool,
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let depth = prefix.len();
    let line = tokens.get(i).map_or(0, |t| t.line);
    let mut at_start = first;
    let mut path = prefix.clone();
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text.as_str());
    loop {
        match text(i) {
            "{" => {
                i += 1;
                while i < tokens.len() && text(i) != "}" {
                    i = tree(tokens, i, here, root, &mut path, false, found);
                    // `as name`, and the comma.
                    while i < tokens.len() && !matches!(text(i), "," | "}") {
                        i += 1;
                    }
                    if text(i) == "," {
                        i += 1;
                    }
                }
                prefix.truncate(depth);
                return i + 1;
            }
            word if at_start && word == root => path.clear(),
            "super" if at_start => {
                path = here.to_vec();
                path.pop();
            }
            "self" if at_start => path = here.to_vec(),
            "super" => {
                path.pop();
            }
            "self" | "*" => {}
            "<" => break, // a turbofish
            word if word.starts_with(|c: char| c == '_' || c.is_alphanumeric()) => path.push(word.to_string()),
            _ => break,
        }
        at_start = false;
        i += 1;
        if text(i) != "::" {
            break;
        }
        i += 1;
    }
    found.push((line, path));
    prefix.truncate(depth);
    i.max(1)
}

fn sources() -> Sources {
    house::files()
        .into_iter()
        .filter(|f| f.ends_with(".rs") && (f.starts_with("src/") || f.starts_with("pmd/")))
        .map(|f| (f.clone(), house::text(&f).unwrap_or_else(|| panic!("{f} is not text"))))
        .collect()
}

#[test]
fn every_room_imports_only_what_it_may() {
    let house = House::new(&sources());
    assert!(house.top.contains("base") && house.top.contains("driver"));
    let all = house.breaches();
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

/// Breaches of a small house with one more file.
fn planted(file: &str, text: &str) -> Vec<String> {
    let mut sources: Sources = ["base", "mem", "ring", "mbuf", "pool", "wire", "driver", "port", "eal", "capi", "sock"]
        .iter()
        .map(|m| (format!("src/{m}/mod.rs"), String::new()))
        .collect();
    sources.insert("src/base/log.rs".into(), "#[macro_export] macro_rules! log_warn { () => {}; }".into());
    sources.insert("src/lib.rs".into(), "pub mod base;".into());
    sources.insert("pmd/null/mod.rs".into(), String::new());
    sources.insert("pmd/tap/mod.rs".into(), String::new());
    sources.insert(file.into(), text.into());
    House::new(&sources).breaches()
}

#[track_caller]
fn caught(file: &str, text: &str, what: &str) {
    let all = planted(file, text);
    assert!(all.len() == 1 && all[0].contains(what), "{text:?} in {file}: {all:?}, not one of {what:?}");
}

#[track_caller]
fn fine(file: &str, text: &str) {
    let all = planted(file, text);
    assert!(all.is_empty(), "{text:?} in {file}: {all:?}");
}

#[test]
fn a_planted_import_is_caught_however_it_is_written() {
    caught("src/mem/a.rs", "use crate::port::table;", "mem may not import port");
    caught("src/mem/a.rs", "fn f() {\n let x = crate::ring::new::<u8>(1); }", "a.rs:2: mem may not import ring");
    caught("src/mem/a.rs", "use super::super::ring::Spsc;", "mem may not import ring");
    caught("src/mem/mod.rs", "use super::ring::Spsc as R;", "mem may not import ring");
    caught("src/mem/a.rs", "mod x { use super::super::super::pool::P; }", "mem may not import pool");
    caught(
        "src/mem/a.rs",
        "use crate::{base::{self, Errno}, wire::{vlan as v}};",
        "mem may not import wire (crate::wire::vlan)",
    );
    caught("src/wire/a.rs", "pub use crate::mbuf::layout::Mbuf;", "wire may not import mbuf/layout");
    caught("src/pool/a.rs", "use crate::mbuf::owner::Mbuf;", "pool may not import mbuf ");
    caught("src/mem/a.rs", "use crate::*;", "names the crate's root");
    caught("src/mem/a.rs", "use crate as c;", "names the crate's root");
    caught("src/mem/a.rs", "use crate::Mbuf;", "name the module");
    caught("src/mem/a.rs", "fn f() { $crate::port::x() }", "mem may not import port");
}

#[test]
fn drivers_do_not_meet_and_nobody_reads_their_table_but_eal() {
    caught("pmd/tap/rx.rs", "use crate::pmd::null::Queue;", "pmd/tap may not import pmd/null");
    caught("pmd/tap/rx.rs", "use super::super::null::Queue;", "pmd/tap may not import pmd/null");
    caught("pmd/tap/mod.rs", "use super::null::Queue;", "pmd/tap may not import pmd/null");
    caught("pmd/tap/rx.rs", "use crate::base::Errno;", "pmd/tap may not import base");
    caught("pmd/tap/rx.rs", "use crate::port::x;", "pmd/tap may not import port");
    caught("src/port/a.rs", "use crate::pmd::TABLE;", "port may not import pmd");
    caught("src/capi/a.rs", "use crate::pmd::tap::X;", "capi may not import pmd/tap");
    caught("src/bin/l2fwd.rs", "use burstline::pmd::tap::X;", "bin may not import pmd/tap");
    caught("src/bin/l2fwd.rs", "use burstline::{capi::port, port::x};", "bin may not import capi");
    caught("src/eal/a.rs", "use crate::capi::port;", "eal may not import capi");
    caught("src/attic/mod.rs", "", "no line for attic");
    fine("src/eal/a.rs", "use crate::pmd::TABLE;");
    fine("pmd/mod.rs", "pub mod tap; use crate::driver::Driver; pub static T: &[&Driver] = &[&self::tap::DRIVER];");
    fine("pmd/tap/rx.rs", "use super::queue::Queue; use crate::{driver::*, sock::netlink}; crate::log_warn!();");
    fine("src/bin/l2fwd.rs", "use burstline::port; mod args; use crate::args::X; use self::args::Y;");
}

#[test]
fn test_code_comments_and_strings_are_not_imports() {
    fine("src/mem/a.rs", "// use crate::port;\n/* crate::port::x /* nested */ crate::port::y */ fn f() {}");
    fine(
        "src/mem/a.rs",
        r##"const A: &str = "crate::port::x \" crate::port::y"; const B: &str = r#"" crate::port::x"#;"##,
    );
    fine("src/mem/a.rs", "const C: char = '\"'; fn f<'a>(x: &'a u8) {} // \" crate::port::x");
    fine(
        "src/mem/a.rs",
        "#[cfg(test)]\n#[allow(x)]\nmod tests { use crate::port::x; fn f() { {} } }\nuse crate::base::X;",
    );
    fine("src/mem/a.rs", "#[cfg(all(test, not(loom)))] use crate::port::x;");
    fine("src/mem/a.rs", "#[cfg(all(feature = \"x\", any(test, all(loom, test))))] use crate::port::x;");
    caught("src/mem/a.rs", "#[cfg(any(test, loom))] use crate::port::x;", "mem may not import port");
    caught("src/mem/a.rs", "#[cfg(all(loom, not(test)))] use crate::port::x;", "mem may not import port");
    caught("src/mem/a.rs", "#[cfg(test)] mod t { }\nuse crate::port::x;", "a.rs:2");
    caught("src/mem/a.rs", "#[cfg(not(test))] use crate::port::x;", "mem may not import port");
    caught("src/mem/a.rs", "const Q: u8 = b'\\''; use crate::port::x;", "mem may not import port");
    fine("src/mem/a.rs", "pub(crate) fn f(&self) { self.x(); } pub(super) struct S; pub(in crate::mem) struct T;");
    // A test module in a file of its own.
    let mut sources = Sources::from([("src/mem/mod.rs".into(), "#[cfg(test)]\nmod tests;".into())]);
    sources.insert("src/mem/tests.rs".into(), "use crate::port::x;".into());
    sources.insert("src/port/mod.rs".into(), String::new());
    sources.insert("src/port/rx.rs".into(), "#[cfg(test)]\n#[path = \"rx_checks.rs\"]\nmod tests;".into());
    sources.insert("src/port/rx_checks.rs".into(), "use crate::eal::x;".into());
    assert_eq!(House::new(&sources).breaches(), Vec::<String>::new());
}

#[test]
fn unsafe_and_exported_symbols_are_caught_out_of_place() {
    caught("src/wire/a.rs", "fn f() { unsafe { g() } }", "unsafe in wire");
    caught("src/offload/a.rs", "unsafe fn f() {}", "unsafe in offload");
    caught("src/bin/l2fwd.rs", "fn main() { unsafe {} }", "unsafe in bin");
    fine("src/wire/a.rs", "#![forbid(unsafe_code)] // unsafe\nfn f() {}");
    fine("src/mem/a.rs", "unsafe fn f() {}");
    caught("src/mem/a.rs", "#[unsafe(no_mangle)] pub fn f() {}", "no_mangle outside of src/capi");
    caught("pmd/tap/mod.rs", "#[no_mangle] pub fn f() {}", "no_mangle outside of src/capi");
    fine("src/capi/port.rs", "#[unsafe(no_mangle)] pub extern \"C\" fn bl_x() {}");
}
