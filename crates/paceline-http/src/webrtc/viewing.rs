//! The set-up of a viewer's session: its feeds, the answer of the path, and the answer to its offer.

use super::Shared;
use super::registry::Pending;
use super::session::{REORDERED, Session, SessionState, SessionTrack};
use super::view::SessionView;
use crate::feeds::{ANSWER_WITHIN, Accepted, FeedFault, FeedFaultKind, FeedStage, FeedWish};
use paceline_edge::{
    OfferError, PlayerTarget, ServeError, TrackFormat, ViewerPeer, WebrtcOffer, browser_format,
};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// The rate at which sound is coded as Opus that browsers do not read as published.
const SOUND: &str = "bitrate=64kbit";

/// A session that has begun.
pub(super) struct Begun {
    /// The number of the session.
    pub(super) id: String,
    /// The answer as a session description.
    pub(super) sdp: String,
}

/// The reason why a session does not begin.
pub(super) enum NotBegun {
    Feed(FeedFault),
    Offer(OfferError),
}

impl From<FeedFault> for NotBegun {
    fn from(fault: FeedFault) -> Self {
        Self::Feed(fault)
    }
}

impl From<OfferError> for NotBegun {
    fn from(error: OfferError) -> Self {
        Self::Offer(error)
    }
}

/// Begins a session for the tags of an address. Runs on the thread of the sessions.
pub(super) async fn view(
    shared: Arc<Shared>,
    pending: Pending,
    target: PlayerTarget,
    (address, offer): (String, WebrtcOffer),
) -> Result<Begun, NotBegun> {
    let found = shared.hub.find(&wishes(&target), accept).await?;
    let mut stages = Vec::new();
    for lease in &found.leases {
        let stage = lease.feed.wait(ANSWER_WITHIN, FeedStage::is_answered).await;
        stage.check()?;
        if stage.reorders {
            return Err(FeedFault::of(&target.tag, FeedFaultKind::Format, REORDERED).into());
        }
        stages.push(stage);
    }
    for format in &found.formats {
        if matches!(format, TrackFormat::L16 { .. } | TrackFormat::Aac { .. } | TrackFormat::Jpeg) {
            let why = "browsers do not read its samples; request sound as Opus by bitrate=64kbit";
            return Err(FeedFault::of(&target.tag, FeedFaultKind::Format, why).into());
        }
    }
    let keys = stages.iter().map(|stage| stage.key.as_deref());
    let tracks = found.formats.iter().zip(keys).map(|(format, key)| Ok((*format, key, random()?)));
    let tracks: Vec<(TrackFormat, Option<&[u8]>, u32)> =
        tracks.collect::<Result<_, FeedFault>>()?;
    let (peer, sdp) = ViewerPeer::accept(&shared.setup, offer, &tracks, Instant::now())?;
    let id = new_id()?;
    let answers: Vec<String> = stages.iter().map(FeedStage::answer_text).collect();
    let answer = answers.join("; ");
    tracing::info!("WebRTC: viewer {id} of {address}: {answer}");
    let view = SessionView { id: id.clone(), address, answer, ..SessionView::default() };
    let member = pending.enter(id.as_str().into(), peer.user(), view);
    let tracks = found.leases.into_iter().zip(found.formats);
    let tracks = tracks.map(|(lease, format)| SessionTrack::new(lease, format)).collect();
    let session = Session { shared, member, peer, tracks, state: SessionState::default() };
    tokio::spawn(session.run());
    Ok(Begun { id, sdp })
}

/// Returns the samples that browsers accept. PCM is coded as Opus.
fn accept(encoding: &str) -> Result<Accepted, ServeError> {
    let format = browser_format(encoding)?;
    Ok(Accepted { format, option: format.is_none().then_some(SOUND) })
}

/// Returns the tags of an address with the options for each.
fn wishes(target: &PlayerTarget) -> Vec<FeedWish> {
    let own = (target.tag.clone(), target.query.clone());
    let all = std::iter::once(own).chain(target.sound.clone());
    all.map(|(tag, query)| FeedWish { tag, query }).collect()
}

/// Returns a new number of a session. It cannot be guessed.
pub(super) fn new_id() -> Result<String, FeedFault> {
    let mut text = String::new();
    for _ in 0..4 {
        let _ = write!(text, "{:08x}", random()?);
    }
    Ok(text)
}

/// Returns a random number.
fn random() -> Result<u32, FeedFault> {
    getrandom::u32().map_err(|error| {
        let why = format!("the system has no random numbers: {error}");
        FeedFault::new(FeedFaultKind::Unavailable, why)
    })
}
