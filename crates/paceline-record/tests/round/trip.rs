//! Round trips: samples read back are identical, and so is a second recording of them.

use crate::support::{Owned, file, read, samples, some};
use paceline_record::Compression;
use proptest::prelude::*;

#[test]
fn samples_are_replayed_by_time() {
    let all = some(200);
    for compression in [Compression::Lz4, Compression::None] {
        let bytes = file(&all, 7, compression);
        assert_eq!(samples(&bytes), all);
        let (messages, end) = read(&bytes);
        assert!(end.is_none());
        assert_eq!(messages.len(), 200);
        assert_eq!(messages[0].channel.schema, "foxglove.CompressedImage");
        assert_eq!(messages[1].channel.message_encoding, "json");
    }
}

#[test]
fn late_samples_are_replayed_at_their_time() {
    let mut all = some(40);
    all[3].came_ns += 50_000_000;
    let sorted = all.clone();
    all.sort_by_key(|sample| sample.came_ns);
    assert_ne!(all, sorted);
    assert_eq!(samples(&file(&all, 5, Compression::Lz4)), sorted);
}

#[test]
fn attachments_stay_linked_to_their_samples() {
    let mut all = some(40);
    for (number, sample) in (0u8..).zip(&mut all) {
        sample.attachment = (number % 3 > 0).then(|| vec![number; 33]);
        // Equal times, so that each sample must find its own attachment.
        sample.captured_ns -= sample.captured_ns % 4_000_000;
    }
    let bytes = file(&all, 7, Compression::Lz4);
    let again = samples(&bytes);
    assert_eq!(again, all);
    let (messages, _) = read(&bytes);
    let (beside, plain): (Vec<_>, Vec<_>) =
        messages.iter().partition(|message| !message.channel.is_samples());
    assert_eq!((beside.len(), plain.len()), (26, 40));
    assert_eq!(beside[0].channel.topic, "robot/pose/@attachment");
    assert_eq!(beside[0].channel.message_encoding, "application/x-paceline-attachment");
    // A reader that does not know attachments sees an extra channel and loses nothing else.
    let judged = paceline_record::Judgement::of(&bytes[..]).unwrap();
    assert_eq!((judged.samples, judged.streams.len()), (40, 2));
    // An attachment without its sample belongs to no other sample.
    let mut attachments = paceline_record::Attachments::default();
    assert!(attachments.join(beside[0].clone()).is_none());
    let other = plain.iter().find(|m| m.channel.topic == "robot/pose" && m.sequence > 0);
    assert_eq!(attachments.join((**other.unwrap()).clone()).unwrap().1, None);
}

fn a_sample() -> impl Strategy<Value = Owned> {
    let encodings = prop::sample::select(vec![
        "image/jpeg",
        "image/png",
        "video/h264",
        "video/raw;format=rgb;width=2;height=2",
        "video/raw;format=i420;width=2;height=2",
        "audio/pcm;format=s16le;rate=48000;channels=2",
        "audio/pcmu;rate=8000;channels=1",
        "text/plain",
        "application/json",
        "application/octet-stream",
        "application/x-ulog;message=att",
        "application/cdr",
    ]);
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![1; 12]),
        Just(b"{\"a\":[1,2]}".to_vec()),
        Just(b"a line".to_vec()),
    ];
    let names = ("[a-z]{1,3}(/[a-z]{1,3})?", "[0-9a-f]{16}\\.[0-9]");
    let attachment = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    (names, any::<u32>(), encodings, payload, any::<u32>(), attachment).prop_map(
        |((tag, publisher), seq, encoding, payload, came, attachment)| Owned {
            tag,
            publisher,
            seq: u64::from(seq),
            encoding: encoding.to_owned(),
            captured_ns: 1_700_000_000_000_000_000,
            came_ns: 1_700_000_000_000_000_000 + u64::from(came),
            payload,
            attachment,
        },
    )
}

proptest! {
    /// Recording, replay and a second recording give the same samples and the same bytes.
    #[test]
    fn recording_a_replay_reproduces_the_recording(
        mut all in prop::collection::vec(a_sample(), 0..60),
        every in 1usize..20,
        packed in any::<bool>(),
    ) {
        for (number, sample) in (0u64..).zip(&mut all) {
            sample.captured_ns += number * 1_000;
        }
        let compression = if packed { Compression::Lz4 } else { Compression::None };
        let bytes = file(&all, every, compression);
        let again = samples(&bytes);
        prop_assert_eq!(&again, &all);
        prop_assert_eq!(file(&again, every, compression), bytes);
    }
}
