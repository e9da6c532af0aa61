use super::*;

#[test]
fn rates_are_above_zero_and_finite() {
    assert!((rate("29.97").unwrap() - 29.97).abs() < 1e-9);
    for wrong in ["0", "-1", "nan", "inf", "1e7", "", "30Hz"] {
        let error = rate(wrong).unwrap_err();
        assert!(error.starts_with("must be a number from 0.001 to 1000000 (Hz); "), "{error}");
    }
    assert!(period("0").unwrap_err().contains("33.3 gives 30 samples a second"));
    assert!((period("10").unwrap() - 10.0).abs() < 1e-9);
}

#[test]
fn bounds_are_above_zero() {
    assert_eq!(within("200"), Ok(Duration::from_millis(200)));
    assert_eq!(within("0.5"), Ok(Duration::from_micros(500)));
    assert!(within("0").unwrap_err().contains("longest time from publish to delivery"));
    assert_eq!(seconds("0"), Ok(Duration::ZERO));
    assert!(some_seconds("0").is_err());
    assert!(seconds("1e300").is_err());
}

#[test]
fn counts_are_whole() {
    assert_eq!(every("3"), Ok(3));
    for wrong in ["0", "-3", "1.5", "4294967296"] {
        assert!(every(wrong).unwrap_err().contains("from 1 to 4294967295; 1 takes every sample"));
    }
    assert!(count("0").is_err());
    assert!(queue("65537").unwrap_err().contains("from 1 to 65536"));
    assert!(quality("101").unwrap_err().contains("from 1 to 100"));
    assert!(chunk("0").is_err());
}

#[test]
fn sizes_name_the_side_that_is_wrong() {
    assert_eq!(size("640x480"), Ok(Size { width: 640, height: 480 }));
    assert!(
        size("0x480").unwrap_err().contains("width is \"0\", allowed are whole numbers from 1")
    );
    assert!(size("60000x60000").unwrap_err().contains("width is \"60000\""));
    assert!(size("640").unwrap_err().contains("is not WIDTHxHEIGHT"));
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
fn words_are_listed_when_none_fits() {
    assert_eq!(kind("state"), Ok(Kind::State));
    assert!(kind("video").unwrap_err().contains("data, state or picture"));
    assert_eq!(proxy("subscriber"), Ok(Proxy::Subscriber));
    assert!(proxy("auto").unwrap_err().contains("publisher or subscriber"));
}
