//! Connections over a unix socket, between the processes of a host. The kernel names the account of the other end.
//!
//! Everybody may connect who can reach the file of the socket; so the folder decides who reaches it, and the policy
//! which rights they have.

use super::accept::accept;
use super::dial::{Connect, dial};
use super::handshakes::Handshake;
use super::proof::Proof;
use super::shared::{Opened, Shared};
use super::{Error, cause};
use std::fs::{Permissions, remove_file, set_permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as Socket, UnixStream as Probe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// The interval of looking for a process that listens.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The timeout of connecting to a process that listens.
const CONNECT_MAX: Duration = Duration::from_millis(400);

/// Returns the path of the socket if this is the endpoint of one.
pub(super) fn path(endpoint: &str) -> Option<&Path> {
    endpoint.strip_prefix("unix/").map(Path::new)
}

/// Listens at `path`.
pub(super) fn listen(shared: &Arc<Shared>, path: &Path) -> Result<(), Error> {
    let socket = bind(path)?;
    let file = Bound::new(path);
    set_permissions(path, Permissions::from_mode(0o666))?;
    socket.set_nonblocking(true)?;
    let listener = UnixListener::from_std(socket)?;
    let place: Arc<str> = format!("unix/{}", path.display()).into();
    let next = move |cx: &mut Context<'_>| {
        let _ = &file;
        listener.poll_accept(cx).map_ok(|(stream, _)| stream)
    };
    tokio::spawn(accept(shared.clone(), next, move |shared, stream, began| {
        serve(shared, place.clone(), stream, began)
    }));
    Ok(())
}

/// Serves a connection that was accepted at `place`.
pub(super) async fn serve(
    shared: Arc<Shared>,
    place: Arc<str>,
    stream: UnixStream,
    began: Handshake,
) {
    match opened(&place, stream) {
        Ok(opened) => shared.serve_incoming(opened, began).await,
        Err(error) => shared.turned_away(&place, &error.to_string()),
    }
}

/// Binds a socket, also if a process that has ended left its file behind.
fn bind(path: &Path) -> io::Result<Socket> {
    match Socket::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(path) => {
            remove_file(path)?;
            Socket::bind(path)
        }
        other => other,
    }
}

/// Returns true for the file of a socket at which nobody listens.
fn is_left(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && Probe::connect(path).err().is_some_and(refused)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The file of a listening socket, which is removed with it unless another one has taken its place.
struct Bound {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Bound {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: file(path) }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.file.is_some() && file(&self.path) == self.file {
            let _ = remove_file(&self.path);
        }
    }
}

/// Returns the device and inode of a file.
fn file(path: &Path) -> Option<(u64, u64)> {
    symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Describes a connection.
fn opened(place: &str, stream: UnixStream) -> io::Result<Opened<OwnedReadHalf, OwnedWriteHalf>> {
    let peer = stream.peer_cred()?;
    let from = match peer.pid() {
        Some(process) => format!("{place}, process {process}"),
        None => place.to_owned(),
    };
    let proof = Proof::User(peer.uid());
    let (reader, writer) = stream.into_split();
    Ok(Opened { from, address: None, reader, writer, proof, quic: None })
}

/// Connects to the socket at `path`, and connects again after the end of a connection.
pub(super) fn connect(shared: &Arc<Shared>, path: &Path) {
    let to = format!("unix/{}", path.display());
    let way = Unix { path: path.to_owned(), to: to.clone() };
    tokio::spawn(dial(shared.clone(), to, way));
}

/// The way to a unix socket.
struct Unix {
    path: PathBuf,
    to: String,
}

impl Connect for Unix {
    type Reader = OwnedReadHalf;
    type Writer = OwnedWriteHalf;

    const PENDING: &'static str =
        "no process listens there; start the other node, or correct the path";

    /// Waits until a process listens at the socket.
    async fn connect(&mut self) -> Result<Opened<OwnedReadHalf, OwnedWriteHalf>, String> {
        loop {
            let stream = timeout(CONNECT_MAX, UnixStream::connect(&self.path)).await;
            let stream =
                stream.map_err(|_| "the process there accepts no connection".to_owned())?;
            match stream.and_then(|stream| opened(&self.to, stream)) {
                Err(error) if is_absent(&error) => sleep(LOOK_AGAIN).await,
                other => return other.map_err(|error| cause::of_io(&error)),
            }
        }
    }
}
