//! A stream to several subscribers on one network segment, for table 2 of Juvva 1999: each node is a process in a network
//! namespace behind a bridge.

use super::child::Child;
use super::interrupt;
use super::protocol::{Message, NetLink, Proxied, ProxiedTask, Role};
use super::proxied::{BETWEEN, used, wait_for};
use super::scenario::trust::Certificates;
use super::stats::{count, float};
use crate::netns::{Namespace, remove_leftovers};
use anyhow::Result;
use paceline::class::Policy;
use paceline_tool::scratch::Scratch;
use std::time::{Duration, Instant};

/// The multicast groups of the segment.
const RANGE: &str = "239.77.0.0/24:7400";
/// The capacity of each link, above all copies.
const CAPACITY_BITS_PER_S: u64 = 200_000_000;
/// The delay bound, which no sample should reach: a contract keeps the copies of a sample together.
const WITHIN_MS: u64 = 500;
/// The time for probes, after the groups have all streams.
const SETTLE: Duration = Duration::from_secs(4);
/// The publisher and the node between are the first hosts, and subscribers are the others.
const FIRST_SUBSCRIBER: usize = 2;

/// A published stream, and one sample in how many each subscriber receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience<'a> {
    pub(crate) hz: f64,
    pub(crate) bytes: usize,
    pub(crate) every: &'a [u32],
}

/// The use of processors and of the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnSegment {
    /// The processor time of the publisher, of the node between, and of a subscriber on average, in percent of one
    /// processor.
    pub(crate) cpu_percent: [f64; 3],
    /// The bytes per second that the publisher and the node between send, and that a subscriber gets on average, with the
    /// headers of all layers.
    pub(crate) bytes_per_s: [f64; 3],
    pub(crate) age_micros: f64,
}

/// The namespaces; dropping this removes them.
struct Hosts {
    hosts: Vec<Namespace>,
    switch: Namespace,
}

impl Hosts {
    /// Creates hosts on a bridge that passes each group to its members only.
    fn new(number: usize) -> Result<Self> {
        remove_leftovers();
        let switch = Namespace::of_scene(number)?;
        // The bridge passes all multicast until the members have had this time, in 10 ms, to answer its first query.
        switch.ip(
            "link add name hub type bridge mcast_snooping 1 mcast_query_response_interval 50",
        )?;
        switch.ip("link set hub type bridge mcast_querier 1")?;
        switch.ip("link set hub up")?;
        let hosts = (0..number).map(Namespace::of_scene).collect::<Result<Vec<_>>>()?;
        for (at, host) in hosts.iter().enumerate() {
            let name = host.name();
            switch.ip(&format!("link add port{at} type veth peer name eth netns {name}"))?;
            switch.ip(&format!("link set port{at} master hub up"))?;
            host.ip(&format!("addr add {}/24 dev eth", address(at)))?;
            host.ip("link set eth up")?;
        }
        Ok(Self { hosts, switch })
    }

    /// Returns the bytes that each of the first hosts has sent, and that each subscriber has got.
    fn bytes(&self) -> Result<Vec<f64>> {
        let each = self.hosts.iter().enumerate().map(|(at, host)| {
            let sent = match at < FIRST_SUBSCRIBER {
                true => host.sent("eth")?,
                false => self.switch.sent(&format!("port{at}"))?,
            };
            Ok(float(sent.bytes))
        });
        each.collect()
    }
}

fn address(host: usize) -> String {
    format!("10.254.77.{}", host + 1)
}

fn name(host: usize) -> String {
    match host {
        0 => "a".to_owned(),
        1 => BETWEEN.to_owned(),
        other => format!("z{other}"),
    }
}

/// Returns the links of a host: the node between connects to the publisher, and the subscribers to both.
fn links(host: usize, certificates: &Certificates, has_groups: bool) -> Vec<NetLink> {
    let link = |name: &str| NetLink {
        name: name.to_owned(),
        listen: None,
        connect: None,
        capacity: Some(format!("{CAPACITY_BITS_PER_S}bit")),
        policy: Policy::default().name().to_owned(),
        tls: Some(certificates.files(&self::name(host))),
        multicast: has_groups.then(|| RANGE.to_owned()),
    };
    let endpoint = |host: usize| Some(format!("quic/{}:7600", address(host)));
    let up = NetLink { connect: endpoint(0), ..link("up") };
    match host {
        0 => vec![NetLink { listen: endpoint(0), ..link("segment") }],
        1 => vec![NetLink { listen: endpoint(1), ..link("segment") }, up],
        _ => vec![up, NetLink { connect: endpoint(1), ..link("between") }],
    }
}

