//! Evaluates expressions to values, with the names of registers on each machine. One evaluation reads the target's
//! regions at most once.

use super::error::{Error, Result};
use super::{Float, Integer, Scope, Spans, Value, operators};
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::lang::parser::is_clause;
use crate::lang::{
    self, BinaryOperator, CType, Expression, NumberType, Register, Span, Spanned, UnaryOperator, Width, WrittenName,
};
use crate::process::{FEW_REGIONS, Target};
use crate::symbol::ModuleRegions;
use std::cell::OnceCell;
use std::sync::Arc;

/// The variables that pmdb sets, and why each has no value yet.
static VOID: &[(&str, &str)] = &[
    ("_pages", "no command has shown totals yet"),
    ("_bytes", "no command has shown totals yet"),
    ("_changes", "no watch or diff has ended yet"),
    ("_came", "no diff has ended yet"),
    ("_went", "no diff has ended yet"),
    ("_shared", "no process has been compared yet"),
    ("_copied", "no process has been compared yet"),
    ("_about_to_copy", "no process has been compared yet"),
    ("_failed", "no command file has run yet"),
    ("_thread", "no `foreach` over threads has run yet"),
    ("_running", "no `foreach` over threads has run yet"),
    ("_shell_exitcode", "no shell command has ended by itself yet"),
    ("_shell_exitsignal", "the last shell command was not ended by a signal"),
    (FRAMES_HIDDEN, "no process is attached"),
    ("_exitcode", "the process has not exited, or its exit status is not known"),
    ("_exitsignal", "the process has not been ended by a signal, or that is not known"),
];

/// The variable that is 1 if the kernel hides frame numbers, and otherwise 0, so that command files can omit lines that
/// would fail.
const FRAMES_HIDDEN: &str = "_frames_hidden";

/// Returns the variables that pmdb sets, except `$_`.
pub fn own_variables() -> impl Iterator<Item = &'static str> {
    VOID.iter().map(|(name, _)| *name)
}

