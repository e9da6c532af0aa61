//! The schemas, channels and messages that the records of a file contain.

use super::{Channel, Message};
use crate::format::{CHANNEL, MESSAGE, Parts, SCHEMA};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The schemas and channels that a file declares.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    schemas: BTreeMap<u16, String>,
    channels: BTreeMap<u16, Arc<Channel>>,
    /// True if a chunk was compressed. Parts of messages in damaged ones are no messages.
    pub(super) packed: bool,
}

impl Declarations {
    /// Returns true if no channel is declared.
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Returns true if there is a channel of this number.
    pub(super) fn has_channel(&self, id: u16) -> bool {
        self.channels.contains_key(&id)
    }
}

/// The declarations and messages read so far.
pub(super) struct Contents {
    pub(super) declared: Declarations,
    pub(super) ready: VecDeque<Message>,
    /// True if the channels are known from a first pass. In that pass the last declaration of a channel applies: the first
    /// one may be damaged, and the end of a file repeats it.
    pub(super) fixed: bool,
    /// The number of messages of undeclared channels.
    pub(super) strays: u64,
}

impl Contents {
    /// Handles all records of a chunk, or none.
    pub(super) fn records(&mut self, records: &[u8]) -> Result<(), String> {
        let (declared, strays) = (self.declared.clone(), self.strays);
        let read = self.each(records);
        if read.is_err() {
            self.declared = declared;
            self.strays = strays;
            self.ready.clear();
        }
        read
    }

    fn each(&mut self, records: &[u8]) -> Result<(), String> {
        let mut parts = Parts(records);
        while !parts.0.is_empty() {
            let (kind, body) = parts.record().ok_or("one of its records is longer than it")?;
            self.plain(kind, body)?;
        }
        Ok(())
    }

    /// Handles a record other than a chunk.
    pub(super) fn plain(&mut self, kind: u8, body: &[u8]) -> Result<(), String> {
        let mut parts = Parts(body);
        let (what, read) = match kind {
            0 => return Err("a record has kind 0".to_owned()),
            SCHEMA => ("a schema", self.schema(&mut parts)),
            CHANNEL => ("a channel", self.channel(&mut parts)?),
            MESSAGE => ("a message", self.message(&mut parts)),
            // Headers, indexes, attachments, metadata and unknown records are not needed for a
            // replay.
            _ => return Ok(()),
        };
        read.ok_or_else(|| {
            format!("{what} of {} bytes, which is shorter than declared", body.len())
        })
    }

    fn schema(&mut self, parts: &mut Parts<'_>) -> Option<()> {
        let (id, name) = (parts.u16()?, parts.text()?);
        self.declared.schemas.entry(id).or_insert(name);
        Some(())
    }

    fn channel(&mut self, parts: &mut Parts<'_>) -> Result<Option<()>, String> {
        let Some((id, read)) = self.read_channel(parts) else { return Ok(None) };
        let known = self.declared.channels.entry(id).or_insert_with(|| Arc::new(read.clone()));
        if known.topic != read.topic || known.message_encoding != read.message_encoding {
            let (is, was) = (&read.topic, &known.topic);
            let what = format!("channel {id} is '{is}' here and '{was}' before");
            if !self.fixed {
                *known = Arc::new(read);
            }
            return Err(what);
        }
        Ok(Some(()))
    }

    fn read_channel(&self, parts: &mut Parts<'_>) -> Option<(u16, Channel)> {
        let (id, schema) = (parts.u16()?, parts.u16()?);
        let channel = Channel {
            topic: parts.text()?,
            message_encoding: parts.text()?,
            schema: self.declared.schemas.get(&schema).cloned().unwrap_or_default(),
            metadata: parts.texts()?,
        };
        Some((id, channel))
    }

    fn message(&mut self, parts: &mut Parts<'_>) -> Option<()> {
        let (id, sequence) = (parts.u16()?, parts.u32()?);
        let (log_time, publish_time) = (parts.u64()?, parts.u64()?);
        match self.declared.channels.get(&id) {
            Some(channel) => self.ready.push_back(Message {
                id,
                channel: Arc::clone(channel),
                sequence,
                log_time,
                publish_time,
                data: parts.0.to_vec(),
            }),
            None => self.strays += 1,
        }
        Some(())
    }
}
