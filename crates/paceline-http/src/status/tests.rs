pub(crate) mod example;

use super::*;
use example::status;

fn expected_reservation() -> serde_json::Value {
    serde_json::json!({
        "publisher": "0000000000000b0b.1",
        "tag": "robot/camera",
        "subscription": "000000000000000b.0",
        "within_us": 200_000,
        "bound_us": 197_000,
        "learned": false,
        "hops": [{
            "node": "0000000000000b0b",
            "name": "robot",
            "link": "thin",
            "capacity_bits_per_s": 2_000_000,
            "bits_per_s": 400_000,
            "burst_bytes": 13_140,
            "bound_us": 197_000,
            "realtime": false,
        }],
        "spare": [],
    })
}

fn expected_clock() -> serde_json::Value {
    serde_json::json!({
        "status": "synchronised",
        "time_ns": 0,
        "error_ns": 40_100,
        "epoch": 0,
        "system_offset_ns": 0,
        "frequency_ppm": 0.0,
        "jitter_ns": 0,
        "stratum": null,
        "leap": "",
        "updates": 0,
        "disruptions": 0,
        "disruption": null,
        "follows_host": false,
        "serves": null,
        "servers": [],
    })
}

fn expected_class() -> serde_json::Value {
    serde_json::json!({
        "name": "video",
        "parent": null,
        "peer": null,
        "share": 0.75,
        "served_bytes": 123_456,
        "guaranteed_bytes": 1_000,
        "guaranteed_bits_per_s": 1_000_000,
        "reserved_bits_per_s": 400_000,
        "streams": 1,
        "offered": 50,
        "sent": 47,
        "bytes": 300_000,
        "late": 1,
        "violations": 2,
        "aborted": 2,
        "too_early": 5,
        "too_long": 2,
        "dropped": { "superseded": 3 },
    })
}

fn expected_link() -> serde_json::Value {
    serde_json::json!({
        "name": "thin",
        "at_us": 86_399_900_000u64,
        "capacity_bits_per_s": 2_000_000,
        "measured": null,
        "medium": null,
        "use_bits_per_s": null,
        "reserved_bits_per_s": 400_000,
        "least_capacity_bits_per_s": 1_100_000,
        "round_trip_us": 150,
        "delay_us": 170,
        "jitter_us": 20,
        "hops": ["000000000000000b"],
        "neighbours": [{
            "id": "000000000000000b", "wire_bytes": 400_000, "use_bits_per_s": null,
            "down_after_us": 6_300_000, "memory_bytes": 70,
        }],
        "wire_bytes": 400_000,
        "frames": 1_000,
        "frames_lost": 0,
        "frames_dropped": 5,
        "loss": null,
        "streams": [{
            "publisher": "0000000000000b0b.1",
            "tag": "robot/camera",
            "asked": {
                "form": "5 Hz at 160x120",
                "every": null, "max_hz": 5.0, "width": 160, "height": 120,
            },
            "hop": "000000000000000b",
            "contracted": true,
            "contract": {
                "period_us": 200_000, "deadline_us": 190_000,
                "loss": "1/10", "bits_per_s": 400_000,
            },
            "ages": { "entered": 50, "entered_us": 250_000, "left_us": 940_000 },
            "offered": 50,
            "sent": 47,
            "bytes": 300_000,
            "late": 1,
            "violations": 2,
            "aborted": 2,
            "broken_ago_us": 42_000_000,
            "group": null,
            "too_early": 5,
            "too_long": 2,
            "dropped": { "superseded": 3 },
        }],
        "muted": [{ "peer": "000000000000000b", "flood": "control", "muted": true, "times": 2, "dropped": 900 }],
        "repairs": { "repeated": 41, "repeated_bytes": 10_332, "given_up": 1, "share_per_mille": 60 },
        "buffer": { "reserved_bytes": 23_140, "bytes": 256_000_000, "greatest_bytes": 13_140 },
        "closed": {
            "offered": 0, "sent": 0, "bytes": 0, "late": 0, "violations": 0, "aborted": 0,
            "too_early": 0, "too_long": 0, "dropped": {},
        },
        "classes": [expected_class()],
    })
}

