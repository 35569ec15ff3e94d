//! How much fuel this machine burns in a second: measured once, for the ledger's capacity. Fuel
//! counts work and not time, so the figure is a scale and no promise.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use oncue_core::definition::ProcessAttributes;
use wasmtime::{Instance, Module, Store};

use crate::engine::Sandbox;
use crate::interfaces::Guest;
use crate::sink::Log;
use crate::task::deadline::Deadline;
use crate::task::instance::new_store;
use crate::task::limits::Limits;

/// No machine is taken for slower than this, in fuel per second and core.
pub const MIN_FUEL_RATE: u64 = 4_000_000_000;
/// Nor for faster.
pub const MAX_FUEL_RATE: u64 = 9_000_000_000;

/// Turns of the loop: some ten milliseconds.
const TURNS: i32 = 3_000_000;
/// The best of so many runs counts; the others were disturbed.
const RUNS: u32 = 3;

/// A core module with one function, `f`: so many turns of a multiplication, an exclusive or and a
/// branch.
///
/// ```wat
/// (module (func (export "f") (param i32) (result i32) (local i32)
///   loop
///     local.get 1 i32.const 3 i32.mul local.get 0 i32.xor local.set 1
///     local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0
///   end
///   local.get 1))
/// ```
#[rustfmt::skip]
const LOOP: &[u8] = &[
    0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
    0x01, 0x06, 0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f,
    0x03, 0x02, 0x01, 0x00,
    0x07, 0x05, 0x01, 0x01, 0x66, 0x00, 0x00,
    0x0a, 0x1e, 0x01, 0x1c, 0x01, 0x01, 0x7f,
    0x03, 0x40,
    0x20, 0x01, 0x41, 0x03, 0x6c, 0x20, 0x00, 0x73, 0x21, 0x01,
    0x20, 0x00, 0x41, 0x01, 0x6b, 0x22, 0x00, 0x0d, 0x00,
    0x0b,
    0x20, 0x01, 0x0b,
];

impl Sandbox {
    /// Fuel that one core burns in a second, between [`MIN_FUEL_RATE`] and [`MAX_FUEL_RATE`]. Takes
    /// some tens of milliseconds; the caller keeps the answer. The lower bound where it cannot be
    /// measured.
    #[must_use]
    pub fn measure_fuel_rate(&self) -> u64 {
        let measured = (0..RUNS).filter_map(|_| self.run_loop().ok()).max();
        measured
            .unwrap_or(MIN_FUEL_RATE)
            .clamp(MIN_FUEL_RATE, MAX_FUEL_RATE)
    }

    /// Fuel per second of one run.
    fn run_loop(&self) -> wasmtime::Result<u64> {
        let limits = Limits::new(&ProcessAttributes::default());
        let deadline = Arc::new(Deadline::new(limits.deadline, limits.task_deadline));
        let guest = Guest::new(None, &limits, &Log::new(0), &deadline, false, None);
        let place = self.place();
        let mut store = new_store(place.engine(), guest, &limits)?;
        let module = Module::new(place.engine(), LOOP)?;
        let took = finish(turn(&mut store, &module))?;
        let burnt = limits.fuel.saturating_sub(store.get_fuel()?);
        let nanos = took.as_nanos().max(1);
        let rate = u128::from(burnt) * 1_000_000_000 / nanos;
        Ok(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// The time of all turns.
async fn turn(store: &mut Store<Guest>, module: &Module) -> wasmtime::Result<Duration> {
    let instance = Instance::new_async(&mut *store, module, &[]).await?;
    let function = instance.get_typed_func::<i32, i32>(&mut *store, "f")?;
    let begun = std::time::Instant::now();
    function.call_async(&mut *store, TURNS).await?;
    Ok(begun.elapsed())
}

/// Polls until it is done. The loop inside is bounded, and gives way only to come back.
pub(crate) fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SandboxConfig;

    #[test]
    fn a_fuel_rate_is_measured() {
        let sandbox = Sandbox::new(SandboxConfig {
            slots: Some(16),
            ..SandboxConfig::default()
        })
        .expect("made");
        assert!(sandbox.run_loop().expect("runs") > 0);
        let rate = sandbox.measure_fuel_rate();
        assert!((MIN_FUEL_RATE..=MAX_FUEL_RATE).contains(&rate), "{rate}");
    }
}
