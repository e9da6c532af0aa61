//! The packets of a world.
//!
//! Each starts with a version and a kind. A participant publishes a [`PeerDescription`] when it joins and whenever it changes,
//! and an [`ObserverView`] several times per second. Updates travel in [`Fragment`]s, each of them readable alone, and
//! ownership in a [`Hand`].

mod about;
mod fragment;
mod hand;
mod ownership;
mod view;

pub use about::PeerDescription;
pub use fragment::{Fate, Fragment, Introduction, UpdateRecord};
pub use hand::Hand;
pub use ownership::Ownership;
pub(crate) use ownership::{is_newer, outranks};
pub use view::{Claim, FragmentAck, ObserverView};

use crate::codec::{PacketError, Reader, Writer};
use crate::ids::PeerId;

/// The version of the packets.
const VERSION: u8 = 2;
/// The longest path of an object, in bytes.
pub(crate) const PATH_MAX: usize = 255;

/// A packet of a world.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// Updates of objects.
    Fragment(Fragment),
    /// The description of a participant.
    PeerDescription(PeerDescription),
    /// The position of an observer, and its acknowledgements.
    ObserverView(ObserverView),
    /// An object that another participant shall own.
    Hand(Hand),
}

/// The channel of a world on which a fragment is sent.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum UpdateClass {
    /// Under the contract of the observer.
    Promised,
    /// As best effort.
    BestEffort,
}

impl Packet {
    /// Returns the encoded packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        match self {
            Self::Fragment(fragment) => fragment.write(writer.u8(1)),
            Self::PeerDescription(about) => about.write(writer.u8(2)),
            Self::ObserverView(view) => view.write(writer.u8(3)),
            Self::Hand(hand) => hand.write(writer.u8(4)),
        }
        writer.finish()
    }

    /// Returns the participant that a packet names as its sender; `None` for bytes that are no packet. It is in the same
    /// place in all kinds.
    #[must_use]
    pub fn sender(bytes: &[u8]) -> Option<PeerId> {
        let mut reader = Reader::new(bytes);
        let (version, kind) = (reader.u8().ok()?, reader.u8().ok()?);
        let sender = reader.peer().ok()?;
        (version == VERSION && (1..=4).contains(&kind)).then_some(sender)
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// Bytes that are no packet of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(PacketError::Unknown(version));
        }
        let packet = match reader.u8()? {
            1 => Self::Fragment(Fragment::read(&mut reader)?),
            2 => Self::PeerDescription(PeerDescription::read(&mut reader)?),
            3 => Self::ObserverView(ObserverView::read(&mut reader)?),
            4 => Self::Hand(Hand::read(&mut reader)?),
            other => return Err(PacketError::Unknown(other)),
        };
        reader.end()?;
        Ok(packet)
    }
}

/// Returns whether a text can be the path of an object: chunks of letters, digits, `_`, `-` and `.`, separated by `/`.
pub(crate) fn is_path(path: &str) -> bool {
    path.len() <= PATH_MAX
        && path.split('/').all(|chunk| {
            !chunk.is_empty()
                && chunk.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        })
}

/// Reads the path of an object.
pub(crate) fn read_path(reader: &mut Reader<'_>) -> Result<String, PacketError> {
    let path = reader.text(PATH_MAX)?;
    if is_path(path) { Ok(path.to_owned()) } else { Err(PacketError::Form) }
}
