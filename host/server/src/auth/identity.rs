//! Who asks, and what that one may do.

use std::fmt;
use std::str::FromStr;

use oncue_core::definition::Pattern;
use oncue_core::definition::nearest;
use oncue_core::names::QueueName;
use serde::{Deserialize, Serialize};

/// The name of whoever asks a host that has no tokens.
pub const LOCAL: &str = "local";

/// Something that an identity may do. All but the last two are given for all queues by a role, or
/// for some queues by a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Put messages.
    Put,
    /// Get messages under leases, and settle them.
    Get,
    /// See messages: fields, bodies, dead-letter records, logs of tasks.
    Browse,
    /// Define, alter and delete queues.
    Define,
    /// Pause, trigger, clear, remove, release, redrive, roll back.
    Operate,
    /// Say which process serves a queue, and define processes: what runs, and what it may reach.
    Bind,
    /// See the host: status, ledger, definitions, plugins, tasks, metrics; no message.
    Observe,
    /// Everything else: the audit log.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 8] = [
        Self::Put,
        Self::Get,
        Self::Browse,
        Self::Define,
        Self::Operate,
        Self::Bind,
        Self::Observe,
        Self::Admin,
    ];

    /// The right as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Browse => "browse",
            Self::Define => "define",
            Self::Operate => "operate",
            Self::Bind => "bind",
            Self::Observe => "observe",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What an identity may do on every queue and on the host, before any grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Admin,
    /// Observe, browse, define, operate.
    Operator,
    /// Nothing but its grants.
    Application,
    /// Observe.
    Observer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [
        Self::Admin,
        Self::Operator,
        Self::Application,
        Self::Observer,
    ];

    /// The role as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Application => "application",
            Self::Observer => "observer",
        }
    }

    /// Whether the role gives the right everywhere.
    #[must_use]
    pub const fn gives(self, right: Right) -> bool {
        match self {
            Self::Admin => true,
            Self::Operator => matches!(
                right,
                Right::Observe | Right::Browse | Right::Define | Right::Operate
            ),
            Self::Application => false,
            Self::Observer => matches!(right, Right::Observe),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str);
            let meant = nearest(text, words)
                .map(|word| format!("; did you mean \"{word}\"?"))
                .unwrap_or_default();
            format!("is {text:?}; use one of {}{meant}", words.join(", "))
        })
    }
}

/// Rights on some queues: patterns as in a manifest's grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Queues it may put to.
    pub put: Vec<Pattern>,
    /// Queues it may get from.
    pub get: Vec<Pattern>,
    /// Queues it may browse.
    pub browse: Vec<Pattern>,
    /// Queues it may define, alter and delete.
    pub define: Vec<Pattern>,
    /// Queues it may operate.
    pub operate: Vec<Pattern>,
    /// Queues it may bind a process to.
    pub bind: Vec<Pattern>,
}

impl Grants {
    fn of(&self, right: Right) -> &[Pattern] {
        match right {
            Right::Put => &self.put,
            Right::Get => &self.get,
            Right::Browse => &self.browse,
            Right::Define => &self.define,
            Right::Operate => &self.operate,
            Right::Bind => &self.bind,
            Right::Observe | Right::Admin => &[],
        }
    }

    /// Whether nothing is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        Right::ALL.iter().all(|right| self.of(*right).is_empty())
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The token's name, or [`LOCAL`].
    pub name: String,
    /// What it may do everywhere.
    pub role: Role,
    /// What it may do on some queues.
    pub grants: Grants,
}

impl Identity {
    /// Whoever asks a host that has no tokens.
    #[must_use]
    pub fn local() -> Self {
        Self {
            name: LOCAL.to_owned(),
            role: Role::Admin,
            grants: Grants::default(),
        }
    }

    /// Whether it has the right everywhere: by its role, or by a grant of `*`.
    #[must_use]
    pub fn may(&self, right: Right) -> bool {
        let all = |pattern: &Pattern| pattern.as_str() == "*";
        self.role.gives(right) || self.grants.of(right).iter().any(all)
    }

    /// Whether it has the right on the queue.
    #[must_use]
    pub fn may_on(&self, right: Right, queue: &QueueName) -> bool {
        let covers = |pattern: &Pattern| pattern.matches(queue);
        self.role.gives(right) || self.grants.of(right).iter().any(covers)
    }

    /// Whether it has the right on any queue at all.
    #[must_use]
    pub fn may_somewhere(&self, right: Right) -> bool {
        self.role.gives(right) || !self.grants.of(right).is_empty()
    }

    /// Whether it may know that the queue is there, and how it is: with any right on it.
    #[must_use]
    pub fn sees(&self, queue: &QueueName) -> bool {
        Right::ALL.iter().any(|right| self.may_on(*right, queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    fn identity(role: Role, put: &[&str]) -> Identity {
        let put = put.iter().map(|it| Pattern::new(it).expect("a pattern"));
        Identity {
            name: "it".to_owned(),
            role,
            grants: Grants {
                put: put.collect(),
                ..Grants::default()
            },
        }
    }

    #[test]
    fn roles_give_what_they_say() {
        let check = |role: Role, rights: &[Right]| {
            for right in Right::ALL {
                assert_eq!(role.gives(right), rights.contains(&right), "{role} {right}");
            }
        };
        check(Role::Admin, &Right::ALL);
        check(
            Role::Operator,
            &[Right::Observe, Right::Browse, Right::Define, Right::Operate],
        );
        check(Role::Application, &[]);
        check(Role::Observer, &[Right::Observe]);
    }

    #[test]
    fn a_grant_reaches_its_queues_only() {
        let it = identity(Role::Application, &["orders", "audit.*"]);
        assert!(it.may_on(Right::Put, &queue("orders")));
        assert!(it.may_on(Right::Put, &queue("audit.x")));
        assert!(!it.may_on(Right::Put, &queue("invoices")));
        assert!(!it.may_on(Right::Get, &queue("orders")));
        assert!(it.sees(&queue("orders")) && !it.sees(&queue("invoices")));
        assert!(it.may_somewhere(Right::Put) && !it.may_somewhere(Right::Get));
        assert!(!it.may(Right::Put));
    }

    #[test]
    fn a_grant_of_all_does_not_reach_the_managers_own_queues() {
        let it = identity(Role::Application, &["*"]);
        assert!(it.may(Right::Put) && it.may_on(Right::Put, &queue("orders")));
        assert!(!it.may_on(Right::Put, &queue("oncue.dead-letter")));
        assert!(!it.sees(&queue("oncue.dead-letter")));
        let admin = Identity::local();
        assert!(admin.may_on(Right::Put, &queue("oncue.dead-letter")));
    }

    #[test]
    fn roles_are_read_as_they_are_written() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        let error = "operater".parse::<Role>().expect_err("no role");
        assert!(error.ends_with("did you mean \"operator\"?"), "{error}");
    }
}
