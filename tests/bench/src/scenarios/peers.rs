//! This project beside its peers: the same bytes, the same durability, the same machine, the same
//! run, interleaved. Each peer's version and settings are printed beside its figures; one that is
//! not installed is said to be so and left out. See [`crate::peers`].

use super::Scenario;
use crate::run::Run;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "peers",
    what: "durable puts and put-to-handled beside NATS, RabbitMQ, Redis and PostgreSQL",
    run,
};

#[cfg(not(feature = "peers"))]
fn run(run: &mut Run) -> anyhow::Result<()> {
    run.note(
        "left-out",
        "the clients of the peers are not built in: use cargo bench-oncue",
    );
    Ok(())
}

#[cfg(feature = "peers")]
fn run(run: &mut Run) -> anyhow::Result<()> {
    // On this thread: servers end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(built_in::all(run))
}

#[cfg(feature = "peers")]
mod built_in {
    use std::time::Duration;

    use crate::host;
    use crate::peers::{
        Contender, InProcess, Kind, Nats, Node, OverHttp, Postgres, Rabbit, Redis, Sync, handled,
        puts,
    };
    use crate::run::{Bound, Run};

    /// Producers at a time.
    const PRODUCERS: [usize; 3] = [1, 16, 128];

    /// This project's contender that is held against the best peer.
    const OURS: &str = "oncue";

    /// Peers that sync before they answer.
    const DURABLE: [&str; 5] = [
        "nats-always",
        "rabbit-classic",
        "rabbit-quorum",
        "redis",
        "postgres",
    ];

    /// A contender that could be started.
    #[expect(clippy::large_enum_variant, reason = "there are eight of them")]
    enum Side {
        OverHttp(OverHttp),
        InProcess(InProcess),
        Nats(Nats),
        Rabbit(Rabbit),
        Redis(Redis),
        Postgres(Postgres),
    }

    pub(super) async fn all(run: &mut Run) -> anyhow::Result<()> {
        let directory = host::directory()?;
        let mut sides = start(run, &directory.path().canonicalize()?).await?;
        let time = run.size(Duration::from_millis(1500), Duration::from_millis(250));
        for _ in 0..run.rounds() {
            for (name, side) in &mut sides {
                if !run.wants(name) {
                    continue;
                }
                match side {
                    Side::OverHttp(side) => measure(run, name, side, time).await?,
                    Side::InProcess(side) => measure(run, name, side, time).await?,
                    Side::Nats(side) => measure(run, name, side, time).await?,
                    Side::Rabbit(side) => measure(run, name, side, time).await?,
                    Side::Redis(side) => measure(run, name, side, time).await?,
                    Side::Postgres(side) => measure(run, name, side, time).await?,
                }
            }
            // The next round begins with another one.
            sides.rotate_left(1);
        }
        for (name, side) in sides {
            if let Side::InProcess(side) = side {
                side.end().await;
            } else {
                drop((name, side));
            }
        }
        ratios(run);
        Ok(())
    }

    async fn start(
        run: &mut Run,
        home: &std::path::Path,
    ) -> anyhow::Result<Vec<(&'static str, Side)>> {
        let mut sides = Vec::new();
        let mut add = |name, started: Option<(String, Side)>| match started {
            Some((note, side)) => {
                run.note(name, &note);
                sides.push((name, side));
            }
            None => run.note(name, "is not installed and left out; see install-peers"),
        };
        let (note, side) = OverHttp::start(&home.join("oncue")).await?;
        add(OURS, Some((note, Side::OverHttp(side))));
        let sandbox = host::sandbox(100)?;
        let echo = host::load_echo(&sandbox)?;
        let (note, side) = InProcess::start(&home.join("in-process"), &sandbox, &echo).await?;
        add("oncue-in-process", Some((note, Side::InProcess(side))));
        for (name, sync) in [
            ("nats-always", Sync::Always),
            ("nats-default", Sync::Default),
        ] {
            let started = Nats::start(&home.join(name), sync).await?;
            add(name, started.map(|(note, side)| (note, Side::Nats(side))));
        }
        let node = Node::start(&home.join("rabbit"))?;
        for (name, kind) in [
            ("rabbit-classic", Kind::Classic),
            ("rabbit-quorum", Kind::Quorum),
        ] {
            let started = match &node {
                Some(node) => Some(Rabbit::start(node, kind).await?),
                None => None,
            };
            add(name, started.map(|(note, side)| (note, Side::Rabbit(side))));
        }
        let started = Redis::start(&home.join("redis")).await?;
        add(
            "redis",
            started.map(|(note, side)| (note, Side::Redis(side))),
        );
        let started = Postgres::start(&home.join("postgres")).await?;
        add(
            "postgres",
            started.map(|(note, side)| (note, Side::Postgres(side))),
        );
        Ok(sides)
    }

    async fn measure(
        run: &mut Run,
        name: &str,
        side: &mut impl Contender,
        time: Duration,
    ) -> anyhow::Result<()> {
        use anyhow::Context as _;
        for producers in PRODUCERS {
            let load = puts(side, producers, time).await;
            let mut load = load.with_context(|| format!("{name}, {producers} producers"))?;
            let figure = format!("{name}.put-{producers}");
            run.sample(&figure, load.rate(), "puts/s");
            run.sample(&format!("{figure}.p50"), load.quantile(0.5), "ms");
            run.sample(&format!("{figure}.p99"), load.quantile(0.99), "ms");
        }
        let rate = handled(side, time).await;
        let rate = rate.with_context(|| format!("{name}, put to handled"))?;
        run.sample(&format!("{name}.handled"), rate, "messages/s");
        Ok(())
    }

    /// This project by each peer, and by the best of those that are as durable.
    fn ratios(run: &mut Run) {
        for what in ["put-1", "put-16", "put-128", "handled"] {
            let ours = format!("{OURS}.{what}");
            for peer in DURABLE {
                run.ratio(&ours, &format!("{peer}.{what}"));
            }
            let rounds = run.values(&ours).len();
            for round in 0..rounds {
                let of = |name: &str| run.values(&format!("{name}.{what}")).get(round).copied();
                let best = DURABLE
                    .iter()
                    .filter_map(|peer| of(peer))
                    .fold(f64::NAN, f64::max);
                if let Some(ours) = of(OURS) {
                    run.sample(&format!("{OURS}.{what}/best-peer"), ours / best, "ratio");
                }
            }
            if what == "put-128" || what == "handled" {
                let figure = format!("{OURS}.{what}/best-peer");
                run.verdict(what, &figure, Bound::AtLeast(1.5));
            }
        }
    }
}
