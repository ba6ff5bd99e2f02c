//! Expressions: the tree, and the precedence of operators, which a test compares with `grammar/operators`.

use crate::kernel::words::{Worded, worded};
use crate::lang::ctype::CType;
use crate::lang::error::{Span, Spanned};
use crate::lang::field::{FilterField, PageField};
use std::fmt;
use std::marker::PhantomData;

/// A name: plain (`main`, `libc.so.6`, `a::b`) or in 'single quotes'.
///
/// The evaluation decides what it names: first a symbol, then a region or module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WrittenName(pub String);

/// A symbol in `info address` and after `&`: `main` or `libc.so.6!malloc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolName {
    /// The module that must define the symbol, if it is given.
    pub module: Option<Spanned<WrittenName>>,
    /// The name of the symbol.
    pub symbol: Spanned<WrittenName>,
}

/// An expression, which has a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number from 0 to 2^64-1, its suffix `K M G T` already applied; also a pasted address.
    Integer(i128),
    /// `7.5`
    Fraction(f64),
    /// `4p`: the size of this many pages of the target.
    Pages(u64),
    /// `"text"`, unescaped.
    Text(String),
    /// `"a\x0ab"`: a text with an escaped byte.
    EscapedText {
        /// The text, unescaped except for bytes.
        text: String,
        /// The text between the quotes, unchanged.
        raw: String,
    },
    /// `main`, `libc.so.6`, `'a name'`, `heap`.
    Name(WrittenName),
    /// `libc.so.6!malloc`
    ModuleSymbol {
        /// The module.
        module: Spanned<WrittenName>,
        /// The symbol in the module.
        symbol: Spanned<WrittenName>,
    },
    /// `libc.so.6!0x1149`: an address in the file, as objdump shows it.
    ModuleAddress {
        /// The module.
        module: Spanned<WrittenName>,
        /// The address in the file.
        address: Spanned<u64>,
    },
    /// `server.c:210`: the address of a line of the source.
    SourceLine {
        /// The file: its whole path, or the end of it.
        file: Spanned<WrittenName>,
        /// The line of the file.
        line: Spanned<u64>,
    },
    /// `libc.so.6[2]`: a region of a module, counted from 0.
    ModuleRegion {
        /// The module.
        module: Spanned<WrittenName>,
        /// The index of the region.
        index: Spanned<u64>,
    },
    /// `[heap]`: the region with that name; the brackets are not part of the text.
    BracketedRegion(String),
    /// `&name`, `&module!name`: the address of a symbol.
    AddressOf(SymbolName),
    /// `pfn:E`: a page frame.
    Frame(Box<Spanned<Expression>>),
    /// `phys:E`: a physical address.
    Physical(Box<Spanned<Expression>>),
    /// `$name`, without the `$`.
    Variable(String),
    /// `$`, `$N`, `$$`, `$$N`: a value of the value history.
    History(HistoryReference),
    /// `$_`: the last address that a command has shown.
    LastAddress,
    /// `$pc`, `$sp`, if `/proc` shows them.
    Register(Register),
    /// `-E` and other prefix operators; `*E` reads a pointer.
    Unary {
        /// The operator.
        operator: Spanned<UnaryOperator>,
        /// The operand.
        operand: Box<Spanned<Expression>>,
    },
    /// `A + B` and other binary operators.
    Binary {
        /// The operator, with its place, which the error of an overflow shows.
        operator: Spanned<BinaryOperator>,
        /// The left operand.
        left: Box<Spanned<Expression>>,
        /// The right operand.
        right: Box<Spanned<Expression>>,
    },
    /// `(int *)E`: a value as a type of C.
    Cast {
        /// The type.
        to: Spanned<CType>,
        /// The value.
        operand: Box<Spanned<Expression>>,
    },
    /// `E[N]`: an element of an array, or of what a pointer points to.
    Element {
        /// The array or pointer.
        of: Box<Spanned<Expression>>,
        /// The index of the element, from 0.
        index: Spanned<u64>,
    },
    /// `u8(E)` … `f64(E)`: reads the target's memory at the address E.
    Read {
        /// The type that is read.
        as_type: NumberType,
        /// The address of the value.
        address: Box<Spanned<Expression>>,
    },
    /// `pfn(A)`, `start(R)` and the other functions.
    Call {
        /// The function.
        function: Function,
        /// The argument; a single expression for functions of an address.
        argument: Box<Spanned<Range>>,
        /// `where FILTER`, for functions that count pages.
        filter: Option<Box<Spanned<FilterExpression<PageField>>>>,
    },
    /// `changed(A, B in R where F)` and the other functions of two snapshots.
    Changes(Box<Changes>),
    /// `dirty`: a field, only in a filter. `state == swapped` becomes the field `swapped`.
    Field(&'static str),
    /// `flags(NAME)`, only in a filter: a bit of the frame's `/proc/kpageflags`, by its name or as `bitNN`.
    Flag(Spanned<String>),
}

