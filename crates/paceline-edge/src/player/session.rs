//! The state of a player's session: which requests are possible, and their answers.

use super::answer::{PlayerAnswer, PlayerStatus};
use super::digest::{Challenge, LoginCheck};
use super::message::{PlayerMethod, PlayerRequest};
use super::target::{PlayerTarget, TRACKS_MAX};
use super::transport::{PlayerTransport, TransportError};
use rtsp_types::headers::{
    ALLOW, CONTENT_BASE, PUBLIC, RANGE, RTP_INFO, SESSION, TRANSPORT, UNSUPPORTED, WWW_AUTHENTICATE,
};

/// The time without a sign of the player after which its session ends, in seconds.
pub const SESSION_SECONDS: u32 = 60;
/// The methods that are served.
const METHODS: &str =
    "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";
/// The number of wrong logins after which the connection is closed.
const WRONG_MAX: u8 = 3;

/// A track that is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetUpTrack {
    /// Its transport.
    pub transport: PlayerTransport,
    /// The identity of its sender.
    pub ssrc: u32,
}

/// What to do for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum PlayerStep {
    /// Send this answer.
    Answer(PlayerAnswer),
    /// Send this answer, and close the connection.
    Close(PlayerAnswer),
    /// Find the samples, and call [`PlayerSession::described`].
    Describe(PlayerTarget),
    /// Wait for the answer of the path, and call [`PlayerSession::set_up`].
    SetUp {
        /// The samples.
        target: PlayerTarget,
        /// The number of the track.
        track: u8,
        /// The transport.
        transport: PlayerTransport,
    },
    /// Call [`PlayerSession::playing`], send its answer, and then packets.
    Play,
    /// Stop sending, and send this answer.
    Pause(PlayerAnswer),
    /// Send this answer, and end the session.
    End(PlayerAnswer),
}

/// The session of one connection.
///
/// ```
/// use paceline_edge::{PlayerMessage, PlayerReader, PlayerSession, PlayerStatus, PlayerStep};
///
/// let mut session = PlayerSession::new("7f".to_owned(), None);
/// let mut reader = PlayerReader::default();
/// reader.push(b"PLAY rtsp://h/robot/camera RTSP/1.0\r\nCSeq: 1\r\n\r\n");
/// let Some(PlayerMessage::Request(request)) = reader.poll()? else { panic!() };
/// let PlayerStep::Answer(answer) = session.take(&request) else { panic!() };
/// assert_eq!(answer.status(), PlayerStatus::NotValidInThisState);
/// # Ok::<(), paceline_edge::RtspError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlayerSession {
    id: String,
    challenge: Option<Challenge>,
    wrong: u8,
    /// The samples of the first track that was set up.
    target: Option<PlayerTarget>,
    tracks: [Option<SetUpTrack>; TRACKS_MAX as usize],
    playing: bool,
}

fn refused(status: PlayerStatus, reason: &str) -> PlayerStep {
    PlayerStep::Answer(PlayerAnswer::refusal(status, reason))
}

impl PlayerSession {
    /// Returns the session with this identity. Requests need the login of `challenge`, if there is one.
    #[must_use]
    pub const fn new(id: String, challenge: Option<Challenge>) -> Self {
        Self {
            id,
            challenge,
            wrong: 0,
            target: None,
            tracks: [None; TRACKS_MAX as usize],
            playing: false,
        }
    }

    /// Returns the identity.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the samples, once a track is set up.
    #[must_use]
    pub const fn target(&self) -> Option<&PlayerTarget> {
        self.target.as_ref()
    }

