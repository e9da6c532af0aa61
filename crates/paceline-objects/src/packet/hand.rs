//! An object that another participant shall own.

use super::read_path;
use crate::codec::{PacketError, Reader, Writer};
use crate::ids::PeerId;
use crate::schema::GroupMask;
use bytes::Bytes;

/// An object that another participant shall own, with its whole state. It is repeated until the new owner's
/// [`super::Claim`] arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Hand {
    /// The participant that owns it until then.
    pub from: PeerId,
    /// The path of the object.
    pub path: String,
    /// The fingerprint of its schema.
    pub schema: u64,
    /// The epoch of the new ownership.
    pub epoch: u32,
    /// All groups with their encodings, in ascending order.
    pub groups: Vec<(usize, Bytes)>,
}

impl Hand {
    pub(super) fn write(&self, writer: &mut Writer) {
        let mask = self
            .groups
            .iter()
            .fold(GroupMask::default(), |mask, (group, _)| mask.with(GroupMask::of(*group)));
        writer.peer(self.from).text(&self.path).u64(self.schema).varint(u64::from(self.epoch));
        writer.varint(u64::from(mask.0));
        for (_, bytes) in &self.groups {
            writer.block(bytes);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let (from, path) = (reader.peer()?, read_path(reader)?);
        let (schema, epoch, mask) =
            (reader.u64()?, reader.varint32()?, GroupMask(reader.varint32()?));
        let groups = mask
            .iter()
            .map(|group| Ok((group, Bytes::copy_from_slice(reader.block(usize::MAX)?))))
            .collect::<Result<_, PacketError>>()?;
        Ok(Self { from, path, schema, epoch, groups })
    }
}