/// A range.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// `all`: the whole address space.
    All,
    /// An address, region, module or symbol, or a variable that holds a range.
    Expression(Expression),
    /// `A..B`, B not included. With frames `pfn:A..pfn:B`.
    Span {
        /// The first byte.
        start: Spanned<Expression>,
        /// The address after the last byte.
        end: Spanned<Expression>,
    },
    /// `A, +LENGTH`, in bytes unless LENGTH is in pages.
    Length {
        /// The first byte.
        start: Spanned<Expression>,
        /// The length.
        length: Spanned<Expression>,
    },
}

/// A reference to the value history, as in gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryReference {
    /// `$`: the last value (`$$0`).
    Last,
    /// `$N`: the value numbered N.
    Number(u64),
    /// `$$N`: the Nth before the last; `$$` is `$$1`.
    Back(u64),
}

worded! {
    /// The registers that `/proc/PID/syscall` and `stat` may show.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Register, text {
        /// `$pc`
        ProgramCounter = "$pc",
        /// `$sp`
        StackPointer = "$sp",
    }
}

/// The variable with the last address that a command has shown.
pub const LAST_ADDRESS: &str = "$_";

/// Returns the variables that no line can set.
pub fn fixed_variables() -> impl Iterator<Item = &'static str> {
    [LAST_ADDRESS].into_iter().chain(Register::words())
}

/// Returns whether a variable is one that no line can set.
pub fn is_fixed(variable: &str) -> bool {
    fixed_variables().any(|fixed| fixed == variable)
}

worded! {
    /// Operators before their operand.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UnaryOperator, text {
        /// `-`
        Negate = "-",
        /// `+`
        Plus = "+",
        /// `~`
        BitNot = "~",
        /// `!`, `not`
        Not = "!",
        /// `*`: the pointer that is stored at the address.
        Dereference = "*",
    }
}

worded! {
    /// Operators between two operands, with C's meaning and precedence, the loosest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BinaryOperator, text {
        /// `||`, `or`
        Or = "||",
        /// `&&`, `and`
        And = "&&",
        /// `|`, only in parentheses
        BitOr = "|",
        /// `^`
        BitXor = "^",
        /// `&`
        BitAnd = "&",
        /// `==`
        Equal = "==",
        /// `!=`
        NotEqual = "!=",
        /// `~`: a text matches a regular expression.
        Matches = "~",
        /// `<`
        Less = "<",
        /// `<=`
        LessOrEqual = "<=",
        /// `>`
        Greater = ">",
        /// `>=`
        GreaterOrEqual = ">=",
        /// `<<`
        ShiftLeft = "<<",
        /// `>>`
        ShiftRight = ">>",
        /// `+`
        Add = "+",
        /// `-`
        Subtract = "-",
        /// `*`
        Multiply = "*",
        /// `/`
        Divide = "/",
        /// `%`
        Remainder = "%",
    }
}

worded! {
    /// The numbers that memory can be read as, in the target's byte order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NumberType, name {
        /// `u8`
        U8 = "u8",
        /// `u16`
        U16 = "u16",
        /// `u32`
        U32 = "u32",
        /// `u64`
        U64 = "u64",
        /// `i8`
        I8 = "i8",
        /// `i16`
        I16 = "i16",
        /// `i32`
        I32 = "i32",
        /// `i64`
        I64 = "i64",
        /// `f32`
        F32 = "f32",
        /// `f64`
        F64 = "f64",
    }
}

impl Expression {
    /// Returns whether the value is a number of bytes, by the function that the expression calls.
    pub fn counts_bytes(&self) -> bool {
        use Function::{Bytes, Huge, Pss, Rss, Size, Swapped, Uss};
        matches!(self, Expression::Call { function: Bytes | Huge | Pss | Rss | Size | Swapped | Uss, .. })
    }
}

