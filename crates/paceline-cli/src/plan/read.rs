//! Reads a problem from JSON. Every error names the field, its value and a fix.

use clap::ValueEnum;
use paceline_plan::graphml::Topology;
use paceline_plan::{
    CostModel, DelayModel, Objective, PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag,
    SampleCpu,
};
use paceline_sched::units;
use paceline_sched::{Capacity, Duration};
use paceline_tool::describe::fields::Fields;
use paceline_tool::describe::json::Json;
use std::collections::BTreeMap;

const PROBLEM: &[&str] =
    &["nodes", "links", "tags", "objective", "weight", "cost", "delay_model", "proxies"];
const NODE: &[&str] = &["id", "cpu"];
const LINK: &[&str] = &["from", "to", "capacity", "delay", "segment", "both"];
const TAG: &[&str] = &[
    "tag",
    "publishers",
    "period",
    "bytes",
    "cpu_receive",
    "cpu_send",
    "cpu_scale",
    "subscribers",
    "allowed",
];
/// The largest number of a segment.
const SEGMENT_MAX: u64 = 1_000_000;
const SUBSCRIBER: &[&str] = &["node", "scale", "bytes", "within"];
const BYTES_MAX: u64 = 1_000_000_000_000;

/// The quantity to minimise.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum ObjectiveName {
    /// Bits per second on all links
    Bandwidth,
    /// Processor time of all nodes
    Cpu,
    /// Bits per second plus --weight times processor time
    Weighted,
}

/// The streams that subscribers share.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum CostName {
    /// A copy for each subscriber on the whole path
    PerSubscriber,
    /// One copy from the publisher to each proxy
    SharedUpstream,
    /// Each form once per link
    Multicast,
}

/// The predicted delay.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum DelayName {
    /// One period per link
    Periods,
    /// The delays of the links
    Links,
    /// A bound for reserved rates
    Bounds,
}

/// Values of the command line, which override those of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    pub(super) objective: Option<ObjectiveName>,
    pub(super) weight: Option<f64>,
    pub(super) cost: Option<CostName>,
    pub(super) delay_model: Option<DelayName>,
    pub(super) proxies: Option<usize>,
}

impl Choices {
    /// Returns these choices, with those of `other` where there is none.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            objective: self.objective.or(other.objective),
            weight: self.weight.or(other.weight),
            cost: self.cost.or(other.cost),
            delay_model: self.delay_model.or(other.delay_model),
            proxies: self.proxies.or(other.proxies),
        }
    }

    /// Sets the models of a problem; those that are not chosen get the defaults.
    pub(super) fn apply(self, problem: &mut PlanProblem) -> Result<(), String> {
        problem.objective = match self.objective {
            Some(ObjectiveName::Bandwidth) | None => Objective::Bandwidth,
            Some(ObjectiveName::Cpu) => Objective::Cpu,
            Some(ObjectiveName::Weighted) => Objective::Weighted(self.weight.ok_or_else(|| {
                "weight is missing: the objective weighted needs it, in bit/s per processor"
                    .to_owned()
            })?),
        };
        problem.cost = match self.cost {
            Some(CostName::PerSubscriber) | None => CostModel::PerSubscriber,
            Some(CostName::SharedUpstream) => CostModel::SharedUpstream,
            Some(CostName::Multicast) => CostModel::Multicast,
        };
        problem.delays = match self.delay_model {
            Some(DelayName::Periods) | None => DelayModel::Periods,
            Some(DelayName::Links) => DelayModel::Links,
            Some(DelayName::Bounds) => DelayModel::Bounds,
        };
        problem.proxies = self.proxies.unwrap_or(1);
        Ok(())
    }
}

