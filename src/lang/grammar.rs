//! The usage of each command, derived from its rule in `grammar/language.ebnf`.

/// The grammar of the language.
pub const LANGUAGE: &str = include_str!("../../grammar/language.ebnf");
/// The table of operators and their levels.
pub const OPERATORS: &str = include_str!("../../grammar/operators");

/// Returns the usage of a command in one line: `walk RANGE [where FILTER] [by KEY] [limit N]`. `None` if there is no
/// such command.
pub fn usage(command: &str) -> Option<String> {
    match command {
        // These two accept the rest of the line as raw text, which tokens define, and no rule.
        "shell" => return Some("shell COMMAND".into()),
        "pipe" => return Some("pipe COMMAND | SHELL-COMMAND".into()),
        "display" => {
            let usage = "display[/NFU] [EXPRESSION | COMMAND] [every DURATION [count N]]";
            return Some(usage.into());
        }
        _ => {}
    }
    let body = rule(&command.replace([' ', '-'], "_"))?;
    let lexemes: Vec<&str> = lexemes(body).collect();
    let mut words = UsageLine { line: String::new(), is_glued: true };
    words.add_all(&lexemes);
    Some(words.line)
}

/// Returns the forms of a usage: one for each alternative, if the usage has nothing else.
pub fn forms(usage: &str) -> Vec<String> {
    let whole = || vec![usage.to_owned()];
    let Some((name, inner)) = usage.strip_suffix(')').and_then(|usage| usage.split_once(" (")) else { return whole() };
    let (mut open, mut start, mut forms) = (0_i32, 0, Vec::new());
    for (at, mark) in inner.char_indices() {
        match mark {
            '(' | '[' => open += 1,
            ')' | ']' => open -= 1,
            '|' if open == 0 && inner.get(..at).is_some_and(|before| before.ends_with(' ')) => {
                forms.push(format!("{name} {}", inner.get(start..at).unwrap_or_default().trim()));
                start = at + 1;
            }
            _ => {}
        }
        // The bracket closes before the end.
        if open < 0 {
            return whole();
        }
    }
    forms.push(format!("{name} {}", inner.get(start..).unwrap_or_default().trim()));
    forms
}

/// Returns the text between `=` and `;` of a rule.
fn rule(name: &str) -> Option<&'static str> {
    let mut rest = LANGUAGE;
    loop {
        let body = rest.strip_prefix(name).and_then(|behind| behind.trim_start().strip_prefix("= "));
        if let Some((body, _)) = body.and_then(|body| body.split_once(" ;")) {
            return Some(body);
        }
        (_, rest) = rest.split_once('\n')?;
    }
}

/// Returns the words and marks of a rule, quoted ones with their quotes.
fn lexemes(body: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = body;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = match first {
            '"' | '`' => rest.char_indices().skip(1).find(|(_, c)| *c == first).map_or(rest.len(), |(end, _)| end + 1),
            '[' | ']' | '(' | ')' | '{' | '}' | '|' | '&' | '~' => 1,
            _ => rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len()),
        };
        let (lexeme, behind) = rest.split_at(length);
        rest = behind;
        Some(lexeme)
    })
}