/// Evaluates the expressions of one line.
pub(super) struct Evaluator<'a> {
    pub(super) scope: &'a dyn Scope,
    regions: OnceCell<Arc<[Region]>>,
    module_regions: OnceCell<Arc<[Region]>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(scope: &'a dyn Scope) -> Self {
        Evaluator { scope, regions: OnceCell::new(), module_regions: OnceCell::new() }
    }

    /// Returns the target, or the error that `what` needs one.
    pub(super) fn target(&self, at: Span, what: &str) -> Result<&'a Target> {
        self.scope.target().ok_or_else(|| Error::no_target(at, what))
    }

    /// Returns the target's regions in address order, read on the first call.
    pub(super) fn regions(&self, at: Span, what: &str) -> Result<&[Region]> {
        if let Some(regions) = self.regions.get() {
            return Ok(regions);
        }
        let target = self.target(at, what)?;
        let regions = self.scope.symbols().regions(target).map_err(|cause| Error::target(at, cause))?;
        Ok(self.regions.get_or_init(|| regions))
    }

    /// Returns the regions of modules, which decide which addresses have names.
    pub(super) fn module_regions(&self, at: Span, what: &str) -> Result<&[Region]> {
        if let Some(regions) = self.regions.get().or(self.module_regions.get()) {
            return Ok(regions);
        }
        let target = self.target(at, what)?;
        let regions = self.scope.symbols().module_regions(target).map_err(|cause| Error::target(at, cause))?;
        Ok(match regions {
            ModuleRegions::All(all) => self.regions.get_or_init(|| all),
            ModuleRegions::Some(some) => self.module_regions.get_or_init(|| some),
        })
    }

    /// Returns the regions in `range`, if they can be queried and not all regions are known.
    pub(super) fn few_regions_in(&self, range: AddressRange, at: Span) -> Result<Option<Vec<Region>>> {
        if self.regions.get().is_some() {
            return Ok(None);
        }
        let target = self.target(at, "reading regions")?;
        target.process.query_regions_in(range, FEW_REGIONS).map_err(|cause| Error::target(at, cause))
    }

    /// Evaluates an expression.
    pub(super) fn evaluate(&self, expression: &Spanned<Expression>) -> Result<Value> {
        self.evaluate_at(&expression.node, expression.at)
    }

    /// Evaluates an expression written at `at`.
    pub(super) fn evaluate_at(&self, expression: &Expression, at: Span) -> Result<Value> {
        Ok(match expression {
            Expression::Integer(number) => Integer::new(*number)
                .ok_or_else(|| Error::new(at, "too large a number: integers end at 2^64-1"))?
                .into(),
            Expression::Fraction(value) => Value::Float(Float::Double(*value)),
            Expression::Pages(pages) => self.bytes_of_pages(*pages, at)?.into(),
            Expression::Text(text) | Expression::EscapedText { text, .. } => Value::Text(text.clone()),
            Expression::Name(name) => self.name(name, at)?.value(),
            Expression::ModuleSymbol { module, symbol } => self.module_symbol(module, symbol)?.value(),
            Expression::ModuleAddress { module, address } => self.module_address(module, address)?,
            Expression::SourceLine { file, line } => self.source_line(file, line)?,
            Expression::ModuleRegion { module, index } => self.module_region(module, index)?,
            Expression::BracketedRegion(name) => Value::Range(self.bracketed(name, at)?),
            Expression::AddressOf(symbol) => Value::Address(self.symbol_address(symbol)?),
            Expression::Frame(number) => self.frame_number(number)?,
            Expression::Physical(number) => self.physical(number)?,
            Expression::Variable(name) => self.variable(name, at)?,
            Expression::History(reference) => {
                self.scope.history(*reference).map_err(|message| Error::new(at, message))?
            }
            Expression::LastAddress => Value::Address(self.last_address(at)?),
            Expression::Register(register) => Value::Address(self.register(*register, at)?),
            Expression::Unary { operator, operand } => self.unary(operator, operand, at)?,
            Expression::Binary { operator, left, right } => self.chain(operator, left, right)?,
            Expression::Cast { to, operand } => self.cast(to, operand, at)?,
            Expression::Read { as_type, address } => {
                let start = self.address(address)?;
                match self.contents(start, &c_type(*as_type), address.at)? {
                    // This is not a cast, so the number is exact, as others are.
                    Value::Typed(number) => number.get().into(),
                    other => other,
                }
            }
            Expression::Element { of, index } => self.element(of, index, at)?,
            Expression::Call { function, argument, filter } => self.call(*function, argument, filter.as_deref())?,
            Expression::Changes(asked) => self.changes(asked)?,
            Expression::Field(_) | Expression::Flag(_) => return Err(Error::no_page(at)),
        })
    }

    /// Evaluates an expression, and returns its value with its place, for errors.
    pub(super) fn value_with_place(&self, expression: &Spanned<Expression>) -> Result<Spanned<Value>> {
        self.evaluate(expression).map(|value| Spanned::new(value, expression.at))
    }

    /// Evaluates an expression to an address. A number that is not negative is one; a range converts to its first
    /// address.
    pub(super) fn address(&self, expression: &Spanned<Expression>) -> Result<VirtualAddress> {
        Ok(Self::to_place(self.value_with_place(expression)?, expression)?.0)
    }

    /// Converts a value to an address, and returns the range of which it is the first, if it is one.
    pub(super) fn to_place(
        value: Spanned<Value>,
        written: &Spanned<Expression>,
    ) -> Result<(VirtualAddress, Option<Spans>)> {
        refuse_quotient(&written.node)?;
        let address = to_address(&value).map_err(|error| as_range(&written.node, error))?;
        let (Value::Range(spans) | Value::Symbol(spans)) = value.node else {
            return Ok((address, None));
        };
        Ok((address, Some(spans)))
    }

    /// Converts `4p` to bytes.
    pub(super) fn bytes_of_pages(&self, pages: u64, at: Span) -> Result<Integer> {
        pages
            .checked_mul(self.scope.page_size().bytes())
            .map(Integer::from)
            .ok_or_else(|| Error::new(at, "too many pages: their bytes pass 2^64-1"))
    }

    fn unary(&self, operator: &Spanned<UnaryOperator>, operand: &Spanned<Expression>, at: Span) -> Result<Value> {
        match operator.node {
            UnaryOperator::Dereference => {
                let value = self.value_with_place(operand)?;
                if let Expression::AddressOf(symbol) = &operand.node {
                    self.note_read(symbol, operand.at);
                }
                match &value.node {
                    Value::Pointer { address, to } => self.contents(*address, to, at),
                    _ => {
                        let pointer = self.pointer(to_address(&value)?, at);
                        self.note_no_pointer(operand, &pointer);
                        pointer
                    }
                }
            }
            _ => operators::unary(operator, &self.value_with_place(operand).map_err(|error| dashed(error, operand))?),
        }
    }

    /// Evaluates `A + B - C …`. The tree of a chain leans left, and may be as deep as the line is long. A loop walks
    /// it, without recursion.
    fn chain(
        &self,
        operator: &Spanned<BinaryOperator>,
        left: &Spanned<Expression>,
        right: &Spanned<Expression>,
    ) -> Result<Value> {
        let mut links = vec![(operator, right)];
        let mut leftmost = left;
        while let Expression::Binary { operator, left, right } = &leftmost.node {
            links.push((operator, right));
            leftmost = left;
        }
        let mut value = match links.last() {
            Some((operator, right)) if is_equality(operator.node) => self.compared_value(&right.node, leftmost)?,
            _ => self.value_with_place(leftmost)?,
        };
        // The left side as it was written; `None` for an intermediate result.
        let mut written = Some(&leftmost.node);
        for (operator, right) in links.into_iter().rev() {
            let decided = match operator.node {
                BinaryOperator::And => Some(false),
                BinaryOperator::Or => Some(true),
                _ => None,
            };
            // As in C, the right side of `&&` and `||` is not evaluated if the left side decides.
            let node = match decided {
                Some(answer) if operators::truth(&value)? == answer => Integer::from(answer).into(),
                _ => match written.take().filter(|_| is_equality(operator.node)) {
                    Some(left) => {
                        let other = self.compared_value(left, right)?;
                        self.combine((left, &value), operator, (&right.node, &other))?
                    }
                    None => self.combine_pointers(&value, operator, &self.value_with_place(right)?)?,
                },
            };
            written = None;
            value = Spanned::new(node, value.at.to(right.at));
        }
        Ok(value.node)
    }

    pub(super) fn variable(&self, name: &str, at: Span) -> Result<Value> {
        let is_file = self.scope.target().is_some_and(|target| target.process.capture_times().is_some());
        let unset = || {
            match VOID.iter().find(|(void, _)| *void == name) {
            Some((_, why)) => Error::new(at, format!("${name} has no value: {why}")),
            None if is_argument(name) => {
                let message = format!("${name} has no value: there were fewer arguments");
                Error::new(at, message).hint(
                    "arguments follow the name of your command, `source FILE`, or in a shell the process: `pmdb -batch -x FILE PID VALUE …`",
                )
            }
            None => Error::new(at, format!("${name} has not been set")).hint(if is_register(name) && is_file {
                "only $pc and $sp are read from a file; use `gdb -p PID` for other registers".to_owned()
            } else if is_register(name) {
                "the kernel shows only $pc and $sp, of waiting threads; use `gdb -p PID` for other registers".to_owned()
            } else {
                format!("`set ${name} = VALUE` sets it (`show convenience` lists the variables, `show areas` those of `pmdb demo`)")
            }),
        }
        };
        let machine = self.scope.target().and_then(|target| target.process.program_machine());
        match (self.scope.variable(name), register_called(machine, name)) {
            (Some(value), _) => Ok(value),
            (None, None) if name == FRAMES_HIDDEN => {
                let target = self.scope.target().ok_or_else(unset)?;
                Ok(Integer::from(u64::from(target.process.are_frames_hidden())).into())
            }
            (None, Some(register)) => self.register(register, at).map(Value::Address),
            (None, None) => Err(unset()),
        }
    }

    fn last_address(&self, at: Span) -> Result<VirtualAddress> {
        self.scope.last_address().ok_or_else(|| {
            let message = "$_ has no value: the last command has shown no address";
            Error::new(at, message)
        })
    }

    fn register(&self, register: Register, at: Span) -> Result<VirtualAddress> {
        let process = &self.target(at, register.text())?.process;
        let registers = match self.scope.thread() {
            Some(thread) => process.registers_of(thread),
            None => process.registers(),
        };
        let registers = registers.map_err(|cause| Error::target(at, cause))?;
        Ok(match register {
            Register::ProgramCounter => registers.program_counter,
            Register::StackPointer => registers.stack_pointer,
        })
    }
}

