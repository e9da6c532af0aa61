//! The accounts of processes at the other end of connections within the host.

use crate::shell::realtime;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The state of a connected socket in the tables of the kernel. Those of closed ones name no account.
const CONNECTED: &str = "01";

/// Returns true for the account of this process, and for root, which can act as any account.
pub(super) fn is_own(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Returns the name of an account, or its number if it has no name.
pub(super) fn name(user: u32) -> String {
    let account = nix::unistd::User::from_uid(user.into()).ok().flatten();
    account.map_or_else(|| user.to_string(), |account| account.name)
}

/// Looks up two connections at a time, apart from the threads of the links: with many sockets, the tables of the kernel
/// are long.
static TURN: Semaphore = Semaphore::const_new(2);

/// Returns the account that owns the socket at the other end of a TCP connection within the host, by the kernel's
/// tables of sockets; `None` if the connection has ended.
pub(super) async fn of_tcp(stream: &TcpStream, far: SocketAddr) -> Option<u32> {
    let near = stream.local_addr().ok()?;
    let _turn = TURN.acquire().await.ok()?;
    // Those who have left meanwhile keep nobody waiting.
    if has_left(stream).await {
        return None;
    }
    let look = move || {
        realtime::leave();
        look_up(far, near)
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Returns true if the other end has closed the connection, whether or not its bytes have been read.
async fn has_left(stream: &TcpStream) -> bool {
    let now = timeout(Duration::ZERO, stream.ready(Interest::READABLE)).await;
    matches!(now, Ok(Ok(ready)) if ready.is_read_closed())
}

fn look_up(far: SocketAddr, near: SocketAddr) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.iter().find_map(|table| find(&std::fs::read_to_string(table).ok()?, far, near))
}

/// Returns the account of the connected socket with these addresses in a table of sockets (proc_net_tcp(5)).
fn find(table: &str, own: SocketAddr, other: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let [local, remote, state] = [fields.next()?, fields.next()?, fields.next()?];
        let is_it = state == CONNECTED
            && address(local)? == canonical(own)
            && address(remote)? == canonical(other);
        fields.nth(3).filter(|_| is_it)?.parse().ok()
    })
}

fn canonical(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

/// Reads an address: groups of four bytes, each as a number of this host, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (groups, port) = text.split_once(':')?;
    let group = |at: usize| {
        let number = u32::from_str_radix(groups.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(number.to_ne_bytes())
    };
    let ip = if groups.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(group(0)?))
    } else {
        let mut bytes = [0; 16];
        for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
            four.copy_from_slice(&group(at)?);
        }
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream as StdStream};

    #[test]
    fn the_other_end_of_a_connection_is_this_account() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(place).unwrap();
            let near = listener.local_addr().unwrap();
            let stream = StdStream::connect(near).unwrap();
            let (_accepted, far) = listener.accept().unwrap();
            let me = rustix::process::geteuid().as_raw();
            assert_eq!(look_up(far, near), Some(me), "{place}");
            assert_eq!(look_up(far, "127.0.0.1:1".parse().unwrap()), None);
            drop(stream);
        }
    }

    #[test]
    fn those_who_have_left_are_not_looked_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut there = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            assert!(!has_left(&accepted).await);
            there.write_all(b"hello").unwrap();
            assert!(!has_left(&accepted).await);
            drop(there);
            // The end arrives behind bytes that nobody has read.
            while !has_left(&accepted).await {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }

    #[test]
    fn closed_sockets_name_no_account() {
        let line = |state: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: \
                 {} {} {state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n",
                "0000000000000000FFFF00000100007F:C350", "0100007F:1DB0"
            )
        };
        let (far, near) = ("127.0.0.1:50000".parse().unwrap(), "127.0.0.1:7600".parse().unwrap());
        let expected = cfg!(target_endian = "little").then_some(1000);
        assert_eq!(find(&line("01"), far, near), expected);
        assert_eq!(find(&line("06"), far, near), None, "a closed one");
        assert_eq!(find(&line("01"), near, far), None, "this end");
        assert_eq!(find("header\n 0: 01\n 1: x y 01\n", far, near), None);
    }
}
