//! The allocator of this test: the system's, with counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts what goes through it, from all threads.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static LARGE: AtomicU64 = AtomicU64::new(0);

/// What counts as large, in bytes: so long that it must hold a whole body.
static LARGE_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(size as u64, Ordering::Relaxed);
    if size >= LARGE_FROM.load(Ordering::Relaxed) {
        LARGE.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; each call goes to the system's as it came"
)]
// SAFETY: every method passes its arguments unchanged to the system's allocator, whose answers meet
// the trait's demands; counting touches atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Held by each test of this process while it runs: the counts are of all threads.
pub(crate) static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// Counts so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Allocations, growth among them.
    pub(crate) allocations: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Those that can hold a whole body.
    pub(crate) large: u64,
}

/// The counts since the start of the process.
pub(crate) fn counts() -> Counts {
    Counts {
        allocations: ALLOCATIONS.load(Ordering::Relaxed),
        bytes: BYTES.load(Ordering::Relaxed),
        large: LARGE.load(Ordering::Relaxed),
    }
}

/// From which size on an allocation is large.
pub(crate) fn large_from(bytes: usize) {
    LARGE_FROM.store(bytes, Ordering::Relaxed);
}
