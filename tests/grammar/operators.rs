//! `grammar/operators`, the table of precedence, against the parser and against the EBNF.

use pmdb::command::LANGUAGE;

use super::grammar;

const OPERATORS: &str = include_str!("../../grammar/operators");

/// The operators between two operands, a level a row, the loosest first.
fn infix() -> Vec<Vec<&'static str>> {
    rows("infix")
}

fn rows(kind: &str) -> Vec<Vec<&'static str>> {
    OPERATORS.lines().filter_map(|line| line.strip_prefix(kind)).map(|row| row.split_whitespace().collect()).collect()
}

fn same(left: &str, right: &str) -> bool {
    let tree = |line: &str| super::without_places(&LANGUAGE.parse_line(line).expect(line));
    tree(left) == tree(right)
}

#[test]
fn every_pair_of_operators_groups_as_the_table_says() {
    let levels = infix();
    for (first_level, first) in
        levels.iter().enumerate().flat_map(|(level, row)| row.iter().map(move |one| (level, one)))
    {
        for (second_level, second) in
            levels.iter().enumerate().flat_map(|(level, row)| row.iter().map(move |one| (level, one)))
        {
            let bare = format!("print (a {first} b {second} c)");
            let left = format!("print ((a {first} b) {second} c)");
            let right = format!("print (a {first} (b {second} c))");
            let left_first = first_level >= second_level;
            assert_eq!(same(&bare, &left), left_first, "{bare}");
            assert_eq!(same(&bare, &right), !left_first, "{bare}");
        }
    }
}

#[test]
fn operators_before_an_operand_bind_tightest() {
    for prefix in rows("prefix").concat() {
        for operator in infix().concat() {
            assert!(
                same(&format!("print ({prefix}a {operator} b)"), &format!("print (({prefix}a) {operator} b)")),
                "{prefix} {operator}"
            );
        }
    }
}

#[test]
fn the_table_has_the_operators_of_the_grammar() {
    let chain = [
        "expression",
        "conjunction",
        "bit_or",
        "bit_xor",
        "bit_and",
        "equality",
        "relation",
        "shift",
        "sum",
        "product",
    ];
    let grammar = grammar();
    for (rule, level) in chain.iter().zip(infix()) {
        // Of each rule only its own operators: the rule names the next tighter one for all else.
        let mut own = own_literals(grammar.rule(rule));
        let mut level: Vec<String> = level.into_iter().map(str::to_owned).collect();
        own.sort();
        level.sort();
        assert_eq!(own, level, "{rule}");
    }
    let mut prefix = own_literals(grammar.rule("unary"));
    let mut table: Vec<String> = rows("prefix").concat().into_iter().map(str::to_owned).collect();
    prefix.sort();
    table.sort();
    assert_eq!(prefix, table);
}

fn own_literals(node: &super::ebnf::Node) -> Vec<String> {
    use super::ebnf::Node;
    match node {
        Node::Literal(text) => vec![text.clone()],
        Node::Sequence(inner) | Node::Choice(inner) => inner.iter().flat_map(own_literals).collect(),
        Node::Repeat(inner) | Node::Optional(inner) => own_literals(inner),
        _ => Vec::new(),
    }
}