fn expected_robot() -> serde_json::Value {
    serde_json::json!({
        "id": "0000000000000b0b",
        "name": "robot",
        "at_us": 86_400_000_000u64,
        "publishers": [{
            "id": "0000000000000b0b.1",
            "tag": "robot/camera",
            "kind": "picture",
            "encoding": "image/jpeg",
            "period_us": 33_333,
            "published": 300,
            "rate_hz": 30.0,
            "off_rate": false,
            "matching": true,
        }],
        "subscriptions": [],
        "buffer": null,
        "memory": { "used_bytes": 70, "bytes": 134_217_728, "greatest_bytes": 900 },
        "buffers": [{
            "id": "0000000000000b0b.0",
            "pattern": "robot/camera",
            "samples_max": 100,
            "bytes_max": 268_435_456,
            "age_max_us": 86_400_000_000u64,
            "samples": 100,
            "bytes": 640_000,
            "oldest_ns": 1_700_000_000_000_000_000u64,
            "newest_ns": 1_700_000_003_300_000_000u64,
        }],
        "links": [expected_link()],
        "reservations": [expected_reservation()],
        "stalled": [],
        "unread": [],
        "clock": expected_clock(),
        "processor": { "held_us_per_s": 31_201, "most_us_per_s": 500_000 },
        "dropped": {},
        "processor_wait": null,
        "left_out": 0,
    })
}

fn expected_players() -> serde_json::Value {
    serde_json::json!({
        "players": 2,
        "packets": 94_000,
        "left_out_slow": 12,
        "left_out_needs": 30,
        "left_out_sound": 0,
        "reported": 90_000,
        "lost": 900,
        "loss_max": 0.0625,
        "jitter_max_us": 1_250,
        "round_trip_max_us": 4_100,
    })
}

fn expected_timed() -> serde_json::Value {
    serde_json::json!({
        "method": "sync_group",
        "setting": "stage=150ms",
        "released": 47, "late": 1, "early": 0, "refused": 0, "silences": 0,
        "unknown": 0, "beyond": 0, "jumps": 0,
        "jitter_in_us": null, "jitter_out_us": null,
        "added_us": 150_000, "wakeup_us": 52, "bound_us": 114,
    })
}

fn expected_health() -> serde_json::Value {
    serde_json::json!({
        "state": "served", "label": "as requested", "window_us": 10_000_000,
        "requested": 50, "delivered": 47, "lost": 3, "lost_before": 3, "late": 1,
        "requested_hz": 5.0, "delivered_hz": 4.7,
        "reason": "3 of 50 lost on link 'thin' of 'robot' (superseded)",
        "broken_seconds": 0, "broken_ago_us": null,
    })
}

#[test]
fn the_schema_is_stable() {
    let document = StatusDocument::new(status());
    let expected = serde_json::json!({
        "schema": 1,
        "nodes": [
            {
                "id": "000000000000000b",
                "name": "operator",
                "at_us": 86_400_000_000u64,
                "publishers": [],
                "subscriptions": [{
                    "id": "000000000000000b.0",
                    "pattern": "robot/**",
                    "asked": {
                        "form": "5 Hz at 160x120",
                        "every": null, "max_hz": 5.0, "width": 160, "height": 120,
                    },
                    "importance": 50,
                    "within_us": 200_000,
                    "loss": "1/10",
                    "proxy": "publisher",
                    "scaled_at": ["robot"],
                    "publishers": ["0000000000000b0b.1"],
                    "refusals": [],
                    "delivered": 47,
                    "bytes": 299_000,
                    "rate_hz": 5.001,
                    "late": 1,
                    "overdue": 1,
                    "age_max_us": 45_678,
                    "age_mean_us": 21_014,
                    "age_sum_us": 987_654,
                    "dropped": {},
                    "jitter_us": 3_412,
                    "lost": 2,
                    "players": expected_players(),
                    "timed": expected_timed(),
                    "health": expected_health(),
                }],
                "buffer": null,
                "memory": { "used_bytes": 70, "bytes": 134_217_728, "greatest_bytes": 900 },
                "buffers": [],
                "links": [],
                "reservations": [],
                "stalled": [],
                "unread": [],
                "processor": null,
                "clock": expected_clock(),
                "dropped": {},
                "processor_wait": null,
                "left_out": 0,
            },
            expected_robot(),
        ],
    });
    let written = serde_json::to_value(&document).unwrap();
    assert_eq!(written, expected);
    let read: StatusDocument = serde_json::from_value(written).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), expected);
}
