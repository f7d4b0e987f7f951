//! For the house tests: the project's files, and Rust source as tokens without comments, strings and test code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The project's files, relative to its root: what git tracks or would track; without git, a walk that leaves out
/// build directories.
pub fn files() -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut all = match git {
        Ok(out) if out.status.success() && !out.stdout.is_empty() => {
            String::from_utf8_lossy(&out.stdout).split('\0').filter(|f| !f.is_empty()).map(str::to_string).collect()
        }
        _ => walk(),
    };
    all.retain(|f| root().join(f).symlink_metadata().is_ok_and(|m| m.is_file()));
    all.sort();
    all.dedup();
    assert!(all.iter().any(|f| f == "Cargo.toml"), "no Cargo.toml among {} files", all.len());
    all
}

pub fn walk() -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(root().join(&dir)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = dir.join(&name);
            match entry.file_type() {
                Ok(t) if t.is_dir() && name != ".git" && !name.starts_with("target") => dirs.push(path),
                Ok(t) if t.is_file() => found.push(path.to_string_lossy().into_owned()),
                _ => {}
            }
        }
    }
    found
}

/// The text of a file of the project; None if it is not text.
pub fn text(file: &str) -> Option<String> {
    let bytes = std::fs::read(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() }
}

/// `src` with comments and what is in string and char literals turned to spaces. Offsets and lines stay.
pub fn blank(src: &str) -> String {
    let b = src.as_bytes();
    let mut out = b.to_vec();
    let mut i = 0;
    while i < b.len() {
        let start = i;
        // An identifier is taken whole, so the r of `for"` starts no raw string.
        let prefix = literal_prefix(&b[i..]);
        if b[i..].starts_with(b"//") {
            i = find(b, i, b"\n").unwrap_or(b.len());
        } else if b[i..].starts_with(b"/*") {
            i = block_comment_end(b, i);
        } else if let Some((quote, hashes)) = prefix {
            i = match hashes {
                Some(n) => {
                    let end = [b"\"".as_slice(), &vec![b'#'; n]].concat();
                    find(b, i + quote + 1, &end).map_or(b.len(), |p| p + end.len())
                }
                None => quoted_end(b, i + quote, b'"'),
            };
        } else if b[i] == b'\'' {
            match char_end(src, i) {
                Some(end) => i = end,
                None => {
                    i += 1; // a lifetime
                    continue;
                }
            }
        } else if is_word(b[i]) {
            while i < b.len() && is_word(b[i]) {
                i += 1;
            }
            continue;
        } else {
            i += 1;
            continue;
        }
        for c in &mut out[start..i] {
            if *c != b'\n' {
                *c = b' ';
            }
        }
    }
    String::from_utf8(out).expect("blanks are ASCII and replace whole literals")
}

fn is_word(c: u8) -> bool {
    c == b'_' || c.is_ascii_alphanumeric() || c >= 0x80
}

fn find(b: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    b.get(from..)?.windows(what.len()).position(|w| w == what).map(|p| p + from)
}

/// The offset of the opening quote, and the number of hashes if it is a raw string.
fn literal_prefix(b: &[u8]) -> Option<(usize, Option<usize>)> {
    let letters = b.iter().take(2).take_while(|c| matches!(c, b'b' | b'c' | b'r')).count();
    let hashes = b[letters..].iter().take_while(|&&c| c == b'#').count();
    let raw = letters > 0 && b[letters - 1] == b'r';
    if b.get(letters + hashes) != Some(&b'"') || (hashes > 0 && !raw) {
        return None;
    }
    Some((letters + hashes, raw.then_some(hashes)))
}