worded! {
    /// The functions of expressions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Function, name {
        /// `pfn(A)`: the frame behind an address.
        Pfn = "pfn",
        /// `phys(A)`: the physical address behind an address.
        Phys = "phys",
        /// `page(A)`: the start of the page of an address.
        Page = "page",
        /// `region(A)`: the region of an address, a range.
        Region = "region",
        /// `start(R)`: the first address of a range.
        Start = "start",
        /// `end(R)`: the address after a range.
        End = "end",
        /// `size(R)`: the length of a range in bytes.
        Size = "size",
        /// `symbol(A)`: the symbol at an address, text.
        Symbol = "symbol",
        /// `type(V)`: the type of a value in one word, text.
        Type = "type",
        /// `count(R where F)`: pages.
        Count = "count",
        /// `bytes(R where F)`: the same in bytes.
        Bytes = "bytes",
        /// `runs(R where F)`: physically contiguous runs.
        Runs = "runs",
        /// `longest(R where F)`: the longest of them, a range.
        Longest = "longest",
        /// `first(R where F)`: the address of the first page.
        First = "first",
        /// `last(R where F)`: the address of the last page.
        Last = "last",
        /// `rss(R)`: resident bytes. This and the next two leave out the hugetlb pool.
        Rss = "rss",
        /// `pss(R)`: the proportional share.
        Pss = "pss",
        /// `uss(R)`: bytes of exclusive pages.
        Uss = "uss",
        /// `swapped(R)`: bytes in swap.
        Swapped = "swapped",
        /// `huge(R)`: bytes mapped as huge pages.
        Huge = "huge",
        /// `name(R)`: the name of the mapping, text.
        Name = "name",
        /// `perms(R)`: its rights, text.
        Perms = "perms",
        /// `state(A)`: the state of a page, text.
        State = "state",
        /// `kind(A)`: the kind of a page, text.
        Kind = "kind",
        /// `mapcount(A)`: how often the frame behind an address is mapped.
        Mapcount = "mapcount",
        /// `exclusive(A)`: whether it is mapped there alone, 1 or 0.
        Exclusive = "exclusive",
        /// `pmd_mapped(A)`: whether one PMD maps the page as a huge one that is not of the hugetlb pool, 1 or 0.
        PmdMapped = "pmd_mapped",
    }
}

impl Function {
    /// Returns whether the function adds up the pages of a range, so that it accepts a filter.
    pub fn takes_filter(self) -> bool {
        use Function::{Bytes, Count, First, Huge, Last, Longest, Pss, Rss, Runs, Swapped, Uss};
        matches!(self, Count | Bytes | Runs | Longest | First | Last | Rss | Pss | Uss | Swapped | Huge)
    }
}

worded! {
    /// The functions of two snapshots: how many pages changed between them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ChangeFunction, name {
        /// In any way, each page once.
        Changed = "changed",
        /// Came.
        Came = "came",
        /// Went.
        Went = "went",
        /// Were copied on write.
        Copied = "copied",
        /// Are in another frame.
        Moved = "moved",
        /// Hold something else.
        Written = "written",
    }
}

/// The word for the present, which no snapshot can have as its name.
pub const NOW: &str = "now";

/// A call of a function of two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The function, which decides which pages count.
    pub function: Spanned<ChangeFunction>,
    /// The earlier snapshot.
    pub from: Spanned<String>,
    /// The later snapshot; the present if absent.
    pub to: Option<Spanned<String>>,
    /// The range; all that both snapshots cover if absent.
    pub range: Option<Spanned<Range>>,
    /// A filter on the pages, as they are now.
    pub filter: Option<Spanned<FilterExpression<PageField>>>,
}

/// A filter: a condition in which the fields `F`, of pages or of regions, are names.
///
/// The parser has checked the types: words join conditions, numbers are computed and compared, and texts are compared.
#[derive(Clone, PartialEq)]
pub struct FilterExpression<F> {
    /// The condition, in which all fields are of `F`.
    pub condition: Expression,
    fields: PhantomData<F>,
}

impl<F: FilterField> FilterExpression<F> {
    /// Makes the filter of a condition on fields of `F`.
    pub(super) fn of(condition: Expression) -> Self {
        FilterExpression { condition, fields: PhantomData }
    }

    /// Makes the filter `FIELD`, for a boolean field.
    pub fn is(field: F) -> Self {
        FilterExpression::of(Expression::Field(field.name()))
    }

