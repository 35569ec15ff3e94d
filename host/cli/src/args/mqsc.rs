//! Arguments of `mqsc`.

use std::path::PathBuf;

use clap::Args;

const MQSC: &str = "\
Examples:
  oncue mqsc -f queues.mqsc --dry-run
  oncue mqsc < queues.mqsc
  echo 'DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)' | oncue mqsc

DEFINE, ALTER, DISPLAY and DELETE of QLOCAL and PROCESS, with the attributes of triggering. Each \
attribute is reported as accepted, ignored (why) or refused (why). A command with a refused \
attribute is not done; the next one is. Exit code 4 tells that some were refused.

Names outside quotes are folded to upper case, as MQ does it; those with / or % are refused. What \
a script leaves out has this host's default, not MQ's: puts are persistent, the backout threshold \
is 5. Only the trigger is off unless the script says TRIGGER, as in MQ.

Queue events of MQ are alarms here. QDEPTHHI, QDEPTHLO and QSVCINT set alarm-depth-high, \
alarm-depth-low and service-interval; QDPHIEV(DISABLED), QDPLOEV(DISABLED) and QSVCIEV(NONE) take \
them away. A level without its switch is an alarm that is on.";

/// Arguments of `mqsc`.
#[derive(Args, Debug)]
#[command(after_long_help = MQSC)]
pub(crate) struct MqscArgs {
    /// The script [default: stdin]
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Report what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
