//! The figures of the store, of guided runs and of automations, beside the machine's raw limit in the same run.
//!
//! Machines are noisy, so what counts is the ratio; the absolute numbers are for readers.
//!
//! The first argument picks the groups whose name contains it (`door`, `aged`, `flow-many`, …), and
//! the second says how many runs the aged store has. It is made once and kept in `bench/out`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

mod aged;
mod door;
mod flow;
mod guided;
mod house;
mod plans;
mod raw;
mod server;
mod store;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

/// One figure: what was measured, beside what, and what it should be.
struct Figure {
    name: &'static str,
    value: f64,
    bound: Bound,
    detail: String,
}

/// What a figure should be.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!(">= {bound}"),
            Self::AtMost(bound) => format!("<= {bound}"),
        }
    }
}

fn main() -> Result<()> {
    let out = PathBuf::from("bench/out");
    std::fs::create_dir_all(&out)?;
    let scratch = tempfile::tempdir_in(&out).context("making a directory to measure in")?;
    let quiet = quietness(scratch.path())?;
    if quiet > QUIET_MAX {
        println!(
            "this machine is not quiet: two equal raw loops differ by {:.0} %\n",
            quiet * 100.0
        );
    }
    let wanted = std::env::args().nth(1).unwrap_or_default();
    println!("{:<44} {:>9}  wanted", "figure", "value");
    let mut figures = told(store::figures(scratch.path(), &wanted)?);
    figures.extend(told(flow::figures(scratch.path(), &wanted)?));
    let binary = std::env::current_exe()?.with_file_name("cairn");
    if binary.exists() {
        figures.extend(told(binary_figures(&binary)?));
        figures.extend(told(guided::figures(scratch.path(), &binary, &wanted)?));
        figures.extend(told(server::figures(scratch.path(), &binary, &wanted)?));
        figures.extend(told(door::figures(scratch.path(), &binary, &wanted)?));
        figures.extend(told(aged::figures(&out, &binary, &wanted)?));
    } else {
        println!(
            "no figures of the binary: {} is not there; \
             `cargo build --release --package cairn-cli` makes it\n",
            binary.display()
        );
    }
    let report = json!({
        "quiet": quiet <= QUIET_MAX,
        "noise": quiet,
        "figures": figures.iter().map(|figure| json!({
            "name": figure.name,
            "value": figure.value,
            "wanted": figure.bound.text(),
            "holds": figure.bound.holds(figure.value),
            "detail": figure.detail,
        })).collect::<Vec<_>>(),
    });
    std::fs::write(out.join("store.json"), serde_json::to_vec_pretty(&report)?)?;
    Ok(())
}

/// Tells figures as soon as they are known.
fn told(figures: Vec<Figure>) -> Vec<Figure> {
    for figure in &figures {
        let verdict = if figure.bound.holds(figure.value) { "" } else { "MISSED" };
        let Figure { name, value, bound, detail } = figure;
        println!("{name:<44} {value:>9.3}  {:<10} {verdict:<7} {detail}", bound.text());
    }
    figures
}

/// How much two equal measurements may differ on a quiet machine.
const QUIET_MAX: f64 = 0.15;

/// How much the same raw loop differs from itself.
fn quietness(dir: &Path) -> Result<f64> {
    let file = std::fs::File::create(dir.join("quiet"))?;
    let mut offset = 0;
    let mut medians = Vec::new();
    for _ in 0..5 {
        let times = raw::one_writer(&file, &mut offset, &[b'x'; 700], 200)?;
        medians.push(median(times).as_secs_f64());
    }
    let (low, high) = (
        medians.iter().copied().fold(f64::MAX, f64::min),
        medians.iter().copied().fold(0.0, f64::max),
    );
    Ok(high / low - 1.0)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// How often the device below a folder was told to keep what it has, by anybody; none where
/// the kernel does not count it.
fn flushes(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let device = folder.metadata().ok()?.dev();
    // As the kernel packs them.
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
    let stats = std::fs::read_to_string("/proc/diskstats").ok()?;
    let line =
        stats.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|line| {
            line.first() == Some(&major.to_string().as_str())
                && line.get(1) == Some(&minor.to_string().as_str())
        })?;
    line.get(18)?.parse().ok()
}

/// The release binary's size and how fast it starts.
fn binary_figures(path: &Path) -> Result<Vec<Figure>> {
    let starts = (0..20).filter_map(|_| {
        let start = Instant::now();
        let status = Command::new(path).arg("--version").output().ok()?.status;
        status.success().then(|| start.elapsed())
    });
    let start = median(starts.collect());
    Ok(vec![
        Figure {
            name: "release binary, MB",
            value: path.metadata()?.len() as f64 / 1e6,
            bound: Bound::AtMost(40.0),
            detail: String::new(),
        },
        Figure {
            name: "cairn --version, ms",
            value: start.as_secs_f64() * 1e3,
            bound: Bound::AtMost(20.0),
            detail: "median of 20 starts".into(),
        },
    ])
}
