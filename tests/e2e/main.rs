//! End-to-end tests: the real binary, real components, real files. One binary, one module a theme.

#![expect(clippy::unwrap_used, reason = "a test may")]
#![expect(
    unreachable_pub,
    reason = "one binary: nothing is reachable from outside"
)]

mod alarms;
mod auth;
mod chance;
mod console;
mod dev;
mod disk;
mod document;
mod export;
mod host;
mod hostile;
mod http;
mod kills;
mod languages;
mod ledger;
mod log_filter;
mod main_job;
mod metrics;
mod mount;
mod operate;
mod plugins;
mod pressure;
mod restart;
mod samples;
mod sandbox;
mod shutdown;
mod traces;
mod wait;
mod web;
mod work;
mod workshop;
