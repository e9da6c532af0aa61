//! Attachments of samples. They are messages of separate channels, so that programs that do not
//! know them show the samples unchanged.

use crate::reader::Message;
use std::collections::BTreeMap;

/// The attachments that wait for their samples: the last one of each channel.
#[derive(Debug, Default)]
pub struct Attachments(BTreeMap<u16, (u32, Vec<u8>)>);

impl Attachments {
    /// Returns a message together with its attachment. An attachment itself is stored for its
    /// sample, and the result is `None`. Pass messages in the order of a file, or of
    /// [`Ordered`](crate::Ordered).
    pub fn join(&mut self, message: Message) -> Option<(Message, Option<Vec<u8>>)> {
        if let Some(of) = message.channel.attached_to() {
            self.0.insert(of, (message.sequence, message.data));
            return None;
        }
        // An attachment of another sequence number has lost its sample: the file was cut, or
        // composed by another program.
        let held = self.0.remove(&message.id);
        let its = held.filter(|(sequence, _)| *sequence == message.sequence);
        Some((message, its.map(|(_, bytes)| bytes)))
    }
}
