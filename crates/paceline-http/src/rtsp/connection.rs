//! The connection of one player: its requests, and the packets that it receives.

use super::output::Output;
use super::refusal::{refusal, wishes};
use super::sending::{Departure, TrackSender};
use super::udp::{HeadedPacket, UdpPair};
use crate::feeds::{ANSWER_WITHIN, Accepted, FeedLease, FeedStage, Hub, LeftOut, Outlet};
use crate::slots::{Client, Slot};
use paceline_edge::{
    Challenge, DescribedSamples, Login, PlayerAnswer, PlayerMessage, PlayerReader, PlayerReport,
    PlayerRequest, PlayerSession, PlayerStatus, PlayerStep, PlayerTarget, PlayerTransport,
    SESSION_SECONDS, SetUpTrack, TRACKS_MAX, TrackFormat, describe,
};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior};

/// The longest time for the first request.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// The time without a sign of a player after which it is taken for gone: its session, and a margin.
const SIGN_WITHIN: Duration = Duration::from_secs(SESSION_SECONDS as u64 + 10);
/// The longest time without the player reading its data.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// The time after BYE in which a player ends its session. GStreamer sends BYE first, and then PAUSE and TEARDOWN.
const BYE_WITHIN: Duration = Duration::from_secs(10);
/// The longest time to write the last answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// The time before the answer to a wrong login, which slows guesses down.
const WRONG_PAUSE: Duration = Duration::from_millis(500);
/// Requests are read while fewer bytes of answers wait.
const ANSWERS_MAX: usize = 64 << 10;
const READ_BYTES: usize = 4 << 10;
/// Most packets over UDP at once, and the pause after them. A receive buffer has room for some hundred.
const BURST: usize = 46;
const PAUSE: Duration = Duration::from_millis(1);
/// The time between two looks at the counters.
const TICK: Duration = Duration::from_secs(1);

/// What all connections of a server share.
pub(super) struct Door {
    pub(super) login: Option<Login>,
    pub(super) hub: Arc<Hub>,
    pub(super) udp: Arc<UdpPair>,
}

/// A unit that is being sent over UDP.
struct Flight {
    unit: Departure,
    to: SocketAddr,
    packet: usize,
}

/// A player.
pub(super) struct Connection {
    stream: TcpStream,
    from: SocketAddr,
    slot: Slot,
    door: Arc<Door>,
    session: PlayerSession,
    reader: PlayerReader,
    /// The feeds of the description, by track, with their formats.
    feeds: Option<(String, Vec<(FeedLease, TrackFormat)>)>,
    senders: [Option<TrackSender>; TRACKS_MAX as usize],
    outlet: Arc<Outlet>,
    output: Output,
    flight: Option<Flight>,
    agent: String,
    times: Times,
    /// The pictures that were left out when the log last said so.
    said: LeftOut,
    admitted: bool,
    /// The connection ends once everything is written.
    ending: Option<Instant>,
}

