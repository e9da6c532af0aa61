//! The pull buffers that a node keeps for others.

use crate::args::BufferSpec;
use crate::exit;
use paceline::{Buffer, Node, SubscribeError};

/// The open buffers; they hold until they are dropped.
#[derive(Default)]
pub(super) struct Buffers(Vec<(BufferSpec, Buffer)>);

impl Buffers {
    /// Makes `specs` the buffers of the node. Those that stay as they are keep what they hold.
    pub(super) fn set(&mut self, node: &Node, specs: &[BufferSpec]) -> anyhow::Result<()> {
        self.0.retain(|(spec, _)| specs.contains(spec));
        for spec in specs {
            if !self.0.iter().any(|(open, _)| open == spec) {
                self.0.push((spec.clone(), hold(node, spec)?));
            }
        }
        Ok(())
    }
}

fn hold(node: &Node, spec: &BufferSpec) -> anyhow::Result<Buffer> {
    let declare = || node.buffer(spec.pattern.as_str())?.history(spec.history).declare();
    declare().map_err(|error| {
        if matches!(error, SubscribeError::Closed) {
            return error.into();
        }
        exit::usage(format!("buffer {}: {error}", spec.pattern))
    })
}
