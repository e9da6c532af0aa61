//! The calibration file with the processor cost per sample: its location, its content, and the
//! check that it belongs to this host.

mod measure;
mod report;
pub(crate) mod role;

pub(super) use report::{row, run};

use crate::outfile;
use anyhow::{Context as _, Result, anyhow};
use paceline::contract::{CpuBudget, CpuPoint, CpuTable};
use paceline_tool::exit;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The environment variable with the path of the file.
const VARIABLE: &str = "PACELINE_CALIBRATION";
/// The host's file; a daemon has no home folder.
const HOST: &str = "/var/lib/paceline/calibration.json";
const FILE: &str = "paceline/calibration.json";
/// The size limit of a calibration. A longer file was named by mistake.
const BYTES_MAX: u64 = 1 << 16;
const SCHEMA: u32 = 1;
/// The default share of one processor that contracts may reserve, in percent. The rest remains for
/// applications.
const PERCENT: u32 = 50;
/// The remedy that error messages suggest.
const FIX: &str = "paceline doctor --calibrate";

/// The content of the file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    version: String,
    processor: String,
    cores: usize,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    bytes: u64,
    load_permille: u32,
    nanos: u64,
}

/// The properties that identify this host and version. A calibration with other properties belongs
/// to another host or is outdated.
#[derive(Debug, Eq, PartialEq)]
struct Facts {
    version: String,
    processor: String,
    cores: usize,
}

impl Facts {
    fn here() -> Self {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: processor(&text),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Returns the kernel's name of the processor. Architectures other than x86 use other keys.
fn processor(cpuinfo: &str) -> String {
    let value = |key| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut found =
            fields.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
        found.find(|value| !value.is_empty())
    };
    let keys = ["model name", "Model", "Hardware", "CPU part", "uarch"];
    keys.into_iter().find_map(value).unwrap_or("unknown").to_owned()
}

fn named(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn of_user() -> Option<PathBuf> {
    let dir = named("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    dir.or_else(|| named("HOME").map(|home| home.join(".local/state"))).map(|dir| dir.join(FILE))
}

/// Returns the effective file: `$PACELINE_CALIBRATION`, which must exist, else the user's, else the
/// host's.
fn find() -> Option<PathBuf> {
    let places = || of_user().into_iter().chain([PathBuf::from(HOST)]);
    named(VARIABLE).or_else(|| places().find(|path| path.is_file()))
}

/// Returns the path for a new calibration: one that [`find`] searches. For root that is the
/// daemon's path.
fn place() -> PathBuf {
    let of_user = || of_user().filter(|_| !rustix::process::geteuid().is_root());
    named(VARIABLE).or_else(of_user).unwrap_or_else(|| PathBuf::from(HOST))
}

/// Reads this host's costs from `path`.
///
/// # Errors
/// Returns the reason if the file cannot be used.
fn load(path: &Path) -> Result<CpuTable> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(anyhow!("it is longer than {BYTES_MAX} bytes"));
    }
    read(&text, &Facts::here())
}

fn read(text: &str, here: &Facts) -> Result<CpuTable> {
    let document: Document = serde_json::from_str(text).context("it is not a calibration")?;
    let Document { schema, version, processor, cores, samples } = document;
    if schema != SCHEMA {
        return Err(anyhow!("its schema is {schema}, and this version reads {SCHEMA}"));
    }
    let there = Facts { version, processor, cores };
    if there != *here {
        let describe = |facts: &Facts| {
            format!("paceline {} on {} cores of {}", facts.version, facts.cores, facts.processor)
        };
        return Err(anyhow!(
            "it was measured by {}, and this is {}",
            describe(&there),
            describe(here)
        ));
    }
    let point =
        |&Sample { bytes, load_permille, nanos }: &Sample| CpuPoint { bytes, load_permille, nanos };
    Ok(CpuTable::new(samples.iter().map(point).collect())?)
}

/// Writes the costs measured here. An existing file stays until the new one is complete.
fn save(path: &Path, table: &CpuTable) -> Result<()> {
    let Facts { version, processor, cores } = Facts::here();
    let sample = |&CpuPoint { bytes, load_permille, nanos }: &CpuPoint| Sample {
        bytes,
        load_permille,
        nanos,
    };
    let samples = table.points().iter().map(sample).collect();
    let text = serde_json::to_string_pretty(&Document {
        schema: SCHEMA,
        version,
        processor,
        cores,
        samples,
    })?;
    let cannot = || format!("cannot write {}: try another file with --out", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), std::fs::create_dir_all).with_context(cannot)?;
    outfile::replace(path, (text + "\n").as_bytes()).with_context(cannot)
}

/// Refuses to replace a file that is no calibration.
fn check_replaced(path: &Path) -> Result<()> {
    let samples = |text: &[u8]| {
        let document: serde_json::Value = serde_json::from_slice(text).ok()?;
        document.get("samples")?.is_array().then_some(())
    };
    if !path.is_file() {
        return Ok(());
    }
    match std::fs::read(path) {
        Ok(text) if samples(&text).is_none() => Err(exit::usage(format!(
            "--out {}: it already exists and is no calibration; give another --out, or delete it",
            path.display()
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the processor budget of this host's node: `percent` of one processor. Without a
/// calibration admission charges no processor time. An unusable calibration is reported in the log.
pub(crate) fn budget(percent: Option<u32>) -> Option<CpuBudget> {
    let percent = percent.unwrap_or(PERCENT);
    let path = find().filter(|_| percent > 0)?;
    match load(&path) {
        Ok(table) => {
            let nanos_per_s = u64::from(percent) * 10_000_000;
            Some(CpuBudget { cost: table.fit(), nanos_per_s })
        }
        Err(error) => {
            let shown = path.display();
            tracing::warn!(
                "ignoring the calibration {shown}, no processor time is charged: {error:#}; try \
                 {FIX}"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests;
