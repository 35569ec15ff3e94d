//! Many threads that put, take early and pass on at once, with nothing held up: batches are planned
//! during the syncs of those before them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{Chain, OwnerId, Put, Unit};
use oncue_store::{Commit, Store, Take};
use parking_lot::Mutex;

use super::Embedded;
use crate::rig::{END, Ending, Rig, next, remove, settle};

const PUTTERS: usize = 3;
const TAKERS: usize = 2;
const EACH: usize = 400;
const ALL: usize = PUTTERS * EACH;

/// Units of one thread that wait for their answers.
const UNDER_WAY: usize = 48;

/// Longer than any machine takes.
const BOUND: Duration = Duration::from_secs(120);

/// Waits for the oldest while there are more than `most`.
fn catch_up(commits: &mut VecDeque<Commit>, most: usize) {
    while commits.len() > most
        && let Some(oldest) = commits.pop_front()
    {
        oldest.wait().expect("nothing is refused");
    }
}

fn put_all(store: &dyn Store, puts: Vec<Put>) {
    let mut commits = VecDeque::new();
    for put in puts {
        commits.push_back(store.commit(Unit {
            puts: vec![put],
            ..Unit::default()
        }));
        catch_up(&mut commits, UNDER_WAY);
    }
    catch_up(&mut commits, 0);
}

/// Takes what comes to `q`, and puts one of `outs` for each.
fn pass_on(
    store: &dyn Store,
    q: &QueueName,
    owner: OwnerId,
    outs: &Mutex<Vec<Put>>,
    passed: &AtomicUsize,
) {
    let (begun, chain) = (Instant::now(), Chain::default());
    let mut commits = VecDeque::new();
    while passed.load(Ordering::SeqCst) < ALL {
        let take = Take {
            max: 16,
            ..next(q, owner)
        };
        for message in store.take_early(&take, &chain).expect("a take") {
            let out = outs.lock().pop().expect("no message is taken twice");
            commits.push_back(store.commit(Unit {
                owner: Some(owner),
                settles: vec![settle(q, message.header.id, remove())],
                puts: vec![out],
                chain: Some(chain.clone()),
                ..Unit::default()
            }));
            passed.fetch_add(1, Ordering::SeqCst);
            catch_up(&mut commits, UNDER_WAY);
        }
        assert!(begun.elapsed() < BOUND, "a message does not come");
        std::thread::yield_now();
    }
    catch_up(&mut commits, 0);
}

/// Most are plain; some have what ties a unit to those before it.
fn out(rig: &Rig, queue: &QueueName, number: usize) -> Put {
    let draft = rig.draft(queue);
    let draft = match number % 20 {
        3 => draft.key(&number.to_string(), None, END),
        7 => draft.group("g"),
        11 => draft.due(END),
        13 => draft.volatile(),
        _ => draft,
    };
    draft.into_put()
}

#[test]
fn many_who_put_and_pass_on_at_once_lose_nothing_and_double_nothing() {
    let mut rig = Rig::new(Embedded::new());
    let (q, to) = (rig.define("q"), rig.define("out"));
    let puts: Vec<Vec<Put>> = (0..PUTTERS)
        .map(|_| (0..EACH).map(|_| rig.draft(&q).into_put()).collect())
        .collect();
    let outs = Mutex::new((0..ALL).map(|number| out(&rig, &to, number)).collect());
    let owners = [(); TAKERS].map(|()| rig.owner());
    let (store, passed) = (rig.store(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for puts in puts {
            scope.spawn(|| put_all(store, puts));
        }
        for owner in owners {
            let (q, outs, passed) = (&q, &outs, &passed);
            scope.spawn(move || pass_on(store, q, owner, outs, passed));
        }
    });
    rig.check();
    assert!(rig.everything(&q).is_empty());
    assert_eq!(rig.everything(&to).len(), ALL);
    rig.reopen(Ending::Kill);
    assert!(rig.everything(&q).is_empty());
    assert_eq!(rig.everything(&to).len(), ALL - ALL / 20);
}
