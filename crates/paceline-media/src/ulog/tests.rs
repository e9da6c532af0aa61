mod damaged;
mod writer;

use proptest::prelude::*;

use super::*;
use writer::{Writer, log};

/// Returns the approximate memory of a log's index, formats and topics in bytes. The module's
/// documentation states a bound for it.
fn held(log: &ULog) -> usize {
    let topics: usize = log.topics.iter().map(|t| 2 * t.name.len() + size_of::<ULogTopic>()).sum();
    log.index.len() * size_of::<Entry>() + topics + log.layouts.held()
}

fn refused(bytes: &[u8]) -> String {
    ULog::parse(bytes).unwrap_err().to_string()
}

fn warning(bytes: &[u8]) -> String {
    ULog::parse(bytes).unwrap().warning().unwrap_or_default().to_owned()
}

#[test]
fn a_log_gives_topics_messages_and_json() {
    let log = ULog::parse(&log()).unwrap();
    assert_eq!(log.warning(), None);
    let topics: Vec<_> = log
        .topics()
        .iter()
        .map(|t| (t.suffix(), t.name.as_str(), t.multi_id, t.messages, t.bytes_max, t.hz))
        .collect();
    assert_eq!(
        topics,
        [
            ("fast", "fast", 0, 100, 20, 250.0),
            ("slow/0", "slow", 0, 10, 14, 25.0),
            ("slow/1", "slow", 1, 10, 14, 25.0),
            ("nest", "nest", 0, 1, 28, 0.0),
        ]
    );
    let messages: Vec<_> = log.messages().collect();
    assert_eq!((messages.len(), log.messages().len()), (121, 121));
    let order: Vec<_> = messages.iter().map(|m| m.topic).take(5).collect();
    assert_eq!(order, [0, 1, 2, 0, 0]);
    assert_eq!(messages[1].time_us, 1_000_000, "the timestamp is not the first field");
    assert_eq!(
        log.to_json(&messages[0]).unwrap(),
        r#"{"timestamp":1000000,"rate":[0.0,null,-0.5]}"#
    );
    assert_eq!(
        log.to_json(&messages[2]).unwrap(),
        r#"{"id":2,"timestamp":1000000,"on":false,"text":"\"\n"}"#
    );
    assert_eq!(
        log.to_json(&messages[120]).unwrap(),
        r#"{"timestamp":1400000,"parts":[{"x":-1,"c":"a"},{"x":-32768,"c":"\\"}],"big":1e300}"#
    );
}

#[test]
fn json_of_every_basic_type_is_exact() {
    let mut writer = Writer::new();
    writer
        .format(
            "all:uint64_t timestamp;int8_t a;uint8_t b;int16_t c;uint16_t d;int32_t e;\
             uint32_t f;int64_t g;uint64_t h;float i;double j;bool k;char l;char[6] m;bool[2] n;",
        )
        .subscribe(9, "all", 3);
    let mut body = vec![0x80, 0xff, 0x00, 0x80, 0xff, 0xff];
    body.extend(i32::MIN.to_le_bytes());
    body.extend(u32::MAX.to_le_bytes());
    body.extend(i64::MIN.to_le_bytes());
    body.extend(u64::MAX.to_le_bytes());
    body.extend(0.1_f32.to_le_bytes());
    body.extend(f64::NEG_INFINITY.to_le_bytes());
    body.extend([2, b'\t', 0xff, 1, 0xc3, 0xa4, b'/', b'x', 0, 1]);
    writer.data(9, u64::MAX, &body);
    let log = ULog::parse(&writer.bytes).unwrap();
    assert_eq!(log.topics()[0].suffix(), "all", "a lone instance needs no number");
    let json = log.to_json(&log.messages().next().unwrap()).unwrap();
    assert_eq!(
        json,
        "{\"timestamp\":18446744073709551615,\"a\":-128,\"b\":255,\"c\":-32768,\"d\":65535,\
         \"e\":-2147483648,\"f\":4294967295,\"g\":-9223372036854775808,\
         \"h\":18446744073709551615,\"i\":0.1,\"j\":null,\"k\":true,\"l\":\"\\t\",\
         \"m\":\"\u{fffd}\\u0001\u{e4}/x\",\"n\":[false,true]}"
    );
}

