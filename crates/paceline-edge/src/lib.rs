//! Cameras and players of other protocols. Cameras are mapped to samples: RTSP addresses and logins, RTP packets to pictures and
//! blocks of sound, RTCP sender reports to capture times, and the times of reconnection. Samples are mapped to players: the server
//! side of RTSP, pictures and sound to RTP packets, and reports. Without I/O.
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
//! | [`PlayerReader`], [`PlayerSession`] | the requests of a player, and their answers |
//! | [`PlayerTarget`], [`describe`] | the address that a player opens, and the description of its samples |
//! | [`Packetizer`] | pictures and blocks to the payloads of RTP packets |
//! | [`PictureClock`], [`SoundClock`], [`CatchUp`] | RTP times |
//! | [`PeerSetup`], [`WebrtcOffer`], [`ViewerPeer`] | a viewer over WebRTC: its offer and answer, datagrams, and units to RTP |
//! | [`PublisherPeer`] | a publisher over WebRTC: its offer and answer, and its media to samples |
//! | [`ViewerClock`], [`KeyRepair`], [`stun_user`] | the times of viewers that do not reorder, requests for key pictures, and the session of a check |
//! | [`RtpHeader`], [`SentReport`], [`PlayerReport`] | headers, and reports in both directions |
//!
//! Invariant: any bytes may arrive. A unit that lost a packet is a [`UnitFault`] with a reason, never a unit. Memory is bounded by
//! the largest unit of [`paceline_media::video::UNIT_BYTES_MAX`]. This crate reads no clock, opens nothing and starts no thread.

mod address;
mod backoff;
pub mod browser;
mod clock;
mod depacketize;
mod fault;
mod fmtp;
mod gate;
mod order;
mod packetize;
mod player;
mod rtp;
mod sdp;
mod served;
mod timing;
mod track;
mod webrtc;

pub use address::{AddressError, CameraAddress, Login, LoginError};
pub use backoff::Backoff;
pub use clock::{CaptureClock, Captured};
pub use depacketize::{Depacketizer, RtpEvent, RtpPacket};
pub use fault::{Losses, UnitFault};
pub use gate::Gate;
pub use order::{ArrivedPacket, OrderedPacket, PacketOrder};
pub use packetize::{PAYLOAD_MAX, PacketizeError, Packetizer, PayloadPart};
pub use player::{
    Challenge, DescribedSamples, LoginCheck, PlayerAnswer, PlayerMessage, PlayerMethod,
    PlayerReader, PlayerRequest, PlayerSession, PlayerStatus, PlayerStep, PlayerTarget,
    PlayerTransport, RtspError, SESSION_SECONDS, SetUpTrack, TRACKS_MAX, TargetError,
    TransportError, describe,
};
pub use rtp::{PlayerReport, RTP_HEADER_BYTES, Reception, RtpHeader, SentReport};
pub use sdp::{RtpTrack, SDP_BYTES_MAX, SdpError};
pub use served::ServeError;
pub use timing::{CatchUp, PictureClock, SoundClock, ticks};
pub use track::{DescribedTrack, TrackError, TrackFormat, TrackKind, choose};
pub use webrtc::{
    KeyRepair, OFFER_BYTES_MAX, OfferError, PeerDatagram, PeerEvent, PeerFigures, PeerSetup,
    PublishedUnit, PublisherPeer, ViewerClock, ViewerPeer, ViewerUnit, WebrtcOffer, browser_format,
    stun_user,
};
