//! Extracts the prose of a file. The result has the line numbers of the file.

use crate::tidy::scan;

/// Returns the comments and doc comments of a Rust file, without the code blocks in them.
pub(super) fn rust(source: &str) -> String {
    comments(&scan::layers(source).comments)
}

/// Removes the comment marks and the code blocks.
fn comments(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start().trim_start_matches('/');
        line.trim_start_matches(['!', '*']).trim_end_matches("*/")
    });
    markdown(&lines.flat_map(|line| [line, "\n"]).collect::<String>())
}

/// The minimum number of spaces in a string literal that is a sentence.
const SPACES_MIN: usize = 3;

/// Returns the string literals that are sentences, except those of a `mod tests`.
pub(super) fn rust_literals(source: &str) -> String {
    let product = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut prose = String::new();
    let mut line = 0;
    for text in scan::layers(product).texts {
        let content = text.content.replace("\\n", " ").replace("\\\"", " ");
        if content.trim().matches(' ').count() >= SPACES_MIN {
            prose += &"\n".repeat(text.line.saturating_sub(line));
            prose += &content;
            // Separates it from the next literal of the line.
            prose += " . ";
            line = text.line.max(line) + content.matches('\n').count();
        }
    }
    prose
}

/// Returns Markdown without its code blocks and link targets.
pub(super) fn markdown(text: &str) -> String {
    let mut in_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if !in_code && !fence {
            prose += &without_targets(line);
        }
        prose.push('\n');
    }
    prose
}

/// Removes the target of each inline link, and of a link definition.
pub(super) fn without_targets(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        kept += before;
        kept.push(']');
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    kept += rest;
    match kept.trim_start().starts_with('[') {
        true => kept.split("]: ").next().unwrap_or_default().to_owned(),
        false => kept,
    }
}

/// Returns the comments and docstrings of a Python file.
pub(super) fn python(source: &str) -> String {
    let mut prose = String::new();
    let mut rest = source;
    let mut line_is_blank = true;
    while let Some(first) = rest.chars().next() {
        let (length, is_prose) = match first {
            '#' => (rest.find('\n').unwrap_or(rest.len()), true),
            '"' | '\'' => (python_text(rest, first), line_is_blank && is_triple(rest, first)),
            other => (other.len_utf8(), false),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if is_prose {
            prose += token.trim_start_matches('#').trim_matches(['"', '\'']);
        } else {
            prose.extend(token.chars().filter(|&c| c == '\n'));
        }
        line_is_blank = first == '\n' || (line_is_blank && first.is_whitespace());
        rest = after;
    }
    prose
}

fn is_triple(rest: &str, quote: char) -> bool {
    rest.chars().take(3).filter(|&c| c == quote).count() == 3
}

/// Returns the length of the string literal at the start of `rest`.
fn python_text(rest: &str, quote: char) -> usize {
    if is_triple(rest, quote) {
        let close: String = [quote; 3].iter().collect();
        let body = rest.get(3..).unwrap_or_default();
        return body.find(&close).map_or(rest.len(), |at| at + 6);
    }
    text_length(rest, quote)
}

/// Returns the length of a literal, with its quotes. Except in a template, it ends with its line.
fn text_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote != '`' => return at,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Returns the comments of a TypeScript or JavaScript file.
pub(super) fn script(source: &str) -> String {
    let mut prose = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, is_prose) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => {
                (rest.find("*/").map_or(rest.len(), |at| at + 2), true)
            }
            '"' | '\'' | '`' => (text_length(rest, first), false),
            other => (other.len_utf8(), false),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if is_prose {
            prose += token;
        } else {
            prose.extend(token.chars().filter(|&c| c == '\n'));
        }
        rest = after;
    }
    comments(&prose)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(prose: &str) -> Vec<&str> {
        prose.lines().map(str::trim).collect()
    }

    #[test]
    fn comments_of_rust_keep_their_lines() {
        let source =
            "//! A.\nfn f() {} // b\n/// ```\n/// code();\n/// ```\n/* c\n * d */\n\"// e\"";
        assert_eq!(squeezed(&rust(source)), ["A.", "b", "", "", "", "c", "d"]);
    }

    #[test]
    fn literals_are_sentences_and_not_of_tests() {
        let source = "f(\"a b\", \"it is not so\");\ng(\"one two \\\n    three four\");\n\
            #[cfg(test)]\nmod tests {\n    h(\"it is not so\");\n}\n";
        assert_eq!(squeezed(&rust_literals(source)), ["it is not so .", "one two three four ."]);
    }

    #[test]
    fn markdown_loses_code_and_targets() {
        let text = "See [a](b/what-is.md) `c`\n```sh\nd\n```\n[e]: https://f\ng";
        assert_eq!(squeezed(&markdown(text)), ["See [a] `c`", "", "", "", "[e", "g"]);
    }

    #[test]
    fn docstrings_and_comments_of_python_count() {
        let source = "\"\"\"A.\n\nB.\"\"\"\nx = \"# no\"  # c\ny = \"\"\"no\"\"\"\n";
        assert_eq!(squeezed(&python(source)), ["A.", "", "B.", "c", ""]);
        assert_eq!(squeezed(&python("def f():\n    '''D.'''\n")), ["", "D."]);
    }

    #[test]
    fn comments_of_scripts_count() {
        let source = "const a = 'it\\'s // no'; // b\n/** c\n * d */\nlet e = `//\n`;\n";
        assert_eq!(squeezed(&script(source)), ["b", "c", "d", "", ""]);
    }
}
