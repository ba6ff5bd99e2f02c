//! `info capabilities`: what this kernel and these rights allow.

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::lang::parser::{Parsed, Tokens};
use crate::process::{Finding, RecordParts};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Shape};

/// `info capabilities`
#[derive(Debug)]
pub struct InfoCapabilities;

impl Command for InfoCapabilities {
    const RECORDS: &'static [Shape] = &[Capabilities::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info capabilities").displayed().alone(),
        group: Group::Target,
        summary: "list the features that this kernel and these rights allow",
        text: "\
Lists each kernel feature and each permission that pmdb uses. Shows whether it is available, how pmdb found out, the \
loss without it, and the remedy.

With a target, tests the features of a process (page map, mapped files, memory) on the target. Tests most others on \
pmdb itself, and does not rely on version numbers or on being root.

Two facts cannot be tested: access to the processes of other users, and the exactness of map counts. pmdb derives \
them from the capabilities that it holds and from the kernel's release and configuration. The reason in the answer \
shows this.",
        examples: &[example("info capabilities", "list the features available here")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoCapabilities))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let machine = context.state.machine().clone();
        let mut findings = machine.findings();
        let target = context.state.target().cloned();
        let is_capture = target.as_ref().is_some_and(|target| target.machine.is_captured());
        let own = target.as_ref().map(|target| target.process.findings()).transpose()?;
        // Where no records can be read, one reason is enough.
        let of_tables = target.as_ref().filter(|_| machine.require_records(RecordParts::FOLIO).is_ok());
        findings.extend(of_tables.map(|target| target.process.tables_finding()));
        for finding in own.into_iter().flatten() {
            match findings.iter_mut().find(|one| one.feature == finding.feature) {
                Some(general) => *general = finding,
                None => findings.push(finding),
            }
        }
        let credentials = machine.credentials();
        let report = Capabilities {
            kernel: machine.kernel().release,
            pid: target.map(|target| target.process.identity().pid),
            user: credentials.as_ref().map(|credentials| credentials.user),
            first_user_namespace: credentials.as_ref().and_then(|credentials| credentials.in_first_user_namespace),
            rights: credentials.map(|credentials| credentials.rights),
            capabilities: findings.into_iter().map(capability).collect(),
        };
        if is_capture {
            context.sink.note("rights and features of the pmdb that captured, as they were at the capture")?;
        }
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

fn capability(finding: Finding) -> Capability {
    Capability {
        name: finding.feature.word(),
        available: finding.available,
        found: finding.found,
        without: finding.feature.missing(),
        remedy: finding.remedy,
    }
}

record! {
    /// `info capabilities`
    #[derive(Eq)]
    pub struct Capabilities as "capabilities" {
        /// Kernel release.
        kernel: String,
        /// The target, on which the features of a process were tested; `null` without one.
        pid: Option<u32>,
        /// The user that pmdb runs as.
        user: Option<u32>,
        /// The capabilities that pmdb uses, and holds or may raise.
        rights: Option<Vec<&'static str>>,
        /// Whether pmdb runs in the initial user namespace.
        first_user_namespace: Option<bool>,
        /// The features, one by one.
        capabilities: Vec<Capability>,
    }

    /// A feature of the kernel, or a right, that pmdb uses where it is available.
    #[derive(Eq)]
    pub struct Capability {
        /// The name of the feature.
        name: &'static str,
        /// Whether it is available; `null` if pmdb could not find out.
        available: Option<bool>,
        /// The evidence.
        found: String,
        /// The facts that pmdb cannot show without it.
        without: &'static str,
        /// The remedy, if there is one.
        remedy: Option<String>,
    }
}

impl Record for Capabilities {
    fn write(&self, text: &mut Text) {
        text.block(write_block, self);
    }
}

/// The columns of the names and of their descriptions.
const NAME: usize = 10;
const FOUND: usize = NAME + 18;

/// Writes the block.
fn write_block(lines: &mut Lines, report: &Capabilities) {
    lines.field("kernel").plain(&report.kernel);
    if let Some(user) = report.user {
        let line = lines.field("pmdb");
        line.plain(format!("user {user}"));
        match report.rights.as_deref() {
            None => {}
            Some([]) => _ = line.word(", ", Role::Plain, "without capabilities"),
            Some(rights) => {
                for (index, right) in rights.iter().enumerate() {
                    let text = match index {
                        0 => format!("with {right}"),
                        _ => (*right).to_owned(),
                    };
                    line.word(", ", Role::Plain, text);
                }
            }
        }
        if report.first_user_namespace == Some(false) {
            line.word(", ", Role::Warn, "in a user namespace other than the initial one");
        }
    }
    if let Some(pid) = report.pid {
        lines.field("target").plain(format!("process {pid}"));
    }
    for capability in &report.capabilities {
        row(lines, capability);
    }
}

fn row(lines: &mut Lines, capability: &Capability) {
    let (word, role) = match capability.available {
        Some(true) => ("yes", Role::Good),
        Some(false) => ("no", Role::Warn),
        None => ("unknown", Role::Warn),
    };
    let line = lines.line();
    line.push(role, word).tab_to(NAME).plain(capability.name).indent_at(FOUND).prose(Role::Plain, &capability.found);
    if capability.available != Some(true) {
        line.new_line().push(Role::Label, "without it: ");
        line.prose(Role::Dim, capability.without);
        if let Some(remedy) = &capability.remedy {
            line.new_line().push(Role::Label, "needs: ");
            line.prose(Role::Note, remedy);
        }
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(capabilities())]
    }

    pub fn capabilities() -> Capabilities {
        let capability = |name, available, found: &str, without| Capability {
            name,
            available,
            found: found.into(),
            without,
            remedy: None,
        };
        Capabilities {
            kernel: "6.18.44-amd64".into(),
            pid: Some(812),
            user: Some(1000),
            rights: Some(vec!["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]),
            first_user_namespace: Some(false),
            capabilities: vec![
                capability("pagemap_scan", Some(true), "PAGEMAP_SCAN answers", ""),
                Capability {
                    remedy: Some("a kernel built with CONFIG_MEM_SOFT_DIRTY".into()),
                    ..capability(
                        "soft_dirty",
                        Some(false),
                        "pmdb's own regions have no `sd` among their VmFlags",
                        "pages written to since the bits were cleared are unknown",
                    )
                },
                capability("swap_types", None, "it may not be read", "told as a group"),
            ],
        }
    }
}
