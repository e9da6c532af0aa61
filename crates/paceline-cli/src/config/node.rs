//! The flags shared by every command that opens a node, and their combination with a configuration
//! file.

use super::{Config, find, load};
use crate::args::{self, BufferSpec, LinkSpec, SourceSpec};
use paceline::contract::CpuBudget;
use paceline::time::ClockConfig;
use paceline::{Node, NodeBuilder, OpenError};
use paceline_http::{Access, HttpAddress, HttpFiles, RtspAddress, WebrtcAddress, read_login};
use paceline_plain::{PlainConfig, Rules};
use paceline_tool::host::this_host;
use paceline_tool::{exit, log};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Options that configure the command's node.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct NodeArgs {
    /// Name of this node for display; default: the command and the tag, such as sub-camera
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub(crate) name: Option<String>,
    /// A link, at most 16: name=radio,listen=tcp/127.0.0.1:7600,connect=tcp/HOST:7600,
    /// capacity=2mbit,medium=field-radio,policy=vds|dwcs|edf|…,insecure
    #[arg(long, value_name = "SPEC")]
    pub(crate) link: Vec<LinkSpec>,
    /// Policy file: the rights of other nodes at this one; default: peers that connect with a certificate have none
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// File with a token that grants this node rights at others
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    /// Folder shared by the processes of this host; default: $PACELINE_RUNTIME_DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Does not connect to the other processes of this host; uses only the given links
    #[arg(long, conflicts_with = "runtime_dir")]
    pub(crate) isolated: bool,
    /// Configuration file; flags override it; `paceline node --print-config` shows its keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The merged settings of a node. Flags override the environment, which overrides the configuration
/// file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// The display name of the node.
    pub(crate) name: Option<String>,
    /// The text from which the default name is made.
    pub(crate) label: String,
    /// The folder shared by the processes of this host.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Whether the node stays disconnected from the other processes of this host.
    pub(crate) isolated: bool,
    /// The log filter from the file.
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
    /// The files for clients of other hosts.
    pub(crate) http_files: HttpFiles,
    /// The share of one processor that contracts may reserve, in percent.
    pub(crate) processor_percent: Option<u32>,
    /// The queue space for contracts on all links and for subscribers, in bytes.
    pub(crate) host_buffer: Option<u64>,
    /// The memory for the input of all neighbours, in bytes.
    pub(crate) neighbour_memory: Option<u64>,
    /// The processor costs per sample; only the host's node has them.
    pub(crate) processor: Option<CpuBudget>,
    /// Real-time priorities for the node's threads.
    pub(crate) realtime: bool,
    /// The servers and the address of the clock.
    pub(crate) clock: Option<ClockConfig>,
    pub(crate) links: Vec<LinkSpec>,
    /// The policy file.
    pub(crate) policy: Option<PathBuf>,
    /// The file of this node's token.
    pub(crate) token: Option<PathBuf>,
    /// The pull buffers of the node.
    pub(crate) buffers: Vec<BufferSpec>,
    /// What the node publishes itself.
    pub(crate) sources: Vec<SourceSpec>,
    /// The endpoints for plain Zenoh programs.
    pub(crate) plain: Option<PlainConfig>,
    /// The import and export rules for plain Zenoh programs.
    pub(crate) rules: Rules,
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// The origin of the links for error messages: `--link` or the path of the file.
    pub(crate) links_from: String,
}

impl NodeArgs {
    /// Opens the node of the command `command` for a tag or pattern; both make its default name.
    pub(crate) fn open(&self, command: &str, tag: &str) -> anyhow::Result<Node> {
        Settings { label: label(command, tag), ..self.command_settings()? }.open()
    }

    /// Opens the node of a short-lived command. Other processes do not come to depend on a guest
    /// node.
    pub(crate) fn open_guest(&self, command: &str) -> anyhow::Result<Node> {
        Settings { label: command.to_owned(), ..self.command_settings()? }.open_guest()
    }

    /// Returns the settings of this host's node. All keys of the file apply, whether it was named
    /// or found.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let file = self.config.clone().or_else(find);
        let config = file.as_deref().map(load).transpose()?.unwrap_or_default();
        self.merge(config, file)
    }

    /// Returns the settings of any other command's node. A file that was found by default
    /// configures the host's node. Such a command takes over only the settings that all processes
    /// of the host must share. Name and links stay with the host's node.
    fn command_settings(&self) -> anyhow::Result<Settings> {
        let mut settings = self.settings()?;
        log::configure(settings.log.as_deref());
        if self.config.is_none() {
            let mut own = self.merge(Config::default(), None)?;
            own.runtime_dir = settings.runtime_dir;
            return Ok(own);
        }
        if !settings.buffers.is_empty() {
            tracing::warn!(
                "ignoring [[buffer]] of the configuration: only `paceline node` uses it"
            );
            settings.buffers.clear();
        }
        if !settings.sources.is_empty() {
            tracing::warn!(
                "ignoring [[source]] of the configuration: only `paceline node` uses it"
            );
            settings.sources.clear();
        }
        if settings.plain.take().is_some() || !settings.rules.is_empty() {
            tracing::warn!(
                "ignoring [plain], [[import]], [[export]] and [[query]] of the configuration: \
                 only `paceline node` uses them"
            );
            settings.rules = Rules::default();
        }
        Ok(settings)
    }

    /// Merges the sources: flags override the environment, which overrides `config`.
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
            label: this_host().unwrap_or_else(|| "node".to_owned()),
            runtime_dir: self.runtime_dir.clone().or(configured),
            isolated: self.isolated || config.isolated,
            log: config.log,
            http: config.http,
            foxglove: config.foxglove,
            rtsp: config.rtsp,
            rtsp_login: config.rtsp_login,
            webrtc: config.webrtc,
            http_files: config.http_files,
            processor_percent: config.processor_percent,
            host_buffer: config.host_buffer,
            neighbour_memory: config.neighbour_memory,
            processor: None,
            realtime: config.realtime.unwrap_or(false),
            links,
            policy: self.policy.clone().or(config.policy),
            token: self.token.clone().or(config.token),
            clock: config.clock,
            buffers: config.buffers,
            sources: config.sources,
            plain: config.plain,
            rules: config.rules,
            file,
            links_from,
        })
    }
}

