//! Random decisions against a plain list of what must be installed.

use super::name::name;
use super::*;
use paceline_proto::Size;
use paceline_proto::SubscriptionId;
use paceline_proto::ingress::OutputKey;
use paceline_sched::discipline::StreamIndex;
use proptest::prelude::*;
use std::collections::BTreeSet;

const LINKS: u64 = 2;

/// The routes of a node: neighbour `n` is behind link `n % 2`.
#[derive(Default)]
struct Network {
    sends: BTreeSet<(PublisherId, NodeId)>,
    hands: BTreeSet<(SourceKey, NodeId, Form)>,
}

impl Routes for Network {
    fn link(&self, hop: NodeId) -> Option<usize> {
        usize::try_from(hop.0 % LINKS).ok()
    }

    fn sends_to(&self, publisher: PublisherId, hop: NodeId) -> bool {
        self.sends.contains(&(publisher, hop))
    }

    fn hands_over(&self, source: SourceKey, hop: NodeId, form: Form) -> bool {
        self.hands.contains(&(source, hop, form))
    }

    fn names(&self, _: NodeId, _: NodeId, _: &Tag) -> StreamNames {
        StreamNames::default()
    }
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Closed,
    Drained,
    HandedOver,
}

/// A driver that carries out commands on plain tables, and checks each of them.
#[derive(Default)]
struct Driver {
    streams: BTreeMap<StreamPlace, StreamSpec>,
    /// Streams that send what waits in them.
    ending: BTreeSet<StreamPlace>,
    outputs: BTreeMap<SourceKey, Vec<(OutputPlan, NewPort)>>,
    locals: BTreeMap<LocalPlace, BTreeSet<SubscriptionId>>,
    scalers: BTreeMap<ScalerId, ScalerTerms>,
    /// The streams that ended in the last decision.
    ends: BTreeMap<StreamPlace, End>,
    /// The publishers installed and not settled, and those settled in this decision.
    unsettled: BTreeSet<PublisherId>,
    settled: BTreeSet<PublisherId>,
    /// Streams may close before the outputs that replace them are installed.
    crowded: bool,
    starved: usize,
}

impl Driver {
    /// Installs plans for a source, in a decision of their own.
    fn change(&mut self, installer: &mut Installer, source: SourceKey, plans: Vec<OutputPlan>) {
        installer.handle_outputs(wanted(source, plans));
        self.decide(installer, &Network::default());
    }

    fn decide(&mut self, installer: &mut Installer, network: &Network) {
        (self.ends, self.settled, self.starved) = Default::default();
        let mut commands = installer.take_commands(Instant::ZERO, network);
        while !commands.is_empty() {
            commands.into_iter().for_each(|command| self.execute(command));
            assert!(self.unsettled.is_empty());
            self.settled.clear();
            commands = installer.take_commands(Instant::ZERO, network);
        }
    }

    fn execute(&mut self, command: PortCommand) {
        match command {
            PortCommand::OpenScaler { scaler, .. } => {
                assert_eq!(self.scalers.insert(scaler, ScalerTerms::default()), None);
            }
            PortCommand::SetTerms(scaler, terms) => {
                let before = self.scalers.insert(scaler, terms);
                assert!(before.is_some_and(|before| before != terms), "{scaler:?}");
            }
            PortCommand::CloseScaler(scaler) => {
                assert!(self.unsettled.is_empty() && self.scalers.remove(&scaler).is_some());
            }
            PortCommand::UpdateStream(place, spec) => {
                let before = self.streams.insert(place, spec.clone());
                assert!(before.is_some_and(|it| it != spec), "{place:?}");
            }
            PortCommand::UpdateLocal { place, leave, join, late } => {
                assert!(late.is_some() || !leave.is_empty() || !join.is_empty());
                let its = self.locals.get_mut(&place).unwrap();
                assert!(leave.iter().all(|id| its.remove(id)));
                assert!(join.iter().all(|id| its.insert(*id)));
            }
            PortCommand::Install { arrangement, installation, .. } => {
                let source = arrangement.key;
                assert!(
                    self.crowded || self.ends.is_empty(),
                    "all are installed before any closes"
                );
                assert!(!self.settled.contains(&source.publisher), "a publisher settles once");
                self.unsettled.insert(source.publisher);
                self.install(source, installation);
            }
            PortCommand::Settle => {
                assert_eq!(self.unsettled.len(), 1, "each publisher settles by itself");
                self.settled.append(&mut self.unsettled);
            }
            PortCommand::CloseStream(place) => self.end(place, End::Closed),
            PortCommand::DrainStream(place) => self.end(place, End::Drained),
            PortCommand::HandOverStream(place) => self.end(place, End::HandedOver),
            PortCommand::CloseLocal(place, last) => {
                assert_eq!(self.locals.remove(&place), Some(last.into_iter().collect()));
            }
            PortCommand::NoStream { .. } => self.starved += 1,
        }
    }

