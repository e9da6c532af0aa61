use super::*;
use crate::Retransmit;
use crate::classes::Unguaranteed;
use crate::control::data::elastic::{Elastic, IMPORTANCE_MAX};
use crate::control::data::ids::{NAME_BYTES_MAX, PairKey};
use crate::control::data::refusal::{Offer, Refusal, RefusalReason};
use crate::control::data::spec::{HopInfo, IDLE_MIN, PublisherSpec, SubscriptionSpec};
use crate::control::membership::registry::{EntryKey, Mark, PUBLISHERS_MAX, Unread};
use crate::envelope::Envelope;
use crate::form::{Audio, Form, Proxy, Rate, ScaledForm, Size, Unscalable};
use crate::ids::{PublisherId, SubscriptionId};
use crate::medium::{Allotment, Allotments, Holding, Medium, MediumLink};
use crate::rights::{Lack, PeerName, Quota, Right};
use crate::sample::{Encoding, Kind};
use crate::tag::{Pattern, Tag};
use crate::video::Structure;
use core::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use paceline_sched::{Capacity, Duration, Late, LossTolerance};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::Arc;

fn nonzero() -> impl Strategy<Value = NonZeroU32> {
    (1..=u32::MAX).prop_map(|n| NonZeroU32::new(n).unwrap())
}

fn size() -> impl Strategy<Value = Size> {
    (1..=u32::MAX, 1..=u32::MAX).prop_map(|(width, height)| Size { width, height })
}

fn rate() -> impl Strategy<Value = Rate> {
    let both = (nonzero(), nonzero()).prop_map(|(n, limit)| Rate::every(n).at_most(limit));
    let max = nonzero().prop_map(Rate::max);
    prop_oneof![Just(Rate::ALL), nonzero().prop_map(Rate::every), max, both]
}

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn loss() -> impl Strategy<Value = LossTolerance> {
    prop_oneof![
        Just(LossTolerance::EDF),
        (0u32..100, 100u32..=LossTolerance::Y_MAX)
            .prop_map(|(x, y)| LossTolerance::new(x, y).unwrap()),
    ]
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        Just(Encoding::Bytes),
        Just(Encoding::Text),
        Just(Encoding::Json),
        Just(Encoding::Jpeg),
        "[a-z]{1,20}/[a-z]{1,20}".prop_map(|name| Encoding::Other(name.into())),
    ]
}

fn unscalable() -> impl Strategy<Value = Unscalable> {
    (0..8u8).prop_map(|code| Unscalable::from_code(code).unwrap())
}

fn publisher() -> impl Strategy<Value = PublisherSpec> {
    let tag = "[a-zö]{1,9}(/[a-z0-9]{1,9}){0,4}".prop_map(|tag| Tag::new(&tag).unwrap());
    let kind = prop::sample::select(vec![Kind::Data, Kind::State, Kind::Picture]);
    let late = prop::sample::select(vec![Late::Drop, Late::Send]);
    let loss = option::of((0..=9u32).prop_map(|x| LossTolerance::new(x, 9).unwrap()));
    let structure =
        (0..=1_000u16, 0..=u32::MAX, duration()).prop_map(|(references, keys, period)| Structure {
            references,
            keys: (keys > 0).then_some(keys),
            period,
        });
    let known = (option::of(unscalable()), option::of(structure));
    let video = (known, option::of(duration()), scaled(), option::of(duration()));
    let envelope =
        (1..=u64::MAX, 1..=u64::MAX, any::<bool>()).prop_map(|(burst, bytes_per_s, learned)| {
            match learned {
                true => Envelope::learned(burst, bytes_per_s),
                false => Envelope::declared(burst, bytes_per_s),
            }
        });
    let bytes = (option::of(any::<u64>()), option::of(envelope), any::<(bool, bool)>(), video);
    let rest = (option::of(duration()), option::of(size()), bytes, loss);
    (tag, kind, encoding(), late, rest).prop_map(
        |(
            tag,
            kind,
            encoding,
            late,
            (
                period,
                size,
                (
                    bytes_max,
                    envelope,
                    (waits, latch),
                    ((unscalable, structure), key_interval, scaled, within),
                ),
                loss,
            ),
        )| {
            PublisherSpec {
                tag,
                kind,
                encoding,
                period,
                late,
                loss,
                size,
                bytes_max,
                envelope,
                waits,
                latch,
                unscalable,
                key_interval,
                structure,
                scaled,
                within,
            }
        },
    )
}

