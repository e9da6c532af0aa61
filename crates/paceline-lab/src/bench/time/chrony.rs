//! chronyd as a server of a shifted time, and as a client of the same servers.

use super::truth::{Truth, wall};
use crate::bench::interrupt;
use crate::bench::stats::float;
use crate::netns::Namespace;
use anyhow::{Context as _, Result, ensure};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The programs of chrony.
pub(super) struct Chrony {
    daemon: PathBuf,
    control: PathBuf,
}

impl Chrony {
    /// Returns `daemon`, or the one of `$PACELINE_CHRONYD` or of the search path; `None` without one.
    pub(super) fn find(daemon: Option<&Path>) -> Option<Self> {
        let named = std::env::var_os("PACELINE_CHRONYD").map(PathBuf::from);
        let daemon = daemon.map(Path::to_owned).or(named).or_else(|| on_path("chronyd"))?;
        // A package that is unpacked elsewhere has the same folders.
        let sibling = daemon.parent()?.parent()?.join("bin/chronyc");
        let control = Some(sibling).filter(|file| file.exists()).or_else(|| on_path("chronyc"))?;
        Some(Self { daemon, control })
    }

    /// Starts a daemon that does not touch the system clock, with a configuration file of this name and text.
    fn start(&self, place: &Namespace, file: &Path, text: &str) -> Result<Daemon> {
        std::fs::write(file, text)?;
        let program = self.daemon.to_str().context("--chronyd must be text")?;
        let mut command = place.command(program);
        command.args(["-x", "-d", "-u", "root", "-f"]).arg(file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Daemon(command.spawn().with_context(|| format!("--chronyd {program}"))?))
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).chain(["/usr/sbin".into()]);
    places.find_map(|folder| Some(folder.join(program)).filter(|file| file.exists()))
}

/// A running chronyd, which ends when it is dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A chronyd that serves a time that this process feeds.
pub(super) struct Server {
    _daemon: Daemon,
    socket: PathBuf,
    time: Truth,
}

impl Server {
    /// Starts one at `port` of `place`, with its files in `folder`.
    pub(super) fn start(
        chrony: &Chrony,
        place: &Namespace,
        folder: &Path,
        (port, time): (u16, Truth),
    ) -> Result<Self> {
        let file = |name: &str| folder.join(format!("{name}{port}"));
        let text = format!(
            "refclock SOCK {} refid FAKE poll 0 filter 2 precision 1e-6 delay 1e-6\nallow all\nport {port}\n\
             cmdport 0\nbindcmdaddress /\npidfile {}\ndriftfile {}\n",
            file("sock").display(),
            file("pid").display(),
            file("drift").display(),
        );
        let daemon = chrony.start(place, &file("conf"), &text)?;
        Ok(Self { _daemon: daemon, socket: file("sock"), time })
    }

    /// Sends one sample of its reference clock.
    fn feed(&self, from: &UnixDatagram) {
        let now = wall();
        let (seconds, micros) = (now / 1_000_000_000, now % 1_000_000_000 / 1_000);
        // The sample's time has microseconds; its offset has the rest.
        let offset = float(self.time.ahead(now)) / 1e9;
        let words = [seconds.to_ne_bytes(), micros.to_ne_bytes(), offset.to_ne_bytes()];
        let ints = [0_i32, 0, 0, 0x534f_434b].map(i32::to_ne_bytes);
        let bytes: Vec<u8> =
            words.into_iter().flatten().chain(ints.into_iter().flatten()).collect();
        let _ = from.send_to(&bytes, &self.socket);
    }
}

/// Feeds the reference clocks ten times per second.
pub(super) fn feed(servers: &[Server], stop: &AtomicBool) {
    let Ok(from) = UnixDatagram::unbound() else { return };
    while !stop.load(Ordering::Relaxed) && !servers.is_empty() {
        servers.iter().for_each(|server| server.feed(&from));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A chronyd as a client.
pub(super) struct Client<'a> {
    _daemon: Daemon,
    chrony: &'a Chrony,
    socket: PathBuf,
}

/// One reading of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracking {
    /// The difference of its time to the true one, in nanoseconds.
    pub(super) error: u64,
    /// The greatest error that it reports: half the root delay plus the root dispersion.
    pub(super) bound: u64,
}

impl<'a> Client<'a> {
    /// Starts a client in `place`, with its files in `folder`, which requests the time of the servers at these ports
    /// once per second.
    pub(super) fn start(
        chrony: &'a Chrony,
        place: &Namespace,
        folder: &Path,
        (address, ports): (&str, &[u16]),
    ) -> Result<Self> {
        // The command socket must be in a folder of one user.
        let folder = folder.join("client");
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let file = |name: &str| folder.join(name);
        let socket = file("command");
        let mut text = format!(
            "port 0\ncmdport 0\nbindcmdaddress {}\npidfile {}\ndriftfile {}\n",
            socket.display(),
            file("pid").display(),
            file("drift").display()
        );
        for port in ports {
            text += &format!("server {address} port {port} iburst minpoll 0 maxpoll 0\n");
        }
        let daemon = chrony.start(place, &file("conf"), &text)?;
        Ok(Self { _daemon: daemon, chrony, socket })
    }

    /// Reads its clock five times per second until `end`.
    pub(super) fn read(&self, truth: Truth, end: Instant) -> Result<Vec<Tracking>> {
        let mut all = Vec::new();
        while Instant::now() < end {
            interrupt::check()?;
            all.extend(self.tracking(truth)?);
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(all)
    }

    /// Reads its clock; `None` before it has a time, or if the reading was interrupted.
    fn tracking(&self, truth: Truth) -> Result<Option<Tracking>> {
        let before = wall();
        let mut command = Command::new(&self.chrony.control);
        let output = command.arg("-h").arg(&self.socket).args(["-c", "tracking"]).output();
        let output = output.context("chronyc does not start")?;
        let after = wall();
        ensure!(output.status.success(), "chronyc: {}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8_lossy(&output.stdout);
        let fields: Vec<&str> = text.trim().split(',').collect();
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
        let (Some(ahead), Some(delay), Some(dispersion)) = (number(4), number(10), number(11))
        else {
            anyhow::bail!("chronyc tracking: {text}");
        };
        // A time that gains 100 ppm changes by 1 us in 10 ms.
        if fields.get(2) == Some(&"0") || after - before > 10_000_000 {
            return Ok(None);
        }
        // The daemon answered at some instant between both.
        let [least, most] = [before, after].map(|wall| float(truth.ahead(wall)));
        let ahead = ahead * 1e9;
        Ok(Some(Tracking {
            error: nanos((least - ahead).max(ahead - most).max(0.0)),
            bound: nanos((delay / 2.0 + dispersion) * 1e9),
        }))
    }
}

fn nanos(value: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(value / 1e9).as_nanos()).unwrap_or(u64::MAX)
}
