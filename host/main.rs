//! Run the command line, return its exit code.

mod allocator;

fn main() -> std::process::ExitCode {
    allocator::keep_memory();
    oncue_cli::run(samples())
}

#[cfg(feature = "demo")]
fn samples() -> Option<oncue_cli::Samples> {
    use oncue_artifacts as built;
    let sample = |component: &str, manifest: &str| oncue_cli::Sample {
        component: component.into(),
        manifest: Some(manifest.into()),
    };
    Some(oncue_cli::Samples {
        route_orders: sample(built::ROUTE_ORDERS, built::ROUTE_ORDERS_MANIFEST),
        running_total: sample(built::RUNNING_TOTAL, built::RUNNING_TOTAL_MANIFEST),
    })
}

#[cfg(not(feature = "demo"))]
fn samples() -> Option<oncue_cli::Samples> {
    None
}
