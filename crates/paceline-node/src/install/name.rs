//! The names of outputs.

use paceline_proto::Form;
use paceline_proto::ingress::OutputKey;
use paceline_proto::plan::OutputPlan;

/// The name of an output of a source: outputs to one target in one form differ by the scaling that this node
/// still applies.
pub(super) type Name = (OutputKey, Form);

pub(super) const fn name(plan: &OutputPlan) -> Name {
    (OutputKey::of(plan), plan.at_port())
}
