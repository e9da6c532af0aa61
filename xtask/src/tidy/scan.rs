//! Separates Rust source into code, comments and literals.

/// A source file in three layers. Code and comments keep the line breaks of the file.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// The code, with `_` for each character of a literal.
    pub(crate) code: String,
    /// The comments.
    pub(crate) comments: String,
    /// The string literals.
    pub(crate) texts: Vec<Text>,
}

/// A string literal.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Text {
    /// The number of its first line, from 0.
    pub(crate) line: usize,
    /// Its content, with joined lines where a `\` continues it.
    pub(crate) content: String,
}

/// A function and its number of lines, from `fn` to its closing brace.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Separates code from comments.
pub(crate) fn layers(source: &str) -> Layers {
    let mut layers = Layers::default();
    let mut rest = source;
    let mut line = 0;
    while let Some(first) = rest.chars().next() {
        let before = layers.code.chars().next_back();
        let (length, kind) = token(rest, first, before);
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        match kind {
            Token::Code => layers.code.push_str(text),
            Token::Comment => {
                layers.comments.push_str(text);
                layers.code.extend(text.chars().filter(|&c| c == '\n'));
            }
            Token::Text => {
                layers.code.extend(text.chars().map(|c| match c {
                    '\n' => '\n',
                    _ => '_',
                }));
                layers.texts.extend(content(text).map(|content| Text { line, content }));
            }
        }
        line += text.matches('\n').count();
        if kind != Token::Comment {
            layers.comments.extend(text.chars().filter(|&c| c == '\n'));
        }
        rest = after;
    }
    layers
}

/// Returns the content of a string literal, or none for a character.
fn content(literal: &str) -> Option<String> {
    let content = literal.trim_start_matches(['r', 'b', '#']).trim_end_matches('#');
    let content = content.strip_prefix('"')?.strip_suffix('"')?;
    let mut parts = content.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    Some(parts.fold(first, |joined, part| joined + part.trim_start()))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token {
    Code,
    Comment,
    Text,
}

/// Returns the length in bytes of the first token of `rest`, and its kind.
fn token(rest: &str, first: char, before: Option<char>) -> (usize, Token) {
    let to_end = |found: Option<usize>| found.unwrap_or(rest.len());
    if rest.starts_with("//") {
        return (to_end(rest.find('\n')), Token::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Token::Comment);
    }
    let inside_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if matches!(first, 'r' | 'b') && !inside_word {
        let prefix = rest.trim_start_matches('b').trim_start_matches('r');
        let hashes = prefix.len() - prefix.trim_start_matches('#').len();
        let quoted = prefix.trim_start_matches('#').starts_with('"');
        let start = rest.len() - prefix.len() + hashes + 1;
        let raw = rest.starts_with('r') || rest.starts_with("br");
        if quoted && raw {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = rest.get(start..).unwrap_or_default();
            return (to_end(body.find(&close).map(|at| start + at + close.len())), Token::Text);
        }
    }
    match first {
        '"' => (quoted(rest, '"'), Token::Text),
        '\'' if is_char(rest) => (quoted(rest, '\''), Token::Text),
        c => (c.len_utf8(), Token::Code),
    }
}

/// Returns true for `'a'` and `'\n'`, false for the lifetime `'a`.
fn is_char(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) {
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Returns the code without its `#[cfg(test)]` modules, with all line breaks.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let (test, after) = from.split_at_checked(item_length(from)).unwrap_or((from, ""));
        kept.push_str(before);
        kept.extend(test.chars().filter(|&c| c == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Returns the length of the item at the start of `code`, to its closing brace or semicolon.
pub(crate) fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Counts the lines that contain code.
pub(crate) fn code_lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Returns every function with a body.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let (before, from) = code.split_at_checked(at).unwrap_or((code, ""));
        let part_of_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String = from.chars().skip(3).take_while(|c| is_name(*c)).collect();
        if part_of_word || name.is_empty() {
            continue;
        }
        let item = from.get(..function_length(from)).unwrap_or(from);
        if item.ends_with('}') {
            let line = before.matches('\n').count() + 1;
            found.push(Function { name, line, lines: item.matches('\n').count() + 1 });
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// As [`item_length`], but ignores the semicolons of array types in a signature.
fn function_length(code: &str) -> usize {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces <= 1 => return at + 1,
            '}' => braces -= 1,
            ';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests;
