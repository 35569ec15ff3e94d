//! `lease`: settle messages that were got with `get --keep`.

use serde_json::{Map, Value};

use super::{Context, done};
use crate::args::messages::{ExtendArgs, LeaseCommand, NackArgs, TokenArgs};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::time::format_timestamp;
use crate::render::values::first;
use oncue_core::quantity::format_millis;

/// Runs a command about leases. Each token is settled for itself, in the order given.
pub(super) fn run(context: &Context, command: &LeaseCommand) -> Result<(), Failure> {
    match command {
        LeaseCommand::Ack(args) => ack(context, args),
        LeaseCommand::Nack(args) => nack(context, args),
        LeaseCommand::Extend(args) => extend(context, args),
    }
}

fn ack(context: &Context, args: &TokenArgs) -> Result<(), Failure> {
    for token in &args.token {
        let answer = context
            .client
            .ask(Request::post(&["leases", token, "ack"]))?;
        done(
            context,
            &answer,
            &format!("lease {token}: the message is acknowledged"),
        )?;
    }
    Ok(())
}

fn nack(context: &Context, args: &NackArgs) -> Result<(), Failure> {
    let mut fields = Map::new();
    fields.extend(
        args.reason
            .as_ref()
            .map(|reason| ("reason".to_owned(), reason.clone().into())),
    );
    let delay = args.delay.map(format_millis);
    fields.extend(delay.map(|delay| ("delay".to_owned(), Value::from(delay))));
    let fields = Value::Object(fields);
    for token in &args.tokens.token {
        let request = Request::post(&["leases", token, "nack"]).json(&fields);
        let answer = context.client.ask(request)?;
        done(
            context,
            &answer,
            &format!("lease {token}: the message is given back"),
        )?;
    }
    Ok(())
}

fn extend(context: &Context, args: &ExtendArgs) -> Result<(), Failure> {
    let fields = serde_json::json!({ "lease": format_millis(args.lease) });
    for token in &args.tokens.token {
        let request = Request::post(&["leases", token, "extend"]).json(&fields);
        let answer = context.client.ask(request)?;
        let until = first(&answer, &["until", "lease.until"]).as_u64();
        let until = until.map(|until| format!(" until {}", format_timestamp(until)));
        let until = until.unwrap_or_default();
        done(context, &answer, &format!("lease {token}: extended{until}"))?;
    }
    Ok(())
}
