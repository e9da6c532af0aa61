//! Shared objects: each participant of a world receives near objects often and exactly, and far ones seldom and
//! roughly.
//!
//! An object has typed fields in groups and one owner, who writes it. Other participants have replicas. A semantic
//! function decides when an update of an object is due at a participant, and at which fidelity; the exchange list
//! orders these times; a message carries the newest state of several objects to one participant. The method is that
//! of Dionisys (West and Schwan 1997, sections 2 and 3).
//!
//! Nothing here reads a clock or opens anything: the current time is an argument.
//!
//! * [`schema`]: the fields of an object, and their values.
//! * [`contract`]: the service of one object for one participant, and its mapping to messages and packets.
//! * [`motion`]: positions, velocities and extrapolation.
//! * [`semantic`]: when, with whom and at which fidelity an object is exchanged.
//! * [`exchange`]: the exchange list and slots of an owner.
//! * [`grid`]: the index of positions.
//! * [`inbox`]: packets that wait.
//! * [`shares`]: how nodes share limited places.
//! * [`run_queue`]: the order of the jobs of a semantic function on its workers.

mod budget;
mod codec;
pub mod contract;
pub mod exchange;
mod flight;
pub mod grid;
pub mod ids;
pub mod inbox;
pub mod interest;
pub mod modules;
pub mod motion;
pub mod owned;
pub mod pack;
pub mod packet;
pub mod participant;
mod receipts;
pub mod replica;
pub mod replicas;
pub mod run_queue;
pub mod schema;
pub mod semantic;
pub mod shares;
mod table;

pub use codec::PacketError;
pub use contract::{ObjectContract, ObjectContractError};
pub use ids::{ObjectIndex, PeerId};
pub use interest::{Interest, InterestContract, InterestRule};
pub use modules::{ErrorControl, InteractorModules, UpdatePolicing};
pub use motion::Motion;
pub use participant::{Participant, ParticipantSettings};
pub use schema::{FieldKind, FieldValue, FieldValues, GroupMask, Schema, SchemaError};
