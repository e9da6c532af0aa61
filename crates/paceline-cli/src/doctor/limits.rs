//! Checks the limits and rights of this process: buffers, descriptors, memory, priority,
//! namespaces.

use super::row::{Row, State, line_of, ok_if};
use rustix::process::{Resource, getrlimit};

/// The data in flight on a link without a capacity, with a margin.
const SOCKET_BYTES: u64 = 1 << 20;
/// A generous number of descriptors for sessions, sockets, neighbours and files.
const FILES: u64 = 1_024;
/// The memory of a node and its queues if it is locked.
const LOCKED_BYTES: u64 = 64 << 20;
/// Bit numbers of the required capabilities.
const CAP_NET_ADMIN: u32 = 12;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;

pub(super) fn rows() -> Vec<Row> {
    let rights = Rights::read();
    let net = "/proc/sys/net/core";
    vec![
        socket_row("UDP receive buffer", &format!("{net}/rmem_max"), "net.core.rmem_max"),
        socket_row("UDP send buffer", &format!("{net}/wmem_max"), "net.core.wmem_max"),
        tcp_row("TCP receive buffer", "tcp_rmem", "net.ipv4.tcp_rmem"),
        tcp_row("TCP send buffer", "tcp_wmem", "net.ipv4.tcp_wmem"),
        files_row(getrlimit(Resource::Nofile).current),
        locked_row(getrlimit(Resource::Memlock).current, rights),
        priority_row(getrlimit(Resource::Rtprio).current, rights),
        namespaces_row(std::path::Path::new("/proc/self/ns/net").exists(), rights),
    ]
}

/// The effective capabilities of this process, as a bit mask.
#[derive(Clone, Copy, Debug, Default)]
struct Rights(u64);

impl Rights {
    fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self(line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default())
    }

    const fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }
}

fn socket_row(what: &'static str, path: &str, key: &str) -> Row {
    buffer_row(
        what,
        line_of(path).and_then(|text| text.parse().ok()),
        &format!("{key}={SOCKET_BYTES}"),
    )
}

fn tcp_row(what: &'static str, file: &str, key: &str) -> Row {
    let line = line_of(&format!("/proc/sys/net/ipv4/{file}")).unwrap_or_default();
    let most = line.split_whitespace().nth(2).and_then(|text| text.parse().ok());
    buffer_row(what, most, &format!("{key}='4096 131072 {SOCKET_BYTES}'"))
}

fn buffer_row(what: &'static str, most: Option<u64>, setting: &str) -> Row {
    let found = most.map_or_else(|| "unknown".to_owned(), |bytes| format!("at most {bytes} bytes"));
    let state = most.map_or(State::Unknown, |bytes| ok_if(bytes >= SOCKET_BYTES));
    Row::new(what, &found, "1048576 bytes or more", state, &format!("sysctl -w {setting}"))
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

fn files_row(files: Option<u64>) -> Row {
    let state = ok_if(files.is_none_or(|files| files >= FILES));
    let fix = "ulimit -n 1024, or LimitNOFILE=1024 in the unit";
    Row::new("file descriptors", &limit(files), "1024 or more", state, fix).needed()
}

fn locked_row(bytes: Option<u64>, rights: Rights) -> Row {
    let any = bytes.is_none() || rights.has(CAP_IPC_LOCK);
    let found = match bytes {
        _ if rights.has(CAP_IPC_LOCK) => "any (CAP_IPC_LOCK)".to_owned(),
        Some(bytes) => format!("at most {bytes} bytes"),
        None => "unlimited".to_owned(),
    };
    let state = ok_if(any || bytes.is_some_and(|bytes| bytes >= LOCKED_BYTES));
    let fix = "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit";
    Row::new("locked memory", &found, "67108864 bytes or more", state, fix)
}

fn priority_row(most: Option<u64>, rights: Rights) -> Row {
    let state = ok_if(rights.has(CAP_SYS_NICE) || most != Some(0));
    let found = if rights.has(CAP_SYS_NICE) {
        "any (CAP_SYS_NICE)".to_owned()
    } else {
        format!("at most {}", limit(most))
    };
    let fix = "LimitRTPRIO=50 in the unit, or a line 'USER - rtprio 50' in \
        /etc/security/limits.conf";
    Row::new("real-time priority", &found, "1 or more", state, fix)
}

fn namespaces_row(there: bool, rights: Rights) -> Row {
    let root = rights.has(CAP_SYS_ADMIN) && rights.has(CAP_NET_ADMIN);
    let found = match (there, root) {
        (false, _) => "none in this kernel",
        (true, true) => "allowed",
        (true, false) => "not allowed for this user",
    };
    let fix = "run paceline-lab bench main-job, pull and recordings as root; only these need them";
    Row::new(
        "network namespaces",
        found,
        "only for benches that need root",
        ok_if(there && root),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NICE: Rights = Rights(1 << CAP_SYS_NICE);
    const NONE: Rights = Rights(0);

    #[test]
    fn limits_are_compared() {
        assert_eq!(files_row(Some(1_023)).state, State::Lack);
        assert!(files_row(Some(1_024)).state == State::Ok && files_row(None).state == State::Ok);
        assert!(files_row(None).needed);
        assert_eq!(locked_row(Some(8 << 20), NONE).state, State::Lack);
        assert_eq!(locked_row(Some(8 << 20), Rights(1 << CAP_IPC_LOCK)).state, State::Ok);
        assert_eq!(locked_row(Some(64 << 20), NONE).state, State::Ok);
        assert_eq!(locked_row(None, NONE).found, "unlimited");
        assert_eq!(priority_row(Some(0), NONE).state, State::Lack);
        assert_eq!(priority_row(Some(0), NICE).state, State::Ok);
        assert_eq!(priority_row(Some(5), NONE).found, "at most 5");
    }

    #[test]
    fn small_socket_buffers_name_the_setting() {
        let row = buffer_row("UDP send buffer", Some(212_992), "net.core.wmem_max=1048576");
        assert_eq!(row.state, State::Lack);
        assert_eq!(row.fix.as_deref(), Some("sysctl -w net.core.wmem_max=1048576"));
        assert_eq!(buffer_row("x", Some(4 << 20), "").state, State::Ok);
        assert_eq!(buffer_row("x", None, "").state, State::Unknown);
    }

    #[test]
    fn namespaces_need_both_rights() {
        let both = Rights(1 << CAP_SYS_ADMIN | 1 << CAP_NET_ADMIN);
        assert_eq!(namespaces_row(true, both).state, State::Ok);
        assert_eq!(namespaces_row(true, Rights(1 << CAP_SYS_ADMIN)).state, State::Lack);
        assert_eq!(namespaces_row(false, both).state, State::Lack);
    }
}
