//! Commands with an age limit between processes that are stopped and hosts whose cable is cut.
//!
//! All processes share the monotonic clock of the machine, so a command that carries its instant of publishing shows its true
//! age. A stopped process in the middle delays everything by the time that it is stopped.

use crate::hosts::Hosts;
use crate::support::{SOON, isolated};
use paceline::LinkConfig;
use paceline::delivery::{Actuation, Otherwise};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);
/// 200 commands per second.
const EVERY: Duration = Duration::from_millis(5);
/// The environment variable with the part of a child process.
const PART: &str = "PACELINE_TEST_PART";
const HUB: &str = "tcp/127.0.0.1:7811";
const ROBOT: &str = "tcp/10.77.0.2:7812";
const RESULT: &str = "RESULT ";

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

/// The decisions of the robot.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    released: u64,
    /// The largest true age of a released command in nanoseconds.
    oldest: u64,
    /// Commands that were within the limit at the release and not when the callback checked again: the process was
    /// stopped in between.
    rechecked: u64,
    /// Commands that were refused.
    stale: u64,
    safe: u64,
    /// Commands that arrived within half of the limit, by their true age.
    young: u64,
}

/// The part of a child process, until its input ends.
#[test]
#[ignore = "a child process of the other tests here"]
fn child() {
    let part = std::env::var(PART).unwrap_or_default();
    let wait = || std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    if part == "hub" {
        let (down, up) =
            (LinkConfig::new("down").listen(HUB), LinkConfig::new("up").connect(ROBOT));
        let _hub = isolated("hub", [down, up]);
        wait();
    } else if part == "robot" {
        let robot = isolated("robot", [LinkConfig::new("down").listen(ROBOT).insecure()]);
        let counts = Arc::new(Mutex::new(Counts::default()));
        let sent = |payload: &[u8]| payload.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let seen = counts.clone();
        let plain = robot.subscriber("arm").callback(move |sample| {
            let age = monotonic() - sent(&sample.payload);
            seen.lock().unwrap().young += u64::from(u128::from(age) * 2 <= LIMIT.as_nanos());
        });
        let seen = counts.clone();
        let fresh = robot.subscriber("arm").fresh_within(LIMIT, Otherwise::Zero);
        let fresh = fresh.callback(move |sample| {
            let age = monotonic().saturating_sub(sent(&sample.payload));
            let mut counts = seen.lock().unwrap();
            match sample.actuation {
                // The check of an application: it may have been stopped since the release.
                Some(Actuation::Command { until }) if Instant::now() > until => {
                    counts.rechecked += 1
                }
                Some(Actuation::Command { .. }) => {
                    counts.released += 1;
                    counts.oldest = counts.oldest.max(age);
                }
                Some(Actuation::Safe) => counts.safe += 1,
                None => panic!("neither a command nor a safe action"),
            }
        });
        let (fresh, _plain) = (fresh.unwrap(), plain.unwrap());
        wait();
        let Counts { released, oldest, rechecked, safe, young, .. } = *counts.lock().unwrap();
        let stale = fresh.decisions().stale;
        println!("{RESULT}{released} {oldest} {rechecked} {stale} {safe} {young}");
    }
}

/// A child process.
struct Part {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Part {
    fn start(part: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["stale::child", "--exact", "--ignored", "--nocapture"]).env(PART, part);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), output, child }
    }

    /// Stops the process for a time.
    fn pause(&self, time: Duration) {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::STOP).unwrap();
        std::thread::sleep(time);
        kill_process(id, Signal::CONT).unwrap();
    }

    /// Ends the process and returns the numbers that it prints.
    fn end(mut self) -> Vec<u64> {
        drop(self.input.take());
        let mut lines = self.output.by_ref().lines().map_while(Result::ok);
        let result = lines.find_map(|line| line.split_once(RESULT).map(|(_, it)| it.to_owned()));
        let numbers = result.unwrap_or_default();
        numbers.split(' ').filter_map(|number| number.parse().ok()).collect()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Publishes for `time` while the hub and the robot are stopped and the cable is cut; returns the robot's decisions and the
/// number of commands.
fn run(hosts: &Hosts, time: Duration) -> (Counts, u64) {
    let robot = hosts.inside(1, || Part::start("robot"));
    let hub = hosts.inside(0, || Part::start("hub"));
    let up = LinkConfig::new("up").connect(HUB);
    let operator = hosts.inside(0, || isolated("operator", [up]));
    let mut publisher = operator.publisher("arm").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    let (begun, mut count) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        let disturb = scope.spawn(|| {
            let ms = Duration::from_millis;
            let mut round = 0;
            while begun.elapsed() < time {
                std::thread::sleep(ms(600));
                hub.pause(ms(60 + 40 * (round % 4)));
                std::thread::sleep(ms(300));
                robot.pause(ms(150));
                std::thread::sleep(ms(300));
                hosts.ip(1, "link set eth down");
                std::thread::sleep(ms(200));
                hosts.ip(1, "link set eth up");
                std::thread::sleep(ms(700));
                round += 1;
            }
        });
        while !disturb.is_finished() {
            publisher.put(monotonic().to_le_bytes().to_vec()).unwrap();
            count += 1;
            std::thread::sleep(EVERY);
        }
        disturb.join().unwrap();
    });
    drop(hub);
    let numbers = robot.end();
    let [released, oldest, rechecked, stale, safe, young] = numbers[..] else {
        panic!("{numbers:?}")
    };
    (Counts { released, oldest, rechecked, stale, safe, young }, count)
}

fn check(test: &str, time: Duration) {
    let Some(hosts) = Hosts::new("pl-st") else {
        println!("skipped: {test} (network namespaces are not permitted)");
        return;
    };
    let (counts, published) = run(&hosts, time);
    println!("{published} commands: {counts:?}");
    let oldest = Duration::from_nanos(counts.oldest);
    assert!(oldest <= LIMIT, "released {oldest:?} after publishing: {counts:?}");
    assert!(counts.released > 50 && counts.stale > 0 && counts.safe > 0, "{counts:?}");
}

#[test]
fn no_command_is_released_too_old_over_stopped_processes_and_cut_cables() {
    check(
        "no_command_is_released_too_old_over_stopped_processes_and_cut_cables",
        Duration::from_secs(5),
    );
}

#[test]
#[ignore = "nine minutes: cargo xtask long runs it"]
fn a_minute_of_commands_over_stopped_processes_and_cut_cables() {
    check("a_minute_of_commands_over_stopped_processes_and_cut_cables", Duration::from_secs(550));
}
