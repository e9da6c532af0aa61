//! The ULog reader on recordings of real flights, in the folder in `PACELINE_DATA`.
#![cfg(test)]

use std::path::Path;

use paceline_media::ulog::ULog;

/// Returns a recording; without one, prints a line and returns `None`.
#[expect(clippy::disallowed_methods, reason = "tests may look where recordings are, and read them")]
fn recording(test: &str, file: &str) -> Option<Vec<u8>> {
    let Ok(folder) = std::env::var("PACELINE_DATA") else {
        println!("skipped: {test} (PACELINE_DATA is not set)");
        return None;
    };
    let path = Path::new(&folder).join("telemetry").join(file);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Returns the topics with times that decrease somewhere, and those with times that never increase.
fn times(log: &ULog) -> (Vec<String>, Vec<String>) {
    let mut last = vec![None; log.topics().len()];
    let (mut falling, mut rising) = (vec![false; last.len()], vec![false; last.len()]);
    for message in log.messages() {
        let (before, topic) = (last[message.topic].replace(message.time_us), message.topic);
        falling[topic] |= before.is_some_and(|before| message.time_us < before);
        rising[topic] |= before.is_some_and(|before| message.time_us > before);
    }
    let named = |flags: &[bool], wanted: bool| {
        let topics = log.topics().iter().zip(flags).filter(|(_, flag)| **flag == wanted);
        topics.map(|(topic, _)| topic.suffix().to_owned()).collect()
    };
    (named(&falling, true), named(&rising, false))
}

/// Checks that every message is one JSON object that another parser accepts.
fn assert_json(log: &ULog) {
    for message in log.messages() {
        let json = log.to_json(&message).unwrap();
        let object: serde_json::Map<_, _> = serde_json::from_str(&json).unwrap();
        assert_eq!(object.get("timestamp").and_then(|time| time.as_u64()), Some(message.time_us));
        assert!(object.keys().all(|name| !name.starts_with("_padding")));
    }
}

#[test]
fn a_real_flight_has_the_figures_of_its_recording() {
    let Some(bytes) = recording("a_real_flight_has_the_figures", "px4_flight.ulg") else { return };
    let log = ULog::parse(&bytes).unwrap();
    assert_eq!(log.warning(), None);
    assert_eq!((log.topics().len(), log.messages().len()), (15, 64_542));
    let lengths = log.messages().map(|message| message.payload.len());
    assert_eq!((lengths.clone().min(), lengths.max()), (Some(9), Some(309)));
    assert_eq!(log.messages().map(|message| message.time_us).max(), Some(181_493_506));
    for (suffix, messages, hz) in [
        ("sensor_combined", 17_070, 247.8107),
        ("vehicle_attitude", 6_461, 93.7395),
        ("vehicle_status", 294, 4.2599),
        ("cpuload", 69, 0.9936),
    ] {
        let topic = log.topics().iter().find(|topic| topic.suffix() == suffix).unwrap();
        assert_eq!(topic.messages, messages, "{suffix}");
        assert!((topic.hz - hz).abs() < 1e-4, "{suffix}: {}", topic.hz);
    }
    let rates = log.topics().iter().map(|topic| topic.hz).filter(|hz| *hz > 0.0);
    assert!(rates.clone().all(|hz| (0.99..248.0).contains(&hz)) && rates.count() == 12);
    // Times never decrease; three topics of this flight have constant times.
    let still = ["ekf2_innovations", "commander_state", "sensor_preflight"];
    let (falling, mut unmoved) = times(&log);
    unmoved.sort();
    assert_eq!(
        (falling.len(), unmoved),
        (0, {
            let mut still = still.map(str::to_owned).to_vec();
            still.sort();
            still
        })
    );
    let attitude = log.topics().iter().position(|topic| topic.name == "vehicle_attitude");
    let first = log.messages().find(|message| Some(message.topic) == attitude).unwrap();
    assert_eq!(
        log.to_json(&first).unwrap(),
        "{\"timestamp\":112574307,\"rollspeed\":-0.00042592664,\"pitchspeed\":0.00047372002,\
         \"yawspeed\":0.0008371852,\"q\":[0.9545906,0.041478634,0.0481749,-0.29105952]}"
    );
    assert_json(&log);
}

#[test]
fn a_small_log_has_the_figures_of_its_recording() {
    let Some(bytes) = recording("a_small_log_has_the_figures", "px4_log_small.ulg") else { return };
    let log = ULog::parse(&bytes).unwrap();
    assert_eq!(log.warning(), None);
    assert_eq!((log.topics().len(), log.messages().len()), (70, 14_604));
    let lengths = log.messages().map(|message| message.payload.len());
    assert_eq!((lengths.clone().min(), lengths.max()), (Some(9), Some(344)));
    for (suffix, messages, hz) in [
        ("actuator_controls_0", 1_812, 278.6755),
        ("vehicle_angular_acceleration", 1_811, 285.7212),
        ("sensor_combined", 1_298, 199.6567),
    ] {
        let topic = log.topics().iter().find(|topic| topic.suffix() == suffix).unwrap();
        assert_eq!(topic.messages, messages, "{suffix}");
        assert!((topic.hz - hz).abs() < 1e-4, "{suffix}: {}", topic.hz);
    }
    let suffixes: Vec<_> = log.topics().iter().map(|topic| topic.suffix()).collect();
    for suffix in ["sensor_accel/0", "sensor_accel/1", "sensor_accel/2", "telemetry_status/1"] {
        assert!(suffixes.contains(&suffix), "{suffix}");
    }
    let mut distinct = suffixes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 70);
    assert_eq!(times(&log).0, Vec::<String>::new());
    assert_json(&log);
}

