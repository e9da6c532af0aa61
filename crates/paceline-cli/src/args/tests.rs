use super::*;

#[test]
fn periods_are_above_zero_and_durations_may_be_zero() {
    assert!(period("0ms").unwrap_err().contains("33.3ms gives 30 samples per second"));
    assert!((period("10ms").unwrap() - 10.0).abs() < 1e-9);
    assert_eq!(duration("0s"), Ok(Duration::ZERO));
    assert!(duration("1e300s").is_err());
}

#[test]
fn bare_numbers_are_refused_with_the_fix() {
    let units = "(allowed: ns, us, ms, s, min, h)";
    assert_eq!(wait("2500"), Err(format!("needs a unit: 2500ms, 2.5s {units}")));
    assert!(interval("1").unwrap_err().starts_with("needs a unit: 1s"));
    assert!(chunk("1024").unwrap_err().starts_with("needs a unit: 1024B, 1.024kB (allowed: B,"));
}

#[test]
fn counts_are_whole() {
    assert!(count("0").is_err());
    assert!(queue("65537").unwrap_err().contains("from 1 to 65536"));
    assert!(chunk("0B").is_err());
}

#[test]
fn cards_have_a_size_and_a_rate() {
    let spec = card("320x240@15").unwrap();
    assert_eq!(spec.size, Size { width: 320, height: 240 });
    assert!((spec.hz - 15.0).abs() < 1e-9);
    assert!((card("320x240").unwrap().hz - 30.0).abs() < 1e-9);
    assert!(card("320x240@0").unwrap_err().starts_with("rate '0': must be a number from"));
    assert!(card("@30").unwrap_err().contains("is not WIDTHxHEIGHT"));
}

#[test]
fn unknown_words_are_refused_with_the_list() {
    assert_eq!(kind("state"), Ok(Kind::State));
    assert_eq!(kind("video"), Ok(Kind::VideoI));
    assert!(kind("film").unwrap_err().contains("data, state, picture, audio or video"));
    assert_eq!(proxy("subscriber"), Ok(Proxy::Subscriber));
    assert_eq!(proxy("auto"), Ok(Proxy::Auto));
    assert_eq!(proxy("node:the mast"), Ok(Proxy::Node("the mast".into())));
    for wrong in ["moon", "node", "node:", &format!("node:{}", "x".repeat(256))] {
        assert!(proxy(wrong).unwrap_err().contains("publisher, subscriber, auto or node:NAME"));
    }
}

#[test]
fn speed_is_a_hundredth_to_a_thousand_times() {
    assert_eq!(speed("max"), Ok(Speed::Max));
    assert_eq!(speed("0.01"), Ok(Speed::Times(0.01)));
    for wrong in ["0", "1001", "-1", "nan", "fast", ""] {
        let error = speed(wrong).unwrap_err();
        assert!(
            error
                .starts_with("must be a number from 0.01 to 1000 (times); 1 is the original speed"),
            "{error}"
        );
    }
    assert_eq!(telemetry("json"), Ok(Telemetry::Json));
    assert!(telemetry("csv").unwrap_err().contains("raw or json"));
}
