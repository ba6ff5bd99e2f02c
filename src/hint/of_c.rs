//! Hints for expressions of C and gdb with types, of which this language has only those of numbers: `P->MEMBER`,
//! `ARRAY@N`, `&ARRAY[N]`, `(TYPE)VALUE`.

use super::commands::takes_value;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::{CType, Expected, Failure, KNOWN_TYPES, unknown_type};

/// Returns the hint for an expression of C or gdb with types.
pub(super) fn of_c(failed: &Failure<'_>) -> Option<String> {
    let (token, before) = (failed.token()?, failed.before()?);
    match (before.text, token.text) {
        // NAME@N
        (_, "@") => count_of_elements(failed),
        // NAME->MEMBER
        ("-", ">") if token.is_glued => {
            let last = failed.position.checked_sub(2)?;
            let pointer = failed.tokens.get(last)?;
            match pointer.kind {
                TokenKind::Variable => Some(member_of(pointer.text)),
                TokenKind::Name => Some(member_of(&format!("*{}", name_before(failed, last)?.1))),
                _ => None,
            }
        }
        // &NAME[N], MODULE!NAME[N]
        ("&" | "!", _) => element(failed),
        // $RANGE.MEMBER
        (variable, ".") if before.kind == TokenKind::Variable && token.is_glued => {
            Some(format!("a range has no members: `name({variable})`, `start({variable})`, `rss({variable})`"))
        }
        // NAME[I][J], (POINTER)[I + J]
        _ if is_index(token) => Some(match before.kind {
            TokenKind::Indexed { .. } => ARRAY_OF_ARRAYS.to_owned(),
            _ => {
                let sum = token.text.trim_matches(['[', ']']);
                match failed.position.checked_sub(1).and_then(|last| name_before(failed, last)) {
                    Some((_, name)) if before.kind == TokenKind::Name => format!(
                        "an index is one number; that byte is at `*{name} + {sum}` if this is a pointer, and at `&{name} + {sum}` if it is an array"
                    ),
                    _ => format!("an index is one number; for a sum, write `*(POINTER + {sum})`"),
                }
            }
        }),
        // (TYPE)VALUE
        (")", _) if matches!(token.kind, TokenKind::Number(_) | TokenKind::Name | TokenKind::Variable) => {
            let [open, name] = failed.tokens.get(failed.position.checked_sub(3)?..failed.position - 1)? else {
                return None;
            };
            if matches!(name.kind, TokenKind::Indexed { .. }) && CType::parse_in_braces(name.text).is_some() {
                let (before, value) = (failed.line.get(..open.at.start)?, failed.line.get(token.at.start..)?);
                return Some(format!("braces read an array: `{before}{{{}}}{value}`", name.text));
            }
            let is_cast = open.text == "(" && !open.is_glued && name.kind == TokenKind::Name;
            is_cast.then(|| format!("{}; expected {KNOWN_TYPES}", unknown_type(name.text)))
        }
        _ => None,
    }
}

/// The hint for an element of an array of arrays.
const ARRAY_OF_ARRAYS: &str = "an array of arrays is only in gdb: paste the address that gdb prints for `&NAME[I][J]`";

/// Returns whether a token is an index: brackets that follow directly.
fn is_index(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Bracketed && token.is_glued
}

/// Returns an expression for the address of the first element of `name`, with its type. A cast takes the contents of a
/// pointer and the address of an array, as in C, so that it fits both.
pub fn pointer_to(element: &str, name: &str) -> String {
    format!("({element} *){name}")
}

/// Returns the hint for a member of the structure at `base`.
pub fn member_of(base: &str) -> String {
    format!(
        "the member is at `{base} + OFFSET`; an int there is `u32({base} + OFFSET)`, and what a pointer there points to is at `*({base} + OFFSET)` (gdb's `ptype /o` shows the offset)"
    )
}

/// Returns the element type for a hint: `int` for a value, and `char` for memory, which is counted in bytes.
fn usual_element(failed: &Failure<'_>) -> &'static str {
    if takes_value(failed) { "int" } else { "char" }
}

/// Returns the index of the first token of a name with its module, and its text. `last` is the index of its last token.
fn name_before<'a>(failed: &Failure<'a>, last: usize) -> Option<(usize, &'a str)> {
    let tokens = failed.tokens;
    let is_of_module = tokens.get(last.checked_sub(1)?)?.text == "!";
    let first = if is_of_module { last.checked_sub(2)? } else { last };
    let at = tokens.get(first)?.at.to(tokens.get(last)?.at);
    Some((first, failed.line.get(at.start..at.end)?))
}

/// Returns the line before the token `first`, and before `sign` if that precedes it: a pointer needs no sign.
fn typed_before<'a>(failed: &Failure<'a>, first: usize, sign: &str) -> Option<&'a str> {
    let before = failed.tokens.get(first.checked_sub(1)?)?;
    let first = if before.text == sign { before } else { failed.tokens.get(first)? };
    failed.line.get(..first.at.start)
}

/// Returns the text from the token `first` to the token `last`.
fn text_of<'a>(failed: &Failure<'a>, first: usize, last: usize) -> Option<&'a str> {
    failed.line.get(failed.tokens.get(first)?.at.start..failed.tokens.get(last)?.at.end)
}

