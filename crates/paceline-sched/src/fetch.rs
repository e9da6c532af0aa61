//! Prefetches memory that will be needed soon.
//!
//! After a cache miss a processor executes only some hundred instructions before it stalls. A prefetch
//! issued early enough avoids the stall.

/// Prefetches the cache line on which element `at` of a slice begins.
///
/// Reads nothing and does not block. The index may be out of bounds.
#[cfg(any(unix, windows))]
#[inline(always)]
pub(crate) fn fetch<T>(slice: &[T], at: usize) {
    prefetch_index::prefetch_index(slice, at);
}

/// Does nothing: without an operating system, the processor is not known to have a cache that can
/// prefetch.
#[cfg(not(any(unix, windows)))]
#[inline(always)]
pub(crate) fn fetch<T>(_: &[T], _: usize) {}
