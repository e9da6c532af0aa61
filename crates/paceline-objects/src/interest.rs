//! The interest of an observer.

use crate::codec::{PacketError, Reader, Writer, fnv};
use crate::contract::{ObjectContract, ObjectContractError};
use crate::modules::{InteractorModules, ModulesError};
use crate::semantic::{
    DeclaredError, DeclaredFunction, DeclaredRule, DistanceLadder, DistanceStep, ExchangeTerms,
    FieldOfView, LadderError, Periodic, SemanticFunction, TermsError,
};
use paceline_sched::Duration;
use thiserror::Error;

/// The interest of an observer in objects. It travels to their owners.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    /// The greatest distance of an object, in units of the world; infinite for all objects.
    pub range: f64,
    /// When, and at which fidelity, objects in range are exchanged.
    pub rule: InterestRule,
    /// The contract of the most important of them, if any; the others are best effort.
    pub contract: Option<InterestContract>,
    /// The modules through which updates pass.
    pub modules: InteractorModules,
}

/// A semantic function that travels.
#[derive(Clone, Debug, PartialEq)]
pub enum InterestRule {
    /// All objects in range at the same terms.
    Periodic(ExchangeTerms),
    /// Terms by distance; see [`DistanceLadder`].
    Distance(Vec<DistanceStep>),
    /// Terms by distance for objects in view, others at fixed terms or not at all; see [`FieldOfView`].
    View {
        /// The greatest angle between the direction of view and an object in view, from 0 to π radians.
        half_angle: f64,
        /// The terms in view.
        steps: Vec<DistanceStep>,
        /// The terms out of view.
        outside: Option<ExchangeTerms>,
    },
    /// Expressions in CEL; see [`DeclaredRule`].
    Declared {
        /// The expressions.
        rule: DeclaredRule,
        /// The terms without an expression.
        base: ExchangeTerms,
    },
}

/// The contract of an observer for the most important of its objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InterestContract {
    /// The service of each of them.
    pub each: ObjectContract,
    /// Their greatest number for each owner, from 1 to 10,000.
    pub objects: usize,
}

impl InterestContract {
    /// The greatest number of objects.
    pub const OBJECTS_MAX: usize = 10_000;

    fn check(&self) -> Result<(), InterestError> {
        self.each.check()?;
        if self.objects == 0 || self.objects > Self::OBJECTS_MAX {
            return Err(InterestError::Objects(self.objects));
        }
        Ok(())
    }
}

impl Interest {
    /// The greatest number of steps of a ladder.
    pub const STEPS_MAX: usize = 16;

    /// Returns an interest in all objects, at most as often as this.
    #[must_use]
    pub fn every(gap: impl Into<Duration>) -> Self {
        Self {
            range: f64::INFINITY,
            rule: InterestRule::Periodic(ExchangeTerms::every(gap.into())),
            contract: None,
            modules: InteractorModules::default(),
        }
    }

    /// Returns an interest by distance: within each distance, at most one update per gap. The nearest objects have
    /// the greatest weights: the weight halves with each step.
    ///
    /// ```
    /// use paceline_objects::Interest;
    /// use paceline_sched::Duration;
    ///
    /// let near = Duration::from_millis(50);
    /// let interest = Interest::by_distance(&[(50.0, near), (500.0, Duration::from_secs(1))]);
    /// assert!(interest.check().is_ok());
    /// ```
    #[must_use]
    pub fn by_distance<D: Into<Duration> + Copy>(steps: &[(f64, D)]) -> Self {
        let weights = std::iter::successors(Some(1.0), |weight| Some(weight / 2.0));
        let steps: Vec<_> = steps
            .iter()
            .zip(weights)
            .map(|((within, gap), weight)| DistanceStep {
                within: *within,
                terms: ExchangeTerms::every((*gap).into()).weight(weight),
            })
            .collect();
        let range =
            steps.last().map_or(0.0, |step| step.within * (1.0 + DistanceLadder::HYSTERESIS));
        let (rule, modules) = (InterestRule::Distance(steps), InteractorModules::default());
        Self { range, rule, contract: None, modules }
    }

    /// Returns the same with a contract for up to `objects` of each owner.
    #[must_use]
    pub fn with_contract(self, each: ObjectContract, objects: usize) -> Self {
        Self { contract: Some(InterestContract { each, objects }), ..self }
    }

    /// Returns the same with other modules.
    #[must_use]
    pub fn with_modules(self, modules: InteractorModules) -> Self {
        Self { modules, ..self }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), InterestError> {
        self.modules.check()?;
        if self.range.is_nan() || self.range < 0.0 {
            return Err(InterestError::Range(self.range));
        }
        if let Some(contract) = &self.contract {
            contract.check()?;
        }
        self.function().map(|_| ())
    }

    /// Returns the semantic function.
    ///
    /// # Errors
    /// A value of the rule that is out of range, or an expression that is wrong.
    pub fn function(&self) -> Result<Box<dyn SemanticFunction>, InterestError> {
        let ladder = |steps: &Vec<DistanceStep>| {
            if steps.len() > Self::STEPS_MAX {
                return Err(InterestError::Steps(steps.len()));
            }
            Ok(DistanceLadder::new(steps.clone())?)
        };
        Ok(match &self.rule {
            InterestRule::Periodic(terms) => {
                terms.check()?;
                Box::new(Periodic(*terms))
            }
            InterestRule::Distance(steps) => Box::new(ladder(steps)?),
            InterestRule::View { half_angle, steps, outside } => {
                if !(0.0..=std::f64::consts::PI).contains(half_angle) {
                    return Err(InterestError::Angle(*half_angle));
                }
                if let Some(outside) = outside {
                    outside.check()?;
                }
                Box::new(FieldOfView {
                    half_angle: *half_angle,
                    inside: ladder(steps)?,
                    outside: *outside,
                })
            }
            InterestRule::Declared { rule, base } => {
                base.check()?;
                Box::new(DeclaredFunction::new(rule, *base)?)
            }
        })
    }

