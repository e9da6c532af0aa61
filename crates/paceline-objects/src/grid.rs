//! An index of positions: a uniform grid of cells, each a set of objects.

use crate::ids::ObjectIndex;
use crate::motion::distance;
use crate::table::ObjectTable;
use std::collections::BTreeMap;

type Cell = [i64; 3];

/// Finds the objects near a position.
///
/// An object that moves within its cell, or at most a tenth of a cell out of it, changes nothing but its position; so
/// one that moves along a border does not change its cell all the time.
#[derive(Clone, Debug)]
pub struct PositionGrid {
    edge: f64,
    cells: BTreeMap<Cell, Vec<(ObjectIndex, [f64; 3])>>,
    /// The cell of each object and its place there.
    places: ObjectTable<(Cell, usize)>,
}

impl PositionGrid {
    /// How far an object may be out of its cell, as a share of the edge of a cell.
    const SLACK: f64 = 0.1;

    /// Creates a grid. `edge` is the length of a cell, best near the usual radius of a query; one that is not finite
    /// or not more than 0 is 1.
    #[must_use]
    pub fn new(edge: f64) -> Self {
        let edge = if edge.is_finite() && edge > 0.0 { edge } else { 1.0 };
        Self { edge, cells: BTreeMap::new(), places: ObjectTable::default() }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places an object, or moves it.
    pub fn place(&mut self, object: ObjectIndex, position: [f64; 3]) {
        if let Some((cell, place)) = self.places.get(object).copied() {
            if belongs(cell, position, self.edge) {
                let entry = self.cells.get_mut(&cell).and_then(|cell| cell.get_mut(place));
                if let Some((_, known)) = entry {
                    *known = position;
                }
                return;
            }
            self.remove(object);
        }
        let cell = position.map(|component| cell_number(component / self.edge));
        let objects = self.cells.entry(cell).or_default();
        self.places.insert(object, (cell, objects.len()));
        objects.push((object, position));
    }

    /// Removes an object.
    pub fn remove(&mut self, object: ObjectIndex) {
        let Some((cell, place)) = self.places.remove(object) else { return };
        let Some(objects) = self.cells.get_mut(&cell) else { return };
        objects.swap_remove(place);
        if let Some((moved, _)) = objects.get(place) {
            self.places.insert(*moved, (cell, place));
        } else if objects.is_empty() {
            self.cells.remove(&cell);
        }
    }

    /// Returns the objects at most `enter` from `center`, and those at most `leave` from it that were in range, in
    /// ascending order.
    #[must_use]
    pub fn within(
        &self,
        center: [f64; 3],
        enter: f64,
        leave: f64,
        was_in: impl Fn(ObjectIndex) -> bool,
    ) -> Vec<ObjectIndex> {
        let reach = enter.max(leave);
        let mut found = Vec::new();
        let mut check = |objects: &[(ObjectIndex, [f64; 3])]| {
            for (object, position) in objects {
                let distance = distance(center, *position);
                if distance <= enter || (distance <= leave && was_in(*object)) {
                    found.push(*object);
                }
            }
        };
        if let Some(cells) = self.near(center, reach) {
            cells.filter_map(|cell| self.cells.get(&cell)).for_each(|cell| check(cell));
        } else {
            self.cells.values().for_each(|cell| check(cell));
        }
        found.sort_unstable();
        found
    }

    /// Returns the cells that can hold objects at most `reach` from `center`, and None if these are more than there
    /// are cells.
    fn near(&self, center: [f64; 3], reach: f64) -> Option<impl Iterator<Item = Cell>> {
        let reach = reach / self.edge + Self::SLACK;
        let center = center.map(|component| component / self.edge);
        let low = center.map(|component| cell_number(component - reach));
        let high = center.map(|component| cell_number(component + reach));
        let spans = low.iter().zip(&high).map(|(low, high)| high.abs_diff(*low).saturating_add(1));
        let count = spans.fold(1_u64, u64::saturating_mul);
        if count > u64::try_from(self.cells.len()).unwrap_or(u64::MAX) {
            return None;
        }
        let ([x0, y0, z0], [x1, y1, z1]) = (low, high);
        let rows = (x0..=x1).flat_map(move |x| (y0..=y1).map(move |y| (x, y)));
        Some(rows.flat_map(move |(x, y)| (z0..=z1).map(move |z| [x, y, z])))
    }
}

fn belongs(cell: Cell, position: [f64; 3], edge: f64) -> bool {
    cell.iter().zip(position).all(|(number, component)| {
        let offset = component / edge - low(*number);
        (-PositionGrid::SLACK..=1.0 + PositionGrid::SLACK).contains(&offset)
    })
}

#[expect(clippy::cast_precision_loss, reason = "far from the origin, cells are larger")]
fn low(cell: i64) -> f64 {
    cell as f64
}

#[expect(clippy::cast_possible_truncation, reason = "saturates: far cells are larger")]
fn cell_number(component: f64) -> i64 {
    component.floor() as i64
}
