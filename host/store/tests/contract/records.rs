//! Definition rows and task rows.

use bytes::Bytes;
use oncue_core::unit_of_work::{KeepTasks, TaskRow, Unit};
use oncue_store::{CommitError, StoreError};

use crate::rig::{END, NOW, Rig, next, queue, record, remove};

/// Bytes of task rows that these tests have kept.
const KEPT_BYTES: u64 = 16 << 20;

fn delete(rig: &Rig, name: &str) -> Result<(), CommitError> {
    let records = vec![record(&queue(name), None)];
    rig.commit(Unit {
        records,
        ..Unit::default()
    })
    .map(drop)
}

fn keep(rig: &Rig, id: u64, value: impl Into<Bytes>) {
    let task = Some(TaskRow {
        id,
        value: value.into(),
    });
    let keep_tasks = Some(KeepTasks {
        bytes: KEPT_BYTES,
        from: 0,
    });
    rig.commit(Unit {
        task,
        keep_tasks,
        ..Unit::default()
    })
    .unwrap();
}

pub fn a_queue_exists_while_it_has_a_row(rig: &mut Rig) {
    let q = queue("q");
    assert!(rig.draft(&q).try_send().is_err());
    rig.define("q");
    let id = rig.put(&q);
    rig.define("q");
    assert_eq!(
        rig.take_and(&q, remove()),
        id,
        "a changed definition keeps the messages"
    );
    delete(rig, "q").unwrap();
    assert_eq!(
        rig.draft(&q).try_send(),
        Err(CommitError::UnknownQueue(q.clone()))
    );
    let taken = rig.store().take(&next(&q, rig.owner()));
    assert_eq!(taken, Err(StoreError::UnknownQueue(q)));
}

pub fn a_queue_with_messages_of_any_state_is_not_deleted(rig: &mut Rig) {
    let q = rig.define("q");
    let not_empty = Err(CommitError::QueueNotEmpty(q.clone()));
    rig.put(&q);
    assert_eq!(delete(rig, "q"), not_empty, "ready");
    let (owner, message) = rig.take_one(&q);
    assert_eq!(delete(rig, "q"), not_empty, "in hand");
    rig.settle(owner, &q, message.header.id, remove()).unwrap();
    let delayed = rig.draft(&q).due(END).send();
    assert_eq!(delete(rig, "q"), not_empty, "delayed");
    let owner = rig.owner();
    rig.store().take_any(owner, &q, delayed).unwrap();
    rig.settle(owner, &q, delayed, remove()).unwrap();
    delete(rig, "q").unwrap();
    delete(rig, "q").expect("deleting what is not there does nothing");
}

pub fn a_queue_made_anew_is_empty(rig: &mut Rig) {
    let q = rig.define("q");
    let old = rig.put(&q);
    rig.take_and(&q, remove());
    delete(rig, "q").unwrap();
    rig.define("q");
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    assert_eq!(rig.state(&q, old), None);
    let new = rig.put(&q);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [new]);
}

pub fn a_unit_may_put_into_the_queue_it_makes(rig: &mut Rig) {
    let q = queue("q");
    let put = rig.draft(&q).into_put();
    let id = put.header.id;
    let records = vec![record(&q, Some("row"))];
    rig.commit(Unit {
        records,
        puts: vec![put],
        ..Unit::default()
    })
    .unwrap();
    rig.define("q");
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
    rig.settle(rig.owner(), &q, id, remove())
        .expect_err("another owner holds it");
}

pub fn a_unit_may_not_put_into_the_queue_it_deletes(rig: &mut Rig) {
    let q = rig.define("q");
    let records = vec![record(&q, None)];
    let puts = vec![rig.draft(&q).into_put()];
    let answer = rig.commit(Unit {
        records,
        puts,
        ..Unit::default()
    });
    assert_eq!(answer, Err(CommitError::UnknownQueue(q.clone())));
    rig.put(&q);
}

pub fn tasks_are_listed_newest_first_and_by_pages(rig: &mut Rig) {
    for id in 1..=10 {
        keep(rig, id, format!("task {id}"));
    }
    keep(rig, 3, "changed");
    let page = rig.store().tasks(None, 4).unwrap();
    assert_eq!(
        page.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [10, 9, 8, 7]
    );
    assert_eq!(page[0].1, "task 10");
    let page = rig.store().tasks(Some(4), 9).unwrap();
    let expected = [(3, "changed"), (2, "task 2"), (1, "task 1")];
    assert_eq!(page, expected.map(|(id, row)| (id, Bytes::from(row))));
    assert!(rig.store().tasks(Some(1), 9).unwrap().is_empty());
    assert!(rig.store().tasks(Some(0), 9).unwrap().is_empty());
}

pub fn the_newest_tasks_are_kept_within_a_bound(rig: &mut Rig) {
    const ROW: usize = 1024 * 1024;
    let fit = KEPT_BYTES / ROW as u64;
    let written = fit * 2 + 3;
    for id in 1..=written {
        keep(rig, id, vec![0; ROW]);
    }
    let kept: Vec<_> = rig
        .store()
        .tasks(None, 1000)
        .unwrap()
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    let count = kept.len() as u64;
    assert!(
        count <= fit,
        "{count} rows of 1 MiB are more than the bound"
    );
    assert!(count >= fit / 2, "{count} rows are too few");
    let newest: Vec<_> = (0..count).map(|n| written - n).collect();
    assert_eq!(kept, newest);
}

pub fn old_tasks_are_dropped_some_at_a_time(rig: &mut Rig) {
    const ROWS: u64 = 1_500;
    let kept = |rig: &Rig| rig.store().tasks(None, 5_000).unwrap();
    for id in 1..=ROWS {
        keep(rig, id, "a task");
    }
    assert_eq!(kept(rig).len() as u64, ROWS);
    let drop_below = |rig: &Rig, from| {
        let keep_tasks = Some(KeepTasks {
            bytes: KEPT_BYTES,
            from,
        });
        rig.commit(Unit {
            keep_tasks,
            ..Unit::default()
        })
        .unwrap();
    };
    drop_below(rig, 1_300);
    let most = KeepTasks::MAX_DROPPED as u64;
    assert_eq!(kept(rig).last().unwrap().0, most + 1);
    drop_below(rig, 1_300);
    drop_below(rig, 1_300);
    assert_eq!(kept(rig).last().unwrap().0, 1_300);
    assert_eq!(kept(rig).len() as u64, ROWS - 1_299);
    drop_below(rig, ROWS + 1);
    assert!(kept(rig).is_empty(), "old is old, also of the last one");
    keep(rig, ROWS + 7, "a new one");
    assert_eq!(kept(rig).len(), 1);
    keep(rig, 3, "one that ended late");
    let ids: Vec<_> = kept(rig).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [ROWS + 7, 3], "it stands below all that were dropped");
    assert_eq!(rig.store().tasks(Some(ROWS), 1).unwrap()[0].0, 3);
}

pub fn the_clock_of_a_store_is_its_caller(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q)
        .put_at(oncue_core::time::Timestamp(5))
        .expires(NOW)
        .send();
    let before = crate::rig::next(&q, rig.owner());
    let before = oncue_store::Take {
        now: oncue_core::time::Timestamp(10),
        ..before
    };
    assert_eq!(
        rig.store().take(&before).unwrap().len(),
        1,
        "it expires long after"
    );
}
