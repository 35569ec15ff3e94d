//! Whom a client believes over TLS: the system's certificates, or those of a file.

use std::path::Path;
use std::sync::Arc;

use oncue_core::code::Code;
use tokio_rustls::rustls::crypto::ring;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::exit::Failure;

/// Longest file with certificates, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// The settings of TLS: with `ca_file` only its certificates vouch for a server.
///
/// # Errors
/// Usage, when the file cannot be read or has no certificate.
pub(crate) fn config(ca_file: Option<&str>) -> Result<TlsConfig, Failure> {
    let roots = match ca_file {
        Some(file) => of_file(Path::new(file))?,
        None => of_system(),
    };
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

/// The system's. One that cannot be read is passed over: the others may do.
fn of_system() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs();
    let ders = found.certs.iter();
    ders.map(|der| Certificate::from_der(der).to_owned())
        .collect()
}

fn of_file(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let wrong = |fact: String| {
        let message = format!("certificates file \"{}\" {fact}", path.display());
        Failure::coded(Code::InvalidConfiguration, message)
    };
    let read = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_FILE), &mut bytes)?;
        Ok(bytes)
    });
    let bytes = read.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let mut found = Vec::new();
    for item in parse_pem(&bytes) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(wrong(format!("is no PEM: {error}"))),
        }
    }
    if found.is_empty() {
        return Err(wrong("has no certificate in PEM".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("ca.pem");
        let check = |part: &str| {
            let failure = config(path.to_str()).map(drop).expect_err("refused");
            assert!(failure.message.contains(part), "{failure}");
        };
        check("cannot be read");
        std::fs::write(&path, "nothing").expect("written");
        check("has no certificate in PEM");
        assert!(config(None).is_ok());
    }
}
