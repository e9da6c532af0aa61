//! The position of an observer, and its acknowledgements.

use super::{Ownership, UpdateClass, read_path};
use crate::codec::{PacketError, Reader, Writer};
use crate::contract::DelayParts;
use crate::ids::PeerId;
use paceline_sched::Duration;

/// The position of an observer, and its acknowledgements: a sample for all owners, several times per second.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserverView {
    /// The observer.
    pub peer: PeerId,
    /// The number of this view; a lower one than the last is old.
    pub number: u32,
    /// Its position and velocity, if it has them.
    pub motion: Option<([f64; 3], [f64; 3])>,
    /// The direction of its view, a vector of any length; `None` sees in all directions.
    pub direction: Option<[f64; 3]>,
    /// The times of its modules, as an owner and as an observer.
    pub parts: DelayParts,
    /// The received fragments.
    pub acks: Vec<FragmentAck>,
    /// Objects of which it knows the ownership better than an owner does.
    pub claims: Vec<Claim>,
    /// Whether it leaves.
    pub leaving: bool,
}

/// The fragments of one owner and class that an observer has received, as ranges of their numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FragmentAck {
    /// The owner.
    pub owner: PeerId,
    /// The class.
    pub class: UpdateClass,
    /// How often the observer has forgotten this owner: after a change all objects must be introduced again.
    pub generation: u32,
    /// The run of its fragments.
    pub run: u32,
    /// The ranges, both ends included, newest first.
    pub ranges: Vec<(u32, u32)>,
}

/// Who owns an object, as far as an observer knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// The path of the object.
    pub path: String,
    /// Its owner.
    pub owner: PeerId,
    /// The right of the owner.
    pub ownership: Ownership,
}

impl ObserverView {
    /// The greatest number of owners, of ranges for each, and of claims.
    pub const ACKS_MAX: usize = 4_096;
    /// The greatest number of ranges of an [`FragmentAck`].
    pub const RANGES_MAX: usize = 32;
    /// The greatest number of claims.
    pub const CLAIMS_MAX: usize = 128;

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.peer(self.peer).u32(self.number);
        let flags = u8::from(self.motion.is_some())
            | u8::from(self.direction.is_some()) << 1
            | u8::from(self.leaving) << 2;
        writer.u8(flags);
        if let Some((position, velocity)) = &self.motion {
            position.iter().for_each(|part| {
                writer.f64(*part);
            });
            velocity.iter().for_each(|part| {
                writer.f32(*part);
            });
        }
        for part in self.direction.iter().flatten() {
            writer.f32(*part);
        }
        let DelayParts { deciding, fragmenting, sending, observer } = self.parts;
        for part in [deciding, fragmenting, sending, observer] {
            writer.varint(part.as_nanos());
        }
        writer.varint(self.acks.len() as u64);
        for FragmentAck { owner, class, generation, run, ranges } in &self.acks {
            writer
                .peer(*owner)
                .u8(u8::from(*class == UpdateClass::Promised))
                .varint(u64::from(*generation))
                .varint(u64::from(*run))
                .varint(ranges.len() as u64);
            for (first, last) in ranges {
                writer.u32(*last).varint(u64::from(last.wrapping_sub(*first)));
            }
        }
        writer.varint(self.claims.len() as u64);
        for Claim { path, owner, ownership } in &self.claims {
            ownership.write(writer.text(path).peer(*owner));
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let (peer, number, flags) = (reader.peer()?, reader.u32()?, reader.u8()?);
        if flags > 7 {
            return Err(PacketError::Unknown(flags));
        }
        let motion = if flags & 1 == 0 {
            None
        } else {
            Some((
                [reader.f64()?, reader.f64()?, reader.f64()?],
                [reader.f32()?, reader.f32()?, reader.f32()?],
            ))
        };
        let direction =
            if flags & 2 == 0 { None } else { Some([reader.f32()?, reader.f32()?, reader.f32()?]) };
        let mut part = || reader.varint().map(Duration::from_nanos);
        let (deciding, fragmenting, sending, observer) = (part()?, part()?, part()?, part()?);
        let parts = DelayParts { deciding, fragmenting, sending, observer };
        let acks = (0..reader.count(Self::ACKS_MAX)?)
            .map(|_| FragmentAck::read(reader))
            .collect::<Result<_, _>>()?;
        let claims = (0..reader.count(Self::CLAIMS_MAX)?)
            .map(|_| {
                Ok(Claim {
                    path: read_path(reader)?,
                    owner: reader.peer()?,
                    ownership: Ownership::read(reader)?,
                })
            })
            .collect::<Result<_, PacketError>>()?;
        Ok(Self { peer, number, motion, direction, parts, acks, claims, leaving: flags & 4 != 0 })
    }
}

impl FragmentAck {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let owner = reader.peer()?;
        let class = match reader.u8()? {
            0 => UpdateClass::BestEffort,
            1 => UpdateClass::Promised,
            other => return Err(PacketError::Unknown(other)),
        };
        let (generation, run) = (reader.varint32()?, reader.varint32()?);
        let ranges = (0..reader.count(ObserverView::RANGES_MAX)?)
            .map(|_| {
                let last = reader.u32()?;
                let len = reader.varint32()?;
                Ok((last.checked_sub(len).ok_or(PacketError::Limit)?, last))
            })
            .collect::<Result<_, PacketError>>()?;
        Ok(Self { owner, class, generation, run, ranges })
    }
}
