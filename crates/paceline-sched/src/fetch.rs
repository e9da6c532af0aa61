//! Memory that will be needed soon is fetched before it is.
//!
//! A processor that reads what no cache holds goes on for only some hundred instructions until it has come. One that
//! was told before does not wait at all.

/// A cache fetches the line on which element `at` of a slice begins. Nothing is read and nothing waits, and it
/// does not matter whether there is such an element.
#[cfg(any(unix, windows))]
#[inline(always)]
pub(crate) fn fetch<T>(slice: &[T], at: usize) {
    prefetch_index::prefetch_index(slice, at);
}

/// Where there is no operating system the processor is not known to have such a cache.
#[cfg(not(any(unix, windows)))]
#[inline(always)]
pub(crate) fn fetch<T>(_: &[T], _: usize) {}
