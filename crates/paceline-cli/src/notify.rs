//! Status notifications for the service manager: the systemd protocol of `$NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A connection to the service manager; does nothing if there is no manager.
#[derive(Debug)]
pub(crate) struct Notify(Option<(UnixDatagram, SocketAddr)>);

impl Notify {
    /// Connects to the socket that `$NOTIFY_SOCKET` names.
    pub(crate) fn from_env() -> Self {
        Self::to(std::env::var_os("NOTIFY_SOCKET").as_deref())
    }

    /// Accepts a socket path, or an abstract socket name that starts with `@`.
    fn to(socket: Option<&OsStr>) -> Self {
        let Some(name) = socket.filter(|name| !name.is_empty()) else { return Self(None) };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(name),
        };
        match address.and_then(|address| Ok((UnixDatagram::unbound()?, address))) {
            Ok(way) => Self(Some(way)),
            Err(error) => {
                tracing::warn!("cannot notify the service manager at {name:?}: {error}");
                Self(None)
            }
        }
    }

    /// Reports that the node is open or has reloaded; `status` is displayed to users.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}\n", status.replace('\n', "; ")));
    }

    /// Reports that the node reads its configuration again.
    pub(crate) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\n"));
    }

    /// Reports that the node is closing.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\n");
    }

    fn send(&self, message: &str) {
        let Self(Some((socket, address))) = self else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::warn!("cannot notify the service manager at {address:?}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut bytes = [0; 500];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn paths_and_abstract_names_are_reached() {
        let path = std::env::temp_dir().join(format!("pln-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).unwrap();
        let notify = Notify::to(Some(path.as_os_str()));
        notify.ready("node gate\nlink radio");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=node gate; link radio\n");
        notify.reloading();
        assert!(heard(&socket).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        std::fs::remove_file(&path).unwrap();
        notify.stopping();

        let name = format!("pln-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Notify::to(Some(OsStr::new(&format!("@{name}")))).stopping();
        assert_eq!(heard(&socket), "STOPPING=1\n");
    }

    #[test]
    fn a_missing_service_manager_is_no_error() {
        Notify::to(None).ready("x");
        Notify::to(Some(OsStr::new(""))).stopping();
        Notify::to(Some(OsStr::new("/no/such/folder/socket"))).stopping();
    }
}
