//! Messages alone and together, persistent and not, small and large, each counted and compared.

use bytes::Bytes;
use oncue_budget::budget::Budget;

use crate::allocations::{ALONE, counts, large_from};
use crate::host::Host;

/// Bytes of a small body.
const SMALL: usize = 1024;

/// Bytes of a large one: far larger than anything else that is allocated on the way.
const LARGE: usize = 200 << 10;

/// Messages that come first, so that what is made once is there.
const WARM_UP: usize = 50;

/// Messages counted.
const COUNTED: usize = 200;

/// `ONCUE_BUDGET=write` writes what is measured into the budget.
const BUDGET: &str = "ONCUE_BUDGET";

/// How messages come.
struct Case {
    name: String,
    length: usize,
    persistent: bool,
    /// Messages of one unit of work; the next waits until their tasks have ended.
    together: usize,
}

#[test]
fn a_message_costs_what_the_budget_says() {
    let _alone = ALONE.lock();
    let rewrite = std::env::var(BUDGET).is_ok_and(|word| word == "write");
    let mut budget = Budget::read(rewrite).expect("the budget");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    for (how, together) in [("alone", 1), ("together", 50)] {
        for (kind, persistent) in [("persistent", true), ("loose", false)] {
            for (size, length) in [("small", SMALL), ("large", LARGE)] {
                let case = Case {
                    name: format!("{how}-{kind}-{size}"),
                    length,
                    persistent,
                    together,
                };
                runtime.block_on(check(&case, &mut budget));
            }
        }
    }
    if let Err(error) = budget.finish() {
        panic!("{error}");
    }
}

async fn check(case: &Case, budget: &mut Budget) {
    let mut host = Host::start(case.persistent).await;
    let body = Bytes::from(vec![b'x'; case.length]);
    large_from(case.length.max(LARGE));
    run(&mut host, case, &body, WARM_UP).await;
    let status = host.handle.status().await.expect("the status");
    let before = counts();
    let tasks = run(&mut host, case, &body, COUNTED).await;
    let after = counts();
    let end = host.handle.status().await.expect("the status");
    let mut compare = |what: &str, cost: u64| {
        #[expect(clippy::cast_precision_loss, reason = "counts of some millions")]
        let cost = cost as f64 / COUNTED as f64;
        let name = format!("{}-{what}", case.name);
        eprintln!("{}", budget.check("counts", &name, cost, "a message"));
    };
    compare("allocations", after.allocations - before.allocations);
    compare("bytes", after.bytes - before.bytes);
    if case.length >= LARGE {
        compare("copies", after.large - before.large);
    }
    compare("commits", end.commits - status.commits);
    compare("syncs", end.syncs - status.syncs);
    compare("asked", end.asked - status.asked);
    compare("tasks", tasks);
    host.stop().await;
}

/// Puts messages and waits until they are handled; answers by how many tasks.
async fn run(host: &mut Host, case: &Case, body: &Bytes, messages: usize) -> u64 {
    let mut tasks = 0;
    for _ in 0..messages.div_ceil(case.together) {
        host.put(body, case.together).await;
        tasks += host.wait(case.together as u64).await;
    }
    tasks
}
