//! Numbers for a monitoring system.

use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;

use super::Handle;
use crate::command::Command;
use crate::error::ApiError;
use crate::metrics::view::{MetricsView, QueuesView, QueuesWanted};

impl Handle {
    /// Sums over all queues, and what was counted since the start; ages are missing.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn metrics(&self) -> Result<MetricsView, ApiError> {
        let state = self.ask(Command::Metrics).await?;
        let store = self.shared.store.status();
        let tracer = self.shared.tracer.as_ref();
        Ok(MetricsView::new(state, &self.shared.metrics, store, tracer))
    }

    /// Adds the age of the oldest ready message. Reads the store once for each queue that has any,
    /// so it may wait for the disk.
    pub fn oldest_ages(&self, view: &mut MetricsView) {
        let ready = view.state.ready.iter();
        let oldest = ready.filter_map(|queue| self.oldest(queue)).min();
        let now = self.shared.now();
        view.oldest_age = oldest.map(|oldest| now.since(oldest));
    }

    /// Some queues in numbers, one by one; ages are missing.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn queue_metrics(&self, wanted: QueuesWanted) -> Result<QueuesView, ApiError> {
        self.ask(|answer| Command::QueueMetrics(wanted, answer))
            .await
    }

    /// Adds the age of each queue's oldest ready message, as [`Handle::oldest_ages`] does.
    pub fn ages_of(&self, view: &mut QueuesView) {
        let now = self.shared.now();
        for queue in view.queues.iter_mut().filter(|queue| queue.ready() > 0) {
            queue.oldest_age = self.oldest(&queue.name).map(|oldest| now.since(oldest));
        }
    }

    fn oldest(&self, queue: &QueueName) -> Option<Timestamp> {
        self.shared.store.oldest(queue, 0)
    }
}
