//! Answers to NTP clients, with a rate limit (RFC 5905, sections 9.2 and 7.4).

use crate::clock::page::{ClockReading, ClockStatus};
use crate::clock::service::ServerFacts;
use crate::ntp::keys::NtpKeys;
use crate::ntp::packet::{Leap, MODE_CLIENT, MODE_SERVER, NtpPacket, NtpShort, NtpTime};
use crate::ntp::seal::{NtpDatagram, Seal};
use crate::ntp::{PHI, STRATUM_MAX, growth};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The number of clients whose rate is limited one by one.
const CLIENTS_MAX: usize = 4_096;
/// The number of requests that a client may send at once.
const BURST: u64 = 16;
/// The mean distance of requests of one client, in nanoseconds.
const SPACING: u64 = 250_000_000;
/// Of the requests over the limit, one in this number gets a kiss-of-death.
const KISS_EVERY: u64 = 8;

/// The tokens of one client: the bucket fills at one per 250 ms.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The instant at which the bucket is full again.
    full_at: u64,
    over: u64,
}

/// The counters of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerCounters {
    /// Requests that were answered with a time.
    pub answered: u64,
    /// Requests over the rate limit that were answered with a kiss-of-death.
    pub kissed: u64,
    /// Requests over the rate limit that were dropped.
    pub limited: u64,
    /// Packets that are not requests.
    pub malformed: u64,
    /// Requests with an authentication code by no key of this server; they were answered with a crypto-NAK.
    pub unauthenticated: u64,
}

/// A server of NTP. Its memory is bounded.
#[derive(Clone, Debug, Default)]
pub struct NtpServer {
    keys: NtpKeys,
    clients: BTreeMap<IpAddr, Bucket>,
    counters: ServerCounters,
}

/// Whether a request is within the rate limit of its client.
enum Admitted {
    Yes,
    Kiss,
    No,
}

impl NtpServer {
    /// Creates a server that also answers requests with authentication codes by `keys`, and seals those answers.
    #[must_use]
    pub fn new(keys: NtpKeys) -> Self {
        Self { keys, ..Self::default() }
    }

    /// Returns the answer to a request that arrived from `client` at the instant `raw` of the raw clock, when the clock
    /// read `received`. `transmitted` is the reading for the answer, as late as possible.
    ///
    /// The root dispersion of the answer is the bound of the clock, so that a client's own bound is correct. A server
    /// that is neither synchronised nor in holdover answers with the leap indicator 3 and stratum 16.
    pub fn answer(
        &mut self,
        request: &[u8],
        client: IpAddr,
        raw: u64,
        facts: &ServerFacts,
        (received, transmitted): (ClockReading, ClockReading),
    ) -> Option<NtpDatagram> {
        let Some(reply) = reply_to(request, (received, transmitted)) else {
            self.counters.malformed += 1;
            return None;
        };
        let admitted = self.admit(client, raw);
        if matches!(admitted, Admitted::No) {
            self.counters.limited += 1;
            return None;
        }
        let seal = Seal::of(request);
        let key = seal.key_in(&self.keys);
        if key.is_none() && matches!(seal, Seal::Code { .. }) {
            self.counters.unauthenticated += 1;
            let refusal = NtpPacket { leap: Leap::Unknown, stratum: STRATUM_MAX, ..reply };
            return Some(NtpDatagram::refusal(&refusal));
        }
        let reply = if matches!(admitted, Admitted::Yes) {
            self.counters.answered += 1;
            filled(reply, facts, &transmitted)
        } else {
            self.counters.kissed += 1;
            NtpPacket { leap: Leap::Unknown, reference_id: *b"RATE", ..reply }
        };
        Some(NtpDatagram::new(&reply, key))
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> ServerCounters {
        self.counters
    }

    fn admit(&mut self, client: IpAddr, raw: u64) -> Admitted {
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&client) {
            self.clients.retain(|_, bucket| bucket.full_at > raw);
            if self.clients.len() >= CLIENTS_MAX {
                return Admitted::No;
            }
        }
        let bucket = self.clients.entry(client).or_insert(Bucket { full_at: raw, over: 0 });
        let full_at = bucket.full_at.max(raw).saturating_add(SPACING);
        if full_at - raw <= BURST * SPACING {
            *bucket = Bucket { full_at, over: 0 };
            return Admitted::Yes;
        }
        bucket.over += 1;
        if bucket.over % KISS_EVERY == 1 { Admitted::Kiss } else { Admitted::No }
    }
}

/// Returns the answer to the request of a neighbour over a link, as [`NtpServer::answer`] does without keys and rate limit.
/// Without `facts` the answer says that the clock is not synchronised. `None` if `request` is not one.
#[must_use]
pub fn answer_neighbour(
    request: &[u8],
    facts: Option<&ServerFacts>,
    (received, transmitted): (ClockReading, ClockReading),
) -> Option<NtpDatagram> {
    let reply = reply_to(request, (received, transmitted))?;
    let filled = facts.map(|facts| filled(reply, facts, &transmitted));
    let unknown = NtpPacket { leap: Leap::Unknown, stratum: STRATUM_MAX, ..reply };
    Some(NtpDatagram::new(&filled.unwrap_or(unknown), None))
}

/// Returns the answer to a request without the state of the clock; `None` if it is not one.
fn reply_to(
    request: &[u8],
    (received, transmitted): (ClockReading, ClockReading),
) -> Option<NtpPacket> {
    let packet = NtpPacket::decode(request);
    let packet = packet.filter(|it| it.mode == MODE_CLIENT && (1..=4).contains(&it.version))?;
    Some(NtpPacket {
        version: packet.version,
        mode: MODE_SERVER,
        poll: packet.poll,
        precision: -22,
        origin: packet.transmit,
        receive: NtpTime::from_unix(received.nanos),
        transmit: NtpTime::from_unix(transmitted.nanos.max(received.nanos)),
        ..NtpPacket::default()
    })
}

/// Adds the state of the clock to an answer.
fn filled(reply: NtpPacket, facts: &ServerFacts, reading: &ClockReading) -> NtpPacket {
    match reading.status {
        ClockStatus::Unsynchronised | ClockStatus::Disrupted => {
            NtpPacket { leap: Leap::Unknown, stratum: STRATUM_MAX, ..reply }
        }
        ClockStatus::Synchronised | ClockStatus::Holdover => {
            let error = reading.error().saturating_add(growth(1_000_000_000, PHI));
            let root_delay = facts.root_delay.min(error);
            NtpPacket {
                leap: facts.leap,
                stratum: facts.stratum,
                root_delay: NtpShort::from_nanos(root_delay),
                root_dispersion: NtpShort::from_nanos(error - root_delay / 2),
                reference_id: facts.reference_id,
                reference: NtpTime::from_unix(facts.reference),
                ..reply
            }
        }
    }
}
