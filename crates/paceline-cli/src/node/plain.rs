//! The bridge to plain Zenoh programs, open while the configuration enables it.

use crate::config::Settings;
use paceline::status::DropReason;
use paceline::{Node, NodeBuilder};
use paceline_plain::{MESSAGE_BYTES_MAX, Plain, PlainConfig, PlainError};
use paceline_tool::{exit, log};
use serde::Serialize;

/// The bridge to plain Zenoh programs, if it is enabled.
#[derive(Default)]
pub(super) struct PlainSide(Option<Plain>);

/// The bridge in the node's status line.
#[derive(Serialize)]
pub(super) struct PlainLine {
    pub(super) listen: Vec<String>,
    pub(super) connect: Vec<String>,
    pub(super) imports: usize,
    pub(super) exports: usize,
    pub(super) queries: usize,
}

impl PlainSide {
    /// Applies `settings`. Unchanged rules keep running.
    pub(super) fn set(&mut self, node: &Node, settings: &Settings) -> anyhow::Result<()> {
        let Some(config) = config(settings) else {
            self.0 = None;
            return Ok(());
        };
        let rules = &settings.rules;
        log::watch_given_up();
        let set = match &mut self.0 {
            Some(plain) => plain.set(rules),
            None => Plain::open(node, &config, rules).map(|plain| self.0 = Some(plain)),
        };
        set.map_err(|error| {
            if matches!(error, PlainError::Endpoint(_) | PlainError::Conflict(_)) {
                return exit::usage(error);
            }
            error.into()
        })
    }

    /// Counts and logs the messages that Zenoh discarded because they were too long. No rule sees them: Zenoh
    /// never reassembled them.
    pub(super) fn count_given_up(&self, node: &Node) {
        let count = log::take_given_up();
        if count > 0 {
            node.note_dropped(DropReason::TooLarge, count);
            tracing::warn!(
                "dropped {count} messages of plain programs: each is larger than {} MiB, the \
                 limit of Zenoh's reassembly; send them in parts",
                MESSAGE_BYTES_MAX >> 20
            );
        }
    }
}

impl PlainLine {
    /// Returns `None` if the bridge is disabled.
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        let PlainConfig { listen, connect, .. } = config(settings)?;
        let rules = &settings.rules;
        let (imports, exports) = (rules.imports.len(), rules.exports.len());
        Some(Self { listen, connect, imports, exports, queries: rules.queries.len() })
    }
}

/// Returns the endpoints of the bridge, `None` if the settings do not mention plain programs.
pub(super) fn config(settings: &Settings) -> Option<PlainConfig> {
    if settings.plain.is_none() && settings.rules.is_empty() {
        return None;
    }
    let mut config = settings.plain.clone().unwrap_or_default();
    if config.listen.is_empty() && config.connect.is_empty() {
        let dir = settings.runtime_dir.clone().unwrap_or_else(NodeBuilder::default_runtime_dir);
        config.listen = PlainConfig::default_listen(&dir);
        if settings.isolated {
            // An isolated node shares its folder with other nodes: only the first default endpoint is its
            // own.
            config.listen.truncate(1);
        }
    }
    Some(config)
}
