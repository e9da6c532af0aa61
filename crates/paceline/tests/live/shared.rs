//! Contracts of one tag at several rates share a stream of a live link.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::status::LinkStatus;
use paceline::{Capacity, Kind, Node, SubscriberEvent};
use std::time::Duration;

const SAMPLES: u32 = 120;
const BYTES: usize = 5_000;

fn link_of(robot: &Node) -> LinkStatus {
    let status = robot.status(SOON).into_iter().find(|status| status.id == robot.id()).unwrap();
    status.links.into_iter().next().unwrap()
}

/// Publishes for subscribers with contracts at these rates; returns the bytes on the link meanwhile.
///
/// # Panics
/// Panics if a contract is refused, or if a subscriber does not receive exactly its samples.
fn bytes(rates: &[u32]) -> u64 {
    // Streams of all samples and of one in three would not fit beside each other.
    let thin = Capacity::from_bits_per_s(2_600_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(thin));
    let camera = robot.publisher("camera").kind(Kind::Data).hz(50.0).bytes_max(BYTES as u64);
    let mut camera = camera.declare().unwrap();
    let within = Duration::from_millis(150);
    let declare = |n: &u32| {
        let all = operator.subscriber("camera").within(within).queue(1_000);
        if *n > 1 { all.every(*n) } else { all }.declare().unwrap()
    };
    let mut subscribers: Vec<_> = rates.iter().map(declare).collect();
    for (n, subscriber) in rates.iter().zip(&subscribers) {
        wait_until(&format!("one in {n} is granted"), || {
            let event = subscriber.try_event();
            assert!(!matches!(event, Some(SubscriberEvent::Refused(..))), "one in {n}: {event:?}");
            matches!(event, Some(SubscriberEvent::Granted(..)))
        });
    }
    assert!(camera.wait_matching(SOON));
    let before = link_of(&robot).wire_bytes;
    at_rate(50, SAMPLES, |n| {
        let mut payload = vec![0; BYTES];
        payload[..4].copy_from_slice(&n.to_le_bytes());
        camera.put(payload).unwrap();
    });
    for (n, subscriber) in rates.iter().zip(&mut subscribers) {
        for wanted in (0..SAMPLES).step_by(usize::try_from(*n).unwrap()) {
            let sample = subscriber.recv_timeout(SOON).unwrap();
            let came = u32::from_le_bytes(sample.payload[..4].try_into().unwrap());
            assert_eq!(came, wanted, "one in {n}");
        }
        assert!(subscriber.try_recv().is_none(), "one in {n}: a sample twice");
    }
    sums::check(&[&robot, &operator]);
    let link = link_of(&robot);
    let [stream] = &link.streams[..] else { panic!("{:?}", link.streams) };
    assert!(stream.contracted && stream.counters.sent == u64::from(SAMPLES), "{stream:?}");
    let bytes = link.wire_bytes - before;
    println!("{rates:?}: {bytes} bytes, {} of samples", stream.counters.bytes);
    bytes
}

#[test]
fn contracts_at_three_rates_are_granted_and_sent_as_one_stream() {
    let (alone, shared) = (bytes(&[1]), bytes(&[6, 1, 3]));
    // Three streams would need 1.5 times as many. Control messages are among the bytes.
    assert!(shared * 10 <= alone * 11, "{shared} bytes, {alone} for all samples alone");
}
