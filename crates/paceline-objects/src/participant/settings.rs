//! The limits of a participant.

use crate::codec::varint_len;
use crate::exchange::ExchangeSettings;
use crate::packet::{Fragment, PATH_MAX, PeerDescription};
use thiserror::Error;

/// The limits of a participant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ParticipantSettings {
    /// The greatest size of a fragment with its header, in bytes, `l` of the paper: from 512 to 65,536.
    pub fragment_bytes: usize,
    /// The greatest number of own objects, from 1 to 1,000,000.
    pub objects_max: usize,
    /// The greatest number of replicas of one owner, from 1 to 1,000,000.
    pub replicas_max: usize,
    /// The greatest number of other participants, from 1 to 10,000.
    pub peers_max: usize,
    /// The greatest number of bytes of the objects and schemas of others, from 65,536 to 2^40; see [`Self::state_bytes_for`].
    /// One node uses up to seven eighths of it.
    pub state_bytes_max: usize,
    /// Whether own objects pass to a participant that claims them with a higher rank, as after a partition. Objects that
    /// do not yield change their owner only by a hand-over.
    pub yields: bool,
}

impl Default for ParticipantSettings {
    fn default() -> Self {
        Self {
            fragment_bytes: 1_200,
            objects_max: 20_000,
            replicas_max: 20_000,
            peers_max: 1_200,
            state_bytes_max: Self::state_bytes_for(20_000),
            yields: true,
        }
    }
}

impl ParticipantSettings {
    /// Returns the greatest size of an encoded group: a fragment with one introduced object.
    #[must_use]
    pub const fn group_bytes_max(&self) -> usize {
        self.fragment_bytes.saturating_sub(Fragment::HEADER + PATH_MAX + 48)
    }

    /// Returns the memory for the objects of others that suffices for so many small replicas: 128 MiB at least.
    #[must_use]
    pub const fn state_bytes_for(replicas: usize) -> usize {
        const LEAST: usize = 128 << 20;
        const EACH: usize = 1_280;
        let bytes = replicas.saturating_mul(EACH);
        if bytes > LEAST { bytes } else { LEAST }
    }

    pub(super) fn exchange(&self) -> ExchangeSettings {
        let defaults = ExchangeSettings::default();
        ExchangeSettings {
            // The length of a group.
            group_header_bytes: varint_len(self.group_bytes_max() as u64),
            objects_max: self.objects_max,
            objects_per_peer_max: defaults.objects_per_peer_max.max(self.objects_max),
            peers_max: self.peers_max,
            message_header_bytes: Fragment::HEADER,
            ..defaults
        }
    }

    pub(super) fn check(&self, name: &str) -> Result<(), SettingsError> {
        let range = |field, value, least, greatest| {
            if value < least || value > greatest {
                Err(SettingsError::Range { field, value, least, greatest })
            } else {
                Ok(())
            }
        };
        if name.is_empty() || name.len() > PeerDescription::NAME_MAX {
            return Err(SettingsError::Name(name.chars().take(80).collect()));
        }
        range("fragment_bytes", self.fragment_bytes, 512, 65_536)?;
        range("objects_max", self.objects_max, 1, 1_000_000)?;
        range("replicas_max", self.replicas_max, 1, 1_000_000)?;
        range("state_bytes_max", self.state_bytes_max, 65_536, 1 << 40)?;
        range("peers_max", self.peers_max, 1, 10_000)
    }
}

/// The error of a setting that is out of range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SettingsError {
    /// The name.
    #[error("name {0:?}: must have 1 to 64 bytes, such as pilot-1")]
    Name(String),
    /// A number.
    #[error("{field} {value}: must be from {least} to {greatest}")]
    Range {
        /// The name of the setting.
        field: &'static str,
        /// Its value.
        value: usize,
        /// The least permitted value.
        least: usize,
        /// The greatest permitted value.
        greatest: usize,
    },
}
