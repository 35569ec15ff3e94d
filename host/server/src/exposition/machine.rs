//! This process as the system sees it, under the names that all Prometheus clients use.

use std::fmt;
use std::fs;

use super::Page;

/// Ticks of a second in which the system counts processor time, whatever the kernel's own clock is.
const TICKS: f64 = 100.0;

/// The process. What cannot be read is left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Machine {
    cpu: Option<f64>,
    resident: Option<u64>,
    virtual_size: Option<u64>,
    threads: Option<u64>,
    open_files: Option<u64>,
    max_files: Option<u64>,
    started: Option<f64>,
}

impl Machine {
    /// Reads it from `/proc`; a few files that are made up in memory.
    pub(crate) fn read() -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).ok();
        let status = read("status").unwrap_or_default();
        let stat = Stat::parse(&read("stat").unwrap_or_default());
        let files = fs::read_dir("/proc/self/fd").ok();
        let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
        let boot = field(&boot, "btime ");
        let kib = |name| field(&status, name).map(|kib| kib.saturating_mul(1024));
        Self {
            cpu: stat.map(|stat| stat.cpu),
            resident: kib("VmRSS:"),
            virtual_size: kib("VmSize:"),
            threads: field(&status, "Threads:"),
            // The directory's own is open while it is read.
            open_files: files.map(|files| (files.count() as u64).saturating_sub(1)),
            max_files: field(&read("limits").unwrap_or_default(), "Max open files"),
            started: stat.zip(boot).map(|(stat, boot)| {
                #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
                let boot = boot as f64;
                boot + stat.started
            }),
        }
    }

    pub(crate) fn encode(&self, page: &mut Page<'_>) -> fmt::Result {
        if let Some(seconds) = self.cpu {
            let help = "Processor time of this process, user and system";
            page.counter("process_cpu_seconds", help, seconds)?;
        }
        let bytes = [
            (
                "process_resident_memory_bytes",
                "Memory in use",
                self.resident,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space in use",
                self.virtual_size,
            ),
            ("process_threads", "Threads", self.threads),
            (
                "process_open_fds",
                "Open files and sockets",
                self.open_files,
            ),
            (
                "process_max_fds",
                "Most files and sockets that may be open",
                self.max_files,
            ),
        ];
        for (name, help, value) in bytes {
            if let Some(value) = value {
                page.gauge(name, help, value)?;
            }
        }
        if let Some(started) = self.started {
            let help = "When this process started, in seconds since 1970";
            page.gauge("process_start_time_seconds", help, started)?;
        }
        Ok(())
    }
}

/// What `/proc/self/stat` says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    /// Seconds.
    cpu: f64,
    /// Seconds after the system's start.
    started: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The program's name stands in parentheses and may have any character.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        let cpu = ticks()? + ticks()?;
        let mut fields = rest.split_ascii_whitespace().skip(19);
        let started = fields.next()?.parse::<f64>().ok()?;
        Some(Self {
            cpu: cpu / TICKS,
            started: started / TICKS,
        })
    }
}

/// The first number of the line that starts so.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let text = "7 (a) b ( c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 8 0 12345 9 9";
        let wanted = Stat {
            cpu: 3.0,
            started: 123.45,
        };
        assert_eq!(Stat::parse(text), Some(wanted));
        assert_eq!(Stat::parse("7 (a) S"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let machine = Machine::read();
        assert!(machine.resident > Some(1 << 20), "{machine:?}");
        assert!(machine.open_files > Some(0) && machine.max_files >= machine.open_files);
        assert!(machine.threads >= Some(1) && machine.cpu.is_some());
        assert!(machine.started > Some(1.6e9), "{machine:?}");
    }
}
