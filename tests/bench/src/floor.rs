//! What the machine itself allows: a bare instance, a bare append.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use oncue_core::definition::ProcessAttributes;
use oncue_runtime::{Loaded, Sandbox};

/// Instances of one measurement.
const INSTANCES: u32 = 500;

/// Records of one measurement, their length in bytes, and how many share a sync: as many as
/// producers of the durable puts beside it.
const RECORDS: usize = 12_800;
const RECORD: usize = 1024;
const SYNC_EVERY: usize = 128;

/// Microseconds of a fresh `wasmtime::Store`, an instance in it, and their end.
pub(crate) async fn instantiate(sandbox: &Sandbox, loaded: &Loaded) -> anyhow::Result<f64> {
    let attributes = ProcessAttributes::default();
    let start = Instant::now();
    for _ in 0..INSTANCES {
        sandbox.smoke(loaded, &attributes).await?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(INSTANCES))
}

/// Records a second that a file takes when 128 of them share a sync.
pub(crate) fn append(directory: &Path) -> anyhow::Result<f64> {
    let path = directory.join("append");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let record = [7_u8; RECORD];
    let start = Instant::now();
    for number in 1..=RECORDS {
        file.write_all(&record)?;
        if number % SYNC_EVERY == 0 {
            file.sync_data()?;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let records = RECORDS as f64;
    Ok(records / start.elapsed().as_secs_f64())
}
