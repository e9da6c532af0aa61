//! The messages in JSON between a browser and its node (docs/reference/browser.md).

use paceline::status::PublisherId;
use paceline_edge::browser::{BrowserEvent, StreamReaders};
use paceline_proto::Form;
use paceline_proto::control::{Grant, Offer, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A message of a browser.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// Compares clocks: the time of the browser in microseconds.
    Ping { at: f64 },
    /// Adds or changes a subscription. The fields of `want` are the options of `paceline sub`.
    Subscribe {
        id: u32,
        tag: String,
        #[serde(default)]
        want: Map<String, Value>,
        /// The age limit of commands in milliseconds, for which hops prove ages.
        #[serde(default)]
        fresh_ms: Option<f64>,
    },
    /// Ends a subscription.
    Unsubscribe { id: u32 },
    /// Adds a publisher.
    Publish {
        id: u32,
        tag: String,
        #[serde(default)]
        encoding: Option<String>,
        #[serde(default)]
        hz: Option<f64>,
        #[serde(default)]
        within_ms: Option<f64>,
        #[serde(default)]
        loss: Option<String>,
        #[serde(default)]
        bytes_max: Option<u64>,
    },
    /// Ends a publisher.
    Unpublish { id: u32 },
    /// Asks for the publishers of the network.
    Sources {
        id: u32,
        #[serde(default)]
        pattern: Option<String>,
    },
}

/// A publisher of the network.
#[derive(Debug, Serialize)]
pub(super) struct SourceLine {
    pub(super) tag: String,
    pub(super) encoding: String,
    pub(super) node: String,
    pub(super) hz: Option<f64>,
    pub(super) size: Option<String>,
}

/// Returns the first message: the versions of the protocol, and the nodes.
pub(super) fn welcome(serving: &str, id: &str, may_publish: bool) -> String {
    json!({"op": "welcome", "version": 1, "node": serving, "id": id, "may_publish": may_publish})
        .to_string()
}

/// Returns the message after which contracts may be requested.
pub(super) fn ready() -> String {
    json!({"op": "ready"}).to_string()
}

/// Returns the answer to a ping: the browser's time, and this node's, in microseconds.
pub(super) fn pong(at: f64, node: f64) -> String {
    json!({"op": "pong", "at": at, "node": node}).to_string()
}

/// Returns the answer to a question for publishers.
pub(super) fn sources(id: u32, found: &[SourceLine]) -> String {
    json!({"op": "sources", "id": id, "sources": found}).to_string()
}

/// Returns the error of a message, with the number of the subscription or publisher if it concerns one.
pub(super) fn error(id: Option<u32>, text: &str) -> String {
    json!({"op": "error", "id": id, "error": text}).to_string()
}

/// Returns the readers of a stream.
pub(super) fn stream(readers: &StreamReaders) -> String {
    let StreamReaders { stream, publisher, hold, subscriptions } = readers;
    let publisher = publisher.to_string();
    json!({
        "op": "stream",
        "stream": stream,
        "publisher": publisher,
        "hold_ms": milliseconds(*hold),
        "subscriptions": subscriptions,
    })
    .to_string()
}

fn milliseconds(time: paceline_sched::Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

fn form(form: &Form) -> Value {
    let size = form.size.map(|size| size.to_string());
    json!({
        "text": form.to_string(),
        "max_hz": form.rate.max_hz(),
        "every": form.rate.every.get(),
        "size": size,
        "bitrate": form.bitrate.map(|bits| bits.get()),
    })
}

fn grant(grant: &Grant) -> Value {
    json!({
        "publisher": grant.publisher.to_string(),
        "text": grant.to_string(),
        "form": form(&grant.form),
        "bound_ms": milliseconds(grant.bound),
        "within_ms": grant.within.map(milliseconds),
        "bits_per_s": grant.hops.last().map(|hop| hop.bytes_per_s.saturating_mul(8)),
    })
}

/// Returns the offer of a refusal as fields of a request.
fn offer(offer: &Offer) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| drop(fields.insert(name.to_owned(), value)));
    };
    put("max_hz", offer.max_millihertz.map(|rate| json!(rate as f64 / 1_000.0)));
    put("size", offer.size.map(|size| json!(size.to_string())));
    put("bitrate", offer.bitrate.map(|bits| json!(format!("{bits}bit"))));
    put("within", offer.within.map(|within| json!(format!("{}us", within.as_micros()))));
    put("loss", offer.loss.map(|loss| json!(loss.to_string())));
    Value::Object(fields)
}

fn refusal(refusal: &Refusal) -> Value {
    json!({"text": refusal.to_string(), "link": refusal.link, "offer": offer(&refusal.offer)})
}

/// Returns an event.
pub(super) fn event(event: &BrowserEvent) -> String {
    let of = |publisher: &PublisherId| publisher.to_string();
    let value = match event {
        BrowserEvent::Publishers(id, known) => {
            let line = |(publisher, tag, encoding): &(PublisherId, String, String)| json!({"publisher": of(publisher), "tag": tag, "encoding": encoding});
            let known: Vec<Value> = known.iter().map(line).collect();
            json!({"op": "publishers", "id": id, "publishers": known})
        }
        BrowserEvent::Granted(id, granted) => {
            json!({"op": "granted", "id": id, "grant": grant(granted)})
        }
        BrowserEvent::Refused(id, refused) => {
            json!({"op": "refused", "id": id, "refusal": refusal(refused)})
        }
        BrowserEvent::Withdrawn(id, publisher) => {
            json!({"op": "withdrawn", "id": id, "publisher": of(publisher)})
        }
        BrowserEvent::BestEffort(id, publisher, why) => {
            json!({"op": "best_effort", "id": id, "publisher": of(publisher), "text": why.to_string()})
        }
        BrowserEvent::Warned(id, publisher, warning) => {
            json!({"op": "warned", "id": id, "publisher": of(publisher), "text": warning.to_string()})
        }
        BrowserEvent::Changed(id, now) => json!({"op": "changed", "id": id, "form": form(now)}),
        BrowserEvent::Matching(id, matching) => {
            json!({"op": "matching", "id": id, "matching": matching})
        }
        BrowserEvent::PublisherGranted(id, granted) => {
            json!({"op": "publisher_granted", "id": id, "grant": grant(granted)})
        }
        BrowserEvent::Link(link) => json!({
            "op": "link",
            "state": link.state.name(),
            "estimate_bits_per_s": link.estimate,
            "contracts_bits_per_s": link.contracts,
            "reserved_bits_per_s": link.reserved,
        }),
        BrowserEvent::Dropped(id, drops) => {
            let by_reason: Map<String, Value> = drops
                .iter()
                .map(|(reason, count)| (reason.name().to_owned(), json!(count)))
                .collect();
            json!({"op": "dropped", "id": id, "dropped": by_reason})
        }
    };
    value.to_string()
}
