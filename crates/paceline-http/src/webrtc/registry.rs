//! The sessions of a server: by their number, by the user name of their checks, and by the addresses of their peers.

use super::view::SessionView;
use crate::slots::Client;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, mpsc};

/// Most sessions of a server, and of one client.
const SESSIONS_MAX: usize = 320;
const OF_CLIENT_MAX: usize = 64;
/// Most addresses of a peer: it checks from several.
const ADDRESSES_MAX: usize = 8;
/// The datagrams that wait for a session.
const WAITING: usize = 512;

/// A datagram that has arrived.
pub(super) struct Arrived {
    pub(super) at: Instant,
    pub(super) from: SocketAddr,
    pub(super) bytes: Bytes,
}

/// A session, as others see it.
struct Entry {
    client: Client,
    user: String,
    to: mpsc::Sender<Arrived>,
    stop: Arc<Notify>,
    view: Arc<Mutex<SessionView>>,
    addresses: Vec<SocketAddr>,
}

#[derive(Default)]
struct Sessions {
    all: BTreeMap<Arc<str>, Entry>,
    users: BTreeMap<String, Arc<str>>,
    addresses: BTreeMap<SocketAddr, Arc<str>>,
    /// Sessions that are being set up, by client.
    pending: Vec<Client>,
}

/// The sessions of a server.
#[derive(Default)]
pub(super) struct Registry(Mutex<Sessions>);

/// A session that is being set up; dropping it gives its room back.
pub(super) struct Pending {
    registry: Arc<Registry>,
    client: Client,
}

/// The membership of a running session; dropping it removes the session.
pub(super) struct Member {
    registry: Arc<Registry>,
    pub(super) id: Arc<str>,
    pub(super) inbox: mpsc::Receiver<Arrived>,
    pub(super) stop: Arc<Notify>,
    pub(super) view: Arc<Mutex<SessionView>>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for a session.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub(super) fn reserve(self: &Arc<Self>, client: Client) -> Result<Pending, String> {
        let mut sessions = self.lock();
        let own =
            sessions.all.values().map(|entry| entry.client).chain(sessions.pending.iter().copied());
        let (all, own) =
            own.fold((0, 0), |(all, own), of| (all + 1, own + usize::from(of == client)));
        if all >= SESSIONS_MAX {
            return Err(format!(
                "{SESSIONS_MAX} sessions of WebRTC are open, which is the limit; close one"
            ));
        }
        if own >= OF_CLIENT_MAX {
            return Err(format!(
                "this client has {OF_CLIENT_MAX} sessions of WebRTC, which is the limit; close one"
            ));
        }
        sessions.pending.push(client);
        Ok(Pending { registry: self.clone(), client })
    }

    /// Passes a datagram on: to the session of its address, or of the user name of a check. Others are ignored.
    pub(super) fn deliver(&self, arrived: Arrived) {
        let mut sessions = self.lock();
        let sessions = &mut *sessions;
        let known = sessions.addresses.get(&arrived.from);
        let user = paceline_edge::stun_user(&arrived.bytes);
        let named = user.and_then(|user| sessions.users.get(user));
        let Some(id) = named.or(known).cloned() else { return };
        let Some(entry) = sessions.all.get_mut(&id) else { return };
        if named.is_some() && known != Some(&id) {
            if entry.addresses.len() >= ADDRESSES_MAX {
                sessions.addresses.remove(&entry.addresses.remove(0));
            }
            if let Some(former) = sessions.addresses.insert(arrived.from, id.clone()) {
                entry.addresses.retain(|known| former != id || *known != arrived.from);
            }
            entry.addresses.push(arrived.from);
        }
        // A flood loses what the session has not read.
        let _ = entry.to.try_send(arrived);
    }

    /// Returns the client that has begun a session, and its figures.
    pub(super) fn view(&self, id: &str) -> Option<(Client, SessionView)> {
        let sessions = self.lock();
        let entry = sessions.all.get(id)?;
        let view = entry.view.lock().unwrap_or_else(PoisonError::into_inner);
        Some((entry.client, view.clone()))
    }

    /// Returns the figures of all sessions.
    pub(super) fn views(&self) -> Vec<SessionView> {
        let sessions = self.lock();
        let views = sessions
            .all
            .values()
            .map(|entry| entry.view.lock().unwrap_or_else(PoisonError::into_inner).clone());
        views.collect()
    }

    /// Ends a session. Returns false if there is none.
    pub(super) fn end(&self, id: &str) -> bool {
        let sessions = self.lock();
        let entry = sessions.all.get(id);
        entry.inspect(|entry| entry.stop.notify_one()).is_some()
    }
}

impl Pending {
    /// Enters the session.
    pub(super) fn enter(self, id: Arc<str>, user: &str, view: SessionView) -> Member {
        let (to, inbox) = mpsc::channel(WAITING);
        let (stop, view) = (Arc::<Notify>::default(), Arc::new(Mutex::new(view)));
        let entry = Entry {
            client: self.client,
            user: user.to_owned(),
            to,
            stop: stop.clone(),
            view: view.clone(),
            addresses: Vec::new(),
        };
        let registry = self.registry.clone();
        let mut sessions = registry.lock();
        sessions.users.insert(user.to_owned(), id.clone());
        sessions.all.insert(id.clone(), entry);
        drop(sessions);
        Member { registry, id, inbox, stop, view }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut sessions = self.registry.lock();
        if let Some(at) = sessions.pending.iter().position(|client| *client == self.client) {
            sessions.pending.swap_remove(at);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut sessions = self.registry.lock();
        if let Some(entry) = sessions.all.remove(&self.id) {
            sessions.users.remove(&entry.user);
            sessions.addresses.retain(|_, id| *id != self.id);
        }
    }
}