/// Measures a stream whose proxies are in one place. `has_groups` allows multicast.
pub(crate) fn on_segment(
    proxy: &str,
    audience: Audience<'_>,
    has_groups: bool,
    time: Duration,
    scratch: &Scratch,
) -> Result<OnSegment> {
    interrupt::install()?;
    let number = FIRST_SUBSCRIBER + audience.every.len();
    let hosts = Hosts::new(number)?;
    let names: Vec<String> = (0..number).map(name).collect();
    let certificates = Certificates::issue(names.iter().map(String::as_str))?;
    let mut tasks =
        vec![ProxiedTask::Publish { hz: audience.hz, bytes: audience.bytes }, ProxiedTask::Relay];
    let all = if has_groups { audience.every.len() } else { 0 };
    let subscribe = |(number, every): (usize, &u32)| ProxiedTask::Subscribe {
        every: *every,
        proxy: proxy.to_owned(),
        within_ms: Some(WITHIN_MS),
        // One of them waits for all.
        grouped: if number == 0 { all } else { 0 },
    };
    tasks.extend(audience.every.iter().enumerate().map(subscribe));
    let mut children = Vec::new();
    for (host, (task, place)) in tasks.into_iter().zip(&hosts.hosts).enumerate() {
        let links = links(host, &certificates, has_groups);
        let (name, access) = (name(host), Some(certificates.policy()));
        let role =
            Proxied { name: name.clone(), isolated: true, is_realtime: false, links, access, task };
        let role = Role::Proxied(role);
        let mut child = Child::start(&name, &role, Some(place.name()), &scratch.host())?;
        child.expect_ready()?;
        children.push(child);
    }
    children.iter_mut().rev().try_for_each(Child::go)?;
    for child in children.iter_mut().skip(FIRST_SUBSCRIBER) {
        wait_for(child, "the stream", |message| matches!(message, Message::Started))?;
    }
    std::thread::sleep(SETTLE);
    let (began, before, sent) = (Instant::now(), used(&children)?, hosts.bytes()?);
    std::thread::sleep(time);
    let (after, sent_after) = (used(&children)?, hosts.bytes()?);
    let seconds = began.elapsed().as_secs_f64();
    let age_micros = ages(&mut children)?;
    children.iter_mut().take(FIRST_SUBSCRIBER).try_for_each(Child::stop)?;
    let rate = |(after, before): (&f64, &f64)| (after - before) / seconds;
    let cpu: Vec<f64> = after.iter().zip(&before).map(rate).map(|part| part * 100.0).collect();
    let bytes: Vec<f64> = sent_after.iter().zip(&sent).map(rate).collect();
    Ok(OnSegment { cpu_percent: summed(&cpu), bytes_per_s: summed(&bytes), age_micros })
}

/// Stops all subscribers, and returns the mean age of their samples in microseconds.
fn ages(children: &mut [Child]) -> Result<f64> {
    let (mut all, mut age) = (0, 0.0);
    for child in children.iter_mut().skip(FIRST_SUBSCRIBER) {
        child.stop()?;
        let found = wait_for(child, "its report", |it| matches!(it, Message::Proxied { .. }))?;
        let Message::Proxied { samples, age_ns, .. } = found else { continue };
        all += samples;
        age += float(age_ns) / 1e3;
    }
    // Not a number if no sample arrived.
    Ok(age / float(all))
}

/// Returns the values of the first two hosts, and the mean of the others.
fn summed(values: &[f64]) -> [f64; 3] {
    let (first, others) = values.split_at(FIRST_SUBSCRIBER.min(values.len()));
    let at = |host: usize| first.get(host).copied().unwrap_or(f64::NAN);
    [at(0), at(1), others.iter().sum::<f64>() / count(others.len().max(1))]
}
