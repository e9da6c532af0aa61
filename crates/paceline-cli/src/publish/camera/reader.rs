//! The thread that receives from a camera.

use super::lane::{Arrived, Lane};
use super::refusal::{self, Ended};
use super::tracks::Track;
use anyhow::{Context as _, anyhow};
use futures_util::{FutureExt as _, StreamExt as _};
use paceline_edge::{
    Backoff, CameraAddress, CaptureClock, DescribedTrack, Login, RtpPacket, choose,
};
use paceline_tool::show;
use retina::client::{
    Credentials, InitialTimestampPolicy, PacketItem, PlayOptions, Playing, Session, SessionGroup,
    SessionOptions, SetupOptions, Stream, TcpTransportOptions, Transport, UdpTransportOptions,
};
use retina::codec::{ParametersRef, VideoParametersCodec};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Limit of one request to the camera.
const ANSWER: Duration = Duration::from_secs(5);
/// The same after it has played: a camera without power does not refuse a connection, and its return must be noticed.
const ANSWER_AGAIN: Duration = Duration::from_secs(2);
/// The interval at which the thread checks that somebody receives.
const CHECK: Duration = Duration::from_millis(100);
/// Limit of the wait for the end of the session.
const FAREWELL: Duration = Duration::from_millis(800);
/// The number of errors between two samples after which the connection is opened again.
const ERRORS_MAX: u32 = 16;

/// A camera as the user named it.
pub(super) struct Camera {
    pub(super) address: CameraAddress,
    pub(super) login: Option<Login>,
    pub(super) udp: bool,
}

/// Receives the samples of a camera.
pub(super) struct Reader {
    camera: Camera,
    lanes: Vec<Lane>,
    /// Gone when nobody receives.
    wanted: Weak<()>,
    backoff: Backoff,
    group: Arc<SessionGroup>,
    played: bool,
    /// The time since when the camera is away, after a note.
    away: Option<Instant>,
}

/// A connection that plays.
struct Play {
    session: Session<Playing>,
    tracks: Vec<Playback>,
    clock: CaptureClock,
    began: Instant,
    /// The RTP time of the last picture, and the arrival of its first packet.
    last: Option<(i64, Instant)>,
}

/// A track of a connection.
struct Playback {
    /// Its position in the description.
    stream: usize,
    track: Track,
    rate: u32,
    /// The rate of pictures in the description.
    hz: Option<f64>,
    /// The arrival of its last packet.
    at: Instant,
}

impl Reader {
    pub(super) fn new(camera: Camera, lanes: Vec<Lane>, wanted: Weak<()>) -> Self {
        let group = Arc::new(SessionGroup::default());
        Self {
            camera,
            lanes,
            wanted,
            backoff: Backoff::default(),
            group,
            played: false,
            away: None,
        }
    }

