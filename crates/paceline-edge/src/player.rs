//! The server side of RTSP (RFC 2326): the requests of one player, and the answers.

mod answer;
mod description;
mod digest;
mod message;
mod session;
mod target;
mod transport;

#[cfg(test)]
mod tests;

pub use answer::{PlayerAnswer, PlayerStatus};
pub use description::{DescribedSamples, describe};
pub use digest::{Challenge, LoginCheck};
pub use message::{PlayerMessage, PlayerMethod, PlayerReader, PlayerRequest, RtspError};
pub use session::{PlayerSession, PlayerStep, SESSION_SECONDS, SetUpTrack};
pub use target::{PlayerTarget, TRACKS_MAX, TargetError};
pub use transport::{PlayerTransport, TransportError};
