//! Semantic functions in the Common Expression Language (CEL), which travel to the owner of an object as text.

mod compile;
mod facts;

use super::terms::{ExchangeTerms, TermsError};
use super::{PairView, SemanticError, SemanticFunction};
use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelDouble, CelInt, CelUInt};
use cel::common::value::CowVal;
use cel::{Context, Env, ExecutionError, Value};
use facts::Facts;
use paceline_sched::Duration;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};
use thiserror::Error;

/// The expressions of a declared semantic function, each optional.
///
/// They may use the variables `distance`, `error` (units of the world), `angle` (radians), `speed` (units per second)
/// and `age` (seconds since the last exchange, 3600 if there was none), `interested` (whether there is interest at
/// present), and the fields of the object, such as `object.paint`; components of a vector are `object.position.x`,
/// `.y` and `.z`. Distance and angle are 0 for objects without a position. Their cost is bounded: each has at most
/// [`Self::TEXT_MAX`] bytes and no lists, maps or comprehensions.
///
/// ```
/// use paceline_objects::semantic::DeclaredRule;
///
/// let rule: DeclaredRule = "whom: distance < 500.0 || object.alarm\nevery: distance < 50.0 ? 0.05 : 0.5".parse()?;
/// assert_eq!(rule.whom.as_deref(), Some("distance < 500.0 || object.alarm"));
/// assert_eq!(rule.to_string().parse::<DeclaredRule>()?, rule);
/// # Ok::<(), paceline_objects::semantic::DeclaredError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeclaredRule {
    /// Whether the observer has interest: a bool. Without it, in all objects in range.
    pub whom: Option<String>,
    /// The least time between two updates: a number of seconds from 0.001 to 3600.
    pub every: Option<String>,
    /// The least share of the state that an update carries: a number more than 0, at most 1.
    pub fidelity: Option<String>,
    /// The error up to which no update of the position is needed: a number from 0.
    pub tolerance: Option<String>,
    /// The importance: a number more than 0, at most 1e9.
    pub weight: Option<String>,
}

impl DeclaredRule {
    /// The greatest length of an expression in bytes.
    pub const TEXT_MAX: usize = 512;

    /// Returns the bytes of memory that the compiled expressions use: each byte of a text is one part at most.
    pub(crate) fn memory_bytes(&self) -> usize {
        let text = |text: &String| text.len() + compile::NODES_MAX.min(text.len()) * 256;
        self.parts().into_iter().filter_map(|(_, part)| part.map(text)).sum()
    }

    fn parts(&self) -> [(&'static str, Option<&String>); 5] {
        [
            ("whom", self.whom.as_ref()),
            ("every", self.every.as_ref()),
            ("fidelity", self.fidelity.as_ref()),
            ("tolerance", self.tolerance.as_ref()),
            ("weight", self.weight.as_ref()),
        ]
    }
}

impl fmt::Display for DeclaredRule {
    /// Writes a line `name: expression` for each expression.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in self.parts() {
            if let Some(text) = text {
                writeln!(f, "{name}: {text}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for DeclaredRule {
    type Err = DeclaredError;

    /// Reads the form that [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, DeclaredError> {
        let mut rule = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (name, expression) = line.split_once(':').unwrap_or((line, ""));
            let part = match name.trim() {
                "whom" => &mut rule.whom,
                "every" => &mut rule.every,
                "fidelity" => &mut rule.fidelity,
                "tolerance" => &mut rule.tolerance,
                "weight" => &mut rule.weight,
                other => return Err(DeclaredError::Part(other.chars().take(64).collect())),
            };
            *part = Some(expression.trim().to_owned());
        }
        Ok(rule)
    }
}

/// The functions that expressions may use, the same for all observers.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::default().with_stdlib()));

/// A declared semantic function.
pub struct DeclaredFunction {
    env: Arc<Env>,
    base: ExchangeTerms,
    whom: Option<IdedExpr>,
    every: Option<IdedExpr>,
    fidelity: Option<IdedExpr>,
    tolerance: Option<IdedExpr>,
    weight: Option<IdedExpr>,
}

impl DeclaredFunction {
    /// Compiles a rule. Terms without an expression are those of `base`.
    ///
    /// # Errors
    /// The first expression that is too long, wrong, or uses a construct that is not permitted.
    pub fn new(rule: &DeclaredRule, base: ExchangeTerms) -> Result<Self, DeclaredError> {
        let compile = |part, text: &Option<String>| {
            text.as_deref().map(|text| compile::compile(part, text)).transpose()
        };
        Ok(Self {
            env: Arc::clone(&ENV),
            base,
            whom: compile("whom", &rule.whom)?,
            every: compile("every", &rule.every)?,
            fidelity: compile("fidelity", &rule.fidelity)?,
            tolerance: compile("tolerance", &rule.tolerance)?,
            weight: compile("weight", &rule.weight)?,
        })
    }

