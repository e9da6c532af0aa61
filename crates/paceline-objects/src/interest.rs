//! What an observer wants to receive.

use crate::codec::{PacketError, Reader, Writer};
use crate::contract::ObjectContract;
use paceline_sched::Duration;

/// What an observer wants to receive.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    /// The greatest distance of an object; infinite for all objects.
    pub range: f64,
    /// The contract of the most important objects, if any.
    pub contract: Option<InterestContract>,
}

/// The contract of an observer for the most important of its objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterestContract {
    /// The service of each of them.
    pub each: ObjectContract,
    /// Their greatest number, from 1 to 10,000.
    pub objects: u32,
}

impl Interest {
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.f64(if self.range.is_finite() { self.range } else { -1.0 });
        match &self.contract {
            None => {
                writer.u8(0);
            }
            Some(InterestContract { each, objects }) => {
                writer.u8(1).varint(u64::from(each.max_updates)).varint(each.per.as_nanos());
                writer
                    .varint(each.refresh.as_nanos())
                    .varint(u64::from(each.bytes))
                    .varint(each.delay.as_nanos());
                writer.u16(each.fidelity_permille).varint(u64::from(*objects));
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let range = reader.f64()?;
        let contract = match reader.u8()? {
            0 => None,
            1 => Some(InterestContract::read(reader)?),
            other => return Err(PacketError::Unknown(other)),
        };
        Ok(Self { range: if range < 0.0 { f64::INFINITY } else { range }, contract })
    }
}

impl InterestContract {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let each = ObjectContract {
            max_updates: reader.varint32()?,
            per: Duration::from_nanos(reader.varint()?),
            refresh: Duration::from_nanos(reader.varint()?),
            bytes: reader.varint32()?,
            delay: Duration::from_nanos(reader.varint()?),
            fidelity_permille: reader.u16()?,
        };
        each.check().map_err(|_| PacketError::Form)?;
        let objects = reader.varint32()?;
        if objects == 0 || objects > 10_000 {
            return Err(PacketError::Limit);
        }
        Ok(Self { each, objects })
    }
}
