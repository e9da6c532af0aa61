//! The plain side of the node: open while the configuration says so.

use crate::args::Settings;
use crate::{exit, log};
use paceline::{DropReason, Node, default_runtime_dir};
use paceline_plain::{MESSAGE_BYTES_MAX, Plain, PlainConfig, PlainError};
use serde::Serialize;

/// The plain side, if there is one.
#[derive(Default)]
pub(super) struct PlainSide(Option<Plain>);

/// What the node says of it.
#[derive(Serialize)]
pub(super) struct PlainLine {
    pub(super) listen: Vec<String>,
    pub(super) connect: Vec<String>,
    pub(super) imports: usize,
    pub(super) exports: usize,
    pub(super) queries: usize,
}

impl PlainSide {
    /// Makes it what `settings` say. Rules that stay as they are go on undisturbed.
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

    /// Counts what Zenoh has given up: no rule was asked, since it never was a whole message.
    pub(super) fn count_given_up(&self, node: &Node) {
        let count = log::take_given_up();
        if count > 0 {
            node.note_dropped(DropReason::TooLarge, count);
            tracing::warn!(
                "plain programs sent {count} messages of more than {} MiB each, which is the most that Zenoh puts \
                 together here: they are dropped; send them in parts",
                MESSAGE_BYTES_MAX >> 20
            );
        }
    }
}

impl PlainLine {
    /// None if there is no plain side.
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        let PlainConfig { listen, connect, .. } = config(settings)?;
        let rules = &settings.rules;
        let (imports, exports) = (rules.imports.len(), rules.exports.len());
        Some(Self { listen, connect, imports, exports, queries: rules.queries.len() })
    }
}

/// Where plain programs are met: nowhere if nothing is said of them.
pub(super) fn config(settings: &Settings) -> Option<PlainConfig> {
    if settings.plain.is_none() && settings.rules.is_empty() {
        return None;
    }
    let mut config = settings.plain.clone().unwrap_or_default();
    if config.listen.is_empty() && config.connect.is_empty() {
        let dir = settings.runtime_dir.clone().unwrap_or_else(default_runtime_dir);
        config.listen = PlainConfig::default_listen(&dir);
        if settings.isolated {
            // Its folder may belong to another node of this host.
            config.listen.truncate(1);
        }
    }
    Some(config)
}