/// Returns the lexemes between the first one, a bracket, and the bracket that closes it.
fn group<'a>(lexemes: &'a [&'a str]) -> &'a [&'a str] {
    let mut open = 0_usize;
    for (position, lexeme) in lexemes.iter().enumerate() {
        match *lexeme {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return lexemes.get(1..position).unwrap_or(&[]);
        }
    }
    &[]
}

/// A usage line, as it is written.
struct UsageLine {
    line: String,
    /// Whether no blank follows the last word.
    is_glued: bool,
}

impl UsageLine {
    fn add_all(&mut self, lexemes: &[&str]) {
        let mut rest = lexemes;
        while let Some((first, behind)) = rest.split_first() {
            let inside = group(rest);
            rest = behind;
            match *first {
                "(" => {
                    // The brackets of optional parts already mean "in any order".
                    let choice = inside.contains(&"|");
                    if choice {
                        self.push("(", true);
                    }
                    self.add_all(inside);
                    if choice {
                        self.close(")");
                    }
                    rest = behind.get(inside.len() + 1..).unwrap_or(&[]);
                }
                "[" => {
                    self.push("[", true);
                    self.add_all(inside);
                    self.close("]");
                    rest = behind.get(inside.len() + 1..).unwrap_or(&[]);
                }
                "{" => {
                    self.push("[", true);
                    // An optional mark between words is omitted.
                    let shown = match inside.first() {
                        Some(&"[") => inside.get(group(inside).len() + 2..).unwrap_or_default(),
                        _ => inside,
                    };
                    self.push(&shown.first().map_or_else(String::new, |first| readable_word(first)), false);
                    self.close(" …]");
                    rest = behind.get(inside.len() + 1..).unwrap_or(&[]);
                }
                "~" => {
                    if self.line.ends_with(" [") {
                        self.line.truncate(self.line.len() - 2);
                        self.line.push('[');
                    }
                    self.is_glued = true;
                }
                "&" => {}
                "|" => self.push("|", false),
                word if word.ends_with("_rows") || word.ends_with("_arguments") => {
                    let body: Vec<&str> = rule(word).into_iter().flat_map(self::lexemes).collect();
                    self.add_all(&body);
                }
                word => self.push(&readable_word(word), false),
            }
        }
    }

    fn push(&mut self, word: &str, glue_behind: bool) {
        if !self.is_glued {
            self.line.push(' ');
        }
        self.line.push_str(word);
        self.is_glued = glue_behind;
    }

    fn close(&mut self, mark: &str) {
        self.line.push_str(mark);
        self.is_glued = false;
    }
}

/// Returns a word of a rule for people: literals unchanged, the names of rules in capitals.
fn readable_word(word: &str) -> String {
    if let Some(command) = word.strip_prefix('`') {
        return command.trim_start_matches('=').trim_end_matches('`').split('|').next().unwrap_or(command).to_owned();
    }
    if let Some(literal) = word.strip_prefix('"') {
        return literal.trim_end_matches('"').to_owned();
    }
    match word {
        "NUMBER" | "amount" => "N".into(),
        "cut" => "limit|top N".into(),
        "part_of_name" => "TEXT".into(),
        "watched" | "span" => "RANGE".into(),
        "printed" => "EXPRESSION".into(),
        "sought" => "VALUE".into(),
        "snapshot_name" => "NAME".into(),
        "later" => "NAME|now".into(),
        "account_key" | "family_key" | "watch_key" | "diff_key" => "KEY".into(),
        "target" => "PID|NAME".into(),
        "line_text" => "COMMAND".into(),
        "path" | "snapshot_file" => "FILE".into(),
        "name_regex" => "REGEX".into(),
        "HOW" => "--how".into(),
        "FAULT" => "--fault".into(),
        "YES" => "--yes".into(),
        "OVERWRITE" => "--overwrite".into(),
        "FORMAT" => format!("/{}", choice_of_literals("format").unwrap_or_default()),
        "COUNT_OR_UNIT" => "/UN".into(),
        "nfu" => "/NFU".into(),
        "VARIABLE" => "$NAME".into(),
        _ => choice_of_literals(word).unwrap_or_else(|| {
            let stem = word.split('<').next().unwrap_or(word);
            stem.replace('_', "-").to_uppercase()
        }),
    }
}

/// Returns `a|b|c` for a rule that is only a choice of literals.
fn choice_of_literals(name: &str) -> Option<String> {
    let mut words = Vec::new();
    for lexeme in lexemes(rule(name)?) {
        match lexeme.strip_prefix('"') {
            Some(literal) => words.push(literal.trim_end_matches('"')),
            None if lexeme == "|" => words.push("|"),
            // An old spelling, which is only accepted, is in no usage.
            None if lexeme.starts_with("old_") => _ = words.pop(),
            None => return None,
        }
    }
    // Two consecutive literals are one alternative of two words.
    let joined = words.join(" ").replace(" | ", "|");
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_are_read_from_the_rules() {
        let expected = [
            ("walk", "walk [--how] RANGE [where FILTER] [by KEY [, KEY]] [limit|top N]"),
            (
                "regions",
                "regions [--how] [TEXT] [where FILTER] [by size|rss|name|pss|swapped|huge|present|shared|exclusive|start|end|perms] [limit|top N] [full]",
            ),
            ("ps", "ps [TEXT] [by rss|pss|uss|swapped|huge|resident|pid|user|state|name|command] [limit|top N]"),
            ("printf", "printf TEXT [, …]"),
            ("print", "print[/x|d|u|o|t|a|c|z|s|f] EXPRESSION"),
            ("quit", "quit [STATUS]"),
            ("alias", "alias NAME = COMMAND"),
            ("source", "source FILE [ARGUMENT …]"),
            ("diff", "diff [(NAME | from FILE) [NAME|now]] [in RANGE] [where FILTER] [by KEY] [limit|top N]"),
            ("find", "find[/UN] RANGE , VALUE [, …] [in heap live] [where FILTER]"),
            (
                "compare",
                "compare (children | PROCESS [PROCESS …]) [in RANGE] [by region|symbol] [limit|top N] [every DURATION] [for DURATION] [until shared|to_copy|copied <|<=|>|>= N] [as timeline]",
            ),
            ("x", "x[/NFU] [--how] [--fault] [ADDRESS]"),
            ("info symbol", "info symbol ADDRESS"),
            ("info line", "info line [*] ADDRESS"),
            ("decode", "decode VALUE [as entry|flags]"),
            ("attach", "attach PID|NAME"),
            (
                "explain",
                "explain [--how] (ADDRESS [with heap] | huge [RANGE | in RANGE] [with content] [limit|top N] [full])",
            ),
            (
                "watch",
                "watch RANGE [every DURATION] [for DURATION] [count N] [until [all|none] FILTER] [with flags|mapcount|soft_dirty [, …]] [by KEY] [as timeline]",
            ),
            (
                "set",
                "set ($NAME = EXPRESSION | json|kernel records|pagination|perf maps|scan|shell errors|trace commands|logging enabled|logging overwrite|logging redirect (on | off) | history size N | (height | width) (N | auto | unlimited) | color auto|always|never | style auto|dark|light | editing auto|emacs|vi | pager auto|ask|program | logging (on | off | file FILE))",
            ),
            (
                "show",
                "show [json|kernel records|pagination|perf maps|scan|shell errors|trace commands|logging enabled|logging overwrite|logging redirect | height|width|history size | color | style | editing | pager | convenience | areas | version | logging]",
            ),
        ];
        for (command, line) in expected {
            assert_eq!(usage(command).as_deref(), Some(line));
        }
        assert_eq!(usage("nothing"), None);
    }
}
