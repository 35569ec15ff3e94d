//! Who may use the host, over what, and where it is written down: from the settings.

use std::num::NonZeroU32;
use std::path::Path;

use oncue_core::code::Code;
use oncue_server::auth::{Access, Mode};
use oncue_server::{Audit, Security, Tls};

use crate::config::Config;
use crate::exit::{Exit, Failure};

/// Reads tokens and certificate.
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
    let tls = tls(config)?;
    Ok(Security {
        access,
        tls,
        is_proxied: config.is_on("insecure-http"),
        ..Security::default()
    })
}

/// Opens the audit log. Not before the store is open: a data directory that is refused must not be
/// touched.
///
/// # Errors
/// `store-stopped`: it cannot be written.
pub(super) fn audited(security: Security, data: &Path) -> Result<Security, Failure> {
    let audit = Audit::open(data).map_err(|error| {
        let message = format!(
            "audit log \"{}\" cannot be opened: {error}; check that its directory exists, is \
             writable and has room",
            data.join(oncue_server::AUDIT_DIRECTORY).display()
        );
        Failure::coded(Code::StoreStopped, message)
    })?;
    let names = if security.access.is_enforced() {
        security.access.names().join(", ")
    } else {
        "no tokens".to_owned()
    };
    audit.note_host("host-started", &names);
    Ok(Security {
        audit: Some(audit),
        ..security
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
