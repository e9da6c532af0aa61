//! The messages of Foxglove's WebSocket protocol, version 1 (<https://github.com/foxglove/ws-protocol>): JSON texts in both
//! directions, and samples as binary messages. Pure: bytes to values and back.

use paceline_record::Described;
use serde::{Deserialize, Serialize};

/// The names of the protocol, the newest first: the application's, and the one of the published client library.
const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
/// The type of a binary message with a sample.
const MESSAGE_DATA: u8 = 1;

/// Returns the name of the protocol to use with a client that offers `offered`, the value of
/// `Sec-WebSocket-Protocol`; `None` if it offers none of this version.
pub(super) fn subprotocol(offered: &str) -> Option<&'static str> {
    let names: Vec<&str> = offered.split(',').map(str::trim).collect();
    SUBPROTOCOLS.into_iter().find(|ours| names.contains(ours))
}

/// A message of a client.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum ClientMessage {
    /// Begins to send the samples of channels.
    Subscribe {
        /// The new subscriptions.
        subscriptions: Vec<ClientSubscription>,
    },
    /// Ends subscriptions.
    #[serde(rename_all = "camelCase")]
    Unsubscribe {
        /// Their ids.
        subscription_ids: Vec<u32>,
    },
    /// Requests values of parameters; all of them if no name is given.
    #[serde(rename_all = "camelCase")]
    GetParameters {
        /// The names.
        parameter_names: Vec<String>,
        /// The id of the request, repeated in the answer.
        #[serde(default)]
        id: Option<String>,
    },
    /// Sets parameters.
    SetParameters {
        /// The new values.
        parameters: Vec<Parameter>,
        /// The id of the request, repeated in the answer.
        #[serde(default)]
        id: Option<String>,
    },
    /// Any other request, which needs a capability that the server does not have.
    #[serde(other)]
    Other,
}

/// A subscription of a client.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientSubscription {
    /// Its id, which the client selects.
    pub(super) id: u32,
    /// The channel.
    pub(super) channel_id: u32,
}

/// A parameter: here the request for the samples of a tag, in words.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Parameter {
    /// The tag.
    pub(super) name: String,
    /// The options of the request, such as `--max-hz 10`; not set if it is to be removed.
    #[serde(default)]
    pub(super) value: serde_json::Value,
}

/// How serious a status is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    const fn number(self) -> u8 {
        match self {
            Self::Info => 0,
            Self::Warning => 1,
            Self::Error => 2,
        }
    }
}

/// A channel: the samples of one tag in one media type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdvertisedChannel {
    pub(super) id: u32,
    topic: String,
    encoding: String,
    schema_name: String,
    schema: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_encoding: Option<&'static str>,
}

