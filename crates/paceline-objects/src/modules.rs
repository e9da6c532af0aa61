//! The modules of an interactor: the association between the objects of an owner and an observer.
//!
//! Paper: West and Schwan 1997, section 4.1. An interactor names its modules. Here each has a small fixed set of
//! choices, so that admission knows the traffic and the cost of all of them.

use crate::codec::{PacketError, Reader, Writer};
use thiserror::Error;

/// The modules that an observer chooses for the updates of all owners. Consistency is not a choice: the owner writes,
/// and replicas apply its updates in the order of its time stamps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InteractorModules {
    /// The treatment of lost updates.
    pub error_control: ErrorControl,
    /// The treatment of changes that come sooner than the gap permits.
    pub policing: UpdatePolicing,
    /// The greatest size of a fragment with its header in bytes, from 512 to 65,536. Defaults to that of the owner,
    /// which is also the greatest.
    pub fragment_bytes: Option<u32>,
}

/// The treatment of lost updates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ErrorControl {
    /// The newest state is sent again after a loss.
    #[default]
    Acknowledged,
    /// Nothing is sent again: the next change or refresh carries what is missing. The beginning and the end of replicas
    /// are repeated nevertheless.
    Refreshed,
}

/// The treatment of changes that come sooner than the gap permits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UpdatePolicing {
    /// The newest waits until the gap has passed.
    #[default]
    Shape,
    /// They are dropped, so that no update waits for the gap: the next change or refresh carries it.
    Drop,
}

impl ErrorControl {
    /// All choices.
    pub const ALL: [Self; 2] = [Self::Acknowledged, Self::Refreshed];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Refreshed => "refreshed",
        }
    }
}

impl UpdatePolicing {
    /// All choices.
    pub const ALL: [Self; 2] = [Self::Shape, Self::Drop];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Drop => "drop",
        }
    }
}

impl InteractorModules {
    /// The sizes of fragments that may be chosen.
    const FRAGMENT_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

    /// Checks the values.
    ///
    /// # Errors
    /// A size of fragments that is out of range.
    pub fn check(&self) -> Result<(), ModulesError> {
        match self.fragment_bytes {
            Some(bytes) if !Self::FRAGMENT_BYTES.contains(&bytes) => Err(ModulesError(bytes)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the size of fragments from an owner whose own size is `bytes`.
    pub(crate) fn fragment_bytes(&self, bytes: usize) -> usize {
        let chosen = self.fragment_bytes.and_then(|chosen| usize::try_from(chosen).ok());
        chosen.map_or(bytes, |chosen| chosen.min(bytes))
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let Self { error_control, policing, fragment_bytes } = self;
        writer.u8(u8::from(*error_control == ErrorControl::Refreshed));
        writer.u8(u8::from(*policing == UpdatePolicing::Drop));
        writer.varint(u64::from(fragment_bytes.unwrap_or(0)));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let choice = |code: u8| match code {
            0 | 1 => Ok(usize::from(code)),
            other => Err(PacketError::Unknown(other)),
        };
        let error_control = choice(reader.u8()?)?;
        let policing = choice(reader.u8()?)?;
        let bytes = reader.varint32()?;
        Ok(Self {
            error_control: ErrorControl::ALL.get(error_control).copied().unwrap_or_default(),
            policing: UpdatePolicing::ALL.get(policing).copied().unwrap_or_default(),
            fragment_bytes: (bytes > 0).then_some(bytes),
        })
    }
}

/// The error of [`InteractorModules`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("fragment_bytes {0}: must be from 512 to 65536, such as 1200")]
pub struct ModulesError(pub u32);
