//! Adding, removing and changing classes of a running tree.

use super::{
    CLASSES_MAX, Class, ClassIndex, Curves, DEPTH_MAX, Hfsc, HfscError, Inner, NONE, RuntimeCurve,
    Spent, grow,
};
use crate::time::Instant;

impl Curves {
    /// Checks that a class with these curves can be served.
    const fn check(&self) -> Result<(), HfscError> {
        if self.upper_limit.is_some() && self.link_share.is_none() {
            return Err(HfscError::UpperLimitWithoutLinkShare);
        }
        if self.real_time.is_none() && self.link_share.is_none() {
            return Err(HfscError::NoCurve);
        }
        Ok(())
    }

    /// Checks that a class with these curves can have children.
    const fn check_inner(&self, class: ClassIndex) -> Result<(), HfscError> {
        if self.real_time.is_some() {
            return Err(HfscError::RealTimeOnInner(class));
        }
        if self.link_share.is_none() {
            return Err(HfscError::InnerWithoutLinkShare(class));
        }
        Ok(())
    }
}

impl Hfsc {
    /// Adds an empty leaf below `parent`. The parent must exist, so there are no loops.
    ///
    /// # Errors
    /// [`HfscError`] if the parent does not exist, or is a leaf with a real-time curve or a packet. Also
    /// if the curves are insufficient for a class, or if the tree is too deep or full.
    pub fn add(&mut self, parent: ClassIndex, curves: Curves) -> Result<ClassIndex, HfscError> {
        curves.check()?;
        let above = self.class(parent.0).ok_or(HfscError::Unknown(parent))?;
        if parent != ClassIndex::ROOT {
            above.curves.check_inner(parent)?;
        }
        if above.waiting {
            return Err(HfscError::ParentActive(parent));
        }
        if above.depth >= DEPTH_MAX {
            return Err(HfscError::TooDeep(parent));
        }
        let class = Class::new(parent.0, above.depth.saturating_add(1), curves);
        let at = self.vacancy()?;
        if curves.real_time.is_some() {
            self.eligible.reserve(at);
        }
        self.shares.reserve(at);
        self.make_inner(parent.0);
        if let Some(place) = self.classes.get_mut(at as usize) {
            *place = Some(class);
        }
        if let Some(above) = self.class_mut(parent.0) {
            above.children = above.children.saturating_add(1);
        }
        Ok(ClassIndex(at))
    }

    /// Removes a leaf with its packets. Its index is reused.
    ///
    /// # Errors
    /// [`HfscError`] if there is no such class, if it is the root, or if it has children.
    pub fn remove(&mut self, class: ClassIndex) -> Result<(), HfscError> {
        if class == ClassIndex::ROOT {
            return Err(HfscError::Root);
        }
        let leaf = self.class(class.0).ok_or(HfscError::Unknown(class))?;
        if leaf.children > 0 {
            return Err(HfscError::HasChildren(class));
        }
        let (parent, inner) = (leaf.parent, leaf.inner);
        self.set_passive(self.now, class);
        if inner != NONE {
            self.vacant_inners.push(inner);
        }
        if let Some(place) = self.classes.get_mut(class.0 as usize) {
            *place = None;
        }
        if let Some(above) = self.class_mut(parent) {
            above.children = above.children.saturating_sub(1);
        }
        self.vacant.push(class.0);
        Ok(())
    }

    /// Changes the curves of a class while it runs.
    ///
    /// A new curve begins at `now`, with the service until then as its origin; an unchanged curve
    /// continues.
    ///
    /// # Errors
    /// [`HfscError`] if there is no such class, if it is the root, or if the curves are insufficient for
    /// a class at its position.
    pub fn update(
        &mut self,
        now: Instant,
        class: ClassIndex,
        curves: Curves,
    ) -> Result<(), HfscError> {
        if class == ClassIndex::ROOT {
            return Err(HfscError::Root);
        }
        let before = self.class(class.0).ok_or(HfscError::Unknown(class))?;
        curves.check()?;
        if before.children > 0 {
            curves.check_inner(class)?;
        }
        let (before, sharing) = (before.curves, before.sharing);
        self.now = self.now.max(now);
        if before.real_time != curves.real_time {
            self.set_real_time(class.0, curves);
        }
        if sharing && curves.link_share.is_none() {
            // This removes the upper limit too.
            self.spend(class.0, Spent { bytes: 0, by_real_time: false, leaving: true });
        }
        self.set_shares(class.0, curves);
        Ok(())
    }

