//! l2fwd: what comes in on one port goes out of its pair. DPDK's options and meaning; see `l2fwd -h`.

#[path = "l2fwd/demo.rs"]
mod demo;
#[path = "l2fwd/forward.rs"]
mod forward;
#[path = "l2fwd/json.rs"]
mod json;
#[path = "l2fwd/options.rs"]
mod options;
#[path = "l2fwd/plan.rs"]
mod plan;
#[path = "l2fwd/run.rs"]
mod run;
#[path = "l2fwd/supervise.rs"]
mod supervise;
#[path = "l2fwd/table.rs"]
mod table;

use burstline::base::Result;
use burstline::eal::EalArgs;
use std::io::Write;
use std::process::ExitCode;

/// The library's messages, on stderr.
struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }
    fn log(&self, record: &log::Record) {
        let level = record.level().as_str().to_lowercase();
        // A closed stderr is no reason to stop forwarding.
        let _ = writeln!(std::io::stderr().lock(), "l2fwd: {level}: {}", record.args());
    }
    fn flush(&self) {}
}

fn main() -> ExitCode {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    let args: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr().lock(), "l2fwd: error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<()> {
    let (eal, used) = EalArgs::parse(args)?;
    if eal.version {
        say(&format!("l2fwd, burstline {}\n", env!("CARGO_PKG_VERSION")));
        return Ok(());
    }
    let options = if eal.help { None } else { options::Options::read(args.get(used..).unwrap_or_default())? };
    match options {
        None => {
            say(&options::help());
            Ok(())
        }
        Some(options) => run::run(eal, options),
    }
}

/// Writes to stdout; a reader that went away (`| head`) is no error.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
