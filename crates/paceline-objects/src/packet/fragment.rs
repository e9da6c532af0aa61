//! A fragment of a message with updates.

use super::{Ownership, read_path};
use crate::codec::{PacketError, Reader, Writer, varint_len};
use crate::ids::{ObjectIndex, PeerId};
use crate::schema::GroupMask;
use bytes::Bytes;

const INTRODUCED: u8 = 1;
const DELETED: u8 = 2;
const MOVED: u8 = 4;
const WITHDRAWN: u8 = 8;

/// A fragment of a message: updates of objects of one owner for one observer.
///
/// Each fragment carries the header of its message, its own number, its position in the message and the length of
/// what follows, so that it can be read without the others (West and Schwan 1997, section 4.2.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// The owner.
    pub owner: PeerId,
    /// How often the owner has begun to introduce its objects to this observer. With a greater number, all that the
    /// observer knows of this owner is out of date.
    pub run: u32,
    /// The number of the fragment among those of its class and run; the next is one more.
    pub number: u32,
    /// Its position in the message, from 0.
    pub position: u16,
    /// The number of fragments of the message.
    pub count: u16,
    /// When the message was made, in nanoseconds of UTC.
    pub sent: u64,
    /// The error of that clock, as in a sample: at most 2^error microseconds, 255 if unknown.
    pub error: u8,
    /// The updates.
    pub updates: Vec<UpdateRecord>,
}

/// The part of an object's state that a fragment carries.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateRecord {
    /// The object.
    pub object: ObjectIndex,
    /// The identity of the object; repeated until the observer has acknowledged it.
    pub introduction: Option<Introduction>,
    /// The end of the object at this owner.
    pub fate: Option<Fate>,
    /// The time from the last change of the carried groups to [`Fragment::sent`], in microseconds.
    pub age: u64,
    /// The groups with their encodings, in ascending order. An update without groups states that nothing changed.
    pub groups: Vec<(usize, Bytes)>,
}

/// The identity of an object: a replica needs it before the fields.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Introduction {
    /// The path of the object in its world.
    pub path: String,
    /// The fingerprint of its schema.
    pub schema: u64,
    /// The right of its owner.
    pub ownership: Ownership,
}

/// The end of an object at an owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It was deleted.
    Deleted,
    /// Another participant owns it now.
    Moved(PeerId),
    /// The observer has no interest in it any more.
    Withdrawn,
}

impl Fragment {
    /// The greatest number of bytes of the header.
    pub const HEADER: usize = 2 + 16 + 4 + 4 + 2 + 2 + 8 + 1 + 4;

    pub(super) fn write(&self, writer: &mut Writer) {
        writer
            .peer(self.owner)
            .u32(self.run)
            .u32(self.number)
            .u16(self.position)
            .u16(self.count)
            .u64(self.sent)
            .u8(self.error);
        let useful: usize = self.updates.iter().map(UpdateRecord::len).sum();
        writer.u32(u32::try_from(useful).unwrap_or(u32::MAX));
        for update in &self.updates {
            update.write(writer);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let owner = reader.peer()?;
        let (run, number, position, count) =
            (reader.u32()?, reader.u32()?, reader.u16()?, reader.u16()?);
        if position >= count {
            return Err(PacketError::Limit);
        }
        let (sent, error) = (reader.u64()?, reader.u8()?);
        let useful = usize::try_from(reader.u32()?).map_err(|_| PacketError::Limit)?;
        let mut body = Reader::new(reader.take(useful)?);
        let mut updates = Vec::new();
        while !body.is_empty() {
            updates.push(UpdateRecord::read(&mut body)?);
        }
        Ok(Self { owner, run, number, position, count, sent, error, updates })
    }
}

impl UpdateRecord {
    /// Returns the groups that the update carries.
    #[must_use]
    pub fn mask(&self) -> GroupMask {
        self.groups
            .iter()
            .fold(GroupMask::default(), |mask, (group, _)| mask.with(GroupMask::of(*group)))
    }

    /// Returns the number of encoded bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let groups: usize = self.groups.iter().map(|(_, bytes)| Self::group_len(bytes)).sum();
        self.head_len(self.mask()) + groups
    }

    /// Returns whether the update carries no group.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the number of encoded bytes before the groups of a mask.
    pub(crate) fn head_len(&self, mask: GroupMask) -> usize {
        let introduction = self.introduction.as_ref().map_or(0, |introduction| {
            varint_len(introduction.path.len() as u64)
                + introduction.path.len()
                + 8
                + varint_len(u64::from(introduction.ownership.epoch))
                + 1
        });
        let fate = if matches!(self.fate, Some(Fate::Moved(_))) { 16 } else { 0 };
        varint_len(u64::from(self.object.0))
            + 1
            + introduction
            + fate
            + varint_len(self.age)
            + varint_len(u64::from(mask.0))
    }

    /// Returns the number of encoded bytes of a group.
    pub(crate) const fn group_len(bytes: &Bytes) -> usize {
        varint_len(bytes.len() as u64) + bytes.len()
    }

    fn write(&self, writer: &mut Writer) {
        let introduced = if self.introduction.is_some() { INTRODUCED } else { 0 };
        let fate = match self.fate {
            Some(Fate::Deleted) => DELETED,
            Some(Fate::Moved(_)) => MOVED,
            Some(Fate::Withdrawn) => WITHDRAWN,
            None => 0,
        };
        writer.varint(u64::from(self.object.0)).u8(introduced | fate);
        if let Some(Introduction { path, schema, ownership }) = &self.introduction {
            ownership.write(writer.text(path).u64(*schema));
        }
        if let Some(Fate::Moved(to)) = self.fate {
            writer.peer(to);
        }
        writer.varint(self.age).varint(u64::from(self.mask().0));
        for (_, bytes) in &self.groups {
            writer.block(bytes);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let object = ObjectIndex(reader.varint32()?);
        let flags = reader.u8()?;
        let introduction = if flags & INTRODUCED == 0 {
            None
        } else {
            Some(Introduction {
                path: read_path(reader)?,
                schema: reader.u64()?,
                ownership: Ownership::read(reader)?,
            })
        };
        let fate = match flags & !INTRODUCED {
            0 => None,
            DELETED => Some(Fate::Deleted),
            MOVED => Some(Fate::Moved(reader.peer()?)),
            WITHDRAWN => Some(Fate::Withdrawn),
            _ => return Err(PacketError::Unknown(flags)),
        };
        let age = reader.varint()?;
        let mask = GroupMask(reader.varint32()?);
        let groups = mask
            .iter()
            .map(|group| Ok((group, Bytes::copy_from_slice(reader.block(usize::MAX)?))))
            .collect::<Result<_, PacketError>>()?;
        Ok(Self { object, introduction, fate, age, groups })
    }
}