/// Reads a problem. Its nodes and links are those of the topology, if there is one.
pub(super) fn problem(
    text: &str,
    topology: Option<Topology>,
    choices: &Choices,
) -> Result<PlanProblem, String> {
    let json = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
    let mut fields = Fields::open(String::new(), json, PROBLEM)?;
    let mut problem = PlanProblem::default();
    match topology {
        Some(topology) => {
            if let Some(twice) = ["nodes", "links"].into_iter().find(|name| fields.has(name)) {
                return Err(format!("{twice} is given with --topology: leave it out of the file"));
            }
            (problem.nodes, problem.links) = (topology.nodes, topology.links);
        }
        None => problem.nodes = nodes(&mut fields)?,
    }
    let ids: BTreeMap<String, usize> =
        problem.nodes.iter().enumerate().map(|(index, node)| (node.id.clone(), index)).collect();
    for (place, item) in items(&mut fields, "links")? {
        links(&mut problem.links, place, item, &ids)?;
    }
    for (place, item) in items(&mut fields, "tags")? {
        problem.tags.push(tag(place, item, &ids)?);
    }
    if problem.tags.is_empty() {
        return Err(fields.missing("tags", "add at least one tag with a publisher"));
    }
    models(&mut problem, &mut fields, choices)?;
    Ok(problem)
}

fn models(problem: &mut PlanProblem, fields: &mut Fields, choices: &Choices) -> Result<(), String> {
    let proxies = fields.whole("proxies", 1..=32, "the default is 1 per tag")?;
    let own = Choices {
        objective: choice::<ObjectiveName>(fields, "objective")?,
        weight: number(fields, "weight", "0 to 1e15 bit/s per processor", 1e15)?,
        cost: choice::<CostName>(fields, "cost")?,
        delay_model: choice::<DelayName>(fields, "delay_model")?,
        proxies: proxies.and_then(|count| usize::try_from(count).ok()),
    };
    choices.or(own).apply(problem)
}

/// Removes a list of a field. Returns its items with their paths; a missing list is empty.
fn items(fields: &mut Fields, name: &str) -> Result<Vec<(String, Json)>, String> {
    let path = fields.at(name);
    match fields.take(name) {
        None => Ok(Vec::new()),
        Some(Json::List(items)) => {
            let items = items.into_iter().enumerate();
            Ok(items.map(|(index, item)| (format!("{path}[{index}]"), item)).collect())
        }
        Some(other) => Err(format!("{path} is {other}: must be a list")),
    }
}

fn choice<T: ValueEnum>(fields: &mut Fields, name: &str) -> Result<Option<T>, String> {
    fields.text(name, |text| {
        let value = T::from_str(text, false);
        value.map_err(|_| {
            let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
            format!("must be one of {}", names.join(", "))
        })
    })
}

