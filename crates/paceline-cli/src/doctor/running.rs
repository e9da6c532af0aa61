//! The configuration with which this host's node runs: its command line, and its configuration file.

use crate::args::LinkSpec;
use crate::config::{self, Config};
use anyhow::{Context as _, anyhow, ensure};
use clap::ArgMatches;
use paceline::NodeBuilder;
use paceline_http::HttpAddress;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The node that listens in the runtime folder.
pub(super) struct Running {
    pub(super) pid: i32,
    /// The settings with which it was started, or the reason why they are unknown.
    pub(super) config: anyhow::Result<Config>,
}

/// Finds the node of this host; `None` if none listens.
pub(super) fn find(runtime_dir: Option<PathBuf>) -> Option<Running> {
    let dir = runtime_dir.unwrap_or_else(NodeBuilder::default_runtime_dir);
    let pid = listener(&dir.join("node.sock"))?;
    Some(Running { pid, config: config_of(pid) })
}

/// Returns the process that listens at a socket.
fn listener(socket: &Path) -> Option<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    runtime.block_on(async {
        let stream = tokio::net::UnixStream::connect(socket).await.ok()?;
        stream.peer_cred().ok()?.pid()
    })
}

/// Returns the parts of a file of the kernel that end with a zero byte.
fn parts(pid: i32, name: &str) -> anyhow::Result<Vec<OsString>> {
    let path = format!("/proc/{pid}/{name}");
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {path}"))?;
    let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    Ok(parts.map(|part| OsString::from_vec(part.to_vec())).collect())
}

fn config_of(pid: i32) -> anyhow::Result<Config> {
    let words = parts(pid, "cmdline")?;
    let program = words.first().map(|word| word.display().to_string()).unwrap_or_default();
    let matches = crate::command_line().try_get_matches_from(&words);
    let matches = matches.map_err(|_| anyhow!("{program} is no command of paceline"))?;
    let (command, flags) = matches.subcommand().context("it has no command")?;
    ensure!(has_node(command), "paceline {command} has no node");
    // The other commands read only a file that --config names.
    let found = if command == "node" { found(pid)? } else { None };
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    from_flags(flags, found, &folder)
}

/// Returns true if a command takes links.
fn has_node(command: &str) -> bool {
    let line = crate::command_line();
    let arguments = line.find_subcommand(command).into_iter().flat_map(|it| it.get_arguments());
    arguments.into_iter().any(|argument| argument.get_id() == "link")
}

/// Returns the configuration file that a process finds without a flag.
fn found(pid: i32) -> anyhow::Result<Option<PathBuf>> {
    let variables = parts(pid, "environ")?;
    let variable = |name: &str| {
        let value = variables.iter().find_map(|variable| {
            let (its, value) = variable.to_str()?.split_once('=')?;
            (its == name).then_some(value)
        });
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    Ok(config::find_with(variable))
}

/// Returns the settings of a command with these flags in `folder`; `found` is the configuration file without a flag.
fn from_flags(flags: &ArgMatches, found: Option<PathBuf>, folder: &Path) -> anyhow::Result<Config> {
    let path = |name: &str| {
        let value = flags.try_get_one::<PathBuf>(name).ok().flatten();
        value.map(|path| folder.join(path))
    };
    let links = flags.try_get_many::<LinkSpec>("link");
    let file = path("config").or(found);
    let mut config = file.as_deref().map(config::load).transpose()?.unwrap_or_default();
    let links: Vec<LinkSpec> = links.ok().flatten().into_iter().flatten().cloned().collect();
    if !links.is_empty() {
        config.links = links.into_iter().map(|link| link.in_folder(folder)).collect();
    }
    config.policy = path("policy").or(config.policy);
    config.token = path("token").or(config.token);
    if let Some(http) = flags.try_get_one::<HttpAddress>("http").ok().flatten() {
        config.http = Some(http.clone());
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> anyhow::Result<Config> {
        let matches = crate::command_line().try_get_matches_from(words)?;
        from_flags(matches.subcommand().unwrap().1, None, Path::new("/etc/robot"))
    }

    #[test]
    fn flags_of_a_running_node_are_its_settings() {
        let link = "name=thin,listen=quic/0.0.0.0:7600,insecure,tls_cert=a.pem,tls_key=a,tls_ca=a";
        let config = of(&["paceline", "node", "--link", link, "--policy", "p.toml"]).unwrap();
        assert!(config.links[0].insecure);
        assert_eq!(config.links[0].tls.cert.as_deref(), Some(Path::new("/etc/robot/a.pem")));
        assert_eq!(config.policy.as_deref(), Some(Path::new("/etc/robot/p.toml")));
        let publisher = of(&["paceline", "pub", "a", "-", "--link", link]).unwrap();
        assert_eq!(publisher.links.len(), 1);
        assert_eq!(of(&["paceline", "sub", "a"]).unwrap(), Config::default());
        assert!(has_node("pub") && has_node("node") && !has_node("judge") && !has_node("no"));
    }
}
