//! What a test needs of the machine. A test that cannot run says `skipped: <test>: needs <what>` and returns; with
//! `BURSTLINE_REQUIRE_ALL=1` (the gate) it fails instead.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns from the calling test unless every need is met: `need!("root", "ip", "tcpdump");`
///
/// A need is the name of a program, `"root"`, `"netns"` (may make network namespaces), or a path that must exist (`"/dev/net/tun"`).
macro_rules! need_each {
    ($($what:expr),+ $(,)?) => {
        $(if !$crate::support::tools::need($what) { return; })+
    };
}

pub(crate) use need_each as need;

/// True where `what` is here. Else says so and returns false, or panics if everything is required.
pub fn need(what: &str) -> bool {
    let missing = missing(what);
    if let Some(text) = &missing {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("?");
        assert!(!require_all(), "{test} needs {text}, and BURSTLINE_REQUIRE_ALL is set");
        // Not println!: the harness shows that of failing tests only.
        let _ = writeln!(std::io::stderr().lock(), "skipped: {test}: needs {text}");
    }
    missing.is_none()
}

/// What is missing, in words.
fn missing(what: &str) -> Option<String> {
    let (here, text) = match what {
        "root" => (is_root(), "root".to_string()),
        "netns" => (can_unshare_net(), "leave to make network namespaces".to_string()),
        _ if what.starts_with('/') => (Path::new(what).exists(), what.to_string()),
        _ => (find_program(what).is_some(), format!("the program {what}")),
    };
    (!here).then_some(text)
}

/// In the gate nothing may be skipped.
pub fn require_all() -> bool {
    std::env::var_os("BURSTLINE_REQUIRE_ALL").is_some_and(|v| v == "1")
}

pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Asked of a thread of its own, so that the namespace ends with it.
fn can_unshare_net() -> bool {
    // SAFETY: unshare(CLONE_NEWNET) touches only the calling thread's namespace.
    is_root() && std::thread::spawn(|| unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }).join().unwrap_or(false)
}

/// Where `name` is on PATH, or in the places of system programs that PATH of an ordinary user leaves out.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from));
    dirs.map(|d| d.join(name)).find(|p| {
        use std::os::unix::fs::PermissionsExt;
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}
