//! The configuration file: where it is looked for, and what it says.

mod class;
mod plain;
mod query;
mod read;
mod section;
mod template;
mod units;

pub(crate) use template::TEMPLATE;

use crate::args::{BufferSpec, LinkSpec};
use crate::exit;
use crate::http::HttpAddress;
use paceline_plain::{PlainConfig, Rules};
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names a configuration file.
pub(crate) const VARIABLE: &str = "PACELINE_CONFIG";
/// Below the folder of a user's or the system's configurations.
const FILE: &str = "paceline/config.toml";
/// No configuration is longer: whatever is was named by mistake.
const BYTES_MAX: u64 = 1 << 20;

/// What a configuration file says. What it does not say is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// What people call the node.
    pub(crate) name: Option<String>,
    /// The folder that joins the processes of this host.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Stays apart from the other processes of this host.
    pub(crate) isolated: bool,
    /// What is logged.
    pub(crate) log: Option<String>,
    /// Where HTTP is served.
    pub(crate) http: Option<HttpAddress>,
    /// What of one processor promises may use, in percent.
    pub(crate) processor_percent: Option<u32>,
    /// The node's links, at most [`LINKS_MAX`](paceline::LINKS_MAX).
    pub(crate) links: Vec<LinkSpec>,
    /// The histories that the node keeps.
    pub(crate) buffers: Vec<BufferSpec>,
    /// Where plain Zenoh programs are met.
    pub(crate) plain: Option<PlainConfig>,
    /// What of theirs enters and leaves.
    pub(crate) rules: Rules,
}

/// Reads a configuration file.
///
/// # Errors
/// Wrong usage: everything that is wrong with the file, one line each.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    let shown = path.display().to_string();
    let cannot = |what: &dyn fmt::Display| {
        exit::usage(format!("cannot read the configuration {shown}: {what}"))
    };
    let text = text(path).map_err(|error| cannot(&error))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(cannot(&format!("it is longer than {BYTES_MAX} bytes")));
    }
    read::read(&text, &shown).map_err(exit::usage)
}

/// The text of a file, or as much of it as shows that it is too long.
pub(crate) fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The file that holds if none is named: `$PACELINE_CONFIG`, which must exist, else the user's, else
/// the system's.
pub(crate) fn find() -> Option<PathBuf> {
    search(|name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn search(named: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    named(VARIABLE).or_else(|| places(named).into_iter().find(|path| path.is_file()))
}

/// Where a file is looked for that is not named, first to last.
fn places(named: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let user = named("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let user = user.or_else(|| named("HOME").map(|home| home.join(".config")));
    user.into_iter().chain([PathBuf::from("/etc")]).map(|dir| dir.join(FILE)).collect()
}

#[cfg(test)]
mod tests;
