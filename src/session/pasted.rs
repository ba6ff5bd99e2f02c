//! The meaning of pasted text in the attached process: a hint offers an address only if it is mapped.

use super::base::Session;
use super::outcome::Input;
use crate::command::{self, LANGUAGE};
use crate::eval::{self, Value};
use crate::hint;
use crate::kernel::VirtualAddress;
use crate::lang::script;
use crate::lang::{Candidate, Expression, Pasted, Span, Spanned, SyntaxError, WrittenName};
use crate::process::Target;
use crate::report::ErrorReport;

impl Session {
    /// Makes the report of a line that does not parse.
    pub(super) fn syntax(&self, input: &Input<'_>, mut error: SyntaxError) -> ErrorReport {
        if let Some(pasted) = error.pasted.take() {
            error.hint = Some(self.hint_of(&pasted));
        }
        // A word of a question, where a command is expected.
        if error.hint.is_none()
            && let Some((word, _)) = script::first_word(input.text).filter(|(_, at)| *at == error.at)
            && command::is_explained(word)
        {
            error.hint = Some(format!("`help {word}` lists the commands about it"));
        }
        input.syntax(error)
    }

    /// Returns a hint for a typed line that parses but has another meaning: it is for gdb, or is its output.
    pub(super) fn meant_otherwise(&self, line: &str) -> Option<String> {
        let comment = |pasted| format!("a line that begins with # is a comment; {}", self.hint_of(&pasted));
        hint::meant_for_gdb(LANGUAGE, line).or_else(|| hint::comment(line).map(comment))
    }

    /// Fails for a pasted row that parses as an unmapped address, which may be an address in the file of the row.
    pub(super) fn refuse_row(&self, input: &Input<'_>) -> Option<ErrorReport> {
        let pasted = hint::also_in_row(LANGUAGE, input.text)?;
        let Some(first @ Candidate::Address(address)) = pasted.candidates.first() else {
            return None;
        };
        let in_file = pasted.candidates.iter().any(|one| matches!(one, Candidate::InFile { .. }));
        (in_file && self.state.target().is_some() && self.means(first).is_none()).then(|| ErrorReport {
            hint: Some(self.hint_of(&pasted)),
            ..input.about_line(format!("{address:#x} is in no region"))
        })
    }

    fn hint_of(&self, pasted: &Pasted) -> String {
        let means = |candidate: &Candidate| self.means(candidate);
        let with_target: hint::Means<'_> = &means;
        hint::choose(pasted, self.state.target().map(|_| with_target))
    }

    /// Returns how to type a number, if it has a meaning in the process.
    fn means(&self, candidate: &Candidate) -> Option<String> {
        let target = self.state.target()?;
        let is_mapped =
            |address| target.process.region_at(VirtualAddress::new(address)).is_ok_and(|found| found.is_some());
        let has_meaning = match candidate {
            Candidate::Address(address) | Candidate::Range(address, _) => is_mapped(*address),
            Candidate::InFile { module, address } => {
                let module = module.clone().or_else(|| program(target))?;
                let at = self.address_in_file(&module, *address)?;
                let named = Candidate::InFile { module: Some(module), address: *address };
                return is_mapped(at).then(|| named.to_string());
            }
            Candidate::Offset { module, offset } => {
                let regions = target.process.regions().ok()?;
                let holds = regions.iter().find(|region| {
                    let bytes = region.range.len();
                    region.names().any(|name| name.to_string() == *module)
                        && offset.checked_sub(region.offset).is_some_and(|within| within < bytes)
                })?;
                return Some(format!("{:#x}", holds.range.start().get() + (offset - holds.offset)));
            }
            Candidate::Symbol { .. } | Candidate::Frame { .. } | Candidate::Physical(_) | Candidate::Entry(_) => true,
        };
        has_meaning.then(|| candidate.to_string())
    }

    /// Returns the address in the process of an address in a file, if the process maps a file with this name.
    fn address_in_file(&self, module: &str, address: u64) -> Option<u64> {
        let at = Span::default();
        let module = Spanned::new(WrittenName(module.to_owned()), at);
        let written = Expression::ModuleAddress { module, address: Spanned::new(address, at) };
        match eval::evaluate(&Spanned::new(written, at), &self.state) {
            Ok(Value::Address(address)) => Some(address.get()),
            _ => None,
        }
    }
}

/// Returns the name of the executable.
fn program(target: &Target) -> Option<String> {
    let path = target.process.status().ok()?.executable?;
    Some(path.file_name().to_string())
}
