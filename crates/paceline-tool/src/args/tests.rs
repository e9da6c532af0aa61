use super::*;

#[test]
fn rates_are_above_zero_and_finite() {
    assert!((rate("29.97").unwrap() - 29.97).abs() < 1e-9);
    for text in ["10", "10Hz", "10 Hz", "10hz", "10.0HZ"] {
        assert_eq!(rate(text), Ok(10.0), "{text}");
    }
    for wrong in ["0", "-1", "nan", "inf", "1e7", "", "Hz", "0Hz", "30 kHz", "30s", "é"] {
        let error = rate(wrong).unwrap_err();
        assert!(error.starts_with("must be a number from 0.001 to 1000000 (Hz); "), "{error}");
    }
}

#[test]
fn bounds_are_above_zero() {
    assert_eq!(within("200ms"), Ok(Duration::from_millis(200)));
    assert_eq!(within("0.5ms"), Ok(Duration::from_micros(500)));
    assert!(within("0ms").unwrap_err().contains("longest time from publish to delivery"));
    assert!(some_duration("0s").is_err());
}

#[test]
fn bare_numbers_are_refused_with_the_fix() {
    let units = "(allowed: ns, us, ms, s, min, h)";
    assert_eq!(within("200"), Err(format!("needs a unit: 200ms, 0.2s {units}")));
    // A fraction is usually seconds, but may be milliseconds.
    for read in [within, some_duration] {
        assert_eq!(read("0.1"), Err(format!("needs a unit: 0.1s (100ms) or 0.1ms? {units}")));
    }
    assert_eq!(some_duration("5"), Err(format!("needs a unit: 5s, 5000ms {units}")));
    assert_eq!(within("2MB"), Err(format!("unknown unit 'MB' {units}")));
}

#[test]
fn counts_are_whole() {
    assert_eq!(every("3"), Ok(3));
    for wrong in ["0", "-3", "1.5", "4294967296"] {
        assert!(every(wrong).unwrap_err().contains("from 1 to 4294967295; 1 takes every sample"));
    }
    assert!(quality("101").unwrap_err().contains("from 1 to 100"));
}

#[test]
fn size_errors_name_the_side() {
    for text in ["640x480", "640X480"] {
        assert_eq!(size(text), Ok(Size { width: 640, height: 480 }));
    }
    assert!(size("0x480").unwrap_err().contains("width is \"0\", must be a whole number from 1"));
    assert!(size("60000x60000").unwrap_err().contains("width is \"60000\""));
    assert!(size("640").unwrap_err().contains("is not WIDTHxHEIGHT"));
}

#[test]
fn sound_is_a_rate_and_channels() {
    assert_eq!(audio("8000x1"), Ok((8_000, 1)));
    assert_eq!(audio("48000X2"), Ok((48_000, 2)));
    for (wrong, part) in [
        ("8000", "has no x; write RATExCHANNELS, such as 8000x1"),
        ("999x1", "rate '999': must be a whole number from 1000 to 384000; write RATExCHANNELS"),
        ("8000x9", "channels '9': must be a whole number from 1 to 8; write RATExCHANNELS"),
        ("8000x", "channels ''"),
        ("4294967296x1", "rate '4294967296'"),
    ] {
        let error = audio(wrong).unwrap_err();
        assert!(error.starts_with(part), "{wrong}: {error}");
    }
}
