//! Units as samples.
