//! `oncue:handler/unit-of-work`: ending a unit within a task. Trigger style only; the session
//! refuses it elsewhere.

use oncue_manager::tasks::port::PortError;

use super::Guest;
use super::bindings::oncue::handler::types::Error;
use super::bindings::oncue::handler::unit_of_work::Host;
use super::types::refusal;

impl Host for Guest {
    async fn commit(&mut self) -> wasmtime::Result<Result<(), Error>> {
        match self.session()?.commit().await {
            Ok(()) => Ok(Ok(())),
            // The unit is undone and the task goes on: the next get begins anew.
            Err(PortError::Conflict(text)) => Ok(Err(Error::Other(text))),
            Err(error) => Ok(Err(refusal(error)?)),
        }
    }

    async fn backout(&mut self) -> wasmtime::Result<()> {
        self.session()?.backout().await;
        Ok(())
    }
}
