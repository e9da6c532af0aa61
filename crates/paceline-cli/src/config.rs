//! The configuration file: its location and its content.

mod class;
mod clock;
mod node;
mod plain;
mod query;
mod read;
mod section;
mod source;
mod template;
mod units;
mod value;

pub(crate) use node::{NodeArgs, Settings};
pub(crate) use template::TEMPLATE;

use crate::args::{BufferSpec, LinkSpec, SourceSpec};
use paceline_http::{HttpAddress, HttpFiles, RtspAddress, WebrtcAddress};

use paceline::time::ClockConfig;
use paceline_plain::{PlainConfig, Rules};
use paceline_tool::exit;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The environment variable with the path of the configuration file.
pub(crate) const VARIABLE: &str = "PACELINE_CONFIG";
/// The path below the user's or the system's configuration folder.
const FILE: &str = "paceline/config.toml";
/// The size limit of a configuration. A longer file was named by mistake.
const BYTES_MAX: u64 = 1 << 20;

/// The content of a configuration file. Missing keys are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// The display name of the node.
    pub(crate) name: Option<String>,
    /// The folder shared by the processes of this host.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Whether the node stays disconnected from the other processes of this host.
    pub(crate) isolated: bool,
    /// The log filter.
    pub(crate) log: Option<String>,
    /// The address of the HTTP server.
    pub(crate) http: Option<HttpAddress>,
    /// The address of the server of Foxglove.
    pub(crate) foxglove: Option<HttpAddress>,
    /// The address of the server of players.
    pub(crate) rtsp: Option<RtspAddress>,
    /// The file with the login of players.
    pub(crate) rtsp_login: Option<PathBuf>,
    /// The UDP address of WebRTC.
    pub(crate) webrtc: Option<WebrtcAddress>,
    /// The share of one processor that contracts may reserve, in percent.
    /// The files for clients of other hosts.
    pub(crate) http_files: HttpFiles,
    pub(crate) processor_percent: Option<u32>,
    pub(crate) host_buffer: Option<u64>,
    pub(crate) neighbour_memory: Option<u64>,
    pub(crate) realtime: Option<bool>,
    /// The policy file.
    pub(crate) policy: Option<PathBuf>,
    /// The file of this node's token.
    pub(crate) token: Option<PathBuf>,
    /// The servers and the address of the clock.
    pub(crate) clock: Option<ClockConfig>,
    /// The node's links, at most [`Node::LINKS_MAX`](paceline::Node::LINKS_MAX).
    pub(crate) links: Vec<LinkSpec>,
    /// The pull buffers of the node.
    pub(crate) buffers: Vec<BufferSpec>,
    /// What the node publishes itself.
    pub(crate) sources: Vec<SourceSpec>,
    /// The endpoints for plain Zenoh programs.
    pub(crate) plain: Option<PlainConfig>,
    /// The import and export rules for plain Zenoh programs.
    pub(crate) rules: Rules,
}

/// Reads a configuration file.
///
/// # Errors
/// Returns a usage error that lists every mistake in the file, one per line.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    let shown = path.display().to_string();
    let cannot = |what: &dyn fmt::Display| {
        exit::usage(format!("cannot read the configuration {shown}: {what}"))
    };
    let text = text(path).map_err(|error| cannot(&exit::file_error(&error)))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(cannot(&format!("it is longer than {BYTES_MAX} bytes")));
    }
    read::read(&text, &shown).map_err(exit::usage)
}

/// Returns the text of a file, truncated just beyond the size limit.
pub(crate) fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the default file: `$PACELINE_CONFIG`, which must exist, else the user's, else the
/// system's.
pub(crate) fn find() -> Option<PathBuf> {
    find_with(|name: &str| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    })
}

/// Like [`find`], with the variables of another process.
pub(crate) fn find_with(named: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    named(VARIABLE).or_else(|| places(named).into_iter().find(|path| path.is_file()))
}

/// Returns the searched paths in order.
fn places(named: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let user = named("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let user = user.or_else(|| named("HOME").map(|home| home.join(".config")));
    user.into_iter().chain([PathBuf::from("/etc")]).map(|dir| dir.join(FILE)).collect()
}

#[cfg(test)]
mod tests;