#[test]
fn invalid_logs_are_refused() {
    let log = log();
    let begin = "ulog file at byte 0: it does not begin with a ulog header; pass the bytes";
    for bytes in [&b""[..], b"ULog", b"RIFF....WAVEfmt ", &log[1..]] {
        assert!(refused(bytes).starts_with(begin), "{bytes:?}");
    }
    for at in 0..7 {
        let mut wrong = log.clone();
        wrong[at] ^= 1;
        assert!(refused(&wrong).starts_with(begin), "{at}");
    }
    assert!(refused(&log[..15]).contains("at byte 15: the header is cut off"));
    assert_eq!(ULog::parse(&log[..16]).unwrap().topics().len(), 0);
    for (bit, known) in [(0, true), (1, false), (7, false)] {
        let mut writer = Writer::new();
        writer.flags(1 << bit, [0; 3]);
        assert_eq!(ULog::parse(&writer.bytes).is_ok(), known, "{bit}");
    }
    let mut writer = Writer::new();
    writer.record(b'B', &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert!(refused(&writer.bytes).contains("flags require unknown features"));
}

#[test]
fn every_truncation_gives_the_complete_part_and_a_warning() {
    let bytes = log();
    let whole = ULog::parse(&bytes).unwrap();
    let all: Vec<_> = whole.messages().collect();
    // The ends of records: only there may a cut have no warning.
    let mut ends = vec![16];
    while *ends.last().unwrap() < bytes.len() {
        let at = *ends.last().unwrap();
        ends.push(at + 3 + usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])));
    }
    for len in 16..bytes.len() {
        let log = ULog::parse(&bytes[..len]).unwrap();
        assert_eq!(log.warning().is_none(), ends.contains(&len), "{len}");
        let expected: Vec<_> = all.iter().take(log.messages().len()).map(|m| m.payload).collect();
        assert!(log.messages().map(|m| m.payload).eq(expected), "{len}");
    }
    // The last two records have 33 and 5 bytes.
    let cut = ULog::parse(&bytes[..bytes.len() - 6]).unwrap();
    let (at, len) = (bytes.len() - 38, bytes.len() - 6);
    assert_eq!(cut.messages().len(), 120);
    let expected = format!("ends at byte {at} of {len}: the record there is cut off");
    assert_eq!(cut.warning(), Some(expected.as_str()));
}

#[test]
fn reading_continues_behind_an_impossible_record() {
    type Damage = fn(&mut Writer) -> &mut Writer;
    let damages: [(Damage, &str); 17] = [
        (|w| w.raw(&[0, 0, 0, 0]), "a record has length 0"),
        (|w| w.raw(&[0xff, 0xff, b'D']), "a record is longer than the file"),
        (|w| w.record(b'D', &[0]), "a message is too short"),
        (|w| w.data(7, 1, &[]), "number 7 is not assigned to a topic"),
        (|w| w.data(0, 1, &[0; 11]), "message of \"fast\" has 19 bytes, must be 20 to 20"),
        (|w| w.data(0, 1, &[0; 13]), "has 21 bytes, must be 20 to 20"),
        (|w| w.data(3, 1, &[0; 19]), "has 27 bytes, must be 28 to 32"),
        (|w| w.record(b'A', &[0, 0]), "a subscription is too short"),
        (|w| w.subscribe(4, "a*b", 0), "a subscription names no format"),
        (|w| w.subscribe(4, "", 0), "a subscription names no format"),
        (|w| w.subscribe(0, "slow", 0), "number 0 is assigned to a second topic, \"slow\""),
        (|w| w.record(b'R', &[0, 0, 0]), "end of a subscription has a wrong length"),
        (|w| w.record(b'R', &[9, 0]), "number 9 is not assigned to a topic"),
        (|w| w.record(b'I', &[9, 0]), "key of an information or parameter is cut off"),
        (|w| w.record(b'S', &[0; 8]), "a synchronisation mark is wrong"),
        (|w| w.format("no colon"), "the format has no colon"),
        (|w| w.record(b'L', &[0; 8]), "a text is too short"),
    ];
    for (damage, part) in damages {
        let mut writer = Writer { bytes: log() };
        let at = writer.bytes.len();
        damage(&mut writer);
        let behind = writer.bytes.len();
        writer.data(0, 9, &[0; 12]);
        let log = ULog::parse(&writer.bytes).unwrap();
        let (places, bytes) = (log.damage().places, log.damage().bytes);
        assert_eq!((places, bytes), (1, (behind - at) as u64), "{part}");
        let (first, what) = log.damage().first.clone().unwrap();
        assert_eq!(first, at as u64, "{part}");
        assert!(what.contains(part), "{part}: {what}");
        assert_eq!((log.messages().len(), log.warning()), (122, None), "{part}");
        assert_eq!(log.messages().last().unwrap().time_us, 9, "{part}");
    }
}

