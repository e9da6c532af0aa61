//! The declaration of a publisher in the metadata of its channel.

use std::collections::BTreeMap;

/// What a publisher declared about the samples of a channel, in the form in which they are recorded. A property that
/// the request changed, such as the size of scaled pictures, is left out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Declared {
    /// The time between two samples in nanoseconds.
    pub period_ns: Option<u64>,
    /// True if samples that miss their deadline are sent.
    pub sends_late: bool,
    /// The loss tolerance of subscribers without one: x of each y samples.
    pub loss: Option<(u32, u32)>,
    /// The delay bound of subscribers without one, in nanoseconds.
    pub within_ns: Option<u64>,
    /// The width and height of pictures in pixels.
    pub size: Option<(u32, u32)>,
    /// The largest sample in bytes.
    pub bytes_max: Option<u64>,
    /// The mean rate in bits per second, and the most bytes at once.
    pub traffic: Option<(u64, u64)>,
    /// True if subscribers that join later receive the newest sample.
    pub latch: bool,
}

impl Declared {
    /// Returns the metadata of a channel.
    pub(crate) fn to_metadata(&self) -> impl Iterator<Item = (&'static str, String)> {
        let pair = |separator: char, (a, b): (u64, u64)| format!("{a}{separator}{b}");
        let wide = |(a, b): (u32, u32)| (u64::from(a), u64::from(b));
        let yes = |is: bool| is.then(|| "yes".to_owned());
        [
            ("period_ns", self.period_ns.map(|ns| ns.to_string())),
            ("late", yes(self.sends_late)),
            ("loss", self.loss.map(|loss| pair('/', wide(loss)))),
            ("within_ns", self.within_ns.map(|ns| ns.to_string())),
            ("size", self.size.map(|size| pair('x', wide(size)))),
            ("bytes_max", self.bytes_max.map(|bytes| bytes.to_string())),
            ("bits_per_s", self.traffic.map(|(bits, _)| bits.to_string())),
            ("burst", self.traffic.map(|(_, burst)| burst.to_string())),
            ("latch", yes(self.latch)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// Reads the metadata of a channel. A value that cannot be read is left out.
    #[must_use]
    pub fn of(metadata: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| metadata.get(name).map(String::as_str);
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        let pair = |name: &str, separator: char| {
            let (a, b) = text(name)?.split_once(separator)?;
            Some((a.parse().ok()?, b.parse().ok()?))
        };
        Self {
            period_ns: number("period_ns"),
            sends_late: text("late") == Some("yes"),
            loss: pair("loss", '/'),
            within_ns: number("within_ns"),
            size: pair("size", 'x'),
            bytes_max: number("bytes_max"),
            traffic: number("bits_per_s").zip(number("burst")),
            latch: text("latch") == Some("yes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Compression, Order, RecordedSample, Recording, Survey};
    use proptest::prelude::*;

    fn declarations() -> impl Strategy<Value = Declared> {
        let small = (
            any::<Option<u64>>(),
            any::<bool>(),
            any::<Option<(u32, u32)>>(),
            any::<Option<u64>>(),
        );
        let large = (
            any::<Option<(u32, u32)>>(),
            any::<Option<u64>>(),
            any::<Option<(u64, u64)>>(),
            any::<bool>(),
        );
        (small, large).prop_map(|((period_ns, sends_late, loss, within_ns), rest)| {
            let (size, bytes_max, traffic, latch) = rest;
            Declared { period_ns, sends_late, loss, within_ns, size, bytes_max, traffic, latch }
        })
    }

    proptest! {
        #[test]
        fn every_declaration_survives_a_file(declared in declarations()) {
            let mut recording = Recording::new(Compression::Lz4, "test");
            let sample = RecordedSample {
                tag: "a",
                publisher: "0000000000000001.0",
                seq: 0,
                encoding: "text/plain",
                captured_ns: 5,
                came_ns: 6,
                payload: b"text",
                attachment: None,
            };
            let about = || About { declared: declared.clone(), ..About::default() };
            recording.sample(&sample, about).unwrap();
            let survey = Survey::of(&recording.finish()[..], Order::Auto, |_| {}).unwrap();
            let lane = survey.lanes.values().find(|lane| lane.is_samples()).unwrap();
            prop_assert_eq!(Declared::of(&lane.channel.metadata), declared);
        }
    }

    #[test]
    fn unreadable_values_are_left_out() {
        let said = [
            ("loss", "all"),
            ("size", "5"),
            ("period_ns", "-1"),
            ("bits_per_s", "7"),
            ("latch", "no"),
        ];
        let metadata = said.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(Declared::of(&metadata), Declared::default());
    }
}
