//! The semantic functions, and the functions and terms that are refused.

use paceline_objects::semantic::{
    Both, DeclaredError, DeclaredFunction, DeclaredRule, DistanceLadder, DistanceStep,
    EvaluationBatch, ExchangeTerms, FieldOfView, FieldSource, LadderError, PairFacts, PairView,
    Periodic, SemanticError, SemanticFunction, TermsError,
};
use paceline_objects::{FieldValue, ObjectIndex, PeerId};
use paceline_sched::{Duration, Instant};

const FACTS: PairFacts = PairFacts {
    object: ObjectIndex(1),
    distance: Some(10.0),
    angle: Some(0.5),
    error: 2.0,
    speed: 3.0,
    age: Some(Duration::from_millis(250)),
    terms: None,
};

struct Car;

impl FieldSource for Car {
    fn field(&self, _object: ObjectIndex, name: &str) -> Option<&FieldValue> {
        const ALARM: FieldValue = FieldValue::Bool(true);
        const LANES: FieldValue = FieldValue::Int(4);
        const PLACE: FieldValue = FieldValue::Vector([1.0, 2.0, 3.0]);
        match name {
            "alarm" => Some(&ALARM),
            "lanes" => Some(&LANES),
            "position" => Some(&PLACE),
            _ => None,
        }
    }
}

fn every(millis: u64) -> ExchangeTerms {
    ExchangeTerms::every(Duration::from_millis(millis))
}

fn decide(function: &mut dyn SemanticFunction, facts: &PairFacts) -> Option<ExchangeTerms> {
    function.decide(&PairView { peer: PeerId(9), facts, fields: &Car }).expect("it decides")
}

fn at(distance: f64, terms: Option<ExchangeTerms>) -> PairFacts {
    PairFacts { distance: Some(distance), terms, ..FACTS }
}

#[test]
fn a_ladder_changes_to_a_farther_step_only_beyond_its_border() {
    let step = |within, millis| DistanceStep { within, terms: every(millis) };
    let mut ladder = DistanceLadder::new(vec![step(10.0, 50), step(100.0, 500)]).unwrap();
    assert_eq!(decide(&mut ladder, &at(10.0, None)), Some(every(50)));
    assert_eq!(decide(&mut ladder, &at(10.5, None)), Some(every(500)));
    assert_eq!(decide(&mut ladder, &at(10.5, Some(every(50)))), Some(every(50)));
    assert_eq!(decide(&mut ladder, &at(11.1, Some(every(50)))), Some(every(500)));
    assert_eq!(decide(&mut ladder, &at(105.0, Some(every(500)))), Some(every(500)));
    assert_eq!(decide(&mut ladder, &at(105.0, None)), None);
    assert_eq!(decide(&mut ladder, &at(111.0, Some(every(500)))), None);
    assert_eq!(decide(&mut ladder, &PairFacts { distance: None, ..FACTS }), Some(every(50)));
}

#[test]
fn a_ladder_refuses_borders_that_do_not_ascend() {
    let step = |within| DistanceStep { within, terms: every(50) };
    assert_eq!(DistanceLadder::new(vec![]), Err(LadderError::Empty));
    let error = DistanceLadder::new(vec![step(5.0), step(5.0)]).unwrap_err();
    assert_eq!(error, LadderError::Border { within: 5.0, before: 5.0 });
    assert!(DistanceLadder::new(vec![step(f64::NAN)]).is_err());
    assert!(DistanceLadder::new(vec![step(f64::INFINITY)]).is_err());
}

#[test]
fn both_functions_have_to_agree_and_the_less_demanding_terms_hold() {
    let near = DistanceLadder::new(vec![DistanceStep { within: 20.0, terms: every(50) }]).unwrap();
    let mut both = Both(near, Periodic(every(200).weight(3.0)));
    assert_eq!(decide(&mut both, &at(10.0, None)), Some(every(200)));
    assert_eq!(decide(&mut both, &at(30.0, None)), None);
}

#[test]
fn objects_out_of_view_get_other_terms() {
    let mut view =
        FieldOfView { half_angle: 1.0, inside: Periodic(every(50)), outside: Some(every(900)) };
    let looking = |angle, terms| PairFacts { angle: Some(angle), terms, ..FACTS };
    assert_eq!(decide(&mut view, &looking(1.0, None)), Some(every(50)));
    assert_eq!(decide(&mut view, &looking(1.05, Some(every(900)))), Some(every(900)));
    assert_eq!(decide(&mut view, &looking(1.05, Some(every(50)))), Some(every(50)));
    assert_eq!(decide(&mut view, &looking(1.2, Some(every(50)))), Some(every(900)));
    assert_eq!(decide(&mut view, &PairFacts { angle: None, ..FACTS }), Some(every(50)));
}

fn declared(rule: &str) -> Result<Option<ExchangeTerms>, SemanticError> {
    let rule: DeclaredRule = rule.parse()?;
    let mut function = DeclaredFunction::new(&rule, every(400))?;
    function.decide(&PairView { peer: PeerId(9), facts: &FACTS, fields: &Car })
}