/// Forms without a rate that convert samples, in order, each once.
fn scaled() -> impl Strategy<Value = Vec<ScaledForm>> {
    let one = (size(), coding(), any::<u64>(), duration()).prop_map(
        |(size, coding, bytes_max, takes)| {
            let (bitrate, quality) = coding;
            let form = Form { size: Some(size), bitrate, quality, ..Form::FULL };
            ScaledForm { form, bytes_max, takes, work: takes }
        },
    );
    prop::collection::vec(one, 0..4).prop_map(|mut forms| {
        forms.sort_by_key(|one| one.form);
        forms.dedup_by_key(|one| one.form);
        forms
    })
}

fn coding() -> impl Strategy<Value = (Option<NonZeroU32>, Option<NonZeroU8>)> {
    let bitrate = option::of((1..=u32::MAX).prop_map(|bits| NonZeroU32::new(bits).unwrap()));
    (bitrate, option::of((1..=100_u8).prop_map(|quality| NonZeroU8::new(quality).unwrap())))
}

fn subscription() -> impl Strategy<Value = SubscriptionSpec> {
    let pattern = "[a-z]{1,9}(/([a-z0-9]{1,9}|[*]|[*][*])){0,4}";
    let pattern = pattern.prop_map(|pattern| Pattern::new(&pattern).unwrap());
    let audio = (1..=u32::MAX, 1..=u8::MAX).prop_map(|(rate, channels)| Audio { rate, channels });
    let form = (rate(), option::of(size()), option::of(audio), coding());
    let form = form.prop_map(|(rate, size, audio, (bitrate, quality))| Form {
        rate,
        size,
        audio,
        bitrate,
        quality,
        via: None,
    });
    let named = "[a-zA-Z0-9 /:]{1,12}".prop_map(|name| Proxy::Node(name.as_str().into()));
    let proxy =
        prop_oneof![Just(Proxy::Publisher), Just(Proxy::Subscriber), Just(Proxy::Auto), named];
    let retransmits = prop::sample::select(Retransmit::ALL.to_vec());
    let idle = IDLE_MIN.as_nanos()..=u64::MAX;
    let idle = option::of(idle.prop_map(Duration::from_nanos));
    let with =
        option::of("[a-z]{1,9}(/[a-z0-9]{1,9}){0,4}".prop_map(|tag| Tag::new(&tag).unwrap()));
    let flags =
        (any::<[bool; 6]>(), retransmits, 0..1u64 << 62, option::of(any::<u32>()), (idle, with));
    let elastic = (0..=IMPORTANCE_MAX, option::of((elastic(), any::<Index>())));
    let flags = (flags, elastic);
    (pattern, form, option::of(duration()), option::of(loss()), proxy, flags).prop_map(
        |(
            pattern,
            form,
            within,
            loss,
            proxy,
            (
                (
                    [holds, local, or_stop, encrypted, proves, spare],
                    retransmit,
                    revision,
                    level,
                    (idle, with),
                ),
                (importance, elastic),
            ),
        )| {
            let (form, elastic) = on_ladder(form, elastic);
            SubscriptionSpec {
                pattern,
                form,
                within,
                loss,
                proxy,
                holds,
                local,
                retransmit,
                revision,
                or_stop,
                encrypted,
                level,
                idle,
                with,
                proves,
                spare,
                importance,
                elastic,
            }
        },
    )
}

