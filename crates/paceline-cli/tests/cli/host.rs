//! A simulated host for one test: a private runtime folder, and the commands started in it.

use std::fs::DirBuilder;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit for every command.
pub(crate) const LIMIT: Duration = Duration::from_secs(40);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A private folder for one test.
pub(crate) struct Host {
    dir: PathBuf,
}

/// An ended command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A running command; dropping it kills and reaps the process.
pub(crate) struct Running {
    child: Child,
    stdout: Option<Receiver<Vec<u8>>>,
    stderr: Option<Receiver<String>>,
    /// Standard error so far.
    so_far: Arc<Mutex<String>>,
}

impl Host {
    pub(crate) fn new() -> Self {
        // The name is short because a socket path has at most 107 bytes.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("plt-{}-{number}", std::process::id()));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.expect("a temporary folder");
        Self { dir }
    }

    /// Returns a path in this host's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(crate::BINARY);
        command
            .args(args)
            .env("PACELINE_RUNTIME_DIR", &self.dir)
            .env("XDG_CONFIG_HOME", self.dir.join("config"))
            .env("XDG_STATE_HOME", self.dir.join("state"))
            .env_remove("PACELINE_CALIBRATION")
            .env_remove("PACELINE_LOG")
            .env_remove("PACELINE_CONFIG")
            .env_remove("NOTIFY_SOCKET")
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a command and collects its output until it ends.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::gathered(self.command(args).spawn().expect("the command starts"))
    }

    /// Starts a separate node for this host, so that the host's traffic does not depend on which other
    /// command ends first.
    pub(crate) fn start_node(&self) -> Running {
        let node = self.start(&["node"]);
        let until = Instant::now() + LIMIT;
        while !self.path("node.sock").exists() {
            assert!(Instant::now() < until, "the node listens");
            std::thread::sleep(Duration::from_millis(10));
        }
        node
    }

    /// Waits until at least `wanted` subscriptions are known on this host.
    pub(crate) fn wait_for_subscriptions(&self, wanted: usize) {
        let until = Instant::now() + LIMIT;
        loop {
            let ls = self.run(&["ls", "--json"]);
            let document: serde_json::Value =
                serde_json::from_str(&ls.text()).expect("ls --json prints JSON");
            let nodes = document["nodes"].as_array().into_iter().flatten();
            let found = nodes.filter_map(|node| node["subscriptions"].as_array());
            if found.map(Vec::len).sum::<usize>() >= wanted {
                return;
            }
            assert!(Instant::now() < until, "{document}");
        }
    }

    /// Waits until somebody publishes the tag.
    pub(crate) fn wait_for_publisher(&self, tag: &str) {
        let until = Instant::now() + LIMIT;
        let named = format!("\"tag\":\"{tag}\"");
        while !self.run(&["ls", "--json"]).text().replace(' ', "").contains(&named) {
            assert!(Instant::now() < until, "{tag} has a publisher");
        }
    }

    /// Waits until nobody on this host publishes the tag.
    pub(crate) fn wait_for_end(&self, tag: &str) {
        let until = Instant::now() + LIMIT;
        let named = format!("\"tag\":\"{tag}\"");
        while self.run(&["ls", "--json"]).text().replace(' ', "").contains(&named) {
            assert!(Instant::now() < until, "{tag} has no publisher");
        }
    }

    /// Returns the document of `ls --json`.
    pub(crate) fn status(&self) -> serde_json::Value {
        let ended = self.run(&["ls", "--json"]);
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Runs a command until it ends.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.start(args).ended()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Running {
    /// Reads both outputs on separate threads, so that no pipe fills up.
    pub(crate) fn gathered(mut child: Child) -> Self {
        let (to_stdout, stdout) = channel();
        let (to_stderr, stderr) = channel();
        let mut out = child.stdout.take().expect("piped");
        let err = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = out.read_to_end(&mut bytes);
            to_stdout.send(bytes)
        });
        let so_far = Arc::new(Mutex::new(String::new()));
        let said = so_far.clone();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(err);
            let (mut text, mut line) = (String::new(), String::new());
            while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                text.push_str(&line);
                said.lock().unwrap().push_str(&line);
                line.clear();
            }
            to_stderr.send(text)
        });
        Self { child, stdout: Some(stdout), stderr: Some(stderr), so_far }
    }

    /// Wraps a command whose output is not read.
    pub(crate) fn unread(child: Child) -> Self {
        Self { child, stdout: None, stderr: None, so_far: Arc::default() }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("a process id"), signal).expect("it still runs");
    }

    /// Waits until the command ends; fails the test after [`LIMIT`].
    pub(crate) fn status(&mut self) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            if Instant::now() >= until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let output = self.stderr.take().and_then(|stderr| stderr.recv().ok());
                panic!("the command did not end within {LIMIT:?}: {output:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until standard error contains `part`, or the command ends; fails the test after [`LIMIT`].
    pub(crate) fn wait_until_said(&mut self, part: &str) {
        let until = Instant::now() + LIMIT;
        let ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        while !self.so_far.lock().unwrap().contains(part) && !ended(&mut self.child) {
            assert!(Instant::now() < until, "'{part}' is not in: {}", self.so_far.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the command ends, and returns all of its output.
    pub(crate) fn ended(mut self) -> Ended {
        let code = self.status().code();
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        Ended {
            code,
            stdout: stdout.and_then(|stdout| stdout.recv().ok()).unwrap_or_default(),
            stderr: stderr.and_then(|stderr| stderr.recv().ok()).unwrap_or_default(),
        }
    }

    /// Reads the first output line; only for a command whose output is not collected.
    pub(crate) fn first_line(&mut self) -> String {
        let stdout = self.child.stdout.take().expect("piped and not gathered");
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Fails the test unless the command ended with `code` and standard error contains `part`.
    pub(crate) fn said(&self, code: i32, part: &str) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(part), "'{part}' is not in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Parses each output line as JSON.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| serde_json::from_str(line).expect("each line is JSON");
        self.text().lines().map(parse).collect()
    }
}

/// Returns a free loopback port that is returned only once.
///
/// Ports of the system's choice are also given to connections and to others who ask for one. So these
/// are below its range, and each process starts at another one.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 16_000;
    const COUNT: u32 = 16_000;
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = std::process::id() * 500 + ASKED.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + next % COUNT).expect("below 32,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns a path as a command line argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}