/// Reads a number from 0 to `most`.
fn number(fields: &mut Fields, name: &str, range: &str, most: f64) -> Result<Option<f64>, String> {
    let path = fields.at(name);
    match fields.take(name) {
        None => Ok(None),
        Some(value) => {
            let wrong = format!("{path} is {value}: must be a number from {range}");
            match value {
                Json::Number(number) => {
                    let number = number.as_f64().filter(|it| (0.0..=most).contains(it));
                    number.map(Some).ok_or(wrong)
                }
                Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => {
                    Err(wrong)
                }
            }
        }
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    if text.is_empty() { Err("must not be empty") } else { Ok(text.to_owned()) }
}

fn nodes(fields: &mut Fields) -> Result<Vec<PlanNode>, String> {
    let mut nodes = Vec::new();
    for (place, item) in items(fields, "nodes")? {
        let mut node = Fields::open(place, item, NODE)?;
        let id = node.text("id", name)?.ok_or_else(|| node.missing("id", "name the node"))?;
        let cpu = number(&mut node, "cpu", "0 to 1000000 processors", 1e6)?;
        nodes.push(PlanNode { id, cpu });
    }
    if nodes.is_empty() {
        return Err(fields.missing("nodes", "list the nodes, or give --topology FILE"));
    }
    Ok(nodes)
}

/// Returns the index of a node.
fn node_at(place: &str, id: &str, ids: &BTreeMap<String, usize>) -> Result<usize, String> {
    ids.get(id).copied().ok_or_else(|| {
        let known: Vec<&str> = ids.keys().take(8).map(String::as_str).collect();
        let more = if ids.len() > known.len() { ", …" } else { "" };
        format!(
            "{place} is \"{id}\": no node has this id; the nodes are {}{more}",
            known.join(", ")
        )
    })
}

/// Reads a field that names a node.
fn node(fields: &mut Fields, field: &str, ids: &BTreeMap<String, usize>) -> Result<usize, String> {
    let place = fields.at(field);
    let id = fields.text(field, name)?;
    node_at(&place, &id.ok_or_else(|| fields.missing(field, "name a node"))?, ids)
}

fn links(
    links: &mut Vec<PlanLink>,
    place: String,
    item: Json,
    ids: &BTreeMap<String, usize>,
) -> Result<(), String> {
    let mut fields = Fields::open(place, item, LINK)?;
    let (from, to) = (node(&mut fields, "from", ids)?, node(&mut fields, "to", ids)?);
    let capacity = fields.rate("capacity", 8..=u64::MAX, "for example 10mbit")?;
    let capacity = capacity.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
    let delay = Duration::from_nanos(fields.nanos("delay", 0)?.unwrap_or(0));
    let segment =
        fields.whole("segment", 0..=SEGMENT_MAX, "links with the same number share copies")?;
    let segment = segment.and_then(|segment| usize::try_from(segment).ok());
    let link = PlanLink { from, to, capacity, delay, segment };
    if fields.flag("both", "the default is true: a link in each direction")?.unwrap_or(true) {
        links.push(link.back());
    }
    links.push(link);
    Ok(())
}

/// Reads the processor time for a sample: text with a unit, or a part of a second.
fn cpu(fields: &mut Fields, field: &'static str) -> Result<f64, String> {
    let place = fields.at(field);
    match fields.take(field) {
        None => Ok(0.0),
        Some(Json::Text(text)) => {
            let read = units::duration(&text);
            read.map(|span| std::time::Duration::from(span).as_secs_f64())
                .map_err(|error| format!("{place} is \"{text}\": {error}"))
        }
        Some(Json::Number(value)) => {
            let value = value.as_f64().filter(|it| (0.0..=1.0).contains(it));
            value.ok_or_else(|| {
                format!("{place}: a number must be from 0 to 1 second; or write \"50us\"")
            })
        }
        Some(other) => Err(format!("{place} is {other}: write \"50us\" or 0.00005 (seconds)")),
    }
}

fn tag(place: String, item: Json, ids: &BTreeMap<String, usize>) -> Result<PlanTag, String> {
    let mut fields = Fields::open(place, item, TAG)?;
    let tag = fields.text("tag", name)?.ok_or_else(|| fields.missing("tag", "name the tag"))?;
    let publishers = node_list(&mut fields, "publishers", ids)?;
    let publishers = publishers.ok_or_else(|| fields.missing("publishers", "list their nodes"))?;
    let period = fields.nanos("period", 1)?;
    let period = period.ok_or_else(|| fields.missing("period", "for example 33.3ms"))?;
    let bytes = fields.size("bytes", 1..=BYTES_MAX, "for example 10kB")?;
    let bytes = bytes.ok_or_else(|| fields.missing("bytes", "for example 10kB"))?;
    let [receive, send, scale] =
        ["cpu_receive", "cpu_send", "cpu_scale"].map(|field| cpu(&mut fields, field));
    let cpu = SampleCpu { receive: receive?, send: send?, scale: scale? };
    let allowed = node_list(&mut fields, "allowed", ids)?;
    let mut subscribers = Vec::new();
    for (place, item) in items(&mut fields, "subscribers")? {
        subscribers.push(subscriber(place, item, ids, bytes)?);
    }
    let period = Duration::from_nanos(period);
    Ok(PlanTag { tag, publishers, period, bytes, cpu, subscribers, allowed })
}

fn node_list(
    fields: &mut Fields,
    field: &str,
    ids: &BTreeMap<String, usize>,
) -> Result<Option<Vec<usize>>, String> {
    if !fields.has(field) {
        return Ok(None);
    }
    let items = items(fields, field)?.into_iter().map(|(place, item)| match item {
        Json::Text(id) => node_at(&place, &id, ids),
        other
        @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::List(_) | Json::Object(_)) => {
            Err(format!("{place} is {other}: must be the id of a node"))
        }
    });
    items.collect::<Result<Vec<usize>, String>>().map(Some)
}

