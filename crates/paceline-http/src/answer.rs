//! Responses and their common headers.

use http_body_util::channel::Channel;
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::convert::Infallible;

/// The body of a response: complete, or a stream of events.
pub(super) type Body = Either<Full<Bytes>, Channel<Bytes, Infallible>>;
pub(super) type Answer = Response<Body>;

/// The content security policy: the page loads nothing from other origins and cannot be framed.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[derive(Serialize)]
struct Problem<'a> {
    error: &'a str,
}

fn answer(status: StatusCode, kind: &'static str, cache: &'static str, body: Body) -> Answer {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// Returns a response with bytes that may change at any time, so it is not cached.
pub(super) fn bytes(kind: &'static str, bytes: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, kind, "no-store", Either::Left(Full::new(bytes.into())))
}

/// Returns a file whose name changes with its content, so it is cached for a year.
pub(super) fn lasting(kind: &'static str, content: &'static [u8]) -> Answer {
    let body = Either::Left(Full::new(Bytes::from_static(content)));
    answer(StatusCode::OK, kind, "public, max-age=31536000, immutable", body)
}

pub(super) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => bytes("application/json", text),
        Err(error) => {
            problem(StatusCode::INTERNAL_SERVER_ERROR, &format!("cannot be written: {error}"))
        }
    }
}

/// Returns a stream of server-sent events.
pub(super) fn events(channel: Channel<Bytes, Infallible>) -> Answer {
    answer(StatusCode::OK, "text/event-stream", "no-store", Either::Right(channel))
}

/// Returns an empty response: nothing new.
pub(super) fn nothing() -> Answer {
    answer(StatusCode::NO_CONTENT, "text/plain", "no-store", Either::Left(Full::default()))
}

/// Returns an error response with a suggested fix.
pub(super) fn problem(status: StatusCode, error: &str) -> Answer {
    let text = serde_json::to_vec(&Problem { error }).unwrap_or_default();
    answer(status, "application/json", "no-store", Either::Left(Full::new(text.into())))
}