    fn end(&mut self, place: StreamPlace, end: End) {
        assert!(self.streams.remove(&place).is_some(), "{place:?} is not open");
        let feeds =
            |(_, port): &(_, NewPort)| matches!(port.end, PortEnd::Stream(its, _) if its == place);
        let is_fed = self.outputs.values().flatten().any(feeds);
        assert!(!is_fed || self.crowded && end == End::Closed, "{place:?} is in use");
        self.ends.insert(place, end);
        if end != End::Closed {
            self.ending.insert(place);
        }
    }

    fn install(&mut self, source: SourceKey, installation: Installation<NewPort>) {
        let mut before = self.outputs.remove(&source).unwrap_or_default();
        let mut outputs = Vec::new();
        for (plan, port) in installation.outputs {
            let same = |(other, _): &(OutputPlan, _)| name(other) == name(&plan);
            let kept = before.iter().position(same).map(|at| before.swap_remove(at).1);
            if let Some(new) = &port {
                match &new.end {
                    PortEnd::Stream(place, spec) => {
                        assert!(!self.ending.contains(place), "{place:?}");
                        assert_eq!(self.streams.insert(*place, spec.clone()), None, "{place:?}");
                    }
                    PortEnd::Local(place, first) => {
                        let first = first.iter().copied().collect();
                        assert_eq!(self.locals.insert(*place, first), None, "{place:?}");
                    }
                }
            }
            outputs.extend(port.or(kept).map(|port| (plan, port)));
        }
        if !outputs.is_empty() {
            self.outputs.insert(source, outputs);
        }
    }

    /// Checks that exactly the wanted outputs are installed.
    fn check(&self, wanted: &BTreeMap<SourceKey, Vec<OutputPlan>>) {
        assert!(self.outputs.keys().eq(wanted.keys()));
        let (mut streams, mut locals, mut used) = (BTreeSet::new(), 0, BTreeSet::new());
        let mut numbers = BTreeSet::new();
        for (source, plans) in wanted {
            let outputs = &self.outputs[source];
            let names = |plan: &OutputPlan| (OutputKey::of(plan), plan.at_port());
            let installed: BTreeSet<_> = outputs.iter().map(|(plan, _)| names(plan)).collect();
            assert_eq!(installed, plans.iter().map(names).collect());
            for plan in plans {
                let (_, port) = outputs.iter().find(|(it, _)| names(it) == names(plan)).unwrap();
                match (&port.end, plan.target) {
                    (PortEnd::Stream(place, _), Target::Hop(hop)) => {
                        assert!(streams.insert(*place));
                        let spec = StreamSpec::of(source.publisher, hop, plan);
                        let spec = spec.with_names(Some(Arc::new(StreamNames::default())));
                        assert_eq!(self.streams.get(place), Some(&spec));
                        assert_eq!(Some(place.link), Network::default().link(hop));
                    }
                    (PortEnd::Local(place, _), Target::Local) => {
                        locals += 1;
                        let its = plan.subscriptions.iter().copied().collect();
                        assert_eq!(self.locals.get(place), Some(&its));
                    }
                    (end, target) => panic!("{end:?} for {target:?}"),
                }
                assert_eq!(port.scaler.is_some(), plan.at_port() != Form::FULL);
                if let Some((id, number)) = port.scaler {
                    assert!(number < SCALER_OUTPUTS_MAX && numbers.insert((id, number)));
                    let promised = self.scalers[&id].promised;
                    assert!(promised || !plan.is_promised(), "{id:?} serves a contract");
                    used.insert(id);
                }
            }
        }
        assert!(self.streams.keys().copied().eq(streams));
        assert_eq!(self.locals.len(), locals);
        assert!(self.scalers.keys().copied().eq(used));
    }