#[test]
fn an_unreadable_topic_is_skipped() {
    let deep: Vec<_> = (0..9).map(|n| format!("d{n}:uint64_t timestamp;d{} x;", n + 1)).collect();
    let huge = "h:uint64_t timestamp;double[8192] x;";
    for (formats, part) in [
        (vec!["x:uint64_t timestamp;"], "format \"t\" is missing"),
        (vec!["t:uint32_t timestamp;"], "no field uint64_t timestamp"),
        (vec!["t:uint64_t[1] timestamp;"], "no field uint64_t timestamp"),
        (vec!["t:uint64_t timestamp;u x;"], "format \"u\" is missing"),
        (vec!["t:uint64_t timestamp;t x;"], "nested more than 8 deep, or in a circle"),
        (vec!["t:uint64_t timestamp;u x;", "u:t x;"], "nested more than 8 deep"),
        (vec!["t:uint64_t timestamp;float[0] x;"], "\"float[0] x\" is not a field"),
        (vec!["t:uint64_t timestamp;float[99999999999] x;"], "is not a field"),
        (vec!["t:uint64_t timestamp;float[65533] x;"], "more than 65533 bytes"),
        (vec!["t:uint64_t timestamp;float[3 x;"], "\"float[3 x\" is not a field"),
        (vec!["t:uint64_t timestamp;float;"], "\"float\" is not a field"),
        (vec!["t:uint64_t timestamp;float x\"y;"], "is not a field"),
        (vec!["t:"], "has no fields"),
        (vec![huge, "t:uint64_t timestamp;h[9] x;"], "more than 65533 bytes"),
    ] {
        let mut writer = Writer { bytes: log() };
        for format in formats {
            writer.format(format);
        }
        writer.subscribe(8, "t", 0).data(8, 1, &[1, 2, 3]).data(0, 9, &[0; 12]);
        let log = ULog::parse(&writer.bytes).unwrap();
        let warning = log.warning().unwrap();
        assert!(warning.starts_with("topic \"t\" is skipped: "), "{part}: {warning}");
        assert!(warning.contains(part), "{part}: {warning}");
        assert_eq!(log.messages().len(), 122, "the others continue: {part}");
    }
    let mut writer = Writer::new();
    for format in &deep {
        writer.format(format);
    }
    writer.format("d9:uint64_t timestamp;").subscribe(1, "d0", 0).subscribe(2, "d9", 0);
    assert!(warning(&writer.bytes).contains("nested more than 8 deep"));
    writer.format("t:uint64_t timestamp;").format("t:uint64_t timestamp;float x;");
    let twice = ULog::parse(&writer.bytes).unwrap();
    assert!(twice.damage().to_string().contains("format \"t\" is defined twice"));
}

