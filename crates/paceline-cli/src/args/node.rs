//! The flags that every command with a node has.

use super::LinkSpec;
use crate::exit;
use paceline::{Node, NodeBuilder, OpenError};
use std::path::PathBuf;

/// How a command opens its node.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct NodeArgs {
    /// What people call this node; host name and process number if not said
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A link, at most two: name=radio,listen=tcp/127.0.0.1:7600,connect=tcp/HOST:7600,
    /// capacity=2mbit,policy=vds|dwcs|fifo,insecure
    #[arg(long, value_name = "SPEC")]
    pub(crate) link: Vec<LinkSpec>,
    /// The folder that joins the processes of this host; $PACELINE_RUNTIME_DIR if not said
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Stays apart from the other processes of this host: only the links given
    #[arg(long)]
    pub(crate) isolated: bool,
}

impl NodeArgs {
    /// Opens the node.
    pub(crate) fn open(&self) -> anyhow::Result<Node> {
        self.builder()?.open().map_err(opening)
    }

    /// Opens the node of a command that looks and leaves: nobody comes to depend on it.
    pub(crate) fn open_guest(&self) -> anyhow::Result<Node> {
        self.builder()?.guest().open().map_err(opening)
    }

    fn builder(&self) -> anyhow::Result<NodeBuilder> {
        if self.link.len() > 2 {
            return Err(exit::usage(format!(
                "--link: {} links given, a node takes at most 2; endpoints may share one link",
                self.link.len()
            )));
        }
        if let [first, second] = self.link.as_slice()
            && first.name(1) == second.name(2)
        {
            let name = first.name(1);
            return Err(exit::usage(format!(
                "--link: two links are named '{name}'; give each a name of its own"
            )));
        }
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
        for (number, link) in (1..).zip(&self.link) {
            builder = builder.link(link.config(number));
        }
        Ok(builder)
    }
}

/// A wrong link is wrong usage; a port in use is not.
fn opening(error: OpenError) -> anyhow::Error {
    if matches!(error, OpenError::Link { .. } | OpenError::TooManyLinks(_)) {
        return exit::usage(format!("--link: {error}"));
    }
    let transport = matches!(error, OpenError::Transport { .. });
    let mend = if transport { "; give --link another port or address" } else { "" };
    anyhow::anyhow!("cannot open the node: {error}{mend}")
}
