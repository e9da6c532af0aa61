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
        r#"{{"discipline":"dwcs","slot_ns":1000,"duration_ns":100000,"options":{{{options}}},
        "streams":[{streams}]}}"#
    )
}

const A: &str = r#"{"id":"A","period_ns":2000,"loss":"1/2"}"#;

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
fn what_is_not_said_has_a_default() {
    let plan = read(&with(A, "")).unwrap();
    assert_eq!(plan.setup.ahead, Ahead::Waits);
    assert_eq!((plan.setup.policy, plan.setup.segment), (Policy::DWCS, u32::MAX));
    let contract = plan.streams[0].terms.contract().unwrap();
    assert_eq!((contract.deadline, contract.jitter), (Duration::from_nanos(2_000), Duration::ZERO));
    assert_eq!(plan.streams[0].arrivals, Arrivals::Backlogged);
    let null = read(&stream(r#""period_ns":null,"loss":null"#)).unwrap();
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
    assert_eq!(arrivals("[0,5,5,1000000000000000000]"), Ok(Arrivals::At(listed.to_vec())));
    assert_eq!(arrivals("[]"), Ok(Arrivals::At(vec![])));
    let (first, every) = (Instant::from_nanos(3), Duration::from_nanos(7));
    let regular = Arrivals::Every { first, every, count: 9 };
    assert_eq!(arrivals(r#"{"every_ns":7,"first_ns":3,"count":9}"#), Ok(regular));
    let error = arrivals("[3,7,5]").unwrap_err();
    assert!(error.starts_with("streams[0].arrivals[2] is 5, before the 7 of"), "{error}");
    for (wrong, part) in [
        ("7", "streams[0].arrivals is 7: must be \"backlogged\", a list of instants"),
        ("\"now\"", "streams[0].arrivals is \"now\""),
        (
            "[-1]",
            "streams[0].arrivals[0] is -1: must be a whole number from 0 to 1000000000000000000",
        ),
        ("[1.5]", "streams[0].arrivals[0] is 1.5"),
        ("[\"1\"]", "streams[0].arrivals[0] is \"1\""),
        ("[1000000000000000001]", "streams[0].arrivals[0] is 1000000000000000001"),
        ("{}", "streams[0].arrivals.every_ns is missing"),
        ("{\"every_ns\":0}", "streams[0].arrivals.every_ns is 0: must be a whole number from 1"),
        (
            "{\"each_ns\":1}",
            "streams[0].arrivals: unknown field \"each_ns\": the fields are every_ns",
        ),
    ] {
        assert!(arrivals(wrong).unwrap_err().contains(part), "{wrong}: {:?}", arrivals(wrong));
    }
}

#[test]
fn contracts_that_cannot_be_are_refused_by_name() {
    for (fields, parts) in [
        (
            r#""period_ns":1000,"loss":"3/2""#,
            &["streams[0].loss is \"3/2\"", "x must be from 0 to y"][..],
        ),
        (r#""period_ns":1000,"loss":"1/0""#, &["streams[0].loss is \"1/0\"", "y at least 1"]),
        (r#""period_ns":1000,"loss":"1/2000000""#, &["streams[0].loss", "at most 1048575 samples"]),
        (
            r#""period_ns":1000,"loss":"half""#,
            &["streams[0].loss is \"half\"", "whole numbers x/y"],
        ),
        (
            r#""period_ns":1000,"loss":"-1/2""#,
            &["streams[0].loss is \"-1/2\"", "whole numbers x/y"],
        ),
        (r#""period_ns":1000,"loss":0.5"#, &["streams[0].loss is 0.5: must be text"]),
        (r#""period_ns":0"#, &["streams[0].period_ns is 0: must be a whole number from 1 to"]),
        (r#""period_ns":-5"#, &["streams[0].period_ns is -5"]),
        (r#""period_ns":1.5"#, &["streams[0].period_ns is 1.5"]),
        (r#""period_ns":1e30"#, &["streams[0].period_ns is 1e+30", "1000000 is 1 ms"]),
        (r#""period_ns":18446744073709551615"#, &["is 18446744073709551615: must be"]),
        (
            r#""period_ns":18446744073709551616"#,
            &["streams[0].period_ns is 1.8446744073709552e+19"],
        ),
        (r#""period_ns":"1000""#, &["streams[0].period_ns is \"1000\""]),
        (r#""period_ns":[1]"#, &["streams[0].period_ns is a list"]),
        (r#""period_ns":1000,"deadline_ns":0"#, &["streams[0].deadline_ns is 0"]),
        (
            r#""period_ns":2000,"deadline_ns":999"#,
            &["streams[0].deadline_ns is 999: must be at least 1000", "give a longer deadline"],
        ),
        (r#""period_ns":500"#, &["streams[0].deadline_ns is 500: must be at least 1000"]),
        (
            r#""deadline_ns":1000"#,
            &["streams[0].deadline_ns is part of a contract", "no period_ns"],
        ),
        (r#""loss":"1/2""#, &["streams[0].loss is part of a contract"]),
        (r#""period_ns":1000,"background":true"#, &["streams[0].background is true beside"]),
        (
            r#""period_ns":1000,"droppable":1"#,
            &["streams[0].droppable is 1: must be true or false"],
        ),
        (r#""priority":4294967296"#, &["streams[0].priority is 4294967296", "to 4294967295"]),
        (r#""rate_bytes_per_s":0"#, &["streams[0].rate_bytes_per_s is 0"]),
        (r#""size":0"#, &["streams[0].size is 0: must be a whole number from 1 to 4294967295"]),
        (r#""size":[]"#, &["streams[0].size is an empty list"]),
        (r#""police":"leaky:1B""#, &["streams[0].police is \"leaky:1B\""]),
        (r#""police":"leaky:9B,9mbit else drop""#, &["streams[0].police is beside backlogged"]),
        (r#""size":[7,0]"#, &["streams[0].size[1] is 0"]),
    ] {
        refused(&stream(fields), parts);
    }
    assert!(read(&stream(r#""period_ns":1000,"loss":"0/0""#)).is_ok(), "deadlines alone");
    for action in ["drop", "delay", "demote"] {
        let police = format!(r#""arrivals":[],"police":"leaky:9B,9mbit else {action}""#);
        assert!(read(&stream(&police)).is_ok(), "{action}");
    }
    let bytes = r#"{"discipline":"vds","capacity_bytes_per_s":1000,"duration_ns":1,"streams":[
        {"id":1,"size":[10,100],"period_ns":1000000000,"deadline_ns":99999999}]}"#;
    refused(
        bytes,
        &["streams[0].deadline_ns is 99999999: must be at least 100000000", "of 100 bytes"],
    );
    refused(&bytes.replace(r#""size":[10,100],"#, ""), &["streams[0].size is missing"]);
}

#[test]
fn fields_are_known_there_and_there_once() {
    refused(
        &stream(r#""colour":"red""#),
        &["streams[0]: unknown field \"colour\": the fields are id,"],
    );
    refused(&stream(r#""id":"B""#), &["streams[0].id is there twice: keep one"]);
    refused(&with(A, r#""colour":1"#), &["options: unknown field \"colour\"", "segment_bytes"]);
    let known = with(A, "");
    refused(
        &known.replace("slot_ns", "slot"),
        &["unknown field \"slot\": the fields are discipline"],
    );
    refused(&known.replace("slot_ns", "duration_ns"), &["duration_ns is there twice"]);
    refused(
        &known.replace(r#""options""#, r#""streams":[],"options""#),
        &["streams is there twice"],
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
    refused(
        &known.replace(r#""slot_ns":1000,"#, ""),
        &["capacity_bytes_per_s and slot_ns are missing"],
    );
    let both = known.replace(r#""slot_ns""#, r#""capacity_bytes_per_s":1,"slot_ns""#);
    refused(&both, &["are both there: give one of them"]);
    refused(
        &both.replace(":1,", ":0,"),
        &["capacity_bytes_per_s is 0: must be a whole number from 1"],
    );
    refused(&known.replace("100000", "0"), &["duration_ns is 0"]);
    refused(
        &known.replace("100000", "1000000000000000001"),
        &["duration_ns is 1000000000000000001"],
    );
    refused(&known.replace("100000", "NaN"), &["expected value at line 1"]);
    refused(&known.replace("1000,", "0,"), &["slot_ns is 0"]);
    refused(&format!("{known} x"), &["trailing characters"]);
    refused("[]", &["an object with discipline, duration_ns and streams"]);
    refused(&"[".repeat(100_000), &["invalid type"]);
    refused(&stream(&format!(r#""size":{}"#, "[".repeat(100_000))), &["recursion limit"]);
}

#[test]
fn options_belong_to_the_discipline() {
    for (options, part) in [
        (r#""ordering":"newest""#, "options.ordering is \"newest\": must be later or original"),
        (r#""adjustment":7"#, "options.adjustment is 7: must be text"),
        (r#""eligibility":"always""#, "options.eligibility is \"always\": must be once-per-period"),
        (r#""segment_bytes":0"#, "options.segment_bytes is 0: must be a whole number from 1"),
    ] {
        refused(&with(A, options), &[part]);
    }
    let vds = with(A, r#""ordering":"N""#).replace("dwcs", "vds");
    refused(&vds, &["options.ordering is a choice of dwcs, and the discipline is vds"]);
    refused(&with(A, "").replace("{}", "3"), &["options is 3: must be an object with the fields"]);
}

#[test]
fn streams_are_some_and_have_names_of_their_own() {
    refused(&with("", ""), &["streams is empty: must be a list of 1 to 4194304 streams"]);
    refused(&with("7", ""), &["streams[0] is 7: must be an object"]);
    refused(&with(&format!("{A},{A}"), ""), &["streams[1].id is A, as that of streams[0]"]);
    refused(&with(r#"{"id":1},{"id":"1"}"#, ""), &["streams[1].id is 1, as that of streams[0]"]);
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
        r#"{{"discipline":"hfsc","capacity_bytes_per_s":1000,"duration_ns":1000,{classes}"streams":[{streams}]}}"#
    )
}

#[test]
fn curves_that_cannot_be_are_refused_by_name() {
    let one = |curves: &str| hfsc("", &format!(r#"{{"id":1,"size":9,{curves}}}"#));
    for (curves, part) in [
        (r#""real_time":8001"#, "streams[0].real_time is too much for the link, with those before"),
        (r#""real_time":8001"#, "promise 8001 bit/s in the long run, the link carries 8000"),
        (
            r#""real_time":{"burst_bytes":2,"within_ns":1000000,"rate_bits_per_s":8}"#,
            "promise 2 bytes within 1 ms, the link carries 1",
        ),
        (r#""real_time":0"#, "streams[0].real_time is 0: must be a whole number from 1"),
        (r#""link_share":"fast""#, "streams[0].link_share is \"fast\": must be a number of bits"),
        (r#""link_share":{"m1_bits_per_s":1}"#, "streams[0].link_share.d_ns is missing"),
        (r#""link_share":{"rate":1}"#, "streams[0].link_share: unknown field \"rate\""),
        (
            r#""link_share":{"burst_bytes":2,"within_ns":0,"rate_bits_per_s":8}"#,
            "streams[0].link_share: service curve with a burst of 2 bytes within 0 ns",
        ),
        (r#""upper_limit":8"#, "streams[0].upper_limit is there without a link_share"),
        (r#""link_share":8,"background":true"#, "streams[0].link_share is beside background"),
        (r#""class":"a""#, "streams[0].class is \"a\", and there are no classes"),
    ] {
        refused(&one(curves), &[part]);
    }
    let curve = stream(r#""real_time":8"#);
    refused(&curve, &["streams[0].real_time is a choice of hfsc"]);
    refused(&curve.replace("dwcs", "hfsc"), &["streams[0].real_time promises bits, and slot_ns"]);
    let two = r#"{"id":1,"size":9,"real_time":5000},{"id":2,"size":9,"real_time":4000}"#;
    refused(&hfsc("", two), &["streams[1].real_time is too much"]);
    assert!(read(&one(r#""real_time":8000,"link_share":1,"upper_limit":9"#)).is_ok());
}

#[test]
fn classes_that_are_no_tree_are_refused_by_name() {
    let run = |classes: &str, class: &str| {
        hfsc(&format!(r#""classes":[{classes}],"#), &format!(r#"{{"id":1,"size":9,{class}}}"#))
    };
    let (a, b) = (r#"{"id":"a","link_share":1}"#, r#"{"id":"b","parent":"a","link_share":1}"#);
    let both = format!("{a},{b}");
    for (classes, class, part) in [
        ("", r#""class":"a""#, "classes is empty"),
        (&*both, r#""class":"a""#, "streams[0].class is \"a\", which has classes below it"),
        (&both, r#""class":"c""#, "streams[0].class is \"c\", and there is no such class"),
        (&both, r#""priority":1"#, "streams[0].class is missing"),
        (&both, r#""class":"b","link_share":1"#, "link_share is a choice of hfsc, and its disc"),
        (b, r#""class":"b""#, "classes[0].parent: class \"b\" has the parent \"a\""),
        (&format!("{a},{a}"), r#""class":"a""#, "classes[1].id is a, as that of classes[0]"),
        (&b.replace("\"a\"", "\"b\""), r#""class":"b""#, "classes[0].parent: class \"b\" is below"),
        (
            &both.replacen("link", "real", 1).replacen("share", "time", 1),
            "",
            "classes[0].real_time",
        ),
        (
            &format!(r#"{{"id":"a","discipline":"edf","link_share":1}},{b}"#),
            "",
            "classes[0].discipline",
        ),
        (r#"{"id":"a"}"#, "", "classes[0]: class without a curve"),
        (r#"{"id":"a","real_time":9000}"#, r#""class":"a""#, "classes[0].real_time is too much"),
    ] {
        let class = if class.is_empty() { r#""class":"b""# } else { class };
        refused(&run(classes, class), &[part]);
    }
    refused(
        &run(&both, r#""class":"b""#).replace("hfsc", "vds"),
        &["classes share the link by hfsc"],
    );
    let mut deep = a.to_owned();
    for level in 0..16 {
        let above = if level == 0 { "a".to_owned() } else { format!("{}", level - 1) };
        deep.push_str(&format!(r#",{{"id":{level},"parent":"{above}","link_share":1}}"#));
    }
    refused(&run(&deep, r#""class":15"#), &["classes[16].parent", "more than 16 below the link"]);
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
fn any_bytes_are_a_run_or_an_error() {
    let capacity = r#"{"discipline":"vds","capacity_bytes_per_s":250000,"duration_ns":60000000000,
        "options":{"segment_bytes":1200,"eligibility":"shared"},"streams":[{"id":"a","size":[20000,6000],
        "arrivals":{"every_ns":66666667,"first_ns":5},"period_ns":66666667,"deadline_ns":200000000,
        "loss":"1/10","jitter_ns":7},{"id":2,"size":99,"arrivals":[1,2,3],"priority":3,
        "police":"leaky:99B,10kbit else delay"},
        {"id":3,"background":true,"size":64000,"rate_bytes_per_s":9}]}"#;
    let many =
        with(&format!(r#"{A},{{"id":7,"period_ns":1000,"loss":"0/0","droppable":false}}"#), "");
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
