//! The HTTP of WebRTC: WHIP (RFC 9725), and WHEP (draft-ietf-wish-whep), which has the same answers.

use super::Shared;
use super::publishing::publish;
use super::viewing::{Begun, NotBegun, view};
use crate::answer::{self, Answer};
use crate::feeds::{FeedFault, FeedFaultKind};
use crate::slots::Client;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, StatusCode};
use paceline_edge::{OFFER_BYTES_MAX, OfferError, PlayerTarget, TargetError, WebrtcOffer};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// The prefixes of the addresses of tags for viewers and for publishers, and of sessions.
const VIEW: &str = "/whep/";
const PUBLISH: &str = "/whip/";
const SESSIONS: &str = "/webrtc/";
const SDP: &str = "application/sdp";
/// The longest time to receive an offer.
const OFFER_WITHIN: Duration = Duration::from_secs(5);
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

type Problem = (StatusCode, String);

/// A refusal with the addresses that the path would grant.
#[derive(Serialize)]
struct Refused<'a> {
    error: &'a str,
    offers: Vec<OfferLine>,
}

#[derive(Serialize)]
struct OfferLine {
    /// The options, as of `POST /api/v1/subscriptions/ID`.
    set: String,
    address: String,
}

/// Returns true for the paths of WebRTC.
pub(crate) fn is_path(path: &str) -> bool {
    [VIEW, PUBLISH, SESSIONS].iter().any(|prefix| path.starts_with(prefix)) || path == "/webrtc"
}

/// Returns the method that states the right for a request: to view is to read, whatever its method. To publish is to change.
pub(crate) fn right_of<'a>(path: &str, method: &'a Method) -> &'a Method {
    if is_path(path) && !path.starts_with(PUBLISH) { &Method::GET } else { method }
}

/// Answers a request for a path of WebRTC.
pub(crate) async fn answer(
    shared: Option<&Arc<Shared>>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let shared = shared.ok_or_else(|| {
        let error = "WebRTC is not served here: start paceline node --webrtc 127.0.0.1:8471";
        (StatusCode::NOT_FOUND, error.to_owned())
    })?;
    let path = request.uri().path().to_owned();
    if path == "/webrtc" {
        only(&request, &[Method::GET])?;
        return Ok(answer::json(&shared.registry.views()));
    }
    if let Some(id) = path.strip_prefix(SESSIONS) {
        return session(shared, client, id, &request);
    }
    if request.method() == Method::OPTIONS {
        let mut answer = answer::nothing();
        allow(&mut answer, "OPTIONS, POST");
        answer.headers_mut().insert(ACCEPT_POST, HeaderValue::from_static(SDP));
        return Ok(answer);
    }
    only(&request, &[Method::POST, Method::OPTIONS])?;
    begin(shared, client, request).await
}

/// Begins a session.
async fn begin(
    shared: &Arc<Shared>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let asked = request.uri().path_and_query().map_or("", |asked| asked.as_str()).to_owned();
    let publishes = asked.starts_with(PUBLISH);
    let target = target(&asked)?;
    let offer = offer(request).await?;
    let pending = shared.registry.reserve(client);
    let pending = pending.map_err(|why| (StatusCode::SERVICE_UNAVAILABLE, why))?;
    let (of, wanted) = (shared.clone(), target.clone());
    let began = shared.runtime.spawn(async move {
        match publishes {
            true => publish(of, pending, wanted, (asked, offer)).await,
            false => view(of, pending, wanted, (asked, offer)).await,
        }
    });
    let failed =
        |error: tokio::task::JoinError| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    match began.await.map_err(failed)? {
        Ok(begun) => Ok(created(begun)),
        Err(NotBegun::Feed(fault)) => Ok(refused(&fault, &target)),
        Err(NotBegun::Offer(error)) => Err(wrong(&error)),
    }
}

/// Returns the tags and options of an address.
fn target(asked: &str) -> Result<PlayerTarget, Problem> {
    let rest = asked.strip_prefix(VIEW).or_else(|| asked.strip_prefix(PUBLISH)).unwrap_or_default();
    let url = format!("http://node/{rest}").parse();
    let bad = |why: String| (StatusCode::BAD_REQUEST, why);
    let url = url.map_err(|error| bad(format!("the address cannot be read: {error}")))?;
    PlayerTarget::parse(&url).map_err(|error| match error {
        TargetError::NoTag => {
            let example = "POST to /whep/TAG, such as /whep/robot/camera?max_hz=10";
            bad(format!("the address names no tag: {example}"))
        }
        TargetError::Track | TargetError::Text(_) | TargetError::Login(_) => bad(error.to_string()),
    })
}

