//! Shared objects: each participant of a world receives near objects often and exactly, and far ones seldom and
//! roughly.
//!
//! An object has typed fields in groups and one owner, who writes it. The others have replicas, as far as their
//! [`Interest`] reaches. The newest states of several objects share a message; an update that could not leave in time
//! is replaced by a newer one. With an [`ObjectContract`], the most important objects have a promised rate, delay and
//! fidelity, which the links reserve. The method is that of Dionisys (West and Schwan 1997).
//!
//! ```no_run
//! use paceline::world::{Interest, Schema};
//! use std::time::Duration;
//!
//! let node = paceline::Node::open()?;
//! let town = node.world("town").join()?;
//!
//! // An object of this participant.
//! let schema = Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}")?;
//! let car = town.create("car/7", &schema, &[("paint", "red".into())])?;
//! car.set(&[("position", [12.0, 0.0, 3.5].into())])?;
//!
//! // Others' objects: within 50 m up to 20 times per second, within 1 km once per second.
//! let near = (50.0, Duration::from_millis(50));
//! town.observe(Some(Interest::by_distance(&[near, (1_000.0, Duration::from_secs(1))])))?;
//! town.look([0.0, 0.0, 0.0], [0.0; 3], None);
//! for object in town.objects() {
//!     println!("{} of {}: {:?}", object.path, object.owner, object.value("position"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The programs in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/objects.md")]
struct Guide;

mod builder;
mod channels;
mod engine;
mod error;
mod handle;
mod jobs;
mod object;
mod report;
mod reservation;
mod service;
mod state;
mod trials;
mod worker;

pub use builder::WorldBuilder;
pub use error::WorldError;
pub use handle::SharedWorld;
pub use object::{ObjectView, SharedObject};
#[doc(inline)]
pub use paceline_objects::contract::DelayParts;
#[doc(inline)]
pub use paceline_objects::exchange::{
    ExchangeCounters, SuppressReason, UpdateConstraintError, UpdateConstraints,
};
#[doc(inline)]
pub use paceline_objects::interest::InterestError;
#[doc(inline)]
pub use paceline_objects::owned::ObjectError;
#[doc(inline)]
pub use paceline_objects::packet::{Claim, Ownership};
#[doc(inline)]
pub use paceline_objects::participant::{
    PacketCounts, ParticipantSettings, SettingsError, WorldEvent,
};
#[doc(inline)]
pub use paceline_objects::replicas::{ReplicaCounts, ReplicaEvent};
#[doc(inline)]
pub use paceline_objects::run_queue::{DecisionWorkers, RunOrder, WorkersError};
#[doc(inline)]
pub use paceline_objects::semantic::{
    DeclaredRule, DistanceStep, ExchangeTerms, FieldSource, PairFacts, PairView, SemanticError,
    SemanticFunction,
};
#[doc(inline)]
pub use paceline_objects::{
    ErrorControl, FieldKind, FieldValue, GroupMask, InteractorModules, Interest, InterestContract,
    InterestRule, ObjectContract, ObjectContractError, ObjectIndex, PeerId, Schema, SchemaError,
    UpdatePolicing,
};
pub use report::{ObserverReport, ParticipantReport, WorldReport};
pub use service::{ServiceEvent, ServiceOffer};
