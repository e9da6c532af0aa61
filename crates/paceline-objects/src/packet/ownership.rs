//! The right of an owner to an object, by which two owners of one path become one.

use crate::codec::{PacketError, Reader, Writer};
use crate::ids::PeerId;

/// The right of an owner to an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ownership {
    /// The number of changes of the ownership. It wraps, so that no number is the last one: of two epochs the newer
    /// one is less than 2^31 after the other.
    pub epoch: u32,
    /// Whether the object passes to another participant that claims it with a higher rank. One that does not yield
    /// changes its owner only by a hand-over.
    pub yields: bool,
}

impl Default for Ownership {
    /// The first owner, who yields.
    fn default() -> Self {
        Self { epoch: 0, yields: true }
    }
}

impl Ownership {
    /// Returns the epoch of the next owner.
    #[must_use]
    pub const fn next_epoch(self) -> u32 {
        self.epoch.wrapping_add(1)
    }

    pub(super) fn write(self, writer: &mut Writer) {
        writer.varint(u64::from(self.epoch)).u8(u8::from(self.yields));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let epoch = reader.varint32()?;
        match reader.u8()? {
            0 => Ok(Self { epoch, yields: false }),
            1 => Ok(Self { epoch, yields: true }),
            other => Err(PacketError::Unknown(other)),
        }
    }
}

/// Returns whether an epoch is newer than another one.
#[must_use]
pub(crate) const fn is_newer(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than).cast_signed() > 0
}

/// Returns whether an owner outranks another one: the one that does not yield does, then the newer epoch, then the
/// lower number.
#[must_use]
pub(crate) fn outranks(one: (PeerId, Ownership), other: (PeerId, Ownership)) -> bool {
    if one.1.yields != other.1.yields {
        return other.1.yields;
    }
    if one.1.epoch == other.1.epoch {
        one.0 < other.0
    } else {
        is_newer(one.1.epoch, other.1.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_epoch_has_a_newer_one(epoch: u32, steps in 1..1_u32 << 31) {
            let next = Ownership { epoch, yields: true }.next_epoch();
            prop_assert!(is_newer(next, epoch) && !is_newer(epoch, next));
            prop_assert!(is_newer(epoch.wrapping_add(steps), epoch) || steps == 1 << 31);
            let (one, other) = (PeerId(1), PeerId(2));
            let new = Ownership { epoch: next, yields: true };
            let old = (one, Ownership { epoch, ..new });
            prop_assert!(outranks((other, new), old));
            let keeps = (other, Ownership { epoch, yields: false });
            prop_assert!(outranks(keeps, (one, new)));
            prop_assert!(!outranks((one, new), keeps));
        }
    }
}
