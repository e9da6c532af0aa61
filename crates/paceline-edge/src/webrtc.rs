//! WebRTC without I/O: offers and answers, pictures and sound to the RTP of one peer, and requests for key pictures
//! (docs/guides/webrtc.md).

mod clock;
mod codecs;
mod offer;
mod peer;
mod publisher;
mod repair;
mod setup;
mod stun;
mod viewer;

#[cfg(test)]
mod tests;

pub use clock::ViewerClock;
pub use codecs::browser_format;
pub use offer::{OFFER_BYTES_MAX, OfferError, WebrtcOffer};
pub use peer::{PeerDatagram, PeerEvent, PeerFigures};
pub use publisher::{PublishedUnit, PublisherPeer};
pub use repair::KeyRepair;
pub use setup::PeerSetup;
pub use stun::stun_user;
pub use viewer::{ViewerPeer, ViewerUnit};
