//! Nodes that a program steps in its own loop, next to a live one.

pub use crate::shell::transport::{AttachedWriter, Attachment, NoCongestionControl};

use crate::node::Node;
use crate::shell::command::Command;
use std::io;
use std::os::unix::net::UnixStream;

impl Node {
    /// Connects a node that this process steps itself ([`paceline_node::Node`]) as a neighbour, over the link between the
    /// processes of the host. `nonce` is random and determines its [id](Attachment::id); the same one again continues as the same
    /// node. Call it on a runtime of tokio with I/O.
    ///
    /// # Errors
    /// Returns an error if this node is closed or isolated, or the neighbour does not answer.
    pub async fn attach(&self, nonce: [u8; 16]) -> io::Result<Attachment> {
        let (own, other) = UnixStream::pair()?;
        let (reply, answer) = std::sync::mpsc::channel();
        let sent = self.commands().send(Command::Attach(other, reply));
        match sent.then(|| answer.recv()) {
            Some(Ok(true)) => Attachment::meet(own, nonce).await,
            Some(Ok(false)) => {
                let why = "the node is isolated: it has no link to other processes of its host";
                Err(io::Error::other(why))
            }
            Some(Err(_)) | None => Err(io::Error::other("the node is closed")),
        }
    }
}
