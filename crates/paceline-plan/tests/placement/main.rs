//! The planner compared with the exhaustive search, and errors of invalid and infeasible problems.
#![cfg(test)]

mod agree;
mod bad;
mod random;
