//! The state of a clock and of its servers.

use super::units::{by_name, micros, named, parts_per_million};
use core::fmt;
use paceline_time::clock::page::ClockStatus;
use paceline_time::clock::service::SourcePart;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a node's clock.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "NodeClock"))]
pub struct ClockReport {
    /// The state: `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub status: ClockStatus,
    /// Time of the report in nanoseconds since 1970, by this clock.
    #[serde(rename = "time_ns")]
    pub nanos: u64,
    /// Bound of its error in nanoseconds; null if it is unknown.
    #[serde(rename = "error_ns")]
    pub error_nanos: Option<u64>,
    /// Number of steps of the clock.
    pub epoch: u64,
    /// The system clock minus this clock, in nanoseconds.
    #[serde(rename = "system_offset_ns")]
    pub system_offset_nanos: i64,
    /// Frequency error of the host's raw clock; positive if it is slow. In Rust in parts per trillion.
    #[serde(rename = "frequency_ppm", with = "parts_per_million")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub frequency_ppt: i64,
    /// Jitter of the combined servers in nanoseconds.
    #[serde(rename = "jitter_ns")]
    pub jitter_nanos: u64,
    /// Stratum of this node; null while it is not synchronised.
    pub stratum: Option<u8>,
    /// The leap second that a majority of the servers announces: `none`, `insert` or `delete`.
    pub leap: String,
    /// Number of corrections.
    pub updates: u64,
    /// Number of disruptions.
    pub disruptions: u64,
    /// Cause of the last disruption: `suspend`, `step`, `contradiction` or `leap_second`.
    pub disruption: Option<String>,
    /// True if the clock follows the one of the host's node.
    #[serde(rename = "follows_host")]
    pub is_follower: bool,
    /// The service for NTP clients; null without one.
    pub serves: Option<TimeService>,
    /// The servers.
    #[serde(rename = "servers")]
    pub sources: Vec<SourceReport>,
}

/// The service of a node for NTP clients: its address and counters of requests.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TimeService {
    /// The address at which the node serves time.
    pub address: String,
    /// Answered requests.
    pub answered: u64,
    /// Requests answered by a kiss-of-death.
    pub kissed: u64,
    /// Requests dropped because they were over the rate limit.
    pub limited: u64,
    /// Packets that are no requests.
    pub malformed: u64,
    /// Requests by a key that this node does not have.
    pub unauthenticated: u64,
}

/// The kind of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SourceKind {
    /// An NTP server.
    #[default]
    Server,
    /// A node to which this one has a link.
    Neighbour,
    /// The host's system clock, which another program adjusts.
    System,
}

impl SourceKind {
    /// All, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Server, Self::Neighbour, Self::System];

    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Neighbour => "neighbour",
            Self::System => "system",
        }
    }
}

named!(SourceKind);

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of a server.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "TimeServer"))]
pub struct SourceReport {
    /// Its kind: `server`, `neighbour` or `system`.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub kind: SourceKind,
    /// `HOST:PORT` of a server as configured, the name of a neighbour, or `system`.
    pub address: String,
    /// Number of the symmetric key of a server; null without one.
    pub key: Option<u32>,
    /// Its part in the selection, such as `selected` or `falseticker`.
    #[serde(rename = "part", with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub selection: SourcePart,
    /// Its stratum; null before a usable answer.
    pub stratum: Option<u8>,
    /// The answers to the last 8 requests, one bit each; the lowest bit is the last request.
    pub reach: u8,
    /// Interval of requests.
    #[serde(rename = "poll_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub poll: Duration,
    /// Its time minus that of the clock, in nanoseconds, by the best of the last 8 measurements. A clock that has not
    /// been synchronised has the time of the system clock.
    #[serde(rename = "offset_ns")]
    pub offset_nanos: i64,
    /// Round-trip delay of that measurement in nanoseconds.
    #[serde(rename = "delay_ns")]
    pub delay_nanos: u64,
    /// Jitter of its measurements in nanoseconds.
    #[serde(rename = "jitter_ns")]
    pub jitter_nanos: u64,
    /// Bound of the offset's error in nanoseconds; null without a measurement.
    #[serde(rename = "error_ns")]
    pub error_nanos: Option<u64>,
    /// Number of usable answers.
    pub answers: u64,
    /// Number of unusable answers, by cause.
    pub rejected: BTreeMap<String, u64>,
}
