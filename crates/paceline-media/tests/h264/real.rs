//! Recordings from the folder in `PACELINE_DATA`, if it is set.

use paceline_media::Size;
use paceline_media::h264::{Class, Transcoder, info, split};

use crate::support::{classes, cut, decode, size, transcode};

/// Returns a recording; without one, prints a line and returns `None`.
#[expect(clippy::disallowed_methods, reason = "recordings lie outside the repository")]
pub(crate) fn recording(test: &str, name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: {test} (PACELINE_DATA is not set)");
        return None;
    };
    let path = std::path::Path::new(&folder).join("video").join(name);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

const CISCO: &str = "cisco_1280x720_bframes.264";

#[test]
fn cisco_has_300_pictures() {
    let Some(stream) = recording("cisco_has_300_pictures", CISCO) else { return };
    let units = cut(&stream);
    let classes = classes(units.iter().copied());
    let count = |letter| classes.matches(letter).count();
    println!("{}", &classes[..60]);
    println!("I {}, P {}, B {}, {:?}", count('I'), count('P'), count('B'), info(&stream));
    assert_eq!(units.len(), 300);
    assert_eq!(units.concat(), stream);
    assert_eq!(info(&stream).unwrap().unwrap().size, size("1280x720"));
    assert_eq!(classes.find('I'), Some(0));
    let (pictures, refused) = decode(units);
    assert_eq!((pictures.len(), refused), (300, 0));
}

#[test]
fn cisco_without_b_units_shows_the_other_pictures() {
    let test = "cisco_without_b_units_shows_the_other_pictures";
    let Some(stream) = recording(test, CISCO) else { return };
    let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
    let (all, _) = decode(units.iter().map(|unit| unit.bytes));
    let kept = || units.iter().filter(|unit| unit.class != Class::B).map(|unit| unit.bytes);
    let (thinned, refused) = decode(kept());
    println!("{} of {} units are reference units", kept().count(), units.len());
    assert_eq!((thinned.len(), refused), (kept().count(), 0));
    assert!(thinned.len() < all.len());
    // The same pictures in the same order, without those of the B units.
    let mut rest = all.iter();
    assert!(thinned.iter().all(|picture| rest.any(|other| other == picture)));
}

#[test]
fn cisco_is_transcoded_to_5_hz() {
    let Some(stream) = recording("cisco_is_transcoded_to_5_hz", CISCO) else { return };
    let small = Size::new(320, 180).unwrap();
    let mut transcoder = Transcoder::new(Some(small), 5.0).unwrap();
    let output = transcode(&mut transcoder, cut(&stream), |number| number % 6 == 0);
    assert_eq!(output.asked, (0..300).collect::<Vec<_>>());
    assert_eq!(output.failed(), [""; 0]);
    let pictures = output.shown();
    assert_eq!(pictures.len(), 50);
    assert!(pictures.iter().all(|picture| picture.size == small));
    assert_eq!(classes(output.coded().into_iter().map(|(_, unit)| unit)), "IPPPPPPPPP".repeat(5));
    let bytes: usize = output.coded().iter().map(|(_, unit)| unit.len()).sum();
    println!("50 pictures take {bytes} bytes");
}

#[test]
fn jvt_has_several_slices_a_picture() {
    let name = "jvt_ba1_ft_c_352x288.264";
    let Some(stream) = recording("jvt_has_several_slices_a_picture", name) else { return };
    let units = cut(&stream);
    let classes = classes(units.iter().copied());
    let count = |letter| classes.matches(letter).count();
    println!("I {}, P {}, B {}, {:?}", count('I'), count('P'), count('B'), info(&stream));
    assert_eq!(units.len(), 299);
    assert_eq!(info(&stream).unwrap().unwrap().size, size("352x288"));
    let (pictures, refused) = decode(units.iter().copied());
    assert_eq!((pictures.len(), refused), (299, 0));
    let mut transcoder = Transcoder::new(Some(size("176x144")), 15.0).unwrap();
    let output = transcode(&mut transcoder, units, |number| number % 2 == 1);
    assert_eq!((output.coded().len(), output.failed().len()), (149, 0));
    assert_eq!(output.shown().len(), 149);
}

#[test]
fn men_whisper_has_9_pictures() {
    let name = "cisco_men_whisper_640x320_bframes.264";
    let Some(stream) = recording("men_whisper_has_9_pictures", name) else { return };
    let units = cut(&stream);
    println!("{} {:?}", classes(units.iter().copied()), info(&stream));
    assert_eq!(units.len(), 9);
    for wanted in 0..9 {
        let mut transcoder = Transcoder::new(None, 30.0).unwrap();
        let output = transcode(&mut transcoder, units.iter().copied(), |number| number == wanted);
        assert_eq!((output.coded().len(), output.failed().len()), (1, 0));
    }
}
