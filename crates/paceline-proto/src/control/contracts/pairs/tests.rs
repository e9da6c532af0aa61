//! Every transition of a pair, and random events compared with a naive model.

use super::*;
use crate::control::data::refusal::RefusalReason;
use crate::control::membership::blank::blank;
use crate::control::membership::registry::Registry;
use crate::ids::{PublisherId, SubscriptionId};
use paceline_admit::reserve::{NodeIndex, Request};
use proptest::prelude::*;

const ME: NodeId = NodeId(1);

fn key(index: u32) -> PairKey {
    (SubscriptionId { node: NodeId(2), index }, PublisherId { node: ME, index: 0 })
}

/// Returns a request whose label is its number.
fn request(number: u64) -> Request {
    Request {
        path: vec![NodeIndex(1), NodeIndex(2)],
        weights: vec![1],
        label: number.to_le_bytes().to_vec(),
        forward: None,
        backward: None,
        scaled: None,
        link: None,
        work: 0,
        idle: None,
    }
}

fn refusal() -> Refusal {
    blank(key(0), ME, &Registry::new(ME, "me".into()), RefusalReason::NoAnswer)
}

fn pause(is_reported: bool) -> Backoff {
    Backoff {
        refusal: is_reported.then(refusal),
        until: Instant::ZERO,
        again: Instant::ZERO,
        tries: 1,
        basis: Basis::numbered(0),
    }
}

/// Returns the name of a state, the number of the last request and the one that is reserved.
fn seen(state: &PairState) -> (&'static str, Option<u64>, Option<u64>) {
    let name = match state {
        PairState::Wanted => "wanted",
        PairState::Asking(_) => "asking",
        PairState::Granted(_) => "granted",
        PairState::Refused(_) => "refused",
        PairState::Idle => "idle",
    };
    let number = |asked: &Asked| {
        assert_eq!(asked.request, request(asked.basis.request.revision), "they belong together");
        asked.basis.request.revision
    };
    let asked = state.asked();
    let granted = asked.and_then(|it| it.granted.as_ref()).map(|(_, it)| it.request.revision);
    (name, asked.map(number), granted)
}

#[test]
fn a_request_is_answered_and_changed() {
    let mut pair = OwnPair::default();
    assert_eq!(seen(&pair.state), ("wanted", None, None));
    pair.state.ask(request(1), Basis::numbered(1));
    assert_eq!(seen(&pair.state), ("asking", Some(1), None));
    assert!(pair.state.grant() && pair.state.granted().is_some());
    assert_eq!(seen(&pair.state), ("granted", Some(1), Some(1)));
    pair.state.ask(request(2), Basis::numbered(2));
    assert_eq!(seen(&pair.state), ("asking", Some(2), Some(1)), "the earlier grant stays");
    assert!(pair.state.asked().unwrap().keeps_granted());
    pair.state.keep((request(1), Basis::numbered(1)), Instant::from_millis(7));
    assert_eq!(seen(&pair.state), ("granted", Some(1), Some(1)));
    assert_eq!(pair.asked().unwrap().retry_at, Instant::from_millis(7));
    pair.state.ask(request(3), Basis::numbered(3));
    pair.state.refuse(9);
    assert_eq!(seen(&pair.state), ("refused", Some(3), Some(1)));
    assert_eq!(pair.state.survey(), Some(9));
    assert_eq!(pair.give_up().unwrap().request.revision, 3);
    assert_eq!(seen(&pair.state), ("granted", Some(1), Some(1)));
    assert_eq!(pair.take_asked().unwrap().basis.request.revision, 1);
    assert_eq!(seen(&pair.state), ("wanted", None, None));
    assert!(pair.give_up().is_none() && !pair.state.grant());
}

