//! Arguments of `serve` and of `config`.

use clap::{Args, Subcommand};

use crate::config::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oncue serve
  oncue serve --data-dir /var/lib/oncue --plugins-dir /etc/oncue/plugins
  oncue serve --listen 127.0.0.1:0 --volatile      any free port, nothing kept

When the host serves it prints one line on stdout: \"oncue: ready on http://HOST:PORT (...)\". \
The log is on stderr.

SIGTERM or SIGINT: the host takes no new work, lets tasks end within --shutdown-deadline, and \
ends with exit code 0. A second signal ends it at once; nothing acknowledged is lost.";

pub(crate) const DOCTOR: &str = "\
Examples:
  oncue doctor
  oncue doctor --here --data-dir /var/lib/oncue --plugins-dir /etc/oncue/plugins -o json

A host that runs is asked, and looks at its own process and machine: those lines are marked \
\"host\". If none runs, or with --here, this process looks at what a start here would meet, with \
the settings given: those are marked \"here\"; run it as the user that the host will run as. \
Nothing is changed. Each line is ok, warn or fail; what to do stands below.

Exit codes: 0 nothing fails, 1 something does.";

/// Arguments of `doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Look at what a start here would meet, and ask no host
    #[arg(long)]
    pub(crate) here: bool,
    /// The settings of that start.
    #[command(flatten)]
    pub(crate) settings: ServeArgs,
}

/// The settings of a host as flags. What each means stands in `config` too, with its default.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServeArgs {
    /// Where the host keeps its messages and caches [default: ./data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The directory whose plugins are live [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins_dir: Option<String>,
    /// Where the host listens; port 0 takes any that is free [default: 127.0.0.1:7373]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The queue manager's name, as handlers see it [default: oncue]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Memory for tasks, such as "2 GiB" [default: half of the machine's or the cgroup's]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Fuel outstanding at a time, such as "200 G" [default: 30 s of all cores, measured]
    #[arg(long, value_name = "COUNT")]
    fuel: Option<String>,
    /// Most tasks at a time [default: by address space]
    #[arg(long, value_name = "NUMBER")]
    slots: Option<String>,
    /// Threads that run tasks [default: one for each core]
    #[arg(long, value_name = "NUMBER")]
    workers: Option<String>,
    /// How long a stopping host lets its tasks end [default: 30s]
    #[arg(long, value_name = "TIME")]
    shutdown_deadline: Option<String>,
    /// How long a plugin's file must stay the same before it is read [default: 200ms]
    #[arg(long, value_name = "TIME")]
    plugin_settle: Option<String>,
    /// How often the plugins directory is looked at, whatever the system reports [default: 5s]
    #[arg(long, value_name = "TIME")]
    plugin_rescan: Option<String>,
    /// Minisign's public keys between commas, or a file of them: plugins that none of them signed
    /// are quarantined [default: none]
    #[arg(long, value_name = "KEYS")]
    plugin_keys: Option<String>,
    /// Free disk space below which puts are refused [default: 256 MiB]
    #[arg(long, value_name = "SIZE")]
    store_reserve: Option<String>,
    /// Disk space kept to end cleanly when the disk is full [default: 64 MiB]
    #[arg(long, value_name = "SIZE")]
    store_ballast: Option<String>,
    /// Task records that are kept: the newest of so many bytes [default: 64 MiB]
    #[arg(long, value_name = "SIZE")]
    task_records: Option<String>,
    /// How long task records are kept at most [default: 7d]
    #[arg(long, value_name = "TIME")]
    task_records_age: Option<String>,
    /// Longest body of an HTTP request [default: 16 MiB]
    #[arg(long, value_name = "SIZE")]
    body_limit: Option<String>,
    /// A directory with a file for each secret that plugins are granted [default: none]
    #[arg(long, value_name = "DIR")]
    secrets_dir: Option<String>,
    /// Whether requests need a token: auto (when there are tokens), required or off [default: auto]
    #[arg(long, value_name = "WORD")]
    auth: Option<String>,
    /// The certificate in PEM, with its chain, to speak TLS with [default: none]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// The key of the certificate, in PEM [default: none]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Connections of each address [default: a quarter of all; this machine has no bound]
    #[arg(long, value_name = "NUMBER")]
    connections_per_address: Option<String>,
    /// Requests a second of each identity; 0 is no limit [default: 0]
    #[arg(long, value_name = "NUMBER")]
    rate_limit: Option<String>,
    /// Speak plain HTTP with other machines: a proxy in front does TLS
    #[arg(long)]
    insecure_http: bool,
    /// Keep everything in memory: a restart loses all messages
    #[arg(long)]
    volatile: bool,
    /// Open a damaged store, dropping what is damaged
    #[arg(long)]
    accept_loss: bool,
    /// Where traces are sent: http://HOST:PORT or https://HOST:PORT of a collector of OTLP
    /// [default: off]
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Certificates in PEM that vouch for the collector, not the system's [default: none]
    #[arg(long, value_name = "FILE")]
    otlp_ca_file: Option<String>,
    /// Which part of traces that begin here is recorded, 0 to 1 [default: 1]
    #[arg(long, value_name = "SHARE")]
    otlp_ratio: Option<String>,
    /// What is logged: a level, or TARGET=LEVEL between commas [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// The form of the log on stderr: text or json [default: text]
    #[arg(long, value_name = "FORM")]
    log_format: Option<String>,
}

impl ServeArgs {
    /// The settings that were given.
    pub(crate) fn flags(&self) -> Flags {
        let on = |is_on: bool| is_on.then(|| "true".to_owned());
        let all = [
            ("data-dir", self.data_dir.clone()),
            ("plugins-dir", self.plugins_dir.clone()),
            ("listen", self.listen.clone()),
            ("name", self.name.clone()),
            ("memory", self.memory.clone()),
            ("fuel", self.fuel.clone()),
            ("slots", self.slots.clone()),
            ("workers", self.workers.clone()),
            ("shutdown-deadline", self.shutdown_deadline.clone()),
            ("plugin-settle", self.plugin_settle.clone()),
            ("plugin-rescan", self.plugin_rescan.clone()),
            ("plugin-keys", self.plugin_keys.clone()),
            ("store-reserve", self.store_reserve.clone()),
            ("store-ballast", self.store_ballast.clone()),
            ("task-records", self.task_records.clone()),
            ("task-records-age", self.task_records_age.clone()),
            ("body-limit", self.body_limit.clone()),
            ("secrets-dir", self.secrets_dir.clone()),
            ("auth", self.auth.clone()),
            ("tls-cert", self.tls_cert.clone()),
            ("tls-key", self.tls_key.clone()),
            (
                "connections-per-address",
                self.connections_per_address.clone(),
            ),
            ("rate-limit", self.rate_limit.clone()),
            ("insecure-http", on(self.insecure_http)),
            ("volatile", on(self.volatile)),
            ("accept-loss", on(self.accept_loss)),
            ("otlp-endpoint", self.otlp_endpoint.clone()),
            ("otlp-ca-file", self.otlp_ca_file.clone()),
            ("otlp-ratio", self.otlp_ratio.clone()),
            ("log", self.log.clone()),
            ("log-format", self.log_format.clone()),
        ];
        all.into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print each setting with its value and where it comes from
    Show(ServeArgs),
}
