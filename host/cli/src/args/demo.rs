//! Arguments of `demo`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  cargo demo                    runs until Ctrl-C
  cargo demo --once             ends after the summary; exit code 0 if the sums agree";

/// Arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// How many orders to put
    #[arg(long, value_name = "NUMBER", default_value_t = 500,
        value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    pub(crate) orders: u64,
    /// End after the summary instead of serving on
    #[arg(long)]
    pub(crate) once: bool,
    /// Where the host listens
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
}