/// Replaces the form of an elastic contract by a step of its ladder.
fn on_ladder(form: Form, elastic: Option<(Elastic, Index)>) -> (Form, Option<Box<Elastic>>) {
    let Some((elastic, at)) = elastic else { return (form, None) };
    let steps = elastic.steps();
    (steps[at.index(steps.len())], Some(Box::new(elastic)))
}

/// An elastic contract that may reduce each property.
fn elastic() -> impl Strategy<Value = Elastic> {
    let range = || option::of((2..=u32::MAX).prop_flat_map(|most| (Just(most), 1..most)));
    let sides = prop::collection::btree_set(1..=16_384_u32, 0..=1 + Elastic::SIZES_MAX);
    let all = (range(), range(), sides).prop_map(|(rates, bitrates, sides)| {
        let number = |it: Option<u32>| it.and_then(NonZeroU32::new);
        let ((rate, least_rate), (bits, least_bits)) = (rates.unzip(), bitrates.unzip());
        let sizes = sides.into_iter().rev().map(|side| Size { width: side, height: side });
        let mut sizes: Vec<Size> = sizes.collect();
        let size = (!sizes.is_empty()).then(|| sizes.remove(0));
        let rate = Rate { max_millihertz: number(rate), ..Rate::ALL };
        let most = Form { rate, size, bitrate: number(bits), ..Form::FULL };
        Elastic {
            min_millihertz: number(least_rate),
            min_bitrate: number(least_bits),
            sizes,
            ..Elastic::none(most)
        }
    });
    all.prop_filter("there is a second step", Elastic::is_valid)
}

fn hop() -> impl Strategy<Value = HopInfo> {
    ("[a-z0-9]{0,12}", option::of(1..=u64::MAX), any::<[bool; 5]>()).prop_map(
        |(link_name, bytes, [leaf, encrypted, own, realtime, multicast])| HopInfo {
            link_name,
            capacity: bytes.map(|bytes| Capacity::from_bytes_per_s(bytes).unwrap()),
            leaf,
            encrypted,
            own,
            realtime,
            multicast,
        },
    )
}

fn publisher_id() -> impl Strategy<Value = PublisherId> {
    any::<(u64, u32)>().prop_map(|(node, index)| PublisherId { node: NodeId(node), index })
}

fn subscription_id() -> impl Strategy<Value = SubscriptionId> {
    any::<(u64, u32)>().prop_map(|(node, index)| SubscriptionId { node: NodeId(node), index })
}

fn lack() -> impl Strategy<Value = Lack> {
    let right = (0..6u8).prop_map(|code| Right::from_code(code).unwrap());
    let quota = (0..5u8).prop_map(|code| Quota::from_code(code).unwrap());
    (right, option::of((quota, option::of(any::<u64>()), any::<u64>()))).prop_map(
        |(right, quota)| match quota {
            Some((quota, asked, limit)) => Lack::Quota { right, quota, asked, limit },
            None => Lack::Right(right),
        },
    )
}

fn offer() -> impl Strategy<Value = Offer> {
    let some = || option::of(1..=u64::MAX);
    let smaller = (
        option::of(size()),
        any::<bool>(),
        option::of((1..=u32::MAX).prop_map(|it| NonZeroU32::new(it).unwrap())),
    );
    let offer = (some(), smaller, some(), some(), option::of(loss()));
    offer.prop_map(|(max_millihertz, (size, together, bitrate), bytes, within, loss)| Offer {
        max_millihertz,
        size,
        together,
        bitrate,
        bytes,
        within: within.map(Duration::from_nanos),
        loss: loss.filter(|loss| loss.y() > 0),
    })
}

