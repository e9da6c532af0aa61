//! The state of a clock and of its servers, for display.

use paceline_time::clock::page::ClockStatus;
use paceline_time::clock::service::SourcePart;
use std::fmt;
use std::time::Duration;

/// The state of a node's clock.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClockReport {
    /// The state.
    pub status: ClockStatus,
    /// The time of the report in nanoseconds since 1970, by this clock.
    pub nanos: u64,
    /// The bound of its error in nanoseconds; `None` if it is unknown.
    pub error_nanos: Option<u64>,
    /// The number of steps of the clock.
    pub epoch: u64,
    /// The system clock minus this clock, in nanoseconds.
    pub system_offset_nanos: i64,
    /// The frequency error of the host's raw clock in parts per trillion; positive if it is slow.
    pub frequency_ppt: i64,
    /// The jitter of the combined servers in nanoseconds.
    pub jitter_nanos: u64,
    /// The stratum of this node; `None` while it is not synchronised.
    pub stratum: Option<u8>,
    /// The leap second that a majority of the servers announces: `none`, `insert` or `delete`.
    pub leap: String,
    /// The number of corrections.
    pub updates: u64,
    /// The number of disruptions.
    pub disruptions: u64,
    /// The cause of the last disruption: `suspend`, `step`, `contradiction` or `leap_second`.
    pub disruption: Option<String>,
    /// The address at which the node serves time.
    pub serves: Option<String>,
    /// The answered requests of clients, those answered by a kiss-of-death, dropped ones over the rate limit, packets
    /// that are no requests, and requests by a key that this node does not have.
    pub served: [u64; 5],
    /// The clock follows that of the host's node.
    pub is_follower: bool,
    /// The servers.
    pub sources: Vec<SourceReport>,
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

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of a server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SourceReport {
    /// Its kind.
    pub kind: SourceKind,
    /// `HOST:PORT` of a server as configured, the name of a neighbour, or `system`.
    pub address: String,
    /// The number of the symmetric key of a server; `None` without one.
    pub key: Option<u32>,
    /// Its part in the selection.
    pub selection: SourcePart,
    /// Its stratum; `None` before a usable answer.
    pub stratum: Option<u8>,
    /// The answers to the last 8 requests, one bit each; the lowest bit is the last request.
    pub reach: u8,
    /// The interval of requests.
    pub poll: Duration,
    /// Its time minus that of the clock, in nanoseconds, by the best of the last 8 measurements. A clock that has not
    /// been synchronised has the time of the system clock.
    pub offset_nanos: i64,
    /// The round-trip delay of that measurement in nanoseconds.
    pub delay_nanos: u64,
    /// The jitter of its measurements in nanoseconds.
    pub jitter_nanos: u64,
    /// The bound of the offset's error in nanoseconds; `None` without a measurement.
    pub error_nanos: Option<u64>,
    /// The number of usable answers.
    pub answers: u64,
    /// The number of unusable answers, by cause.
    pub rejected: Vec<(String, u64)>,
}
