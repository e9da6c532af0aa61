//! One run: two nodes, a radio of changing capacity, steering and data.

use super::camera::{self, Film};
use super::course::{Course, Moment};
use super::goodput::GoodputCap;
use crate::bench::interrupt;
use crate::bench::netns::{ROBOT_ADDRESS, Rig, Side};
use crate::bench::scenario::trust::Certificates;
use crate::bench::stats::float;
use crate::bench::terminal::Terminal;
use anyhow::{Context as _, Result, bail};
use paceline::{Node, Publisher, Subscriber};
use paceline_sched::{Capacity, Duration as Delay};
use paceline_sim::impair::Impairment;
use paceline_tool::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) const ROBOT: &str = "robot";
pub(super) const OPERATOR: &str = "operator";
const PORT: u16 = 7_600;
const STEERING: &str = "steering";
const DATA: &str = "data";
const PERIOD: Duration = Duration::from_millis(10);
const DEADLINE: Duration = Duration::from_millis(100);
const IMPORTANCE: u8 = 90;
/// Per period: 40 Mbit/s.
pub(super) const DATA_BYTES: usize = 50_000;
/// The queue of the radio: 100 ms at 2 Mbit/s.
const QUEUE_BYTES: u64 = 25_000;
/// The rate of packets that an outage drops.
const DARK_BITS_PER_S: u64 = 1_000_000;
const WAY: Delay = Delay::from_millis(20);
pub(super) const TICK: Duration = Duration::from_millis(50);
/// Samples of a window, of which one may miss.
const WINDOW: usize = 10;
const PATIENCE: Duration = Duration::from_secs(20);
/// The time before a trace begins, in which the capacity is measured under load.
const SETTLES: Duration = Duration::from_secs(5);
/// Bad samples further apart than this are two periods.
const APART: Duration = Duration::from_millis(300);

/// The network of a run.
pub(super) struct Run {
    /// The capacity as configured.
    pub(super) capacity: &'static str,
    pub(super) protocol: &'static str,
    /// The capacity of the radio in bits per second, one per 50 ms.
    pub(super) rates: Vec<u64>,
    /// The capacity of the robot's link follows the goodput, from the stated one on.
    pub(super) follows_goodput: bool,
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) steering: usize,
    pub(super) late: usize,
    pub(super) lost: usize,
    /// Windows of ten samples with more than one that is late or lost.
    pub(super) broken: usize,
    /// The longest time in which samples are late or lost.
    pub(super) bad_longest: Duration,
    /// The part of the radio that admission could use, and the data that arrived.
    pub(super) admitted: f64,
    pub(super) data: f64,
    /// Processor time of the robot's node, in milliseconds per megabyte of data.
    pub(super) processor: f64,
    /// What the elastic camera was granted, of what an oracle would grant.
    pub(super) of_oracle: f64,
    pub(super) film: Film,
    /// What the robot knew over time.
    pub(super) course: Course,
}

/// The times of the steering samples, by sequence number.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) sent: BTreeMap<u64, Instant>,
    pub(super) arrived: BTreeMap<u64, Instant>,
}

