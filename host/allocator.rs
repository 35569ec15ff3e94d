//! The allocator of the programs, and how long it keeps memory that nobody uses. The reasons stand
//! in decision record 0021.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// After so many milliseconds the system gets memory back that nobody uses: longer than a store
/// takes to fill its next memtable, so that it need not ask the system for the pages anew.
const KEPT_MILLIS: std::ffi::c_long = 10_000;

/// `mi_option_purge_delay` of mimalloc 3, which the crate does not name.
const PURGE_DELAY: mi_option_t = 15;

/// Sets it, unless the environment does (`MIMALLOC_PURGE_DELAY`). Called once, first.
pub(crate) fn keep_memory() {
    #[expect(
        unsafe_code,
        reason = "the crate has no safe call for the allocator's options"
    )]
    // SAFETY: it stores a number under an option's number, which it checks itself; no other thread
    // runs yet.
    unsafe {
        mi_option_set_default(PURGE_DELAY, KEPT_MILLIS);
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn the_option_is_the_delay_and_is_set() {
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: as above; it reads a number.
        let get = || unsafe { mi_option_get(PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(
                get(),
                1000,
                "what mimalloc 3 has by itself: another number is another option"
            );
            keep_memory();
            assert_eq!(get(), KEPT_MILLIS);
        }
    }
}
