//! A file is one idea, and one idea is not longer than 600 lines.

mod support;

use support::house;

const MOST: usize = 600;

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let long: Vec<String> = house::files()
        .iter()
        .filter(|f| [".rs", ".c", ".h"].iter().any(|end| f.ends_with(end)))
        // Written by cbindgen.
        .filter(|f| *f != "include/burstline.h")
        .filter_map(|f| {
            let lines = house::text(f).map_or(0, |t| t.lines().count());
            (lines > MOST).then(|| format!("{f}: {lines} lines, at most {MOST}"))
        })
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn the_walk_without_git_finds_what_git_finds() {
    let walked = house::walk();
    for file in house::files() {
        assert!(walked.contains(&file), "{file}");
    }
}