impl Run {
    pub(super) fn measure(&self, scratch: &Scratch, files: &Certificates) -> Result<Seen> {
        let rig = Rig::carried(Self::impairment(self.rates.first().copied().unwrap_or(0))?)?;
        let (robot, operator) = (scratch.host(), scratch.host());
        let address = format!("{}/{ROBOT_ADDRESS}:{PORT}", self.protocol);
        let mut nodes = [
            self.node(ROBOT, &format!("listen={address}"), &robot, (&rig, Side::Robot), files)?,
            self.node(
                OPERATOR,
                &format!("connect={address}"),
                &operator,
                (&rig, Side::Operator),
                files,
            )?,
        ];
        nodes.iter_mut().try_for_each(|node| node.first_line().map(drop))?;
        let near = Node::builder().name("near").runtime_dir(&robot).open()?;
        let far = Node::builder().name("far").runtime_dir(&operator).open()?;
        let steering = near.publisher(STEERING).hz(100.0).bytes_max(64).declare()?;
        let data = near.publisher(DATA).declare()?;
        let wanted = far.subscriber(STEERING).within(DEADLINE).loss(1, 10).importance(IMPORTANCE);
        let mut arriving = wanted.declare()?;
        let filling = far.subscriber(DATA).declare()?;
        let mut publishers = (steering, data);
        wait_for_first(&mut publishers.0, &mut arriving)?;
        let (camera, mut pictures) = camera::declare(&near, &far)?;
        let mut film = Film::default();
        camera::wait_for_grant(&mut pictures, &mut film)?;
        let is_over = AtomicBool::new(false);
        let carried = AtomicU64::new(0);
        let cap =
            self.follows_goodput.then(|| self.goodput_cap(&robot, nodes[0].id())).transpose()?;
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| publish(publishers, &is_over));
            let arrived = scope.spawn(|| receive(arriving, &is_over));
            let data_bytes = scope.spawn(|| fill(filling, &is_over, &carried));
            let capped = cap.map(|cap| scope.spawn(|| cap.follow(&carried, &is_over)));
            let filmed = scope.spawn(|| camera::film(camera, &is_over));
            let watched = scope.spawn(|| camera::watch(pictures, film, (&is_over, &carried)));
            interrupt::sleep(SETTLES)?;
            let (begun, spent) = (Instant::now(), nodes[0].cpu_seconds());
            let already = carried.load(Ordering::Relaxed);
            let course = self.drive(&rig, &near);
            let after = nodes[0].cpu_seconds();
            is_over.store(true, Ordering::Relaxed);
            let join = |what| anyhow::anyhow!("{what} panicked");
            let sent = sent.join().map_err(|_| join("the publisher"))??;
            let arrived = arrived.join().map_err(|_| join("the subscriber"))?;
            let data_bytes = data_bytes.join().map_err(|_| join("the data's subscriber"))?;
            if let Some(capped) = capped {
                capped.join().map_err(|_| join("the cap"))??;
            }
            let course = course?;
            let mut times = Times { sent, arrived };
            times.sent.retain(|_, at| *at >= begun);
            let mut seen = self.judge(&times, course.admitted());
            filmed.join().map_err(|_| join("the camera"))??;
            seen.film = watched.join().map_err(|_| join("the camera's subscriber"))?;
            seen.film.begin_at(begun);
            let carried = (data_bytes + seen.film.bytes()).saturating_sub(already);
            seen.data =
                float(carried) * 8.0 / (float(self.rates.iter().sum()) * TICK.as_secs_f64());
            seen.processor = (after? - spent?) * 1e9 / float(carried.max(1));
            seen.of_oracle = seen.film.of_oracle(begun, TICK, &self.rates, self.share());
            seen.course = course.with_grants(&seen.film);
            Ok(seen)
        })
    }

    /// Returns the part of the radio that contracts may use: the rest is for control, and over QUIC at least 6 % for repairs.
    fn share(&self) -> f64 {
        if self.protocol == "quic" { 0.89 } else { 0.95 }
    }

    pub(super) fn impairment(bits: u64) -> Result<Impairment> {
        let blackout = bits == 0;
        let rate = Some(Capacity::from_bits_per_s(if blackout { DARK_BITS_PER_S } else { bits })?);
        Ok(Impairment { rate, blackout, delay: WAY, queue_bytes: QUEUE_BYTES, ..Impairment::NONE })
    }

    fn goodput_cap(&self, host: &Path, process: u32) -> Result<GoodputCap> {
        let place = format!("listen={}/{ROBOT_ADDRESS}:{PORT}", self.protocol);
        GoodputCap::new(host, &place, self.capacity, process)
    }

    fn node(
        &self,
        name: &str,
        place: &str,
        host: &Path,
        (rig, side): (&Rig, Side),
        files: &Certificates,
    ) -> Result<Terminal> {
        let mut link = format!("name=radio,{place},capacity={}", self.capacity);
        if self.protocol == "tcp" {
            link.push_str(",insecure");
        } else {
            let [cert, key, ca] = files.files(name);
            let (cert, key, ca) = (cert.display(), key.display(), ca.display());
            link.push_str(&format!(",tls_cert={cert},tls_key={key},tls_ca={ca}"));
        }
        if self.follows_goodput && name == ROBOT {
            let file = GoodputCap::configure(host, place, self.capacity)?;
            let words = ["node", "--name", name, "--json", "--config", &file];
            return Terminal::start(&words, host, Some(rig.namespace(side)));
        }
        let policy = files.policy().display().to_string();
        let mut words = vec!["node", "--name", name, "--json", "--link", &link];
        if self.protocol != "tcp" {
            words.extend(["--policy", &policy]);
        }
        Terminal::start(&words, host, Some(rig.namespace(side)))
    }

    /// Changes the rate of the radio over time. Returns what the robot knew of it.
    fn drive(&self, rig: &Rig, near: &Node) -> Result<Course> {
        let begun = Instant::now();
        let (mut course, mut last) = (Course::default(), Moment::default());
        for (index, rate) in (1..).zip(&self.rates) {
            rig.set(Self::impairment(*rate)?);
            // A reading takes a moment, so that one in four ticks has one.
            if index % 4 == 1 {
                last = known(near).unwrap_or(last);
            }
            course.push(Moment { at: Some(Instant::now()), capacity: *rate, ..last });
            interrupt::sleep((begun + TICK * index).saturating_duration_since(Instant::now()))?;
        }
        Ok(course)
    }

    pub(super) fn judge(&self, times: &Times, admitted: f64) -> Seen {
        let delay = |seq: &u64, sent: &Instant| {
            times.arrived.get(seq).map(|arrived| arrived.saturating_duration_since(*sent))
        };
        // Samples of the last moments may be under way.
        let last = times.sent.values().last().copied();
        let counted = times.sent.iter().filter(|(_, sent)| {
            last.is_some_and(|last| last.saturating_duration_since(**sent) > DEADLINE * 5)
        });
        let (mut seen, mut misses) = (Seen { admitted, ..Seen::default() }, Vec::new());
        let (mut since, mut before): (Option<Instant>, Option<Instant>) = (None, None);
        for (seq, sent) in counted {
            let delay = delay(seq, sent);
            seen.steering += 1;
            seen.lost += usize::from(delay.is_none());
            seen.late += usize::from(delay.is_some_and(|delay| delay > DEADLINE));
            let missed = delay.is_none_or(|delay| delay > DEADLINE);
            misses.push(missed);
            if missed {
                let goes_on = before.is_some_and(|before| *sent - before < APART);
                since = since.filter(|_| goes_on).or(Some(*sent));
                before = Some(*sent);
                let lasted = since.map_or(Duration::ZERO, |since| *sent - since);
                seen.bad_longest = seen.bad_longest.max(lasted);
            }
        }
        let count = |window: &[bool]| window.iter().filter(|missed| **missed).count();
        seen.broken = misses.chunks(WINDOW).filter(|window| count(window) > 1).count();
        seen
    }
}

