//! A naive HFSC: every decision scans every class, a runtime curve is the list of all its origins, and
//! inverses are found by search.

use paceline_sched::curve::Curve;
use paceline_sched::hfsc::{Criterion, Curves};

const BYTE: i128 = 8_000_000_000;

/// Returns S(`after`) in nanobits.
fn value(curve: &Curve, after: i128) -> i128 {
    let d = i128::from(curve.d().as_nanos());
    i128::from(curve.m1()) * after.min(d) + i128::from(curve.m2()) * (after - d).max(0)
}

/// Returns the least time ≥ 0 at which a rising function reaches `wanted`.
fn search(wanted: i128, of: impl Fn(i128) -> i128) -> i128 {
    if of(0) >= wanted {
        return 0;
    }
    let mut high = 1;
    while of(high) < wanted {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = i128::midpoint(low, high);
        if of(middle) >= wanted { high = middle } else { low = middle }
    }
    high
}

/// A curve with several origins, each in nanoseconds and bytes.
#[derive(Clone, Debug, Default)]
struct Anchored(Vec<(i128, i128)>);

impl Anchored {
    fn begin(&mut self, curve: &Curve, x: i128, y: i128) {
        if curve.m1() > curve.m2() {
            self.0.push((x, y));
            return;
        }
        // Convex curves: the one that is lower in the long run replaces the other.
        let late = x + (1 << 60);
        let end = |&(at, from): &(i128, i128)| from * BYTE + value(curve, late - at);
        if self.0.first().is_none_or(|old| end(old) >= end(&(x, y))) {
            self.0 = vec![(x, y)];
        }
    }

    fn time_of(&self, curve: &Curve, y: i128) -> i128 {
        let of = |&(x, from): &(i128, i128)| x + search((y - from) * BYTE, |t| value(curve, t));
        self.0.iter().map(of).max().unwrap_or(0)
    }

    fn line_time_of(&self, curve: &Curve, y: i128) -> i128 {
        let (x, from) = self.0[0];
        x + search((y - from) * BYTE, |t| i128::from(curve.m2()) * t)
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    parent: usize,
    curves: Curves,
    waiting: Option<i128>,
    active: bool,
    total: i128,
    cumul: i128,
    /// Real-time service of removed classes below this one.
    removed: i128,
    due: Anchored,
    share: Anchored,
    cap: Anchored,
    e: i128,
    d: i128,
    vt: i128,
    vtadj: i128,
    myf: i128,
    joined: u64,
    period: u64,
    cvtmin: i128,
    cvtoff: i128,
}

impl Node {
    fn find_times(&mut self) {
        let (Some(curve), Some(len)) = (&self.curves.real_time, self.waiting) else { return };
        let concave = curve.m1() > curve.m2();
        self.e = if concave {
            self.due.time_of(curve, self.cumul)
        } else {
            self.due.line_time_of(curve, self.cumul)
        };
        self.d = self.due.time_of(curve, self.cumul + len);
    }

    fn find_limit(&mut self) {
        let Some(limit) = &self.curves.upper_limit else { return };
        self.myf = self.myf.max(self.cap.time_of(limit, self.total));
    }

