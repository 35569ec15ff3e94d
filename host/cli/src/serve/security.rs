//! Who may use the host, over what, and where it is written down: from the settings.

use std::num::NonZeroU32;
use std::path::Path;

use oncue_core::code::Code;
use oncue_server::auth::{Access, Mode};
use oncue_server::{Audit, Security, Tls};

use crate::config::Config;
use crate::exit::{Exit, Failure};

/// Reads tokens and certificate, opens the audit log.
///
/// # Errors
/// Usage: what cannot be used.
pub(super) fn of(config: &Config, data: &Path) -> Result<Security, Failure> {
    let mode = match config.text("auth") {
        "required" => Mode::Required,
        "off" => Mode::Off,
        _ => Mode::Auto,
    };
    let rate = config.number("rate-limit").unwrap_or_default();
    let rate = NonZeroU32::new(u32::try_from(rate).unwrap_or(u32::MAX));
    let access = Access::load(data, mode, rate);
    let access = access.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    if mode == Mode::Off {
        tracing::warn!("setting \"auth\" is off: whoever reaches this host may do everything");
    }
    let audit = Audit::open(data).map_err(|error| {
        let message = format!(
            "the audit log in \"{}\" cannot be opened: {error}",
            data.join(oncue_server::AUDIT_DIRECTORY).display()
        );
        Failure::coded(Code::InvalidConfiguration, message)
    })?;
    let tls = tls(config)?;
    let names = if access.is_enforced() {
        access.names().join(", ")
    } else {
        "no tokens".to_owned()
    };
    audit.note_host("host-started", &names);
    Ok(Security {
        access,
        audit: Some(audit),
        tls,
        is_proxied: config.is_on("insecure-http"),
        ..Security::default()
    })
}

/// The certificate, if both of its files are named.
fn tls(config: &Config) -> Result<Option<Tls>, Failure> {
    let lonely = |there: &str, missing: &str| {
        let message = format!("setting \"{there}\" is there and \"{missing}\" is not; set both");
        Err(Failure::coded(Code::InvalidConfiguration, message))
    };
    match (config.optional("tls-cert"), config.optional("tls-key")) {
        (None, None) => Ok(None),
        (Some(_), None) => lonely("tls-cert", "tls-key"),
        (None, Some(_)) => lonely("tls-key", "tls-cert"),
        (Some(certificate), Some(key)) => {
            let loaded = Tls::load(Path::new(certificate), Path::new(key));
            let loaded = loaded.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
            Ok(Some(loaded))
        }
    }
}
