//! The role of the host's node: listening at the socket of the runtime folder, and keeping that
//! socket.

use super::super::handle::LinkCommand;
use super::super::host::Upkeep;
use super::super::transport::{Inbound, Transport, Unopened};
use super::Engine;
use crate::config::LinkConfig;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

impl Engine {
    /// Becomes the host's node if there is none; maintains the socket if this process is the host's
    /// node.
    pub(super) fn keep_place(&mut self) {
        let Some((host, _)) = &mut self.host else { return };
        if !self.host_open {
            let new = host.try_take_over();
            if new {
                tracing::info!("this process is now the host's node");
            }
            if new || host.listens() {
                self.listen_at_socket();
            }
            return;
        }
        let socket = host.socket();
        let socket = socket.display();
        match host.look_after() {
            Upkeep::Kept => {}
            Upkeep::Restored => {
                crate::warn_limited!("{socket} was deleted or replaced; it is restored")
            }
            Upkeep::Listen => {
                crate::warn_limited!("{socket} was deleted or replaced; listening there again");
                self.host_open = false;
                self.listen_at_socket();
            }
            Upkeep::Connect => {
                crate::warn_limited!(
                    "{socket} was deleted, and another process listens there now; connecting to it"
                );
                self.host_open = false;
                self.reopen(LinkConfig::connect);
            }
        }
    }

    /// Accepts a node of this process at the end of a socket pair; returns false if there is no link between the processes of
    /// the host.
    pub(super) fn attach(&self, stream: UnixStream) -> bool {
        let index = self.host.as_ref().map(|(_, index)| *index);
        let link = index.and_then(|index| self.links.get(index));
        link.map(|link| link.handle.send(LinkCommand::Attach(stream))).is_some()
    }

    fn listen_at_socket(&mut self) {
        self.host_open = self.reopen(LinkConfig::listen);
        if let Some((host, _)) = self.host.as_mut().filter(|_| self.host_open) {
            host.note_bound();
        }
    }

    /// Opens the host link again; returns true if that succeeds.
    fn reopen(&mut self, how: impl Fn(LinkConfig, &str) -> LinkConfig) -> bool {
        let Some((host, index)) = &self.host else { return false };
        let Some(link) = self.links.get_mut(*index) else { return false };
        let bare = LinkConfig { listen: Vec::new(), connect: Vec::new(), ..link.config.clone() };
        link.config = how(bare, &host.endpoint());
        let inbound: Arc<dyn Inbound> = link.rx.clone();
        match Transport::open(self.introduction, &link.config, inbound) {
            Ok(transport) => {
                link.handle.send(LinkCommand::Reopen(Box::new(transport)));
                true
            }
            // The previous host's files may still exist. The next tick tries again.
            Err(Unopened { error, .. }) => {
                crate::warn_limited!("cannot open the host's socket yet: {error}");
                false
            }
        }
    }
}