    /// Returns the streams of installed outputs: the source, the plan and the place of each.
    fn carried(&self) -> Vec<(SourceKey, OutputPlan, StreamPlace)> {
        let all = self.outputs.iter().flat_map(|(source, its)| its.iter().map(|it| (*source, it)));
        let streams = all.filter_map(|(source, (plan, port))| match port.end {
            PortEnd::Stream(place, _) => Some((source, plan.clone(), place)),
            PortEnd::Local(..) => None,
        });
        streams.collect()
    }
}

fn source(number: u32) -> SourceKey {
    let publisher = PublisherId { node: NodeId(1), index: number / 2 };
    SourceKey { publisher, form: sized(number % 2) }
}

/// Returns the whole form, or a smaller one.
fn sized(number: u32) -> Form {
    let size = Size { width: 16 * number, height: 16 * number };
    Form { size: (number > 0).then_some(size), ..Form::FULL }
}

fn subscription(index: u32) -> SubscriptionId {
    SubscriptionId { node: NodeId(9), index }
}

fn plans() -> impl Strategy<Value = Vec<OutputPlan>> {
    let target =
        prop_oneof![(2..5_u64).prop_map(|node| Target::Hop(NodeId(node))), Just(Target::Local)];
    let subscriptions = prop::collection::btree_set(0..6_u32, 1..4);
    let within = prop::option::of((1..3_u64).prop_map(paceline_sched::Duration::from_millis));
    let plan = (target, 0..3_u32, 0..3_u32, subscriptions, within, any::<bool>());
    let plan = plan.prop_map(|(target, form, scale, subscriptions, within, aligned)| {
        let subscriptions = subscriptions.into_iter().map(subscription).collect();
        let (form, scale) = (sized(form), sized(scale));
        OutputPlan { scale, subscriptions, within, aligned, ..OutputPlan::new(target, form) }
    });
    prop::collection::vec(plan, 0..6).prop_map(|plans| {
        let mut names = BTreeSet::new();
        plans
            .into_iter()
            .filter(|plan| names.insert((OutputKey::of(plan), plan.at_port())))
            .collect()
    })
}

/// The changes of one decision: the outputs of sources, and whether each is followed and handed over.
fn decision() -> impl Strategy<Value = Vec<(u32, Vec<OutputPlan>, bool, bool)>> {
    prop::collection::vec((0..4_u32, plans(), any::<bool>(), any::<bool>()), 1..4)
}

fn wanted(source: SourceKey, plans: Vec<OutputPlan>) -> WantedOutputs {
    let publisher = Arc::new(PublisherSpec::new(Tag::new("camera").unwrap()));
    WantedOutputs { source, publisher, from: Vec::new(), entry: Vec::new(), plans }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_wanted_is_installed_and_nothing_else(
        decisions in prop::collection::vec(decision(), 1..12),
    ) {
        let (mut installer, mut driver) = (Installer::default(), Driver::default());
        let mut all = BTreeMap::new();
        for decision in decisions {
            let mut network = Network::default();
            for (number, plans, follows, hands) in decision {
                let source = source(number);
                for hop in (2..5).map(NodeId) {
                    network.sends.extend(follows.then_some((source.publisher, hop)));
                    network.hands.extend((0..3).filter(|_| hands).map(|it| (source, hop, sized(it))));
                }
                if plans.is_empty() {
                    all.remove(&source);
                } else {
                    all.insert(source, plans.clone());
                }
                installer.handle_outputs(wanted(source, plans));
            }
            let before = driver.carried();
            driver.decide(&mut installer, &network);
            driver.check(&all);
            let after: BTreeSet<_> = driver.carried().into_iter().map(|it| it.2).collect();
            let gone = before.into_iter().filter(|(.., place)| !after.contains(place));
            let ends = gone.map(|(source, plan, place)| {
                let Target::Hop(hop) = plan.target else { panic!("a stream leads to a neighbour") };
                let follows = all.get(&source).is_some_and(|its| its.iter().any(|it| it.target == plan.target));
                let end = if !follows && !network.sends_to(source.publisher, hop) {
                    End::Closed
                } else if network.hands_over(source, hop, plan.form) {
                    End::HandedOver
                } else {
                    End::Drained
                };
                (place, end)
            });
            prop_assert_eq!(&driver.ends, &ends.collect::<BTreeMap<_, _>>());
            prop_assert_eq!(driver.starved, 0);
            // A link closes some of the streams that end.
            let ends = |place: &StreamPlace| place.index.0.is_multiple_of(2);
            let ended: Vec<_> = driver.ending.iter().copied().filter(ends).collect();
            driver.ending.retain(|place| !ends(place));
            ended.into_iter().for_each(|place| installer.handle_closed(place));
        }
        // The same again changes nothing.
        for (source, plans) in all {
            installer.handle_outputs(wanted(source, plans));
        }
        prop_assert_eq!(installer.take_commands(Instant::ZERO, &Network::default()), vec![]);
    }
}