/// Returns the type of C that `u8()` and the other readers have.
fn c_type(of: NumberType) -> CType {
    let integer = |bytes, signed| CType::Integer { width: Width::Bytes(bytes), is_signed: signed };
    match of {
        NumberType::U8 => integer(1, false),
        NumberType::U16 => integer(2, false),
        NumberType::U32 => integer(4, false),
        NumberType::U64 => integer(8, false),
        NumberType::I8 => integer(1, true),
        NumberType::I16 => integer(2, true),
        NumberType::I32 => integer(4, true),
        NumberType::I64 => integer(8, true),
        NumberType::F32 => CType::Float,
        NumberType::F64 => CType::Double,
    }
}

pub(super) fn is_equality(operator: BinaryOperator) -> bool {
    matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual)
}

/// Returns whether pmdb sets this variable, so that an assignment would have no effect or hide the true value.
pub fn is_set_by_pmdb(name: &str) -> bool {
    is_argument(name) || register_called(None, name).is_some() || VOID.iter().any(|(void, _)| *void == name)
}

/// Returns whether the variable is `$argc`, `$arg0`, `$arg1` …
fn is_argument(name: &str) -> bool {
    let number = name.strip_prefix("arg");
    number.is_some_and(|number| number == "c" || number.parse::<usize>().is_ok())
}

