//! Server-sent events: the state, once a second. A client that is slow misses some; nothing waits for it.

use super::answer::{Answer, events};
use super::server::Ticks;
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;

/// Events that wait for one client: the one on its way.
const WAITING_MAX: usize = 1;

/// The events from now on, as long as the client stays.
pub(super) fn follow(mut ticks: Ticks, place: OwnedSemaphorePermit) -> Answer {
    let (mut to, channel) = Channel::new(WAITING_MAX);
    tokio::spawn(async move {
        let _place = place;
        loop {
            let text = match ticks.borrow_and_update().as_ref() {
                Some(tick) => tick.event(),
                None => Bytes::new(),
            };
            // Either end may go: then this one is done.
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
