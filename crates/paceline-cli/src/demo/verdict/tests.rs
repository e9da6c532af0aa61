use super::super::line::StreamLine;
use super::*;

/// Returns the reports of a run in which every request is met.
pub(crate) fn good() -> State {
    let mut state = State::default();
    for (index, row) in ROWS.iter().enumerate() {
        let measured = Measured {
            seconds: 10.0,
            delivered: u64::from(row.hz) * 10,
            rate_hz: f64::from(row.hz),
            p50_us: 1_234,
            p99_us: 4_567,
            max_us: 8_000,
            ..Measured::default()
        };
        state.take(Event::Line(Box::new(Line::Row(RowLine {
            row: index,
            delivered: 1_000,
            size: row.size.map(|size| (size.width, size.height)),
            second: measured,
            whole: measured,
            ..RowLine::default()
        }))));
    }
    state.take(Event::Line(Box::new(Line::Robot(RobotLine {
        publishers: vec![PublisherLine {
            tag: "robot/camera".to_owned(),
            published: 360,
            rate_hz: 30.0,
        }],
        links: vec![LinkLine {
            name: "thin".to_owned(),
            capacity_bits_per_s: Some(2_000_000),
            use_bits_per_s: Some(500_000),
            round_trip_us: 200,
            wire_bytes: 700_000,
            streams: vec![StreamLine {
                tag: Some("robot/camera".to_owned()),
                form: "5 Hz at 160x120".to_owned(),
                offered: 60,
                sent: 58,
                late: 0,
                violations: 0,
                dropped: [("superseded".to_owned(), 2)].into(),
            }],
        }],
    }))));
    state
}

#[test]
fn a_served_subscriber_passes() {
    let state = good();
    assert!(state.all_begun() && state.silent().is_empty());
    assert!(state.summary().ok);
    assert!(State::default().silent().len() == 4 && !State::default().summary().ok);
}

#[test]
fn each_failing_is_named() {
    let mut state = good();
    state.rows[2].whole.rate_hz = 4.2;
    state.rows[2].size = Some((640, 480));
    state.rows[3].whole.beyond = 2;
    state.rows[1].refused.push("link 'lan' can't carry it".to_owned());
    let summary = state.summary();
    assert!(!summary.ok);
    assert!(summary.rows[0].ok == Some(true) && summary.rows[2].ok == Some(false));
    assert_eq!(summary.rows[1].why, ["refused: link 'lan' can't carry it"]);
    assert_eq!(summary.rows[2].why, ["4.20 Hz, requested 5 ± 0.5", "640x480, requested 160x120"]);
    assert_eq!(summary.rows[3].why, ["2 windows of 100 samples had more than 5 late or lost"]);
}

#[test]
fn drops_of_the_link_count_for_the_row_with_that_form() {
    let state = good();
    let rows = state.summary().rows;
    assert_eq!(rows[2].dropped.get("superseded"), Some(&2));
    assert!(rows[0].dropped.is_empty() && rows[3].dropped.is_empty());
}

#[test]
fn the_schema_is_stable() {
    let state = good();
    let line = serde_json::to_value(state.second(Duration::from_millis(3_000))).unwrap();
    let expected = serde_json::json!({
        "row": "operator",
        "tag": "robot/camera",
        "asked": {
            "rate_hz": 5, "width": 160, "height": 120, "within_us": 200_000, "loss": "1/10",
        },
        "delivered": {
            "seconds": 10.0, "delivered": 50, "rate_hz": 5.0,
            "p50_us": 1_234, "p99_us": 4_567, "max_us": 8_000,
            "late": 0, "lost": 0, "beyond": 0,
        },
        "width": 160,
        "height": 120,
        "dropped": { "superseded": 2 },
        "refused": [],
    });
    assert_eq!(line["t_s"], 3.0);
    assert_eq!(line["rows"][2], expected);
    assert_eq!(line["publishers"][0]["rate_hz"], 30.0);
    assert_eq!(line["links"][0]["use_bits_per_s"], 500_000);
    let summary = state.summary();
    let line = serde_json::to_value(SummaryLine { summary: &summary }).unwrap();
    assert_eq!(line["summary"]["ok"], true);
    assert_eq!(line["summary"]["rows"][2]["ok"], true);
    assert_eq!(line["summary"]["links"][0]["streams"][0]["form"], "5 Hz at 160x120");
}
