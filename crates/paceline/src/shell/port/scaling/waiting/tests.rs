use super::*;
use Kind::{VideoB as B, VideoI as I, VideoP as P};

fn sample(seq: u64, kind: Kind, bytes: usize) -> RawSample {
    RawSample { seq, kind, payload: vec![0; bytes].into(), ..RawSample::default() }
}

/// Returns the sequence numbers that the worker receives, and the losses of output 0 by reason.
fn rest(mut waiting: Waiting) -> (Vec<u64>, Vec<(DropReason, u64)>) {
    let mut seqs = Vec::new();
    let mut lost = Lost::new();
    loop {
        let (work, more) = waiting.next();
        more.into_iter().for_each(|(key, samples)| *lost.entry(key).or_default() += samples);
        match work {
            Some(Work::Sample(job)) => seqs.push(job.sample.seq),
            Some(_) => {}
            None => break,
        }
    }
    (seqs, lost.into_iter().map(|((_, reason), samples)| (reason, samples)).collect())
}

#[test]
fn the_newest_picture_stays_queued() {
    let mut waiting = Waiting::new(Rule::NewestOne);
    for seq in 0..5 {
        assert!(waiting.push(sample(seq, Kind::Picture, 9), 0, false));
        assert!(waiting.push(sample(seq, Kind::Picture, 9), 1, false), "of another output");
        assert!(waiting.would_displace() && !waiting.is_full());
    }
    assert_eq!(waiting.lost.len(), 2, "{:?}", waiting.lost);
    let (seqs, lost) = rest(waiting);
    assert_eq!((seqs, lost[0]), (vec![4], (DropReason::ScalerBusy, 4)));
}

#[test]
fn the_oldest_sound_block_is_dropped_first() {
    let mut waiting = Waiting::new(Rule::NewestMany);
    for seq in 0..70 {
        assert!(waiting.push(sample(seq, Kind::Audio, 9), 0, false));
    }
    assert!(waiting.is_full());
    let (seqs, lost) = rest(waiting);
    assert_eq!((seqs[0], seqs.len()), (6, 64));
    assert_eq!(lost, [(DropReason::ScalerBusy, 6)]);
    let mut waiting = Waiting::new(Rule::NewestMany);
    for seq in 0..5 {
        waiting.push(sample(seq, Kind::Audio, 5 << 20), 0, false);
    }
    assert_eq!(rest(waiting).0, [2, 3, 4], "16 MiB");
}

#[test]
fn video_begins_with_an_independent_picture() {
    let mut waiting = Waiting::new(Rule::WholeVideo);
    for (seq, kind, taken) in [(0, P, false), (1, B, false), (2, I, true), (3, P, true)] {
        assert_eq!(waiting.push(sample(seq, kind, 9), 0, false), taken);
    }
    let (seqs, lost) = rest(waiting);
    assert_eq!((seqs, lost), (vec![2, 3], vec![(DropReason::Undecodable, 2)]));
}

#[test]
fn video_drops_everything_up_to_the_next_independent_picture() {
    let mut waiting = Waiting::new(Rule::WholeVideo);
    for seq in 0..64 {
        let kind = if seq % 40 == 0 { I } else { P };
        assert!(waiting.push(sample(seq, kind, 9), 0, false));
    }
    assert!(waiting.is_full());
    // The second such picture is queued already.
    assert!(waiting.push(sample(64, P, 9), 0, false));
    let (seqs, lost) = rest(waiting);
    assert_eq!(seqs, (40..=64).collect::<Vec<_>>());
    assert_eq!(lost, [(DropReason::ScalerBusy, 1), (DropReason::Undecodable, 39)]);
}

#[test]
fn video_without_an_independent_picture_waits_for_one() {
    let mut waiting = Waiting::new(Rule::WholeVideo);
    for seq in 0..64 {
        assert!(waiting.push(sample(seq, if seq == 0 { I } else { P }, 9), 0, false));
    }
    assert!(!waiting.push(sample(64, P, 9), 0, false) && !waiting.push(sample(65, B, 9), 0, false));
    assert!(waiting.push(sample(66, I, 9), 0, false) && waiting.push(sample(67, P, 9), 0, false));
    let (seqs, lost) = rest(waiting);
    assert_eq!(seqs, [66, 67]);
    assert_eq!(lost, [(DropReason::ScalerBusy, 1), (DropReason::Undecodable, 65)]);
    let mut waiting = Waiting::new(Rule::WholeVideo);
    for seq in 0..100 {
        assert!(waiting.push(sample(seq, I, 5 << 20), 0, false));
    }
    assert_eq!(rest(waiting).0, [97, 98, 99], "16 MiB of independent pictures");
}

#[test]
fn a_sample_at_the_worker_is_not_taken_twice() {
    let mut waiting = Waiting::new(Rule::WholeVideo);
    assert!(waiting.push(sample(0, I, 9), 0, false) && waiting.begin() && !waiting.begin());
    assert!(!waiting.has_begun(0), "an output that opens now receives it");
    assert!(matches!(waiting.next(), (Some(Work::Sample(_)), _)));
    assert!(waiting.has_begun(0) && !waiting.has_begun(1));
    assert!(waiting.push(sample(0, I, 9), 1, false), "it is for all outputs");
    assert!(!waiting.goes_on());
}
