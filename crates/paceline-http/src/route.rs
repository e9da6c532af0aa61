//! Routes requests by path.

use super::answer::{self, Answer};
use super::api::{Change, Turn, WorldChange};
use super::served::{Peer, Served, Tick, Upgrade};
use super::source::Source;
use super::watched::NoPicture;
use super::{browser, events, foxglove, metrics, pages, webrtc};
use crate::browser::BrowserRights;
use crate::slots::Client;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The longest path including the query, in bytes.
const TARGET_MAX: usize = 512;
/// The longest body in bytes, and the longest time to receive it.
const BODY_MAX: usize = 1_024;
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// The longest wait for the first reading.
const READ_WITHIN: Duration = Duration::from_secs(2);

const API: &str = "/api/v1/";
const PATHS: &str = "state, events, nodes, nodes/NAME, publishers, subscriptions, subscriptions/ID, buffers, links, streams, refusals, \
     pictures/SUBSCRIPTION, values/SUBSCRIPTION, history, comparison, world, switches/NAME";

pub(super) async fn answer(served: &Served, peer: &Peer, request: Request<Incoming>) -> Answer {
    match answered(served, peer, request).await {
        Ok(answer) => answer,
        Err((status, error)) => answer::problem(status, &error),
    }
}

type Problem = (StatusCode, String);

async fn answered(
    served: &Served,
    peer: &Peer,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    if served.foxglove.is_some() {
        return begin_foxglove(served, peer, request);
    }
    if [browser::PATH, browser::TRANSPORT_PATH].contains(&request.uri().path()) {
        return begin_browser(served, peer, request);
    }
    served.guard.check(request.method(), request.headers())?;
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().map(str::to_owned));
    if path.len() + query.as_ref().map_or(0, String::len) > TARGET_MAX {
        let error = format!("the path has more than {TARGET_MAX} bytes");
        return Err((StatusCode::URI_TOO_LONG, error));
    }
    let mut client = peer.client;
    if let Some(access) = &served.access {
        if let Some((signed_in, token)) = access.sign_in(&path, query.as_deref()) {
            peer.slot.admit(Client::Token(token));
            return Ok(signed_in);
        }
        let right = webrtc::right_of(&path, request.method());
        let checked = access.check(right, request.headers());
        if let Err((_, why)) = &checked {
            served.source.note_refused(&peer.from, &path, why);
        }
        client = checked?.map_or(client, Client::Token);
    }
    peer.slot.admit(client);
    if let Some(name) = path.strip_prefix("/api/v1/switches/") {
        return turn(served, name, request).await;
    }
    if let Some(subscription) = path.strip_prefix("/api/v1/subscriptions/") {
        return change(served, subscription, request).await;
    }
    if webrtc::is_path(&path) {
        return webrtc::answer(served.webrtc.as_ref(), client, request).await;
    }
    if path == "/api/v1/world" && request.method() == Method::POST {
        return set_world(served, request).await;
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let error = format!("{} is not supported here: use GET", request.method());
        return Err((StatusCode::METHOD_NOT_ALLOWED, error));
    }
    let has_body = request.headers().contains_key(TRANSFER_ENCODING)
        || request.headers().get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    if has_body {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "GET takes no body: leave it out".to_owned()));
    }
    found((served, peer), &path, query.as_deref()).await
}

/// Begins a connection of Foxglove, and counts it as a client that follows.
fn begin_foxglove(
    served: &Served,
    peer: &Peer,
    mut request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let mut client = peer.client;
    let token = request.uri().query().and_then(foxglove::token);
    let mut is_member = false;
    if let Some(access) = &served.access {
        let checked = access.check_with(token, request.headers());
        if let Err((_, why)) = &checked {
            served.source.note_refused(&peer.from, request.uri().path(), why);
        }
        if let Some(number) = checked? {
            (client, is_member) = (Client::Token(number), true);
        }
    }
    // A token in the address is no ambient right of a browser, so any page with one may connect.
    if !is_member {
        served.guard.check_viewer(request.headers())?;
    }
    peer.slot.admit(client);
    let (answer, upgrade) = foxglove::upgrade(&mut request)?;
    if !peer.slot.follow() {
        let error = "too many viewers are connected: close one";
        return Err((StatusCode::SERVICE_UNAVAILABLE, error.to_owned()));
    }
    *peer.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(Upgrade::Viewer(upgrade));
    Ok(answer)
}

