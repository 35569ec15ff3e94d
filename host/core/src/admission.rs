//! Step 50: the ledger of task slots, memory and fuel. All that a task needs is reserved, or none.
//!
//! The ledger is arithmetic: it measures nothing and enforces nothing. A [`Grant`] cannot be copied
//! and must be given back; one that is dropped instead is a fault of ours, seen in debug builds.
//! Among many small tasks a large one would wait for ever; so for the queue that waits longest, and
//! for that one only, freed capacity is set aside.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::QueueName;
use crate::time::{Millis, Timestamp};
use crate::trigger::hold::HoldReason;

/// After waiting so long for resources, milliseconds, a queue has freed capacity set aside for it.
pub const STARVED_AFTER: Millis = 1_000;

/// What a task needs besides its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Bytes.
    pub memory: u64,
    /// Units of fuel.
    pub fuel: u64,
}

/// An amount of all that the ledger counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Task slots.
    pub slots: u32,
    /// Bytes.
    pub memory: u64,
    /// Units of fuel.
    pub fuel: u64,
}

impl Resources {
    /// One task of such a demand.
    #[must_use]
    pub const fn of(demand: Demand) -> Self {
        Self {
            slots: 1,
            memory: demand.memory,
            fuel: demand.fuel,
        }
    }

    /// Raised where needed, so that at least one such task fits.
    #[must_use]
    pub fn at_least(self, demand: Demand) -> Self {
        Self {
            slots: self.slots.max(1),
            memory: self.memory.max(demand.memory),
            fuel: self.fuel.max(demand.fuel),
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_sub(other.slots),
            memory: self.memory.saturating_sub(other.memory),
            fuel: self.fuel.saturating_sub(other.fuel),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(other.slots),
            memory: self.memory.saturating_add(other.memory),
            fuel: self.fuel.saturating_add(other.fuel),
        }
    }
}

/// Which resource lacked (step 52).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Every slot is taken.
    Slots {
        /// How many there are.
        slots: u32,
    },
    /// Too little memory in the ledger.
    Memory {
        /// Bytes.
        wanted: u64,
        /// Bytes left for this queue.
        free: u64,
    },
    /// Too little fuel in the ledger.
    Fuel {
        /// Units of fuel.
        wanted: u64,
        /// Units of fuel left for this queue.
        free: u64,
    },
    /// Too little memory on the machine, whatever the ledger says. Sets nothing aside and ends no
    /// task's quantum, because no task's return is known to cure it.
    Headroom {
        /// Bytes.
        wanted: u64,
        /// Bytes.
        free: u64,
    },
}

impl From<Refusal> for HoldReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Slots { slots } => Self::NoTaskSlot { slots },
            Refusal::Memory { wanted, free } => Self::InsufficientMemory { wanted, free },
            Refusal::Fuel { wanted, free } => Self::InsufficientFuel { wanted, free },
            Refusal::Headroom { wanted, free } => Self::InsufficientHostMemory { wanted, free },
        }
    }
}

/// How often step 50 stopped at 52, by the resource that lacked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// For want of a slot.
    pub slots: u64,
    /// For want of memory in the ledger.
    pub memory: u64,
    /// For want of fuel.
    pub fuel: u64,
    /// For want of real memory.
    pub headroom: u64,
}

impl Refused {
    fn count(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Slots { .. } => self.slots += 1,
            Refusal::Memory { .. } => self.memory += 1,
            Refusal::Fuel { .. } => self.fuel += 1,
            Refusal::Headroom { .. } => self.headroom += 1,
        }
    }
}

/// What one task holds. Given back by [`Ledger::give_back`]; never just dropped.
#[derive(Debug)]
#[must_use = "a grant that is not given back is lost to the ledger"]
pub struct Grant {
    id: u64,
    demand: Demand,
    returned: bool,
}

