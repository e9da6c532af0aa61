//! The same traffic with plain Zenoh and its priorities, for comparison.

use super::camera::{PICTURE_BYTES, WITHIN};
use super::run::{DATA_BYTES, Run, Seen, TICK, Times};
use crate::bench::child::Child;
use crate::bench::interrupt;
use crate::bench::netns::{ROBOT_ADDRESS, Rig, Side};
use crate::bench::protocol::{Arrival, Content, Engine, Message, Place, Role, Source, Want};
use crate::bench::stats::float;
use anyhow::{Context as _, Result};
use paceline_tool::scratch::Scratch;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PORT: u16 = 7_601;
const PATIENCE: Duration = Duration::from_secs(20);
/// Steering, the camera and data, with their rates and bytes.
const SOURCES: [(&str, f64, usize, bool); 3] = [
    ("steering", 100.0, 64, true),
    ("camera", 30.0, 40_000, false),
    ("data", 100.0, DATA_BYTES, false),
];

impl Run {
    /// Measures plain Zenoh over TCP: steering has the highest priority, pictures and data the lowest, and all may be dropped.
    pub(super) fn measure_plain(&self, scratch: &Scratch) -> Result<Seen> {
        let rig = Rig::carried(Self::impairment(self.rates.first().copied().unwrap_or(0))?)?;
        let address = format!("tcp/{ROBOT_ADDRESS}:{PORT}");
        let sources = SOURCES.map(|(tag, hz, bytes, urgent)| Source {
            tag: tag.to_owned(),
            hz,
            content: Content::Noise(bytes),
            urgent,
        });
        let wants = SOURCES.map(|(tag, ..)| Want { tag: tag.to_owned(), ..Want::default() });
        let publish =
            Role::Publish { place: place("robot", Some(&address), None), sources: sources.into() };
        let subscribe =
            Role::Subscribe { place: place("operator", None, Some(&address)), wants: wants.into() };
        let start =
            |name, role, side| Child::start(name, role, Some(rig.namespace(side)), &scratch.host());
        let mut robot = start("the publisher", &publish, Side::Robot)?;
        let mut operator = start("the subscriber", &subscribe, Side::Operator)?;
        for child in [&mut robot, &mut operator] {
            child.expect("ready", PATIENCE, |it| matches!(it, Message::Ready).then_some(()))?;
        }
        operator.go()?;
        robot.go()?;
        operator.expect("a sample", PATIENCE, |it| {
            matches!(it, Message::First { want: 0 }).then_some(())
        })?;
        let begun = crate::bench::clock::now();
        self.turn(&rig)?;
        robot.stop()?;
        operator.stop()?;
        let sent = robot.expect("the times", PATIENCE, |it| {
            let Message::Published { sent, .. } = it else { return None };
            Some(sent)
        })?;
        let arrivals = operator.expect("the samples", PATIENCE, |it| {
            let Message::Received { arrivals, .. } = it else { return None };
            Some(arrivals)
        })?;
        self.seen(begun, &sent, &arrivals)
    }

    /// Changes the rate of the radio over time.
    fn turn(&self, rig: &Rig) -> Result<()> {
        let begun = Instant::now();
        for (index, rate) in (1..).zip(&self.rates) {
            rig.set(Self::impairment(*rate)?);
            interrupt::sleep((begun + TICK * index).saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    fn seen(&self, begun: u64, sent: &[Vec<u64>], arrivals: &[Vec<Arrival>]) -> Result<Seen> {
        let ([steering, camera, _], [steered, pictures, data]) = (sent, arrivals) else {
            anyhow::bail!("the roles have reported {} and {} streams", sent.len(), arrivals.len());
        };
        // The judge compares instants of this process.
        let now = Instant::now();
        let instant = |nanos: u64| now + Duration::from_nanos(nanos.saturating_sub(begun));
        let counted = |(_, at): &(u64, &u64)| **at >= begun;
        let times = Times {
            sent: (0..)
                .zip(steering)
                .filter(counted)
                .map(|(seq, at)| (seq, instant(*at)))
                .collect(),
            arrived: steered.iter().map(|it| (it.seq, instant(it.at))).collect(),
        };
        let mut seen = self.judge(&times, f64::NAN);
        let taken: BTreeMap<u64, u64> = (0..).zip(camera.iter().copied()).collect();
        let late = |it: &&Arrival| {
            let sent = taken.get(&it.seq).copied().unwrap_or(it.at);
            Duration::from_nanos(it.at.saturating_sub(sent)) > WITHIN
        };
        let recent = |all: &[Arrival]| all.iter().filter(|it| it.at >= begun).count() as u64;
        seen.film.pictures = pictures.iter().filter(|it| it.at >= begun).count();
        seen.film.late = pictures.iter().filter(|it| it.at >= begun).filter(late).count();
        let bytes = recent(data) * u64::try_from(DATA_BYTES).context("bytes")?
            + recent(pictures) * PICTURE_BYTES;
        seen.data = float(bytes) * 8.0 / (float(self.rates.iter().sum()) * TICK.as_secs_f64());
        (seen.of_oracle, seen.processor) = (f64::NAN, f64::NAN);
        Ok(seen)
    }
}

fn place(name: &str, listen: Option<&str>, connect: Option<&str>) -> Place {
    Place {
        engine: Engine::Plain,
        name: name.to_owned(),
        listen: listen.map(str::to_owned),
        connect: connect.map(str::to_owned),
        capacity: None,
        policy: String::new(),
    }
}