#[test]
fn a_refused_pair_pauses_and_asks_again() {
    let (mut pairs, key) = (Pairs::default(), key(0));
    let state = |pairs: &Pairs| seen(&pairs.get(key).unwrap().state);
    pairs.entry(key).state.ask(request(1), Basis::numbered(1));
    pairs.entry(key).state.refuse(4);
    assert!(pairs.entry(key).give_up().is_some());
    assert_eq!(state(&pairs).0, "wanted", "no refusal is known yet");
    pairs.begin_pause(key, pause(false));
    assert_eq!((state(&pairs).0, pairs.paused(), pairs.refused), ("refused", 1, 0));
    assert!(pairs.report_pause(key, &refusal()) && !pairs.report_pause(key, &refusal()));
    assert_eq!((pairs.paused(), pairs.refused), (1, 1));
    pairs.entry(key).state.ask(request(1), Basis::numbered(1));
    assert_eq!((state(&pairs).0, pairs.pauses(key)), ("asking", true), "the refusal stays known");
    assert!(pairs.entry(key).take_asked().is_some());
    assert_eq!(state(&pairs).0, "refused");
    assert!(pairs.take_pause(key).is_some() && pairs.take_pause(key).is_none());
    assert_eq!((state(&pairs).0, pairs.paused(), pairs.refused), ("wanted", 0, 0));
}

#[test]
fn an_idle_pair_waits_for_a_sample() {
    let (mut pairs, key) = (Pairs::default(), key(0));
    pairs.idle(key);
    assert_eq!(seen(&pairs.get(key).unwrap().state).0, "idle");
    assert!(pairs.wake(key) && !pairs.wake(key) && pairs.is_awake(key));
    assert_eq!(seen(&pairs.get(key).unwrap().state).0, "wanted");
    pairs.entry(key).state.ask(request(1), Basis::numbered(1));
    pairs.end_idle(key);
    assert!(!pairs.is_awake(key));
    assert_eq!(seen(&pairs.get(key).unwrap().state).0, "asking");
    pairs.idle(key);
    assert_eq!(seen(&pairs.get(key).unwrap().state).0, "asking", "it is requested again");
}

#[test]
fn a_spare_takes_over_only_in_force_and_granted() {
    let (mut pairs, key) = (Pairs::default(), key(0));
    pairs.entry(key).state.ask(request(1), Basis::numbered(1));
    pairs.entry(key).state.grant();
    pairs.spare_entry(key).state.ask(request(2), Basis::numbered(2));
    pairs.spare_entry(key).in_force = true;
    assert!(pairs.entry(key).take_over().is_none(), "it is not granted");
    assert!(pairs.spare_entry(key).state.grant());
    pairs.spare_entry(key).in_force = false;
    assert!(pairs.entry(key).take_over().is_none());
    pairs.spare_entry(key).in_force = true;
    let lost = pairs.entry(key).take_over().unwrap();
    assert_eq!(seen(&lost), ("granted", Some(1), Some(1)));
    assert_eq!(seen(&pairs.get(key).unwrap().state), ("granted", Some(2), Some(2)));
    assert!(pairs.spare(key).unwrap().in_force && pairs.spare_asked(key).is_none());
}

#[test]
fn a_round_notes_ties_and_forgets_pairs_without_state() {
    let mut pairs = Pairs::default();
    let foreign = (key(5).0, PublisherId { node: NodeId(9), index: 0 });
    pairs.begin_round(ME, &BTreeSet::from([key(1), foreign]));
    assert!(pairs.is_incomplete(key(1)) && !pairs.is_incomplete(foreign));
    assert!(!pairs.follow(key(2), false) && pairs.get(key(2)).is_none());
    assert!(pairs.follow(key(2), true) && !pairs.follow(key(2), true));
    pairs.begin_round(ME, &BTreeSet::new());
    let left: Vec<PairKey> = pairs.iter().map(|(key, _)| key).collect();
    assert_eq!(left, [key(2)]);
    assert!(pairs.has_followed(key(2)) && pairs.follow(key(2), false));
    pairs.begin_round(ME, &BTreeSet::new());
    assert_eq!(pairs.iter().count(), 0);
}

/// A pair as separate facts.
#[derive(Clone, Debug, Default)]
struct Model {
    asked: Option<u64>,
    granted: Option<u64>,
    /// True if the last request has its answer.
    is_answered: bool,
    survey: Option<u64>,
    /// Whether a pause has a refusal.
    pause: Option<bool>,
    is_idle: bool,
    is_awake: bool,
}