    /// Receives until nobody does, or until an error that another attempt does not change.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime of the camera")?;
        runtime.block_on(async {
            let result = self.attempts().await;
            let _ = timeout(FAREWELL, self.group.await_teardown()).await;
            result
        })
    }

    async fn attempts(&mut self) -> anyhow::Result<()> {
        loop {
            // A description or packet that the client of RTSP does not expect must not end this thread without a word.
            let ended = AssertUnwindSafe(self.attempt()).catch_unwind().await;
            let ended = ended.unwrap_or_else(|_| {
                let address = &self.camera.address;
                Ended::Final(anyhow!(
                    "{address}: the camera sent something that cannot be read as RTSP"
                ))
            });
            match ended {
                Ended::Unwanted => return Ok(()),
                Ended::Final(error) => return Err(error),
                Ended::Again(reason) => self.note_away(&reason),
            }
            sleep(self.backoff.failed()).await;
            if self.is_unwanted() {
                return Ok(());
            }
        }
    }

    /// Connects, and receives until the connection ends.
    async fn attempt(&mut self) -> Ended {
        match self.play().await {
            Ok(play) => self.receive(play).await,
            Err(ended) => ended,
        }
    }

    fn is_unwanted(&self) -> bool {
        self.wanted.strong_count() == 0
    }

    fn note_away(&mut self, reason: &str) {
        if self.away.is_none() {
            self.away = Some(Instant::now());
            show::note(&format!(
                "{}: {reason}; connecting again until it sends",
                self.camera.address
            ));
        }
    }

    fn note_back(&mut self) {
        if let Some(since) = self.away.take().filter(|_| self.played) {
            let away = since.elapsed().as_secs_f64();
            show::note(&format!("{}: sends again after {away:.1} s", self.camera.address));
        }
        self.played = true;
    }

    /// Waits for the answer to a request, and returns the time that it took.
    async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, retina::Error>>,
    ) -> Result<(T, Duration), Ended> {
        let began = Instant::now();
        let limit = if self.played { ANSWER_AGAIN } else { ANSWER };
        match timeout(limit, request).await {
            Ok(Ok(answer)) => Ok((answer, began.elapsed())),
            Ok(Err(error)) => {
                let known = (self.played, self.camera.login.is_some());
                Err(refusal::ended(&error, &self.camera.address, known))
            }
            Err(_) => Err(Ended::Again(format!("no answer within {} s", limit.as_secs()))),
        }
    }

    /// Connects, and starts the tracks.
    async fn play(&mut self) -> Result<Play, Ended> {
        let creds = self.camera.login.as_ref().map(|login| Credentials {
            username: login.user().to_owned(),
            password: login.password().to_owned(),
        });
        let options = SessionOptions::default()
            .creds(creds)
            .user_agent(concat!("paceline/", env!("CARGO_PKG_VERSION")).to_owned())
            .session_group(self.group.clone());
        let request = Session::describe(self.camera.address.url().clone(), options);
        let (mut session, mut path) = self.answer(request).await?;
        let tracks = self.choose(session.streams())?;
        for track in &tracks {
            let transport = match self.camera.udp {
                true => Transport::Udp(UdpTransportOptions::default()),
                false => Transport::Tcp(TcpTransportOptions::default()),
            };
            let setup = SetupOptions::default().transport(transport);
            let ((), took) = self.answer(session.setup(track.stream, setup)).await?;
            path = path.min(took);
        }
        // Sender reports place the tracks on one clock.
        let options = PlayOptions::default().initial_timestamp(InitialTimestampPolicy::Ignore);
        let (session, took) = self.answer(session.play(options)).await?;
        let path = u64::try_from(path.min(took).as_nanos()).unwrap_or(u64::MAX);
        let rates: Vec<u32> = tracks.iter().map(|track| track.rate).collect();
        let clock = CaptureClock::new(&rates, path);
        Ok(Play { session, tracks, clock, began: Instant::now(), last: None })
    }

    /// Returns a track for each lane.
    fn choose(&mut self, streams: &[Stream]) -> Result<Vec<Playback>, Ended> {
        let described: Vec<DescribedTrack<'_>> = streams.iter().map(described).collect();
        let name = self.camera.address.to_string();
        self.lanes
            .iter_mut()
            .map(|lane| {
                let found = choose(&described, lane.kind);
                let (at, format) =
                    found.map_err(|error| Ended::Final(anyhow!("{name}: {error}")))?;
                lane.check(format, &name)?;
                let unknown = || Ended::Again("its description changed".to_owned());
                let stream = streams.get(at).ok_or_else(unknown)?;
                Ok(Playback {
                    stream: at,
                    track: Track::new(format, &sets(stream)),
                    rate: stream.clock_rate_hz(),
                    hz: stream.framerate().map(f64::from).filter(|hz| *hz > 0.0),
                    at: Instant::now(),
                })
            })
            .collect()
    }

    /// Receives until the connection ends.
    async fn receive(&mut self, mut play: Play) -> Ended {
        let (mut heard, mut errors) = (Instant::now(), 0);
        loop {
            let Ok(item) = timeout(CHECK, play.session.next()).await else {
                let silence = self.backoff.silence();
                if self.is_unwanted() {
                    return Ended::Unwanted;
                }
                if heard.elapsed() > silence {
                    return Ended::Again(self.silent(silence));
                }
                continue;
            };
            match item {
                None => return Ended::Again("it closed the connection".to_owned()),
                Some(Err(error)) => {
                    errors += 1;
                    if errors > ERRORS_MAX {
                        let ended = refusal::ended(&error, &self.camera.address, (true, true));
                        // The camera accepted the login and the stream before.
                        let Ended::Final(error) = ended else { return ended };
                        return Ended::Again(error.to_string());
                    }
                }
                Some(Ok(PacketItem::Rtp(packet))) => {
                    let now = Instant::now();
                    // Sound that goes on does not hide pictures that have ended.
                    if play.tracks.first().is_some_and(|it| it.stream == packet.stream_id()) {
                        heard = now;
                    }
                    match self.packet(&mut play, &packet, now) {
                        Err(ended) => return ended,
                        Ok(true) => {
                            errors = 0;
                            self.backoff.arrived();
                            self.note_back();
                        }
                        Ok(false) => {}
                    }
                }
                Some(Ok(other)) => report(&mut play, &other),
            }
        }
    }

    fn silent(&self, silence: Duration) -> String {
        let fix =
            if self.camera.udp { " (a firewall may drop UDP: try without --rtsp-udp)" } else { "" };
        format!("no packet of pictures for {} s{fix}", silence.as_secs())
    }

    /// Takes a packet. Returns true if it completes a picture.
    fn packet(
        &mut self,
        play: &mut Play,
        packet: &retina::rtp::ReceivedPacket,
        at: Instant,
    ) -> Result<bool, Ended> {
        let tracks = play.tracks.iter_mut().zip(&mut self.lanes).enumerate();
        let mut known = tracks.filter(|(_, (track, _))| track.stream == packet.stream_id());
        let Some((number, (playback, lane))) = known.next() else { return Ok(false) };
        let packet = RtpPacket {
            time: packet.timestamp().timestamp(),
            marker: packet.mark(),
            lost: u32::from(packet.loss()),
            payload: packet.payload(),
        };
        // The first lane has the pictures.
        let begins = number == 0 && play.last.is_none_or(|(time, _)| time != packet.time);
        if begins && let Some((_, before)) = play.last.replace((packet.time, at)) {
            self.backoff.heard(at.saturating_duration_since(before));
        }
        lane.heard(packet.time);
        let before = std::mem::replace(&mut playback.at, at);
        let mut complete = false;
        for sample in playback.track.push(&packet, &lane.news) {
            complete |= number == 0;
            // The first packet of the next unit may end this one.
            let at = if sample.time == packet.time { at } else { before };
            let captured = play.clock.capture(number, sample.time, nanos(play.began, at));
            let arrived = Arrived { bytes: sample.bytes, at, captured };
            if !lane.give(&playback.track, arrived, (playback.rate, playback.hz))? {
                playback.track.lose();
            }
        }
        Ok(complete)
    }
}