    /// Makes the filter `self and other`.
    pub fn and(self, other: Self) -> Self {
        let place = Span::default();
        let [left, right] = [self, other].map(|filter| Box::new(Spanned::new(filter.condition, place)));
        FilterExpression::of(Expression::Binary { operator: Spanned::new(BinaryOperator::And, place), left, right })
    }

    /// Returns whether the filter has a field for whose name `is` is true.
    pub fn has_field(&self, is: fn(&str) -> bool) -> bool {
        self.condition.has_field(is)
    }

    /// Returns whether the filter tests a page or region. One that only compares values has the same result for all.
    pub fn has_fields(&self) -> bool {
        self.condition.has_fields()
    }
}

impl<F> fmt::Debug for FilterExpression<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl Expression {
    /// Returns whether the value depends on a page or region.
    pub fn has_fields(&self) -> bool {
        match self {
            Expression::Field(_) | Expression::Flag(_) => true,
            Expression::Unary { operand, .. } => operand.node.has_fields(),
            Expression::Binary { left, right, .. } => left.node.has_fields() || right.node.has_fields(),
            _ => false,
        }
    }

    /// Returns whether the expression has a field for whose name `is` is true.
    fn has_field(&self, is: fn(&str) -> bool) -> bool {
        match self {
            Expression::Field(name) => is(name),
            Expression::Unary { operand, .. } => operand.node.has_field(is),
            Expression::Binary { left, right, .. } => left.node.has_field(is) || right.node.has_field(is),
            _ => false,
        }
    }

    /// Adds the variables in the expression, without the `$`, each once.
    pub fn add_variables<'a>(&'a self, to: &mut Vec<&'a str>) {
        match self {
            Expression::Variable(name) if to.contains(&name.as_str()) => {}
            Expression::Variable(name) => to.push(name),
            Expression::Frame(operand)
            | Expression::Physical(operand)
            | Expression::Unary { operand, .. }
            | Expression::Cast { operand, .. }
            | Expression::Element { of: operand, .. }
            | Expression::Read { address: operand, .. } => operand.node.add_variables(to),
            Expression::Binary { left, right, .. } => {
                left.node.add_variables(to);
                right.node.add_variables(to);
            }
            Expression::Call { argument, filter, .. } => {
                argument.node.add_variables(to);
                filter.iter().for_each(|filter| filter.node.condition.add_variables(to));
            }
            Expression::Changes(changes) => {
                changes.range.iter().for_each(|range| range.node.add_variables(to));
                changes.filter.iter().for_each(|filter| filter.node.condition.add_variables(to));
            }
            _ => {}
        }
    }
}

impl Range {
    fn add_variables<'a>(&'a self, to: &mut Vec<&'a str>) {
        match self {
            Range::All => {}
            Range::Expression(expression) => expression.add_variables(to),
            Range::Span { start, end: other } | Range::Length { start, length: other } => {
                start.node.add_variables(to);
                other.node.add_variables(to);
            }
        }
    }
}

/// The precedence of an operator, the loosest first. All are left-associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
}

impl Level {
    /// Returns whether the operators of this level compare.
    pub(super) fn compares(self) -> bool {
        matches!(self, Level::Equality | Level::Relation)
    }

    /// Returns whether the operators of this level join conditions.
    pub(super) fn joins(self) -> bool {
        self <= Level::And
    }
}

/// Returns whether a bare word is an operator, and never a name.
pub(crate) fn is_operator_word(word: &str) -> bool {
    matches!(word, "and" | "or" | "not")
}

impl BinaryOperator {
    /// Returns the word with which filters print the operator, if it has one.
    pub(super) fn as_word(self) -> Option<&'static str> {
        match self {
            BinaryOperator::Or => Some("or"),
            BinaryOperator::And => Some("and"),
            _ => None,
        }
    }

    /// Returns the level of the operator.
    pub(super) fn level(self) -> Level {
        use BinaryOperator as B;
        match self {
            B::Or => Level::Or,
            B::And => Level::And,
            B::BitOr => Level::BitOr,
            B::BitXor => Level::BitXor,
            B::BitAnd => Level::BitAnd,
            B::Equal | B::NotEqual | B::Matches => Level::Equality,
            B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual => Level::Relation,
            B::ShiftLeft | B::ShiftRight => Level::Shift,
            B::Add | B::Subtract => Level::Sum,
            B::Multiply | B::Divide | B::Remainder => Level::Product,
        }
    }
}
