//! Table 2, measured live: subscribers of different scaling factors on one network segment.

use crate::bench::proxied::BETWEEN;
use crate::bench::report::{Bound, Section, Table, Unit};
use crate::bench::segment::{Audience, OnSegment, on_segment};
use crate::netns::may_build;
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use std::time::Duration;

/// The stream of table 2. The sum of the scaled streams exceeds the published one, as the paper assumes: 1/2 + 1/3 + 1/4.
/// Two subscribers share each scaled stream, so each has a group.
const STREAM: Audience<'static> = Audience { hz: 50.0, bytes: 20_000, every: &[2, 2, 3, 3, 4, 4] };

/// The measurements of the three places.
struct Places {
    between: OnSegment,
    publisher: OnSegment,
    subscriber: OnSegment,
}

fn measure(place: &str, has_groups: bool, time: Duration, scratch: &Scratch) -> Result<OnSegment> {
    eprintln!("subscribers on a segment, proxy: {place}, multicast: {has_groups}");
    on_segment(place, STREAM, has_groups, time, scratch)
}

fn row(table: &mut Table, name: String, one: OnSegment) {
    let [cpu_from, cpu_between, cpu_to] = one.cpu_percent;
    let [from, between, to] = one.bytes_per_s.map(|bytes| bytes / 1e6);
    let values = vec![cpu_from, from, cpu_between, between, cpu_to, to, one.age_micros];
    table.row(name, values);
}

impl Places {
    fn measure(has_groups: bool, time: Duration, scratch: &Scratch) -> Result<Self> {
        Ok(Self {
            between: measure(&format!("node:{BETWEEN}"), has_groups, time, scratch)?,
            publisher: measure("publisher", has_groups, time, scratch)?,
            subscriber: measure("subscriber", has_groups, time, scratch)?,
        })
    }

    fn rows(&self, table: &mut Table, kind: &str) {
        for (place, one) in [
            ("the node between", self.between),
            ("the publisher", self.publisher),
            ("each subscriber", self.subscriber),
        ] {
            row(table, format!("{place}, {kind}"), one);
        }
    }
}

/// Returns the section of table 2; `None` without the permission to create namespaces. A short run has one place only.
pub(super) fn table_2(
    is_short: bool,
    time: Duration,
    scratch: &Scratch,
) -> Result<Option<Section>> {
    if !may_build() {
        eprintln!("skipped: table 2: its network namespaces need root; try sudo");
        return Ok(None);
    }
    let Audience { hz, bytes, every } = STREAM;
    let title = format!(
        "Table 2: {hz} samples of {bytes} bytes per second for {} subscribers on one segment, two each of one in 2, 3 and 4",
        every.len()
    );
    let mut section = Section::new(title).headings(["ours", ""]);
    let headings = [
        "proxy at",
        "publisher: CPU %",
        "publisher: MB/s sent",
        "node between: CPU %",
        "node between: MB/s sent",
        "subscriber: CPU %",
        "subscriber: MB/s received",
        "age, µs",
    ];
    let mut table = Table::new(headings.map(str::to_owned).to_vec());
    if is_short {
        let one = measure("publisher", true, time, scratch)?;
        row(&mut table, "the publisher, multicast".to_owned(), one);
        section.table(table);
        return Ok(Some(section));
    }
    let groups = Places::measure(true, time, scratch)?;
    let unicast = Places::measure(false, time, scratch)?;
    groups.rows(&mut table, "multicast");
    unicast.rows(&mut table, "unicast");
    section.table(table);
    rank(&mut section, &groups, &unicast);
    Ok(Some(section))
}

/// Compares the bytes with the paper's ranking.
fn rank(section: &mut Section, groups: &Places, unicast: &Places) {
    let sent = |of: OnSegment| of.bytes_per_s[0];
    let got = |of: OnSegment| of.bytes_per_s[2];
    for (name, value, bound) in [
        (
            "multicast, publisher sends: proxy at the publisher ÷ between (paper: high ÷ low)",
            sent(groups.publisher) / sent(groups.between),
            Bound::AtLeast(1.05),
        ),
        (
            "multicast, publisher sends: proxy at the subscribers ÷ between (paper: low ÷ low)",
            sent(groups.subscriber) / sent(groups.between),
            Bound::AtMost(2.5),
        ),
        (
            "multicast, subscriber receives: proxy between ÷ at the subscribers (paper: low ÷ high)",
            got(groups.between) / got(groups.subscriber),
            Bound::AtMost(0.5),
        ),
        (
            "multicast, subscriber receives: proxy at the publisher ÷ at the subscribers (paper: low ÷ high)",
            got(groups.publisher) / got(groups.subscriber),
            Bound::AtMost(0.5),
        ),
        (
            "publisher sends, proxy at the subscribers: multicast ÷ unicast",
            sent(groups.subscriber) / sent(unicast.subscriber),
            Bound::AtMost(0.45),
        ),
        (
            "publisher sends, proxy at the publisher: multicast ÷ unicast",
            sent(groups.publisher) / sent(unicast.publisher),
            Bound::AtMost(0.9),
        ),
    ] {
        section.must(name, Unit::Ratio, value, f64::NAN, bound);
    }
    let scaled = STREAM.every.iter().map(|every| 1.0 / f64::from(*every)).sum::<f64>() / 2.0;
    section.note(format!(
        "With the proxy at the publisher, the three groups carry {scaled:.2} of the published samples, and with one between \
         the publisher sends each sample once. The paper's {{High, High}} for the publisher needs such factors: those of 2 \
         and 3 alone carry 0.83, and the publisher would be the better place."
    ));
    section.note(
        "The paper counts whole streams. A datagram of ours also has a part for each of its receivers, so a group of six sent \
         1.5 times the bytes of one receiver in one run. In another, on the busy machine, it was 2.2 times: a copy of a sample \
         that reaches the link after the first frame is sent by unicast, and so is the stream to a receiver whose \
         acknowledgements are late. The order of the publisher and the subscribers as places (paper: high, low) then turns \
         round. Bytes are those of the kernel, with the headers of all layers, acknowledgements and probes.",
    );
}