fn refusal() -> impl Strategy<Value = Refusal> {
    let reason = prop_oneof![
        Just(RefusalReason::Capacity),
        (size(), size())
            .prop_map(|(asked, source)| RefusalReason::SizeAboveSource { asked, source }),
        (size(), unscalable()).prop_map(|(asked, why)| RefusalReason::Unscalable { asked, why }),
        (unscalable(), 0..=1_000u16, any::<u64>()).prop_map(|(why, references, keys)| {
            RefusalReason::Unthinnable { why, references, keys: NonZeroU64::new(keys) }
        }),
        any::<(u64, u64, u64)>().prop_map(|(within, due, carried)| RefusalReason::Deadlines {
            within: Duration::from_nanos(within),
            due,
            carried,
        }),
        Just(RefusalReason::NoAnswer),
        Just(RefusalReason::Unencrypted),
        Just(RefusalReason::TooManySpares),
        any::<(u64, u64)>().prop_map(|(asked, least)| RefusalReason::BitRate { asked, least }),
        any::<(u64, u64)>()
            .prop_map(|(needed, available)| RefusalReason::Medium { needed, available }),
        any::<bool>().prop_map(|missing| RefusalReason::Opposite { missing }),
        any::<bool>().prop_map(|shared| RefusalReason::NoSecondPath { shared }),
        subscription_id().prop_map(|other| RefusalReason::SpareMeets { other }),
        (0..4u8).prop_map(|code| RefusalReason::NoGuarantee {
            why: Unguaranteed::from_code(code).unwrap(),
        }),
        (any::<u64>(), lack())
            .prop_map(|(of, lack)| RefusalReason::Rights { of: NodeId(of), lack }),
        any::<(u64, u64)>()
            .prop_map(|(needed, available)| RefusalReason::Processor { needed, available }),
        any::<(u64, u64)>()
            .prop_map(|(needed, available)| RefusalReason::Buffer { needed, available }),
        any::<(u64, u64)>()
            .prop_map(|(needed, available)| RefusalReason::HostBuffer { needed, available }),
        any::<(u64, u64)>().prop_map(|(takes, within)| RefusalReason::Delay {
            takes: Duration::from_nanos(takes),
            within: Duration::from_nanos(within),
        }),
    ];
    let names = (any::<u64>(), 0..1u64 << 62, "[a-z]{0,9}", "[a-z]{0,9}", "[a-z]{0,9}");
    (subscription_id(), publisher_id(), names, any::<(u64, u64, bool)>(), reason, offer()).prop_map(
        |(
            subscription,
            publisher,
            (node, revision, node_name, link, class),
            (needed, available, spare),
            reason,
            offer,
        )| {
            Refusal {
                subscription,
                publisher,
                revision,
                node: NodeId(node),
                node_name,
                link,
                class,
                needed_bytes_per_s: needed,
                available_bytes_per_s: available,
                reason,
                offer,
                spare,
            }
        },
    )
}

fn pair() -> impl Strategy<Value = PairKey> {
    (subscription_id(), publisher_id())
}

fn key() -> impl Strategy<Value = EntryKey> {
    prop_oneof![
        any::<u32>().prop_map(EntryKey::Publisher),
        any::<u32>().prop_map(EntryKey::Subscription),
        any::<u64>().prop_map(|node| EntryKey::Neighbour(NodeId(node))),
        pair().prop_map(EntryKey::Refusal),
        pair().prop_map(EntryKey::Mark),
        pair().prop_map(EntryKey::Place),
        any::<u32>().prop_map(EntryKey::Medium),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<u32>(), publisher()).prop_map(|(n, spec)| Change::Publish(n, Arc::new(spec))),
        (any::<u32>(), subscription()).prop_map(|(n, spec)| Change::Subscribe(n, spec)),
        (any::<u64>(), hop()).prop_map(|(node, hop)| Change::HopUp(NodeId(node), hop)),
        refusal().prop_map(Change::Refuse),
        (pair(), 0..1u64 << 62).prop_map(|(pair, revision)| {
            let mark = Mark::from_code((revision % 4) as u8).unwrap();
            Change::Mark(pair, revision, mark)
        }),
        (pair(), any::<u64>()).prop_map(|(pair, node)| Change::Place(pair, NodeId(node))),
        (0..1_000_u32, medium_link()).prop_map(|(n, link)| Change::Medium(n, Box::new(link))),
        key().prop_map(Change::Remove),
        key().prop_map(|key| Change::Unread(key, unread(key))),
    ]
}

