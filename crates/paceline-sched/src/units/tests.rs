use super::*;
use std::string::ToString as _;

#[test]
fn durations_have_a_unit_of_time() {
    for (text, nanos) in [
        ("0s", 0),
        ("1ns", 1),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("0.5ms", 500_000),
        ("200 ms", 200_000_000),
        (" 2s ", 2_000_000_000),
        ("1.5min", 90_000_000_000),
        ("24h", 86_400_000_000_000),
        ("0.1234567891s", 123_456_789),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
}

#[test]
fn a_bare_number_is_refused_with_the_fix() {
    let refusal = |result: Result<u64, UnitError>| result.unwrap_err().to_string();
    let time = |text: &str| duration(text).map(Duration::as_nanos);
    assert_eq!(refusal(time("200")), "needs a unit: 200ms, 0.2s (allowed: ns, us, ms, s, min, h)");
    assert_eq!(
        refusal(time("33.3")),
        "needs a unit: 33.3ms, 0.0333s (allowed: ns, us, ms, s, min, h)"
    );
    // A number below 1 may be of seconds.
    assert_eq!(
        refusal(time("0.1")),
        "needs a unit: 0.1s (100ms) or 0.1ms? (allowed: ns, us, ms, s, min, h)"
    );
    assert_eq!(refusal(size("1024")), "needs a unit: 1024B, 1.024kB (allowed: B, kB, MB, GB, TB)");
    let rate = refusal(rate("2"));
    assert!(
        rate.starts_with("needs a unit: 2mbit, 2000kbit (allowed: bit, kbit, mbit, "),
        "{rate}"
    );
    let seconds = duration("5").unwrap_err().or_seconds().to_string();
    assert!(seconds.starts_with("needs a unit: 5s, 5000ms (allowed: "), "{seconds}");
}

#[test]
fn a_wrong_unit_names_the_allowed_ones() {
    let refusal = |text: &str| duration(text).unwrap_err().to_string();
    for (text, unit) in [("5days", "days"), ("1e3ms", "e3ms"), ("10MB", "MB"), ("2S", "S")] {
        let expected = std::format!("unknown unit '{unit}' (allowed: ns, us, ms, s, min, h)");
        assert_eq!(refusal(text), expected);
    }
    assert!(size("2mbit").unwrap_err().to_string().contains("(allowed: B, kB, MB, GB, TB)"));
    assert!(rate("2MB").unwrap_err().to_string().contains("MB/s, GB/s)"));
    for (error, start) in [
        (rate("2kbps").unwrap_err(), "unknown unit 'kbps': write kbit (allowed: bit, "),
        (rate("2Mbps").unwrap_err(), "unknown unit 'Mbps': write mbit (allowed: "),
        (duration("10m").unwrap_err(), "unknown unit 'm': write min (allowed: ns, "),
        (duration("200msec").unwrap_err(), "unknown unit 'msec': write ms (allowed: "),
        (size("10M").unwrap_err(), "unknown unit 'M': write MB (allowed: "),
    ] {
        assert!(error.to_string().starts_with(start), "{error}");
    }
}

#[test]
fn text_without_a_number_is_refused_with_an_example() {
    for text in ["", "ms", "-1ms", ".5s", "1.s", "1.2.3s", "99999999999999999999999s", "nan"] {
        let refusal = duration(text).unwrap_err().to_string();
        assert!(
            refusal.starts_with("must be a number with a unit, such as 200ms"),
            "{text}: {refusal}"
        );
    }
    assert!(duration("99999999999999999999h").is_err(), "more than 64 bits");
    assert!(size("1.5B").is_err(), "half a byte");
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    let range = Duration::from_millis(1)..=Duration::from_secs(86_400);
    assert_eq!(duration_in("24h", &range), Ok(Duration::from_secs(86_400)));
    for text in ["0s", "25h", "0.9ms"] {
        let refusal = duration_in(text, &range).unwrap_err().to_string();
        assert_eq!(refusal, "must be from 1ms to 24h");
    }
    let refusal = size_in("2GB", &(1..=1_000_000)).unwrap_err().to_string();
    assert_eq!(refusal, "must be from 1B to 1MB");
    assert_eq!(rate_in("8bit", &(8..=8)), Ok(8));
}

#[test]
fn rates_are_bits_or_bytes_per_second() {
    for (text, bits) in [
        ("2mbit", 2_000_000),
        ("2 Mbit/s", 2_000_000),
        ("1.544Mbit", 1_544_000),
        ("250kB/s", 2_000_000),
        ("1GB/s", 8_000_000_000),
    ] {
        assert_eq!(rate(text), Ok(bits), "{text}");
    }
}

#[test]
fn a_value_is_formatted_in_its_largest_whole_unit() {
    assert_eq!(In(90_000_000_000, TIMES).to_string(), "90s");
    assert_eq!(In(1_500_000, TIMES).to_string(), "1500us");
    assert_eq!(In(0, SIZES).to_string(), "0B");
}

#[test]
fn a_name_that_carried_its_unit_has_a_present_one() {
    assert_eq!(renamed("within_ms", &["within", "loss"]), Some(("within", "200ms")));
    assert_eq!(renamed("capacity_bytes_per_s", &["capacity"]), Some(("capacity", "2mbit")));
    assert_eq!(renamed("within_ms", &["loss"]), None);
    assert_eq!(renamed("within", &["within"]), None);
}
