//! A checker outside of all reports: publisher and subscriber are processes that write the number, the capture time and the
//! take time of each sample by one clock of the host, while they are stopped, starved, flooded and slow. The reported ages and
//! counts are compared with these files.
//!
//! Each time is an interval: the clock is read before and after the call of the library. So a process that is not scheduled
//! between two of these lines widens the interval, and never makes a report look wrong.

use crate::hosts::Hosts;
use crate::support::{HostDir, SOON, free_endpoint, isolated};
use paceline::{LinkConfig, Node};
use paceline_sched::Late;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variables of a child process: its part, and its endpoint or runtime folder.
const PART: &str = "PACELINE_TRUTH_PART";
const PLACE: &str = "PACELINE_TRUTH_PLACE";
const SLOW: &str = "PACELINE_TRUTH_SLOW";
const WITHIN: Duration = Duration::from_millis(25);
const EVERY: Duration = Duration::from_millis(10);
/// The error of an age if both ends read one clock.
const ERROR: Duration = Duration::from_micros(200);
/// The same if their clocks differ: the least queueing on the path is not known, and the clocks drift.
const ERROR_APART: Duration = Duration::from_millis(3);
/// The duration of one session.
const SESSION: Duration = Duration::from_millis(2_500);

/// Returns the time of the clock that no time namespace shifts, in nanoseconds.
fn truth() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

fn node(name: &str, place: &str, listens: bool) -> Node {
    if place.starts_with('/') {
        return Node::builder().name(name).runtime_dir(place).open().unwrap();
    }
    let link = LinkConfig::new("up");
    isolated(
        name,
        [if listens { link.listen(place).insecure() } else { link.connect(place).insecure() }],
    )
}

/// Publishes until the input ends. Prints the number, and the times before and after each call.
fn publish(place: &str) {
    let node = node("publisher", place, true);
    let mut publisher = node.publisher("t").hz(100.0).bytes_max(64).late(Late::Send);
    publisher = publisher.within(WITHIN);
    let mut publisher = publisher.declare().unwrap();
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ended = over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (mut lines, mut next) = (String::new(), Instant::now());
    let mut seq = 0_u64;
    while !over.load(std::sync::atomic::Ordering::Relaxed) {
        let before = truth();
        publisher.put(seq.to_le_bytes().to_vec()).unwrap();
        lines += &format!("ROW {seq} {before} {}\n", truth());
        seq += 1;
        next += EVERY;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    std::io::stdout().write_all(lines.as_bytes()).unwrap();
}

/// Takes samples until the input ends. Prints the number of each, the times before and after it was taken, and the reported
/// age; then the reports of the node.
fn subscribe(place: &str) {
    let node = node("subscriber", place, false);
    let mut subscriber = node.subscriber("t").within(WITHIN).declare().unwrap();
    let slow: u64 = std::env::var(SLOW).unwrap_or_default().parse().unwrap_or_default();
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ended = over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (mut lines, mut asked, mut age_max) = (String::new(), Instant::now(), Duration::ZERO);
    let mut report = || {
        let status = node.status_of(&[node.id()], SOON);
        let row = status[0].subscriptions.iter().find(|row| row.pattern == "t").unwrap().clone();
        age_max = age_max.max(row.age_max);
        (row, age_max)
    };
    while !over.load(std::sync::atomic::Ordering::Relaxed) {
        let arrival = subscriber.arrival();
        let before = truth();
        let Some(sample) = subscriber.try_recv() else {
            let _ = arrival.wait_until(Instant::now() + Duration::from_millis(20));
            if asked.elapsed() > Duration::from_millis(250) {
                asked = Instant::now();
                report();
            }
            continue;
        };
        let after = truth();
        let seq = u64::from_le_bytes(sample.payload[..].try_into().unwrap());
        let age = sample.age.as_nanos();
        lines += &format!("ROW {seq} {before} {after} {age} {}\n", u8::from(sample.late));
        if slow > 0 && seq % 50 < 10 {
            std::thread::sleep(Duration::from_millis(slow));
        }
    }
    // The ages of the last windows.
    let mut last = report();
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(250));
        last = report();
    }
    let (row, age_max) = last;
    let (late, overdue, lost, dropped) = (row.late, row.overdue, row.lost, row.dropped.total());
    lines += &format!("REPORT {late} {overdue} {lost} {dropped} {}\n", age_max.as_nanos());
    std::io::stdout().write_all(lines.as_bytes()).unwrap();
}

