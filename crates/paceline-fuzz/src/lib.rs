//! Fuzz bodies: functions that check invariants for arbitrary bytes.
//!
//! A body takes arbitrary bytes and panics if an invariant does not hold. The code under test must not panic
//! or exceed its bounds. A decoded value must survive encoding and decoding unchanged, and an error must
//! change nothing. The bodies of stateful parts (`ingress`, `link`) read the bytes as a history of inputs.
//! They compare the part with a reference model, which uses maps and vectors to be obviously correct.
//!
//! ```
//! for body in paceline_fuzz::BODIES {
//!     (body.run)(b"any bytes");
//! }
//! ```
//!
//! Invariant: a body depends on its bytes only, so a failing input fails again.
//!
//! Three callers share the bodies. `tests/corpus.rs` runs the files of `fuzz/corpus` and mutations of them.
//! `tests/models.rs` runs random histories and shrinks a failing one. `fuzz/` passes each body to cargo-fuzz.
//! A new body needs a function, a line in [`BODIES`], a target in `fuzz/` and seeds in `examples/corpus`.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a body is a test: it panics to report a failure"
)]

mod browser;
mod control;
mod files;
mod film;
pub mod films;
mod hostile;
mod ingress;
mod input;
mod intruder;
mod link;
pub mod mutate;
mod pictures;
mod player;
mod receiver;
mod recording;
mod repair;
mod rtp;
pub mod sched;
mod schedule;
pub mod speaker;
mod tags;
mod video;
mod webrtc;
mod wire;

pub use browser::browser;
pub use control::control;
pub use files::{png, sound, ulog, wav};
pub use film::film;
pub use hostile::{HostileOutcome, hostile};
pub use ingress::ingress;
pub use intruder::{IntruderOutcome, intruder};
pub use link::link;
pub use pictures::{encoding, jpeg, mjpeg, ros, y4m};
pub use player::{packetize, player};
pub use receiver::receiver;
pub use recording::recording;
pub use repair::repair;
pub use rtp::{camera, rtp};
pub use sched::body as sched;
pub use schedule::schedule;
pub use tags::tags;
pub use video::h264;
pub use webrtc::webrtc;
pub use wire::{frame, segments};

/// One fuzz body.
#[derive(Clone, Copy, Debug)]
pub struct FuzzBody {
    /// The name of the body, of its target in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The body, which panics if an invariant does not hold.
    pub run: fn(&[u8]),
    /// Mutations of each seed that an ordinary test runs; fewer for slow bodies.
    pub mutations: u32,
}

const fn body(name: &'static str, mutations: u32, run: fn(&[u8])) -> FuzzBody {
    FuzzBody { name, run, mutations }
}

/// All fuzz bodies.
pub const BODIES: &[FuzzBody] = &[
    body("frame", 2_000, frame),
    body("segments", 2_000, segments),
    body("receiver", 1_000, receiver),
    body("control", 2_000, control),
    body("tags", 2_000, tags),
    body("link", 300, link),
    body("repair", 100, repair),
    body("ingress", 300, ingress),
    body("sched", 500, sched),
    body("encoding", 2_000, encoding),
    body("jpeg", 3_000, jpeg),
    body("mjpeg", 3_000, mjpeg),
    body("y4m", 3_000, y4m),
    body("ros", 3_000, ros),
    body("png", 1_000, png),
    body("wav", 2_000, wav),
    body("sound", 10, sound),
    body("ulog", 2_000, ulog),
    body("h264", 3_000, h264),
    body("recording", 2_000, recording),
    body("schedule", 500, schedule),
    body("rtp", 2_000, rtp),
    body("camera", 2_000, camera),
    body("player", 2_000, player),
    body("packetize", 2_000, packetize),
    body("film", 500, film),
    body("browser", 5_000, browser),
    body("webrtc", 1_000, webrtc),
];
