//! The presentation order of pictures, of x264 and x265.

use crate::ffmpeg::{Mode, PICTURES, encoded};
use paceline_media::codec::{Codec, Units};
use paceline_media::video::Class;

/// One mode: its name, arguments, codec, the step of the order, and whether pictures are moved.
type Case = (&'static str, &'static [&'static str], Codec, i64, bool);

const CASES: &[Case] = &[
    ("x264, no B", &["-bf", "0", "-g", "20"], Codec::H264, 2, false),
    ("x264, B", &["-bf", "2", "-g", "20", "-x264-params", "b-pyramid=none"], Codec::H264, 2, true),
    ("x264, pyramid", &["-bf", "4", "-g", "20", "-b_strategy", "0"], Codec::H264, 2, true),
    // More pictures than the bits of the order can count.
    ("x264, long", &["-bf", "3", "-g", "100", "-b_strategy", "0"], Codec::H264, 2, true),
    ("x265, no B", &["-x265-params", "bframes=0:keyint=20"], Codec::H265, 1, false),
    ("x265, B", &["-x265-params", "bframes=4:keyint=20:open-gop=0"], Codec::H265, 1, true),
    ("x265, open", &["-x265-params", "bframes=3:keyint=20:open-gop=1"], Codec::H265, 1, true),
];

#[test]
fn the_orders_of_each_sequence_are_all_places_of_its_pictures() {
    let test = "the_orders_of_each_sequence_are_all_places_of_its_pictures";
    for (name, args, codec, step, moved) in CASES {
        let (encoder, format) = match codec {
            Codec::H264 => ("libx264", "h264"),
            Codec::H265 | Codec::Av1 => ("libx265", "hevc"),
        };
        let Some(stream) = encoded(test, format, &Mode { name, encoder, args }) else { continue };
        let mut units = Units::new(*codec);
        let mut sequences: Vec<Vec<i64>> = Vec::new();
        for unit in codec.split(&stream) {
            let class = units.classify(unit.unwrap().bytes).unwrap();
            let Some(order) = units.order() else {
                // Type 2: pictures are shown in decoding order.
                assert!(!moved, "{name}: a picture does not state its order");
                continue;
            };
            if sequences.is_empty() || class == Class::I && order == 0 {
                sequences.push(Vec::new());
            }
            sequences.last_mut().unwrap().push(order);
        }
        let count = sequences.iter().map(Vec::len).sum::<usize>();
        assert!(count == PICTURES || count == 0 && !moved, "{name}: {count} orders");
        let sorted = sequences.iter().all(|orders| orders.is_sorted());
        assert_eq!(!sorted, *moved, "{name}: {sequences:?}");
        for mut orders in sequences {
            orders.sort_unstable();
            let places: Vec<i64> = (0..).map(|place| place * step).take(orders.len()).collect();
            assert_eq!(orders, places, "{name}");
        }
    }
}
