//! What makes two puts under one idempotency key the same put.

use sha2::{Digest, Sha256};

use crate::tasks::port::PutRequest;

/// Digest of the queue, the body and the content type: a repeat must agree in these. Properties may
/// differ, since clients stamp them with times and trace ids at each try.
#[must_use]
pub fn body_digest(request: &PutRequest) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [
        request.queue.as_str().as_bytes(),
        request
            .options
            .content_type
            .as_deref()
            .unwrap_or_default()
            .as_bytes(),
        &request.body,
    ] {
        // The length first, so that no two different splits read the same.
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