/// Converts a value to an address.
pub(super) fn to_address(value: &Spanned<Value>) -> Result<VirtualAddress> {
    match &value.node {
        Value::Address(address) | Value::Pointer { address, .. } => Ok(*address),
        Value::Integer(number) => number
            .to_u64()
            .map(VirtualAddress::new)
            .ok_or_else(|| Error::new(value.at, format!("{number} is not an address: it is negative"))),
        Value::Range(spans) | Value::Symbol(spans) => Ok(spans.start()),
        Value::Frame(_) | Value::Frames(_) | Value::Physical(_) => {
            Err(Error::new(value.at, format!("{} is not an address of the process", value.node.phrase())).hint(
                "for page frames and physical addresses: `who phys:N` lists the processes, `flags phys:N` the flags",
            ))
        }
        Value::Typed(number) => to_address(&Spanned::new(number.get().into(), value.at)),
        Value::Float(_) | Value::Array(_) => {
            Err(Error::new(value.at, format!("{} is not an address", value.node.phrase())))
        }
        Value::Text(text) => {
            let error = Error::new(value.at, format!("the text \"{text}\" is not an address"));
            Err(error.hint(if text.ends_with(',') {
                "spaces separate arguments; for a range: `set $r = A, +LENGTH`, and `$r` as the argument".to_owned()
            } else {
                format!("if a region, module or symbol has this name, write `{}`", lang::escape('\'', text))
            }))
        }
    }
}

/// Adds a hint to the error of `A-B` with two addresses, the form of ranges in maps and other output.
pub(super) fn as_range(written: &Expression, error: Error) -> Error {
    const LEAST: i128 = 0x1_0000;
    let Expression::Binary { operator, left, right } = written else {
        return error;
    };
    match (operator.node, &left.node, &right.node) {
        (BinaryOperator::Subtract, Expression::Integer(start), Expression::Integer(end))
            if (LEAST..*end).contains(start) =>
        {
            error.hint(format!("write a range as A..B: `{start:#x}..{end:#x}`"))
        }
        _ => error,
    }
}