/// Reads an offer.
async fn offer(request: Request<Incoming>) -> Result<WebrtcOffer, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case(SDP)) {
        let error = format!("Content-Type must be {SDP}, with the offer of an RTCPeerConnection");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let body = Limited::new(request.into_body(), OFFER_BYTES_MAX).collect();
    let body = match tokio::time::timeout(OFFER_WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => {
            let error = format!(
                "the offer cannot be read, or has more than {OFFER_BYTES_MAX} bytes: {error}"
            );
            return Err((StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        Err(_) => {
            let error = format!("the offer took more than {} s", OFFER_WITHIN.as_secs());
            return Err((StatusCode::REQUEST_TIMEOUT, error));
        }
    };
    let text = std::str::from_utf8(&body);
    let text = text.map_err(|_| (StatusCode::BAD_REQUEST, "the offer is no text".to_owned()))?;
    WebrtcOffer::parse(text).map_err(|error| wrong(&error))
}

/// Returns the status and the reason for an offer that is not accepted.
fn wrong(error: &OfferError) -> Problem {
    let status = match error {
        OfferError::Long(_) => StatusCode::PAYLOAD_TOO_LARGE,
        OfferError::Media(_) | OfferError::Sdp(_) => StatusCode::BAD_REQUEST,
        OfferError::Missing(..) | OfferError::Codec { .. } | OfferError::NoTracks => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    (status, error.to_string())
}

fn created(begun: Begun) -> Answer {
    let mut answer = answer::bytes(SDP, begun.sdp);
    *answer.status_mut() = StatusCode::CREATED;
    let headers = answer.headers_mut();
    for (name, value) in
        [(LOCATION, format!("{SESSIONS}{}", begun.id)), (ETAG, format!("\"{}\"", begun.id))]
    {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    answer
}

/// Returns the answer for a request that is not served: with the addresses that the path would grant.
fn refused(fault: &FeedFault, target: &PlayerTarget) -> Answer {
    let status = match fault.kind {
        FeedFaultKind::Request => StatusCode::BAD_REQUEST,
        FeedFaultKind::Missing => StatusCode::NOT_FOUND,
        FeedFaultKind::Format => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        FeedFaultKind::Refused => StatusCode::CONFLICT,
        FeedFaultKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    if fault.kind != FeedFaultKind::Refused {
        return answer::problem(status, &fault.why);
    }
    let offers = fault.offers.iter().map(|flags| {
        let url = target.with_flags(flags);
        let path = url.strip_prefix("http://node/").unwrap_or_default();
        OfferLine { set: flags.clone(), address: format!("{VIEW}{path}") }
    });
    let mut answer = answer::json(&Refused { error: &fault.why, offers: offers.collect() });
    *answer.status_mut() = status;
    answer
}

/// Answers a request for a session.
fn session(
    shared: &Shared,
    client: Client,
    id: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    let none = || {
        let error = "there is no such session: it has ended, or the address is wrong".to_owned();
        (StatusCode::NOT_FOUND, error)
    };
    let (owner, view) = shared.registry.view(id).ok_or_else(none)?;
    match *request.method() {
        Method::GET => Ok(answer::json(&view)),
        Method::OPTIONS => {
            let mut answer = answer::nothing();
            allow(&mut answer, "DELETE, GET, OPTIONS, PATCH");
            Ok(answer)
        }
        Method::DELETE | Method::PATCH if owner != client => {
            let error = "another client has begun this session".to_owned();
            Err((StatusCode::FORBIDDEN, error))
        }
        Method::DELETE => {
            shared.registry.end(id);
            let mut answer = answer::nothing();
            *answer.status_mut() = StatusCode::OK;
            Ok(answer)
        }
        Method::PATCH => trickled(request),
        _ => Err(only(request, &[Method::GET, Method::DELETE, Method::PATCH, Method::OPTIONS])
            .err()
            .unwrap_or_else(none)),
    }
}

/// Answers candidates of the peer (RFC 8840): a server of ICE-lite learns them from the checks of the peer.
fn trickled(request: &Request<Incoming>) -> Result<Answer, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/trickle-ice-sdpfrag") {
        let error = "Content-Type must be application/trickle-ice-sdpfrag".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    // Candidates have the tag of their session, and a restart any tag (RFC 9725, 4.3.1).
    if request.headers().get(hyper::header::IF_MATCH).is_some_and(|tag| tag == "*") {
        let error = "ICE is not restarted: DELETE the session, and begin another one".to_owned();
        return Err((StatusCode::UNPROCESSABLE_ENTITY, error));
    }
    Ok(answer::nothing())
}

fn allow(answer: &mut Answer, methods: &'static str) {
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
}

/// Checks the method of a request.
fn only(request: &Request<Incoming>, methods: &[Method]) -> Result<(), Problem> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let error = format!("{} is not supported here: use {}", request.method(), names.join(" or "));
    Err((StatusCode::METHOD_NOT_ALLOWED, error))
}