    /// Takes a request.
    pub fn take(&mut self, request: &PlayerRequest) -> PlayerStep {
        if let Some(step) = self.check(request) {
            return step;
        }
        match request.method {
            PlayerMethod::Options => PlayerStep::Answer(PlayerAnswer::ok().header(PUBLIC, METHODS)),
            PlayerMethod::Describe => match target(request) {
                Ok(target) => PlayerStep::Describe(target),
                Err(answer) => PlayerStep::Answer(answer),
            },
            PlayerMethod::Setup => self.ask_for_track(request),
            PlayerMethod::Play => match self.tracks() {
                0 => refused(
                    PlayerStatus::NotValidInThisState,
                    "no track is set up; send SETUP first",
                ),
                _ => PlayerStep::Play,
            },
            PlayerMethod::Pause if self.tracks() == 0 => {
                refused(PlayerStatus::NotValidInThisState, "no track is set up; send SETUP first")
            }
            PlayerMethod::Pause => {
                self.playing = false;
                PlayerStep::Pause(self.ok())
            }
            PlayerMethod::Teardown => {
                self.playing = false;
                PlayerStep::End(self.ok())
            }
            PlayerMethod::KeepAlive if request.has_body => {
                refused(PlayerStatus::ParameterNotUnderstood, "there are no parameters")
            }
            PlayerMethod::KeepAlive => PlayerStep::Answer(self.ok()),
            PlayerMethod::Other => {
                let answer = PlayerAnswer::refusal(
                    PlayerStatus::MethodNotAllowed,
                    "this server sends samples; to publish a camera, use paceline pub --rtsp",
                );
                PlayerStep::Answer(answer.header(ALLOW, METHODS))
            }
        }
    }

    /// Returns the refusal of a request for reasons that do not depend on its method.
    fn check(&mut self, request: &PlayerRequest) -> Option<PlayerStep> {
        if !request.known_version {
            return Some(refused(PlayerStatus::VersionNotSupported, "must be RTSP/1.0"));
        }
        if request.cseq.is_none() {
            return Some(refused(PlayerStatus::BadRequest, "CSeq is missing, must be a number"));
        }
        if let Some(feature) = &request.require {
            let answer =
                PlayerAnswer::refusal(PlayerStatus::OptionNotSupported, "no feature is served");
            return Some(PlayerStep::Answer(answer.header(UNSUPPORTED, feature.as_str())));
        }
        if request.method != PlayerMethod::Options
            && let Some(step) = self.check_login(request)
        {
            return Some(step);
        }
        match &request.session {
            Some(session) if *session != self.id || self.tracks() == 0 => {
                Some(refused(PlayerStatus::SessionNotFound, "this connection has no such session"))
            }
            Some(_) | None => None,
        }
    }

    fn check_login(&mut self, request: &PlayerRequest) -> Option<PlayerStep> {
        let challenge = self.challenge.as_ref()?;
        let reason = match challenge.check(request) {
            LoginCheck::Right => {
                self.wrong = 0;
                return None;
            }
            LoginCheck::Missing => "a login is needed",
            LoginCheck::Wrong => {
                self.wrong = self.wrong.saturating_add(1);
                "the name or the password is wrong"
            }
        };
        let answer = PlayerAnswer::refusal(PlayerStatus::Unauthorized, reason)
            .header(WWW_AUTHENTICATE, challenge.header());
        let many = self.wrong >= WRONG_MAX;
        Some(if many { PlayerStep::Close(answer) } else { PlayerStep::Answer(answer) })
    }

    fn ask_for_track(&self, request: &PlayerRequest) -> PlayerStep {
        let target = match target(request) {
            Ok(target) => target,
            Err(answer) => return PlayerStep::Answer(answer),
        };
        let other = self.target.as_ref().is_some_and(|known| known.url() != target.url());
        let (track, all) = (target.track.unwrap_or(0), target.tracks());
        if other || target.track.is_none() && all > 1 {
            let reason = "a session plays the tracks of one address; send SETUP for a track of its description";
            return refused(PlayerStatus::AggregateNotAllowed, reason);
        }
        if track >= all {
            return refused(PlayerStatus::NotFound, "the address has no such track");
        }
        let known = self.tracks.get(usize::from(track)).copied().flatten();
        if self.playing || known.is_some() {
            let reason = "the track is set up, or the session plays; send TEARDOWN first";
            return refused(PlayerStatus::NotValidInThisState, reason);
        }
        let transport = match &request.transport {
            Some(header) => PlayerTransport::choose(header, (track * 2, track * 2 + 1)),
            None => Err(TransportError::Missing),
        };
        match transport {
            Ok(transport) if self.is_free(transport) => {
                PlayerStep::SetUp { target, track, transport }
            }
            Ok(_) => refused(
                PlayerStatus::UnsupportedTransport,
                "another track has the channels or ports",
            ),
            Err(error) => refused(PlayerStatus::UnsupportedTransport, &error.to_string()),
        }
    }

