//! Tests of shared media: single steps, and random histories of several nodes with delayed announcements.

mod histories;
mod network;
mod steps;
