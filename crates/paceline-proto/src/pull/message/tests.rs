use super::*;
use crate::form::Rate;
use crate::pull::buffer::tests::rates;
use proptest::option;
use proptest::prelude::*;

fn publisher() -> impl Strategy<Value = PublisherId> {
    any::<(u64, u32)>().prop_map(|(node, index)| PublisherId { node: NodeId(node), index })
}

fn tag() -> impl Strategy<Value = Tag> {
    "[a-zö@]{1,9}(/[a-z0-9]{1,9}){0,4}".prop_map(|tag| Tag::new(&tag).unwrap())
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    any::<(u64, u64)>().prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn selection() -> impl Strategy<Value = Selection> {
    prop_oneof![
        (1..=65_536u32).prop_map(Selection::Newest),
        (1..=65_536u32).prop_map(Selection::Nth),
        range().prop_map(|(first, last)| Selection::Seq { first, last }),
        range().prop_map(|(from_ns, to_ns)| Selection::Time { from_ns, to_ns }),
    ]
}

fn making() -> impl Strategy<Value = Making> {
    let size = (1..=u32::MAX, 1..=u32::MAX).prop_map(|(width, height)| Size { width, height });
    let audio = (1..=u32::MAX, 1..=u8::MAX).prop_map(|(rate, channels)| Audio { rate, channels });
    (option::of(size), option::of(audio), any::<bool>()).prop_map(|(size, audio, coded)| Making {
        size,
        audio,
        coded,
    })
}

fn question() -> impl Strategy<Value = Question> {
    let after = option::of((publisher(), any::<u64>()));
    let after = after.prop_map(|after| after.map(|(publisher, seq)| Cursor { publisher, seq }));
    let find = (tag(), option::of(publisher()), selection(), rates(), after);
    let seqs = seqs();
    let next = prop::collection::vec(any::<u64>(), 0..=NEXT_MAX);
    prop_oneof![
        find.prop_map(|(tag, publisher, selection, rate, after)| {
            Question::Find(Find { tag, publisher, selection, rate, after })
        }),
        (any::<(u64, bool)>(), tag(), publisher(), making(), seqs, next).prop_map(
            |((pull, fresh), tag, publisher, making, seqs, next)| {
                Question::Fetch(Fetch { pull, tag, publisher, making, seqs, next, fresh })
            }
        ),
        any::<u64>().prop_map(|pull| Question::Done { pull }),
        (tag(), any::<u32>()).prop_map(|(tag, samples)| Question::Order { tag, samples }),
    ]
}

fn holding() -> impl Strategy<Value = Holding> {
    let kind = prop::sample::select(vec![Kind::Data, Kind::Picture, Kind::VideoI, Kind::VideoB]);
    let item = (any::<u64>(), any::<u64>(), any::<u32>(), kind);
    let items = prop::collection::vec(item, 0..30);
    let span = (range(), any::<(u64, u64)>());
    (publisher(), span, items).prop_map(|(publisher, (seqs, times), items)| {
        let row = |(seq, captured_ns, bytes, kind)| Held { seq, captured_ns, bytes, kind };
        let mut items: Vec<Held> = items.into_iter().map(row).collect();
        items.sort_by_key(|held| held.seq);
        items.dedup_by_key(|held| held.seq);
        let span = SampleSpan {
            oldest_seq: seqs.0,
            newest_seq: seqs.1,
            oldest_ns: times.0,
            newest_ns: times.1,
        };
        Holding { publisher, span, items }
    })
}

fn seqs() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 0..=SEQS_MAX)
}

fn answer() -> impl Strategy<Value = Answer> {
    let found = (prop::collection::vec(holding(), 0..6), any::<bool>());
    prop_oneof![
        3 => found.prop_map(|(mut holdings, more)| {
            holdings.sort_by_key(|holding| holding.publisher);
            holdings.dedup_by_key(|holding| holding.publisher);
            let more = more && !holdings.is_empty();
            Answer::Held(Found { holdings, more })
        }),
        1 => (seqs(), seqs(), "[a-zäöü ]{0,80}")
            .prop_map(|(missing, failed, why)| Answer::Fetching { missing, failed, why }),
        1 => "[a-zäöü ]{0,80}".prop_map(Answer::Refused),
        1 => Just(Answer::Ordered),
    ]
}

