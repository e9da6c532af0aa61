//! Cameras of other protocols, mapped to samples: RTSP addresses and logins, RTP packets to pictures and blocks of sound,
//! RTCP sender reports to capture times, and the times of reconnection. Without I/O.
//!
//! The central values are a [`Depacketizer`] per track, which cuts packets into units, and a [`Gate`], which lets units pass
//! that can be decoded:
//!
//! ```
//! use paceline_edge::{Depacketizer, RtpEvent, RtpPacket, TrackFormat};
//!
//! let mut sound = Depacketizer::new(TrackFormat::Pcmu { rate: 8_000, channels: 1 });
//! let mut events = Vec::new();
//! sound.push(&RtpPacket { time: 160, marker: false, lost: 0, payload: &[0xff; 160] }, &mut events);
//! assert_eq!(events, [RtpEvent::Unit { time: 160, bytes: vec![0xff; 160] }]);
//! ```
//!
//! | item | purpose |
//! |---|---|
//! | [`CameraAddress`], [`Login`] | the address of a camera without its password, and the password without a printed form |
//! | [`TrackFormat`], [`choose`] | the tracks of a camera that can be published |
//! | [`RtpTrack`], [`PacketOrder`] | RTP without RTSP: the tracks of a session description, and packets in their order |
//! | [`Depacketizer`] | RTP packets to pictures and blocks, cut by RTP time and marker |
//! | [`Gate`] | the pictures that can be decoded after a loss |
//! | [`Losses`] | the pictures that were left out, by reason |
//! | [`CaptureClock`] | capture times with a bound, from sender reports and arrivals |
//! | [`Backoff`] | the times of reconnection |
//!
//! Invariant: any bytes may arrive. A unit that lost a packet is a [`UnitFault`] with a reason, never a unit. Memory is bounded by
//! the largest unit of [`paceline_media::video::UNIT_BYTES_MAX`]. This crate reads no clock, opens nothing and starts no thread.

mod address;
mod backoff;
mod clock;
mod depacketize;
mod fault;
mod fmtp;
mod gate;
mod order;
mod sdp;
mod track;

pub use address::{AddressError, CameraAddress, Login, LoginError};
pub use backoff::Backoff;
pub use clock::{CaptureClock, Captured};
pub use depacketize::{Depacketizer, RtpEvent, RtpPacket};
pub use fault::{Losses, UnitFault};
pub use gate::Gate;
pub use order::{ArrivedPacket, OrderedPacket, PacketOrder};
pub use sdp::{RtpTrack, SDP_BYTES_MAX, SdpError};
pub use track::{DescribedTrack, TrackError, TrackFormat, TrackKind, choose};
