//! The thread of a node's clock: NTP client and server.

pub(crate) mod follow;
pub(crate) mod neighbours;
mod page;
mod peers;
mod probe;
mod stamp;
mod view;

use super::clock;
use super::command::Commands;
use super::realtime::Role;
use super::vitals::{Pulse, Vitals};
use crate::error::OpenError;
use crate::time::handle::Lineage;
use crate::time::{Clock, ClockConfig};
use neighbours::{NeighbourPort, Neighbours};
use paceline_sched::Duration;
use paceline_time::ClockStatus;
use paceline_time::clock::service::{ClockService, ClockSettings, SourcePart};
use paceline_time::ntp::keys::NtpKeys;
use page::PageFile;
use peers::{Listener, Peer, random, wait};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The name of the thread.
const THREAD: &str = "paceline-clock";
/// The longest sleep, and the interval of reports and of comparisons of the host's clocks; a quarter of it before the clock
/// is synchronised, because four comparisons make the system clock a reference.
const LOOK_EVERY: u64 = 1_000_000_000;
/// A sleep that takes this much longer makes the thread look at the host's clocks before it continues.
const LATE: u64 = 50_000_000;

/// The running thread of a clock; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Clockwork {
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Clockwork {
    /// Starts the thread of `clock`. The host's node also writes the clock's page to the folder `dir`, from which the
    /// other processes of the host read it. The clock follows the neighbours of `links`, through the engine of `commands`
    /// and the port that is returned.
    pub(crate) fn start(
        config: &ClockConfig,
        clock: Clock,
        (vitals, commands): (&Arc<Vitals>, &Commands),
        dir: Option<&Path>,
        links: BTreeSet<usize>,
    ) -> Result<(Self, Option<NeighbourPort>), OpenError> {
        let system_error = config.system_error.map(|it| Duration::from(it).as_nanos());
        let settings = ClockSettings { system_error };
        let (service, keys) = service(config, settings).map_err(OpenError::Clock)?;
        let listener = config.serve.as_deref().map(|address| Listener::bind(address, keys));
        let listener = listener.transpose().map_err(OpenError::Clock)?;
        let (stop, stopped) = UnixStream::pair().map_err(OpenError::Thread)?;
        let follows = (!links.is_empty()).then_some(links);
        let ends = follows.map(|it| neighbours::open(it, config.servers.len(), commands.clone()));
        let (port, neighbours) = ends.transpose().map_err(OpenError::Thread)?.unzip();
        let peers = config.servers.iter().map(|server| Peer::new(server)).collect();
        let pulse = vitals.pulse(THREAD);
        let file = dir.map(PageFile::new);
        // The bound of the system clock as a reference grows between looks.
        let look_every = if system_error.is_some() { LOOK_EVERY / 4 } else { LOOK_EVERY };
        let next_look = 0;
        let state = State {
            look_every,
            service,
            peers,
            neighbours,
            listener,
            clock,
            file,
            pulse,
            next_look,
        };
        let vitals = vitals.clone();
        let run = move || {
            vitals.enter(Role::Engine);
            vitals.guard(THREAD, || state.run(&stopped));
        };
        let named = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = named.spawn(run).map_err(OpenError::Thread)?;
        Ok((Self { stop, thread: Some(thread) }, port))
    }
}

/// Creates the state of a clock that follows the servers of `config`, and reads the keys for its clients.
fn service(
    config: &ClockConfig,
    settings: ClockSettings,
) -> Result<(ClockService, NtpKeys), String> {
    config.check()?;
    let ranges = vec![config.range()?; config.servers.len()];
    let (keys, used) = config.read_keys()?;
    let mut service = ClockService::new(settings, &ranges, clock::raw());
    used.into_iter().for_each(|(server, key)| service.set_key(server, key));
    Ok((service, keys))
}