/// A link on a shared medium, with or without the allotments of a manager.
fn medium_link() -> impl Strategy<Value = MediumLink> {
    let rate = || 0..1_u64 << 40;
    let holding = (any::<[u64; 2]>(), (rate(), rate(), rate()), 1..1_u64 << 40);
    let holding = holding.prop_map(|([manager, term], (holds, need, wants), most)| Holding {
        manager: NodeId(manager),
        term,
        seen: term / 2,
        holds,
        need,
        wants,
        most,
    });
    let allotment = (any::<(u64, u32)>(), (any::<u64>(), rate(), any::<bool>()));
    let allotments = prop::collection::btree_map(allotment.0, allotment.1, 0..5);
    let allotments = option::of((any::<u64>(), allotments));
    (holding, "[a-z]{1,20}", 64_000..1_u64 << 40, allotments).prop_map(
        |(holding, name, bits, allotments)| {
            let capacity = Capacity::from_bits_per_s(bits / 8 * 8).unwrap();
            let medium = Medium { name, capacity, access: Duration::from_micros(bits % 10_000) };
            let allotments = allotments.map(|(term, links)| {
                let links = links.into_iter().map(|((node, link), (number, bits, forced))| {
                    ((NodeId(node), link), Allotment { number, bits, forced })
                });
                Allotments { term, links: links.collect() }
            });
            MediumLink { medium, link: "radio".into(), holding, allotments }
        },
    )
}

/// An entry that no node can read, and the first field that it refuses.
fn unread(key: EntryKey) -> Unread {
    let field = match key {
        EntryKey::Publisher(_) => "tag",
        EntryKey::Subscription(_) => "pattern",
        EntryKey::Neighbour(_) => "link name",
        EntryKey::Refusal(_) => return garbage(WireError::Invalid("refusal reason")),
        EntryKey::Mark(_) => "revision",
        EntryKey::Place(_) => "place",
        EntryKey::Medium(_) => "medium",
    };
    garbage(WireError::Truncated(field))
}

const fn garbage(error: WireError) -> Unread {
    Unread { bytes: Bytes::from_static(&[0xff, 0xff, 0xff]), error }
}

/// Builds a record by changes of an empty one.
fn snapshot() -> impl Strategy<Value = Message> {
    (any::<u64>(), "[a-zA-Zäöü ]{0,20}", prop::collection::vec(change(), 0..20)).prop_map(
        |(node, name, changes)| {
            let mut record = Record { version: 1, name, ..Record::default() };
            for change in changes {
                record.apply(NodeId(node), change).unwrap();
            }
            Message::Snapshot { node: NodeId(node), record }
        },
    )
}

