//! Video: undecodable pictures are never delivered.

use super::{KNOWN_AFTER, in_order, pair, seqs};
use crate::ask::{Ask as _, all, undecodable, video, video_payloads};
use crate::handle::LinkPlan;
use crate::net::Net;
use paceline_proto::reason::DropReason;
use paceline_proto::sample::Kind;
use paceline_sched::{Capacity, Duration};

/// Of 30 pictures per second, two in three are Bs. At 20 Hz one of the two is dropped, at 10 Hz both. Every
/// reference is delivered.
///
/// # Panics
/// Panics if this does not hold.
pub fn thinned_video_can_be_decoded(net: &mut dyn Net) {
    const GROUP: &str = "IBBPBBPBBPBB";
    let (here, there) = pair(net, LinkPlan::default());
    let camera = net.publish(here, video("camera", 30, 900));
    let full = net.subscribe(there, all("camera"));
    let twenty = net.subscribe(there, all("camera").max_hertz(20));
    let ten = net.subscribe(here, all("camera").max_hertz(10).scaled_here());
    net.run_for(KNOWN_AFTER);
    let payloads = video_payloads(GROUP, [900, 500, 200]);
    net.every(camera, Duration::from_secs(1).mul_div(1, 30), 96, payloads);
    net.run_for(Duration::from_secs(4));
    assert_eq!(seqs(&net.delivered(full)), (0..96).collect::<Vec<_>>());
    assert_eq!(seqs(&net.delivered(ten)), (0..96).step_by(3).collect::<Vec<_>>());
    let twenty = net.delivered(twenty);
    assert_eq!(undecodable(GROUP, &twenty), None);
    assert_eq!(twenty.len(), 64);
    let spread = twenty.windows(2).all(|pair| matches!(pair, [a, b] if b.seq - a.seq <= 2));
    assert!(spread, "{:?}", seqs(&twenty));
}

/// A subscriber that joins in the middle of a group receives the next group from its first picture.
///
/// # Panics
/// Panics if this does not hold.
pub fn video_begins_with_an_i(net: &mut dyn Net) {
    const GROUP: &str = "IPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP";
    let (here, there) = pair(net, LinkPlan::default());
    let camera = net.publish(here, video("camera", 50, 900));
    let first = net.subscribe(there, all("camera"));
    net.run_for(KNOWN_AFTER);
    net.every(camera, Duration::from_millis(20), 350, video_payloads(GROUP, [900, 500, 200]));
    let mut joined = vec![first];
    for node in [there, here, here, there] {
        net.run_for(Duration::from_millis(1_250));
        joined.push(net.subscribe(node, all("camera")));
    }
    net.run_for(Duration::from_secs(4));
    for (place, subscription) in joined.into_iter().enumerate() {
        let delivered = net.delivered(subscription);
        assert!(in_order(&delivered), "{place}");
        assert_eq!(undecodable(GROUP, &delivered), None, "{place}");
        let begins = delivered.first().map(|sample| sample.kind);
        assert_eq!(begins, Some(Kind::VideoI), "{place}");
        assert_eq!(delivered.last().map(|sample| sample.seq), Some(349), "{place}");
    }
}

/// A link with enough capacity for the references but not for the Bs drops only Bs. A link with less capacity
/// still delivers every I. Each sample is delivered or counted.
///
/// # Panics
/// Panics if this does not hold.
pub fn video_sheds_b_before_p_before_i(net: &mut dyn Net) {
    const GROUP: &str = "IBBPBBPBBPBB";
    const COUNT: u64 = 240;
    let (here, there) = pair(net, LinkPlan { capacity: Capacity::from_bits_per_s(2_000_000).ok() });
    let camera = net.publish(here, video("camera", 30, 20_000));
    let seen = net.subscribe(there, all("camera"));
    net.run_for(KNOWN_AFTER);
    let period = Duration::from_secs(1).mul_div(1, 30);
    // At 30 Hz, 100 kB/s of references and 180 kB/s of Bs. The link has 250 kB/s minus headers.
    net.every(camera, period, COUNT, video_payloads(GROUP, [16_000, 8_000, 9_000]));
    net.run_for(Duration::from_secs(12));
    let delivered = net.delivered(seen);
    assert!(in_order(&delivered));
    assert_eq!(undecodable(GROUP, &delivered), None);
    let references = delivered.iter().filter(|sample| sample.kind != Kind::VideoB).count() as u64;
    assert_eq!(references, COUNT / 3, "all references arrive");
    let shed = net.stream(here, there, camera).drops;
    assert_eq!(shed.total(), shed.of(DropReason::QueueFull));
    assert!(shed.total() > 0 && delivered.len() as u64 + shed.total() == COUNT, "{shed:?}");
    // 400 kB/s of references.
    let before = delivered.len();
    net.every(camera, period, COUNT, video_payloads(GROUP, [40_000, 40_000, 9_000]));
    net.run_for(Duration::from_secs(12));
    let delivered = net.delivered(seen);
    assert_eq!(undecodable(GROUP, &delivered), None);
    let begins = delivered.iter().skip(before).filter(|sample| sample.kind == Kind::VideoI);
    assert_eq!(begins.count() as u64, COUNT / 12, "every I arrives");
    let shed = net.stream(here, there, camera).drops;
    assert_eq!(delivered.len() as u64 + shed.total(), 2 * COUNT, "{shed:?}");
}
