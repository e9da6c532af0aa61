//! Random decisions against a plain list of what must be installed.

use super::*;
use paceline_proto::Size;
use paceline_proto::SubscriptionId;
use paceline_proto::ingress::OutputKey;
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

/// The state of a stream of a link.
#[derive(Clone, Debug, PartialEq)]
enum Stream {
    Open(StreamSpec),
    Ending,
}

/// A driver that carries out commands on plain tables, and checks each of them.
#[derive(Default)]
struct Driver {
    streams: BTreeMap<StreamPlace, Stream>,
    outputs: BTreeMap<SourceKey, Vec<(OutputPlan, NewPort)>>,
    locals: BTreeMap<LocalPlace, BTreeSet<SubscriptionId>>,
    scalers: BTreeMap<ScalerId, ScalerTerms>,
    settled: bool,
}

impl Driver {
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
                assert!(self.scalers.remove(&scaler).is_some());
            }
            PortCommand::UpdateStream(place, spec) => {
                let before = self.streams.insert(place, Stream::Open(spec.clone()));
                assert!(matches!(before, Some(Stream::Open(it)) if it != spec), "{place:?}");
            }
            PortCommand::UpdateLocal { place, leave, join, late } => {
                assert!(late.is_some() || !leave.is_empty() || !join.is_empty());
                let its = self.locals.get_mut(&place).unwrap();
                assert!(leave.iter().all(|id| its.remove(id)));
                assert!(join.iter().all(|id| its.insert(*id)));
            }
            PortCommand::Install { arrangement, installation, .. } => {
                self.settled = false;
                self.install(arrangement.key, installation);
            }
            PortCommand::Settle => self.settled = true,
            PortCommand::CloseStream(place) => {
                assert!(matches!(self.streams.remove(&place), Some(Stream::Open(_))));
            }
            PortCommand::DrainStream(place) | PortCommand::HandOverStream(place) => {
                let before = self.streams.insert(place, Stream::Ending);
                assert!(matches!(before, Some(Stream::Open(_))));
            }
            PortCommand::CloseLocal(place, last) => {
                assert_eq!(self.locals.remove(&place), Some(last.into_iter().collect()));
            }
            PortCommand::NoStream { link } => panic!("link {link} has room"),
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
                        let spec = Stream::Open(spec.clone());
                        assert_eq!(self.streams.insert(*place, spec), None, "{place:?}");
                    }
                    PortEnd::Local(place, first) => {
                        let first = first.iter().copied().collect();
                        assert_eq!(self.locals.insert(*place, first), None, "{place:?}");
                    }
                }
            }
            let port = port.or(kept).expect("an output that stays was there before");
            outputs.push((plan, port));
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
                        assert_eq!(self.streams.get(place), Some(&Stream::Open(spec)));
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
        let open = self.streams.iter().filter(|(_, it)| matches!(it, Stream::Open(_)));
        assert!(open.map(|(place, _)| *place).eq(streams));
        assert_eq!(self.locals.len(), locals);
        let forms = |ids: &mut dyn Iterator<Item = ScalerId>| {
            ids.map(|id| (id.source, id.form)).collect::<BTreeSet<_>>()
        };
        let open = forms(&mut self.scalers.keys().copied());
        assert_eq!(open, forms(&mut used.into_iter()));
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
                installer.handle_outputs(Instant::ZERO, &network, wanted(source, plans));
            }
            let commands = installer.take_commands();
            prop_assert_eq!(installer.take_commands(), vec![]);
            commands.into_iter().for_each(|command| driver.execute(command));
            prop_assert!(driver.settled || driver.outputs.is_empty());
            driver.check(&all);
            // A link closes some of the streams that end.
            let ending = driver.streams.extract_if(.., |place, it| *it == Stream::Ending && place.index.0 % 2 == 0);
            ending.for_each(|(place, _)| installer.handle_closed(place));
        }
        // The same again changes nothing.
        for (source, plans) in all {
            installer.handle_outputs(Instant::ZERO, &Network::default(), wanted(source, plans));
        }
        prop_assert_eq!(installer.take_commands(), vec![]);
    }
}

/// Returns plans for `number` neighbours behind link 0.
fn many(number: u64, form: Form) -> Vec<OutputPlan> {
    (1..=number).map(|at| OutputPlan::new(Target::Hop(NodeId(LINKS * at)), form)).collect()
}

