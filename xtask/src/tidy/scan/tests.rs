//! Tests of the parser with parts of Rust that mislead simple parsers.

use super::*;

#[test]
fn comments_and_strings_are_not_code() {
    let source = "let a = \"// no { comment\"; // yes }\nlet c = '{'; let d: &'a str = r#\"}\"\"#;";
    let layers = layers(source);
    assert!(!layers.code.contains(['{', '}']), "{}", layers.code);
    assert!(layers.code.contains("&'a str"), "{}", layers.code);
    assert_eq!(layers.comments.trim(), "// yes }");
}

#[test]
fn string_literals_have_a_line_and_a_content() {
    let source = "f('\"', \"a\");\n  g(\"one \\\n    two\",\n r#\"th\"ree\"#);";
    let expected = [(0, "a"), (1, "one two"), (3, "th\"ree")];
    let expected = expected.map(|(line, text)| Text { line, content: text.to_owned() });
    assert_eq!(layers(source).texts, expected);
}

#[test]
fn nested_comments_end_where_they_end() {
    let layers = layers("a /* b /* c */ d\n */ e 'x' '\\'' b\"f\\\"\" bar");
    assert_eq!(layers.code.split_whitespace().collect::<Vec<_>>().first(), Some(&"a"));
    assert!(layers.code.contains(" e ") && layers.code.ends_with(" bar"), "{}", layers.code);
    assert_eq!(layers.code.lines().count(), 2);
}

#[test]
fn test_modules_do_not_count() {
    let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n";
    assert_eq!(code_lines(&without_tests(code)), 2);
    assert_eq!(code_lines(&without_tests("#[cfg(test)]\nmod tests;\nfn a() {}\n")), 1);
    assert_eq!(code_lines("\n  \nlet a = 1;\n"), 1);
}

#[test]
fn functions_are_measured_to_their_closing_brace() {
    let code = "trait T {\n fn a(&self);\n fn b(x: [u8; 4]) -> u8 {\n  { 1 }\n }\n}\nfn c() {}\n";
    let lengths: Vec<_> = functions(code).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(lengths, [("b".to_owned(), 3, 3), ("c".to_owned(), 7, 1)]);
}

#[test]
fn function_types_are_not_functions() {
    assert_eq!(functions("type F = fn (u8) -> u8;\nlet often = 1;"), []);
}