/// The part of a child process, until its input ends.
#[test]
#[ignore = "a child process of the other tests here"]
fn child() {
    let place = std::env::var(PLACE).unwrap_or_default();
    match std::env::var(PART).unwrap_or_default().as_str() {
        "publisher" => publish(&place),
        "subscriber" => subscribe(&place),
        "busy" => {
            let until = Instant::now() + SESSION;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        _ => {}
    }
}

/// A child process.
struct Part {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Part {
    /// Starts a part; `skew` shifts its monotonic clock by so many seconds.
    fn start(part: &str, place: &str, slow: u64, skew: Option<i64>) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match skew {
            Some(skew) => {
                let mut command = Command::new("unshare");
                command.args(["--time", "--fork", "--kill-child", "--monotonic"]);
                command.arg(skew.to_string()).arg(own);
                command
            }
            None => Command::new(own),
        };
        command.args(["truth::child", "--exact", "--ignored", "--nocapture"]);
        command.env(PART, part).env(PLACE, place).env(SLOW, slow.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), output, child }
    }

    /// Returns the process itself, which `unshare` may have started.
    fn pid(&self) -> Pid {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let child = children.unwrap_or_default().split_whitespace().next().map(str::to_owned);
        let child = child.and_then(|child| Pid::from_raw(child.parse().ok()?));
        child.unwrap_or_else(|| Pid::from_child(&self.child))
    }

    /// Stops the process for a time.
    fn pause(&self, time: Duration) {
        let id = self.pid();
        kill_process(id, Signal::STOP).unwrap();
        std::thread::sleep(time);
        kill_process(id, Signal::CONT).unwrap();
    }

    /// Ends the process and returns the lines that it prints, as their first word and numbers.
    fn end(mut self) -> Vec<(String, Vec<u64>)> {
        drop(self.input.take());
        let lines = self.output.by_ref().lines().map_while(Result::ok);
        let rows = lines.filter_map(|line| {
            let at = line.find("ROW ").or_else(|| line.find("REPORT "))?;
            let mut words = line[at..].split(' ').map(str::to_owned);
            let first = words.next()?;
            Some((first, words.filter_map(|word| word.parse().ok()).collect()))
        });
        rows.collect()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A repeatable source of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (it ^ (it >> 31)) % end
    }
}

/// The path of a session.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// Processes of one host.
    Host,
    /// A TCP link within one host.
    Tcp,
    /// A TCP link between two network namespaces.
    Cable,
    /// The same, and the monotonic clocks differ.
    CableSkewed,
}

const PATHS: [Path; 4] = [Path::Host, Path::Tcp, Path::Cable, Path::CableSkewed];

/// The comparison of one session.
#[derive(Debug, Default)]
struct Outcome {
    /// The time that the program needs for one in five samples, in milliseconds.
    slow: u64,
    taken: usize,
    /// The samples that were certainly late, and those that may have been.
    late: (u64, u64),
    /// The late samples by the reports: of each sample, and of the status.
    reported: (u64, u64),
    /// The part of them that waited in the process of the subscription, by the status.
    overdue: u64,
    /// The most by which a reported age was below and above the truth, in nanoseconds.
    below: u64,
    above: u64,
    /// The largest true age, at least and at most, and the reported one.
    age_max: (u64, u64, u64),
    /// The samples between the first and the last that were not taken, and those that are reported as lost or dropped.
    missing: (u64, u64),
    errors: Vec<String>,
}

fn session(seed: u64, hosts: Option<&Hosts>) -> Option<Outcome> {
    let mut random = Random(seed);
    let path = PATHS[usize::try_from(seed % 4).unwrap()];
    let folder = HostDir::new(&format!("truth{seed}"));
    let slow = if random.below(3) == 0 { 5 + random.below(25) } else { 0 };
    let (place, skew) = match path {
        Path::Host => (folder.path().to_str().unwrap().to_owned(), None),
        Path::Tcp => (free_endpoint(), None),
        Path::Cable => ("tcp/10.77.0.1:7813".to_owned(), None),
        Path::CableSkewed => ("tcp/10.77.0.1:7813".to_owned(), Some(1_000)),
    };
    let start = |host, part, slow, skew| match path {
        Path::Host | Path::Tcp => Some(Part::start(part, &place, slow, skew)),
        Path::Cable | Path::CableSkewed => {
            hosts.map(|it| it.inside(host, || Part::start(part, &place, slow, skew)))
        }
    };
    let publisher = start(0, "publisher", 0, None)?;
    std::thread::sleep(Duration::from_millis(150));
    let subscriber = start(1, "subscriber", slow, skew)?;
    let busy: Vec<Part> =
        (0..random.below(3) * 2).map(|_| Part::start("busy", "", 0, None)).collect();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(600));
    while begun.elapsed() < SESSION {
        std::thread::sleep(Duration::from_millis(100 + random.below(500)));
        match random.below(4) {
            0 | 1 => subscriber.pause(Duration::from_millis(30 + random.below(300))),
            2 => subscriber.pause(Duration::from_millis(5 + random.below(30))),
            _ => publisher.pause(Duration::from_millis(30 + random.below(200))),
        }
    }
    // The subscriber takes the last samples.
    let published = publisher.end();
    std::thread::sleep(Duration::from_millis(400));
    let taken = subscriber.end();
    drop(busy);
    let error = if skew.is_some() { ERROR_APART } else { ERROR };
    let outcome = Outcome { slow, ..compare(&published, &taken, error) };
    println!("{seed:4} {path:?} slow {slow} ms: {outcome:?}");
    Some(outcome)
}