/// Returns the body after the topic.
fn body(question: &Question) -> Bytes {
    let Some((Topic::Pull, body)) = Topic::split(question.encode()) else { panic!("no pull") };
    body
}

proptest! {
    #[test]
    fn queries_round_trip(question in question(), cut in any::<prop::sample::Index>()) {
        let bytes = body(&question);
        prop_assert!(bytes.len() < crate::control::QUESTION_BYTES_MAX);
        prop_assert!(Question::decode(bytes.slice(..cut.index(bytes.len()))).is_err());
        prop_assert_eq!(Question::decode(bytes), Ok(question));
    }

    #[test]
    fn answers_round_trip(answer in answer(), cut in any::<prop::sample::Index>()) {
        let bytes = answer.encode();
        prop_assert!(Answer::decode(bytes.slice(..cut.index(bytes.len()))).is_err());
        prop_assert_eq!(Answer::decode(bytes), Ok(answer));
    }

    #[test]
    fn arbitrary_bytes_decode_uniquely_or_are_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..4,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let bytes = Bytes::from(bytes);
        if let Ok(question) = Question::decode(bytes.clone()) {
            prop_assert_eq!(body(&question), bytes.clone(), "{:?}", question);
        }
        if let Ok(answer) = Answer::decode(bytes.clone()) {
            prop_assert_eq!(answer.encode(), bytes, "{:?}", answer);
        }
    }

    #[test]
    fn a_changed_byte_decodes_differently_or_is_refused(
        question in question(),
        answer in answer(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = body(&question).to_vec();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let bytes = Bytes::from(bytes);
        if let Ok(question) = Question::decode(bytes.clone()) {
            prop_assert_eq!(body(&question), bytes);
        }
        let mut bytes = answer.encode().to_vec();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let bytes = Bytes::from(bytes);
        if let Ok(answer) = Answer::decode(bytes.clone()) {
            prop_assert_eq!(answer.encode(), bytes);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn queries_have_golden_bytes() {
    let publisher = PublisherId { node: NodeId(0x0102_0304_0506_0708), index: 5 };
    let tag = Tag::new("a/b").unwrap();
    let find = Find {
        tag: tag.clone(),
        publisher: None,
        selection: Selection::Newest(3),
        rate: Rate::ALL,
        after: None,
    };
    let page = Find {
        publisher: Some(publisher),
        selection: Selection::Seq { first: 200, last: 203 },
        rate: Rate::max(core::num::NonZeroU32::new(5_000).unwrap()),
        after: Some(Cursor { publisher, seq: 201 }),
        ..find.clone()
    };
    let making = Making::default();
    let fetch =
        Fetch { pull: 7, tag, publisher, making, seqs: vec![3, 200], next: vec![], fresh: false };
    let making = Making {
        size: Some(Size { width: 160, height: 120 }),
        audio: Some(Audio { rate: 8_000, channels: 1 }),
        coded: true,
    };
    let made = Fetch { making, seqs: vec![3], next: vec![200, 5], fresh: true, ..fetch.clone() };
    for (question, bytes) in [
        (Question::Find(find.clone()), "01000003612f62000300"),
        (
            Question::Find(page),
            "01000303612f6208070605040302010502c80103028827080706050403020105c901",
        ),
        (
            Question::Find(Find { selection: Selection::Time { from_ns: 1, to_ns: 3 }, ..find }),
            "01000003612f620301000000000000000200",
        ),
        (Question::Fetch(fetch), "01010703612f62080706050403020105 00 0203c801 00"),
        (Question::Fetch(made), "01010703612f62080706050403020105 0f a00178 c03e01 0103 02c80105"),
        (Question::Done { pull: 300 }, "0102ac02"),
        (Question::Order { tag: Tag::new("a/b").unwrap(), samples: 300 }, "0103 03612f62 ac02"),
    ] {
        assert_eq!(hex(&question.encode()), bytes.replace(' ', ""), "{question:?}");
    }
}

#[test]
fn answers_have_golden_bytes() {
    let publisher = PublisherId { node: NodeId(1), index: 2 };
    let held = |seq, captured_ns| Held { seq, captured_ns, bytes: 300, kind: Kind::VideoP };
    let span = SampleSpan { oldest_seq: 5, newest_seq: 9, oldest_ns: 1_000, newest_ns: 2_000 };
    let holding = Holding { publisher, span, items: vec![held(7, 1_064), held(9, 1_063)] };
    for (answer, bytes) in [
        (
            Answer::Held(Found { holdings: vec![holding], more: true }),
            "00 01 01 010000000000000002 05 04 e803000000000000 d007000000000000 02 \
             078001ac0205 0101ac0205",
        ),
        (Answer::Held(Found::default()), "000000"),
        (
            Answer::Fetching { missing: vec![1, 200], failed: vec![2], why: "no".into() },
            "010201c801 0102 026e6f",
        ),
        (Answer::Refused("no".into()), "02026e6f"),
        (Answer::Ordered, "03"),
    ] {
        let bytes = bytes.replace(' ', "");
        assert_eq!(hex(&answer.encode()), bytes, "{answer:?}");
        assert_eq!(Answer::decode(answer.encode()), Ok(answer));
    }
}

#[test]
fn items_beyond_a_bound_are_omitted_or_refused() {
    let tag = Tag::new("a").unwrap();
    let publisher = PublisherId { node: NodeId(1), index: 0 };
    let (making, all) = (Making::default(), (0..300).collect::<Vec<u64>>());
    let fetch =
        Fetch { pull: 0, tag, publisher, making, seqs: all.clone(), next: all, fresh: false };
    let Ok(Question::Fetch(Fetch { seqs, next, .. })) =
        Question::decode(body(&Question::Fetch(fetch)))
    else {
        panic!()
    };
    assert_eq!(seqs, (0..256).collect::<Vec<u64>>());
    assert_eq!(next, (0..32).collect::<Vec<u64>>());

    let reason = "ö".repeat(200);
    let Ok(Answer::Refused(reason)) = Answer::decode(Answer::Refused(reason).encode()) else {
        panic!()
    };
    assert_eq!(reason, "ö".repeat(127));

    let span = SampleSpan { oldest_seq: 0, newest_seq: 0, oldest_ns: 0, newest_ns: 0 };
    let row = |seq| Held { seq, captured_ns: 0, bytes: 0, kind: Kind::Data };
    let items = |count: u64| (0..count).map(row).collect();
    let holding = |index, count| Holding {
        publisher: PublisherId { node: NodeId(1), index },
        span,
        items: items(count),
    };
    let many = Found { holdings: vec![holding(0, 1_000), holding(1, 100)], more: false };
    let Ok(Answer::Held(page)) = Answer::decode(Answer::Held(many).encode()) else { panic!() };
    assert_eq!((page.len(), page.more), (PAGE_ITEMS, true));
    assert_eq!(page.next().unwrap().seq, 23);

    // One item more than the limit.
    let mut bytes = vec![HELD, 0, 2];
    put_holding(&mut bytes, &holding(0, PAGE_ITEMS as u64));
    put_holding(&mut bytes, &holding(1, 1));
    let got = Answer::decode(bytes.into());
    assert!(matches!(got, Err(WireError::TooLarge { field: "items", max: 0, .. })), "{got:?}");
    let mut bytes = vec![FETCHING];
    bytes.put_varint(SEQS_MAX as u64 + 1);
    assert!(matches!(Answer::decode(bytes.into()), Err(WireError::TooLarge { .. })));
}