    fn terms(&self, facts: &Facts<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        let mut context = Context::with_env(Arc::clone(&self.env));
        context.set_variable_resolver(facts);
        let mut terms = self.base;
        if let Some(whom) = &self.whom
            && !truth("whom", whom, &context)?
        {
            return Ok(None);
        }
        if let Some(every) = &self.every {
            terms.gap = gap(number("every", every, &context)?)?;
            terms.refresh = terms.refresh.max(terms.gap);
        }
        if let Some(fidelity) = &self.fidelity {
            terms.fidelity_permille = permille(number("fidelity", fidelity, &context)?)?;
        }
        if let Some(tolerance) = &self.tolerance {
            terms.tolerance = number("tolerance", tolerance, &context)?;
        }
        if let Some(weight) = &self.weight {
            terms.weight = number("weight", weight, &context)?;
        }
        terms.check()?;
        Ok(Some(terms))
    }
}

impl SemanticFunction for DeclaredFunction {
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        self.terms(&Facts::new(pair))
    }
}

impl fmt::Debug for DeclaredFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredFunction").field("base", &self.base).finish_non_exhaustive()
    }
}

fn truth(
    part: &'static str,
    expression: &IdedExpr,
    context: &Context<'_, '_>,
) -> Result<bool, DeclaredError> {
    let value = value(part, expression, context)?;
    let truth = value.as_ref().downcast_ref::<CelBool>().map(|truth| *truth.inner());
    truth.ok_or(DeclaredError::Kind { part, expected: "a bool, such as distance < 100.0" })
}

#[expect(clippy::cast_precision_loss, reason = "a number of any size, checked by its caller")]
fn number(
    part: &'static str,
    expression: &IdedExpr,
    context: &Context<'_, '_>,
) -> Result<f64, DeclaredError> {
    let value = value(part, expression, context)?;
    let value = value.as_ref();
    let float = value.downcast_ref::<CelDouble>().map(|value| *value.inner());
    let int = || value.downcast_ref::<CelInt>().map(|value| *value.inner() as f64);
    let unsigned = || value.downcast_ref::<CelUInt>().map(|value| *value.inner() as f64);
    float
        .or_else(int)
        .or_else(unsigned)
        .ok_or(DeclaredError::Kind { part, expected: "a number, such as 0.1" })
}

fn value<'b, 'v>(
    part: &'static str,
    expression: &'b IdedExpr,
    context: &'b Context<'_, 'v>,
) -> Result<CowVal<'b, 'v>, DeclaredError> {
    Value::resolve_val(expression, context).map_err(|error| failure(part, &error))
}

fn failure(part: &'static str, error: &ExecutionError) -> DeclaredError {
    DeclaredError::Failed { part, text: error.to_string().chars().take(200).collect() }
}

fn gap(seconds: f64) -> Result<Duration, DeclaredError> {
    let gap = std::time::Duration::try_from_secs_f64(seconds).ok().map(Duration::from);
    let hour = Duration::from_secs(3_600);
    gap.filter(|gap| *gap >= Duration::from_millis(1) && *gap <= hour)
        .ok_or(DeclaredError::Every(seconds))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 1000")]
fn permille(share: f64) -> Result<u16, DeclaredError> {
    let permille = (share * 1_000.0).ceil();
    if (1.0..=1_000.0).contains(&permille) {
        Ok(permille as u16)
    } else {
        Err(DeclaredError::Fidelity(share))
    }
}

impl From<TermsError> for DeclaredError {
    fn from(error: TermsError) -> Self {
        Self::Terms(error)
    }
}

/// The error of a declared semantic function.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum DeclaredError {
    /// A line that names no part.
    #[error(
        "{0:?}: a rule has lines whom, every, fidelity, tolerance and weight, such as \"whom: distance < 100.0\""
    )]
    Part(String),
    /// A text that is empty or too long.
    #[error("{part}: {bytes} bytes; must be from 1 to 512")]
    Length {
        /// The part of the rule.
        part: &'static str,
        /// The length of the text.
        bytes: usize,
    },
    /// A text that is not an expression.
    #[error("{part}: {text}")]
    Syntax {
        /// The part of the rule.
        part: &'static str,
        /// The error of the text.
        text: String,
    },
    /// An expression uses lists, maps, comprehensions or other constructs of unbounded cost.
    #[error(
        "{part}: {construct} is not permitted, since the cost must be bounded; use comparisons, numbers and &&"
    )]
    Construct {
        /// The part of the rule.
        part: &'static str,
        /// The construct.
        construct: &'static str,
    },
    /// An expression uses an unknown variable.
    #[error(
        "{part}: no variable {name:?}; there are distance, angle, error, speed, age, interested and object.FIELD"
    )]
    Variable {
        /// The part of the rule.
        part: &'static str,
        /// The name.
        name: String,
    },
    /// An expression uses an unknown function.
    #[error(
        "{part}: no function {name:?}; there are size, contains, startsWith, endsWith, int, double and string"
    )]
    Function {
        /// The part of the rule.
        part: &'static str,
        /// The name.
        name: String,
    },
    /// The evaluation failed, for example because the object has no such field.
    #[error("{part}: {text}")]
    Failed {
        /// The part of the rule.
        part: &'static str,
        /// Why.
        text: String,
    },
    /// A value of another type.
    #[error("{part}: must be {expected}")]
    Kind {
        /// The part of the rule.
        part: &'static str,
        /// The type, and an example.
        expected: &'static str,
    },
    /// A time that is not finite or out of range.
    #[error("every: {0} is no time from 0.001 to 3600 seconds")]
    Every(f64),
    /// A share that is not finite or out of range.
    #[error("fidelity: {0} is no share of more than 0 and at most 1")]
    Fidelity(f64),
    /// Another term that is out of range.
    #[error(transparent)]
    Terms(TermsError),
}
