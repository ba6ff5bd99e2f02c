//! Computes the work of `cpp_demangle` 0.5.1 for a C++ name: walks as its parser does, without building anything, up to
//! a limit.
//!
//! That parser tries alternatives in order, and forgets what a failed one has read. If an alternative fails late,
//! another one reads the same bytes again, at each level of nesting: `_Z1fIXdldldl…` needs 2ⁿ steps. The parser cannot
//! be interrupted and limits only its depth, so the same alternatives are first walked here, in the same order, and
//! counted. The functions have the names of the productions in its `ast.rs`; each has a position as argument and
//! returns the one after what it has read.

mod types;

/// The longest mangled name that is demangled, in bytes.
pub(super) const LONGEST_MANGLED: usize = 8 * 1024;
/// The deepest nesting of types.
pub(super) const DEEPEST: u32 = 96;

/// The most steps of parsing. `cpp_demangle` needs 13 to 30 ns for one (release build). A name has about two steps for
/// each byte.
const MOST_STEPS: usize = 32 * 1024;

/// Returns whether `cpp_demangle` can parse `name` (or refuse it) within the limit of steps.
pub(super) fn is_bounded(name: &[u8]) -> bool {
    let mut walk = CostWalk::new(name);
    _ = walk.mangled_name(0);
    walk.steps_left > 0
}

/// The kind of a part to which a back reference may refer, as far as the parser distinguishes kinds.
#[derive(Clone, Copy)]
enum Substitution {
    /// A prefix that ends in a name of this many bytes: the parser copies the name.
    Named(usize),
    Template,
    Other,
}

/// The part of a nested name before its end.
#[derive(Clone, Copy)]
enum Prefix {
    WellKnown,
    Substitution(usize),
    NotSubstitution(usize),
}

struct CostWalk<'a> {
    name: &'a [u8],
    steps_left: usize,
    depth: u32,
    is_too_deep: bool,
    is_in_conversion: bool,
    substitutions: Vec<Substitution>,
    not_substitutions: Vec<Substitution>,
}

type Production<'a> = fn(&mut CostWalk<'a>, usize) -> Option<usize>;

impl<'a> CostWalk<'a> {
    fn new(name: &'a [u8]) -> Self {
        CostWalk {
            name,
            steps_left: MOST_STEPS,
            depth: 0,
            is_too_deep: false,
            is_in_conversion: false,
            substitutions: Vec::new(),
            not_substitutions: Vec::new(),
        }
    }

    fn step(&mut self, cost: usize) -> Option<()> {
        self.steps_left = self.steps_left.saturating_sub(cost);
        (self.steps_left > 0 && !self.is_too_deep).then_some(())
    }

    /// Parses a production that can contain itself.
    fn nested(&mut self, at: usize, production: Production<'a>) -> Option<usize> {
        self.step(1)?;
        // `cpp_demangle` counts more levels and refuses the whole name, at the latest here.
        self.is_too_deep |= self.depth >= DEEPEST;
        if self.is_too_deep {
            return None;
        }
        self.depth += 1;
        let end = production(self, at);
        self.depth -= 1;
        end
    }

    fn many(&mut self, mut at: usize, production: Production<'a>) -> usize {
        while let Some(end) = production(self, at) {
            at = end;
        }
        at
    }

    fn one_or_more(&mut self, at: usize, production: Production<'a>) -> Option<usize> {
        let at = production(self, at)?;
        Some(self.many(at, production))
    }

    fn peek(&self, at: usize) -> Option<u8> {
        self.name.get(at).copied()
    }

