//! Link sharing: the classes of a link, their service curves and policers, and the scheduling
//! policy.
//!
//! A [`LinkClass`] claims the streams that match its tags. [`LinkConfig::class`] adds it to a link,
//! and [`Node::set_classes`] replaces the classes of a running node.
//!
//! [`LinkConfig::class`]: crate::LinkConfig::class
//! [`Node::set_classes`]: crate::Node::set_classes

pub use crate::error::{CapacityError, ClassesError};
#[doc(inline)]
pub use paceline_proto::link::{ClassError, ClassPolice, ClassTree, LinkClass, Match};
#[doc(inline)]
pub use paceline_sched::Policy;
#[doc(inline)]
pub use paceline_sched::curve::{Curve, CurveError};
#[doc(inline)]
pub use paceline_sched::hfsc::Curves;