impl Grant {
    /// Identity within the ledger.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it grants.
    #[must_use]
    pub fn demand(&self) -> Demand {
        self.demand
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        // A panic elsewhere has already lost more than this.
        debug_assert!(
            self.returned || std::thread::panicking(),
            "grant {} was dropped, not given back",
            self.id
        );
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Timestamp,
    demand: Demand,
}

/// Capacity, what is granted of it, and who waits.
#[derive(Debug, Default)]
pub struct Ledger {
    capacity: Resources,
    in_use: Resources,
    /// What each grant holds at present: a lent slot is not counted.
    grants: BTreeMap<u64, Resources>,
    next_id: u64,
    headroom: Option<u64>,
    refused: Refused,
    waiting: BTreeMap<QueueName, Waiting>,
    /// The same, longest first.
    longest: BTreeSet<(Timestamp, QueueName)>,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new(capacity: Resources) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Reserves a slot, memory and fuel for a queue's next task, all or none. A refused queue waits
    /// from then on, until it is granted or [forgotten](Self::forget).
    ///
    /// # Errors
    /// The first resource that lacks.
    pub fn reserve(
        &mut self,
        queue: &QueueName,
        demand: Demand,
        now: Timestamp,
    ) -> Result<Grant, Refusal> {
        let wanted = Resources::of(demand);
        self.admit(queue, wanted, Resources::default(), now)?;
        self.next_id += 1;
        let id = self.next_id;
        self.grants.insert(id, wanted);
        self.in_use = self.in_use.plus(wanted);
        Ok(Grant {
            id,
            demand,
            returned: false,
        })
    }

    /// Changes what a grant holds, whole or not at all; its own amounts count as free.
    ///
    /// # Errors
    /// The unchanged grant, and the first resource that lacks.
    pub fn exchange(
        &mut self,
        queue: &QueueName,
        mut grant: Grant,
        demand: Demand,
        now: Timestamp,
    ) -> Result<Grant, (Grant, Refusal)> {
        let own = self.holding(&grant);
        let wanted = Resources {
            slots: own.slots,
            ..Resources::of(demand)
        };
        if let Err(refusal) = self.admit(queue, wanted, own, now) {
            return Err((grant, refusal));
        }
        self.in_use = self.in_use.less(own).plus(wanted);
        self.grants.insert(grant.id, wanted);
        grant.demand = demand;
        Ok(grant)
    }

    /// Takes a grant back.
    pub fn give_back(&mut self, mut grant: Grant) {
        grant.returned = true;
        let own = self.grants.remove(&grant.id);
        debug_assert!(own.is_some(), "grant {} is of another ledger", grant.id);
        self.in_use = self.in_use.less(own.unwrap_or_default());
    }

    /// A task that waits for a reply gives its slot back, and keeps the rest.
    pub fn lend_slot(&mut self, grant: &Grant) {
        self.set_slots(grant, 0);
    }

    /// The task goes on. What it waits for is there, so nothing that is set aside stands before it.
    ///
    /// # Errors
    /// No slot is free: ask again when one is.
    pub fn retake_slot(&mut self, grant: &Grant) -> Result<(), Refusal> {
        let held = self.holding(grant).slots > 0;
        if !held && self.free().slots == 0 {
            return Err(Refusal::Slots {
                slots: self.capacity.slots,
            });
        }
        self.set_slots(grant, 1);
        Ok(())
    }

    fn set_slots(&mut self, grant: &Grant, slots: u32) {
        if let Some(own) = self.grants.get_mut(&grant.id) {
            self.in_use.slots = self
                .in_use
                .slots
                .saturating_sub(own.slots)
                .saturating_add(slots);
            own.slots = slots;
        }
    }

    fn holding(&self, grant: &Grant) -> Resources {
        self.grants.get(&grant.id).copied().unwrap_or_default()
    }

    fn admit(
        &mut self,
        queue: &QueueName,
        wanted: Resources,
        own: Resources,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let demand = Demand {
            memory: wanted.memory,
            fuel: wanted.fuel,
        };
        match self.lacking(queue, wanted, own, now) {
            None => {
                self.forget(queue);
                Ok(())
            }
            Some(refusal) => {
                self.refused.count(refusal);
                let curable = !matches!(refusal, Refusal::Headroom { .. });
                if curable && self.could_ever(demand).is_ok() {
                    self.wait(queue, demand, now);
                } else {
                    self.forget(queue);
                }
                Err(refusal)
            }
        }
    }