    fn pair(&self, at: usize) -> Option<&'a [u8]> {
        self.name.get(at..at + 2)
    }

    fn text(&self, at: usize, text: &[u8]) -> Option<usize> {
        self.name.get(at..)?.starts_with(text).then(|| at + text.len())
    }

    fn optional_text(&self, at: usize, text: &[u8]) -> usize {
        self.text(at, text).unwrap_or(at)
    }

    fn one_of(&self, at: usize, bytes: &[u8]) -> Option<usize> {
        self.peek(at).filter(|byte| bytes.contains(byte)).map(|_| at + 1)
    }

    fn count(&mut self, at: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let rest = self.name.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|&&byte| is_part(byte)).count();
        _ = self.step(length / 16);
        length
    }

    /// Parses a number without leading zeroes, in digits, or digits and capitals for base 36.
    fn number_in(&mut self, at: usize, base: u32) -> Option<(usize, usize)> {
        let length = self.count(at, |byte| match base {
            36 => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            _ => byte.is_ascii_digit(),
        });
        let digits = std::str::from_utf8(self.name.get(at..at + length)?).ok()?;
        if digits.is_empty() || (length > 1 && digits.starts_with('0')) {
            return None;
        }
        let number = isize::from_str_radix(digits, base).ok()?;
        Some((number.try_into().ok()?, at + length))
    }

    fn number(&mut self, at: usize) -> Option<usize> {
        Some(self.number_in(at, 10)?.1)
    }

    fn signed_number(&mut self, at: usize) -> Option<usize> {
        self.number(self.optional_text(at, b"n"))
    }

    fn insert(&mut self, end: usize) -> Option<usize> {
        self.substitutions.push(Substitution::Other);
        Some(end)
    }

    /// Parses the productions of `shape`, a letter each: e encoding, N name, x expression, X expressions, t type, A
    /// template arguments, m member name, o call offset, # optional number, s signed number, n optional signed number;
    /// any other character is itself.
    fn shape(&mut self, mut at: usize, shape: &str) -> Option<usize> {
        for letter in shape.bytes() {
            at = match letter {
                b'e' => self.encoding(at)?,
                b'N' => self.name(at)?,
                b'x' => self.expression(at)?,
                b'X' => self.many(at, Self::expression),
                b't' => self.type_(at)?,
                b'A' => self.many(at, Self::template_arg),
                b'm' => self.member_name(at)?,
                b'o' => self.call_offset(at)?,
                b'#' => self.number(at).unwrap_or(at),
                b's' => self.signed_number(at)?,
                b'n' => self.signed_number(at).unwrap_or(at),
                literal => self.one_of(at, &[literal])?,
            };
        }
        Some(at)
    }

    fn mangled_name(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| {
            if let Some(at) = walk.text(at, b"_Z").or_else(|| walk.text(at, b"__Z")) {
                let at = walk.encoding(at)?;
                return Some(walk.many(at, Self::clone_suffix));
            }
            if let Some(at) = walk.text(at, b"___Z").or_else(|| walk.text(at, b"____Z")) {
                let at = walk.encoding(at)?;
                let at = walk.text(at, b"_block_invoke")?;
                return match walk.one_of(at, b"_.") {
                    Some(at) => walk.number(at),
                    None => walk.shape(at, "#"),
                };
            }
            if let Some(at) = walk.text(at, b"_GLOBAL_") {
                let at = walk.one_of(at, b"_.$")?;
                let at = walk.one_of(at, b"ID")?;
                let at = walk.text(at, b"_")?;
                return walk.mangled_name(at);
            }
            walk.type_(at)
        })
    }

    fn clone_suffix(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b".")?;
        let length = self.count(at, |byte| byte == b'$' || byte == b'_' || byte.is_ascii_alphanumeric());
        let at = (length > 0).then_some(at + length)?;
        Some(self.many(at, |walk, at| {
            let at = walk.text(at, b".")?;
            walk.number(at)
        }))
    }

    fn encoding(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| match walk.name(at) {
            Some(end) => Some(walk.many(end, Self::type_)),
            None => walk.special_name(at),
        })
    }

    fn name(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| {
            if let Some(end) = walk.nested_name(at) {
                return Some(end);
            }
            if let Some(end) = walk.unscoped_name(at) {
                return match walk.peek(end) {
                    Some(b'I') => {
                        walk.insert(end)?;
                        walk.template_args(end)
                    }
                    _ => Some(end),
                };
            }
            // The parser reads it again as an `UnscopedTemplateNameHandle`.
            if let Some(end) = walk.unscoped_name(at) {
                walk.insert(end)?;
                return walk.template_args(end);
            }
            if let Some((_, end)) = walk.substitution(at) {
                return walk.template_args(end);
            }
            walk.local_name(at)
        })
    }

    fn unscoped_name(&mut self, at: usize) -> Option<usize> {
        self.unqualified_name(self.optional_text(at, b"St"))
    }

    fn nested_name(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"N")?;
        let at = match self.text(at, b"H") {
            Some(at) => at,
            None => {
                let at = self.cv_qualifiers(at);
                self.one_of(at, b"RO").unwrap_or(at)
            }
        };
        let (prefix, at) = self.prefix(at)?;
        let end = self.text(at, b"E")?;
        let last = match prefix {
            Prefix::WellKnown => None,
            Prefix::Substitution(number) => self.substitutions.get(number),
            Prefix::NotSubstitution(number) => self.not_substitutions.get(number),
        };
        match *last? {
            Substitution::Named(length) => self.step(length)?,
            Substitution::Template => {}
            Substitution::Other => return None,
        }
        Some(end)
    }

    fn save(&mut self, prefix: Substitution, end: usize) -> Option<Prefix> {
        Some(match self.peek(end) {
            Some(b'E') => {
                self.not_substitutions.push(prefix);
                Prefix::NotSubstitution(self.not_substitutions.len() - 1)
            }
            _ => {
                self.substitutions.push(prefix);
                Prefix::Substitution(self.substitutions.len() - 1)
            }
        })
    }

    fn prefix(&mut self, mut at: usize) -> Option<(Prefix, usize)> {
        let mut current = None;
        loop {
            self.step(1)?;
            let Some(byte) = self.peek(at) else {
                return current.map(|prefix| (prefix, at));
            };
            let is_template_prefix = matches!(current, Some(Prefix::WellKnown | Prefix::Substitution(_)));
            let end;
            (current, end) = match byte {
                b'S' => {
                    let (prefix, end) = self.substitution(at)?;
                    (Some(prefix), end)
                }
                b'T' => {
                    let end = self.template_param(at)?;
                    (self.save(Substitution::Other, end), end)
                }
                b'I' if is_template_prefix => {
                    let end = self.template_args(at)?;
                    (self.save(Substitution::Template, end), end)
                }
                b'D' => match self.decltype(at) {
                    Some(end) => (self.save(Substitution::Other, end), end),
                    None => {
                        let end = self.unqualified_name(at)?;
                        (self.save(Substitution::Named(end - at), end), end)
                    }
                },
                _ if starts_name(byte) => {
                    let end = self.unqualified_name(at)?;
                    if self.peek(end) == Some(b'M') {
                        let is_source = byte == b'L' || byte.is_ascii_digit();
                        let prefix = match current {
                            None => Substitution::Named(end - at),
                            Some(_) if is_source => Substitution::Other,
                            Some(_) => return None,
                        };
                        (self.save(prefix, end), end + 1)
                    } else {
                        (self.save(Substitution::Named(end - at), end), end)
                    }
                }
                _ => return current.map(|prefix| (prefix, at)),
            };
            at = end;
        }
    }

    fn unqualified_name(&mut self, at: usize) -> Option<usize> {
        self.step(1)?;
        let operator = self.optional_text(at, b"on");
        let end = self.operator_name(operator, false).map(|(_, end)| end).or_else(|| self.ctor_dtor_name(at));
        let end = match (end, self.peek(at)) {
            (Some(end), _) => end,
            (None, Some(b'L')) => {
                let end = self.source_name(at + 1)?;
                self.discriminator(end).unwrap_or(end)
            }
            (None, _) => self.source_name(at).or_else(|| self.closure_type_name(at)).or_else(|| {
                let at = self.text(at, b"Ut")?;
                self.shape(at, "#_")
            })?,
        };
        // ABI tags.
        Some(self.many(end, |walk, at| walk.source_name(walk.text(at, b"B")?)))
    }

    fn source_name(&mut self, at: usize) -> Option<usize> {
        let (length, start) = self.number_in(at, 10)?;
        let end = start.checked_add(length)?;
        self.step(length.min(LONGEST_MANGLED) / 16)?;
        let identifier = self.name.get(start..end)?;
        let is_identifier = |byte: &u8| byte.is_ascii_alphanumeric() || b"$_.".contains(byte);
        (length > 0 && identifier.iter().all(is_identifier)).then_some(end)
    }

    fn operator_name(&mut self, at: usize, from_expression: bool) -> Option<(u8, usize)> {
        self.step(1)?;
        if let Some(arity) = self.pair(at).and_then(arity) {
            return Some((arity, at + 2));
        }
        if let Some(at) = self.text(at, b"cv") {
            let before = std::mem::replace(&mut self.is_in_conversion, !from_expression);
            let end = self.type_(at);
            self.is_in_conversion = before;
            return Some((1, end?));
        }
        if let Some(at) = self.text(at, b"li") {
            return Some((1, self.source_name(at)?));
        }
        let at = self.text(at, b"v")?;
        let digit = self.peek(at).filter(u8::is_ascii_digit)?;
        Some((digit - b'0', self.source_name(at + 1)?))
    }

    fn ctor_dtor_name(&mut self, at: usize) -> Option<usize> {
        if let Some(at) = self.text(at, b"D") {
            return self.one_of(at, b"0124");
        }
        let at = self.text(at, b"C")?;
        match self.text(at, b"I") {
            Some(at) => {
                let at = self.one_of(at, b"1234")?;
                self.type_(at)
            }
            None => self.one_of(at, b"1234"),
        }
    }

    fn discriminator(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"_")?;
        match self.text(at, b"_") {
            Some(at) => {
                let (number, end) = self.number_in(at, 10)?;
                (number >= 10).then_some(())?;
                self.text(end, b"_")
            }
            None => self.one_of(at, b"0123456789"),
        }
    }

    fn closure_type_name(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"Ul")?;
        let at = match self.text(at, b"v") {
            Some(at) => at,
            None => self.one_or_more(at, Self::type_)?,
        };
        self.shape(at, "E#_")
    }

    fn local_name(&mut self, at: usize) -> Option<usize> {
        let at = self.shape(at, "ZeE")?;
        let end = match self.peek(at) {
            Some(b's') => at + 1,
            Some(b'd') => return self.shape(at + 1, "n_N"),
            _ => self.name(at)?,
        };
        Some(self.discriminator(end).unwrap_or(end))
    }

    fn special_name(&mut self, at: usize) -> Option<usize> {
        let inside = at + 2;
        match self.pair(at)? {
            b"TV" | b"TT" | b"TI" | b"TS" | b"TF" => self.type_(inside),
            b"Tc" => self.shape(inside, "ooe"),
            b"Th" | b"Tv" => self.shape(at + 1, "oe"),
            b"TC" => {
                let at = self.type_(inside)?;
                let at = self.number(at)?;
                self.shape(at, "_t")
            }
            b"TH" | b"TW" | b"GV" => self.name(inside),
            b"GR" => {
                let at = self.name(inside)?;
                self.text(at, b"_").or_else(|| {
                    let (_, at) = self.number_in(at, 36)?;
                    self.text(at, b"_")
                })
            }
            b"Gr" => {
                let (length, at) = self.number_in(inside, 10)?;
                let end = at.checked_add(length)?;
                self.step(length.min(LONGEST_MANGLED))?;
                let at = self.text(at, b"_")?;
                is_java_resource(self.name.get(at..end)?).then_some(end)
            }
            b"GT" => {
                self.peek(inside)?;
                self.encoding(inside + 1)
            }
            _ => None,
        }
    }

    fn call_offset(&mut self, at: usize) -> Option<usize> {
        self.shape(at, "hs_").or_else(|| self.shape(at, "vs_s_"))
    }
}