impl Model {
    fn name(&self) -> &'static str {
        match (self.asked, self.survey, self.pause) {
            (Some(_), Some(_), _) => "refused",
            (Some(_), None, _) if self.is_answered => "granted",
            (Some(_), None, _) => "asking",
            (None, ..) if self.is_idle => "idle",
            (None, _, Some(_)) => "refused",
            (None, _, None) => "wanted",
        }
    }

    fn forget(&mut self) {
        (self.asked, self.granted, self.survey, self.is_answered) = (None, None, None, false);
    }

    fn give_up(&mut self) {
        match self.granted {
            Some(granted) => {
                (self.asked, self.survey, self.is_answered) = (Some(granted), None, true);
            }
            None => self.forget(),
        }
    }
}

/// Applies an event to a pair and to its model.
fn apply(pairs: &mut Pairs, model: &mut Model, key: PairKey, (event, number): (u8, u64)) {
    match event {
        0 => {
            pairs.entry(key).state.ask(request(number), Basis::numbered(number));
            (model.asked, model.is_answered, model.survey) = (Some(number), false, None);
            model.is_idle = false;
        }
        1 => {
            assert_eq!(pairs.entry(key).state.grant(), model.asked.is_some());
            (model.granted, model.survey) = (model.asked, None);
            model.is_answered = model.asked.is_some();
        }
        2 => {
            pairs.entry(key).state.refuse(number);
            model.survey = model.asked.map(|_| number);
        }
        3 => {
            let before = pairs.entry(key).give_up().map(|basis| basis.request.revision);
            assert_eq!(before, model.asked);
            model.give_up();
        }
        4 => {
            let before = pairs.entry(key).take_asked().map(|it| it.basis.request.revision);
            assert_eq!(before, model.asked);
            model.forget();
        }
        5 | 6 => {
            pairs.begin_pause(key, pause(event == 5));
            model.pause = Some(event == 5);
        }
        7 => {
            let before = pairs.take_pause(key).map(|pause| pause.refusal.is_some());
            assert_eq!(before, model.pause.take());
        }
        8 => {
            assert_eq!(pairs.report_pause(key, &refusal()), model.pause == Some(false));
            model.pause = model.pause.map(|_| true);
        }
        9 => {
            pairs.idle(key);
            model.is_idle |= model.asked.is_none() && model.pause.is_none();
        }
        10 => {
            assert_eq!(pairs.wake(key), !model.is_awake);
            (model.is_idle, model.is_awake) = (false, true);
        }
        11 => {
            pairs.end_idle(key);
            (model.is_idle, model.is_awake) = (false, false);
        }
        _ => pairs.begin_round(ME, &BTreeSet::new()),
    }
}

proptest! {
    #[test]
    fn pairs_follow_a_naive_model(
        events in proptest::collection::vec((0..3_u32, 0..13_u8, 1..6_u64), 1..60),
    ) {
        let mut pairs = Pairs::default();
        let mut models = vec![Model::default(); 3];
        for (index, event, number) in events {
            let place = usize::try_from(index).unwrap();
            apply(&mut pairs, &mut models[place], key(index), (event, number));
            for (index, model) in (0..).zip(&models) {
                let pair = pairs.get(key(index));
                let state = pair.map_or(("wanted", None, None), |pair| seen(&pair.state));
                prop_assert_eq!(state, (model.name(), model.asked, model.granted));
                prop_assert_eq!(pair.and_then(|pair| pair.state.survey()), model.survey);
                prop_assert_eq!(pairs.is_awake(key(index)), model.is_awake);
                let paused = pairs.pause(key(index)).map(|pause| pause.refusal.is_some());
                prop_assert_eq!(paused, model.pause);
            }
            let paused = models.iter().filter(|model| model.pause.is_some()).count();
            let refused = models.iter().filter(|model| model.pause == Some(true)).count();
            prop_assert_eq!((pairs.paused(), pairs.refused), (paused, refused));
        }
    }
}