impl AdvertisedChannel {
    /// Returns the channel with this id for a topic, the encoding of its messages, and their schema.
    pub(super) fn new(id: u32, topic: &str, encoding: &str, schema: Described) -> Self {
        use base64::Engine as _;
        let (schema_name, kind, data) = schema;
        // Binary schemas are sent as base64, the other ones as they are.
        let schema = match kind {
            "protobuf" => base64::engine::general_purpose::STANDARD.encode(data),
            _ => String::from_utf8(data).unwrap_or_default(),
        };
        let schema_encoding = (!kind.is_empty() && !schema.is_empty()).then_some(kind);
        let (topic, encoding) = (topic.to_owned(), encoding.to_owned());
        Self { id, topic, encoding, schema_name, schema, schema_encoding }
    }
}

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "camelCase")]
enum ServerMessage<'a> {
    #[serde(rename_all = "camelCase")]
    ServerInfo {
        name: &'a str,
        capabilities: &'static [&'static str],
        supported_encodings: [&'static str; 0],
        session_id: &'a str,
    },
    Status {
        level: u8,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    RemoveStatus {
        status_ids: &'a [String],
    },
    Advertise {
        channels: &'a [AdvertisedChannel],
    },
    #[serde(rename_all = "camelCase")]
    Unadvertise {
        channel_ids: &'a [u32],
    },
    ParameterValues {
        parameters: &'a [Parameter],
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
}

fn text(message: &ServerMessage<'_>) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// Returns the first message: the name of the server, and the id by which a client knows the same server again.
pub(super) fn server_info(name: &str, session: &str) -> String {
    let capabilities = &["parameters"];
    let supported_encodings = [];
    text(&ServerMessage::ServerInfo {
        name,
        capabilities,
        supported_encodings,
        session_id: session,
    })
}

/// Returns a status. One with the same id replaces the one before.
pub(super) fn status(level: Level, message: &str, id: Option<&str>) -> String {
    text(&ServerMessage::Status { level: level.number(), message, id })
}

/// Returns the removal of statuses.
pub(super) fn remove_status(ids: &[String]) -> String {
    text(&ServerMessage::RemoveStatus { status_ids: ids })
}

/// Returns the announcement of channels.
pub(super) fn advertise(channels: &[AdvertisedChannel]) -> String {
    text(&ServerMessage::Advertise { channels })
}

/// Returns the end of channels.
pub(super) fn unadvertise(channel_ids: &[u32]) -> String {
    text(&ServerMessage::Unadvertise { channel_ids })
}

/// Returns values of parameters, with the id of the request.
pub(super) fn parameter_values(parameters: &[Parameter], id: Option<&str>) -> String {
    text(&ServerMessage::ParameterValues { parameters, id })
}

/// Begins a binary message with a sample of a subscription, captured at `nanos` since 1970. Its message follows.
pub(super) fn message_data(subscription: u32, nanos: u64) -> Vec<u8> {
    let mut out = vec![MESSAGE_DATA];
    out.extend_from_slice(&subscription.to_le_bytes());
    out.extend_from_slice(&nanos.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_protocol_is_used() {
        assert_eq!(subprotocol("foxglove.websocket.v1"), Some("foxglove.websocket.v1"));
        let both = "foxglove.websocket.v1, foxglove.sdk.v1";
        assert_eq!(subprotocol(both), Some("foxglove.sdk.v1"));
        // A later version with the same beginning is another protocol.
        assert_eq!(subprotocol("foxglove.sdk.v1.1"), None);
        assert_eq!(subprotocol(""), None);
    }

    #[test]
    fn messages_of_clients_are_read() {
        let read = |text: &str| serde_json::from_str::<ClientMessage>(text);
        let subscriptions = vec![ClientSubscription { id: 0, channel_id: 7 }];
        assert_eq!(
            read(r#"{"op":"subscribe","subscriptions":[{"id":0,"channelId":7}]}"#).unwrap(),
            ClientMessage::Subscribe { subscriptions }
        );
        assert_eq!(
            read(r#"{"op":"unsubscribe","subscriptionIds":[0,3]}"#).unwrap(),
            ClientMessage::Unsubscribe { subscription_ids: vec![0, 3] }
        );
        assert_eq!(
            read(r#"{"op":"getParameters","parameterNames":[],"id":"a"}"#).unwrap(),
            ClientMessage::GetParameters { parameter_names: vec![], id: Some("a".to_owned()) }
        );
        let Ok(ClientMessage::SetParameters { parameters, id: None }) =
            read(r#"{"op":"setParameters","parameters":[{"name":"a"},{"name":"b","value":"x"}]}"#)
        else {
            panic!("parameters without an id")
        };
        assert!(parameters[0].value.is_null() && parameters[1].value == "x");
        assert_eq!(read(r#"{"op":"advertise","channels":[]}"#).unwrap(), ClientMessage::Other);
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"op":"subscribe"}"#,
            r#"{"op":"subscribe","subscriptions":[{"id":-1}]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_of_the_server_have_the_names_of_the_protocol() {
        let schema = ("Pose".to_owned(), "jsonschema", b"{}".to_vec());
        let json = AdvertisedChannel::new(3, "robot/pose", "json", schema);
        let bytes = AdvertisedChannel::new(4, "a", "cdr", ("T".to_owned(), "", Vec::new()));
        let picture = ("foxglove.X".to_owned(), "protobuf", vec![255, 0]);
        let picture = AdvertisedChannel::new(5, "b", "protobuf", picture);
        assert_eq!(
            advertise(&[json, bytes, picture]),
            concat!(
                r#"{"op":"advertise","channels":[{"id":3,"topic":"robot/pose","encoding":"json","schemaName":"Pose","#,
                r#""schema":"{}","schemaEncoding":"jsonschema"},{"id":4,"topic":"a","encoding":"cdr","schemaName":"T","#,
                r#""schema":""},{"id":5,"topic":"b","encoding":"protobuf","schemaName":"foxglove.X","schema":"/wA=","#,
                r#""schemaEncoding":"protobuf"}]}"#
            )
        );
        assert_eq!(unadvertise(&[3]), r#"{"op":"unadvertise","channelIds":[3]}"#);
        assert_eq!(
            status(Level::Error, "no", Some("a")),
            r#"{"op":"status","level":2,"message":"no","id":"a"}"#
        );
        assert_eq!(remove_status(&["a".to_owned()]), r#"{"op":"removeStatus","statusIds":["a"]}"#);
        assert_eq!(message_data(258, 1), [1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
