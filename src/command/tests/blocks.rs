//! Lines into blocks.

use crate::command::LANGUAGE;
use crate::lang::script::{BlockFault, Builder, DEEPEST, Node, ScriptStatement};

fn build(text: &str) -> Result<Vec<ScriptStatement>, BlockFault> {
    let mut builder = Builder::new(LANGUAGE);
    let mut statements = Vec::new();
    for (index, line) in text.lines().enumerate() {
        statements.extend(builder.push(index + 1, line)?);
    }
    builder.finish().map(|()| statements)
}

#[test]
fn blocks_nest_and_lines_in_them_are_parsed_once() {
    let text = "echo a\nif 1\n  while $i < 3\n    echo b\n    if 2\n loop_break\n end\n  end # inner\nelse\n  frobnicate\nend\necho c";
    let statements = build(text).unwrap();
    assert_eq!(statements.len(), 3);
    assert_eq!((statements[0].line, statements[2].line), (1, 12));
    let Node::If { then, otherwise, .. } = &statements[1].node else {
        panic!("{statements:?}");
    };
    let Node::While { body, .. } = &then.0[0].node else {
        panic!("{then:?}");
    };
    assert!(matches!(body.0[0].node, Node::ParsedLine(_)), "{body:?}");
    // What is no command now may be defined by then.
    assert_eq!(otherwise.0[0].node, Node::Text);
}

#[test]
fn what_is_not_closed_or_closed_twice_is_said_at_its_line() {
    for (text, line, says) in [
        ("echo\nif 1\nwhile 2\nend\n", 2, "`if` has no `end`"),
        ("end", 1, "no block"),
        ("if 1\nend\nend", 3, "no block"),
        ("else", 1, "no `if`"),
        ("while 1\nelse\nend", 2, "no `if`"),
        ("if 1\nelse\nelse\nend", 3, "no `if`"),
        ("loop_break", 1, "no loop"),
        ("if 1\nloop_continue\nend", 2, "no loop"),
        ("if", 1, "incomplete"),
        ("if 1\ndefine x\nend\nend", 2, "are not allowed inside a block"),
        ("define x\n", 1, "`define` has no `end`"),
        ("document x\nend of it\n", 1, "`document` has no `end`"),
        ("echo\nwhlie 1\necho\nend", 2, "no command `whlie`"),
        ("iff 1\nwhile 1\nend\nend", 1, "no command `iff`"),
        ("while 1\nforech $p in all\nend\nend", 2, "no command `forech`"),
    ] {
        let fault = build(text).expect_err(text);
        assert_eq!(fault.line, line, "{text}");
        assert!(fault.error.message.contains(says), "{text}: {fault:?}");
        assert_eq!(fault.error.expected.is_empty(), says.starts_with("no command"), "{fault:?}");
    }
    let deep = "if 1\n".repeat(DEEPEST + 1);
    assert!(build(&deep).unwrap_err().error.message.contains("64 levels"));
}

#[test]
fn a_document_is_text_up_to_a_line_that_is_nothing_but_end() {
    let statements = build("document d\n  if you like\nend of story\nend\necho").unwrap();
    let Node::Document { text, .. } = &statements[0].node else {
        panic!("{statements:?}");
    };
    assert_eq!(text, "if you like\nend of story\n");
    assert_eq!(statements[1].line, 5);
}