/// Returns plans for `number` neighbours behind link 0.
fn many(number: u64, form: Form) -> Vec<OutputPlan> {
    (1..=number).map(|at| OutputPlan::new(Target::Hop(NodeId(LINKS * at)), form)).collect()
}

#[test]
fn replaced_streams_drain_while_a_quarter_of_the_indexes_is_free() {
    let room = u64::from(STREAMS_MAX);
    // Of 2,000 streams with successors 96 indexes remain: 928 close at once.
    for (streams, drained) in [(10, 10), (room * 3 / 8, room * 3 / 8), (2_000, 1_072)] {
        let (mut installer, mut driver) = (Installer::default(), Driver::default());
        for form in [Form::FULL, sized(1)] {
            driver.change(&mut installer, source(0), many(streams, form));
        }
        assert_eq!(driver.ending.len() as u64, drained, "of {streams}");
        assert_eq!(driver.ends.len() as u64, streams);
    }
}

#[test]
fn only_the_new_streams_of_a_link_need_room_there() {
    let on_both = |first: Form| -> Vec<OutputPlan> {
        let plan =
            |at| OutputPlan::new(Target::Hop(NodeId(at)), if at == 2 { first } else { Form::FULL });
        (2..1_402).map(plan).collect()
    };
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    driver.change(&mut installer, source(0), on_both(Form::FULL));
    // With the streams of others, link 0 has a quarter of its indexes left, fewer than the source has outputs.
    driver.change(&mut installer, source(2), many(4_096 * 3 / 4 - 700 - 1, Form::FULL));
    driver.change(&mut installer, source(0), on_both(sized(1)));
    assert!(driver.ends.values().eq([&End::Drained]), "{:?}", driver.ends);
}

#[test]
fn streams_that_close_make_room_for_others() {
    let full = u64::from(STREAMS_MAX);
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    driver.crowded = true;
    for form in [Form::FULL, sized(1), Form::FULL] {
        driver.change(&mut installer, source(0), many(full, form));
        assert!(driver.ending.is_empty() && driver.streams.len() as u64 == full);
    }
    // Another source finds no room …
    driver.change(&mut installer, source(2), many(1, Form::FULL));
    assert_eq!((driver.starved, driver.streams.len() as u64), (1, full));
    // … until one of these is removed. It need not be requested again.
    driver.change(&mut installer, source(0), many(full - 1, Form::FULL));
    let all = [(source(0), many(full - 1, Form::FULL)), (source(2), many(1, Form::FULL))];
    driver.check(&BTreeMap::from(all));
    // A removed source makes room in the same decision, though its successor precedes it.
    installer.handle_outputs(wanted(source(0), Vec::new()));
    installer.handle_outputs(wanted(source(1), many(full - 1, Form::FULL)));
    driver.decide(&mut installer, &Network::default());
    assert_eq!((driver.starved, driver.streams.len() as u64), (0, full));
}

