//! The flags that every command with a node has, and what they make of a configuration file.

use super::{BufferSpec, LinkSpec};
use crate::config::{self, Config};
use crate::http::HttpAddress;
use crate::{exit, log};
use paceline::{CpuBudget, LINKS_MAX, Node, NodeBuilder, OpenError};
use paceline_plain::{PlainConfig, Rules};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How a command opens its node.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct NodeArgs {
    /// What people call this node; host name and process number if not said
    #[arg(long, value_name = "NAME", value_parser = super::name)]
    pub(crate) name: Option<String>,
    /// A link, at most 16: name=radio,listen=tcp/127.0.0.1:7600,connect=tcp/HOST:7600,
    /// capacity=2mbit,policy=vds|dwcs|edf|…,insecure
    #[arg(long, value_name = "SPEC")]
    pub(crate) link: Vec<LinkSpec>,
    /// The folder that joins the processes of this host; $PACELINE_RUNTIME_DIR if not said
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Stays apart from the other processes of this host: only the links given
    #[arg(long, conflicts_with = "runtime_dir")]
    pub(crate) isolated: bool,
    /// A configuration file, over which flags win; `paceline node --print-config` shows its keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How a node is opened: the flags, the environment, and the configuration file where those say
/// nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// What people call the node.
    pub(crate) name: Option<String>,
    /// The folder that joins the processes of this host.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Stays apart from the other processes of this host.
    pub(crate) isolated: bool,
    /// What the file says of the log.
    pub(crate) log: Option<String>,
    /// Where HTTP is served.
    pub(crate) http: Option<HttpAddress>,
    /// What of one processor promises may use, in percent.
    pub(crate) processor_percent: Option<u32>,
    /// What samples cost this host, for its node alone.
    pub(crate) processor: Option<CpuBudget>,
    /// The node's links.
    pub(crate) links: Vec<LinkSpec>,
    /// The histories that the node keeps.
    pub(crate) buffers: Vec<BufferSpec>,
    /// Where plain Zenoh programs are met.
    pub(crate) plain: Option<PlainConfig>,
    /// What of theirs enters and leaves.
    pub(crate) rules: Rules,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// Who has said the links: "--link" or the file.
    pub(crate) links_from: String,
}

impl NodeArgs {
    /// Opens the node.
    pub(crate) fn open(&self) -> anyhow::Result<Node> {
        self.command_settings()?.open()
    }

    /// Opens the node of a command that looks and leaves: nobody comes to depend on it.
    pub(crate) fn open_guest(&self) -> anyhow::Result<Node> {
        self.command_settings()?.open_guest()
    }

    /// How the node of this host is opened: all of the file holds, whether it was named or found.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let file = self.config.clone().or_else(config::find);
        let config = file.as_deref().map(config::load).transpose()?.unwrap_or_default();
        self.merge(config, file)
    }

    /// How the node of any other command is opened. A file that was found is the host's node's: a
    /// command beside that takes from it what they must agree on, and leaves it name and links.
    fn command_settings(&self) -> anyhow::Result<Settings> {
        let mut settings = self.settings()?;
        log::configure(settings.log.as_deref());
        if self.config.is_none() {
            let mut own = self.merge(Config::default(), None)?;
            own.runtime_dir = settings.runtime_dir;
            return Ok(own);
        }
        if !settings.buffers.is_empty() {
            tracing::warn!("[[buffer]] of the configuration holds for `paceline node` alone");
            settings.buffers.clear();
        }
        if settings.plain.take().is_some() || !settings.rules.is_empty() {
            tracing::warn!(
                "[plain], [[import]], [[export]] and [[query]] of the configuration hold for `paceline node` alone"
            );
            settings.rules = Rules::default();
        }
        Ok(settings)
    }

    /// Flags win over the environment, and that over `config`.
    fn merge(&self, config: Config, file: Option<PathBuf>) -> anyhow::Result<Settings> {
        let (links, links_from) = if self.link.is_empty() {
            let file = file.as_ref().map(|file| file.display().to_string());
            (config.links, file.unwrap_or_default())
        } else {
            check_flags(&self.link)?;
            (self.link.clone(), "--link".to_owned())
        };
        let named = std::env::var_os("PACELINE_RUNTIME_DIR").is_some_and(|dir| !dir.is_empty());
        let configured = config.runtime_dir.filter(|_| !named);
        Ok(Settings {
            name: self.name.clone().or(config.name),
            runtime_dir: self.runtime_dir.clone().or(configured),
            isolated: self.isolated || config.isolated,
            log: config.log,
            http: config.http,
            processor_percent: config.processor_percent,
            processor: None,
            links,
            buffers: config.buffers,
            plain: config.plain,
            rules: config.rules,
            file,
            links_from,
        })
    }
}

fn check_flags(links: &[LinkSpec]) -> anyhow::Result<()> {
    if links.len() > LINKS_MAX {
        return Err(exit::usage(format!(
            "--link: {} links given, a node takes at most {LINKS_MAX}; endpoints may share one link",
            links.len()
        )));
    }
    let mut names = BTreeSet::new();
    for (at, link) in links.iter().enumerate() {
        let name = link.name(at + 1);
        if !names.insert(name.clone()) {
            return Err(exit::usage(format!(
                "--link: two links are named '{name}'; give each a name of its own"
            )));
        }
    }
    Ok(())
}

impl Settings {
    /// Opens the node.
    pub(crate) fn open(&self) -> anyhow::Result<Node> {
        self.builder().open().map_err(|error| self.told(error))
    }

    fn open_guest(&self) -> anyhow::Result<Node> {
        self.builder().guest().open().map_err(|error| self.told(error))
    }

    /// Says what opening would say about the links, without opening any.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let links = (1..).zip(&self.links).map(|(number, link)| link.config(number));
        links.into_iter().try_for_each(|link| link.check()).map_err(|error| self.told(error))
    }

    fn builder(&self) -> NodeBuilder {
        let mut builder = Node::builder();
        if let Some(name) = &self.name {
            builder = builder.name(name);
        }
        if let Some(dir) = &self.runtime_dir {
            builder = builder.runtime_dir(dir);
        }
        if self.isolated {
            builder = builder.isolated();
        }
        if let Some(budget) = self.processor {
            builder = builder.processor(budget);
        }
        for (number, link) in (1..).zip(&self.links) {
            builder = builder.link(link.config(number));
        }
        builder
    }

    /// A wrong link is wrong usage; a port in use is not.
    fn told(&self, error: OpenError) -> anyhow::Error {
        let from = &self.links_from;
        if matches!(error, OpenError::Link { .. } | OpenError::TooManyLinks(_)) {
            return exit::usage(format!("{from}: {error}"));
        }
        if matches!(error, OpenError::Transport { .. }) {
            let mend = format!("give {from} another port or address");
            return anyhow::anyhow!("cannot open the node: {error}; {mend}");
        }
        anyhow::anyhow!("cannot open the node: {error}")
    }
}

#[cfg(test)]
#[path = "node/tests.rs"]
mod tests;
