//! The document of `paceline clock --json`, described in docs/reference/json.md.

use paceline::time::ClockReport;
use serde::Serialize;

/// The state of a clock.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClockDocument {
    schema: u32,
    /// The name of its node; `None` for servers that were measured without a node.
    pub(crate) node: Option<String>,
    #[serde(flatten)]
    pub(crate) clock: ClockReport,
}

impl ClockDocument {
    /// Returns the document of a clock; `node` is the name of its node.
    pub(crate) const fn new(node: Option<String>, clock: ClockReport) -> Self {
        Self { schema: 1, node, clock }
    }
}
