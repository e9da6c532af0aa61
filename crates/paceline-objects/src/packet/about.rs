//! The description of a participant.

use crate::codec::{PacketError, Reader, Writer};
use crate::contract::UpdateSizes;
use crate::ids::PeerId;
use crate::interest::Interest;
use crate::run_queue::DecisionWorkers;
use crate::schema::Schema;

/// The description of a participant: a latched sample, so that those who join later receive it.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerDescription {
    /// The participant.
    pub peer: PeerId,
    /// Its name, for people.
    pub name: String,
    /// The number of this description; a greater one replaces it.
    pub revision: u32,
    /// The schemas of its objects.
    pub schemas: Vec<Schema>,
    /// The sizes of its updates.
    pub sizes: UpdateSizes,
    /// Its interest; `None` if it observes nothing.
    pub interest: Option<Interest>,
    /// The workers that decide about the exchanges of its objects; `None` if observers' rules decide.
    pub workers: Option<DecisionWorkers>,
}

impl PeerDescription {
    /// The longest name, in bytes.
    pub const NAME_MAX: usize = 64;
    /// The greatest number of schemas.
    pub const SCHEMAS_MAX: usize = 64;
    /// The greatest length of a schema in its textual form, in bytes.
    pub const SCHEMA_BYTES_MAX: usize = 8_192;

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.peer(self.peer).text(&self.name).varint(u64::from(self.revision));
        writer.varint(self.schemas.len() as u64);
        for schema in &self.schemas {
            writer.text(&schema.to_string());
        }
        let UpdateSizes { groups, largest_group, fragment_bytes } = self.sizes;
        for size in [groups, largest_group, fragment_bytes] {
            writer.varint(u64::from(size));
        }
        writer.u8(u8::from(self.interest.is_some()));
        if let Some(interest) = &self.interest {
            interest.write(writer);
        }
        DecisionWorkers::write(self.workers, writer);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let (peer, name, revision) =
            (reader.peer()?, reader.text(Self::NAME_MAX)?.to_owned(), reader.varint32()?);
        let count = reader.count(Self::SCHEMAS_MAX)?;
        let schemas = (0..count)
            .map(|_| {
                Schema::parse(reader.text(Self::SCHEMA_BYTES_MAX)?).map_err(|_| PacketError::Form)
            })
            .collect::<Result<_, _>>()?;
        let sizes = UpdateSizes {
            groups: reader.varint32()?,
            largest_group: reader.varint32()?,
            fragment_bytes: reader.varint32()?,
        };
        let interest = match reader.u8()? {
            0 => None,
            1 => Some(Interest::read(reader)?),
            other => return Err(PacketError::Unknown(other)),
        };
        let workers = DecisionWorkers::read(reader)?;
        Ok(Self { peer, name, revision, schemas, sizes, interest, workers })
    }
}