/// Returns what the robot knows of its radio.
fn known(near: &Node) -> Option<Moment> {
    let status = near.status_of(&near.near(), Duration::from_millis(40));
    let robot = status.into_iter().find(|node| node.name == ROBOT)?;
    let radio = robot.links.into_iter().find(|link| link.name == "radio")?;
    let stated = radio.capacity_bits_per_s?;
    let contracts = radio.measured.map_or(stated, |found| found.contracts_bits_per_s);
    let estimate = radio.measured.map_or(stated, |found| found.estimate_bits_per_s);
    Some(Moment { contracts, estimate, reserved: radio.reserved_bits_per_s, ..Moment::default() })
}

fn wait_for_first(steering: &mut Publisher, arriving: &mut Subscriber) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        interrupt::check()?;
        steering.put("steer")?;
        if arriving.recv_timeout(PERIOD).is_ok() {
            return Ok(());
        }
    }
    bail!("no steering arrived within {} s", PATIENCE.as_secs())
}

/// Publishes until the run is over. Returns the times of the steering samples.
fn publish(
    (mut steering, mut data): (Publisher, Publisher),
    is_over: &AtomicBool,
) -> Result<BTreeMap<u64, Instant>> {
    let (begun, mut sent) = (Instant::now(), BTreeMap::new());
    let filler = vec![0_u8; DATA_BYTES];
    for index in 1.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let now = Instant::now();
        let report = steering.put("steer").context("steering")?;
        sent.insert(report.seq, now);
        data.put(filler.clone()).context("data")?;
        std::thread::sleep((begun + PERIOD * index).saturating_duration_since(Instant::now()));
    }
    Ok(sent)
}

/// Receives the steering samples until the run is over. Returns their arrivals.
fn receive(mut arriving: Subscriber, is_over: &AtomicBool) -> BTreeMap<u64, Instant> {
    let mut arrived = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(sample) = arriving.recv_timeout(TICK) {
            arrived.insert(sample.seq, Instant::now());
        }
    }
    arrived
}

/// Receives the data until the run is over. Returns its bytes, and adds them to `carried` at once.
fn fill(mut filling: Subscriber, is_over: &AtomicBool, carried: &AtomicU64) -> u64 {
    let mut bytes = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(sample) = filling.recv_timeout(TICK) {
            let length = sample.payload.len() as u64;
            bytes += length;
            carried.fetch_add(length, Ordering::Relaxed);
        }
    }
    bytes
}
