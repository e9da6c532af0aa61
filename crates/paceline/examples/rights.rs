//! The cost of rights: per declaration, and for a node with many subscriptions.
//!
//! `cargo run --release --package paceline --example rights`

use paceline_proto::control::{Control, ControlOutput, HopInfo, PublisherSpec, SubscriptionSpec};
use paceline_proto::rights::{
    AccessPolicy, AccessRule, GrantedTags, PeerName, Quotas, Right, Rights, RuleRights, RuleUse,
    StreamQuality,
};
use paceline_proto::{NodeId, Pattern, Tag};
use paceline_sched::{Duration, Instant};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant as Clock;

fn rule(number: usize) -> RuleRights {
    let pattern = |text: String| Pattern::new(&text).into_iter().collect();
    let tags = GrantedTags {
        publish: pattern(format!("robot/{number}/**")),
        subscribe: pattern(format!("robot/{number}/camera/*")),
        ..GrantedTags::default()
    };
    let quotas = Quotas { max_millihertz: Some(60_000), ..Quotas::default() };
    RuleRights { tags, quotas, ..RuleRights::default() }
}

fn per_declaration(rules: usize) {
    let rights = Rights::of((0..rules).map(|number| Arc::new(rule(number))));
    let Ok(tag) = Tag::new(&format!("robot/{}/camera/left", rules - 1)) else { return };
    let asked = StreamQuality { millihertz: Some(30_000), ..StreamQuality::default() };
    let rounds = 200_000;
    let begun = Clock::now();
    for _ in 0..rounds {
        let mut used = RuleUse::default();
        let _ = black_box(rights.take((Right::Subscribe, &tag), &asked, &mut used));
    }
    let each = begun.elapsed().as_nanos() / rounds;
    println!("a declaration, {rules} rules: {each} ns");
}

fn publisher(number: usize) -> Option<PublisherSpec> {
    Some(PublisherSpec {
        period: Some(Duration::from_millis(20)),
        bytes_max: Some(100),
        envelope: None,
        ..PublisherSpec::new(Tag::new(&format!("robot/{number}/camera/left")).ok()?)
    })
}

/// Delivers the messages of one node to the other.
fn exchange(now: Instant, (from, id): (&mut Control, NodeId), to: &mut Control) -> Option<()> {
    while let Some(output) = from.poll_output() {
        if let ControlOutput::Send { message, .. } = output {
            to.handle_message(now, id, message).ok()?;
        }
    }
    Some(())
}

/// Returns the time of computing the streams of `count` subscriptions of a neighbour.
fn streams(count: usize, policy: Option<AccessPolicy>) -> Option<u128> {
    let (me, other) = (NodeId(1), NodeId(2));
    let now = Instant::from_millis(1);
    let mut here = Control::new(me, "here");
    let mut there = Control::new(other, "there");
    here.set_policy(now, policy);
    here.set_peer(now, other, PeerName::Certified("there".to_owned()));
    for (control, next) in [(&mut here, other), (&mut there, me)] {
        control.handle_hop_up(now, next, HopInfo::new("radio".to_owned(), None));
    }
    for number in 0..count {
        here.publish(now, publisher(number)?);
        let pattern = Pattern::new(&format!("robot/{number}/camera/left")).ok()?;
        there.subscribe(now, SubscriptionSpec::all_of(pattern));
    }
    for _ in 0..8 {
        exchange(now, (&mut here, me), &mut there)?;
        exchange(now, (&mut there, other), &mut here)?;
    }
    let mut best = u128::MAX;
    for number in 0..10 {
        let spec = publisher(count + number)?;
        here.publish(now, spec);
        let begun = Clock::now();
        while here.poll_output().is_some() {}
        best = best.min(begun.elapsed().as_micros());
    }
    Some(best)
}

fn main() {
    [1, 16, 64].into_iter().for_each(per_declaration);
    let rules =
        vec![AccessRule { peers: vec!["there".to_owned()], rights: Arc::new(RuleRights::all()) }];
    let policy = AccessPolicy { rules };
    let (without, with) = (streams(1_000, None), streams(1_000, Some(policy)));
    println!(
        "the streams of 1,000 subscriptions, without a policy: {without:?} us, with one: {with:?} us"
    );
}
