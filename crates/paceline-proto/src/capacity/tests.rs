//! Tests of the estimator as a whole, over a simulated bottleneck.

mod bottleneck;
mod hostile;
mod reference;
mod run;
mod steady;
mod table;
mod traces;
