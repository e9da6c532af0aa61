//! The fluid link that fair queueing imitates (generalized processor sharing). It serves all backlogged
//! streams at once, each in proportion to its rate. One byte takes one unit of time.

/// The fraction bits of the bytes. Each step rounds by less than one such part; thousands of steps round
/// by far less than the byte of margin in the bounds.
pub(crate) const FRACTION: u32 = 40;

pub(crate) struct Fluid {
    rates: Vec<u64>,
    /// The bytes not served yet, in 2^-40 bytes.
    queued: Vec<i128>,
    served: Vec<i128>,
}

impl Fluid {
    pub(crate) fn new(rates: &[u64]) -> Self {
        let none = vec![0; rates.len()];
        Self { rates: rates.to_vec(), queued: none.clone(), served: none }
    }

    pub(crate) fn arrive(&mut self, stream: usize, bytes: u32) {
        self.queued[stream] += i128::from(bytes) << FRACTION;
    }

    /// Returns the service of the stream so far, in 2^-40 bytes.
    pub(crate) fn served(&self, stream: usize) -> i128 {
        self.served[stream]
    }

    /// Serves the backlogged streams for the time of `bytes` bytes.
    pub(crate) fn run(&mut self, bytes: u32) {
        let mut time = i128::from(bytes) << FRACTION;
        while time > 0 {
            let busy = || (0..self.rates.len()).filter(|&at| self.queued[at] > 0);
            let rates: i128 = busy().map(|at| i128::from(self.rates[at])).sum();
            // Until the first of them is empty, rounded up so that it is.
            let until = |at: usize| {
                let rate = i128::from(self.rates[at]);
                (self.queued[at] * rates + rate - 1) / rate
            };
            let Some(step) = busy().map(until).min() else { return };
            let step = step.min(time);
            for at in busy().collect::<Vec<_>>() {
                let share = (step * i128::from(self.rates[at]) / rates).min(self.queued[at]);
                self.queued[at] -= share;
                self.served[at] += share;
            }
            time -= step;
        }
    }
}