#[test]
fn a_replaced_stream_drains_while_its_link_has_room() {
    let form = sized(1);
    for (streams, kept) in [(10, 10), (u64::from(STREAMS_MAX) / 3, u64::from(STREAMS_MAX) / 3)] {
        let (mut installer, mut driver) = (Installer::default(), Driver::default());
        let network = Network::default();
        for form in [Form::FULL, form] {
            installer.handle_outputs(
                Instant::ZERO,
                &network,
                wanted(source(0), many(streams, form)),
            );
            installer.take_commands().into_iter().for_each(|command| driver.execute(command));
        }
        let ending = driver.streams.values().filter(|it| **it == Stream::Ending).count();
        assert_eq!(ending as u64, kept, "of {streams}");
    }
}

#[test]
fn replaced_streams_close_at_once_on_a_full_link() {
    let full = u64::from(STREAMS_MAX);
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    for form in [Form::FULL, sized(1), Form::FULL] {
        let wants = wanted(source(0), many(full, form));
        installer.handle_outputs(Instant::ZERO, &Network::default(), wants);
        installer.take_commands().into_iter().for_each(|command| driver.execute(command));
        assert!(driver.streams.values().all(|it| *it != Stream::Ending));
        assert_eq!(driver.streams.len() as u64, full);
    }
    // Another source finds no room until one of these ends.
    let other = wanted(source(2), many(1, Form::FULL));
    installer.handle_outputs(Instant::ZERO, &Network::default(), other.clone());
    let commands = installer.take_commands();
    assert!(commands.contains(&PortCommand::NoStream { link: 0 }), "{commands:?}");
    installer.handle_outputs(Instant::ZERO, &Network::default(), wanted(source(0), Vec::new()));
    installer.handle_outputs(Instant::ZERO, &Network::default(), other);
    let commands = installer.take_commands();
    assert!(!commands.contains(&PortCommand::NoStream { link: 0 }), "{commands:?}");
    commands.into_iter().for_each(|command| driver.execute(command));
    assert_eq!(driver.streams.len(), 1);
}

#[test]
fn more_outputs_of_a_form_than_a_scaler_takes_use_another_one() {
    let plans = |number: u64| -> Vec<OutputPlan> {
        let all = many(number, sized(1)).into_iter();
        all.map(|plan| OutputPlan { scale: sized(1), ..plan }).collect()
    };
    let (mut installer, mut driver) = (Installer::default(), Driver::default());
    let mut all = BTreeMap::new();
    for number in [1, 64, 65, 200, 2] {
        all.insert(source(0), plans(number));
        let wants = wanted(source(0), plans(number));
        installer.handle_outputs(Instant::ZERO, &Network::default(), wants);
        installer.take_commands().into_iter().for_each(|command| driver.execute(command));
        driver.check(&all);
        let scalers = driver.scalers.len() as u64;
        assert!(scalers >= number.div_ceil(64), "{scalers} scalers of {number} outputs");
    }
    // All of them get a contract's terms, whichever serves it.
    let mut promised = plans(2);
    promised[0].within = Some(paceline_sched::Duration::from_millis(5));
    promised[0].target = Target::Local;
    all.insert(source(0), promised.clone());
    installer.handle_outputs(Instant::ZERO, &Network::default(), wanted(source(0), promised));
    installer.take_commands().into_iter().for_each(|command| driver.execute(command));
    driver.check(&all);
    assert!(driver.scalers.values().all(|terms| terms.promised));
}

#[test]
fn a_change_of_paths_or_successors_alone_is_installed() {
    let mut installer = Installer::default();
    let mut wants = wanted(source(0), many(1, Form::FULL));
    let mut change = |wants: &WantedOutputs| {
        installer.handle_outputs(Instant::ZERO, &Network::default(), wants.clone());
        installer.take_commands()
    };
    let installs = |commands: &[PortCommand]| {
        matches!(commands, [PortCommand::Install { installation, .. }, PortCommand::Settle]
            if installation.outputs.iter().all(|(_, port)| port.is_none()))
    };
    assert_eq!(change(&wants).len(), 2);
    wants.from = vec![NodeId(7)];
    assert!(installs(&change(&wants)));
    wants.plans[0].until = Some(sized(1));
    assert!(installs(&change(&wants)));
    wants.plans[0].aligned = true;
    assert!(installs(&change(&wants)));
    wants.plans[0].level = Some(3);
    assert!(matches!(change(&wants)[..], [PortCommand::UpdateStream(..)]));
    wants.plans[0].target = Target::Local;
    let commands = change(&wants);
    assert!(
        matches!(
            commands[..],
            [PortCommand::Install { .. }, PortCommand::Settle, PortCommand::CloseStream(_)]
        ),
        "{commands:?}"
    );
    wants.plans[0].late = paceline_sched::Late::Send;
    let commands = change(&wants);
    assert!(
        matches!(&commands[..], [PortCommand::UpdateLocal { join, late: Some(_), .. }] if join.is_empty())
    );
}