    /// Returns the bytes of memory that it and its function use.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rule = match &self.rule {
            InterestRule::Declared { rule, .. } => rule.memory_bytes(),
            InterestRule::Periodic(_) | InterestRule::Distance(_) | InterestRule::View { .. } => 0,
        };
        4_096 + rule
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.f64(if self.range.is_finite() { self.range } else { -1.0 });
        match &self.rule {
            InterestRule::Periodic(terms) => write_terms(writer.u8(0), terms),
            InterestRule::Distance(steps) => write_steps(writer.u8(1), steps),
            InterestRule::View { half_angle, steps, outside } => {
                write_steps(writer.u8(2).f64(*half_angle), steps);
                writer.u8(u8::from(outside.is_some()));
                if let Some(outside) = outside {
                    write_terms(writer, outside);
                }
            }
            InterestRule::Declared { rule, base } => {
                writer.u8(3).text(&rule.to_string());
                write_terms(writer, base);
            }
        }
        match &self.contract {
            None => {
                writer.u8(0);
            }
            Some(contract) => contract.write(writer.u8(1)),
        }
        self.modules.write(writer);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let range = reader.f64()?;
        let rule = match reader.u8()? {
            0 => InterestRule::Periodic(read_terms(reader)?),
            1 => InterestRule::Distance(read_steps(reader)?),
            2 => InterestRule::View {
                half_angle: reader.f64()?,
                steps: read_steps(reader)?,
                outside: if reader.u8()? == 0 { None } else { Some(read_terms(reader)?) },
            },
            3 => InterestRule::Declared {
                rule: reader
                    .text(5 * (DeclaredRule::TEXT_MAX + 16))?
                    .parse()
                    .map_err(|_| PacketError::Form)?,
                base: read_terms(reader)?,
            },
            other => return Err(PacketError::Unknown(other)),
        };
        let contract = match reader.u8()? {
            0 => None,
            1 => Some(InterestContract::read(reader)?),
            other => return Err(PacketError::Unknown(other)),
        };
        let range = if range < 0.0 { f64::INFINITY } else { range };
        let interest = Self { range, rule, contract, modules: InteractorModules::read(reader)? };
        interest.check().map_err(|_| PacketError::Form)?;
        Ok(interest)
    }
}

impl InterestContract {
    /// Returns a number that identifies the contract: the tag of its updates has it, so that a subscription never
    /// receives the updates of an earlier contract.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut writer = Writer::default();
        self.write(&mut writer);
        fnv(writer.finish())
    }

    fn write(&self, writer: &mut Writer) {
        let Self { each, objects } = self;
        writer.varint(u64::from(each.max_updates)).varint(each.per.as_nanos());
        writer
            .varint(each.refresh.as_nanos())
            .varint(u64::from(each.bytes))
            .varint(each.delay.as_nanos());
        writer.u16(each.fidelity_permille).varint(*objects as u64);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let each = ObjectContract {
            max_updates: reader.varint32()?,
            per: Duration::from_nanos(reader.varint()?),
            refresh: Duration::from_nanos(reader.varint()?),
            bytes: reader.varint32()?,
            delay: Duration::from_nanos(reader.varint()?),
            fidelity_permille: reader.u16()?,
        };
        Ok(Self { each, objects: reader.count(Self::OBJECTS_MAX)? })
    }
}

fn write_terms(writer: &mut Writer, terms: &ExchangeTerms) {
    writer
        .varint(terms.gap.as_nanos())
        .varint(terms.refresh.as_nanos())
        .u16(terms.fidelity_permille);
    writer.f64(terms.tolerance).f64(terms.weight);
}

fn read_terms(reader: &mut Reader<'_>) -> Result<ExchangeTerms, PacketError> {
    Ok(ExchangeTerms {
        gap: Duration::from_nanos(reader.varint()?),
        refresh: Duration::from_nanos(reader.varint()?),
        fidelity_permille: reader.u16()?,
        tolerance: reader.f64()?,
        weight: reader.f64()?,
    })
}

fn write_steps(writer: &mut Writer, steps: &[DistanceStep]) {
    writer.varint(steps.len() as u64);
    for step in steps {
        write_terms(writer.f64(step.within), &step.terms);
    }
}

fn read_steps(reader: &mut Reader<'_>) -> Result<Vec<DistanceStep>, PacketError> {
    (0..reader.count(Interest::STEPS_MAX)?)
        .map(|_| Ok(DistanceStep { within: reader.f64()?, terms: read_terms(reader)? }))
        .collect()
}

/// The error of an [`Interest`].
#[derive(Clone, Debug, Error, PartialEq)]
pub enum InterestError {
    /// The range.
    #[error("range {0}: must be 0 or more, such as 500.0, or infinite for all objects")]
    Range(f64),
    /// The angle of view.
    #[error("half_angle {0}: must be from 0 to 3.1416 radians, such as 0.8")]
    Angle(f64),
    /// The number of distances.
    #[error("{0} distances: at most 16")]
    Steps(usize),
    /// The number of objects of a contract.
    #[error("a contract for {0} objects: must be from 1 to 10000, such as 20")]
    Objects(usize),
    /// The modules.
    #[error(transparent)]
    Modules(#[from] ModulesError),
    /// The contract.
    #[error(transparent)]
    Contract(#[from] ObjectContractError),
    /// The terms of a rule.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The distances of a rule.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// The expressions of a rule.
    #[error(transparent)]
    Declared(#[from] DeclaredError),
}