fn compare(
    published: &[(String, Vec<u64>)],
    taken: &[(String, Vec<u64>)],
    error: Duration,
) -> Outcome {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
    let (error, within) = (nanos(error), nanos(WITHIN));
    let mut captured = BTreeMap::new();
    for (_, row) in published {
        if let [seq, before, after] = row[..] {
            captured.insert(seq, (before, after));
        }
    }
    let mut out = Outcome::default();
    let (mut seqs, mut report) = (Vec::new(), None);
    for (word, row) in taken {
        match (word.as_str(), &row[..]) {
            ("ROW", &[seq, before, after, age, late]) => {
                let Some(&(began, ended)) = captured.get(&seq) else { continue };
                let (least, most) = (before.saturating_sub(ended), after.saturating_sub(began));
                out.taken += 1;
                seqs.push(seq);
                out.below = out.below.max(least.saturating_sub(age));
                out.above = out.above.max(age.saturating_sub(most));
                if age + error < least {
                    out.errors.push(format!("{seq}: age {age}, truth {least} to {most}"));
                }
                if age > most + most / 20 + error {
                    out.errors.push(format!("{seq}: age {age} above {least} to {most}"));
                }
                out.late.0 += u64::from(least > within + error);
                out.late.1 += u64::from(most + error > within);
                out.reported.0 += late;
                out.age_max.0 = out.age_max.0.max(least);
                out.age_max.1 = out.age_max.1.max(most);
            }
            ("REPORT", &[late, overdue, lost, dropped, age_max]) => {
                report = Some([late, overdue, lost, dropped, age_max])
            }
            _ => {}
        }
    }
    let Some(report) = report else {
        out.errors.push("the subscriber has printed no report".to_owned());
        return out;
    };
    let span = seqs.iter().max().zip(seqs.iter().min()).map_or(0, |(last, first)| last - first + 1);
    check_report(&mut out, report, span - seqs.len() as u64, error);
    out
}

/// Compares the counters of the status with the files, of which `missing` samples have no row.
fn check_report(out: &mut Outcome, report: [u64; 5], missing: u64, error: u64) {
    let [late, overdue, lost, dropped, age_max] = report;
    (out.reported.1, out.overdue, out.age_max.2) = (late, overdue, age_max);
    out.missing = (missing, lost.max(dropped));
    let mut check = |holds: bool, what: &str| {
        if !holds {
            out.errors.push(what.to_owned());
        }
    };
    let (least, most) = out.late;
    check(out.taken > 50, "fewer than 50 samples were taken");
    check(out.reported.0 >= least, "fewer late samples than there were");
    check(out.reported.0 <= most + most / 20, "more late samples than there were");
    check(overdue <= late, "more overdue samples than late ones");
    check(late >= least, "the status counts fewer late samples than there were");
    check(late <= (most + missing) + (most + missing) / 20, "the status counts more late samples");
    check(age_max + error >= out.age_max.0, "the largest age is below the truth");
    let unread = missing > 0;
    check(
        unread || age_max <= out.age_max.1 + out.age_max.1 / 20 + error,
        "the largest age is above the truth",
    );
    check(out.missing.1 >= missing, "fewer lost samples than there were");
}

fn sessions(seeds: std::ops::Range<u64>) {
    let hosts = Hosts::new("pl-truth");
    if hosts.is_none() {
        println!("skipped: the sessions between namespaces, which are not permitted");
    }
    let (mut done, mut wrong, mut stalled) = (0, Vec::new(), 0);
    for seed in seeds {
        let Some(outcome) = session(seed, hosts.as_ref()) else { continue };
        done += 1;
        // The program itself keeps no sample waiting in these sessions.
        stalled += if outcome.slow == 0 { outcome.overdue } else { 0 };
        if !outcome.errors.is_empty() {
            wrong.push((seed, outcome.errors.len(), outcome.errors[0].clone()));
        }
    }
    println!("{done} sessions, {} of them with a report that is not true", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(stalled > 0, "no stop of a subscriber is the place of a late sample");
}

#[test]
fn reports_are_true_while_processes_stop() {
    sessions(0..12);
}

#[test]
#[ignore = "80 minutes: cargo xtask long runs it"]
fn a_thousand_sessions_report_the_truth() {
    sessions(0..1_000);
}
