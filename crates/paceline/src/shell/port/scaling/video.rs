//! Scaling of video, whose pictures depend on each other.
//!
//! Nothing is decoded while thinning can provide the rate. Otherwise, and for another size, the
//! video is decoded and re-encoded. A video that cannot be decoded is thinned.

use super::coder::Coder;
use super::places::Places;
use super::thin::{Thin, Thinned};
use paceline_proto::control::FormBudget;
use paceline_proto::{Form, RawSample};
use paceline_sched::Duration;

/// The current method of scaling.
enum Way {
    Thin(Box<Thin>),
    Code(Box<Coder>),
}

/// Scales one video to one form.
pub(super) struct Video {
    form: Form,
    period: Option<Duration>,
    /// There is a decoder for the codec.
    decodes: bool,
    way: Way,
}

impl Video {
    pub(super) fn new(form: Form, period: Option<Duration>, decodes: bool) -> Self {
        Self { form, period, decodes, way: first_way(form, period, decodes) }
    }

    /// Scales the next unit; what is coded again fits `budget`. A `past` unit is decoded only as a reference of later
    /// ones. Returns the bytes of coded pictures.
    pub(super) fn serve(
        &mut self,
        sample: RawSample,
        past: bool,
        budget: Option<FormBudget>,
        places: &mut Places,
    ) -> Option<usize> {
        match &mut self.way {
            Way::Code(coder) if past => coder.decode(&sample, places),
            Way::Code(coder) => {
                coder.keep(budget);
                coder.serve(&sample, places);
                let bytes = coder.take_bytes();
                if coder.is_stuck() && !self.form.converts() {
                    self.way = Way::Thin(Box::new(Thin::new(self.form.rate, self.period, false)));
                }
                return bytes;
            }
            Way::Thin(thin) => {
                if let Thinned::TooDense(shown, due) = thin.serve(&sample, places) {
                    let mut coder = Coder::new(self.form, self.period);
                    coder.keep(budget);
                    coder.continue_rate(*due);
                    shown.iter().for_each(|unit| coder.decode(unit, places));
                    coder.serve(&sample, places);
                    self.way = Way::Code(Box::new(coder));
                }
            }
        }
        None
    }

    /// Delivers the pictures that are delayed for presentation order.
    pub(super) fn finish(&mut self, places: &mut Places) {
        match &mut self.way {
            Way::Thin(_) => {}
            Way::Code(coder) => coder.finish(places),
        }
    }

    pub(super) fn reset(&mut self) {
        self.way = first_way(self.form, self.period, self.decodes);
    }
}

fn first_way(form: Form, period: Option<Duration>, decodes: bool) -> Way {
    match form.converts() {
        true => Way::Code(Box::new(Coder::new(form, period))),
        false => Way::Thin(Box::new(Thin::new(form.rate, period, decodes))),
    }
}
