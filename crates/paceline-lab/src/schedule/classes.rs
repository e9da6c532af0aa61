//! Classes of streams: a tree under the link.

use super::stream::{self, Id};
use paceline_sched::discipline::{BranchSpec, Hierarchy, Policy};
use paceline_sched::hfsc::{ClassIndex, ClassSpec, Curves, DEPTH_MAX, HfscError, SpecError};
use paceline_sched::timeline::Ahead;
use paceline_tool::describe::curves;
use paceline_tool::describe::fields::Fields;
use paceline_tool::describe::json::Json;
use std::collections::HashMap;

const FIELDS: [&str; 6] = ["id", "parent", "discipline", "real_time", "link_share", "upper_limit"];

/// A class of the description.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) id: Id,
    name: String,
    parent: Option<String>,
    pub(super) policy: Option<Policy>,
    pub(super) curves: Curves,
    /// True if the class has child classes.
    pub(super) inner: bool,
}

/// The classes and their tree.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) list: Vec<Class>,
    pub(super) tree: Hierarchy,
    /// Tree index of each class of the list.
    pub(super) indexes: Vec<ClassIndex>,
    places: HashMap<String, usize>,
}

/// Reads the classes from the list in `value`.
pub(super) fn read(value: Json, ahead: Ahead) -> Result<Classes, String> {
    let Json::List(values) = value else {
        return Err(format!("classes is {value}: must be a list of classes"));
    };
    if values.is_empty() {
        return Err("classes is empty: add at least one class, or omit it".to_owned());
    }
    let mut list = Vec::with_capacity(values.len());
    for (number, value) in values.into_iter().enumerate() {
        list.push(class(number, value)?);
    }
    let mut places = HashMap::with_capacity(list.len());
    for (number, class) in list.iter().enumerate() {
        if let Some(first) = places.insert(class.name.clone(), number) {
            return Err(format!(
                "classes[{number}].id is {}, the same as classes[{first}].id: give each class a \
                 unique id",
                class.name
            ));
        }
    }
    let parents: Vec<Option<usize>> =
        list.iter().map(|class| places.get(class.parent.as_ref()?).copied()).collect();
    for parent in parents.iter().flatten() {
        if let Some(class) = list.get_mut(*parent) {
            class.inner = true;
        }
    }
    for (number, class) in list.iter().enumerate() {
        if class.inner && class.policy.is_some() {
            return Err(format!(
                "classes[{number}].discipline is set, but class {} has child classes: only classes \
                 without children have streams; omit it",
                class.name
            ));
        }
    }
    let specs: Vec<BranchSpec<'_>> = list.iter().map(|class| class.spec(ahead)).collect();
    let grown = Hierarchy::from_specs(&specs);
    let (tree, indexes) = grown.map_err(|error| refused(&error, &list, &places))?;
    Ok(Classes { list, tree, indexes, places })
}

fn class(number: usize, value: Json) -> Result<Class, String> {
    let mut fields = Fields::open(format!("classes[{number}]"), value, &FIELDS)?;
    let id = stream::id(&mut fields)?;
    let parent = stream::name(&mut fields, "parent")?;
    let policy = fields.text("discipline", str::parse::<Policy>)?;
    let curves = curves::read(&mut fields)?.unwrap_or_default();
    Ok(Class { name: id.to_string(), id, parent, policy, curves, inner: false })
}

impl Class {
    fn spec(&self, ahead: Ahead) -> BranchSpec<'_> {
        let (parent, curves) = (self.parent.as_deref(), self.curves);
        let class = ClassSpec { name: &self.name, parent, curves };
        let leaf = (!self.inner).then(|| (self.policy(), ahead.eligibility()));
        BranchSpec { class, leaf }
    }

    /// Returns the discipline that schedules the streams of the class.
    pub(super) fn policy(&self) -> Policy {
        self.policy.unwrap_or_default()
    }
}

/// Formats an error with the path of the faulty class.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other errors need no path")]
fn refused(error: &SpecError, list: &[Class], places: &HashMap<String, usize>) -> String {
    let at = |name: &String| places.get(name).copied().unwrap_or_default();
    if let SpecError::UnknownParent { name, .. } | SpecError::Loop { name } = error {
        return format!("classes[{}].parent: {error}", at(name));
    }
    let SpecError::Class { name, error: inner } = error else { return format!("classes: {error}") };
    let parent = list.get(at(name)).and_then(|class| class.parent.as_ref()).map_or(0, at);
    match inner {
        HfscError::RealTimeOnInner(_) => format!(
            "classes[{parent}].real_time is set, but class {name:?} is its child: only classes \
             without children have a guarantee; move it to the child"
        ),
        HfscError::InnerWithoutLinkShare(_) => format!(
            "classes[{parent}].link_share is missing, but class {name:?} is its child: set its \
             share relative to its siblings"
        ),
        HfscError::TooDeep(_) => format!(
            "classes[{}].parent: class {name:?} is too deep: must be at most {DEPTH_MAX} levels \
             below the link",
            at(name)
        ),
        other => format!("classes[{}]: {other}", at(name)),
    }
}

impl Classes {
    /// Returns the leaf class that stream `number` names, and its discipline.
    pub(super) fn leaf(
        &self,
        number: usize,
        name: Option<&str>,
    ) -> Result<(ClassIndex, Policy), String> {
        let Some(name) = name else {
            return Err(format!("streams[{number}].class is missing: set it to the id of a class"));
        };
        let place = self.places.get(name).copied();
        let found = place.and_then(|at| Some((self.list.get(at)?, *self.indexes.get(at)?)));
        let Some((class, index)) = found else {
            return Err(format!(
                "streams[{number}].class is {name:?}, but no class has this id: add it to classes"
            ));
        };
        if class.inner {
            return Err(format!(
                "streams[{number}].class is {name:?}, which has child classes: use one of them"
            ));
        }
        Ok((index, class.policy()))
    }
}
