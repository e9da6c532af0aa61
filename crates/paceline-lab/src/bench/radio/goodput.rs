//! A cap that follows the goodput, for comparison: the usual mistake of rate control on links that are not always busy.
//!
//! The capacity of the link becomes what has arrived in the last half of a second, and a quarter more to find out whether there
//! is more. Nothing distinguishes a link that is slow from one on which little was sent.

use crate::bench::interrupt;
use crate::bench::stats::float;
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(500);
const MORE: f64 = 1.25;
/// The least and the greatest cap in bits per second.
const LEAST: f64 = 64e3;
const MOST: f64 = 50e6;

/// The configuration file of a node whose capacity follows the goodput.
pub(super) struct GoodputCap {
    file: PathBuf,
    place: String,
    process: Pid,
}

impl GoodputCap {
    pub(super) fn new(host: &Path, place: &str, capacity: &str, process: u32) -> Result<Self> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw).context("process id")?;
        let cap = Self { file: file(host), place: place.to_owned(), process };
        cap.write(capacity)?;
        Ok(cap)
    }

    /// Writes the first configuration of a node, and returns its name.
    pub(super) fn configure(host: &Path, place: &str, capacity: &str) -> Result<String> {
        paceline_tool::scratch::make(host)?;
        write(&file(host), place, capacity)?;
        Ok(file(host).display().to_string())
    }

    fn write(&self, capacity: &str) -> Result<()> {
        write(&self.file, &self.place, capacity)
    }

    /// Follows the bytes that arrive until the run is over.
    pub(super) fn follow(self, carried: &AtomicU64, is_over: &AtomicBool) -> Result<()> {
        let mut before = carried.load(Ordering::Relaxed);
        while !is_over.load(Ordering::Relaxed) {
            interrupt::sleep(EVERY)?;
            let now = carried.load(Ordering::Relaxed);
            let goodput = float(now - before) * 8.0 / EVERY.as_secs_f64();
            before = now;
            self.write(&format!("{:.0}kbit", (goodput * MORE).clamp(LEAST, MOST) / 1e3))?;
            kill_process(self.process, Signal::HUP).context("the node has ended")?;
        }
        Ok(())
    }
}

fn file(host: &Path) -> PathBuf {
    host.join("node.toml")
}

fn write(file: &Path, place: &str, capacity: &str) -> Result<()> {
    let (end, address) = place.split_once('=').unwrap_or(("listen", place));
    let text = format!(
        "[[link]]\nname = \"radio\"\n{end} = [\"{address}\"]\ncapacity = \"{capacity}\"\ninsecure = true\n"
    );
    std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
}
