//! Checks of a run from one file.

use crate::support::some;
use paceline_record::{
    About, AgeQuantiles, Asked, Compression, DecisionCounts, DecisionJudgement, DeliveryStatistics,
    Judgement, RecordedEvent, RecordedOffer, Recording, Verdict,
};
use std::collections::BTreeMap;

fn asked(loss: Option<&str>) -> Asked {
    Asked {
        form: "all".to_owned(),
        within_us: Some(200_000),
        loss: loss.map(str::to_owned),
        ..Asked::default()
    }
}

fn delivered(tag: &str, late: u64, missing: u64, beyond: Option<u64>) -> RecordedEvent {
    RecordedEvent::Delivered(DeliveryStatistics {
        tag: tag.to_owned(),
        publisher: "0000000000000001.0".to_owned(),
        samples: 10,
        late,
        missing: Some(missing),
        beyond,
        age_us: AgeQuantiles { p50: 900, p99: 2_000, max: 3_000 },
        ..DeliveryStatistics::default()
    })
}

fn judge(asked: Asked, events: &[RecordedEvent], cut: bool) -> Judgement {
    let mut recording = Recording::new(Compression::Lz4, "test");
    let begin = RecordedEvent::Begin {
        version: "0".to_owned(),
        node: "1".to_owned(),
        name: "lab".to_owned(),
        patterns: vec!["robot/**".to_owned()],
        asked,
    };
    recording.event(&begin, 1).expect("JSON");
    for sample in some(20) {
        recording.sample(&sample.sample(), About::default).expect("few channels");
    }
    for event in events {
        recording.event(event, 2).expect("JSON");
    }
    recording.flush();
    let mut bytes = recording.take();
    if !cut {
        bytes.extend(recording.finish());
    }
    Judgement::of(&bytes[..]).expect("a file")
}

fn verdicts(judgement: &Judgement) -> Vec<(&str, Verdict)> {
    judgement.streams.iter().map(|stream| (stream.tag.as_str(), stream.verdict)).collect()
}

#[test]
fn late_or_missing_samples_beyond_the_tolerance_break_the_contract() {
    let both = |late, missing, beyond| {
        [
            delivered("robot/camera", late, missing, beyond),
            delivered("robot/pose", 0, 0, beyond.map(|_| 0)),
        ]
    };
    use Verdict::{BestEffort, Broken, Kept, Unknown};
    let of = |asked: Asked, events: &[RecordedEvent]| {
        let judgement = judge(asked, events, false);
        judgement.streams.iter().map(|stream| stream.verdict).collect::<Vec<_>>()
    };
    assert_eq!(of(asked(None), &both(0, 0, None)), [Kept, Kept]);
    assert_eq!(of(asked(None), &both(1, 0, None)), [Broken, Kept]);
    assert_eq!(of(asked(None), &both(0, 1, None)), [Broken, Kept]);
    assert_eq!(of(asked(Some("1/10")), &both(1, 1, Some(0))), [Kept, Kept]);
    assert_eq!(of(asked(Some("1/10")), &both(1, 1, Some(1))), [Broken, Kept]);
    assert_eq!(of(Asked::default(), &both(9, 9, None)), [BestEffort, BestEffort]);
    assert_eq!(of(asked(None), &[]), [Unknown, Unknown]);
    // With a requested rate the number of missing samples is unknown.
    let mut some = both(0, 0, None);
    if let RecordedEvent::Delivered(delivered) = &mut some[0] {
        delivered.missing = None;
    }
    assert_eq!(of(asked(None), &some), [Kept, Kept]);
    let late = BTreeMap::from([("deadline_missed".to_owned(), 1)]);
    let dropped = [&some[..], &[RecordedEvent::Dropped { dropped: late }]].concat();
    assert_eq!(of(asked(None), &dropped), [Unknown, Kept]);
}

#[test]
fn decisions_on_commands_are_summed() {
    let counts = DecisionCounts { released: 90, stale: 4, silences: 2, unlisted: 1 };
    let publisher = || "0000000000000001.0".to_owned();
    let (tag, silent_us) = ("arm".to_owned(), 70_000);
    let events = [
        RecordedEvent::Silent { tag: tag.clone(), publisher: publisher(), seq: 7 },
        RecordedEvent::Resumed { tag: tag.clone(), publisher: publisher(), seq: 9, silent_us },
        RecordedEvent::Resumed { tag, publisher: publisher(), seq: 12, silent_us: 1 },
        RecordedEvent::Decisions(counts),
    ];
    let fresh = Asked { fresh_us: Some(100_000), ..asked(None) };
    let judged = DecisionJudgement {
        limit_us: 100_000,
        released: 90,
        stale: 4,
        silences: 2,
        longest_silence_us: 70_000,
    };
    assert_eq!(judge(fresh, &events, false).decisions, Some(judged));
    assert_eq!(judge(asked(None), &events, false).decisions, None);
}

#[test]
fn refusals_drops_and_the_end_are_reported_also_for_a_truncated_file() {
    let refused = RecordedEvent::Refused {
        tag: "robot/lidar".to_owned(),
        publisher: "0000000000000001.7".to_owned(),
        reason: "link 'radio' can't carry it".to_owned(),
        offer: RecordedOffer { max_hz: Some(2.0), ..RecordedOffer::default() },
    };
    let link = RecordedEvent::Link {
        tag: "robot/camera".to_owned(),
        publisher: "0000000000000001.0".to_owned(),
        node: "robot".to_owned(),
        link: "radio".to_owned(),
        offered: 12,
        sent: 10,
        late: 0,
        violations: 0,
        dropped: BTreeMap::from([("queue_full".to_owned(), 2)]),
    };
    let events = [delivered("robot/camera", 0, 2, None), refused, link];
    let judgement = judge(asked(None), &events, true);
    assert_eq!(
        verdicts(&judgement),
        [
            ("robot/camera", Verdict::Broken),
            ("robot/lidar", Verdict::Refused),
            ("robot/pose", Verdict::Unknown)
        ]
    );
    let camera = &judgement.streams[0];
    assert_eq!((camera.samples, camera.bytes, camera.rate_hz), (10, 3_000, 500.0));
    assert_eq!(camera.dropped_on_links, BTreeMap::from([("queue_full".to_owned(), 2)]));
    assert_eq!(judgement.streams[1].refused.as_deref(), Some("link 'radio' can't carry it"));
    assert_eq!((judgement.samples, judgement.recorder.as_deref()), (20, Some("lab")));
    assert!(
        judgement
            .cut
            .as_deref()
            .is_some_and(|cut| cut.starts_with("is cut off: it is complete up to"))
    );
    assert_eq!(judgement.ended, None);
}
