//! Refusals: contracts that cannot be met, and invalid requests.

use crate::sums;
use crate::support::{SOON, free_endpoint, pair, wait_until};
use paceline::class::{CapacityError, ClassesError, LinkClass};
use paceline::contract::RefusalReason;
use paceline::{
    Capacity, LinkConfig, Medium, Node, OpenError, PublishError, SubscribeError, SubscriberEvent,
};
use std::time::Duration;

#[test]
fn a_contract_above_the_capacity_is_refused_with_numbers_and_others_continue() {
    let thin = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(thin));
    let lidar = robot.publisher("lidar").hz(20.0).bytes_max(20_000);
    let _lidar = lidar.declare().unwrap();
    let mut pose = robot.publisher("pose").hz(10.0).declare().unwrap();
    let within = Duration::from_millis(100);
    let lidars = operator.subscriber("lidar").within(within).declare().unwrap();
    let poses = operator.subscriber("pose").within(within);
    let mut poses = poses.declare().unwrap();
    assert!(pose.wait_matching(SOON));
    let mut refused = None;
    wait_until("the lidar is refused", || {
        while let Some(event) = lidars.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = event {
                refused = Some(refusal);
            }
        }
        refused.is_some()
    });
    let refusal = refused.unwrap();
    assert_eq!((refusal.link.as_str(), refusal.reason), ("radio", RefusalReason::Capacity));
    assert!(refusal.needed_bytes_per_s > refusal.available_bytes_per_s);
    println!("{refusal}");
    pose.put("here").unwrap();
    assert_eq!(&poses.recv_timeout(SOON).unwrap().payload[..], b"here");
    // A smaller request fits; one of these samples takes 190 ms here.
    let within = Duration::from_millis(300);
    let fewer = operator.subscriber("lidar").within(within).every(8);
    let fewer = fewer.declare().unwrap();
    wait_until(
        "a lower rate is granted",
        || matches!(fewer.try_event(), Some(SubscriberEvent::Publishers(p)) if p.len() == 1),
    );
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_new_capacity_reverses_grants_and_refusals() {
    let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
    let (robot, operator) = pair(|link| link.capacity(bits(1_000_000)));
    let lidar = robot.publisher("lidar").hz(20.0).bytes_max(20_000);
    let _lidar = lidar.declare().unwrap();
    let within = Duration::from_millis(100);
    let lidars = operator.subscriber("lidar").within(within).declare().unwrap();
    let refused = || matches!(lidars.try_event(), Some(SubscriberEvent::Refused(..)));
    wait_until("1 Mbit/s refuses it", refused);
    robot.set_capacity("radio", bits(10_000_000)).unwrap();
    let granted =
        || matches!(lidars.try_event(), Some(SubscriberEvent::Publishers(p)) if p.len() == 1);
    wait_until("10 Mbit/s grants it", granted);
    let status = robot.status(SOON);
    let link = &status.iter().find(|node| node.name == "robot").unwrap().links[0];
    assert_eq!(link.capacity_bits_per_s, Some(10_000_000));
    robot.set_capacity("radio", bits(1_000_000)).unwrap();
    wait_until("1 Mbit/s refuses it again", refused);
}

#[test]
fn a_capacity_can_change_only_on_links_that_have_one() {
    let (robot, _operator) = pair(|link| link);
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let error = robot.set_capacity("satellite", capacity).unwrap_err();
    assert_eq!(error, CapacityError::UnknownLink("satellite".to_owned()));
    let error = robot.set_capacity("radio", capacity).unwrap_err();
    assert_eq!(error, CapacityError::NoCapacity("radio".to_owned()));
    let again = robot.clone();
    robot.close();
    assert_eq!(again.set_capacity("radio", capacity), Err(CapacityError::Closed));
}

#[test]
fn the_capacity_of_a_medium_follows_that_of_a_link_only_if_it_is_not_given() {
    let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
    for (follows, medium) in [(false, 1_875_000), (true, 937_500)] {
        let (robot, _operator) = pair(|link| {
            let link = link.capacity(bits(2_000_000)).medium(Medium::new("air", bits(2_000_000)));
            if follows { link.medium_follows_capacity() } else { link }
        });
        let capacity = || {
            let status = robot.status(SOON);
            let link = status.iter().find(|node| node.name == "robot")?.links.first()?;
            Some((link.medium.as_ref()?.allottable_bits_per_s, link.capacity_bits_per_s))
        };
        wait_until("it has a medium", || capacity() == Some((1_875_000, Some(2_000_000))));
        robot.set_capacity("radio", bits(1_000_000)).unwrap();
        wait_until("it follows", || capacity() == Some((medium, Some(1_000_000))));
        robot.set_capacity("radio", bits(3_000_000)).unwrap();
        let most = if follows { 3_000_000 } else { 2_000_000 };
        wait_until("the medium bounds it", || capacity().is_some_and(|it| it.1 == Some(most)));
        let low = robot.set_capacity("radio", bits(9_600)).err().map(|it| it.to_string());
        let error =
            "link 'radio': its medium 'air' needs a capacity of at least 64 kbit/s, not 9.6";
        assert_eq!(low.is_some_and(|it| it.starts_with(error)), follows);
        let video = LinkClass { name: "video".to_owned(), ..LinkClass::default() };
        let error = robot.set_classes("radio", vec![video]).unwrap_err();
        let (link, medium) = ("radio".to_owned(), "air".to_owned());
        assert_eq!(error, ClassesError::Medium { link, medium });
    }
}

