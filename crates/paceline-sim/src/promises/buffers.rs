//! The buffers of links: contracts never queue more than what admission has reserved for them.

use super::Run;
use crate::LinkIx;
use crate::world::World;

/// A link, and the most buffer that was reserved there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    link: LinkIx,
    most: u64,
}

impl Reserved {
    pub(super) const fn new(link: LinkIx) -> Self {
        Self { link, most: 0 }
    }

    /// Checks that the queues never exceeded the reserved buffer, and that this fits the link's.
    fn look(&mut self, world: &World) -> Result<u64, String> {
        let Some(buffer) = world.buffer(self.link) else { return Ok(0) };
        self.most = self.most.max(buffer.held);
        let greatest = world.link(self.link).greatest_depth();
        if greatest > self.most || buffer.held > buffer.most {
            return Err(format!(
                "{:?}: up to {greatest} bytes were queued, {} reserved, now {buffer:?}",
                self.link, self.most
            ));
        }
        Ok(greatest * 1_000 / self.most.max(1))
    }
}

impl Run {
    /// Gives some links a small buffer.
    pub(super) fn limit_buffer(&mut self, link: LinkIx) {
        if self.mix.classes > 0 && self.class_chance.chance(200) {
            let bytes = 2_000_u64 << self.class_chance.below(7);
            self.world.set_buffer(link, bytes);
        }
        self.buffers.push(Reserved::new(link));
    }

    /// Returns a buffer of which a part is reserved.
    pub(super) fn reserved_buffer(&self) -> Option<String> {
        let held = |it: &Reserved| self.world.buffer(it.link).filter(|buffer| buffer.held > 0);
        self.buffers.iter().find_map(|it| Some(format!("{:?}: {:?}", it.link, held(it)?)))
    }

    /// Checks all buffers.
    pub(super) fn look_at_buffers(&mut self) -> Result<(), String> {
        for buffer in &mut self.buffers {
            self.outcome.deepest = self.outcome.deepest.max(buffer.look(&self.world)?);
        }
        Ok(())
    }
}
