//! What must not stand in the project's text: places of somebody's machine, hosts of registries, stubs, merge markers.

mod support;

use support::house;

/// Put together here, so that this file does not hold what it forbids.
fn joined(parts: &[[&str; 2]]) -> Vec<String> {
    parts.iter().map(|p| p.concat()).collect()
}

fn forbidden_anywhere() -> Vec<String> {
    joined(&[
        ["/wor", "k/"],
        ["/hom", "e/"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["npmjs", ".com"],
        ["proxy.golang", ".org"],
        ["farm-", "bench"],
        ["farm-", "studio"],
        ["before-", "stop"],
        ["clau", "de"],
        ["anthro", "pic"],
        ["chat", "gpt"],
        ["lorem", " ipsum"],
        ["<<<<", "<<< "],
        [">>>>", ">>> "],
    ])
}

fn forbidden_in_rust() -> Vec<String> {
    joined(&[["tod", "o!("], ["unimple", "mented!("], ["#[ign", "ore"], ["dbg", "!("]])
}

/// `file:line: word`, without regard to case.
fn found(file: &str, text: &str, words: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        for word in words.iter().filter(|w| lower.contains(&w.to_lowercase())) {
            all.push(format!("{file}:{}: {word}", n + 1));
        }
    }
    all
}

#[test]
fn no_text_file_holds_a_forbidden_word() {
    let (anywhere, in_rust) = (forbidden_anywhere(), forbidden_in_rust());
    let mut all = Vec::new();
    // The lock file names its registry; cargo writes it.
    for file in house::files().iter().filter(|f| !f.ends_with("Cargo.lock")) {
        all.extend(found("the name of", file, &anywhere));
        let Some(text) = house::text(file) else { continue };
        all.extend(found(file, &text, &anywhere));
        if file.ends_with(".rs") {
            all.extend(found(file, &text, &in_rust));
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

#[test]
fn a_planted_word_is_found() {
    let text = ["fine\nsee /Hom", "e/me/x\n"].concat();
    assert_eq!(found("f", &text, &forbidden_anywhere()), [["f:2: /hom", "e/"].concat()]);
    let text = ["fn f() { tod", "o!() }"].concat();
    assert_eq!(found("f.rs", &text, &forbidden_in_rust()).len(), 1);
}
