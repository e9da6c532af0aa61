//! Expressions of hostile observers at their limits.

use crate::net::{Net, Random, about, fast, intruder, ms};
use paceline_objects::packet::Packet;
use paceline_objects::participant::{ParticipantSettings, WorldEvent};
use paceline_objects::semantic::{
    DeclaredFunction, DeclaredRule, ExchangeTerms, FieldSource, PairFacts, PairView,
    SemanticFunction,
};
use paceline_objects::{FieldValue, Interest, InterestRule, ObjectIndex, PeerId};
use paceline_sched::Duration;

/// Values at the ends of their ranges.
struct Extreme {
    text: FieldValue,
    bytes: FieldValue,
}

impl FieldSource for Extreme {
    fn field(&self, _object: ObjectIndex, name: &str) -> Option<&FieldValue> {
        const LEAST: FieldValue = FieldValue::Int(i64::MIN);
        const MOST: FieldValue = FieldValue::Int(i64::MAX);
        const LARGE: FieldValue = FieldValue::Float(f64::MAX);
        const TRUE: FieldValue = FieldValue::Bool(true);
        match name {
            "least" => Some(&LEAST),
            "most" => Some(&MOST),
            "large" => Some(&LARGE),
            "alarm" => Some(&TRUE),
            "text" => Some(&self.text),
            "bytes" => Some(&self.bytes),
            _ => None,
        }
    }
}

const PARTS: [&str; 22] = [
    "distance",
    "angle",
    "error",
    "speed",
    "age",
    "interested",
    "object.least",
    "object.most",
    "object.large",
    "object.alarm",
    "object.text",
    "object.bytes",
    "object.missing",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "18446744073709551615u",
    "0.0",
    "1e308",
    "'ü'",
    "b'\\xff'",
];
const OPERATORS: [&str; 13] =
    ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"];
const FUNCTIONS: [&str; 7] = ["size", "int", "double", "string", "-", "!", "-(-"];
const METHODS: [&str; 3] = ["contains", "startsWith", "endsWith"];

/// Returns a random expression.
fn expression(random: &mut Random, depth: usize) -> String {
    let part = |random: &mut Random| expression(random, depth.saturating_sub(1));
    match if depth == 0 { 0 } else { random.below(6) } {
        0 | 1 => PARTS[random.below(PARTS.len())].to_owned(),
        2 | 3 => {
            let (left, right) = (part(random), part(random));
            format!("({left} {} {right})", OPERATORS[random.below(OPERATORS.len())])
        }
        4 => {
            let function = FUNCTIONS[random.below(FUNCTIONS.len())];
            let ends = if function == "-(-" { "))" } else { ")" };
            format!("{function}({}{ends}", part(random))
        }
        _ if random.below(2) == 0 => {
            format!("({} ? {} : {})", part(random), part(random), part(random))
        }
        _ => {
            let (target, text) = (part(random), part(random));
            format!("({target}).{}({text})", METHODS[random.below(METHODS.len())])
        }
    }
}

/// Compiles and evaluates random expressions. Any result is good, except for a panic.
fn evaluate(seed: u64, count: usize) -> usize {
    let fields = Extreme {
        text: "x".repeat(1_024).as_str().into(),
        bytes: FieldValue::Bytes(vec![0xff; 1_024].into()),
    };
    let facts = PairFacts {
        object: ObjectIndex(1),
        distance: Some(f64::MAX),
        angle: Some(0.5),
        error: f64::INFINITY,
        speed: 0.0,
        age: Some(Duration::from_nanos(u64::MAX)),
        terms: None,
    };
    let mut random = Random(seed | 1);
    let mut evaluated = 0;
    for _ in 0..count {
        let mut rule = DeclaredRule::default();
        for part in [
            &mut rule.whom,
            &mut rule.every,
            &mut rule.fidelity,
            &mut rule.tolerance,
            &mut rule.weight,
        ] {
            if random.below(3) == 0 {
                *part = Some(expression(&mut random, 4));
            }
        }
        let Ok(mut function) = DeclaredFunction::new(&rule, ExchangeTerms::every(ms(50))) else {
            continue;
        };
        evaluated += 1;
        let pair = PairView { peer: PeerId(1), facts: &facts, fields: &fields };
        if let Ok(Some(terms)) = function.decide(&pair) {
            terms.check().expect("terms in range");
        }
    }
    evaluated
}

#[test]
fn no_expression_panics_or_returns_terms_out_of_range() {
    let evaluated = evaluate(7, 3_000);
    assert!(evaluated > 1_000, "{evaluated} expressions");
}

#[test]
#[ignore = "takes minutes: cargo xtask long"]
fn a_thousand_runs_of_expressions_never_panic() {
    (0..1_000).for_each(|seed| {
        evaluate(seed * 7_919 + 1, 250);
    });
}

/// Returns the description of an observer with an expression.
fn observer(number: u64, whom: &str) -> Packet {
    let rule = DeclaredRule { whom: Some(whom.to_owned()), ..DeclaredRule::default() };
    let rule = InterestRule::Declared { rule, base: ExchangeTerms::every(ms(50)) };
    let mut description = about(intruder(number), 1, Vec::new());
    description.interest = Some(Interest { rule, ..fast() });
    Packet::PeerDescription(description)
}

#[test]
fn expressions_beyond_a_limit_are_refused_when_they_arrive() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    net.observe_all();
    net.create(0, "car/1", "red");
    net.run(ms(500));
    let beyond = [
        format!("{}true{}", "(".repeat(200), ")".repeat(200)),
        format!("true{}", "||true".repeat(84)),
        format!("distance < 1.0 {}|| true", " ".repeat(500)),
        format!("size(object.paint{}) > 1", " + object.paint".repeat(16)),
        "[1, 2].all(x, x > 0)".to_owned(),
    ];
    for (number, text) in beyond.iter().enumerate() {
        net.hostile(&observer(number as u64, text));
    }
    net.run(ms(100));
    assert_eq!(net.peers[0].counts().wrong, beyond.len() as u64);
    assert_eq!(net.peers[0].peers().count(), 1);
    // At the limits, and with a failure at each evaluation.
    let at_limit = [
        format!("true{}", "||true".repeat(60)),
        format!("size(object.paint{}) > 1", " + object.paint".repeat(15)),
        "object.missing > 1".to_owned(),
        "1 / 0 > 1".to_owned(),
        "9223372036854775807 + 1 > 0".to_owned(),
    ];
    for (number, text) in at_limit.iter().enumerate() {
        net.hostile(&observer(number as u64, text));
        net.run(ms(50));
    }
    net.run(ms(1_000));
    assert_eq!(net.peers[0].peers().count(), 6);
    let disabled = |event: &&WorldEvent| matches!(event, WorldEvent::Disabled(..));
    assert_eq!(net.events[0].iter().filter(disabled).count(), 3);
    net.check("car/1", 0, "red");
}
