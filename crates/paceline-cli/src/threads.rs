//! The thread pools of Zenoh's tasks in this process.

use crate::config;
use paceline_tool::threads::{ONE, SHARED, VARIABLE};
use std::path::PathBuf;

/// Prefix of a TLS endpoint.
const TLS: &str = "tls/";

/// Returns the environment variable with the size of Zenoh's thread pools and its value for this process: [`SHARED`],
/// or one thread if it uses TLS. Returns `None` if the environment has a value. The caller must set it before it starts
/// a second thread.
#[must_use]
pub fn setting() -> Option<(&'static str, &'static str)> {
    let set = std::env::var_os(VARIABLE).is_some();
    (!set).then(|| (VARIABLE, if uses_tls() { ONE } else { SHARED }))
}

/// Returns true if the configuration file contains a TLS endpoint. Imports and exports are configured only there.
fn uses_tls() -> bool {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let args = args.iter().map(|arg| arg.to_string_lossy());
    let named = args.map(|arg| PathBuf::from(arg.trim_start_matches("--config=")));
    let configs = named.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let mut texts = configs.chain(config::find()).filter_map(|path| config::text(&path).ok());
    texts.any(|text| text.contains(TLS))
}
