//! Offers of refusals: a request that takes one is granted, and every sample arrives.

use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::contract::Refusal;
use paceline::{Capacity, Encoding, Subscriber, SubscriberEvent};
use paceline_media::{Size, TestCard};
use std::time::Duration;

/// Waits for the first grant or refusal of a subscription with one publisher.
fn answer(subscriber: &Subscriber) -> Option<Refusal> {
    let mut refused = None;
    wait_until("the request is answered", || {
        while let Some(event) = subscriber.try_event() {
            match event {
                SubscriberEvent::Refused(_, refusal) => {
                    refused = Some(refusal);
                    return true;
                }
                SubscriberEvent::Granted(_) => return true,
                SubscriberEvent::Publishers(_)
                | SubscriberEvent::NoSpare(_)
                | SubscriberEvent::Withdrawn(_)
                | SubscriberEvent::BestEffort(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_) => {}
                // An event of a later version.
                _ => {}
            }
        }
        false
    });
    refused
}

/// Publishes test cards over a thin link, takes the offer of the refusal and receives for 2 s. Returns the offer.
fn take_offer((width, height, hertz): (u32, u32, u32), bits: u64) -> Option<String> {
    let capacity = Capacity::from_bits_per_s(bits).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let mut card = TestCard::new(Size::new(width, height).unwrap()).unwrap();
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(f64::from(hertz));
    let camera = camera.picture_size(paceline::Size { width, height });
    let pictures: Vec<_> = (0..8).map(|n| card.draw_jpeg(n, 7, 80).unwrap()).collect();
    let most = pictures.iter().map(Vec::len).max().unwrap() as u64;
    let mut camera = camera.bytes_max(most + most / 4).declare().unwrap();
    let ask = || operator.subscriber("camera").within(Duration::from_millis(400)).queue(1_000);
    let first = ask().declare().unwrap();
    let refusal = answer(&first)?;
    println!("{width}x{height} at {hertz} Hz over {bits} bit/s: {}", refusal.offer);
    let offer = refusal.offer.flags().into_iter().next()?;
    drop(first);
    let mut taken = ask().offered(&refusal.offer).declare().unwrap();
    let refused = answer(&taken);
    assert!(refused.is_none(), "{offer} was offered: {}", refused.unwrap());
    at_rate(hertz, 2 * hertz, |n| {
        camera.put(pictures[n as usize % pictures.len()].clone()).unwrap();
    });
    std::thread::sleep(Duration::from_millis(600));
    let arrived = std::iter::from_fn(|| taken.try_recv()).count();
    let feedback = camera.feedback(SOON);
    let measured = feedback[0].measured.unwrap();
    let status = robot.status(SOON);
    let links = &status.iter().find(|node| node.name == "robot").unwrap().links;
    let dropped: u64 = links[0].streams.iter().map(|stream| stream.counters.dropped.total()).sum();
    assert!(arrived > 0, "{offer}");
    // The test reads the samples long after their arrival.
    let late = measured.late - measured.overdue;
    assert_eq!((dropped, late), (0, 0), "{offer}: {arrived} samples");
    Some(offer)
}

#[test]
fn a_rate_and_a_size_are_offered_together_and_kept() {
    let offer = take_offer((320, 240, 30), 350_000).unwrap();
    assert!(offer.starts_with("--size ") && offer.contains(" --max-hz "), "{offer}");
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn a_minute_of_random_offers_is_granted_and_kept() {
    let (mut random, mut taken) = (9_u64, 0);
    let mut next = |from: u64, to: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        from + (random >> 33) % (to - from)
    };
    while taken < 30 {
        let (part, hertz) = (u32::try_from(next(10, 24)).unwrap() * 16, next(5, 31));
        let form = (part, part / 4 * 3, u32::try_from(hertz).unwrap());
        taken += u32::from(take_offer(form, next(100_000, 2_000_000)).is_some());
    }
    println!("{taken} offers were granted and kept");
}
