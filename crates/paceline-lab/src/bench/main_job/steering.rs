//! Steering commands and a camera on the same link: the commands must never wait behind a picture.

mod calibrate;

use crate::bench::machine::Load;
use crate::bench::netns::Side;
use crate::bench::protocol::{Content, Engine, Source, Want};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stage::{Flow, Listener, Measured, Plan, Stage};
use crate::bench::stats::{Samples, count, median, millis};
use anyhow::Result;
use paceline::class::Policy;

const CAMERA: &str = "robot/camera";
const STEERING: &str = "robot/steering";
const COMMANDS_HZ: f64 = 100.0;
/// The transmission time of two wire segments of 1,200 bytes with headers at 2 Mbit/s, plus 1 ms.
const P999_MS_MAX: f64 = 11.5;
/// The rate and bound of the camera with a contract.
const PICTURES_HZ: f64 = 10.0;
const CAMERA_WITHIN_MS: u64 = 200;
/// The picture size of the best-effort camera.
const BEST_EFFORT_BYTES: usize = 30_000;
/// The least rate of the best-effort camera during commands of 64 bytes.
const PICTURES_HZ_MIN: f64 = 7.0;
const PICTURE_P50_MS_MAX: f64 = 200.0;

/// The camera that shares the link.
#[derive(Clone, Copy, Debug)]
enum Camera {
    /// 10 pictures per second of this size, each within 200 ms: the largest size that is admitted
    /// in addition to the commands.
    Contracted(usize),
    /// 30 pictures of 30 KB per second without a contract, 3.6 times the link's capacity.
    BestEffort,
}

/// The commands of one run.
pub(super) struct Commands {
    pub(super) delays: Samples,
    pub(super) sent: usize,
    pub(super) lost: usize,
    pub(super) hertz: f64,
}

impl Commands {
    /// Extracts the commands from a run planned by [`commands_only`] or [`plan`].
    pub(super) fn of(measured: &Measured, commands: u32) -> Self {
        let limit = usize::try_from(commands).unwrap_or(usize::MAX);
        let flow = measured.flow(0, (0, 0), limit);
        Self { delays: flow.delays(), sent: flow.sent, lost: flow.lost(), hertz: flow.hertz() }
    }
}

/// Measures all four configurations and passes each section to `done` when it is complete.
pub(super) fn measure(
    stage: &Stage<'_>,
    commands: u32,
    runs: u32,
    mut done: impl FnMut(Section),
) -> Result<()> {
    let mut left_by_small = None;
    for bytes in [64, 1_000] {
        let room = calibrate::room(stage, bytes)?;
        let share = room.left / *left_by_small.get_or_insert(room.left);
        let fit = room.left / (count(BEST_EFFORT_BYTES) * room.per_byte);
        for camera in [Camera::Contracted(room.picture), Camera::BestEffort] {
            let case = Case { bytes, camera, share, fit, commands, runs };
            done(case.measure(stage)?);
        }
    }
    Ok(())
}

struct Case {
    bytes: usize,
    camera: Camera,
    /// The capacity that these commands leave, as a fraction of the capacity that the small ones
    /// leave.
    share: f64,
    /// The number of whole best-effort pictures per second that fit in addition to these commands.
    fit: f64,
    commands: u32,
    runs: u32,
}

/// The figures of all runs, one value per run.
#[derive(Default)]
struct Numbers {
    p50: Vec<f64>,
    p99: Vec<f64>,
    p999: Vec<f64>,
    max: Vec<f64>,
    sent: usize,
    lost: usize,
    pictures: Vec<f64>,
    picture_p50: Vec<f64>,
    picture_p99: Vec<f64>,
    beyond: Vec<f64>,
    fill: Vec<f64>,
    load: Option<Load>,
}

impl Case {
    fn measure(&self, stage: &Stage<'_>) -> Result<Section> {
        let mut section = Section::new(self.title());
        let (mut ours, mut plain) = (Numbers::default(), Numbers::default());
        for run in 1..=self.runs {
            eprintln!("{}: run {run} of {}", self.title(), self.runs);
            let measured = stage.measure(&self.plan(Engine::Paceline))?;
            measured.remarks.iter().for_each(|remark| section.note(remark));
            ours.add(&measured, self.commands);
            if run == 1 {
                plain.add(&stage.measure(&self.plan(Engine::Plain))?, self.commands);
            }
        }
        self.add_command_rows(&mut section, &ours, &plain);
        self.add_camera_rows(&mut section, &ours, &plain);
        section.load(ours.load, plain.load);
        section.warn_if_busy();
        section.note(format!(
            "{} commands per run. Paceline: number of runs {}, each figure is their median, losses \
             are their sum. Plain Zenoh: one run, camera Background and dropping, commands \
             RealTime and express.",
            self.commands, self.runs
        ));
        Ok(section)
    }

    fn title(&self) -> String {
        let bytes = self.bytes;
        match self.camera {
            Camera::Contracted(size) => format!(
                "Commands of {bytes} bytes next to the largest contracted camera that is granted \
                 ({PICTURES_HZ} Hz x {size} bytes)"
            ),
            Camera::BestEffort => format!(
                "Commands of {bytes} bytes next to a best-effort camera (30 Hz x 30 KB): 3.6 x the \
                 link"
            ),
        }
    }