#[test]
fn a_declared_function_uses_the_pair_and_the_fields() {
    assert_eq!(declared(""), Ok(Some(every(400))));
    assert_eq!(declared("whom: distance > 50.0"), Ok(None));
    assert_eq!(declared("whom: object.alarm && object.lanes == 4"), Ok(Some(every(400))));
    assert_eq!(declared("whom: object.position.y < 2.0"), Ok(None));
    assert_eq!(declared("whom: interested"), Ok(None));
    let terms =
        declared("every: error > 1.0 ? 0.05 : 1.0\nfidelity: 0.4999\nweight: speed\ntolerance: 2")
            .unwrap();
    let expected = ExchangeTerms { gap: Duration::from_millis(50), ..every(400) };
    assert_eq!(terms, Some(expected.fidelity(500).weight(3.0).tolerance(2.0)));
    let slow = declared("every: 3600").unwrap().unwrap();
    assert_eq!((slow.gap, slow.refresh), (Duration::from_secs(3_600), Duration::from_secs(3_600)));
}

#[test]
fn terms_out_of_range_are_named() {
    for every in ["0.0 / 0.0", "-1.0", "0", "0.0001", "3601", "1.0 / 0.0"] {
        let error = declared(&format!("every: {every}")).unwrap_err();
        assert!(matches!(error, SemanticError::Declared(DeclaredError::Every(_))), "{error}");
    }
    for fidelity in ["0.0 / 0.0", "-0.1", "0", "1.01"] {
        let error = declared(&format!("fidelity: {fidelity}")).unwrap_err();
        assert!(matches!(error, SemanticError::Declared(DeclaredError::Fidelity(_))), "{error}");
    }
    for weight in ["0.0 / 0.0", "-1", "0", "1e10", "1.0 / 0.0"] {
        let error = declared(&format!("weight: {weight}")).unwrap_err();
        assert!(matches!(error, SemanticError::Terms(TermsError::Weight(_))), "{error}");
    }
}

#[test]
fn expressions_of_unbounded_cost_are_refused() {
    let refused = |text: &str| declared(&format!("whom: {text}")).unwrap_err().to_string();
    assert!(refused("[1, 2].all(x, x > 0)").contains("is not permitted"));
    assert!(refused("size([1, 2].map(x, x * 2)) == 2").contains("is not permitted"));
    assert!(refused("size({1: true}) == 1").contains("is not permitted"));
    assert!(refused("has(object.alarm)").contains("is not permitted"));
    assert!(refused("matches(object.name, '(a+)+')").contains("no function \"matches\""));
    assert!(refused("position == 1").contains("no variable \"position\""));
    assert!(refused("other.field").contains("no variable \"other.field\""));
    assert!(refused(&"!".repeat(500)).starts_with("whom: "));
    assert!(refused(&format!("{}true{}", "(".repeat(200), ")".repeat(200))).starts_with("whom: "));
    assert!(refused(&format!("true{}", "||true".repeat(84))).contains("more than 128 parts"));
    assert!(
        refused(&format!("true||{}", "true||true".repeat(60))).contains("must be from 1 to 512")
    );
    assert!(refused("").contains("must be from 1 to 512"));
    assert!(refused("distance <").starts_with("whom: "));
}

#[test]
fn failures_of_an_evaluation_name_the_part() {
    let failed = |rule: &str| declared(rule).unwrap_err().to_string();
    assert!(
        failed("whom: object.missing > 1").contains("object"),
        "{}",
        failed("whom: object.missing > 1")
    );
    assert_eq!(failed("whom: 1"), "whom: must be a bool, such as distance < 100.0");
    assert_eq!(failed("weight: 'much'"), "weight: must be a number, such as 0.1");
    assert!(failed("whom: 1 / 0 == 1").starts_with("whom: "));
    assert!(failed("when: true").contains("\"when\""));
}

#[test]
fn a_batch_refuses_terms_that_are_not_in_range() {
    let batch =
        EvaluationBatch { peer: PeerId(1), number: 1, at: Instant::ZERO, pairs: vec![FACTS] };
    for wrong in [
        every(50).weight(f64::NAN),
        every(50).weight(-1.0),
        every(50).tolerance(-1.0),
        every(50).tolerance(f64::NAN),
        every(50).fidelity(1_001),
        ExchangeTerms { gap: Duration::ZERO, ..every(50) },
        ExchangeTerms { refresh: Duration::from_millis(10), ..every(50) },
    ] {
        let decided = batch.decide(&mut |_: &PairView<'_>| Some(wrong), &());
        assert!(matches!(decided, Err(SemanticError::Terms(_))), "{wrong:?}");
    }
}

#[test]
fn a_rule_that_fails_inside_another_is_reported() {
    let rule: DeclaredRule = "every: 0.0 / 0.0".parse().unwrap();
    let inside = || DeclaredFunction::new(&rule, every(50)).unwrap();
    let mut view = FieldOfView { half_angle: 1.0, inside: inside(), outside: None };
    let mut both = Both(Periodic(every(50)), inside());
    let pair = PairView { peer: PeerId(9), facts: &FACTS, fields: &Car };
    assert!(view.decide(&pair).is_err());
    assert!(both.decide(&pair).is_err());
}