#[test]
fn a_truncated_flight_still_gives_its_beginning() {
    let Some(bytes) = recording("a_real_flight_cut_off", "px4_flight.ulg") else { return };
    let whole = ULog::parse(&bytes).unwrap();
    for len in [bytes.len() - 1, bytes.len() / 2, bytes.len() / 10] {
        let log = ULog::parse(&bytes[..len]).unwrap();
        assert!(log.warning().unwrap().contains("the record there is cut off"));
        let same = |(a, b): (paceline_media::ulog::ULogMessage<'_>, _)| a.payload == b;
        assert!(log.messages().zip(whole.messages().map(|m| m.payload)).all(same));
    }
}

/// The counts are those of pyulog 1.3.0, the reader of the format's authors, on the same damage.
#[test]
fn more_messages_survive_damage_than_in_the_reader_of_the_formats_authors() {
    let test = "more_messages_survive_damage_than_in_the_reader_of_the_formats_authors";
    for (file, recovered) in [
        ("px4_flight.ulg", [(2_026_682, 64_255), (1_351_121, 64_001), (3_040_023, 64_269)]),
        ("px4_log_small.ulg", [(460_815, 13_616), (307_210, 14_461), (691_221, 14_086)]),
    ] {
        let Some(bytes) = recording(test, file) else { return };
        let whole = ULog::parse(&bytes).unwrap().messages().len();
        for (at, theirs) in recovered {
            let mut damaged = bytes.clone();
            damaged[at..at + 512].fill(0);
            let log = ULog::parse(&damaged).unwrap();
            let ours = log.messages().len();
            println!("{file}, 512 zeros at byte {at}: {ours} of {whole} messages, pyulog {theirs}");
            assert!(ours >= theirs, "{file} at {at}: {ours} of {whole}");
            // A message has at least 13 bytes, and the damage has 512.
            assert!(ours + 512 / 13 + 2 >= whole, "{file} at {at}: {ours} of {whole}");
            assert!((1..=2).contains(&log.damage().places), "{}", log.damage());
        }
    }
}
