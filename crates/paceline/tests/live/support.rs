//! Helpers of the live tests: hosts, ports and waiting.

use paceline::{LinkConfig, Node};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A generous timeout; only a failing test waits for it.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A separate runtime folder for the processes of a simulated host.
pub(crate) struct HostDir(PathBuf);

impl HostDir {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pl-{name}-{}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub(crate) fn open(&self, name: &str) -> Node {
        Node::builder().name(name).runtime_dir(&self.0).open().unwrap()
    }
}

impl Drop for HostDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns an endpoint on a free port that is returned only once.
///
/// Ports of the system's choice are also given to connections and to others who ask for one. So these
/// are below its range, and each process starts at another one.
pub(crate) fn free_endpoint() -> String {
    const FIRST: u32 = 16_000;
    const COUNT: u32 = 16_000;
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = std::process::id() * 500 + ASKED.fetch_add(1, Ordering::Relaxed);
        let endpoint = format!("127.0.0.1:{}", FIRST + next % COUNT);
        if std::net::TcpListener::bind(&endpoint).is_ok() {
            return format!("tcp/{endpoint}");
        }
    }
}

/// Opens an isolated node with these links.
pub(crate) fn isolated(name: &str, links: impl IntoIterator<Item = LinkConfig>) -> Node {
    let builder = Node::builder().name(name).isolated();
    links.into_iter().fold(builder, |builder, link| builder.link(link)).open().unwrap()
}

/// Opens two nodes with one link between them.
pub(crate) fn pair(shape: impl Fn(LinkConfig) -> LinkConfig) -> (Node, Node) {
    let endpoint = free_endpoint();
    let near = shape(LinkConfig::new("radio").listen(&endpoint));
    let far = shape(LinkConfig::new("radio").connect(&endpoint));
    (isolated("robot", [near]), isolated("operator", [far]))
}

/// Waits until `done` returns true; returns the time that took.
pub(crate) fn wait_until(what: &str, done: impl FnMut() -> bool) -> Duration {
    wait_within(what, SOON, done)
}

/// Waits until `done` returns true, at most for `time`; returns the time that took.
pub(crate) fn wait_within(what: &str, time: Duration, mut done: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < time, "{what}: not within {time:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{what}: {:?}", began.elapsed());
    began.elapsed()
}

/// Waits for the next multiple of `period` in UTC. A publisher with this period that captures then keeps the numbers of its
/// captures, also on a busy host: only jitter of half a period changes them.
pub(crate) fn wait_for_grid(period: Duration) -> Instant {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let passed = u64::try_from(now % period.as_nanos().max(1)).unwrap();
    std::thread::sleep(period.saturating_sub(Duration::from_nanos(passed)));
    Instant::now()
}

/// Calls `step` at a rate of `hertz`, without drift, from a multiple of the period in UTC.
pub(crate) fn at_rate(hertz: u32, steps: u32, mut step: impl FnMut(u32)) {
    let period = Duration::from_secs(1) / hertz;
    let began = wait_for_grid(period);
    for n in 0..steps {
        step(n);
        let next = began + period * (n + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}