/// Answers a browser that wants to be a peer. A page of this server brings its cookie; another one gives a token.
fn begin_browser(
    served: &Served,
    peer: &Peer,
    mut request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let (mut client, mut rights) = (peer.client, BrowserRights::Change);
    let token = request.uri().query().and_then(foxglove::token);
    // A token in the address is no ambient right of a browser, so any page with one may connect.
    if token.is_none() || served.access.is_none() {
        served.guard.check(request.method(), request.headers())?;
    }
    if let Some(access) = &served.access {
        let checked = match token {
            Some(_) => access.check_with(token, request.headers()),
            None => access.check(request.method(), request.headers()),
        };
        if let Err((_, why)) = &checked {
            served.source.note_refused(&peer.from, request.uri().path(), why);
        }
        if let Some(number) = checked? {
            client = Client::Token(number);
            rights = if access.may_change(number) { rights } else { BrowserRights::Read };
        }
    }
    peer.slot.admit(client);
    let Some(browsers) = &served.browsers else {
        let error = "this server combines several nodes: connect to the port of one of them";
        return Err((StatusCode::NOT_FOUND, error.to_owned()));
    };
    if request.uri().path() == browser::TRANSPORT_PATH {
        let offered = browsers.offer(rights).ok_or_else(|| {
            let error = "WebTransport is not served here: use WebSocket";
            (StatusCode::NOT_FOUND, error.to_owned())
        })?;
        let unavailable =
            |error: anyhow::Error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error:#}"));
        return Ok(answer::json(&offered.map_err(unavailable)?));
    }
    let (answer, upgrade) = browser::upgrade(&mut request, rights, &peer.from)?;
    *peer.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(Upgrade::Browser(upgrade));
    Ok(answer)
}

/// Answers a request for a path.
async fn found(
    (served, peer): (&Served, &Peer),
    path: &str,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    if let Some(subscription) = path.strip_prefix("/api/v1/pictures/") {
        return picture(served, subscription, query).await;
    }
    if let Some(subscription) = path.strip_prefix("/api/v1/values/") {
        return values(served, subscription).await;
    }
    if path == "/api/v1/comparison" {
        return comparison(served).await;
    }
    if path == "/api/v1/events" {
        if !peer.slot.follow() {
            let error = "too many clients follow the events: close a page, or poll /api/v1/state";
            return Err((StatusCode::SERVICE_UNAVAILABLE, error.to_owned()));
        }
        return Ok(events::follow(served.ticks.clone()));
    }
    if path == "/api/v1/world" {
        let error = "there is no world: start `paceline demo world`".to_owned();
        let json = served.source.world().ok_or((StatusCode::NOT_FOUND, error))?;
        return Ok(answer::bytes("application/json", json));
    }
    if path == "/api/v1/history" {
        return Ok(answer::json(&served.history.past()));
    }
    if path == "/metrics" {
        let text = metrics::write(&tick(served).await?.state);
        return Ok(answer::bytes("text/plain; version=0.0.4; charset=utf-8", text));
    }
    match path.strip_prefix(API) {
        Some(rest) => {
            let newest = tick(served).await?;
            state_answer(&newest, rest)
        }
        None => pages::find(path)
            .ok_or((StatusCode::NOT_FOUND, format!("there is no {path}: the page is /"))),
    }
}

