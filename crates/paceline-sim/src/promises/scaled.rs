//! Publishers of pictures with declared coding times, and subscriptions to scaled forms.

use super::{Publishes, Run};
use crate::ask::all;
use crate::handle::{NodeIx, Pub};
use core::num::NonZeroU32;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::{Form, Proxy, Rate, ScaledForm, Size};
use paceline_proto::sample::{Encoding, Kind};
use paceline_sched::Duration;
use std::collections::BTreeSet;

/// The size of unscaled pictures.
const FULL: Size = Size { width: 64, height: 48 };

/// The scaling threads of each node, and the work that the network leaves to them.
#[derive(Debug, Default)]
pub(super) struct Scaling {
    threads: u64,
    /// The most forms that a node scales for requests with a contract.
    forms: u64,
    /// The longest coding time of any form.
    most: Duration,
    /// The forms that each node scales.
    tasks: BTreeSet<(NodeIx, Pub, Form)>,
}

impl Scaling {
    /// Returns the longest time from the arrival of a sample at a node to its result: R = C + B + ΣC/m, with one sample of
    /// best effort and one of each other form.
    fn response(&self, own: Duration) -> Duration {
        let others = self.most.mul_div(self.forms - 1, 1);
        let nanos = others.as_nanos().div_ceil(self.threads);
        own.saturating_add(self.most).saturating_add(Duration::from_nanos(nanos))
    }

    /// Reserves a place among the forms of a node. Returns false if there is none.
    fn reserve(&mut self, node: NodeIx, publisher: Pub, form: Form) -> bool {
        // With a bit rate, each rate has a scaler of its own.
        let rate = if form.bitrate.is_some() { form.rate } else { Rate::ALL };
        let task = (node, publisher, Form { rate, ..form });
        let count = self.tasks.iter().filter(|(it, ..)| *it == node).count() as u64;
        let free = count < self.forms || self.tasks.contains(&task);
        if free {
            self.tasks.insert(task);
        }
        free
    }
}

impl Run {
    /// Draws the threads of all nodes and the limits of their work.
    pub(super) fn prepare_scaling(&mut self) {
        if self.mix.scaled == 0 {
            return;
        }
        let chance = &mut self.scale_chance;
        let (threads, forms) = (1 + chance.below(3), 1 + chance.below(6));
        let most = Duration::from_micros(200 << chance.below(7));
        self.scaling = Scaling { threads, forms, most, tasks: BTreeSet::new() };
        for node in self.nodes.clone() {
            self.world.set_scaler_threads(node, usize::try_from(threads).unwrap_or(1));
        }
    }

    /// Makes some publishers publish pictures, and declares the sizes and coding times of one to three forms.
    pub(super) fn declare_forms(&mut self, spec: &mut PublisherSpec) {
        let (scaled, scaling, chance) = (self.mix.scaled, &self.scaling, &mut self.scale_chance);
        let period = spec.period.unwrap_or_default();
        // Samples may be early by a tenth of a period. The next one must find the scaler free.
        if !chance.chance(scaled) || scaling.response(scaling.most) > period.mul_div(9, 10) {
            return;
        }
        let full = spec.bytes_max.unwrap_or_default();
        let encodings = [Encoding::Jpeg, Encoding::new("image/png"), Encoding::new("video/raw")];
        let place = chance.place(encodings.len());
        spec.encoding = encodings.get(place).cloned().unwrap_or(Encoding::Jpeg);
        spec.kind = Kind::Picture;
        spec.size = Some(FULL);
        for part in 0..=chance.below(3) {
            let (width, height) = (FULL.width >> part, FULL.height >> part);
            let size = Some(Size { width, height }).filter(|_| part > 0);
            let bytes = full / 8 + chance.below(full) + 1;
            // From an eighth of the full pictures' bit rate to more than that.
            let bits = u128::from(bytes) * 8_000_000_000 / u128::from(period.as_nanos().max(1));
            let form = spec.form_of(Form { size, ..Form::FULL });
            // Lower bit rates are refused.
            let bits = bits.max(spec.least_bitrate(form).unwrap_or_default().into());
            let bits = NonZeroU32::new(u32::try_from(bits).unwrap_or(u32::MAX));
            let bitrate = bits.filter(|_| size.is_none() || chance.chance(500));
            let form = spec.form_of(Form { bitrate, ..form });
            let own = scaling.most.mul_div(1 + chance.below(1_000), 1_000);
            if form.converts() {
                let bytes_max = bytes.min(full);
                let takes = scaling.response(own);
                spec.scaled.push(ScaledForm { form, bytes_max, takes, work: own });
            }
        }
        spec.scaled.sort_unstable_by_key(|one| one.form);
    }

    /// Sets the coding times of a publisher's forms at all nodes, and adds subscriptions to some without a contract.
    pub(super) fn code(&mut self, place: usize) {
        let Some(Publishes { publisher, spec, paths, .. }) = self.publishers.get(place) else {
            return;
        };
        if spec.scaled.is_empty() {
            return;
        }
        let (publisher, tag) = (*publisher, spec.tag.as_str().to_owned());
        let none = self.scaling.response(Duration::ZERO);
        for ScaledForm { form, takes, .. } in spec.scaled.clone() {
            self.world.set_coding_time(publisher, form, takes.saturating_sub(none));
        }
        if spec.within.is_some() || !self.scale_chance.chance(200) {
            return;
        }
        let quality = core::num::NonZeroU8::new(50);
        let form = spec.form_of(Form {
            size: Some(Size { width: 16, height: 12 }),
            quality,
            ..Form::FULL
        });
        if let Some((to, _)) = self.scale_chance.one_of(paths) {
            self.world.set_coding_time(publisher, form, self.scaling.most);
            self.world.keep_deliveries(false);
            let proxy = self.proxy();
            self.world.subscribe(to, SubscriptionSpec { form, proxy, ..all(&tag) });
        }
    }

    fn proxy(&mut self) -> Proxy {
        if self.scale_chance.chance(350) { Proxy::Subscriber } else { Proxy::Publisher }
    }

    /// Lets some subscriptions at `to` request a scaled form. Returns the time for scaling, and the longest sample on
    /// the links.
    pub(super) fn scale(
        &mut self,
        place: usize,
        to: NodeIx,
        request: &mut SubscriptionSpec,
    ) -> (Duration, u64) {
        let Some(Publishes { publisher, spec, source, node, .. }) = self.publishers.get(place)
        else {
            return (Duration::ZERO, 0);
        };
        let (publisher, node, unscaled) = (*publisher, *node, (Duration::ZERO, source.bytes_max));
        if spec.scaled.is_empty() || !self.scale_chance.chance(700) {
            return unscaled;
        }
        let Some(one) = self.scale_chance.one_of(&spec.scaled) else { return unscaled };
        let n =
            NonZeroU32::new(self.scale_chance.below(16).saturating_sub(12).try_into().unwrap_or(0));
        let form = Form { rate: n.map_or(Rate::ALL, Rate::every), ..one.form };
        let bytes = spec.budget(form).map_or(0, |budget| budget.bytes_max);
        let proxy = self.proxy();
        let scales = if proxy == Proxy::Publisher { node } else { to };
        if !self.scaling.reserve(scales, publisher, form) {
            return unscaled;
        }
        let longest = if proxy == Proxy::Publisher { bytes } else { unscaled.1 };
        (request.form, request.proxy) = (form, proxy);
        (one.takes, longest)
    }
}
