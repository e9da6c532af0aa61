//! Fuzz body for H.264 streams: access units, their classes and their parameter sets.
//!
//! No picture is decoded: the decoder is third-party code, and the media crate's own tests give it damaged
//! units.

use paceline_media::h264::{Classifier, ParameterSets, info, split};

/// Checks a byte stream. Its units, concatenated, equal the stream, and each keeps its class.
///
/// Adding parameter sets before a unit, and leaving out repeated ones, changes nothing else about it.
pub fn h264(data: &[u8]) {
    check_info(data);
    let _ = Classifier::new().classify(data);
    let (mut classifier, mut completed) = (Classifier::new(), Classifier::new());
    let mut sets = ParameterSets::new();
    let mut end = None;
    let mut units = split(data);
    while let Some(item) = units.next() {
        let Ok(unit) = item else {
            assert!(units.next().is_none(), "an error is the last");
            return;
        };
        let begin = unit.bytes.as_ptr().addr() - data.as_ptr().addr();
        assert!(end.is_none_or(|end| end == begin), "no bytes lie between two units");
        end = Some(begin + unit.bytes.len());
        assert!(!unit.bytes.is_empty());
        assert_eq!(classifier.classify(unit.bytes), Ok(unit.class));
        check_info(unit.bytes);
        let complete = sets.complete(unit.bytes, unit.class);
        assert_eq!(completed.classify(&complete), Ok(unit.class));
        assert_eq!(
            sets.clone().complete(&complete, unit.class),
            complete,
            "complete units are unchanged"
        );
    }
    assert!(end.is_none_or(|end| end == data.len()), "nothing is left over");
}

fn check_info(bytes: &[u8]) {
    match info(bytes) {
        Ok(Some(info)) => {
            assert_eq!(info.size.check(), Ok(()));
            assert!(info.hz.is_none_or(|hz| hz.is_finite() && hz > 0.0), "{info:?}");
        }
        Ok(None) => {}
        Err(error) => assert!(error.to_string().len() < 1_000, "an error is one line"),
    }
}