/// Returns the number of operands of an operator.
fn arity(operator: &[u8]) -> Option<u8> {
    Some(match operator {
        b"dl" | b"da" | b"ps" | b"ng" | b"ad" | b"de" | b"co" | b"nt" | b"pp" | b"mm" => 1,
        b"pl" | b"mi" | b"ml" | b"dv" | b"rm" | b"an" | b"or" | b"eo" | b"aS" | b"pL" | b"mI" | b"mL" | b"dV"
        | b"rM" | b"aN" | b"oR" | b"eO" | b"ls" | b"rs" | b"lS" | b"rS" | b"eq" | b"ne" | b"lt" | b"gt" | b"le"
        | b"ge" | b"aa" | b"oo" | b"cm" | b"pm" | b"pt" | b"cl" | b"ix" | b"ss" => 2,
        b"nw" | b"na" | b"qu" => 3,
        _ => return None,
    })
}

/// Returns whether `names` are those of a Java resource, in which each name but the last ends in an escaped byte.
fn is_java_resource(mut names: &[u8]) -> bool {
    while let Some(length) = names.iter().position(|&byte| byte == b'$') {
        if length == 0 || !matches!(names.get(length + 1), Some(b'S' | b'_' | b'$')) {
            return false;
        }
        names = names.get(length + 2..).unwrap_or_default();
    }
    true
}