/// Returns the index of the bracket that the one at `close` closes.
fn opening(tokens: &[Token<'_>], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (0..=close).rev().find(|&at| {
        match tokens.get(at).map(|token| token.text) {
            Some(")") => depth += 1,
            Some("(") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// Returns the element type of the cast to a pointer at `open`, `(int *)`, and the index of its closing bracket.
fn cast_at<'a>(failed: &Failure<'a>, open: usize) -> Option<(&'a str, usize)> {
    let close = (open..failed.position).find(|&at| failed.tokens.get(at).is_some_and(|token| token.text == ")"))?;
    let inside = text_of(failed, open, close)?.strip_prefix('(')?.strip_suffix(')')?;
    let element = inside.trim().strip_suffix('*')?.trim();
    CType::parse(element).map(|_| (element, close))
}

/// Returns the hint for `ARRAY@N` and `*POINTER@N`, N elements in gdb.
fn count_of_elements(failed: &Failure<'_>) -> Option<String> {
    let (last, end) = (failed.position.checked_sub(1)?, failed.before()?);
    let mut element = usual_element(failed);
    let is_value = element == "int";
    let (mut first, name, index) = match &end.kind {
        TokenKind::Variable => (last, end.text, 0),
        TokenKind::Name => name_before(failed, last).map(|(first, name)| (first, name, 0))?,
        TokenKind::Indexed { index, .. } => (last, end.text.split_once('[')?.0, *index),
        _ if end.text == ")" => (opening(failed.tokens, last)?, "", 0),
        _ => return None,
    };
    // `&NAME` is already an address.
    let addressed = first.checked_sub(1).filter(|&at| {
        matches!(end.kind, TokenKind::Name) && failed.tokens.get(at).is_some_and(|sign| sign.text == "&")
    });
    let name = match addressed {
        Some(at) => {
            first = at;
            text_of(failed, at, last)?
        }
        None => name,
    };
    // The cast, before the operand or first within its parentheses.
    let cast_before =
        || cast_at(failed, opening(failed.tokens, first.checked_sub(1)?)?).filter(|cast| cast.1 + 1 == first);
    let cast = if name.is_empty() { cast_at(failed, first + 1) } else { cast_before() };
    let is_call = failed.tokens.get(first).is_some_and(|open| open.is_glued)
        && failed.tokens.get(first.checked_sub(1)?)?.kind == TokenKind::Name;
    if name.is_empty() && (cast.is_none() || is_call) {
        return None;
    }
    if let Some((of, close)) = cast {
        first = if name.is_empty() { first } else { opening(failed.tokens, close)? };
        element = if is_value { of } else { element };
    }
    let pointer = match (name, index) {
        ("", _) => text_of(failed, first, last)?.to_owned(),
        (name, 0) => pointer_to(element, name),
        (name, index) => format!("({} + {index})", pointer_to(element, name)),
    };
    let typed = typed_before(failed, first, "*")?;
    if typed.matches('(').count() != typed.matches(')').count() {
        return None;
    }
    let next = failed.tokens.get(failed.position + 1).map(|next| next.text);
    let count = next.filter(|next| next.bytes().all(|digit| digit.is_ascii_digit())).unwrap_or("10");
    let is_followed = failed.tokens.get(first.checked_sub(1)?)?.text == "*";
    let examined =
        if is_followed || cast.is_some() || name.is_empty() { &*pointer } else { text_of(failed, first, last)? };
    Some(match failed.command() {
        _ if is_value => format!("`@` is gdb's; for {count} {element}s: `{typed}{{{element}[{count}]}}{pointer}`"),
        Some("x") => {
            let format = typed
                .split_once('/')
                .map_or("xb", |(_, format)| format.trim_start_matches(|c: char| c.is_ascii_digit()).trim_end());
            format!("`@` is gdb's; here the count follows the slash: `x/{count}{format} {examined}`")
        }
        _ if failed.expects(Expected::Mark("..")) => {
            format!("`@` is gdb's; for {count} bytes: `{typed}{pointer}, +{count}`")
        }
        _ => format!("`@` is gdb's; for the first element: `{typed}{pointer}`"),
    })
}

/// Returns the hint for `&ARRAY[N]` and `MODULE!ARRAY[N]`.
fn element(failed: &Failure<'_>) -> Option<String> {
    let TokenKind::Indexed { index, .. } = &failed.token()?.kind else {
        return None;
    };
    let (first, whole) = name_before(failed, failed.position)?;
    let (name, _) = whole.rsplit_once('[')?;
    if failed.tokens.get(failed.position + 1).is_some_and(is_index) {
        return Some(ARRAY_OF_ARRAYS.to_owned());
    }
    if let Some((structure, _)) = name.split_once('.').filter(|_| !name.contains(['!', '\''])) {
        return Some(member_of(&format!("&{structure}")));
    }
    let typed = typed_before(failed, first, "&")?;
    let is_address = failed.tokens.get(first.checked_sub(1)?)?.text == "&";
    let of = |element| match (pointer_to(element, name), is_address) {
        (pointer, true) => format!("`{typed}{pointer} + {index}`"),
        (pointer, false) => format!("`{typed}({pointer})[{index}]`"),
    };
    Some(format!("if an element is an int: {}, and if it is a char, {}", of("int"), of("char")))
}
