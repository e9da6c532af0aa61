//! What is attached to samples: messages of channels of their own, so that programs that know nothing of it
//! show the samples as they are.

use crate::reader::Message;
use std::collections::BTreeMap;

/// Attachments on their way to their samples: of each channel the last one.
#[derive(Debug, Default)]
pub struct Attachments(BTreeMap<u16, (u32, Vec<u8>)>);

impl Attachments {
    /// Gives a message back with what is attached to it; none if it is an attachment itself, which is kept for
    /// its sample. Messages are to come in the order of a file, or of [`Ordered`](crate::Ordered).
    pub fn join(&mut self, message: Message) -> Option<(Message, Option<Vec<u8>>)> {
        if let Some(of) = message.channel.attached_to() {
            self.0.insert(of, (message.sequence, message.data));
            return None;
        }
        // What belongs to another sample lost its own: its file was cut, or put together by somebody.
        let held = self.0.remove(&message.id);
        let its = held.filter(|(sequence, _)| *sequence == message.sequence);
        Some((message, its.map(|(_, bytes)| bytes)))
    }
}