    fn find_vt(&mut self, cvtmin: i128) {
        let Some(curve) = &self.curves.link_share else { return };
        self.vt = self.share.time_of(curve, self.total) + self.vtadj;
        if self.vt < cvtmin {
            self.vtadj += cvtmin - self.vt;
            self.vt = cvtmin;
        }
    }
}

pub(crate) struct Twin {
    now: i128,
    picked: i128,
    nodes: Vec<Option<Node>>,
}

impl Twin {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            picked: 0,
            nodes: vec![Some(Node { parent: usize::MAX, ..Node::default() })],
        }
    }

    fn at(&mut self, class: usize) -> &mut Node {
        self.nodes[class].as_mut().unwrap()
    }

    fn look(&self, class: usize) -> &Node {
        self.nodes[class].as_ref().unwrap()
    }

    fn tick(&mut self, now: u64) {
        self.now = self.now.max(i128::from(now));
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?)))
    }

    fn children(&self, class: usize) -> Vec<usize> {
        self.all().filter(|(_, node)| node.parent == class).map(|(at, _)| at).collect()
    }

    fn active_children(&self, class: usize) -> Vec<usize> {
        self.children(class).into_iter().filter(|&child| self.look(child).active).collect()
    }

    /// Returns the classes from `class` up to the child of the root.
    fn path(&self, class: usize) -> Vec<usize> {
        let up = |&at: &usize| Some(self.look(at).parent).filter(|&parent| parent != 0);
        std::iter::successors(Some(class), up).collect()
    }

    pub(crate) fn leaves(&self) -> Vec<usize> {
        let classes = self.all().map(|(at, _)| at);
        classes.filter(|&at| at != 0 && self.children(at).is_empty()).collect()
    }

    pub(crate) fn is_leaf(&self, class: usize) -> bool {
        self.leaves().contains(&class)
    }

    pub(crate) fn classes(&self) -> Vec<usize> {
        self.all().map(|(at, _)| at).filter(|&at| at != 0).collect()
    }

    pub(crate) fn curves(&self, class: usize) -> Curves {
        self.look(class).curves
    }

    pub(crate) fn waiting(&self, class: usize) -> Option<u64> {
        self.look(class).waiting.map(|len| u64::try_from(len).unwrap())
    }

    pub(crate) fn add(&mut self, at: usize, parent: usize, curves: Curves) {
        if self.nodes.len() <= at {
            self.nodes.resize_with(at + 1, || None);
        }
        self.nodes[at] = Some(Node { parent, curves, ..Node::default() });
    }

    pub(crate) fn remove(&mut self, class: usize) {
        self.go_passive(class);
        let node = self.nodes[class].take().unwrap();
        self.at(node.parent).removed += node.cumul + node.removed;
    }

    pub(crate) fn update(&mut self, now: u64, class: usize, curves: Curves) {
        self.tick(now);
        let now = self.now;
        let old = self.curves(class);
        if curves.link_share.is_none() && self.look(class).active {
            self.spend(class, 0, false, true);
        }
        let node = self.at(class);
        node.curves = curves;
        if old.real_time != curves.real_time {
            node.due = Anchored(vec![(now, node.cumul)]);
            node.find_times();
        }
        if curves.link_share.is_none() {
            node.share = Anchored::default();
        } else if old.link_share != curves.link_share {
            node.share = Anchored(vec![(node.vt, node.total)]);
            node.vtadj = 0;
        }
        if old.upper_limit != curves.upper_limit {
            let origin = curves.upper_limit.map(|_| (now, node.total));
            (node.cap, node.myf) = (Anchored(origin.into_iter().collect()), 0);
            node.find_limit();
        }
        if !node.active && node.waiting.is_some() && curves.link_share.is_some() {
            self.activate(class);
        }
    }

    pub(crate) fn set_active(&mut self, now: u64, class: usize, len: u64) {
        self.tick(now);
        let now = i128::from(now).max(self.picked);
        let node = self.at(class);
        let waited = node.waiting.replace(i128::from(len)).is_some();
        if let Some(curve) = node.curves.real_time.filter(|_| !waited) {
            let from = node.due.0.last().map_or(now, |&(before, _)| now.max(before));
            node.due.begin(&curve, from, node.cumul);
        }
        node.find_times();
        if !waited && node.curves.link_share.is_some() {
            self.activate(class);
        }
    }

    pub(crate) fn set_passive(&mut self, now: u64, class: usize) {
        self.tick(now);
        self.go_passive(class);
    }

    fn go_passive(&mut self, class: usize) {
        if self.at(class).waiting.take().is_some() {
            self.spend(class, 0, false, true);
        }
    }

    pub(crate) fn set_next(&mut self, class: usize, len: u64) {
        let node = self.at(class);
        if node.waiting.is_some() {
            node.waiting = Some(i128::from(len));
            node.find_times();
        }
    }

    pub(crate) fn pick(&mut self, now: u64) -> Option<(usize, Criterion)> {
        self.tick(now);
        self.picked = self.now;
        let waiting = self.all().filter(|(_, node)| node.waiting.is_some());
        let guaranteed = waiting.filter(|(_, node)| node.curves.real_time.is_some());
        let eligible = guaranteed.filter(|(_, node)| node.e <= self.now);
        if let Some((at, _)) = eligible.min_by_key(|&(at, node)| (node.d, node.e, at)) {
            return Some((at, Criterion::RealTime));
        }
        let mut at = 0;
        while at == 0 || !self.children(at).is_empty() {
            let fitting = self.active_children(at).into_iter().filter(|&c| self.fit(c) <= self.now);
            let child = fitting.min_by_key(|&child| (self.look(child).vt, child))?;
            let vt = self.look(child).vt;
            self.at(at).cvtmin = self.at(at).cvtmin.max(vt);
            at = child;
        }
        Some((at, Criterion::LinkShare))
    }

    pub(crate) fn charge(
        &mut self,
        now: u64,
        (class, criterion): (usize, Criterion),
        bytes: u64,
        next: Option<u64>,
    ) {
        self.tick(now);
        let real_time = criterion == Criterion::RealTime;
        let waited = self.look(class).waiting.is_some();
        self.at(class).waiting = next.map(i128::from).filter(|_| waited);
        if waited || bytes > 0 || next.is_some() {
            self.spend(class, i128::from(bytes), real_time, next.is_none());
        }
        match next {
            Some(len) if !waited => self.set_active(now, class, len),
            Some(_) => self.at(class).find_times(),
            None => {}
        }
    }

    pub(crate) fn next_change(&self, now: u64) -> Option<u64> {
        let now = self.now.max(i128::from(now));
        let guaranteed = |node: &&Node| node.waiting.is_some() && node.curves.real_time.is_some();
        let waiting = self.all().map(|(_, node)| node).filter(guaranteed);
        let eligible = waiting.map(|node| node.e).filter(|&e| e > now).min();
        let fits = self.active_children(0).into_iter().map(|child| self.fit(child)).min();
        let first = eligible.into_iter().chain(fits.filter(|&fit| fit > now)).min()?;
        Some(u64::try_from(first).unwrap())
    }

    pub(crate) fn service(&self, class: usize) -> (u64, u64) {
        // Real-time service is counted at the leaves alone and summed on demand.
        let below = self.all().filter(|&(at, _)| at == class || self.is_below(at, class));
        let cumul: i128 = below.map(|(_, node)| node.cumul + node.removed).sum();
        let total = self.look(class).total;
        (u64::try_from(total).unwrap(), u64::try_from(cumul).unwrap())
    }

    pub(crate) fn deadline(&self, class: usize) -> Option<u64> {
        let node = self.look(class);
        node.waiting.filter(|_| node.curves.real_time.is_some())?;
        Some(u64::try_from(node.d).unwrap())
    }

    fn is_below(&self, class: usize, above: usize) -> bool {
        class != 0 && (above == 0 || self.path(class).contains(&above))
    }

    /// f = max(myf, the least f of the active children).
    fn fit(&self, class: usize) -> i128 {
        let below = self.active_children(class).into_iter().map(|child| self.fit(child)).min();
        self.look(class).myf.max(below.unwrap_or(0))
    }

    fn activate(&mut self, leaf: usize) {
        let now = self.now;
        for at in self.path(leaf) {
            let parent = self.look(at).parent;
            let siblings = self.active_children(parent);
            let most = siblings.iter().map(|&child| self.look(child).vt).max();
            let above = self.at(parent);
            let vt = match most {
                None => {
                    above.period += 1;
                    above.cvtmin = 0;
                    above.cvtoff
                }
                Some(most) if above.cvtmin == 0 => most,
                Some(most) => (above.cvtmin + most) / 2,
            };
            let period = above.period;
            let node = self.at(at);
            if most.is_none() || node.joined != period || vt > node.vt {
                node.vt = vt;
            }
            (node.vtadj, node.joined, node.active) = (0, period, true);
            let (curve, limit) = (node.curves.link_share.unwrap(), node.curves.upper_limit);
            node.share.begin(&curve, node.vt, node.total);
            node.find_limit();
            if let Some(limit) = &limit {
                node.cap.begin(limit, now, node.total);
            }
            node.find_limit();
            if most.is_some() {
                break;
            }
        }
    }

    fn spend(&mut self, leaf: usize, bytes: i128, real_time: bool, empties: bool) {
        let (now, shares) = (self.now, self.look(leaf).curves.link_share.is_some());
        if real_time {
            self.at(leaf).cumul += bytes;
        }
        self.at(0).total += bytes;
        let mut leaving = empties;
        for at in self.path(leaf) {
            let parent = self.look(at).parent;
            let cvtmin = self.look(parent).cvtmin;
            leaving &= self.active_children(at).is_empty();
            let node = self.at(at);
            node.total += bytes;
            if !node.active && !shares {
                leaving = false;
                continue;
            }
            node.find_vt(cvtmin);
            let vt = node.vt;
            if node.active && !leaving {
                // Unused capacity of the upper limit expires after 100 ms.
                let unused = node.curves.upper_limit.map_or(0, |limit| {
                    (now - 100_000_000).max(0) - node.cap.time_of(&limit, node.total)
                });
                node.cap.0.iter_mut().for_each(|(x, _)| *x += unused.max(0));
                node.find_limit();
                continue;
            }
            // The class became passive now, or was passive before the bytes were counted.
            leaving = std::mem::replace(&mut node.active, false);
            self.at(parent).cvtoff = self.at(parent).cvtoff.max(vt);
        }
    }
}