    /// Returns the curves of a class; `None` if there is no such class.
    #[must_use]
    pub fn curves(&self, class: ClassIndex) -> Option<Curves> {
        self.class(class.0).map(|class| class.curves)
    }

    /// Returns the parent of a class; `None` for the root, and if there is no such class.
    #[must_use]
    pub fn parent(&self, class: ClassIndex) -> Option<ClassIndex> {
        self.parent_of(class.0).map(ClassIndex)
    }

    /// Returns true if the class exists and has no children; always false for the root.
    #[must_use]
    pub fn is_leaf(&self, class: ClassIndex) -> bool {
        self.class(class.0).is_some_and(Class::is_leaf)
    }

    /// Returns the number of classes, without the root.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.len() - self.vacant.len() - 1
    }

    /// Returns true if there is nothing but the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the tree in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let classes = self.classes.capacity() * size_of::<Option<Class>>();
        let vacant = (self.vacant.capacity() + self.vacant_inners.capacity()) * size_of::<u32>();
        let inners = self.inners.capacity() * size_of::<Inner>();
        size_of::<Self>()
            + classes
            + inners
            + vacant
            + self.eligible.memory()
            + self.shares.memory()
    }

    /// Allocates the parent state of a class that gets its first child.
    fn make_inner(&mut self, at: u32) {
        let vacant = self.vacant_inners.last().copied();
        let next = vacant.or_else(|| u32::try_from(self.inners.len()).ok());
        let Some(class) = self.class_mut(at).filter(|class| class.inner == NONE) else { return };
        let Some(next) = next else { return };
        class.inner = next;
        match self.inners.get_mut(next as usize) {
            Some(inner) => *inner = Inner::new(),
            None => {
                grow(&mut self.inners);
                self.inners.push(Inner::new());
            }
        }
        self.vacant_inners.pop();
    }

    fn vacancy(&mut self) -> Result<u32, HfscError> {
        if let Some(at) = self.vacant.pop() {
            return Ok(at);
        }
        let at = u32::try_from(self.classes.len()).map_err(|_| HfscError::TooMany)?;
        if at > CLASSES_MAX {
            return Err(HfscError::TooMany);
        }
        grow(&mut self.classes);
        self.classes.push(None);
        Ok(at)
    }

    fn set_real_time(&mut self, at: u32, curves: Curves) {
        let nanos = u128::from(self.now.as_nanos());
        self.eligible.remove(&mut self.eligible_root, at);
        if curves.real_time.is_some() {
            self.eligible.reserve(at);
        }
        let Some(leaf) = self.class_mut(at) else { return };
        leaf.curves.real_time = curves.real_time;
        if let Some(curve) = &leaf.curves.real_time {
            leaf.deadline = RuntimeCurve::starting(curve, nanos, leaf.by_real_time);
        }
        let waiting = leaf.waiting;
        if let Some((eligible, deadline)) = leaf.eligible_and_deadline().filter(|_| waiting) {
            self.eligible.insert(&mut self.eligible_root, at, eligible, deadline);
        }
    }

    fn set_shares(&mut self, at: u32, curves: Curves) {
        let nanos = u128::from(self.now.as_nanos());
        let Some(class) = self.class_mut(at) else { return };
        let before = core::mem::replace(&mut class.curves, curves);
        match curves.link_share {
            None => class.virtual_time = RuntimeCurve::UNBOUNDED,
            Some(curve) if before.link_share != curves.link_share => {
                class.virtual_time = RuntimeCurve::starting(&curve, class.vt, class.total);
                class.vt_adjust = 0;
            }
            Some(_) => {}
        }
        if before.upper_limit != curves.upper_limit {
            class.limit = curves.upper_limit.as_ref().map_or(RuntimeCurve::UNBOUNDED, |curve| {
                RuntimeCurve::starting(curve, nanos, class.total)
            });
            class.my_fit = 0;
            class.limit();
        }
        if class.waiting && !class.sharing && curves.link_share.is_some() {
            self.join(at);
        } else {
            self.refit(at);
        }
    }
}