impl Drop for Clockwork {
    fn drop(&mut self) {
        let _ = self.stop.write(&[0]);
        if let Some(thread) =
            self.thread.take().filter(|it| it.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct State {
    service: ClockService,
    peers: Vec<Peer>,
    neighbours: Option<Neighbours>,
    listener: Option<Listener>,
    clock: Clock,
    file: Option<PageFile>,
    pulse: Arc<Pulse>,
    /// The interval of looks at the host's clocks once the clock is synchronised, in nanoseconds.
    look_every: u64,
    /// The instant of the raw clock of the next look at the host's clocks.
    next_look: u64,
}

impl State {
    fn run(mut self, stopped: &UnixStream) {
        loop {
            let now = clock::now();
            self.pulse.begin(now);
            self.look();
            self.peers.iter_mut().zip(self.service.sources()).for_each(|(peer, (source, _))| {
                peer.renew(clock::raw(), source.is_dead());
            });
            self.neighbours.iter_mut().for_each(|it| it.update(&mut self.service));
            self.send();
            self.publish();
            let until = self.service.next_wakeup().unwrap_or(u64::MAX).min(self.next_look);
            let raw = clock::raw();
            let sleep = until.saturating_sub(raw);
            self.pulse.rest(now + Duration::from_nanos(sleep));
            let others = (self.listener.as_ref(), self.neighbours.as_ref().map(Neighbours::socket));
            if wait(stopped, others, &self.peers, sleep) {
                break;
            }
            // Something may have stopped the host: compare its clocks before a measurement is used.
            if clock::raw().saturating_sub(raw.saturating_add(sleep)) > LATE {
                self.next_look = 0;
                self.look();
            }
            self.receive();
            self.serve();
        }
        self.file.take().into_iter().for_each(|file| file.remove());
    }

    /// Compares the clocks of the host, and reports, once per second.
    fn look(&mut self) {
        let hosts = clock::hosts();
        if hosts.raw < self.next_look {
            return;
        }
        let is_ready = self.service.page().status() == ClockStatus::Synchronised;
        self.next_look = hosts.raw + if is_ready { self.look_every } else { LOOK_EVERY / 4 };
        self.service.observe(hosts);
        let servers = self.peers.iter().map(Peer::name);
        let neighbours = self.neighbours.iter().flat_map(Neighbours::names);
        let report =
            view::report(&self.service, servers, neighbours, self.listener.as_ref(), hosts);
        *self.clock.state().report() = report;
        if let Some(file) = &mut self.file {
            file.write(self.service.page(), hosts);
        }
    }

    /// Sends the requests that are due, and waits for their answers without sleeping for a moment: a thread that sleeps
    /// wakes tens of microseconds late, which would count as delay.
    fn send(&mut self) {
        let mut sent = false;
        while let Some((at, packet)) = self.service.request(clock::raw(), random()) {
            self.neighbours.iter().for_each(|neighbours| neighbours.send(at, &packet));
            let Some(peer) = self.peers.get_mut(at) else { continue };
            let raw = clock::raw();
            if peer.send(&packet) {
                self.service.sent(at, raw);
                sent = true;
            }
        }
        let until = clock::raw() + peers::SPIN;
        while sent && clock::raw() < until {
            if self.receive() > 0 {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// Takes the answers that have arrived; returns their number.
    fn receive(&mut self) -> usize {
        let mut taken = 0;
        for (at, peer) in self.peers.iter().enumerate() {
            let mut buffer = [0; peers::BYTES_MAX];
            while let Some((bytes, raw)) = peer.receive(&mut buffer) {
                if let Err(cause) = self.service.receive(at, bytes, raw, clock::wall()) {
                    tracing::debug!("clock: an answer of {} is not used: {cause}", peer.name());
                }
                taken += 1;
            }
        }
        if let Some(neighbours) = &mut self.neighbours {
            taken += neighbours.receive(&mut self.service);
        }
        if taken > 0 {
            self.publish();
        }
        taken
    }

    /// Answers the requests of clients.
    fn serve(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        listener.answer(&self.clock, self.service.facts());
    }

    fn publish(&self) {
        self.clock.state().publish(self.service.page());
        let parts = self.service.sources().map(|(_, part)| part);
        let used = [SourcePart::Selected, SourcePart::Combined];
        let servers: Vec<usize> =
            parts.enumerate().filter(|(_, part)| used.contains(part)).map(|(at, _)| at).collect();
        let neighbours = self.neighbours.as_ref().filter(|_| !servers.is_empty());
        let nodes = neighbours.map(|they| they.lineage(&servers));
        let mut lineage = self.clock.state().lineage();
        // In holdover, the time is still that of the last server.
        let nodes = nodes.or_else(|| lineage.take().map(|before| before.nodes));
        *lineage = Some(Lineage { facts: *self.service.facts(), nodes: nodes.unwrap_or_default() });
    }
}
