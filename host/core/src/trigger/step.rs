//! The numbered steps of the trigger method, and the trace of those that were passed.
//!
//! The numbers are used in logs, in `explain` and in tests; a number never changes its meaning.

use std::fmt;

/// Most steps one trace can hold. The longest path, through an exchange of the grant that is
/// refused, has ten.
pub const MAX_TRACE: usize = 16;

/// One step of the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Is a trigger already pending, and does the rule fire?
    S10,
    /// Are as many tasks in process as the queue may have?
    S12,
    /// Complete the trigger: perform the trigger process.
    S14,
    /// Go to the next queue.
    S16,
    /// Are the resources there for a new task?
    S50,
    /// Insufficient resources.
    S52,
    /// Is a second trigger process running for the queue?
    S54,
    /// Already in process.
    S56,
    /// Set the indicator: trigger in process.
    S58,
    /// Queue table: queue to process entry.
    S60,
    /// Process table: process entry to component version.
    S62,
    /// Complete the trigger message, start the task.
    S64,
    /// Decrement the pending trigger counter.
    S66,
    /// Clear the indicator, return the grant, ask the rule again.
    S68,
}

impl Step {
    /// Every step, in order of number.
    pub const ALL: [Self; 14] = [
        Self::S10,
        Self::S12,
        Self::S14,
        Self::S16,
        Self::S50,
        Self::S52,
        Self::S54,
        Self::S56,
        Self::S58,
        Self::S60,
        Self::S62,
        Self::S64,
        Self::S66,
        Self::S68,
    ];

    /// The permanent number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::S10 => 10,
            Self::S12 => 12,
            Self::S14 => 14,
            Self::S16 => 16,
            Self::S50 => 50,
            Self::S52 => 52,
            Self::S54 => 54,
            Self::S56 => 56,
            Self::S58 => 58,
            Self::S60 => 60,
            Self::S62 => 62,
            Self::S64 => 64,
            Self::S66 => 66,
            Self::S68 => 68,
        }
    }

    /// What the step does, in one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::S10 => "Is a trigger already pending for the queue, and does its rule fire?",
            Self::S12 => "Are as many tasks in process for the queue as it may have?",
            Self::S14 => "Complete the trigger: perform the trigger process.",
            Self::S16 => "Go to the next queue.",
            Self::S50 => "Are memory, fuel and a task slot there for a new task?",
            Self::S52 => "Insufficient resources: the queue waits until some are returned.",
            Self::S54 => "Is a second trigger process running for the queue?",
            Self::S56 => "Already in process: the other trigger process serves the queue.",
            Self::S58 => "Set the indicator: a trigger is in process for the queue.",
            Self::S60 => "Find the queue's process entry in the queue table.",
            Self::S62 => "Find the process definition's component version in the process table.",
            Self::S64 => "Complete the trigger message and start the task.",
            Self::S66 => "Decrement the pending trigger counter.",
            Self::S68 => "Clear the indicator, return the grant and ask the rule again.",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// The steps that one question passed, in order. At most [`MAX_TRACE`]; later ones are not kept. A
/// plain value: a question that is asked for every event allocates nothing for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Those behind `length` are all the same, so that traces compare by what they hold.
    steps: [Step; MAX_TRACE],
    length: usize,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            steps: [Step::S10; MAX_TRACE],
            length: 0,
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().fmt(f)
    }
}

impl Trace {
    /// Notes a step.
    pub fn pass(&mut self, step: Step) {
        debug_assert!(
            self.length < MAX_TRACE,
            "a trace longer than any path: {self}"
        );
        if let Some(next) = self.steps.get_mut(self.length) {
            *next = step;
            self.length += 1;
        }
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.steps.get(..self.length).unwrap_or_default()
    }

    /// Whether a step was passed.
    #[must_use]
    pub fn has(&self, step: Step) -> bool {
        self.steps().contains(&step)
    }

    /// The numbers of the steps.
    #[must_use]
    pub fn numbers(&self) -> Vec<u8> {
        self.steps().iter().map(|step| step.number()).collect()
    }

    /// The last step.
    #[must_use]
    pub fn last(&self) -> Option<Step> {
        self.steps().last().copied()
    }
}

impl Extend<Step> for Trace {
    fn extend<I: IntoIterator<Item = Step>>(&mut self, steps: I) {
        steps.into_iter().for_each(|step| self.pass(step));
    }
}

impl FromIterator<Step> for Trace {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut trace = Self::default();
        trace.extend(steps);
        trace
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            step.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_every_step_has_a_sentence() {
        assert!(
            Step::ALL
                .windows(2)
                .all(|pair| pair[0].number() < pair[1].number())
        );
        for step in Step::ALL {
            let sentence = step.sentence();
            assert!(
                sentence.ends_with(['.', '?']) && sentence.len() > 15,
                "{step}: {sentence}"
            );
        }
    }

    #[test]
    fn a_trace_reads_as_its_numbers() {
        let trace: Trace = [Step::S10, Step::S12, Step::S14].into_iter().collect();
        assert_eq!(trace.to_string(), "10, 12, 14");
        assert_eq!(trace.numbers(), [10, 12, 14]);
        assert_eq!(trace.last(), Some(Step::S14));
    }
}
