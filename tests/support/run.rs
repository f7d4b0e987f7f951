//! Starts programs, waits with a limit, and ends by process id what it started.

use std::ffi::OsStr;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `short` in `make test`, `long` in `make soak`.
pub fn loops(short: usize, long: usize) -> usize {
    if std::env::var_os("BURSTLINE_SOAK").is_none_or(|v| v != "1") {
        return short;
    }
    std::env::var("SOAK_LOOPS").ok().and_then(|v| v.parse().ok()).map_or(long, |most| long.min(most).max(short))
}

/// Path of a program of this package: `bin("l2fwd")`.
pub fn bin(name: &str) -> PathBuf {
    match name {
        "l2fwd" => PathBuf::from(env!("CARGO_BIN_EXE_l2fwd")),
        // Cargo puts all programs of a package into one directory.
        _ => Path::new(env!("CARGO_BIN_EXE_l2fwd")).with_file_name(name),
    }
}

/// Asks `cond` until it is true or `limit` has passed; says which.
pub fn wait_until(limit: Duration, mut cond: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if cond() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A program that ends with its guard: SIGTERM, and SIGKILL where that is not heard within the limit.
pub struct ChildGuard {
    child: Child,
    term_limit: Duration,
    status: Option<ExitStatus>,
}

impl ChildGuard {
    pub fn new(child: Child) -> ChildGuard {
        ChildGuard { child, term_limit: Duration::from_secs(3), status: None }
    }

    /// The program also dies with the test process, should that be killed.
    pub fn spawn(cmd: &mut Command) -> ChildGuard {
        die_with_parent(cmd);
        ChildGuard::new(cmd.spawn().unwrap_or_else(|e| panic!("{cmd:?}: {e}")))
    }

    pub fn term_limit(mut self, limit: Duration) -> ChildGuard {
        self.term_limit = limit;
        self
    }

    pub fn signal(&self, signal: i32) {
        if self.status.is_none() {
            // SAFETY: the child has not been waited for (status is None), so its id is still its own.
            unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        }
    }

    pub fn running(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("wait for a child");
        }
        self.status.is_none()
    }

    /// How it ended, or None if it has not within `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        wait_until(limit, || !self.running());
        self.status
    }

    /// Ends it as drop does and tells how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        if let Some(status) = self.wait(self.term_limit) {
            return status;
        }
        self.signal(libc::SIGKILL);
        let status = self.child.wait().expect("wait for a killed child");
        self.status = Some(status);
        status
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if self.running() {
            self.stop();
        }
    }
}

impl Deref for ChildGuard {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

/// SIGKILL for the program when the thread that starts it ends without having waited (PR_SET_PDEATHSIG).
/// Tests start and end a program on one thread, so this only matters when the test process dies.
fn die_with_parent(cmd: &mut Command) {
    // SAFETY: prctl is async-signal-safe, and the closure allocates nothing.
    unsafe {
        cmd.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
}

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub timed_out: bool,
}

impl Output {
    /// The exit code; minus the signal's number where a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| -self.status.signal().unwrap_or(0))
    }

    pub fn ok(&self) -> bool {
        self.status.success() && !self.timed_out
    }

    /// Itself, or a panic that shows everything the program said.
    #[track_caller]
    pub fn expect_ok(self) -> Output {
        assert!(
            self.ok(),
            "exit code {}{}\n--- stdout\n{}\n--- stderr\n{}",
            self.code(),
            if self.timed_out { " (timed out)" } else { "" },
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Runs `cmd` to its end, or ends it after `limit`. Its output is read while it runs, so a full pipe blocks nobody.
#[track_caller]
pub fn run(cmd: &mut Command, limit: Duration) -> Output {
    let mut child = ChildGuard::spawn(cmd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let out = reader(child.stdout.take());
    let err = reader(child.stderr.take());
    let ended = child.wait(limit);
    let status = ended.unwrap_or_else(|| child.stop());
    // A grandchild may hold the pipes open after the program's end.
    let text = |r: std::sync::mpsc::Receiver<String>| r.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
    Output { status, stdout: text(out), stderr: text(err), timed_out: ended.is_none() }
}

/// [`run`] of a program with arguments.
#[track_caller]
pub fn run_args(program: impl AsRef<OsStr>, args: &[&str], limit: Duration) -> Output {
    run(Command::new(program).args(args), limit)
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::sync::mpsc::Receiver<String> {
    let (tx, rx) = std::sync::mpsc::channel();
    let mut pipe = pipe.expect("a piped stream");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = tx.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    rx
}

/// A number that no other call in this process gets.
pub fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A directory of this test's own, removed on drop.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new(prefix: &str) -> TempDir {
        let path = std::env::temp_dir().join(format!("{prefix}-{}-{}", std::process::id(), unique()));
        std::fs::create_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
