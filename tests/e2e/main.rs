//! End-to-end tests: the real binary, real components, real files. One binary, one module a theme.

#![expect(clippy::unwrap_used, reason = "a test may")]
#![expect(unreachable_pub, reason = "one binary: nothing is reachable from outside")]

mod host;
mod hostile;
mod main_job;
mod plugins;
mod samples;
mod sandbox;
mod wait;
mod work;
