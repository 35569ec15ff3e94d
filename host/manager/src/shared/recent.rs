//! The cells that a thread has looked at last: a task's own queue and the one that it puts to are
//! looked up several times for each message, and the table of all queues has one lock.
//!
//! What is kept is no more than a way to a cell: one that is gone is looked up again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oncue_core::names::QueueName;

use super::QueueCell;

/// Cells that a thread keeps.
const KEPT: usize = 2;

/// Cells with the number of whose they are, the one that was looked at last first.
type Kept = [Option<(u64, Arc<QueueCell>)>; KEPT];

thread_local! {
    static CELLS: RefCell<Kept> = const { RefCell::new([const { None }; KEPT]) };
}

/// A number that no other has asked for.
pub(super) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Looks at the cell of a queue among those of `whose`; `find` finds one that is not kept.
pub(super) fn look_up<T>(
    whose: u64,
    queue: &QueueName,
    look: impl FnOnce(&Arc<QueueCell>) -> T,
    find: impl FnOnce() -> Option<Arc<QueueCell>>,
) -> Option<T> {
    // Not there any more at the thread's end.
    if CELLS.try_with(|_| ()).is_err() {
        return find().as_ref().map(look);
    }
    CELLS.with(|cells| {
        // Borrowed while one is looked at.
        let Ok(mut cells) = cells.try_borrow_mut() else {
            return find().as_ref().map(look);
        };
        let is_it = |kept: &Option<(u64, Arc<QueueCell>)>| {
            let it = |(number, cell): &(u64, Arc<QueueCell>)| {
                *number == whose && cell.name == *queue && !cell.is_gone()
            };
            kept.as_ref().is_some_and(it)
        };
        match cells.iter().position(is_it) {
            Some(place) => cells.swap(0, place),
            None => {
                let found = find()?;
                cells.rotate_right(1);
                cells[0] = Some((whose, found));
            }
        }
        let (_, cell) = cells[0].as_ref()?;
        Some(look(cell))
    })
}

#[cfg(test)]
mod tests {
    use oncue_core::definition::QueueAttributes;
    use oncue_core::queue::Counts;

    use super::*;

    #[test]
    fn a_cell_is_found_once_until_it_is_gone() {
        let name = |text: &str| QueueName::new(text).expect("a name");
        let cell = |text: &str| {
            let attributes = Arc::new(QueueAttributes::default());
            QueueCell::new(name(text), attributes, &Counts::default())
        };
        let (mine, others) = (number(), number());
        let ask = |whose, text: &str, found: Option<&Arc<QueueCell>>| {
            let mut asked = false;
            let find = || {
                asked = true;
                found.cloned()
            };
            let looked = look_up(whose, &name(text), Arc::clone, find);
            (looked.map(|cell| cell.name.to_string()), asked)
        };
        let (a, b) = (cell("a"), cell("b"));
        let (is_a, is_b) = (Some("a".to_owned()), Some("b".to_owned()));
        assert_eq!(ask(mine, "c", None), (None, true));
        assert_eq!(ask(mine, "a", Some(&a)), (is_a.clone(), true));
        assert_eq!(ask(mine, "b", Some(&b)), (is_b.clone(), true));
        assert_eq!(ask(mine, "a", None), (is_a.clone(), false));
        assert_eq!(ask(mine, "b", None), (is_b, false));
        // The queue of that name of another manager, and one that was defined anew.
        assert_eq!(ask(others, "a", None), (None, true));
        a.gone.store(true, Ordering::SeqCst);
        assert_eq!(ask(mine, "a", None), (None, true));
        assert_eq!(ask(mine, "a", Some(&cell("a"))), (is_a, true));
    }
}