/// The times of a connection.
struct Times {
    began: Instant,
    /// The last bytes of the player.
    sign: Instant,
    /// The moment at which its BYE was noticed.
    bye: Option<Instant>,
    /// The moment since which the player has not read.
    blocked: Option<Instant>,
    /// The moment at which packets over UDP go on.
    resume: Option<Instant>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, from: SocketAddr, slot: Slot, door: Arc<Door>) -> Self {
        let challenge = door.login.clone().map(|login| Challenge::new(login, random()));
        let id = random::<8>().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let now = Instant::now();
        Self {
            stream,
            from,
            slot,
            door,
            session: PlayerSession::new(id, challenge),
            reader: PlayerReader::default(),
            feeds: None,
            senders: [const { None }; TRACKS_MAX as usize],
            outlet: Arc::default(),
            output: Output::default(),
            flight: None,
            agent: String::new(),
            times: Times { began: now, sign: now, bye: None, blocked: None, resume: None },
            said: LeftOut::default(),
            admitted: false,
            ending: None,
        }
    }

    /// Serves the player until either side ends the connection, or another one needs its slot.
    pub(super) async fn serve(mut self, closed: oneshot::Receiver<()>) {
        // Answers and packets are small, and none may wait for another.
        let _ = self.stream.set_nodelay(true);
        let why = tokio::select! {
            done = self.run() => done.err().map_or_else(|| "it ended".to_owned(), |error| error.to_string()),
            _ = closed => "another connection needs its slot".to_owned(),
        };
        self.leave(&why);
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut look = tokio::time::interval(TICK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.fill();
            let waits = self.output.write(&self.stream)?;
            if !waits && self.flight.is_none() && self.ends_with_feed() {
                continue;
            }
            let now = Instant::now();
            self.times.blocked = if waits { self.times.blocked.or(Some(now)) } else { None };
            if !waits && self.ending.is_some() {
                return Ok(());
            }
            let busy = waits || self.flight.is_some();
            let resume = self.times.resume;
            tokio::select! {
                ready = self.stream.readable(), if self.output.waiting() < ANSWERS_MAX && self.ending.is_none() => {
                    ready?;
                    self.read().await?;
                }
                ready = self.stream.writable(), if waits => ready?,
                () = self.outlet.changed(), if !busy => {}
                () = tokio::time::sleep_until(resume.unwrap_or(now)), if resume.is_some() => {
                    self.times.resume = None;
                }
                now = look.tick() => self.look(now)?,
            }
        }
    }

    /// Ends the session if a feed has ended. Returns true if it says goodbye now.
    fn ends_with_feed(&mut self) -> bool {
        let Some(why) = self.outlet.ended().filter(|_| self.ending.is_none()) else {
            return false;
        };
        tracing::warn!("RTSP: player {} gets no more samples: {why}", self.from);
        self.say_goodbye();
        self.end();
        true
    }

    /// Checks the times of the player once per second, and reports pictures that are left out.
    fn look(&mut self, now: Instant) -> io::Result<()> {
        let late = |why: &str| Err(io::Error::new(io::ErrorKind::TimedOut, why.to_owned()));
        let (report, bye) = self.outlet.sign();
        let sign = self.times.sign.max(report.unwrap_or(self.times.sign));
        let over_tcp = self
            .senders
            .iter()
            .flatten()
            .any(|sender| matches!(sender.set_up.transport, PlayerTransport::Tcp { .. }));
        if bye && self.times.bye.is_none() {
            self.times.bye = Some(now);
            self.pause();
        }
        if self.times.bye.is_some_and(|since| now - since >= BYE_WITHIN) {
            return late("it sent BYE");
        }
        if self.ending.is_some_and(|until| now >= until) {
            return late("it does not read the last answer");
        }
        if !self.admitted && now - self.times.began >= FIRST_WITHIN {
            return late("it sent no request");
        }
        if self.times.blocked.is_some_and(|since| now - since >= READ_WITHIN) {
            return late("it has not read its data for 60 s");
        }
        // A connection with packets shows by itself that the player is there.
        if now - sign >= SIGN_WITHIN && !(over_tcp && self.session.is_playing()) {
            return late("it has sent nothing for 70 s");
        }
        let left_out = self.outlet.left_out();
        if left_out.total() > self.said.total() {
            self.said = left_out;
            let (from, tag) = (self.from, self.tag());
            paceline::warn_limited!("RTSP: player {from} of {tag}: left out so far: {left_out}");
        }
        Ok(())
    }

    fn tag(&self) -> &str {
        self.session.target().map_or("", |target| target.url())
    }

    /// Takes the next units that wait, until one cannot be sent at once.
    fn fill(&mut self) {
        loop {
            if !self.fly() || !self.output.is_free() {
                return;
            }
            let Some(next) = self.outlet.take() else { return };
            let Some(Some(sender)) = self.senders.get_mut(usize::from(next.track)) else {
                continue;
            };
            let unit = sender.depart(next.unit, next.start);
            let (now, nanos) = (Instant::now(), self.door.hub.now());
            let report = sender.report(now, nanos, self.session.id());
            match sender.set_up.transport {
                PlayerTransport::Tcp { channels: (packets, reports) } => {
                    if let Some(report) = report {
                        self.output.packet(reports, &report);
                        // It precedes the unit.
                        if matches!(self.output.write(&self.stream), Ok(true) | Err(_)) {
                            self.output.depart(packets, unit);
                            return;
                        }
                    }
                    self.output.depart(packets, unit);
                }
                PlayerTransport::Udp { ports } => {
                    if let Some(report) = report {
                        let to = SocketAddr::new(self.from.ip(), ports.1);
                        self.door.udp.send_report(&report, to);
                    }
                    let to = SocketAddr::new(self.from.ip(), ports.0);
                    self.flight = Some(Flight { unit, to, packet: 0 });
                }
            }
        }
    }

    /// Sends packets over UDP. Returns true if none waits.
    fn fly(&mut self) -> bool {
        let Some(flight) = &mut self.flight else { return true };
        if self.times.resume.is_some() {
            return false;
        }
        let unit = &flight.unit;
        let packets = (flight.packet..).take(BURST).map_while(|number| unit.packet(number));
        let packets: Vec<HeadedPacket<'_>> =
            packets.map(|(header, part)| (header, &part.payload[..])).collect();
        let mut sent = 0;
        while let Some(rest) = packets.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.door.udp.send(rest, flight.to) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An unreachable port is noticed by the missing reports.
                Err(_) => sent += 1,
            }
        }
        let all = packets.len();
        flight.packet += sent;
        if sent == all && all < BURST {
            self.flight = None;
            return true;
        }
        self.times.resume = Some(Instant::now() + PAUSE);
        false
    }

    /// Reads what has arrived, and carries out the requests.
    async fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it closed the connection",
                ));
            }
            Ok(count) => self.reader.push(bytes.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        self.times.sign = Instant::now();
        while self.ending.is_none() {
            match self.reader.poll() {
                Ok(Some(PlayerMessage::Request(request))) => self.carry_out(&request).await,
                Ok(Some(PlayerMessage::Packet { channel, bytes })) => {
                    self.take_report(channel, &bytes)
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    let answer =
                        PlayerAnswer::refusal(PlayerStatus::BadRequest, &error.to_string());
                    self.send(None, &answer);
                    self.end();
                }
            }
        }
        Ok(())
    }

    fn take_report(&self, channel: u8, bytes: &[u8]) {
        let reported = |sender: &TrackSender| matches!(sender.set_up.transport, PlayerTransport::Tcp { channels } if channels.1 == channel);
        let mut tracks = (0_u8..).zip(self.senders.iter().flatten());
        let Some((track, sender)) = tracks.find(|(_, sender)| reported(sender)) else { return };
        match PlayerReport::parse(bytes) {
            Ok(report) => {
                let ssrc = sender.set_up.ssrc;
                let mut own = report.receptions.into_iter().filter(|it| it.ssrc == ssrc);
                self.outlet.report(track, own.next(), report.bye, self.door.hub.now());
            }
            Err(error) => {
                let from = self.from;
                paceline::warn_limited!("RTSP: a report of player {from} cannot be read: {error}");
            }
        }
    }

    async fn carry_out(&mut self, request: &PlayerRequest) {
        if let Some(agent) = &request.agent
            && self.agent.is_empty()
        {
            self.agent.clone_from(agent);
        }
        let wrong = self.session.wrong_logins();
        let step = self.session.take(request);
        if self.session.wrong_logins() > wrong {
            tokio::time::sleep(WRONG_PAUSE).await;
        }
        if !self.admitted && matches!(step, PlayerStep::Describe(_) | PlayerStep::SetUp { .. }) {
            self.admitted = true;
            self.slot.admit(Client::at(self.from));
        }
        let answer = match step {
            PlayerStep::Answer(answer) => answer,
            PlayerStep::Close(answer) => {
                tracing::warn!("RTSP: player {}: too many wrong logins", self.from);
                self.end();
                answer
            }
            PlayerStep::Describe(target) => self.describe(&target).await,
            PlayerStep::SetUp { target, track, transport } => {
                let set_up = self.set_up(target, track, transport).await;
                set_up.unwrap_or_else(|refusal| refusal)
            }
            PlayerStep::Play => self.play(),
            PlayerStep::Pause(answer) => {
                self.pause();
                answer
            }
            PlayerStep::End(answer) => {
                self.pause();
                self.end();
                answer
            }
        };
        self.send(Some(request), &answer);
    }

    fn end(&mut self) {
        self.ending = Some(Instant::now() + FAREWELL);
    }

    fn send(&mut self, request: Option<&PlayerRequest>, answer: &PlayerAnswer) {
        let (from, status, reason) = (self.from, answer.status(), answer.reason());
        if status == PlayerStatus::Unauthorized {
            // The first request of each player lacks the login.
            if self.session.wrong_logins() > 0 {
                paceline::warn_limited!("RTSP: player {from}: {reason}");
            }
        } else if status != PlayerStatus::Ok {
            let (agent, words) = (&self.agent, status.words());
            paceline::log_limited!(info, "RTSP: player {from} ({agent}): {words}: {reason}");
        }
        self.output.answer(&answer.to_bytes(request));
    }

    /// Opens the feeds of an address, unless they are open.
    async fn open(
        &mut self,
        target: &PlayerTarget,
    ) -> Result<Vec<(FeedStage, Option<f64>)>, PlayerAnswer> {
        let accept = |encoding: &str| {
            let format = TrackFormat::served(encoding, None)?;
            Ok(Accepted { format, option: None })
        };
        let found = self.door.hub.find(&wishes(target), accept).await;
        let found = found.map_err(|fault| refusal(&fault, target))?;
        let feeds = found.leases.into_iter().zip(found.formats).collect();
        self.feeds = Some((target.url().to_owned(), feeds));
        Ok(found.stages.into_iter().zip(found.rates).collect())
    }

    async fn describe(&mut self, target: &PlayerTarget) -> PlayerAnswer {
        if self.session.tracks() > 0 {
            let reason = "a session is set up; describe other addresses over another connection";
            return PlayerAnswer::refusal(PlayerStatus::NotValidInThisState, reason);
        }
        let stages = match self.open(target).await {
            Ok(stages) => stages,
            Err(refusal) => return refusal,
        };
        let formats = self.feeds.iter().flat_map(|(_, feeds)| feeds);
        let tracks = formats.zip(&stages).map(|((_, format), (stage, hz))| DescribedSamples {
            format: *format,
            key: stage.key.as_deref(),
            hz: *hz,
        });
        let tracks: Vec<DescribedSamples<'_>> = tracks.collect();
        let host = self.stream.local_addr().map_or(self.from.ip(), |address| address.ip());
        let text = describe(target, &tracks, (host, self.door.hub.now() / 1_000_000_000));
        self.session.described(target, text)
    }

    async fn set_up(
        &mut self,
        target: PlayerTarget,
        track: u8,
        transport: PlayerTransport,
    ) -> Result<PlayerAnswer, PlayerAnswer> {
        if self.feeds.as_ref().is_none_or(|(url, _)| url != target.url()) {
            self.open(&target).await?;
        }
        let mut feeds = self.feeds.iter().flat_map(|(_, feeds)| feeds);
        let Some((lease, format)) = feeds.nth(track.into()).cloned() else {
            return Err(PlayerAnswer::refusal(PlayerStatus::NotFound, "there is no such track"));
        };
        let stage = lease.feed.wait(ANSWER_WITHIN, FeedStage::is_answered).await;
        stage.check().map_err(|fault| refusal(&fault, &target))?;
        let [a, b, c, d, rest @ ..] = random::<10>();
        let set_up = SetUpTrack { transport, ssrc: u32::from_be_bytes([a, b, c, d]) };
        let clock = (format.payload_type(track), format.clock_rate());
        if let PlayerTransport::Udp { ports } = transport {
            let reports = SocketAddr::new(self.from.ip(), ports.1);
            self.door.udp.add(reports, &self.outlet, track, set_up.ssrc);
        }
        if let Some(sender) = self.senders.get_mut(usize::from(track)) {
            let new = TrackSender::new(set_up, clock, rest);
            self.outlet.set_up(track, new.next(None).0, format.clock_rate());
            *sender = Some(new);
        }
        let over = match transport {
            PlayerTransport::Tcp { .. } => "TCP",
            PlayerTransport::Udp { .. } => "UDP",
        };
        let answer = stage.answer_text();
        let (from, agent, url) = (self.from, &self.agent, target.track_url(track));
        tracing::info!("RTSP: player {from} ({agent}) sets up {url} over {over}: {answer}");
        Ok(self.session.set_up(target, (track, set_up), self.door.udp.ports()))
    }

    fn play(&mut self) -> PlayerAnswer {
        if self.session.is_playing() {
            return self.session.playing(&[]);
        }
        if !self.slot.follow() {
            let reason = "too many players; try again later";
            return PlayerAnswer::refusal(PlayerStatus::ServiceUnavailable, reason);
        }
        self.times.bye = None;
        let feeds = self.feeds.iter().flat_map(|(_, feeds)| feeds);
        let tracks = (0_u8..).zip(feeds.zip(&self.senders));
        let set_up = tracks
            .filter_map(|(track, ((lease, _), sender))| Some((track, lease, sender.as_ref()?)));
        let first: Vec<(u8, u16, Option<u32>)> = set_up
            .map(|(track, lease, sender)| {
                let (sequence, time) = sender.next(lease.feed.first_time());
                lease.feed.join(&self.outlet, track);
                (track, sequence, time)
            })
            .collect();
        self.session.playing(&first)
    }

    fn pause(&self) {
        for (lease, _) in self.feeds.iter().flat_map(|(_, feeds)| feeds) {
            lease.feed.leave(&self.outlet);
        }
        self.outlet.close();
    }

    /// Sends the end of each track.
    fn say_goodbye(&mut self) {
        let nanos = self.door.hub.now();
        for sender in self.senders.iter().flatten() {
            let bye = sender.bye(nanos, self.session.id());
            match sender.set_up.transport {
                PlayerTransport::Tcp { channels } => self.output.packet(channels.1, &bye),
                PlayerTransport::Udp { ports } => {
                    self.door.udp.send_report(&bye, SocketAddr::new(self.from.ip(), ports.1));
                }
            }
        }
    }

    /// Ends the use of the feeds, and reports what the player got.
    fn leave(&mut self, why: &str) {
        self.pause();
        if self.session.tracks() == 0 {
            tracing::debug!("RTSP: player {}: {why}", self.from);
            return;
        }
        let packets: u64 = self.senders.iter().flatten().map(|sender| sender.packets).sum();
        let mut text = format!("{packets} packets");
        let left_out = self.outlet.left_out();
        if left_out.total() > 0 {
            let _ = write!(text, "; left out: {left_out}");
        }
        for (track, heard) in self.outlet.receptions() {
            let (lost, jitter) = (heard.lost, heard.jitter.as_secs_f64() * 1e3);
            let _ = write!(
                text,
                "; it reports for track {track}: {lost} packets lost, jitter {jitter:.1} ms"
            );
            if let Some(trip) = heard.round_trip {
                let _ = write!(text, ", round trip {:.1} ms", trip.as_secs_f64() * 1e3);
            }
        }
        tracing::info!("RTSP: player {} left {}: {why}; {text}", self.from, self.tag());
    }
}

/// Returns random bytes; zeros if the system has none, which other numbers of the session do not depend on.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!("RTSP: the system has no random numbers: {error}");
    }
    bytes
}