/// Returns whether an unqualified name can begin with this byte.
fn starts_name(byte: u8) -> bool {
    byte.is_ascii_digit() || b"LCDUclvndpamreogisq".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpp_demangle::{BorrowedSymbol, ParseOptions, error::Error};

    /// Names with each production, some as compilers write them.
    const NAMES: [&str; 25] = [
        "_ZNSt8functionIFvRPN4llvm5ValueEEEaSIZNS0_4LessELPKc0EEERS5_OT_",
        "_ZNK1aIXadL_ZN1b1cEvEELi5EJiDpT_EEcvT_IiEIcEEv.part.0.cold",
        "_ZZNKR3foo3barILb1EEEvENKUlT_RKS1_E0_clIiEEDaS0_",
        "_Z1fIiEDTcldtfp_1gIT_EspfL0p0_LZ1hvEEES1_A10_KcPDoFviE",
        "_Z1fIXsr3stdE7is_sameIT_S0_EEEvDTgsnw_T_piLi1EEE",
        "_Z1fIXfLplfp_Lj3EEXqultfp_LDnEgsdlfp_ngLd3ff0EE",
        "_ZTcv0_n24_h8_N1a1bIS_EC2ERKS1_",
        "_ZGRN3foo1xEA_",
        "_ZGr12_a$Sb$_c$$d",
        "___ZN1a1bEv_block_invoke_2",
        "_GLOBAL__I__ZN12_GLOBAL__N_11aE",
        "_ZN1aB5cxx11C1ERKSs",
        "_ZN1aUt_1bEDv4_fU8restrictIiEi",
        "_ZN1aL1bE_3M1aKFivES_",
        "_Z1fRDF16bDF32xDB8_DUsZT_DRiDSDAl",
        "_Z1fIXtl1aLi1Eilfp_EEEvTs1bM1cFvvRE",
        "_Z1fIXso1afp_n8EXmm_fp_XtrEEvv",
        "_ZNH1a1bIiEEvT_",
        "_ZN1aD0Ev.isra.1",
        "_Zli2_sy",
        "_ZN1aIiEcvDpPT_IJiEEEv",
        "_ZN1aCI21bEi",
        "_Z1fIXsrN1aI1bE1cEdnT_onplIiEEvv",
        "_ZDcv1aEXcvi_fp_EEA_iAfp__i",
        // No unnamed type: that is `Ut`.
        "_ZN1aUi_1bEi",
    ];

    /// The position after what is read; `None` if it is refused.
    fn walked(name: &[u8]) -> Option<usize> {
        let mut walk = CostWalk::new(name);
        let end = walk.mangled_name(0);
        assert!(walk.steps_left > 0, "{}", String::from_utf8_lossy(name));
        end
    }

    #[test]
    fn the_walk_reads_what_the_parser_reads() {
        let options = ParseOptions::default().recursion_limit(DEEPEST);
        let mut read = 0;
        let mut compare = |name: &[u8]| {
            let parsed = match BorrowedSymbol::with_tail_and_options(name, &options) {
                Ok((_, tail)) => Some(name.len() - tail.len()),
                Err(Error::TooMuchRecursion) => return,
                Err(_) => None,
            };
            read += usize::from(parsed.is_some());
            assert_eq!(walked(name), parsed, "{}", String::from_utf8_lossy(name));
        };
        for (number, name) in NAMES.iter().enumerate() {
            let name = name.as_bytes();
            let other = NAMES[(number + 5) % NAMES.len()].as_bytes();
            compare(name);
            for at in 0..name.len() {
                compare(&name[..at]);
                compare(&[&name[..at], &name[at + 1..]].concat());
                compare(&[&name[..at], &other[at.min(other.len())..]].concat());
                for inserted in ["E", "I", "S_", "T_", "L", "1x", "N", "_", "M", "dl", "St", "X"] {
                    compare(&[&name[..at], inserted.as_bytes(), &name[at..]].concat());
                }
            }
        }
        assert!(read > 3_000, "{read}");
    }

    #[test]
    fn names_of_exponential_parsing_time_are_refused() {
        for (nested, innermost, close, end) in
            [("dl", "_", "E", "v"), ("da", "_", "E", "v"), ("na", "_", "E", "v"), ("nw", "_", "", "")]
        {
            let name = format!("_Z1fIX{}{innermost}{}{end}", nested.repeat(40), close.repeat(40));
            assert!(!is_bounded(name.as_bytes()), "{name}");
        }
        assert!(is_bounded(format!("_Z1f{}i", "P".repeat(60)).as_bytes()));
        assert!(is_bounded(format!("_Z1fI{}Ev", "1aIiE".repeat(1000)).as_bytes()));
    }
}
