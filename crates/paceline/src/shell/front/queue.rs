//! The receive queue of a local UDP socket, as reported by the kernel.

use std::time::{Duration, Instant};

/// A queue that does not shrink for this long has no reader.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// Monitors the receive queue of one port.
pub(super) struct Queue {
    port: u16,
    bytes: u64,
    /// The time since which the queue has neither shrunk nor been empty.
    since: Option<Instant>,
}

impl Queue {
    pub(super) const fn new(port: u16) -> Self {
        Self { port, bytes: 0, since: None }
    }

    /// Reads the queue; returns true if the socket has no reader. Always false on systems without
    /// `/proc/self/net/udp`.
    pub(super) fn is_stuck(&mut self, now: Instant) -> bool {
        let table = std::fs::read_to_string("/proc/self/net/udp").unwrap_or_default();
        self.note(now, waiting(&table, self.port))
    }

    fn note(&mut self, now: Instant, bytes: u64) -> bool {
        if bytes == 0 || bytes < self.bytes {
            self.since = None;
        } else {
            self.since.get_or_insert(now);
        }
        self.bytes = bytes;
        self.since.is_some_and(|since| now.duration_since(since) >= STUCK_AFTER)
    }
}

/// Returns the queued bytes of a port in a table such as `/proc/net/udp`.
fn waiting(table: &str, port: u16) -> u64 {
    let bytes = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (_, local) = fields.next()?.rsplit_once(':')?;
        let (_, queued) = fields.nth(2)?.split_once(':')?;
        let here = u16::from_str_radix(local, 16) == Ok(port);
        if here { u64::from_str_radix(queued, 16).ok() } else { None }
    };
    table.lines().filter_map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  104: 0100007F:1DB0 00000000:0000 07 00000000:00000A80 00:00000000 00000000     0        0 12345 2 0000000000000000 0
  105: 00000000:1DB1 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12346 2 0000000000000000 0
";

    #[test]
    fn an_unread_queue_is_stuck_and_a_shrinking_queue_is_not() {
        assert_eq!((waiting(TABLE, 7_600), waiting(TABLE, 7_601)), (0xa80, 0));
        assert_eq!(waiting("", 7_600), 0);
        let mut queue = Queue::new(7_600);
        let start = Instant::now();
        let mut note = |millis, bytes| queue.note(start + Duration::from_millis(millis), bytes);
        assert!(!note(0, 100) && !note(1_000, 200) && !note(1_800, 150), "it was read");
        assert!(!note(2_200, 150) && !note(3_000, 300) && !note(4_100, 300));
        assert!(note(4_300, 300));
        assert!(!note(4_500, 0) && !note(9_000, 0), "nothing waits");
    }

    #[test]
    fn the_system_reports_an_unread_socket() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&[7; 100], address).unwrap();
        let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
        assert!(waiting(&table, address.port()) >= 100);
    }
}