/// The remedy for a length without a comma.
pub(super) const COMMA_BEFORE_LENGTH: &str = "put a comma before a length: `A, +LENGTH`";

/// Fails for `A/1M` in place of an address: dividing an address is useless, and other tools write a length so.
pub(super) fn refuse_quotient(written: &Expression) -> Result<()> {
    let Expression::Binary { operator, .. } = written else {
        return Ok(());
    };
    match operator.node {
        BinaryOperator::Divide | BinaryOperator::Remainder => {
            let message = format!("`{}` gives a number, and not an address", operator.node.text());
            Err(Error::new(operator.at, message).hint(COMMA_BEFORE_LENGTH))
        }
        _ => Ok(()),
    }
}

/// Machines by the `e_machine` of their programs (linux/elf-em.h) and Rust's name, with gdb's names of program counter
/// and stack pointer.
const MACHINES: &[(u16, &str, &[&str], &[&str])] = &[
    (62, "x86_64", &["rip", "eip"], &["rsp", "esp"]),
    (3, "x86", &["eip"], &["esp"]),
    (40, "arm", &["r15"], &["r13"]),
    (21, "powerpc64", &["nip"], &["r1"]),
    (20, "powerpc", &["nip"], &["r1"]),
    (22, "s390x", &["pswa"], &["r15"]),
    (243, "riscv64", &[], &["x2"]),
    (258, "loongarch64", &[], &["r3"]),
    (8, "mips64", &[], &["r29"]),
];

/// Other registers that gdb has on some machine.
const OTHERS: &[&str] = &[
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rip", "rsp", "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp",
    "eip", "esp", "eflags", "cs", "ss", "ds", "es", "fs", "gs", "fs_base", "gs_base", "orig_rax", "fp", "lr", "ra",
    "cpsr", "tpidr", "ps",
];

/// Returns which register the name means on a machine, by the `e_machine` of its programs; without a target, on that of
/// pmdb.
fn register_called(machine: Option<u16>, name: &str) -> Option<Register> {
    let own = std::env::consts::ARCH;
    let is_meant = |number: u16, known: &str| machine.map_or(known == own, |machine| machine == number);
    let (_, _, counters, pointers) = MACHINES.iter().find(|(number, known, ..)| is_meant(*number, known))?;
    if counters.contains(&name) {
        return Some(Register::ProgramCounter);
    }
    let is_pointer = pointers.contains(&name);
    is_pointer.then_some(Register::StackPointer)
}

/// Returns whether gdb may have a register with this name.
fn is_register(name: &str) -> bool {
    let numbered = name.strip_prefix(['r', 'x', 'w', 'f', 'v']);
    let is_number = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    OTHERS.contains(&name) || numbered.is_some_and(is_number) || name.strip_prefix("xmm").is_some_and(is_number)
}

/// Adds to the error of `-full` that a clause has no dash.
fn dashed(error: Error, operand: &Spanned<Expression>) -> Error {
    match &operand.node {
        Expression::Name(WrittenName(word)) if is_clause(word) => {
            error.hint(format!("`{word}` is written without a dash"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_own_names() {
        let pointer = Some(Register::StackPointer);
        let [x86_64, s390x, aarch64, arm] = [62, 22, 183, 40].map(Some);
        assert_eq!(register_called(x86_64, "rsp"), pointer);
        assert_eq!(register_called(s390x, "r15"), pointer);
        assert_eq!(register_called(x86_64, "r15"), None);
        assert_eq!(register_called(aarch64, "rsp"), None);
        assert_eq!(register_called(arm, "r15"), Some(Register::ProgramCounter));
        assert!(is_register("rax") && is_register("x30") && is_register("xmm0"));
        assert!(!is_register("r") && !is_register("range") && !is_register("x1y"));
    }
}