fn errand() -> impl Strategy<Value = Errand> {
    let who = prop_oneof![
        Just(None),
        Just(Some(PeerName::Unknown)),
        "[a-z ]{0,9}".prop_map(|name| Some(PeerName::User(name))),
        "[a-z ]{0,9}".prop_map(|name| Some(PeerName::Certified(name))),
    ];
    (any::<(u64, u64, u64, u8)>(), who).prop_map(|((request, from, to, ttl), who)| Errand {
        request,
        from: NodeId(from),
        to: NodeId(to),
        ttl,
        who,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let versions = prop::collection::vec((any::<u64>(), 0..=VERSION_MAX), 0..20);
    prop_oneof![
        versions.prop_map(|all| {
            Message::Digest(
                all.into_iter().map(|(node, version)| (NodeId(node), version)).collect(),
            )
        }),
        any::<u64>().prop_map(|node| Message::Need(NodeId(node))),
        (any::<u64>(), 0..=VERSION_MAX, change()).prop_map(|(node, version, change)| {
            Message::Delta { node: NodeId(node), version, change }
        }),
        snapshot(),
        (errand(), prop::collection::vec(any::<u8>(), 0..50))
            .prop_map(|(errand, body)| Message::Question(errand, body.into())),
        (errand(), prop::collection::vec(any::<u8>(), 0..50))
            .prop_map(|(errand, body)| Message::Answer(errand, body.into())),
    ]
}

proptest! {
    #[test]
    fn control_messages_round_trip(message in message()) {
        prop_assert_eq!(Message::decode(message.encode()), Ok(message));
    }

    #[test]
    fn an_entry_that_cannot_be_read_hides_no_other(
        changes in prop::collection::vec(change(), 0..20),
        damaged in prop::collection::vec(key(), 1..9),
    ) {
        let node = NodeId(7);
        let mut whole = Record { version: 1, ..Record::default() };
        changes.into_iter().for_each(|change| whole.apply(node, change).unwrap());
        let mut sent = whole.clone();
        for &key in &damaged {
            sent.apply(node, Change::Unread(key, unread(key))).unwrap();
            whole.apply(node, Change::Remove(key)).unwrap();
        }
        let bytes = Message::Snapshot { node, record: sent.clone() }.encode();
        let Ok(Message::Snapshot { record, .. }) = Message::decode(bytes.clone()) else {
            panic!("refused");
        };
        prop_assert_eq!(&*record.publishers, &*whole.publishers);
        prop_assert_eq!(&*record.subscriptions, &*whole.subscriptions);
        prop_assert_eq!(&*record.neighbours, &*whole.neighbours);
        prop_assert_eq!(&*record.refusals, &*whole.refusals);
        prop_assert_eq!(&*record.marks, &*whole.marks);
        prop_assert_eq!(&*record.places, &*whole.places);
        let found: Vec<EntryKey> = record.unread().map(|(key, _)| key).collect();
        prop_assert!(damaged.iter().all(|key| found.contains(key)));
        let passed_on = Message::Snapshot { node, record }.encode();
        prop_assert_eq!(passed_on, bytes, "nodes behind get the entries unchanged");
    }

    #[test]
    fn no_prefix_of_a_message_decodes(message in message(), cut in any::<Index>()) {
        let bytes = message.encode();
        let cut = cut.index(bytes.len());
        prop_assert!(Message::decode(bytes.slice(..cut)).is_err());
    }

    #[test]
    fn arbitrary_bytes_decode_to_a_message_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..8) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let bytes = Bytes::from(bytes);
        if let Ok(message) = Message::decode(bytes.clone()) {
            prop_assert_eq!(message.encode(), bytes, "a message has one form only");
        }
    }

    #[test]
    fn a_changed_byte_decodes_to_another_message_or_an_error(message in message(), at in any::<Index>(), byte in any::<u8>()) {
        let mut bytes = message.encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let bytes = Bytes::from(bytes);
        if let Ok(message) = Message::decode(bytes.clone()) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn excessive_lengths_are_rejected_before_allocation() {
    let mut digest = vec![DIGEST];
    digest.put_varint(NODES_MAX as u64 + 1);
    let got = Message::decode(digest.into());
    assert!(matches!(got, Err(WireError::TooLarge { field: "digest nodes", .. })));

    let mut snapshot = vec![SNAPSHOT];
    snapshot.put_u64(1);
    snapshot.put_varint(1);
    snapshot.put_text("");
    let mut many = snapshot.clone();
    many.put_varint(PUBLISHERS_MAX as u64);
    assert_eq!(Message::decode(many.into()), Err(WireError::Truncated("publisher")));
    snapshot.put_varint(PUBLISHERS_MAX as u64 + 1);
    let got = Message::decode(snapshot.into());
    assert!(matches!(got, Err(WireError::TooLarge { field: "publishers", .. })));

    let mut name = vec![SNAPSHOT];
    name.put_u64(1);
    name.put_varint(1);
    name.put_text(&"x".repeat(NAME_BYTES_MAX + 1));
    let got = Message::decode(name.into());
    assert!(matches!(got, Err(WireError::TooLarge { field: "name", .. })));
}

#[test]
fn messages_are_compact() {
    let spec = PublisherSpec {
        tag: Tag::new("robot/camera").unwrap(),
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        period: Some(Duration::from_nanos(33_333_333)),
        late: Late::Drop,
        loss: None,
        size: Some(Size { width: 1_920, height: 1_080 }),
        bytes_max: Some(200_000),
        envelope: None,
        waits: false,
        latch: false,
        unscalable: None,
        key_interval: None,
        structure: None,
        scaled: Vec::new(),
        within: None,
    };
    let change = Change::Publish(3, Arc::new(spec));
    let delta = Message::Delta { node: NodeId(u64::MAX), version: 1_000, change };
    assert_eq!(delta.encode().len(), 41);
    let digest = Message::Digest((0..10).map(|node| (NodeId(node), 1_000)).collect());
    assert_eq!(digest.encode().len(), 102);
}

#[test]
fn a_reservation_follows_the_type_byte_verbatim() {
    let key = reserve::Key { origin: reserve::NodeIndex(2), number: 300 };
    let name = reserve::Name { key, stamp: reserve::Stamp { epoch: 1, seq: 5 } };
    let message = Message::Reserve(Box::new(reserve::ReserveMessage::Close(name)));
    let bytes = message.encode();
    assert_eq!(&bytes[..], [7, 3, 2, 0xac, 2, 1, 5]);
    assert_eq!(Message::decode(bytes.clone()), Ok(message));
    for len in 1..bytes.len() {
        let cut = Message::decode(bytes.slice(..len));
        assert_eq!(cut, Err(WireError::Invalid("reservation")));
    }
}

/// Returns the change of publisher 0 with this body.
fn announced(body: &[u8]) -> Result<Change, WireError> {
    let mut bytes = vec![DELTA];
    bytes.put_u64(1);
    bytes.put_varint(1);
    bytes.put_bytes(&[0, 0]);
    bytes.put_varint(body.len() as u64);
    bytes.put_bytes(body);
    let message = Message::decode(bytes.into())?;
    let Message::Delta { change, .. } = message else { panic!("{message:?}") };
    Ok(change)
}

#[test]
fn unknown_flags_of_publishers_and_learned_traffic_without_figures_are_refused() {
    let spec = Arc::new(PublisherSpec::new(Tag::new("a").unwrap()));
    assert_eq!(announced(&[1, b'a', 0, 0, 0]), Ok(Change::Publish(0, spec)));
    for flags in [&[0x80, 0x80, 1][..], &[0x80, 0x04]] {
        let body = [&[1, b'a'], flags, &[0, 0]].concat();
        let Ok(Change::Unread(EntryKey::Publisher(0), Unread { bytes, error })) = announced(&body)
        else {
            panic!("{flags:x?}");
        };
        assert_eq!(bytes, body);
        assert!(error.to_string().contains("publisher flags"), "{error}");
    }
}

#[test]
fn a_rate_of_zero_concerns_one_entry() {
    let with = |burst, rate| announced(&[1, b'a', 0x80, 2, 0, 0, burst, rate]);
    assert!(matches!(with(1, 1), Ok(Change::Publish(..))));
    for (burst, rate, field) in [(0, 1, "burst"), (1, 0, "mean rate")] {
        let Ok(Change::Unread(_, unread)) = with(burst, rate) else { panic!("{field}") };
        assert_eq!(unread.error, WireError::Invalid(field));
    }
}

#[test]
fn a_second_form_of_an_encoding_is_refused() {
    let named = |name: &str| {
        let mut body = vec![1, b'a', 0, 0, 255];
        body.put_text(name);
        announced(&body)
    };
    assert!(matches!(named("image/png"), Ok(Change::Publish(..))));
    for name in ["", "text/plain", "application/octet-stream", "image/jpeg", "zenoh/bytes"] {
        assert!(matches!(named(name), Ok(Change::Unread(..))), "{name}");
        let encoding = Encoding::Other(name.into());
        let spec = PublisherSpec { encoding, ..PublisherSpec::new(Tag::new("a").unwrap()) };
        let change = Change::Publish(0, Arc::new(spec));
        let sent = Message::Delta { node: NodeId(1), version: 1, change }.encode();
        let Ok(Message::Delta { change: Change::Publish(_, spec), .. }) = Message::decode(sent)
        else {
            panic!("{name}");
        };
        assert_eq!(spec.encoding, Encoding::new(name), "the writer uses the code");
    }
}

/// Golden bytes. A change here requires a new version of the format.
#[test]
fn places_of_proxies_have_fixed_bytes() {
    let pattern = Pattern::new("a").unwrap();
    let asks = |proxy| SubscriptionSpec { proxy, ..SubscriptionSpec::all_of(pattern.clone()) };
    let (node, version) = (NodeId(1), 2);
    let hex = |change: Change| -> String {
        let bytes = Message::Delta { node, version, change }.encode();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let asked = |proxy| hex(Change::Subscribe(3, asks(proxy)));
    assert_eq!(asked(Proxy::Auto), "030100000000000000020203060161".to_owned() + "80801000");
    assert_eq!(
        asked(Proxy::Node("mast".into())),
        "0301000000000000000202030a0161".to_owned() + "808010046d617374"
    );
    let of = SubscriptionId { node: NodeId(7), index: 4 };
    let by = PublisherId { node: NodeId(1), index: 5 };
    assert_eq!(
        hex(Change::Place((of, by), NodeId(9))),
        "030100000000000000020a07000000000000000401000000000000000508".to_owned()
            + "0900000000000000"
    );
    assert_eq!(
        hex(Change::Remove(EntryKey::Place((of, by)))),
        "03010000000000000002".to_owned() + "0b0700000000000000040100000000000000" + "05"
    );
}

/// Golden bytes. A change here requires a new version of the format.
#[test]
fn an_idle_time_and_marks_have_fixed_bytes() {
    let pattern = Pattern::new("a").unwrap();
    let idle = Some(Duration::from_secs(1));
    let spec = SubscriptionSpec { idle, ..SubscriptionSpec::all_of(pattern) };
    let (node, version) = (NodeId(1), 2);
    let with = Some(Tag::new("b").unwrap());
    let tied = SubscriptionSpec { with, idle: None, ..spec.clone() };
    let hex = |change: Change| -> String {
        let bytes = Message::Delta { node, version, change }.encode();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!(hex(Change::Subscribe(3, spec)), "0301000000000000000202030a01618080028094ebdc03");
    assert_eq!(
        hex(Change::Subscribe(3, tied)),
        "0301000000000000000202030701618080".to_owned() + "040162"
    );
    let of = SubscriptionId { node: NodeId(7), index: 4 };
    let by = PublisherId { node: NodeId(1), index: 5 };
    assert_eq!(
        hex(Change::Mark((of, by), 6, Mark::Idle)),
        "0301000000000000000208070000000000000004010000000000000005020600"
    );
    assert!(hex(Change::Mark((of, by), 6, Mark::Reserved)).ends_with("0601"));
    assert!(hex(Change::Mark((of, by), 6, Mark::Refused)).ends_with("0602"));
    assert_eq!(
        hex(Change::Remove(EntryKey::Mark((of, by)))),
        "0301000000000000000209070000000000000004010000000000000005"
    );
}
