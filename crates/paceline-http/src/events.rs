//! Server-sent events: the state, once per second. A slow client misses events and delays nothing.

use super::answer::{Answer, events};
use super::served::Ticks;
use http_body_util::channel::Channel;
use hyper::body::Bytes;

/// The number of events buffered for one client.
const WAITING_MAX: usize = 1;

/// Returns a stream of events that ends when the client disconnects.
pub(super) fn follow(mut ticks: Ticks) -> Answer {
    let (mut to, channel) = Channel::new(WAITING_MAX);
    tokio::spawn(async move {
        loop {
            let text = match ticks.borrow_and_update().as_ref() {
                Some(tick) => tick.event(),
                None => Bytes::new(),
            };
            // An error means that the client or the server has closed the stream.
            if !text.is_empty() && to.send_data(text).await.is_err() {
                return;
            }
            if ticks.changed().await.is_err() {
                return;
            }
        }
    });
    events(channel)
}
