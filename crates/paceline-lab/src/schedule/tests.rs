use super::input::{self, Plan};
use paceline_fuzz::mutate::{Xorshift, mutate};
use paceline_sched::timeline::{Ahead, Arrivals, Doubt, Step, Timeline};
use paceline_sched::{Duration, Instant, Policy};

fn read(text: &str) -> Result<Plan, String> {
    input::read(text.as_bytes())
}

/// A description with these streams and options.
fn with(streams: &str, options: &str) -> String {
    format!(
        r#"{{"discipline":"dwcs","slot":"1us","duration":"100us","options":{{{options}}},
        "streams":[{streams}]}}"#
    )
}

const A: &str = r#"{"id":"A","period":"2us","loss":"1/2"}"#;

/// A description of one stream with these fields.
fn stream(fields: &str) -> String {
    with(&format!(r#"{{"id":"A",{fields}}}"#), "")
}

fn refused(text: &str, parts: &[&str]) {
    let Err(error) = read(text) else { panic!("{text} was accepted") };
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
}

#[test]
fn omitted_fields_have_defaults() {
    let plan = read(&with(A, "")).unwrap();
    assert_eq!(plan.setup.ahead, Ahead::Waits);
    assert_eq!((plan.setup.policy, plan.setup.segment), (Policy::DWCS, u32::MAX));
    let contract = plan.streams[0].terms.contract().unwrap();
    assert_eq!((contract.deadline, contract.jitter), (Duration::from_nanos(2_000), Duration::ZERO));
    assert_eq!(plan.streams[0].arrivals, Arrivals::Backlogged);
    let null = read(&stream(r#""period":null,"loss":null"#)).unwrap();
    assert!(null.streams[0].terms.contract().is_none(), "null is as if it were not there");
}

#[test]
fn arrivals_are_backlogged_listed_or_regular() {
    let arrivals = |value: &str| {
        read(&stream(&format!(r#""arrivals":{value}"#)))
            .map(|plan| plan.streams[0].arrivals.clone())
    };
    assert_eq!(arrivals("\"backlogged\""), Ok(Arrivals::Backlogged));
    let listed = [0, 5, 5, 1_000_000_000_000_000_000].map(Instant::from_nanos);
    assert_eq!(arrivals(r#"["0s","5ns","5ns","1000000000s"]"#), Ok(Arrivals::At(listed.to_vec())));
    assert_eq!(arrivals("[]"), Ok(Arrivals::At(vec![])));
    let (first, every) = (Instant::from_nanos(3), Duration::from_nanos(7));
    let regular = Arrivals::Every { first, every, count: 9 };
    assert_eq!(arrivals(r#"{"every":"7ns","first":"3ns","count":9}"#), Ok(regular));
    let error = arrivals(r#"["3ns","7ns","5ns"]"#).unwrap_err();
    assert!(
        error.starts_with("streams[0].arrivals[2] is 5ns, which is before the previous entry, 7ns"),
        "{error}"
    );
    for (wrong, part) in [
        ("7", "streams[0].arrivals is 7: must be \"backlogged\", a list of instants"),
        ("\"now\"", "streams[0].arrivals is \"now\""),
        ("[-1]", "streams[0].arrivals[0] is -1: must be a number with a unit, such as 200ms"),
        (
            "[1.5]",
            "streams[0].arrivals[0] is 1.5: needs a unit: 1.5ms, 0.0015s (allowed: ns, us, ms,",
        ),
        ("[\"1\"]", "streams[0].arrivals[0] is \"1\": needs a unit: 1ms, 0.001s"),
        (
            "[\"1000000000000000001ns\"]",
            "arrivals[0] is \"1000000000000000001ns\": must be from 0ns to 1000000000s",
        ),
        ("{}", "streams[0].arrivals.every is missing"),
        ("{\"every\":\"0s\"}", "streams[0].arrivals.every is \"0s\": must be from 1ns to"),
        (
            "{\"every_ns\":1}",
            "streams[0].arrivals: unknown field \"every_ns\": write \"every\": \"200ms\"",
        ),
        ("{\"each\":1}", "streams[0].arrivals: unknown field \"each\": the fields are every"),
    ] {
        assert!(arrivals(wrong).unwrap_err().contains(part), "{wrong}: {:?}", arrivals(wrong));
    }
}

#[test]
fn invalid_contracts_are_refused_with_their_field() {
    for (fields, parts) in [
        (
            r#""period":"1us","loss":"3/2""#,
            &["streams[0].loss is \"3/2\"", "x must be from 0 to y"][..],
        ),
        (r#""period":"1us","loss":"1/0""#, &["streams[0].loss is \"1/0\"", "y at least 1"]),
        (r#""period":"1us","loss":"1/2000000""#, &["streams[0].loss", "at most 1048575 samples"]),
        (r#""period":"1us","loss":"half""#, &["streams[0].loss is \"half\"", "whole numbers x/y"]),
        (r#""period":"1us","loss":"-1/2""#, &["streams[0].loss is \"-1/2\"", "whole numbers x/y"]),
        (r#""period":"1us","loss":0.5"#, &["streams[0].loss is 0.5: must be text"]),
        (r#""period":"0s""#, &["streams[0].period is \"0s\": must be from 1ns to"]),
        (r#""period_ns":5"#, &["unknown field \"period_ns\": write \"period\": \"200ms\""]),
        (r#""period":-5"#, &["streams[0].period is -5"]),
        (r#""period":1.5"#, &["streams[0].period is 1.5: needs a unit: 1.5ms, 0.0015s"]),
        (r#""period":1e30"#, &["streams[0].period is 1e+30: unknown unit", "for example 10ms"]),
        (r#""period":"18446744073709551615ns""#, &["is \"18446744073709551615ns\": must be"]),
        (
            r#""period":"18446744073709551616ns""#,
            &["streams[0].period is \"18446744073709551616ns\": must be"],
        ),
        (r#""period":"1000""#, &["streams[0].period is \"1000\": needs a unit: 1000ms, 1s"]),
        (r#""period":"2mbit""#, &["unknown unit 'mbit' (allowed: ns, us, ms, s, min, h)"]),
        (r#""period":[1]"#, &["streams[0].period is a list"]),
        (r#""period":"1us","deadline":"0s""#, &["streams[0].deadline is \"0s\""]),
        (
            r#""period":"2us","deadline":"999ns""#,
            &["streams[0].deadline is 999ns: must be at least 1us", "use a longer deadline"],
        ),
        (r#""period":"500ns""#, &["streams[0].deadline is 500ns: must be at least 1us"]),
        (r#""deadline":"1us""#, &["streams[0].deadline is part of a contract", "no period"]),
        (r#""loss":"1/2""#, &["streams[0].loss is part of a contract"]),
        (
            r#""period":"1us","background":true"#,
            &["streams[0].background is true, but period is set"],
        ),
        (r#""period":"1us","droppable":1"#, &["streams[0].droppable is 1: must be true or false"]),
        (r#""priority":4294967296"#, &["streams[0].priority is 4294967296", "to 4294967295"]),
        (r#""rate":"0bit""#, &["streams[0].rate is \"0bit\""]),
        (r#""size":"0B""#, &["streams[0].size is \"0B\": must be from 1B to 4294967295B"]),
        (r#""size":[]"#, &["streams[0].size is an empty list"]),
        (r#""police":"leaky:1B""#, &["streams[0].police is \"leaky:1B\""]),
        (
            r#""police":"leaky:9B,9mbit else drop""#,
            &["streams[0].police conflicts with backlogged"],
        ),
        (r#""size":["7B","0B"]"#, &["streams[0].size[1] is \"0B\""]),
    ] {
        refused(&stream(fields), parts);
    }
    assert!(read(&stream(r#""period":"1us","loss":"0/0""#)).is_ok(), "deadlines alone");
    for action in ["drop", "delay", "demote"] {
        let police = format!(r#""arrivals":[],"police":"leaky:9B,9mbit else {action}""#);
        assert!(read(&stream(&police)).is_ok(), "{action}");
    }
    let bytes = r#"{"discipline":"vds","capacity":"8kbit","duration":"1ns","streams":[
        {"id":1,"size":["10B","100B"],"period":"1s","deadline":"99999999ns"}]}"#;
    refused(bytes, &["streams[0].deadline is 99999999ns: must be at least 100ms", "of 100 bytes"]);
    refused(&bytes.replace(r#""size":["10B","100B"],"#, ""), &["streams[0].size is missing"]);
}

#[test]
fn unknown_missing_and_duplicate_fields_are_refused() {
    refused(
        &stream(r#""colour":"red""#),
        &["streams[0]: unknown field \"colour\": the fields are id,"],
    );
    refused(&stream(r#""id":"B""#), &["streams[0].id is given twice: keep one"]);
    refused(&with(A, r#""colour":1"#), &["options: unknown field \"colour\"", "segment"]);
    let known = with(A, "");
    refused(
        &known.replace("slot", "slots"),
        &["unknown field \"slots\": the fields are discipline"],
    );
    refused(&known.replace("slot", "slot_ns"), &["unknown field \"slot_ns\": write \"slot\": "]);
    refused(&known.replace("slot", "duration"), &["duration is given twice"]);
    refused(
        &known.replace(r#""options""#, r#""streams":[],"options""#),
        &["streams is given twice"],
    );
    refused(&known.replace(r#""streams""#, r#""stream""#), &["unknown field \"stream\""]);
    refused(
        &known.replace(r#""id":"A","#, ""),
        &["streams[0].id is missing", "1 to 64 characters"],
    );
    refused(&known.replace(r#""discipline":"dwcs","#, ""), &["discipline is missing", "vds"]);
    refused(
        &known.replace("dwcs", "lifo"),
        &["discipline is \"lifo\": unknown policy: must be fifo"],
    );
    refused(&known.replace(r#""slot":"1us","#, ""), &["capacity and slot are missing"]);
    let both = known.replace(r#""slot""#, r#""capacity":"8bit","slot""#);
    refused(&both, &["are both set: set one of them"]);
    refused(&both.replace("8bit", "0bit"), &["capacity is \"0bit\": must be from 1B/s to"]);
    refused(&known.replace("100us", "0us"), &["duration is \"0us\""]);
    refused(
        &known.replace("100us", "1000000000000000001ns"),
        &["duration is \"1000000000000000001ns\""],
    );
    refused(&known.replace("\"100us\"", "NaN"), &["expected value at line 1"]);
    refused(&known.replace("\"1us\",", "\"0us\","), &["slot is \"0us\""]);
    refused(&format!("{known} x"), &["trailing characters"]);
    refused("[]", &["an object with discipline, duration and streams"]);
    refused(&"[".repeat(100_000), &["invalid type"]);
    refused(&stream(&format!(r#""size":{}"#, "[".repeat(100_000))), &["recursion limit"]);
}

#[test]
fn options_belong_to_the_discipline() {
    for (options, part) in [
        (r#""ordering":"newest""#, "options.ordering is \"newest\": must be later or original"),
        (r#""adjustment":7"#, "options.adjustment is 7: must be text"),
        (r#""eligibility":"always""#, "options.eligibility is \"always\": must be once-per-period"),
        (r#""segment":"0B""#, "options.segment is \"0B\": must be from 1B to"),
    ] {
        refused(&with(A, options), &[part]);
    }
    let vds = with(A, r#""ordering":"N""#).replace("dwcs", "vds");
    refused(&vds, &["options.ordering applies only to dwcs, but the discipline is vds"]);
    refused(&with(A, "").replace("{}", "3"), &["options is 3: must be an object with the fields"]);
}

#[test]
fn streams_are_not_empty_and_have_unique_ids() {
    refused(&with("", ""), &["streams is empty: must be a list of 1 to 4194304 streams"]);
    refused(&with("7", ""), &["streams[0] is 7: must be an object"]);
    refused(&with(&format!("{A},{A}"), ""), &["streams[1].id is A, the same as streams[0].id"]);
    refused(
        &with(r#"{"id":1},{"id":"1"}"#, ""),
        &["streams[1].id is 1, the same as streams[0].id"],
    );
    for id in ["\"\"", "\"a\\nb\"", "-1", "1.5", "true", &format!("\"{}\"", "x".repeat(65))] {
        refused(
            &with(&format!(r#"{{"id":{id}}}"#), ""),
            &["streams[0].id is ", "1 to 64 characters"],
        );
    }
    refused(&with(A, "").replace(&format!("[{A}]"), "{}"), &["a list of 1 to 4194304 streams"]);
}

/// A description of an HFSC link of 8,000 bit/s with these classes and streams.
fn hfsc(classes: &str, streams: &str) -> String {
    format!(
        r#"{{"discipline":"hfsc","capacity":"8kbit","duration":"1us",{classes}"streams":[{streams}]}}"#
    )
}

#[test]
fn invalid_curves_are_refused_with_their_field() {
    let one = |curves: &str| hfsc("", &format!(r#"{{"id":1,"size":"9B",{curves}}}"#));
    for (curves, part) in [
        (r#""real_time":"8001bit""#, "streams[0].real_time and those before it exceed the link"),
        (r#""real_time":"8001bit""#, "promise 8001 bit/s in the long run, the link carries 8000"),
        (
            r#""real_time":{"burst":"2B","within":"1ms","rate":"8bit"}"#,
            "promise 2 bytes within 1 ms, the link carries 1",
        ),
        (r#""real_time":"0bit""#, "streams[0].real_time is \"0bit\": must be from 1bit to"),
        (
            r#""link_share":"fast""#,
            "streams[0].link_share is \"fast\": must be a number with a unit, such as 2mbit",
        ),
        (r#""link_share":{"m1":"1bit"}"#, "streams[0].link_share.d is missing"),
        (r#""link_share":5000000"#, "streams[0].link_share is 5000000: needs a unit: "),
        (r#""link_share":{"slope":1}"#, "streams[0].link_share: unknown field \"slope\""),
        (
            r#""link_share":{"m1_bits_per_s":1}"#,
            "streams[0].link_share: unknown field \"m1_bits_per_s\": write \"m1\": \"2mbit\"",
        ),
        (
            r#""link_share":{"burst":"2B","within":"0s","rate":"8bit"}"#,
            "streams[0].link_share: service curve with a burst of 2 bytes within 0 ns",
        ),
        (r#""upper_limit":"8bit""#, "streams[0].upper_limit is given without the link_share"),
        (
            r#""link_share":"8bit","background":true"#,
            "streams[0].link_share conflicts with background",
        ),
        (r#""class":"a""#, "streams[0].class is \"a\", but there are no classes"),
    ] {
        refused(&one(curves), &[part]);
    }
    let curve = stream(r#""real_time":"8bit""#);
    refused(&curve, &["streams[0].real_time applies only to hfsc"]);
    refused(&curve.replace("dwcs", "hfsc"), &["streams[0].real_time is a rate in bits, but slot"]);
    let two =
        r#"{"id":1,"size":"9B","real_time":"5kbit"},{"id":2,"size":"9B","real_time":"4kbit"}"#;
    refused(&hfsc("", two), &["streams[1].real_time and those before it exceed"]);
    assert!(read(&one(r#""real_time":"8kbit","link_share":"1bit","upper_limit":"9bit""#)).is_ok());
}

#[test]
fn classes_that_form_no_tree_are_refused() {
    let run = |classes: &str, class: &str| {
        hfsc(&format!(r#""classes":[{classes}],"#), &format!(r#"{{"id":1,"size":"9B",{class}}}"#))
    };
    let (a, b) =
        (r#"{"id":"a","link_share":"1bit"}"#, r#"{"id":"b","parent":"a","link_share":"1bit"}"#);
    let both = format!("{a},{b}");
    for (classes, class, part) in [
        ("", r#""class":"a""#, "classes is empty"),
        (&*both, r#""class":"a""#, "streams[0].class is \"a\", which has child classes"),
        (&both, r#""class":"c""#, "streams[0].class is \"c\", but no class has this id"),
        (&both, r#""priority":1"#, "streams[0].class is missing"),
        (
            &both,
            r#""class":"b","link_share":"1bit""#,
            "link_share applies only to hfsc, but the disc",
        ),
        (b, r#""class":"b""#, "classes[0].parent: class \"b\" has the parent \"a\""),
        (&format!("{a},{a}"), r#""class":"a""#, "classes[1].id is a, the same as classes[0].id"),
        (&b.replace("\"a\"", "\"b\""), r#""class":"b""#, "classes[0].parent: class \"b\" is below"),
        (
            &both.replacen("link", "real", 1).replacen("share", "time", 1),
            "",
            "classes[0].real_time",
        ),
        (
            &format!(r#"{{"id":"a","discipline":"edf","link_share":"1bit"}},{b}"#),
            "",
            "classes[0].discipline",
        ),
        (r#"{"id":"a"}"#, "", "classes[0]: class without a curve"),
        (
            r#"{"id":"a","real_time":"9kbit"}"#,
            r#""class":"a""#,
            "classes[0].real_time and those before it exceed",
        ),
    ] {
        let class = if class.is_empty() { r#""class":"b""# } else { class };
        refused(&run(classes, class), &[part]);
    }
    refused(
        &run(&both, r#""class":"b""#).replace("hfsc", "vds"),
        &["classes need the discipline hfsc"],
    );
    let mut deep = a.to_owned();
    for level in 0..16 {
        let above = if level == 0 { "a".to_owned() } else { format!("{}", level - 1) };
        deep.push_str(&format!(r#",{{"id":{level},"parent":"{above}","link_share":"1bit"}}"#));
    }
    refused(
        &run(&deep, r#""class":15"#),
        &["classes[16].parent", "at most 16 levels below the link"],
    );
    assert!(read(&run(&both, r#""class":"b""#)).is_ok());
}

/// Mutations per seed, and simulated steps per valid description.
const MUTATIONS: u64 = 400;
const STEPS: usize = 300;

/// Replaces two digits of the text, which mostly keeps it valid.
fn with_other_digits(seed: &[u8], number: usize) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    let digits: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
    for (place, digit) in [(number, b"0123456789"[number % 10]), (number * 7, b"91"[number % 2])] {
        if let Some(at) = digits.get(place % digits.len().max(1)) {
            bytes[*at] = digit;
        }
    }
    bytes
}

/// Arbitrary bytes are either a description that runs or an error.
#[test]
fn any_bytes_give_a_run_or_an_error() {
    let capacity = r#"{"discipline":"vds","capacity":"2mbit","duration":"60s",
        "options":{"segment":"1200B","eligibility":"shared"},"streams":[{"id":"a","size":["20kB","6kB"],
        "arrivals":{"every":"66666667ns","first":"5ns"},"period":"66666667ns","deadline":"200ms",
        "loss":"1/10","jitter":"7ns"},{"id":2,"size":"99B","arrivals":["1ns","2ns","3ns"],"priority":3,
        "police":"leaky:99B,10kbit else delay"},
        {"id":3,"background":true,"size":"64kB","rate":"72bit"}]}"#;
    let many =
        with(&format!(r#"{A},{{"id":7,"period":"1us","loss":"0/0","droppable":false}}"#), "");
    let seeds: [&[u8]; 3] = [capacity.as_bytes(), many.as_bytes(), b"{\"streams\":[[{}]]}"];
    let (mut number, mut ran) = (0, 0);
    for seed in seeds {
        for _ in 0..MUTATIONS {
            number += 1;
            let other = seeds[usize::try_from(number).unwrap() % seeds.len()];
            let place = usize::try_from(number / 2).unwrap();
            let bytes = match number % 2 {
                0 => mutate(seed, other, &mut Xorshift::new(number)),
                _ => with_other_digits(seed, place),
            };
            let Ok(plan) = input::read(bytes.as_slice()) else { continue };
            let doubts = Doubt::all(&plan.setup, &plan.streams);
            assert!(doubts.iter().all(|doubt| !doubt.to_string().is_empty()));
            let steps = Timeline::new(plan.setup, plan.streams).take(STEPS);
            ran += steps.filter(|step| matches!(step, Step::Decided(_))).count();
        }
    }
    assert!(ran > 1_000, "only {ran} decisions: the mutations break everything");
}