fn nanos(began: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(began).as_nanos()).unwrap_or(u64::MAX)
}

/// Notes the sender reports of a packet.
fn report(play: &mut Play, item: &PacketItem) {
    let PacketItem::Rtcp(compound) = item else { return };
    let Some(time) = compound.rtp_timestamp() else { return };
    let number = play.tracks.iter().position(|track| track.stream == compound.stream_id());
    let first = compound.pkts().next();
    let sender = first.and_then(|packet| packet.as_sender_report().ok().flatten());
    if let Some((number, sender)) = number.zip(sender) {
        play.clock.report(number, sender.ntp_timestamp().0, time.timestamp());
    }
}

fn described(stream: &Stream) -> DescribedTrack<'_> {
    DescribedTrack {
        medium: stream.media(),
        encoding: stream.encoding_name(),
        rate: stream.clock_rate_hz(),
        channels: stream.channels().map(std::num::NonZeroU16::get),
    }
}

/// Returns the parameter sets of the description.
fn sets(stream: &Stream) -> Vec<Vec<u8>> {
    let Some(ParametersRef::Video(parameters)) = stream.parameters() else { return Vec::new() };
    let codec = parameters.codec_params();
    if let VideoParametersCodec::H264 { sps, pps } = codec {
        return vec![sps.to_vec(), pps.to_vec()];
    }
    if let VideoParametersCodec::H265 { vps, sps, pps } = codec {
        return vec![vps.to_vec(), sps.to_vec(), pps.to_vec()];
    }
    Vec::new()
}
