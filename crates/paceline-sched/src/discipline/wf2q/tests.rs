use super::*;

#[test]
fn tags_are_exact_rounded_down_for_any_length() {
    for rate in [1, 3, 7, 999_999_937, Terms::RATE_MAX - 1] {
        let (mut tag, mut sent) = (Tag { at: 0, carry: 0 }, 0);
        for step in 0..10_000u32 {
            let bytes = 1 + step * 7_919 % 1_500;
            tag = tag.after(bytes, rate);
            sent += u128::from(bytes);
            assert_eq!(tag.at, (sent << FRACTION) / u128::from(rate));
        }
    }
}

#[test]
fn tags_saturate_at_the_maximum() {
    let last = Tag { at: LAST, carry: 0 };
    assert_eq!(last.after(u32::MAX, 1).at, LAST);
    assert!(owed(LAST) < NOT_ELIGIBLE);
    // A hundred gigabytes per second at a rate of one byte per second, for two centuries.
    let seconds = 200 * 366 * 86_400u128;
    assert!((seconds * 100_000_000_000) << FRACTION < LAST);
}
