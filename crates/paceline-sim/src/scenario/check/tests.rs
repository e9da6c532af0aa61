use crate::impair::{Impairment, Loss};
use crate::scenario::{Content, FaultKind, Plan, Protocol};
use paceline_proto::capacity::LinkCapacity;
use paceline_sched::{Duration, Late};

const HEAD: &str = "duration = \"20s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n\
     [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"2Mbit/s\"\n";
/// The number of the line after [`HEAD`].
const LINE: usize = 11;

fn read(rest: &str) -> Result<Plan, String> {
    Plan::read(&format!("{HEAD}{rest}"), "x.toml").map_err(|problems| problems.to_string())
}

#[test]
fn omitted_fields_have_defaults() {
    let plan = read(
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\n[[subscriber]]\nnode = \"b\"\ntag = \"**\"\n",
    )
    .unwrap();
    assert_eq!((plan.name.as_str(), plan.seed), ("scenario", 1));
    assert_eq!((plan.duration, plan.warm_up), (Duration::from_secs(20), Duration::from_secs(2)));
    let link = &plan.links[0];
    assert_eq!(
        link.wire,
        Impairment { rate: link.wire.rate, burst_bytes: 1_600, ..Impairment::NONE }
    );
    assert_eq!(link.protocol, Protocol::Tcp);
    assert_eq!(link.capacity, link.wire.rate.map(LinkCapacity::Fixed));
    assert!(link.capacity.is_some() && plan.warnings.is_empty());
    let publisher = &plan.publishers[0];
    assert_eq!((publisher.period, publisher.bytes), (Duration::from_millis(100), 1_000));
    assert_eq!((&publisher.content, publisher.late), (&Content::Data, Late::Drop));
    assert_eq!(plan.subscribers[0].window(), None);
}

#[test]
fn values_are_parsed() {
    let plan = read(
        "[[link]]\nbetween = [\"b\", \"c\"]\nrate = \"1.5 mbit\"\ncapacity = \"2mbit\"\ndelay = \"2.5ms\"\n\
         loss = 0.01\nreorder = 0.001\nqueue = \"3000B\"\ndiscipline = \"edf\"\nprotocol = \"quic\"\n\
         [[fault]]\nat = \"3s\"\nimpair = [\"c\", \"b\"]\nfor = \"1s\"\n\
         loss = { good_to_bad = 0.1, bad_to_good = 0.5, loss_good = 0, loss_bad = 1 }\n\
         [[fault]]\nat = \"1.5s\"\ncrash = \"b\"\nrestart_after = \"2s\"\n",
    )
    .unwrap();
    let link = &plan.links[1];
    assert_eq!(link.wire.rate.unwrap().bits_per_s(), 1_500_000);
    assert_eq!(link.wire.delay, Duration::from_micros(2_500));
    assert_eq!(link.wire.loss, Loss::Random { ppm: 10_000 });
    assert_eq!((link.wire.reorder_ppm, link.wire.queue_bytes), (1_000, 3_000));
    assert!(plan.warnings[0].contains("link b - c"), "{:?}", plan.warnings);
    let [crash, impair] = plan.faults.as_slice() else { panic!("{:?}", plan.faults) };
    assert_eq!(crash.until, Some(Duration::from_millis(3_500)));
    let FaultKind::Impair([2, 1], wire) = impair.what else { panic!("{impair:?}") };
    assert_eq!((wire.rate, wire.delay), (link.wire.rate, link.wire.delay));
    let bursts = Loss::GilbertElliott {
        good_to_bad_ppm: 100_000,
        bad_to_good_ppm: 500_000,
        loss_good_ppm: 0,
        loss_bad_ppm: 1_000_000,
    };
    assert_eq!(wire.loss, bursts);
}