fn subscriber(
    place: String,
    item: Json,
    ids: &BTreeMap<String, usize>,
    bytes: u64,
) -> Result<PlanSubscriber, String> {
    let mut fields = Fields::open(place, item, SUBSCRIBER)?;
    let node = node(&mut fields, "node", ids)?;
    let scale = fields.whole("scale", 1..=u64::from(u32::MAX), "1 sample in this many")?;
    let scale = u32::try_from(scale.unwrap_or(1)).map_err(|error| error.to_string())?;
    let scaled = fields.size("bytes", 1..=BYTES_MAX, "the default is that of the tag")?;
    let within = fields.nanos("within", 1)?.map(Duration::from_nanos);
    Ok(PlanSubscriber { node, scale, bytes: scaled.unwrap_or(bytes), within })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"nodes":[{"id":"a","cpu":0.5},{"id":"b"}],
        "links":[{"from":"a","to":"b","capacity":"10mbit","delay":"2ms","both":true}],
        "tags":[{"tag":"t","publishers":["a"],"period":"20ms","bytes":"1kB","cpu_receive":"50us",
        "cpu_send":0.0001,"subscribers":[{"node":"b","scale":2,"bytes":"500B","within":"80ms"}]}],
        "objective":"weighted","weight":1000000,"cost":"multicast","delay_model":"links","proxies":2}"#;

    fn read(text: &str) -> Result<PlanProblem, String> {
        problem(text, None, &Choices::default())
    }

    #[test]
    fn every_field_is_read_with_its_unit() {
        let read = read(WHOLE).unwrap();
        assert_eq!((read.nodes[0].cpu, read.links.len(), read.proxies), (Some(0.5), 2, 2));
        assert_eq!(read.links[1].capacity, Capacity::from_bits_per_s(10_000_000).ok());
        let tag = &read.tags[0];
        assert_eq!((tag.period, tag.bytes), (Duration::from_millis(20), 1_000));
        assert!((tag.cpu.receive - 5e-5).abs() < 1e-12 && (tag.cpu.send - 1e-4).abs() < 1e-12);
        let to = &tag.subscribers[0];
        assert_eq!((to.scale, to.bytes, to.within), (2, 500, Some(Duration::from_millis(80))));
        assert_eq!(read.objective, Objective::Weighted(1e6));
        assert_eq!((read.cost, read.delays), (CostModel::Multicast, DelayModel::Links));
        let choices = Choices { cost: Some(CostName::PerSubscriber), ..Choices::default() };
        let other = problem(WHOLE, None, &choices).unwrap();
        assert_eq!(other.cost, CostModel::PerSubscriber);
    }

    #[test]
    fn errors_name_the_field_and_a_fix() {
        for (from, to, expected) in [
            (
                "\"to\":\"b\"",
                "\"to\":\"x\"",
                "links[0].to is \"x\": no node has this id; the nodes are a, b",
            ),
            ("[\"a\"]", "[\"y\"]", "tags[0].publishers[0] is \"y\": no node"),
            ("\"node\":\"b\"", "\"node\":\"z\"", "tags[0].subscribers[0].node is \"z\": no node"),
            ("\"10mbit\"", "10", "links[0].capacity is 10: needs a unit"),
            ("\"80ms\"", "80", "tags[0].subscribers[0].within is 80: needs a unit"),
            ("\"50us\"", "\"50\"", "tags[0].cpu_receive is \"50\": needs a unit"),
            (
                "\"scale\":2",
                "\"scale\":0",
                "tags[0].subscribers[0].scale is 0: must be a whole number",
            ),
            ("\"multicast\"", "\"all\"", "cost is \"all\": must be one of per_subscriber, shared"),
            ("\"weight\":1000000,", "", "weight is missing"),
            (
                "\"proxies\":2",
                "\"proxies\":99",
                "proxies is 99: must be a whole number from 1 to 32",
            ),
            ("\"id\":\"b\"", "\"name\":\"b\"", "nodes[1]: unknown field \"name\""),
            (
                "\"cpu\":0.5",
                "\"cpu\":\"fast\"",
                "nodes[0].cpu is \"fast\": must be a number from 0",
            ),
            ("{\"nodes\"", "{{", "invalid JSON"),
        ] {
            let error = read(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