    /// Returns true if no other track has a channel or port of this transport.
    fn is_free(&self, wanted: PlayerTransport) -> bool {
        self.tracks.iter().flatten().all(|known| match (known.transport, wanted) {
            (
                PlayerTransport::Tcp { channels: (a, b) },
                PlayerTransport::Tcp { channels: (c, d) },
            ) => a != c && a != d && b != c && b != d,
            (PlayerTransport::Udp { ports: (a, b) }, PlayerTransport::Udp { ports: (c, d) }) => {
                a != c && a != d && b != c && b != d
            }
            _ => true,
        })
    }

    /// Returns the number of tracks that are set up.
    #[must_use]
    pub fn tracks(&self) -> usize {
        self.tracks.iter().flatten().count()
    }

    /// Returns the track with this number, if it is set up.
    #[must_use]
    pub fn track(&self, number: u8) -> Option<SetUpTrack> {
        self.tracks.get(usize::from(number)).copied().flatten()
    }

    /// Returns the number of wrong logins since the last right one.
    #[must_use]
    pub const fn wrong_logins(&self) -> u8 {
        self.wrong
    }

    /// Returns true while packets are sent.
    #[must_use]
    pub const fn is_playing(&self) -> bool {
        self.playing
    }

    fn ok(&self) -> PlayerAnswer {
        let answer = PlayerAnswer::ok();
        if self.tracks() == 0 {
            return answer;
        }
        answer.header(SESSION, format!("{};timeout={SESSION_SECONDS}", self.id))
    }

    /// Returns the answer with a description.
    #[must_use]
    pub fn described(&self, target: &PlayerTarget, description: Vec<u8>) -> PlayerAnswer {
        PlayerAnswer::ok().header(CONTENT_BASE, target.url()).body("application/sdp", description)
    }

    /// Notes that a track is set up, and returns the answer. `server_ports` send packets and reports over UDP.
    #[must_use]
    pub fn set_up(
        &mut self,
        target: PlayerTarget,
        (number, track): (u8, SetUpTrack),
        server_ports: (u16, u16),
    ) -> PlayerAnswer {
        if let Some(place) = self.tracks.get_mut(usize::from(number)) {
            *place = Some(track);
        }
        self.target.get_or_insert(target);
        let transport = track.transport.answer(track.ssrc, server_ports);
        self.ok().header(TRANSPORT, transport)
    }

    /// Notes that packets are sent, and returns the answer. `first` has the number of each track, the sequence number of its next
    /// packet, and its RTP time if it is known.
    #[must_use]
    pub fn playing(&mut self, first: &[(u8, u16, Option<u32>)]) -> PlayerAnswer {
        self.playing = true;
        let Some(target) = &self.target else { return self.ok() };
        let info = first.iter().map(|(track, sequence, time)| {
            let time = time.map(|time| format!(";rtptime={time}")).unwrap_or_default();
            format!("url={};seq={sequence}{time}", target.track_url(*track))
        });
        let info: Vec<String> = info.collect();
        self.ok().header(RANGE, "npt=now-").header(RTP_INFO, info.join(","))
    }
}

/// Returns the samples that a request names.
fn target(request: &PlayerRequest) -> Result<PlayerTarget, PlayerAnswer> {
    let none = "the address is missing, must be rtsp://HOST:PORT/TAG";
    let bad = |reason: &str| PlayerAnswer::refusal(PlayerStatus::BadRequest, reason);
    let url = request.url.as_ref().ok_or_else(|| bad(none))?;
    PlayerTarget::parse(url).map_err(|error| bad(&error.to_string()))
}