    fn lacking(
        &self,
        queue: &QueueName,
        wanted: Resources,
        own: Resources,
        now: Timestamp,
    ) -> Option<Refusal> {
        let aside = match self.starved(now) {
            Some((starved, demand)) if starved != queue => Resources::of(demand),
            _ => Resources::default(),
        };
        let free = self.capacity.less(self.in_use.less(own)).less(aside);
        if wanted.slots > free.slots {
            return Some(Refusal::Slots {
                slots: self.capacity.slots,
            });
        }
        if wanted.memory > free.memory {
            return Some(Refusal::Memory {
                wanted: wanted.memory,
                free: free.memory,
            });
        }
        if wanted.fuel > free.fuel {
            return Some(Refusal::Fuel {
                wanted: wanted.fuel,
                free: free.fuel,
            });
        }
        let more = wanted.memory.saturating_sub(own.memory);
        let headroom = self.headroom.filter(|headroom| more > *headroom)?;
        Some(Refusal::Headroom {
            wanted: more,
            free: headroom,
        })
    }

    fn wait(&mut self, queue: &QueueName, demand: Demand, now: Timestamp) {
        let entry = self
            .waiting
            .entry(queue.clone())
            .or_insert(Waiting { since: now, demand });
        entry.demand = demand;
        self.longest.insert((entry.since, queue.clone()));
    }

    /// The queue waits no longer: it is granted, or has nothing to start.
    pub fn forget(&mut self, queue: &QueueName) {
        if let Some(waiting) = self.waiting.remove(queue) {
            self.longest.remove(&(waiting.since, queue.clone()));
        }
    }

    /// The one queue for which freed capacity is set aside, and what it needs: it waits longest,
    /// for over [`STARVED_AFTER`], and what the running tasks will return can satisfy it.
    #[must_use]
    pub fn starved(&self, now: Timestamp) -> Option<(&QueueName, Demand)> {
        // Who waits for more than the capacity is passed over; there is such a one only after the
        // capacity was lowered.
        self.longest
            .iter()
            .take_while(|(since, _)| now.since(*since) > STARVED_AFTER)
            .filter_map(|(_, queue)| Some((queue, self.waiting.get(queue)?.demand)))
            .find(|(_, demand)| self.could_ever(*demand).is_ok())
    }

    /// The queues held at 52 for want of what tasks will return, longest first. They are to be
    /// asked when capacity is freed; and while there is one, a task whose quantum is spent ends.
    pub fn waiting(&self) -> impl Iterator<Item = &QueueName> {
        self.longest.iter().map(|(_, queue)| queue)
    }

    /// Whether any queue is held at 52 for want of what tasks will return.
    #[must_use]
    pub fn anyone_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the demand could be met by an idle host. One that could not is refused at load.
    ///
    /// # Errors
    /// The first resource of which the whole capacity is too little.
    pub fn could_ever(&self, demand: Demand) -> Result<(), Refusal> {
        let Resources {
            slots,
            memory,
            fuel,
        } = self.capacity;
        if slots == 0 {
            Err(Refusal::Slots { slots })
        } else if demand.memory > memory {
            Err(Refusal::Memory {
                wanted: demand.memory,
                free: memory,
            })
        } else if demand.fuel > fuel {
            Err(Refusal::Fuel {
                wanted: demand.fuel,
                free: fuel,
            })
        } else {
            Ok(())
        }
    }

    /// Sets the capacity. When lowered below what is in use, nothing is granted until tasks return.
    pub fn set_capacity(&mut self, capacity: Resources) {
        self.capacity = capacity;
    }

    /// Sets the real memory that the machine has to spare, bytes; `None` when it is not known.
    pub fn set_headroom(&mut self, headroom: Option<u64>) {
        self.headroom = headroom;
    }

    /// The whole.
    #[must_use]
    pub fn capacity(&self) -> Resources {
        self.capacity
    }

    /// What is granted.
    #[must_use]
    pub fn in_use(&self) -> Resources {
        self.in_use
    }

    /// What is not granted, set aside or not.
    #[must_use]
    pub fn free(&self) -> Resources {
        self.capacity.less(self.in_use)
    }

    /// Grants outstanding: as many as tasks in process, at rest.
    #[must_use]
    pub fn grants(&self) -> usize {
        self.grants.len()
    }

    /// How often step 50 stopped at 52.
    #[must_use]
    pub fn refused(&self) -> Refused {
        self.refused
    }
}

#[cfg(test)]
mod tests;