#[test]
fn a_size_above_the_source_is_refused() {
    let (robot, operator) = pair(|link| link);
    let camera = robot.publisher("camera").encoding(paceline::Encoding::Jpeg);
    let camera = camera.picture_size(paceline::Size { width: 320, height: 240 });
    let _camera = camera.declare().unwrap();
    let large = operator.subscriber("camera").size(640, 480).declare().unwrap();
    wait_until("the size is refused", || {
        matches!(large.try_event(), Some(SubscriberEvent::Refused(_, refusal))
            if matches!(refusal.reason, RefusalReason::SizeAboveSource { .. })
                && refusal.to_string().contains("640x480"))
    });
}

#[test]
fn invalid_requests_are_refused_at_once() {
    let (node, _other) = pair(|link| link);
    let publish = |tag| node.publisher(tag);
    assert!(matches!(publish("a/*").declare(), Err(PublishError::Tag(_))));
    assert!(matches!(publish("").declare(), Err(PublishError::Tag(_))));
    assert!(matches!(publish("a").hz(0.0).declare(), Err(PublishError::Rate(_))));
    assert!(matches!(publish("a").hz(1e-300).declare(), Err(PublishError::Rate(_))));
    assert!(matches!(publish("a").hz(f64::NAN).declare(), Err(PublishError::Rate(_))));
    let zero = publish("a").period(Duration::ZERO).declare();
    assert!(matches!(zero, Err(PublishError::Contract(_))));
    let ask = || node.subscriber("a/**");
    for (wrong, text) in [
        (ask().every(0), "every 0: must be from 1 to"),
        (ask().max_hz(0.0), "rate 0 Hz: must be from 0.001 to 1,000,000 Hz, such as 10"),
        (ask().max_hz(-1.0), "rate -1 Hz"),
        (ask().max_hz(0.000_1), "rate 0.0001 Hz"),
        (ask().size(0, 10), "size 0x10: each side must be from 1 to 16384 pixels"),
        (ask().loss(3, 2), "loss tolerance 3/2"),
        (ask().within(Duration::ZERO), "within 0"),
        (ask().queue(0), "queue of 0 samples: must be from 1 to 65,536, such as 64"),
        (node.subscriber("@a"), "pattern '@a' begins with '@'"),
        // Later values do not hide the first wrong one.
        (ask().every(0).queue(0).size(10, 10), "every 0"),
    ] {
        let checked = wrong.check().unwrap_err().to_string();
        let declared = wrong.declare().err().unwrap().to_string();
        assert_eq!(checked, declared);
        assert!(declared.contains(text), "{declared}");
    }
    assert!(matches!(ask().every(0).declare(), Err(SubscribeError::EveryZero)));
    assert!(Capacity::from_bits_per_s(0).is_err());
    let mut publisher = node.publisher("a").declare().unwrap();
    let large = publisher.put(vec![0; (64 << 20) + 1]);
    assert!(matches!(large, Err(PublishError::TooLarge { .. })), "{large:?}");
    let again = node.clone();
    node.close();
    assert!(matches!(publisher.put("x"), Err(PublishError::Closed)));
    assert!(matches!(again.publisher("b").declare(), Err(PublishError::Closed)));
    assert!(again.status(SOON).is_empty());
}

#[test]
fn links_that_cannot_be_opened_report_a_fix() {
    let open = |link: LinkConfig| Node::builder().isolated().link(link).open().err().unwrap();
    let none = open(LinkConfig::new("radio")).to_string();
    assert!(none.contains("'radio'") && none.contains("listen"), "{none}");
    let everyone = open(LinkConfig::new("radio").listen("tcp/0.0.0.0:7600")).to_string();
    assert!(everyone.contains("insecure") && everyone.contains("quic"), "{everyone}");
    let endpoint = free_endpoint();
    let _taken = std::net::TcpListener::bind(endpoint.trim_start_matches("tcp/")).unwrap();
    let taken = open(LinkConfig::new("radio").listen(&endpoint));
    assert!(matches!(taken, OpenError::Transport { .. }) && taken.to_string().contains(&endpoint));
    println!("{taken}");
    let link = || LinkConfig::new("l").connect(&endpoint);
    let many = (0..=Node::LINKS_MAX).fold(Node::builder().isolated(), |node, _| node.link(link()));
    assert!(matches!(many.open(), Err(OpenError::TooManyLinks(17))));
}