/// Changes the world of the demo.
async fn set_world(served: &Served, request: Request<Incoming>) -> Result<Answer, Problem> {
    let change: WorldChange = posted(request, r#"{"capacity":"256kbit"}"#).await?;
    let set = blocking(served, move |source| source.set_world(&change.capacity)).await?;
    set.map(|()| answer::nothing()).map_err(|error| (StatusCode::BAD_REQUEST, error))
}

/// Runs a function that may block.
async fn blocking<T: Send + 'static>(
    served: &Served,
    run: impl FnOnce(&dyn Source) -> T + Send + 'static,
) -> Result<T, Problem> {
    let source = served.source.clone();
    let done = tokio::task::spawn_blocking(move || run(source.as_ref())).await;
    done.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Returns the newest reading; waits for the first one.
async fn tick(served: &Served) -> Result<Arc<Tick>, Problem> {
    let mut ticks = served.ticks.clone();
    let first = ticks.wait_for(Option::is_some);
    let tick = match tokio::time::timeout(READ_WITHIN, first).await {
        Ok(Ok(tick)) => tick.clone(),
        Ok(Err(_)) | Err(_) => None,
    };
    tick.ok_or((StatusCode::SERVICE_UNAVAILABLE, "the node does not answer".to_owned()))
}

/// Answers the paths that need only the reading.
fn state_answer(tick: &Tick, path: &str) -> Result<Answer, Problem> {
    let state = &tick.state;
    Ok(match path {
        "state" => answer::json(state),
        "nodes" => answer::json(&state.nodes()),
        "publishers" => answer::json(&state.publishers()),
        "subscriptions" => answer::json(&state.subscriptions()),
        "buffers" => answer::json(&state.buffers()),
        "links" => answer::json(&state.links()),
        "streams" => answer::json(&state.streams()),
        "refusals" => answer::json(&state.refusals()),
        "switches" => answer::json(&state.switches),
        other => match other.strip_prefix("nodes/").and_then(|name| state.node(name)) {
            Some(node) => answer::json(node),
            None => {
                let error = format!("there is no {API}{other}: the paths are {PATHS}");
                return Err((StatusCode::NOT_FOUND, error));
            }
        },
    })
}

async fn picture(
    served: &Served,
    subscription: &str,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    let after = match query.map(|query| query.strip_prefix("after=").and_then(|n| n.parse().ok())) {
        Some(None) => {
            let error =
                "the query must be after=NUMBER, the number of the previous picture".to_owned();
            return Err((StatusCode::BAD_REQUEST, error));
        }
        after => after.flatten(),
    };
    let subscription = subscription.to_owned();
    match blocking(served, move |source| source.picture(&subscription, after)).await? {
        Ok(Some(shown)) => {
            let mut answer = answer::bytes(shown.kind, shown.picture);
            let (width, height) = shown.size;
            for (name, value) in [
                ("x-paceline-seq", shown.seq.to_string()),
                ("x-paceline-age-us", shown.age_us.to_string()),
                ("x-paceline-size", format!("{width}x{height}")),
                ("x-paceline-bytes", shown.bytes.to_string()),
            ] {
                let value = HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("0"));
                answer.headers_mut().insert(name, value);
            }
            Ok(answer)
        }
        Ok(None) => Ok(answer::nothing()),
        Err(NoPicture::Unknown) => {
            let error = "there is no such subscription here: /api/v1/subscriptions lists them";
            Err((StatusCode::NOT_FOUND, error.to_owned()))
        }
        Err(NoPicture::Busy) => {
            let error = "pictures of 16 subscriptions are already shown: close some";
            Err((StatusCode::SERVICE_UNAVAILABLE, error.to_owned()))
        }
        Err(NoPicture::NotShown(why)) => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why)),
        Err(NoPicture::NoAnswer(why)) => Err((StatusCode::BAD_GATEWAY, why)),
    }
}

/// Returns the newest values of a subscription.
async fn values(served: &Served, subscription: &str) -> Result<Answer, Problem> {
    let subscription = subscription.to_owned();
    let found = blocking(served, move |source| source.values(&subscription)).await?;
    Ok(answer::bytes("application/json", found?))
}

/// Returns the same traffic in another discipline.
async fn comparison(served: &Served) -> Result<Answer, Problem> {
    let found = blocking(served, |source| source.comparison()).await?;
    Ok(found.map_or_else(answer::nothing, |json| answer::bytes("application/json", json)))
}

/// Reads the JSON body of a POST request; `form` shows it.
async fn posted<T: DeserializeOwned>(request: Request<Incoming>, form: &str) -> Result<T, Problem> {
    if request.method() != Method::POST {
        let error = format!("{} changes nothing: use POST with {form}", request.method());
        return Err((StatusCode::METHOD_NOT_ALLOWED, error));
    }
    // Without a CORS preflight request, a page of another site cannot send this content type.
    if request.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        let error = "Content-Type must be application/json".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let body = Limited::new(request.into_body(), BODY_MAX).collect();
    let body = match tokio::time::timeout(BODY_WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => {
            let error =
                format!("the body cannot be read, or has more than {BODY_MAX} bytes: {error}");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        Err(_) => {
            let error = format!("the body took more than {} s", BODY_WITHIN.as_secs());
            return Err((StatusCode::REQUEST_TIMEOUT, error));
        }
    };
    serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("the body must be {form}: {error}")))
}

/// Changes a subscription.
async fn change(
    served: &Served,
    subscription: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let change: Change =
        posted(request, r#"{"set":"--max-hz 5"}, with options of paceline set"#).await?;
    let subscription = subscription.to_owned();
    let changed = blocking(served, move |source| source.change(&subscription, &change)).await?;
    Ok(answer::bytes("application/json", changed?))
}

/// Turns a switch.
async fn turn(served: &Served, name: &str, request: Request<Incoming>) -> Result<Answer, Problem> {
    let turn: Turn = posted(request, r#"{"on":true} or {"on":false}"#).await?;
    if served.source.turn(name, turn.on) {
        return Ok(answer::nothing());
    }
    let error = format!("there is no switch '{name}': /api/v1/switches lists them");
    Err((StatusCode::NOT_FOUND, error))
}
