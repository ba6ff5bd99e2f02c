//! What each part of a line is taken for.

use crate::command::LANGUAGE;
use crate::lang::Spanned;
use crate::lang::highlight::Class;

fn of(line: &str) -> Vec<(&str, Class)> {
    let part = |part: Spanned<Class>| (line.get(part.at.start..part.at.end).unwrap_or_default(), part.node);
    LANGUAGE.classes(line).into_iter().map(part).collect()
}

#[test]
fn words_are_what_the_parser_takes_them_for() {
    assert_eq!(
        of("w where where dirty by state | wc"),
        [
            ("w", Class::Command),
            ("where", Class::Name),
            ("where", Class::Keyword),
            ("dirty", Class::Field),
            ("by", Class::Keyword),
            ("state", Class::Keyword),
            ("| wc", Class::Shell),
        ]
    );
    assert_eq!(
        of("p size(heap) + pfn"),
        [
            ("p", Class::Command),
            ("size", Class::Function),
            ("(", Class::Operator),
            ("heap", Class::Name),
            (")", Class::Operator),
            ("+", Class::Operator),
            ("pfn", Class::Name),
        ]
    );
    assert_eq!(of("echo 1 # x"), [("echo", Class::Command), ("1", Class::Text), ("# x", Class::Comment)]);
}

#[test]
fn what_is_wrong_is_marked_unless_it_is_still_typed() {
    assert_eq!(of("wlak heap")[0], ("wlak", Class::Wrong));
    assert_ne!(of("wlak")[0].1, Class::Wrong);
}