    fn plan(&self, engine: Engine) -> Plan {
        // Half a second more than is counted, so that the last command is included.
        let seconds = f64::from(self.commands) / COMMANDS_HZ + 0.5;
        plan(engine, self.bytes, Some(self.camera), seconds)
    }

    fn add_command_rows(&self, section: &mut Section, ours: &Numbers, plain: &Numbers) {
        let (a, b) = (median(&ours.p999), median(&plain.p999));
        section.must("command delay p99.9", Unit::Millis, a, b, Bound::AtMost(P999_MS_MAX));
        let none = Bound::AtMost(0.0);
        section.must("commands lost", Unit::Count, count(ours.lost), count(plain.lost), none);
        section.show("commands sent", Unit::Count, count(ours.sent), count(plain.sent));
        section.show("command delay p50", Unit::Millis, median(&ours.p50), median(&plain.p50));
        section.show("command delay p99", Unit::Millis, median(&ours.p99), median(&plain.p99));
        section.show("command delay max", Unit::Millis, median(&ours.max), median(&plain.max));
    }

    fn add_camera_rows(&self, section: &mut Section, ours: &Numbers, plain: &Numbers) {
        let (rate, plain_rate) = (median(&ours.pictures), median(&plain.pictures));
        let (p50, plain_p50) = (median(&ours.picture_p50), median(&plain.picture_p50));
        let (rate_name, p50_name) = ("whole pictures", "picture delay p50");
        match self.camera {
            Camera::BestEffort => {
                // The bound applies if the link has capacity for it.
                let fits = self.fit >= PICTURES_HZ_MIN;
                let least = if fits { PICTURES_HZ_MIN } else { 0.95 * self.fit };
                section.must(rate_name, Unit::Hertz, rate, plain_rate, Bound::AtLeast(least));
                let most = Bound::AtMost(PICTURE_P50_MS_MAX / self.share);
                section.must(p50_name, Unit::Millis, p50, plain_p50, most);
                if least < PICTURES_HZ_MIN {
                    section.note(format!(
                        "The link has room for {:.2} whole pictures per second next to these \
                         commands. The bound on their rate is 95 % of that instead of \
                         {PICTURES_HZ_MIN} Hz. The bound on their delay is divided by the \
                         remaining share of the link, {:.0} %.",
                        self.fit,
                        100.0 * self.share
                    ));
                }
            }
            Camera::Contracted(_) => {
                section.show(rate_name, Unit::Hertz, rate, plain_rate);
                section.show(p50_name, Unit::Millis, p50, plain_p50);
                let name = "picture misses of 200 ms beyond 1 in 10";
                let (a, b) = (median(&ours.beyond), median(&plain.beyond));
                section.show(name, Unit::Count, a, b);
            }
        }
        let (a, b) = (median(&ours.picture_p99), median(&plain.picture_p99));
        section.show("picture delay p99", Unit::Millis, a, b);
        section.show("link filled", Unit::Percent, median(&ours.fill), median(&plain.fill));
    }
}

impl Numbers {
    fn add(&mut self, measured: &Measured, commands: u32) {
        let steering = Commands::of(measured, commands);
        self.p50.push(millis(steering.delays.percentile(500)));
        self.p99.push(millis(steering.delays.percentile(990)));
        self.p999.push(millis(steering.delays.percentile(999)));
        self.max.push(millis(steering.delays.max()));
        self.sent += steering.sent;
        self.lost += steering.lost;
        let camera: Flow = measured.flow(1, (0, 1), usize::MAX);
        self.pictures.push(camera.hertz());
        let delays = camera.delays();
        self.picture_p50.push(millis(delays.percentile(500)));
        self.picture_p99.push(millis(delays.percentile(990)));
        self.beyond.push(count(camera.misses_beyond(1, CAMERA_WITHIN_MS * 1_000_000, (1, 10))));
        self.fill.push(measured.fill_percent());
        let busy = |load: Option<Load>| load.map_or(0.0, |load| load.busy_percent);
        if busy(measured.load) >= busy(self.load) {
            self.load = measured.load;
        }
    }
}

/// Plans a run with commands of `bytes` bytes only.
pub(super) fn commands_only(engine: Engine, bytes: usize, seconds: f64) -> Plan {
    plan(engine, bytes, None, seconds)
}

fn plan(engine: Engine, bytes: usize, camera: Option<Camera>, seconds: f64) -> Plan {
    let content = Content::Noise(bytes);
    let tag = STEERING.to_owned();
    let mut sources = vec![Source { tag: tag.clone(), hz: COMMANDS_HZ, content, urgent: true }];
    // A command and the frame before it may occupy the link for this long. Admission refuses a
    // tighter bound.
    let within_ms = Some(if bytes > 500 { 12 } else { 10 });
    let mut want = vec![Want { tag, within_ms, ..Want::default() }];
    if let Some(camera) = camera {
        let (hz, size, within_ms, loss) = match camera {
            Camera::Contracted(size) => (PICTURES_HZ, size, Some(CAMERA_WITHIN_MS), Some((1, 10))),
            Camera::BestEffort => (30.0, BEST_EFFORT_BYTES, None, None),
        };
        let content = Content::Noise(size);
        sources.push(Source { tag: CAMERA.to_owned(), hz, content, urgent: false });
        want.push(Want { tag: CAMERA.to_owned(), within_ms, loss, ..Want::default() });
    }
    Plan {
        engine,
        policy: Policy::default(),
        sources,
        listeners: vec![Listener { name: "operator", side: Side::Operator, want }],
        seconds,
    }
}