#[test]
fn more_outputs_of_a_form_than_a_scaler_takes_use_another_one() {
    let plans = |number: u64| -> Vec<OutputPlan> {
        let all = many(number, sized(1)).into_iter();
        all.map(|plan| OutputPlan { scale: sized(1), ..plan }).collect()
    };
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    for (number, scalers) in [(1, 1), (64, 1), (65, 2), (200, 4), (2, 1)] {
        driver.change(&mut installer, source(0), plans(number));
        driver.check(&BTreeMap::from([(source(0), plans(number))]));
        assert_eq!(driver.scalers.len(), scalers, "of {number} outputs");
    }
    // A contract sets the terms of the scaler that serves it.
    let mut promised = plans(2);
    promised[0].within = Some(paceline_sched::Duration::from_millis(5));
    promised[0].target = Target::Local;
    driver.change(&mut installer, source(0), promised.clone());
    driver.check(&BTreeMap::from([(source(0), promised)]));
}

#[test]
fn an_output_that_is_replaced_a_thousand_times_needs_one_scaler() {
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    for time in (1..1_000).filter_map(std::num::NonZero::new) {
        let rate = paceline_proto::Rate { every: time, ..Form::FULL.rate };
        let form = Form { rate, ..sized(1) };
        let plan = OutputPlan { scale: sized(1), ..OutputPlan::new(Target::Local, form) };
        driver.change(&mut installer, source(0), vec![plan]);
        assert_eq!(driver.scalers.len(), 1, "after {time} changes");
    }
}

#[test]
fn a_change_of_paths_or_successors_alone_is_installed() {
    let mut installer = Installer::default();
    let mut wants = wanted(source(0), many(1, Form::FULL));
    let mut change = |wants: &WantedOutputs| {
        installer.handle_outputs(wants.clone());
        installer.take_commands(Instant::from_millis(7), &Network::default())
    };
    // The neighbours, and whether an output is replaced, if that is all that is installed.
    let installs = |commands: &[PortCommand]| match commands {
        [PortCommand::Install { arrangement, installation, .. }, PortCommand::Settle] => {
            assert_eq!((arrangement.key, arrangement.at), (source(0), Instant::from_millis(7)));
            assert!(installation.outputs.iter().all(|(_, port)| port.is_none()));
            Some((arrangement.from.clone(), arrangement.is_replaced))
        }
        _ => None,
    };
    assert_eq!(change(&wants).len(), 2);
    let from = vec![NodeId(7)];
    wants.from.clone_from(&from);
    assert_eq!(installs(&change(&wants)), Some((from.clone(), false)));
    wants.plans[0].until = Some(sized(1));
    assert_eq!(installs(&change(&wants)), Some((from.clone(), true)));
    wants.plans[0].aligned = true;
    assert_eq!(installs(&change(&wants)), Some((from, true)));
    wants.plans[0].level = Some(3);
    assert!(matches!(change(&wants)[..], [PortCommand::UpdateStream(..)]));
    wants.plans[0].target = Target::Local;
    let commands = change(&wants);
    let closes = [
        PortCommand::Settle,
        PortCommand::CloseStream(StreamPlace { link: 0, index: StreamIndex(0) }),
    ];
    assert!(
        matches!(commands[..], [PortCommand::Install { .. }, ..]) && commands[1..] == closes,
        "{commands:?}"
    );
    wants.plans[0].late = paceline_sched::Late::Send;
    let commands = change(&wants);
    assert!(
        matches!(&commands[..], [PortCommand::UpdateLocal { join, late: Some(_), .. }] if join.is_empty())
    );
}

#[test]
fn only_best_effort_without_a_bound_takes_old_pictures() {
    let within = Some(paceline_sched::Duration::from_millis(5));
    let plain = OutputPlan::new(Target::Hop(NodeId(2)), Form::FULL);
    for (plan, takes) in [
        (plain.clone(), true),
        (OutputPlan { within, ..plain.clone() }, false),
        (OutputPlan { background: true, ..plain }, false),
    ] {
        let mut driver = Driver::default();
        driver.change(&mut Installer::default(), source(0), vec![plan]);
        assert_eq!(driver.outputs[&source(0)][0].1.takes_old, takes);
    }
}