/// Returns the default name of a command's node: the command and the last part of its tag.
fn label(command: &str, tag: &str) -> String {
    match tag.split('/').rfind(|part| !part.is_empty() && !part.contains('*')) {
        Some(last) => format!("{command}-{last}"),
        None => command.to_owned(),
    }
}

fn check_flags(links: &[LinkSpec]) -> anyhow::Result<()> {
    if links.len() > Node::LINKS_MAX {
        return Err(exit::usage(format!(
            "--link: {} links given, a node has at most {max}; one link can have several endpoints",
            links.len(),
            max = Node::LINKS_MAX
        )));
    }
    let mut names = BTreeSet::new();
    for (at, link) in links.iter().enumerate() {
        let name = link.name(at + 1);
        if !names.insert(name.clone()) {
            return Err(exit::usage(format!(
                "--link: two links are named '{name}'; give each link a unique name"
            )));
        }
    }
    Ok(())
}

impl Settings {
    pub(crate) fn open(&self) -> anyhow::Result<Node> {
        self.builder().open().map_err(|error| self.explain(error))
    }

    fn open_guest(&self) -> anyhow::Result<Node> {
        self.builder().guest().open().map_err(|error| self.explain(error))
    }

    /// Validates the links as opening the node would, without opening any.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let links = (1..).zip(&self.links).map(|(number, link)| link.config(number));
        links.into_iter().try_for_each(|link| link.check()).map_err(|error| self.explain(error))?;
        let access =
            Access::read(&self.http_files).map_err(|error| exit::usage(format!("{error:#}")))?;
        let is_complete = access.is_some_and(|access| access.is_complete());
        for (address, option) in [(&self.http, "--http"), (&self.foxglove, "--foxglove")] {
            if let Some(open) = address.as_ref().filter(|it| !it.is_local() && !is_complete) {
                return Err(exit::usage(open.needs(option)));
            }
        }
        self.check_webrtc()?;
        let login = self.rtsp_login.as_deref().map(read_login).transpose()?;
        if let Some(rtsp) = &self.rtsp {
            rtsp.check(login.is_some()).map_err(exit::usage)?;
        }
        self.clock.iter().try_for_each(ClockConfig::check_keys).map_err(exit::usage)?;
        match &self.policy {
            Some(policy) => paceline::check_policy(policy).map(drop).map_err(exit::usage),
            None => Ok(()),
        }
    }

    /// Checks that the sessions of WebRTC have an address at which they begin.
    pub(crate) fn check_webrtc(&self) -> anyhow::Result<()> {
        match (&self.webrtc, &self.http) {
            (Some(webrtc), None) => Err(exit::usage(format!(
                "--webrtc {webrtc}: sessions begin at the HTTP server; add --http 127.0.0.1:8470"
            ))),
            (Some(_), Some(_)) | (None, _) => Ok(()),
        }
    }

    fn builder(&self) -> NodeBuilder {
        let mut builder = Node::builder();
        if let Some(name) = &self.name {
            builder = builder.name(name);
        }
        builder = builder.label(&self.label);
        if let Some(dir) = &self.runtime_dir {
            builder = builder.runtime_dir(dir);
        }
        if self.isolated {
            builder = builder.isolated();
        }
        builder = builder.realtime(self.realtime);
        if let Some(bytes) = self.host_buffer {
            builder = builder.host_buffer(bytes);
        }
        if let Some(bytes) = self.neighbour_memory {
            builder = builder.neighbour_memory(bytes);
        }
        if let Some(budget) = self.processor {
            builder = builder.processor(budget);
        }
        for (number, link) in (1..).zip(&self.links) {
            builder = builder.link(link.config(number));
        }
        if let Some(policy) = &self.policy {
            builder = builder.policy(policy);
        }
        if let Some(clock) = &self.clock {
            builder = builder.clock(clock.clone());
        }
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        builder
    }

    /// Turns an open error into the command's error: an invalid link is a usage error, a port in
    /// use is not.
    fn explain(&self, error: OpenError) -> anyhow::Error {
        let from = &self.links_from;
        if matches!(error, OpenError::Link { .. } | OpenError::TooManyLinks(_)) {
            return exit::usage(format!("{from}: {error}"));
        }
        if let OpenError::Access(what) | OpenError::Clock(what) = error {
            return exit::usage(what);
        }
        if matches!(error, OpenError::Transport { .. }) {
            return anyhow::anyhow!("cannot open the node: {from}: {error}");
        }
        anyhow::anyhow!("cannot open the node: {error}")
    }
}

#[cfg(test)]
#[path = "node/tests.rs"]
mod tests;