fn quoted_end(b: &[u8], open: usize, quote: u8) -> usize {
    let mut i = open + 1;
    while i < b.len() && b[i] != quote {
        i += if b[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(b.len())
}

fn char_end(src: &str, open: usize) -> Option<usize> {
    let mut rest = src[open + 1..].char_indices();
    let (_, first) = rest.next()?;
    if first == '\\' {
        return Some(quoted_end(src.as_bytes(), open, b'\''));
    }
    let (at, second) = rest.next()?;
    (second == '\'').then_some(open + 1 + at + 1)
}

fn block_comment_end(b: &[u8], start: usize) -> usize {
    let (mut i, mut depth) = (start, 0);
    while i < b.len() {
        if b[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if b[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    b.len()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// A word, `::`, or one character.
    pub text: String,
    pub line: usize,
    pub at: usize,
}

/// Words, `::` and single characters of blanked source.
pub fn tokens(blanked: &str) -> Vec<Token> {
    let b = blanked.as_bytes();
    let (mut out, mut i, mut line) = (Vec::new(), 0, 1);
    while i < b.len() {
        let start = i;
        if b[i] == b'\n' {
            line += 1;
        }
        if b[i].is_ascii_whitespace() {
            i += 1;
            continue;
        }
        if is_word(b[i]) {
            while i < b.len() && is_word(b[i]) {
                i += 1;
            }
        } else if b[i..].starts_with(b"::") {
            i += 2;
        } else {
            i += 1;
        }
        out.push(Token { text: blanked[start..i].to_string(), line, at: start });
    }
    out
}

/// A source file without its test code.
pub struct Source {
    pub tokens: Vec<Token>,
    /// Files (relative to the root) that a `mod` under `#[cfg(test)]` names, without `.rs`: test code, with all below.
    pub test_modules: BTreeSet<String>,
}

/// Tokens of `src` (the file `file`) without items under a `cfg` that asks for `test`.
pub fn without_tests(file: &str, src: &str) -> Source {
    let all = tokens(&blank(src));
    let mut source = Source { tokens: Vec::new(), test_modules: BTreeSet::new() };
    let is = |i: usize, text: &str| all.get(i).is_some_and(|t: &Token| t.text == text);
    let mut i = 0;
    while i < all.len() {
        if is(i, "#") && is(i + 1, "!") && is(i + 2, "[") {
            let end = closing(&all, i + 2);
            if asks_for_test(&all[i + 3..end]) {
                source.tokens.clear();
                return source;
            }
        }
        if !(is(i, "#") && is(i + 1, "[") && asks_for_test(&all[i + 2..closing(&all, i + 1)])) {
            source.tokens.push(all[i].clone());
            i += 1;
            continue;
        }
        let attributes = all[i].at;
        while is(i, "#") && is(i + 1, "[") {
            i = closing(&all, i + 1) + 1;
        }
        // The item ends at its first `;` or at the close of its first `{`, whichever opens outside of brackets first.
        let item = i;
        while i < all.len() && !is(i, ";") && !is(i, "{") {
            i = if is(i, "(") || is(i, "[") { closing(&all, i) + 1 } else { i + 1 };
        }
        if is(i, ";") {
            let name = all[item..i].iter().rposition(|t| t.text == "mod").map(|p| all[item + p + 1].text.clone());
            if let Some(name) = name {
                let given =
                    src[attributes..all[item].at].split_once("path = \"").and_then(|(_, p)| p.split('"').next());
                source.test_modules.insert(module_file(file, &name, given));
            }
        }
        i = if is(i, "{") { closing(&all, i) + 1 } else { i + 1 };
    }
    source
}

/// The file of `mod name;` in `file`, without `.rs` or `/mod.rs`.
fn module_file(file: &str, name: &str, given: Option<&str>) -> String {
    let path = Path::new(file);
    let dir = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let found = match given {
        Some(p) => dir.join(p.trim_end_matches(".rs").trim_end_matches("/mod")),
        None if ["mod", "lib", "main"].iter().any(|m| stem == *m) => dir.join(name),
        None => dir.join(stem).join(name),
    };
    found.to_string_lossy().into_owned()
}

/// The index of the bracket that closes the one at `open`.
fn closing(t: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in t.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    t.len().saturating_sub(1)
}

/// `cfg(test)`, `cfg(all(test, not(loom)))` and the like: what is built for tests alone. Not `cfg(not(test))`, nor
/// `cfg(any(test, feature))`: that is built without tests too.
fn asks_for_test(attribute: &[Token]) -> bool {
    attribute.first().is_some_and(|t| t.text == "cfg") && attribute.len() > 2 && implies_test(&attribute[2..])
}

/// Whether the predicate at the front of `t` holds only where `test` does.
fn implies_test(t: &[Token]) -> bool {
    let Some(word) = t.first() else { return false };
    if t.get(1).is_none_or(|n| n.text != "(") {
        return word.text == "test";
    }
    let mut parts = Vec::new();
    let (end, mut i) = (closing(t, 1), 2);
    while i < end {
        parts.push(implies_test(&t[i..end]));
        while i < end && t[i].text != "," {
            i = if t[i].text == "(" { closing(t, i) + 1 } else { i + 1 };
        }
        i += 1;
    }
    match word.text.as_str() {
        "all" => parts.contains(&true),
        "any" => !parts.is_empty() && !parts.contains(&false),
        _ => false,
    }
}
