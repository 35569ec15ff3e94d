//! The HTTP API over a queue manager with a memory store and a scripted task host. Every answer is
//! checked against the OpenAPI document.

mod audit;
mod auth;
mod console;
mod console_rights;
mod dead_letters;
mod definition_sets;
mod definitions;
mod document;
mod events;
mod examples;
mod guarded;
mod harness;
mod host;
mod hostile;
mod leases;
mod listener;
mod messages;
mod pages;
mod pressure;
mod schema;
mod sessions;
mod sight;
mod tasks;
