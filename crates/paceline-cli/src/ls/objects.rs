//! The tables of `paceline ls --objects`.

use paceline::Node;
use paceline::world::{
    DelayParts, DistanceStep, FieldValue, InteractorModules, Interest, InterestContract,
    InterestRule, ObjectView, SharedWorld, WorldReport,
};
use paceline_tool::show;
use paceline_tool::stop::Stop;
use paceline_tool::table::{self, Align::Left, Align::Name, Align::Right, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time as an observer.
const OBSERVE: Duration = Duration::from_secs(2);
/// The time between two updates of an object.
const EVERY: Duration = Duration::from_secs(1);

/// The objects and participants of a world.
#[derive(Debug, Serialize)]
pub(super) struct WorldDocument {
    schema: u32,
    world: String,
    objects: Vec<ObjectRow>,
    participants: Vec<ParticipantRow>,
    budgets: Vec<BudgetRow>,
}

#[derive(Debug, Serialize)]
struct ObjectRow {
    path: String,
    owner: String,
    owner_id: String,
    /// Name and version of its schema, and null before the description of the owner has arrived.
    schema: Option<String>,
    age_us: u64,
    updates: u64,
    fields: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Serialize)]
struct ParticipantRow {
    id: String,
    name: String,
    objects: usize,
    /// What it receives, in words, and null if it observes nothing.
    interest: Option<String>,
    contract: Option<ContractRow>,
    /// The modules that it chose, and null if it observes nothing.
    modules: Option<ModulesRow>,
    /// The workers of its own semantic function, and null if observers' rules decide about its objects.
    workers: Option<WorkersRow>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct WorkersRow {
    count: u8,
    order: &'static str,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ModulesRow {
    consistency: &'static str,
    error_control: &'static str,
    policing: &'static str,
    /// The size of fragments, and null for that of the owner.
    fragment_bytes: Option<u32>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ContractRow {
    max_updates: u32,
    per_us: u64,
    refresh_us: u64,
    bytes: u32,
    delay_us: u64,
    fidelity_permille: u16,
    objects: usize,
}

impl WorkersRow {
    fn in_words(self) -> String {
        format!("{}, {}", self.count, self.order)
    }
}

impl ModulesRow {
    fn in_words(self) -> String {
        let Self { consistency, error_control, policing, fragment_bytes } = self;
        let bytes = fragment_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        format!("{consistency}, {error_control}, {policing}{bytes}")
    }
}

/// The delay of a contract from an owner to an observer, and its parts.
#[derive(Debug, Serialize)]
struct BudgetRow {
    owner: String,
    observer: String,
    delay_us: u64,
    /// The greatest times of modules: deciding, and policing with fragmentation; then the debited times, of all modules
    /// of the owner together, and of reading with applying at the observer.
    deciding_us: u64,
    fragmenting_us: u64,
    sending_us: u64,
    observer_us: u64,
    /// The time in which updates that are due together leave.
    spread_us: u64,
    /// What remains for the network, and null if nothing remains.
    network_us: Option<u64>,
}

/// Joins a world as an observer for some time, and returns its objects and participants.
pub(super) fn observe(node: &Node, world: &str, stop: &Stop) -> anyhow::Result<WorldDocument> {
    let joined = node.world(world).name("paceline-ls").join()?;
    joined.observe(Some(Interest::every(EVERY)))?;
    stop.wait_until(Instant::now() + OBSERVE);
    Ok(document(&joined))
}

fn document(world: &SharedWorld) -> WorldDocument {
    let report = world.report();
    let objects: Vec<_> = world.objects().iter().map(object).collect();
    let mut owned: BTreeMap<&str, usize> = BTreeMap::new();
    for object in &objects {
        *owned.entry(object.owner_id.as_str()).or_default() += 1;
    }
    let participants: Vec<_> = report
        .participants
        .iter()
        .map(|other| {
            let id = other.id.to_string();
            let interest = other.as_observer.as_ref().map(|observer| &observer.interest);
            ParticipantRow {
                objects: owned.get(id.as_str()).copied().unwrap_or(0),
                id,
                name: other.name.clone(),
                interest: interest.map(describe),
                contract: interest.and_then(|interest| interest.contract.as_ref()).map(contract),
                modules: interest.map(|interest| modules(interest.modules)),
                workers: other.workers.map(|workers| WorkersRow {
                    count: workers.count,
                    order: workers.order.name(),
                }),
            }
        })
        .collect();
    let budgets = budgets(&report, &participants);
    WorldDocument { schema: 1, world: report.world, objects, participants, budgets }
}

fn micros(duration: impl Into<Duration>) -> u64 {
    show::micros(duration.into())
}

fn object(view: &ObjectView) -> ObjectRow {
    let schema = view.schema.as_ref();
    ObjectRow {
        path: view.path.clone(),
        owner: view.owner.clone(),
        owner_id: view.owner_id.to_string(),
        schema: schema.map(|schema| format!("{}/{}", schema.name(), schema.version())),
        age_us: micros(view.age),
        updates: view.updates,
        fields: view.fields().map(|(name, value)| (name.to_owned(), json(value))).collect(),
    }
}

fn json(value: &FieldValue) -> serde_json::Value {
    match value {
        FieldValue::Bool(value) => (*value).into(),
        FieldValue::Int(value) => (*value).into(),
        FieldValue::Float(value) => (*value).into(),
        FieldValue::Vector(values) => values.to_vec().into(),
        FieldValue::Text(value) => value.as_str().into(),
        FieldValue::Bytes(value) => format!("{} bytes", value.len()).into(),
    }
}

fn contract(contract: &InterestContract) -> ContractRow {
    let InterestContract { each, objects } = contract;
    ContractRow {
        max_updates: each.max_updates,
        per_us: micros(each.per),
        refresh_us: micros(each.refresh),
        bytes: each.bytes,
        delay_us: micros(each.delay),
        fidelity_permille: each.fidelity_permille,
        objects: *objects,
    }
}

const fn modules(modules: InteractorModules) -> ModulesRow {
    ModulesRow {
        consistency: "owner",
        error_control: modules.error_control.name(),
        policing: modules.policing.name(),
        fragment_bytes: modules.fragment_bytes,
    }
}

/// Describes an interest in words.
fn describe(interest: &Interest) -> String {
    let steps = |steps: &[DistanceStep]| {
        let steps = steps.iter().map(|step| format!("{} every {}", step.within, step.terms.gap));
        format!("within {}", steps.collect::<Vec<_>>().join(", "))
    };
    let range = |text: String| match interest.range.is_finite() {
        true => format!("{text} within {}", interest.range),
        false => text,
    };
    match &interest.rule {
        InterestRule::Periodic(terms) => range(format!("every {}", terms.gap)),
        InterestRule::Distance(of) => steps(of),
        InterestRule::View { half_angle, steps: of, outside } => {
            let outside = outside.map_or_else(
                || "others not".to_owned(),
                |outside| format!("others every {}", outside.gap),
            );
            format!("in view of {:.0}°: {}; {outside}", 2.0 * half_angle.to_degrees(), steps(of))
        }
        InterestRule::Declared { rule, base } => {
            let rule = rule.to_string().trim_end().replace('\n', "; ");
            range(format!("{rule}; else every {}", base.gap))
        }
    }
}

/// Returns the parts of the delay of each contract, for each owner with objects.
fn budgets(report: &WorldReport, rows: &[ParticipantRow]) -> Vec<BudgetRow> {
    let mut budgets = Vec::new();
    for (observer, row) in report.participants.iter().zip(rows) {
        let Some(known) = &observer.as_observer else { continue };
        let Some(contract) = known.interest.contract else { continue };
        for (owner, owner_row) in report.participants.iter().zip(rows) {
            let Some(as_owner) = owner.as_owner.filter(|_| owner_row.objects > 0) else { continue };
            if owner.id == observer.id {
                continue;
            }
            let parts = DelayParts { observer: known.parts.observer, ..as_owner };
            budgets.push(BudgetRow {
                owner: owner_row.name.clone(),
                observer: row.name.clone(),
                delay_us: micros(contract.each.delay),
                deciding_us: micros(parts.deciding),
                fragmenting_us: micros(parts.fragmenting),
                sending_us: micros(parts.sending),
                observer_us: micros(parts.observer),
                spread_us: micros(contract.each.spread()),
                network_us: parts.network(&contract.each).map(micros),
            });
        }
    }
    budgets
}

/// Formats all non-empty tables, each under its title.
pub(super) fn tables(document: &WorldDocument) -> String {
    if document.participants.is_empty() {
        let world = &document.world;
        return format!(
            "nobody is in world {world}: no program that this node reaches has joined it\n"
        );
    }
    let parts = [
        ("OBJECTS", objects(document)),
        ("PARTICIPANTS", participants(document)),
        ("CONTRACTS", contracts(document)),
        ("DELAYS", delays(document)),
    ];
    table::titled(&parts)
}

fn millis(us: u64) -> String {
    format!("{} ms", show::millis(us))
}

fn objects(document: &WorldDocument) -> Table {
    let mut table = Table::new(&[
        ("object", Name),
        ("owner", Left),
        ("schema", Left),
        ("age", Right),
        ("fields", Left),
    ]);
    for object in &document.objects {
        let fields = object.fields.iter().map(|(name, value)| format!("{name}={value}"));
        table.row(vec![
            object.path.clone(),
            object.owner.clone(),
            object.schema.clone().unwrap_or_else(|| "-".to_owned()),
            millis(object.age_us),
            fields.collect::<Vec<_>>().join(" "),
        ]);
    }
    table
}

fn participants(document: &WorldDocument) -> Table {
    let mut table = Table::new(&[
        ("participant", Left),
        ("id", Left),
        ("objects", Right),
        ("workers", Left),
        ("modules", Left),
        ("interest", Left),
    ]);
    for other in &document.participants {
        table.row(vec![
            other.name.clone(),
            other.id.clone(),
            other.objects.to_string(),
            other.workers.map_or_else(|| "-".to_owned(), WorkersRow::in_words),
            other.modules.map_or_else(|| "-".to_owned(), ModulesRow::in_words),
            other.interest.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

fn contracts(document: &WorldDocument) -> Table {
    let mut table = Table::new(&[
        ("observer", Left),
        ("objects", Right),
        ("updates", Right),
        ("per", Right),
        ("refresh", Right),
        ("delay", Right),
        ("fidelity", Right),
        ("bytes", Right),
    ]);
    for other in &document.participants {
        let Some(contract) = other.contract else { continue };
        table.row(vec![
            other.name.clone(),
            contract.objects.to_string(),
            contract.max_updates.to_string(),
            millis(contract.per_us),
            millis(contract.refresh_us),
            millis(contract.delay_us),
            format!("{:.3}", f64::from(contract.fidelity_permille) / 1e3),
            contract.bytes.to_string(),
        ]);
    }
    table
}

fn delays(document: &WorldDocument) -> Table {
    let mut table = Table::new(&[
        ("owner", Left),
        ("observer", Left),
        ("delay", Right),
        ("deciding", Right),
        ("fragmenting", Right),
        ("sending", Right),
        ("observing", Right),
        ("spread", Right),
        ("network", Right),
    ]);
    for budget in &document.budgets {
        table.row(vec![
            budget.owner.clone(),
            budget.observer.clone(),
            millis(budget.delay_us),
            millis(budget.deciding_us),
            millis(budget.fragmenting_us),
            millis(budget.sending_us),
            millis(budget.observer_us),
            millis(budget.spread_us),
            budget.network_us.map_or_else(|| "nothing".to_owned(), millis),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::world::{DeclaredRule, ExchangeTerms};

    #[test]
    fn interests_are_described_in_words() {
        let ms = Duration::from_millis;
        let terms = ExchangeTerms::every(ms(500).into());
        assert_eq!(describe(&Interest::every(ms(50))), "every 50 ms");
        let mut interest = Interest::by_distance(&[(50.0, ms(50)), (500.0, ms(1_000))]);
        assert_eq!(describe(&interest), "within 50 every 50 ms, 500 every 1 s");
        if let InterestRule::Distance(steps) = interest.rule.clone() {
            interest.rule = InterestRule::View { half_angle: 0.5, steps, outside: Some(terms) };
        }
        assert_eq!(
            describe(&interest),
            "in view of 57°: within 50 every 50 ms, 500 every 1 s; others every 500 ms"
        );
        let rule = DeclaredRule { whom: Some("speed > 1.0".to_owned()), ..DeclaredRule::default() };
        let rule = InterestRule::Declared { rule, base: terms };
        let declared = Interest { range: 80.0, rule, ..Interest::every(ms(50)) };
        assert_eq!(describe(&declared), "whom: speed > 1.0; else every 500 ms within 80");
    }
}
