//! The demo's child processes and their line protocol. Every child is reaped.

use super::line::Line;
use super::scenario::Role;
use anyhow::Context as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An event from a child.
#[derive(Debug)]
pub(crate) enum Event {
    Line(Box<Line>),
    /// The end of the child's output.
    Ended(Role),
}

/// All children; dropping this ends them.
pub(crate) struct Children {
    running: Vec<Running>,
    events: Receiver<Event>,
    folder: Folder,
}

/// The standard input of a child, for commands.
type Input = Arc<Mutex<Option<ChildStdin>>>;

/// Sends commands to children. Clones send to the same children.
#[derive(Clone)]
pub(crate) struct Orders(Vec<(Role, Input)>);

impl Orders {
    /// Writes a line to the children of these roles; returns false if one of them has ended.
    pub(crate) fn give(&self, roles: &[Role], line: &str) -> bool {
        let sent = self.0.iter().filter(|(role, _)| roles.contains(role)).map(|(_, input)| {
            let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
            input.as_mut().is_some_and(|input| writeln!(input, "{line}").is_ok())
        });
        // `fold` instead of `all`: write to all children even if one has ended.
        sent.fold(true, |all, sent| all & sent)
    }
}

struct Running {
    role: Role,
    process: Child,
    input: Input,
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the process has already ended, it only needs to be reaped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The beginning of the names of the temporary folders of demos.
const FOLDERS: &str = "paceline-demo-";

/// Returns the runtime folders of the robots of all demos that run on this host.
pub(crate) fn running() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDERS));
    let robots = folders.map(|entry| entry.path().join(Role::Robot.name()));
    let mut robots: Vec<PathBuf> =
        robots.filter(|robot| UnixStream::connect(robot.join("node.sock")).is_ok()).collect();
    robots.sort();
    robots
}

/// A temporary folder; dropping this deletes it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Children {
    /// Starts the three nodes. Each has its own runtime folder, as if on its own host.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let folder = Folder(std::env::temp_dir().join(format!("{FOLDERS}{}", std::process::id())));
        let [thin, lan] = free_ports()?;
        let (to, events) = sync_channel(256);
        let mut running = Vec::new();
        for role in Role::ALL {
            let runtime = folder.0.join(role.name());
            std::fs::create_dir_all(&runtime)
                .with_context(|| format!("cannot create {}", runtime.display()))?;
            let mut process = crate::again::command()?
                .args(["demo-role", role.name()])
                .args(["--thin", &thin.to_string(), "--lan", &lan.to_string()])
                .arg("--http")
                .arg(format!("unix:{}", socket(&folder, role).display()))
                .env("PACELINE_RUNTIME_DIR", &runtime)
                .envs(paceline_tool::log::for_child())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C must reach only the demo, which ends its children in order.
                .process_group(0)
                .spawn()
                .with_context(|| format!("cannot start the {role}"))?;
            let output = process.stdout.take();
            let input = Arc::new(Mutex::new(process.stdin.take()));
            running.push(Running { role, process, input });
            if let Some(output) = output {
                let to = to.clone();
                std::thread::spawn(move || listen(role, BufReader::new(output), &to));
            }
        }
        Ok(Self { running, events, folder })
    }

    /// Returns the runtime folder of the robot, in which other commands find all nodes of the demo.
    pub(crate) fn robot(&self) -> PathBuf {
        self.folder.0.join(Role::Robot.name())
    }

    /// Returns the HTTP socket of each child.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        Role::ALL.into_iter().map(|role| socket(&self.folder, role)).collect()
    }

    /// Returns a handle for sending commands to the children.
    pub(crate) fn orders(&self) -> Orders {
        Orders(self.running.iter().map(|child| (child.role, child.input.clone())).collect())
    }

    /// Returns the next event, or `None` after `wait`.
    pub(crate) fn next(&self, wait: Duration) -> Option<Event> {
        self.events.recv_timeout(wait).ok()
    }

    /// Ends the children by closing their input, the subscribers before the robot that serves them.
    /// Passes their last reports to `take` and reaps them.
    pub(crate) fn end(mut self, patience: Duration, mut take: impl FnMut(Event)) {
        let until = Instant::now() + patience;
        for role in Role::ALL.into_iter().rev() {
            let Some(at) = self.running.iter().position(|child| child.role == role) else {
                continue;
            };
            let mut child = self.running.swap_remove(at);
            drop(child.input.lock().unwrap_or_else(PoisonError::into_inner).take());
            while let Some(event) = self.next(until.saturating_duration_since(Instant::now())) {
                if matches!(event, Event::Ended(ended) if ended == role) {
                    break;
                }
                take(event);
            }
            while matches!(child.process.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn socket(folder: &Folder, role: Role) -> PathBuf {
    folder.0.join(role.name()).join("http.sock")
}

fn listen(role: Role, output: impl BufRead, to: &SyncSender<Event>) {
    for line in output.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(line) => {
                if to.send(Event::Line(Box::new(line))).is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!(%role, %error, "a report cannot be read"),
        }
    }
    // The receiver may already be dropped.
    let _ = to.send(Event::Ended(role));
}

/// Returns ports of the loopback interface that are currently free, all different.
pub(super) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut sockets = Vec::with_capacity(N);
    for port in &mut ports {
        let socket = TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1")?;
        *port = socket.local_addr()?.port();
        sockets.push(socket);
    }
    drop(sockets);
    Ok(ports)
}
