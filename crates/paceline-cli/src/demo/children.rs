//! The processes of the demo: started, heard, and always reaped.

use super::line::Line;
use super::scenario::Role;
use anyhow::Context as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What comes from a child.
#[derive(Debug)]
pub(crate) enum Event {
    /// A report.
    Line(Box<Line>),
    /// Its output ended.
    Ended(Role),
}

/// All children. Dropping it ends them.
pub(crate) struct Children {
    running: Vec<Running>,
    events: Receiver<Event>,
    folder: Folder,
}

/// Where commands for a child are written.
type Input = Arc<Mutex<Option<ChildStdin>>>;

/// Tells children what to do. Clones tell the same ones.
#[derive(Clone)]
pub(crate) struct Orders(Vec<(Role, Input)>);

impl Orders {
    /// Writes a line to the children of these roles; false if one of them has ended.
    pub(crate) fn give(&self, roles: &[Role], line: &str) -> bool {
        let told = self.0.iter().filter(|(role, _)| roles.contains(role)).map(|(_, input)| {
            let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
            input.as_mut().is_some_and(|input| writeln!(input, "{line}").is_ok())
        });
        // All of them, whatever became of the first.
        told.fold(true, |all, told| all & told)
    }
}

struct Running {
    role: Role,
    process: Child,
    input: Input,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to end, only to reap.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A temporary folder that goes when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Children {
    /// Starts the three nodes, each with a folder of its own, as on three hosts.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let folder =
            Folder(std::env::temp_dir().join(format!("paceline-demo-{}", std::process::id())));
        let program = std::env::current_exe().context("cannot find this program")?;
        let (thin, lan) = free_ports()?;
        let (to, events) = sync_channel(256);
        let mut running = Vec::new();
        for role in Role::ALL {
            let runtime = folder.0.join(role.name());
            std::fs::create_dir_all(&runtime)
                .with_context(|| format!("cannot create {}", runtime.display()))?;
            let mut process = Command::new(&program)
                .args(["demo-role", role.name()])
                .args(["--thin", &thin.to_string(), "--lan", &lan.to_string()])
                .arg("--http")
                .arg(format!("unix:{}", socket(&folder, role).display()))
                .env("PACELINE_RUNTIME_DIR", &runtime)
                .envs(crate::log::for_child())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C is for the demo, which ends its children in order.
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

    /// Where each child serves HTTP.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        Role::ALL.into_iter().map(|role| socket(&self.folder, role)).collect()
    }

    /// The way to tell them what to do.
    pub(crate) fn orders(&self) -> Orders {
        Orders(self.running.iter().map(|child| (child.role, child.input.clone())).collect())
    }

    /// The next event, if one comes in time.
    pub(crate) fn next(&self, wait: Duration) -> Option<Event> {
        self.events.recv_timeout(wait).ok()
    }

    /// Lets the children end by themselves, the subscribers before the robot that serves them;
    /// hears their last reports, and reaps them.
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
    // Nobody listens any more: nobody needs to know.
    let _ = to.send(Event::Ended(role));
}

/// Two ports of loopback that nobody uses now.
fn free_ports() -> anyhow::Result<(u16, u16)> {
    let bind = || TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1");
    let (first, second) = (bind()?, bind()?);
    Ok((first.local_addr()?.port(), second.local_addr()?.port()))
}