#[test]
fn appended_data_belongs_to_the_log() {
    let mut writer = Writer::new();
    writer.flags(1, [0; 3]).format("t:uint64_t timestamp;").subscribe(0, "t", 0).data(0, 1, &[]);
    // The log was cut off in a record, then its crash was appended.
    writer.bytes.extend([200, 0, b'D', 1, 2, 3]);
    let offset = writer.bytes.len();
    writer.data(0, 2, &[]);
    let at = 16 + 3 + 16;
    writer.bytes[at..at + 8].copy_from_slice(&(offset as u64).to_le_bytes());
    let log = ULog::parse(&writer.bytes).unwrap();
    assert_eq!(log.messages().map(|m| m.time_us).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(log.warning(), None);
    // An offset beyond the file, or within a record, is ignored.
    for wrong in [u64::MAX, offset as u64 + 2] {
        writer.bytes[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
        let log = ULog::parse(&writer.bytes).unwrap();
        assert_eq!((log.messages().len(), log.damage().places), (2, 1), "{wrong}");
    }
}

#[test]
fn foreign_messages_and_endless_texts_are_refused() {
    let log = ULog::parse(&log()).unwrap();
    let message = log.messages().next().unwrap();
    let other = ULogMessage { topic: 77, ..message };
    let text = log.to_json(&other).unwrap_err().to_string();
    assert!(text.starts_with("ulog message of topic \"77\": no such topic"), "{text}");
    let short = ULogMessage { payload: &message.payload[1..], ..message };
    assert!(log.to_json(&short).unwrap_err().to_string().contains("length is not that"));

    let name = "n".repeat(128);
    let mut writer = Writer::new();
    writer
        .format(&format!("t:uint64_t timestamp;u[16000] {name};"))
        .format(&format!("u:char {name};"))
        .subscribe(0, "t", 0)
        .data(0, 1, &[b'x'; 16_000]);
    let log = ULog::parse(&writer.bytes).unwrap();
    let error = log.to_json(&log.messages().next().unwrap()).unwrap_err().to_string();
    assert!(error.contains("longer than 1 MiB"), "{error}");
}

#[test]
fn many_bad_topics_keep_the_warning_short() {
    let mut writer = Writer::new();
    for number in 0..1_000 {
        writer.subscribe(number, &format!("t{number}"), 0);
    }
    writer.bytes.push(1);
    let warning = warning(&writer.bytes);
    assert!(warning.len() < 1_000 && warning.contains("ends at byte"), "{warning}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_read_within_the_bound(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        header in any::<bool>(),
    ) {
        let bytes = if header { [Writer::new().bytes, bytes].concat() } else { bytes };
        if let Ok(log) = ULog::parse(&bytes) {
            prop_assert!(held(&log) <= 32 * bytes.len());
        }
    }

    #[test]
    fn any_damage_is_read_within_the_bound(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..9),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = log();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()).max(bytes.len() / 2));
        if let Ok(log) = ULog::parse(&bytes) {
            prop_assert!(held(&log) <= 32 * bytes.len());
            for message in log.messages() {
                prop_assert!(log.to_json(&message).is_ok_and(|json| json.len() < 2_000));
            }
        }
    }

    #[test]
    fn any_format_is_resolved_within_the_bound(
        formats in proptest::collection::vec("[ab]:((uint64_t timestamp|a|b|char|float)(\\[[0-9]{1,4}\\])?( [xy]{1,2})?;){0,5}", 0..9),
    ) {
        let mut writer = Writer::new();
        for format in &formats {
            writer.format(format);
        }
        writer.subscribe(0, "a", 0).subscribe(1, "b", 0);
        let log = ULog::parse(&writer.bytes).unwrap();
        prop_assert!(held(&log) <= 32 * writer.bytes.len());
    }
}

#[test]
fn nesting_depth_is_limited_in_any_definition_order() {
    let mut writer = Writer::new();
    writer.format("f0:uint64_t timestamp;char c;");
    for n in 1..60 {
        writer.format(&format!("f{n}:uint64_t timestamp;f{} a;", n - 1));
    }
    for n in 0..60 {
        writer.subscribe(n, &format!("f{n}"), 0);
    }
    writer.data(59, 1, &[0; 9]);
    assert!(warning(&writer.bytes).contains("nested more than 8 deep"));
}
