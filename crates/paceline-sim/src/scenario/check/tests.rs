use crate::impair::{Impairment, Loss};
use crate::scenario::{Content, FaultKind, Plan, Protocol};
use paceline_sched::{Duration, Late};

const HEAD: &str = "duration_s = 20\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n\
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
        Impairment { rate: link.capacity, burst_bytes: 1_600, ..Impairment::NONE }
    );
    assert_eq!(link.protocol, Protocol::Tcp);
    assert!(link.capacity.is_some() && plan.warnings.is_empty());
    let publisher = &plan.publishers[0];
    assert_eq!((publisher.period, publisher.bytes), (Duration::from_millis(100), 1_000));
    assert_eq!((&publisher.content, publisher.late), (&Content::Data, Late::Drop));
    assert_eq!(plan.subscribers[0].window(), None);
}

#[test]
fn values_are_parsed() {
    let plan = read(
        "[[link]]\nbetween = [\"b\", \"c\"]\nrate = \"1.5 mbit\"\ncapacity = \"2mbit\"\ndelay_ms = 2.5\n\
         loss = 0.01\nreorder = 0.001\nqueue_bytes = 3000\ndiscipline = \"edf\"\nprotocol = \"udp\"\n\
         [[fault]]\nat_s = 3\nimpair = [\"c\", \"b\"]\nfor_s = 1\n\
         loss = { good_to_bad = 0.1, bad_to_good = 0.5, loss_good = 0, loss_bad = 1 }\n\
         [[fault]]\nat_s = 1.5\ncrash = \"b\"\nrestart_after_s = 2\n",
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
    ("[[node]]", "node 4: name is missing: give each node a name"),
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
        "link 2: rate = \"2\": must be a number above 0 with a unit",
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
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nbytes = 100000000",
        "must be a whole number from 1 to 67108864",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nfrom_s = 3\nto_s = 2",
        "to_s = 2: must be above from_s",
    ),
    (
        "[[publisher]]\nnode = \"a\"\ntag = \"t\"\nto_s = 21",
        "to_s = 21: must be at most duration_s, which is 20",
    ),
    ("[[publisher]]\nnode = \"a\"\ntag = \"t\"\ngroup = \"IP\"", "applies only to video"),
    ("[[publisher]]\nnode = \"a\"\ntag = \"t\"\nkind = \"film\"", "must be data, picture or video"),
    ("[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nmax_hz = 1\nevery = 2", "conflicts with max_hz"),
    ("[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nloss = \"3/2\"", "subscriber 1: loss = \"3/2\""),
    (
        "[[subscriber]]\nnode = \"a\"\ntag = \"t\"\nwithin_ms = 0",
        "must be from 0.001 to 86400000 ms",
    ),
    ("[[fault]]\nat_s = 1", "fault 1: set one of cut"),
    ("[[fault]]\nat_s = 1\nstall = \"a\"\ncrash = \"b\"", "fault 1: set one of cut"),
    ("[[fault]]\nstall = \"a\"", "fault 1: at_s is missing"),
    ("[[fault]]\nat_s = 20\nstall = \"a\"", "at_s = 20: must be below duration_s, which is 20"),
    (
        "[[fault]]\nat_s = 19\nstall = \"a\"\nfor_s = 2",
        "for_s = 2: must be above 0 and end within duration_s",
    ),
    ("[[fault]]\nat_s = 1\nstall = \"a\"\nrestart_after_s = 2", "applies only to a crash"),
    (
        "[[fault]]\nat_s = 1\ncrash = \"a\"\nfor_s = 2",
        "does not apply to a crash; use restart_after_s",
    ),
    ("[[fault]]\nat_s = 1\ncut = [\"a\", \"c\"]", "names two nodes without a link between them"),
    ("[[fault]]\nat_s = 1\ncut = [\"a\", \"b\"]\nloss = 0.1", "applies only to impair"),
    (
        "[[fault]]\nat_s = 1\nstall = \"a\"\n[[fault]]\nat_s = 2\ncrash = \"a\"",
        "end one fault before the other begins",
    ),
];

#[test]
fn errors_name_the_line_the_range_and_a_fix() {
    for (rest, part) in WRONG {
        let error = read(rest).expect_err(rest);
        assert!(error.contains(part), "{rest}: {error}");
        let line = error.strip_prefix("x.toml:").and_then(|rest| rest.split(':').next());
        let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_default();
        assert!(line == 1 || line >= LINE - 1, "{rest}: {error}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let error = read("[[publisher]]\nhz = -1\nbytes = 0\n").unwrap_err();
    assert_eq!(error.lines().count(), 4, "{error}");
    let broken = Plan::read("[[node]\nname = 3", "x.toml").unwrap_err().to_string();
    assert!(broken.starts_with("x.toml:1: "), "{broken}");
    let typed = Plan::read("[[node]]\nname = 3", "x.toml").unwrap_err().to_string();
    assert!(typed.starts_with("x.toml:2: ") && typed.contains("expected a string"), "{typed}");
}
