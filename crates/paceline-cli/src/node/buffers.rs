//! The pull buffers that a node keeps for other nodes.

use crate::args::BufferSpec;
use paceline::pull::Buffer;
use paceline::{Node, SubscribeError};
use paceline_tool::exit;

/// The open buffers; dropping a buffer closes it.
#[derive(Default)]
pub(super) struct Buffers(Vec<(BufferSpec, Buffer)>);

impl Buffers {
    /// Opens the buffers of `specs` and closes all others. Unchanged buffers keep their samples.
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
    let declare = || node.buffer(spec.pattern.as_str()).history(spec.history).declare();
    declare().map_err(|error| {
        if matches!(error, SubscribeError::Closed) {
            return error.into();
        }
        exit::usage(format!("buffer {}: {error}", spec.pattern))
    })
}
