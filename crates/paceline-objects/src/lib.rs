//! Shared objects: each participant of a world receives near objects often and exactly, and far ones seldom and
//! roughly.
//!
//! The central value is [`Participant`]: its objects, its replicas, and the packets between it and other participants. Packets
//! and the time go in; packets, events and the next wake-up come out:
//!
//! ```
//! use paceline_objects::participant::{Destination, ReceivedPacket, WorldTime};
//! use paceline_objects::{
//!     FieldKind, FieldValue, Interest, Participant, ParticipantSettings, PeerId, Schema,
//! };
//! use paceline_objects::packet::UpdateClass;
//! use paceline_sched::{Duration, Instant};
//!
//! let mut now = Instant::from_millis(1_000);
//! let settings = ParticipantSettings::default();
//! let mut world = [1, 2].map(|id| Participant::new(PeerId(id), "peer", settings, now).unwrap());
//! let tank = Schema::new("tank", 1).group("state").field("fuel", FieldKind::Int).finish().unwrap();
//! world[0].create("tank/7", &tank, &[("fuel", FieldValue::Int(80))], now).unwrap();
//! world[1].observe(Some(Interest::every(Duration::from_millis(100)))).unwrap();
//!
//! for _ in 0..1_000 {
//!     now = now + Duration::from_millis(1);
//!     let time = WorldTime { now, stamp: now.as_nanos(), error: 0 };
//!     for from in [0, 1] {
//!         world[from].poll(time); // returns the latest instant of the next call
//!         while let Some(packet) = world[from].outgoing() {
//!             let class = match packet.to {
//!                 Destination::Peer(_, class) => class,
//!                 Destination::PeerDescription | Destination::ObserverView => UpdateClass::BestEffort,
//!             };
//!             let received = ReceivedPacket {
//!                 bytes: &packet.payload,
//!                 class,
//!                 age: Duration::ZERO,
//!                 node: 0,
//!                 channel: Some(world[from].id()),
//!             };
//!             world[1 - from].receive(&received, time).unwrap();
//!         }
//!     }
//! }
//! let replica = world[1].replicas().get("tank/7").unwrap();
//! assert_eq!(replica.value("fuel"), Some(&FieldValue::Int(80)));
//! ```
//!
//! An object has typed fields in groups and one owner, who writes it. Other participants have replicas. A semantic
//! function decides when an update of an object is due at a participant, and at which fidelity; the exchange list
//! orders these times; a message carries the newest state of several objects to one participant. The method is that
//! of Dionisys (West and Schwan 1997, sections 2 and 3).
//!
//! Invariant: an object has one owner, its replicas apply updates in the order of their time stamps, and updates of an
//! object to one participant are never closer together than its contract allows. Nothing here reads a clock or opens
//! anything: the current time is an argument.
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
