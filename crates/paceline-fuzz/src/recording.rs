//! Fuzz body for MCAP recordings, by Paceline and by other programs.

use paceline_record::{
    About, Compression, Judgement, McapReader, Message, Order, Ordered, RecordedSample, Recording,
    ReplayTimeline, Survey,
};

/// Messages read of one file, since a small file may decompress to many.
const MESSAGES_MAX: usize = 2_000;

/// Checks that the messages of a file extend those of its first half, and that they can be recorded again.
///
/// The second pass removes the checksums of chunks first. Otherwise damaged input would never get past them.
pub fn recording(data: &[u8]) {
    check(data);
    check(&without_checksums(data));
}

fn check(data: &[u8]) {
    let all = messages(data);
    let half = messages(data.get(..data.len() / 2).unwrap_or_default());
    let Ok(survey) = Survey::of(data, Order::Published, |_| {}) else {
        assert!(all.is_empty() && Judgement::of(data).is_err());
        return;
    };
    if survey.damage.is_empty() {
        for (message, before) in all.iter().zip(&half) {
            assert_eq!(message.data, before.data, "trailing bytes change nothing");
        }
    }
    let counted: u64 = survey.lanes.values().map(|lane| lane.messages).sum();
    assert!(counted >= all.len() as u64 && survey.whole <= data.len() as u64);
    let judgement = Judgement::of(data).unwrap();
    let others = survey.lanes.values().filter(|lane| !lane.is_samples());
    assert_eq!(judgement.samples + others.map(|lane| lane.messages).sum::<u64>(), counted);
    if survey.end.is_none() && counted < MESSAGES_MAX as u64 {
        check_order(data, counted);
    }
    again(&survey, &all);
}

/// Checks that reading in time order returns every message once.
fn check_order(data: &[u8], counted: u64) {
    let timeline = ReplayTimeline::new(Order::Published);
    let mut ordered = Ordered::new(McapReader::new(data).unwrap(), timeline);
    let (mut total, mut back, mut before) = (0, 0, 0);
    while let Some((time, _)) = ordered.next_message().unwrap() {
        total += 1;
        back += u64::from(time < before);
        before = before.max(time);
    }
    assert_eq!((total, back), (counted, ordered.out_of_order()));
}

/// Checks that recording the messages again preserves their payloads.
fn again(survey: &Survey, all: &[Message]) {
    let mut recording = Recording::new(Compression::Lz4, "again");
    let mut payloads = Vec::new();
    // Both recordings must fit into the limit on messages.
    let few = all.len() < MESSAGES_MAX / 2;
    for message in all {
        let lane = &survey.lanes[&message.id];
        let Ok(payload) = lane.body.payload(&message.data) else { continue };
        let sample = RecordedSample {
            tag: &message.channel.topic,
            publisher: "",
            seq: u64::from(message.sequence),
            encoding: &lane.encoding,
            captured_ns: message.publish_time,
            came_ns: message.log_time,
            payload,
            attachment: (few && message.sequence.is_multiple_of(3)).then_some(b"beside"),
        };
        recording.sample(&sample, About::default).unwrap();
        payloads.push(payload);
    }
    let bytes = recording.finish();
    let mut read = messages(&bytes);
    read.retain(|message| message.channel.is_samples());
    assert_eq!(read.len(), payloads.len());
    let survey = Survey::of(&bytes[..], Order::Came, |_| {}).unwrap();
    assert!(survey.end.is_none(), "{:?}", survey.end);
    for (message, payload) in read.iter().zip(payloads) {
        let lane = &survey.lanes[&message.id];
        assert_eq!(lane.body.payload(&message.data), Ok(payload));
    }
}

fn messages(data: &[u8]) -> Vec<Message> {
    let Ok(mut reader) = McapReader::new(data) else { return Vec::new() };
    let mut all = Vec::new();
    while let Ok(Some(message)) = reader.next_message() {
        all.push(message);
        if all.len() >= MESSAGES_MAX {
            break;
        }
    }
    all
}

/// Returns the same records with the checksum of each chunk set to 0, which means none.
fn without_checksums(data: &[u8]) -> Vec<u8> {
    const CHUNK: u8 = 6;
    let mut out = data.to_vec();
    let mut at = 8usize;
    while let Some(head) = out.get(at..).and_then(|rest| rest.first_chunk::<9>()).copied() {
        let length = head.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if head[0] == CHUNK
            && let Some(checksum) = out.get_mut(at + 9 + 24..at + 9 + 28)
        {
            checksum.fill(0);
        }
        let next =
            usize::try_from(length).ok().and_then(|length| at.checked_add(9 + length.min(1 << 40)));
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    out
}
