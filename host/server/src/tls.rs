//! TLS of the listener: a certificate and its key from files, read again when they change.
//!
//! Connections keep the certificate that they began with. A new one that is no use changes nothing:
//! the old one goes on, and a warning says why.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::files::Stamp;

/// Longest file with certificates or a key, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{what} file \"{path}\" cannot be read: {source} [invalid-configuration]")]
    Io {
        /// `certificate` or `key`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no PEM of its kind.
    #[error("{what} file \"{path}\" has no {what} in PEM: {fact} [invalid-configuration]")]
    Malformed {
        /// `certificate` or `key`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        fact: String,
    },
    /// They do not go together.
    #[error(
        "certificate \"{certificate}\" and key \"{key}\" cannot be used together: {source} \
         [invalid-configuration]"
    )]
    Refused {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The certificate of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
    stamps: Mutex<[Option<Stamp>; 2]>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Tls");
        shown.field("certificate", &self.0.certificate);
        shown.finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate with its chain, and its key, both in PEM.
    ///
    /// # Errors
    /// A file cannot be read, or they do not go together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamps = [Stamp::of(certificate), Stamp::of(key)];
        let config = read(certificate, key)?;
        Ok(Self(Arc::new(Shared {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: ArcSwap::from_pointee(config),
            stamps: Mutex::new(stamps),
        })))
    }

    /// Reads the files again if one has changed, or in any case. True when there is a new
    /// certificate.
    pub(crate) fn reload(&self, always: bool) -> bool {
        let shared = &*self.0;
        let now = [Stamp::of(&shared.certificate), Stamp::of(&shared.key)];
        {
            let mut stamps = shared.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            if *stamps == now && !always {
                return false;
            }
            *stamps = now;
        }
        match read(&shared.certificate, &shared.key) {
            Ok(config) => {
                shared.config.store(Arc::new(config));
                tracing::info!("a new certificate is in use for new connections");
                true
            }
            Err(error) => {
                tracing::warn!("{error}; the certificate in use stays");
                false
            }
        }
    }

    /// Greets connections with the certificate of now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.config.load_full())
    }
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE), &mut bytes)?;
        Ok(bytes)
    });
    read.map_err(|source| TlsError::Io {
        what,
        path: path.to_owned(),
        source,
    })
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let malformed = |what, path: &Path, fact: String| TlsError::Malformed {
        what,
        path: path.to_owned(),
        fact,
    };
    let bytes = read_file("certificate", certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain
        .map_err(|error| malformed("certificate", certificate, error.to_string()))
        .and_then(|chain| {
            if chain.is_empty() {
                let fact = "there is none in it".to_owned();
                return Err(malformed("certificate", certificate, fact));
            }
            Ok(chain)
        })?;
    let bytes = read_file("key", key)?;
    // What is wrong with a key is not told in full: some of it could be the key.
    let key_of_pem = PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_error| malformed("key", key, "none can be read in it".to_owned()))?;
    let refused = |source| TlsError::Refused {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(chain, key_of_pem)
        .map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        folder: tempfile::TempDir,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a directory");
            let files = Self { folder };
            files.write("c.pem", "k.pem");
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, certificate: &str, key: &str) {
            let names = ["localhost".to_owned()];
            let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
            std::fs::write(self.path(certificate), made.cert.pem()).expect("written");
            std::fs::write(self.path(key), made.signing_key.serialize_pem()).expect("written");
        }

        fn load(&self, certificate: &str, key: &str) -> Result<Tls, String> {
            let loaded = Tls::load(&self.path(certificate), &self.path(key));
            loaded.map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_certificate_and_its_key_are_read() {
        let files = Files::new();
        files.load("c.pem", "k.pem").expect("a certificate");
        files.write("c2.pem", "k2.pem");
        let check = |certificate: &str, key: &str, part: &str| {
            let error = files.load(certificate, key).expect_err("refused");
            assert!(error.contains(part), "{error}");
        };
        check("c.pem", "k2.pem", "cannot be used together");
        check("none.pem", "k.pem", "cannot be read");
        check("k.pem", "k.pem", "has no certificate in PEM");
        check("c.pem", "c.pem", "has no key in PEM");
    }

    #[test]
    fn a_new_certificate_is_taken_and_a_bad_one_is_not() {
        let files = Files::new();
        let tls = files.load("c.pem", "k.pem").expect("a certificate");
        let first = tls.0.config.load_full();
        assert!(!tls.reload(false));
        // Half of a change: the key does not fit yet.
        files.write("c.pem", "later.pem");
        assert!(!tls.reload(false));
        assert!(Arc::ptr_eq(&first, &tls.0.config.load_full()));
        std::fs::rename(files.path("later.pem"), files.path("k.pem")).expect("renamed");
        assert!(tls.reload(false));
        assert!(!Arc::ptr_eq(&first, &tls.0.config.load_full()));
        let second = tls.0.config.load_full();
        std::fs::write(files.path("c.pem"), "nonsense").expect("written");
        assert!(!tls.reload(false));
        std::fs::remove_file(files.path("c.pem")).expect("removed");
        assert!(!tls.reload(true));
        assert!(Arc::ptr_eq(&second, &tls.0.config.load_full()));
    }
}