/// Invalid files, each with a part of the expected message.
const WRONG: &[(&str, &str)] = &[
    ("colour = 1", "unknown field `colour`"),
    // Elastic contracts and capacities over time.
    (
        "[[subscriber]]\nnode = \"b\"\ntag = \"t\"\nmax_hz = 5\nmin_hz = 10\nwithin = \"1s\"",
        "min_hz = 10: must be below max_hz",
    ),
    (
        "[[subscriber]]\nnode = \"b\"\ntag = \"t\"\nmax_hz = 5\nmin_hz = 1",
        "min_hz = 1: needs a contract; set within or loss",
    ),
    (
        "[[subscriber]]\nnode = \"b\"\ntag = \"t\"\nbitrate = \"1mbit..2mbit\"\nwithin = \"1s\"",
        "the second bit rate must be below the first",
    ),
    (
        "[[subscriber]]\nnode = \"b\"\ntag = \"t\"\nimportance = 101",
        "importance = 101: must be a whole number from 0 to 100",
    ),
    (
        "[[link]]\nbetween = [\"b\", \"c\"]\ncapacity = \"auto 2mbit..1mbit\"",
        "the minimum 2mbit is above the maximum 1mbit",
    ),
    (
        "[[fault]]\nat = \"1s\"\ncapacity = [\"a\", \"b\"]",
        "set rate, optionally with ramp, or rates with every",
    ),
    (
        "[[fault]]\nat = \"1s\"\ncapacity = [\"a\", \"b\"]\nrate = \"1mbit\"\nevery = \"1s\"",
        "set rate, optionally with ramp, or rates with every",
    ),
    (
        "[[fault]]\nat = \"1s\"\ncapacity = [\"a\", \"b\"]\nrates = [\"x\"]\nevery = \"1s\"",
        "each as rates = [",
    ),
    ("[[fault]]\nat = \"1s\"\nstall = \"a\"\nramp = \"1s\"", "ramp = "),
    ("[[fault]]\nat = \"1s\"\nstall = \"a\"\nrate = \"1mbit\"", "rate = "),
    // Bare numbers, wrong units, and names that carried their unit.
    (
        "[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nwithin = 200",
        "within = 200: needs a unit: 200ms, 0.2s (allowed: ns, us, ms, s, min, h)",
    ),
    ("[[fault]]\nat = 1.5\nstall = \"a\"", "at = 1.5: needs a unit: 1.5s, 1500ms (allowed: "),
    (
        "[[fault]]\nat = \"1MB\"\nstall = \"a\"",
        "unknown unit 'MB' (allowed: ns, us, ms, s, min, h)",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nbytes = 1000",
        "bytes = 1000: needs a unit: 1000B, 1kB (allowed: B, kB, MB, GB, TB)",
    ),
    (
        "[[link]]\nbetween = [\"b\", \"c\"]\ndelay_ms = 5",
        "write delay with a unit, such as delay = \"200ms\"",
    ),
    (
        "[[link]]\nbetween = [\"b\", \"c\"]\nqueue_bytes = 5",
        "write queue with a unit, such as queue = \"10MB\"",
    ),
    ("[[fault]]\nstall = \"a\"\nfor_s = 5", "write for with a unit, such as for = \"200ms\""),
    ("[[node]]", "node 4: name is missing: give each node a unique name"),
    ("[[node]]\nname = \"a\"", "node 4: name = \"a\": another node has it"),
    ("[[link]]\nrate = \"2mbit\"", "link 2: between is missing"),
    (
        "[[link]]\nbetween = [\"a\", \"z\"]",
        "link 2: between = \"z\": must be a node's name; the nodes are a, b, c",
    ),
    ("[[link]]\nbetween = [\"a\", \"a\"]", "names one node twice"),
    ("[[link]]\nbetween = [\"a\"]", "must be the names of two nodes"),
    ("[[link]]\nbetween = [\"b\", \"a\"]", "another link joins these two"),
    (
        "[[link]]\nbetween = [\"b\", \"c\"]\nrate = \"2\"",
        "link 2: rate = \"2\": needs a unit: 2mbit, 2000kbit (allowed: bit, kbit",
    ),
    (
        "[[link]]\nbetween = [\"b\", \"c\"]\nloss = 1.5",
        "link 2: loss = 1.5: must be a share from 0 to 1",
    ),
    ("[[link]]\nbetween = [\"b\", \"c\"]\nloss = { loss_bad = 1.0 }", "or all of { good_to_bad"),
    ("[[link]]\nbetween = [\"b\", \"c\"]\ndiscipline = \"lottery\"", "unknown policy"),
    ("[[publisher]]\nnode = \"a\"", "publisher 1: tag is missing: set its tag"),
    (
        "[[publisher]]\nnode = \"z\"\ntag = \"t\"",
        "publisher 1: node = \"z\": must be a node's name",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nhz = 0",
        "publisher 1: hz = 0: must be from 0.001 to 1000000 Hz",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nhz = 1000000",
        "samples in this scenario, at most 10000000",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nbytes = \"100MB\"",
        "must be from 1B to 67108864B; the payload of each sample",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nfrom = \"3s\"\nto = \"2s\"",
        "to = \"2s\": must be above from",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nto = \"21s\"",
        "to = \"21s\": must be at most duration, which is 20",
    ),
    ("[[publisher]]\nnode = \"a\"\ntag = \"t\"\ngroup = \"IP\"", "applies only to video"),
    ("[[publisher]]\nnode = \"a\"\ntag = \"t\"\nkind = \"film\"", "must be data, picture or video"),
    ("[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nloss = \"3/2\"", "subscriber 1: loss = \"3/2\""),
    (
        "[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nwithin = \"0ms\"",
        "within = \"0ms\": must be from 1us to 24h; the longest time",
    ),
    ("[[fault]]\nat = \"1s\"", "fault 1: set one of cut"),
    ("[[fault]]\nat = \"1s\"\nstall = \"a\"\ncrash = \"b\"", "fault 1: set one of cut"),
    ("[[fault]]\nstall = \"a\"", "fault 1: at is missing"),
    ("[[fault]]\nat = \"20s\"\nstall = \"a\"", "at = \"20s\": must be below duration, which is 20"),
    (
        "[[fault]]\nat = \"19s\"\nstall = \"a\"\nfor = \"2s\"",
        "for = \"2s\": must be above 0 and end within duration",
    ),
    (
        "[[fault]]\nat = \"1s\"\nstall = \"a\"\nrestart_after = \"2s\"",
        "applies only to a crash; use for or remove it",
    ),
    (
        "[[fault]]\nat = \"1s\"\ncrash = \"a\"\nfor = \"2s\"",
        "does not apply to a crash; use restart_after",
    ),
    ("[[fault]]\nat = \"1s\"\ncut = [\"a\", \"c\"]", "names two nodes without a link between them"),
    ("[[fault]]\nat = \"1s\"\ncut = [\"a\", \"b\"]\nloss = 0.1", "applies only to impair"),
    (
        "[[fault]]\nat = \"1s\"\nstall = \"a\"\n[[fault]]\nat = \"2s\"\ncrash = \"a\"",
        "end one fault before the other begins",
    ),
];

#[test]
fn errors_name_the_line_the_range_and_a_fix() {
    let mut missing = Vec::new();
    for (rest, part) in WRONG {
        let error = read(rest).expect_err(rest);
        if !error.contains(part) {
            missing.push(format!("'{part}' is not in {error}"));
        }
        let line = error.strip_prefix("x.toml:").and_then(|rest| rest.split(':').next());
        let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_default();
        assert!(line == 1 || line >= LINE - 1, "{rest}: {error}");
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn all_errors_are_reported_at_once() {
    let error = read("[[publisher]]\nhz = -1\nbytes = \"0B\"\n").unwrap_err();
    assert_eq!(error.lines().count(), 4, "{error}");
    let broken = Plan::read("[[node]\nname = 3", "x.toml").unwrap_err().to_string();
    assert!(broken.starts_with("x.toml:1: "), "{broken}");
    let typed = Plan::read("[[node]]\nname = 3", "x.toml").unwrap_err().to_string();
    assert!(typed.starts_with("x.toml:2: ") && typed.contains("expected a string"), "{typed}");
}
