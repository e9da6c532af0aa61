//! Finds sentences that are too long, and lines of the README that are too wide.

use super::prose::without_targets;
use crate::tidy::files;
use crate::tidy::ratchet::{Limit, Measure};
use std::fs;
use std::path::Path;

/// The maximum number of words of a sentence.
const WORDS_MAX: usize = 40;
/// The maximum number of columns of a line.
const COLUMNS_MAX: usize = 120;

/// Returns the number of long sentences of the README and of the guides, and of wide lines of the
/// README.
pub(super) fn measures(root: &Path) -> Vec<Measure> {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let readme = read("README.md");
    let mut in_guides = Vec::new();
    for path in files::with_extension(&root.join("docs/guides"), "md") {
        let name = files::relative(root, &path);
        in_guides.extend(long_sentences(&name, &read(&name)));
    }
    vec![
        measure("long-sentences", "README", long_sentences("README.md", &readme)),
        measure("long-sentences", "docs/guides", in_guides),
        measure("wide-lines", "README", wide_lines("README.md", &readme)),
    ]
}

fn measure(check: &'static str, group: &str, places: Vec<String>) -> Measure {
    let value = u32::try_from(places.len()).map_or(f64::INFINITY, f64::from);
    let (group, limit) = (group.to_owned(), Limit::AtMost(0.0));
    Measure { check, group, value, limit, unit: "places", places }
}

/// Returns the lines with too many columns. Tables may be wide, and the targets of links do not
/// count.
fn wide_lines(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !is_table(line));
    let columns = lines.map(|(number, line)| (number + 1, without_targets(line).chars().count()));
    let wide = columns.filter(|&(_, columns)| columns > COLUMNS_MAX);
    wide.map(|(number, columns)| {
        format!("{name}:{number}: {columns} columns, at most {COLUMNS_MAX}")
    })
    .collect()
}

fn is_table(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

fn long_sentences(name: &str, text: &str) -> Vec<String> {
    let long = |(_, sentence): &(usize, String)| words(sentence) > WORDS_MAX;
    let place = |(line, sentence): (usize, String)| {
        let begin: String = sentence.chars().take(60).collect();
        format!("{name}:{line}: a sentence of {} words: {begin}…", words(&sentence))
    };
    paragraphs(text).into_iter().flat_map(sentences).filter(long).map(place).collect()
}

/// Counts the words of a sentence. Code counts as one word.
fn words(sentence: &str) -> usize {
    let outside = sentence.split('`').step_by(2);
    let code = sentence.matches('`').count() / 2;
    let has_letter = |word: &&str| word.chars().any(char::is_alphanumeric);
    code + outside.map(|text| text.split_whitespace().filter(has_letter).count()).sum::<usize>()
}

/// A text with the number of its first line.
type Paragraph = (usize, String);

/// Returns the paragraphs and the entries of lists. Tables, headings, code blocks and HTML are
/// left out.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut open = false;
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let fence = line.starts_with("```");
        in_code ^= fence;
        let other = fence || in_code || line.is_empty() || is_table(line);
        if other || line.starts_with(['#', '<']) {
            open = false;
            continue;
        }
        let entry = entry(line);
        let line = without_targets(entry.unwrap_or(line).trim_start_matches(['>', ' ']));
        match found.last_mut() {
            Some((_, paragraph)) if open && entry.is_none() => {
                paragraph.push(' ');
                paragraph.push_str(&line);
            }
            _ => found.push((number + 1, line)),
        }
        open = true;
    }
    found
}

/// Returns the text of a list's entry.
fn entry(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then(|| numbered.strip_prefix(". ")).flatten();
    numbered.or_else(|| ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)))
}

/// Splits a paragraph at a full stop, question mark or exclamation mark that white space and
/// anything but a small letter follow.
fn sentences((line, text): Paragraph) -> Vec<Paragraph> {
    let mut found = vec![(line, String::new())];
    let mut in_code = false;
    for word in text.split_whitespace() {
        let begins_small = word.starts_with(char::is_lowercase);
        if let Some((_, sentence)) = found.last()
            && !in_code
            && !begins_small
            && sentence.trim_end_matches([')', '"', '*', '_', '”']).ends_with(['.', '!', '?'])
        {
            found.push((line, String::new()));
        }
        in_code ^= word.matches('`').count() % 2 == 1;
        if let Some((_, sentence)) = found.last_mut() {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        sentences((1, text.to_owned())).into_iter().map(|(_, sentence)| sentence).collect()
    }

    #[test]
    fn sentences_end_at_their_marks() {
        assert_eq!(
            split("One. Two (2.5 s, e.g. this)? `three. Four` five."),
            ["One.", "Two (2.5 s, e.g. this)?", "`three. Four` five."]
        );
        assert_eq!(split("**One.** *Two.* Three"), ["**One.**", "*Two.*", "Three"]);
    }

    #[test]
    fn code_is_one_word() {
        assert_eq!(words("Run `paceline sub a/b --max-hz 5` – and `ls`, twice."), 5);
    }

    #[test]
    fn tables_code_and_headings_have_no_sentences() {
        let text = "# Head\n\nOne\ntwo.\n- three\n  four\n- five\n```\ncode\n```\n| a |\n2. six\n";
        let expected = [(3, "One two."), (5, "three four"), (7, "five"), (12, "six")];
        let expected = expected.map(|(line, text)| (line, text.to_owned()));
        assert_eq!(paragraphs(text), expected);
    }

    #[test]
    fn a_long_sentence_is_reported() {
        let text = format!("Short.\n\n{}end.\n", "word ".repeat(WORDS_MAX));
        let found = long_sentences("README.md", &text);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("README.md:3: a sentence of 41 words"), "{found:?}");
        let text = format!("{}end.\n", "word ".repeat(WORDS_MAX - 1));
        assert_eq!(long_sentences("README.md", &text), Vec::<String>::new());
    }

    #[test]
    fn tables_and_link_targets_may_be_wide() {
        let wide = "x".repeat(COLUMNS_MAX + 1);
        assert_eq!(wide_lines("a", &format!("| {wide} |\n[a]({wide})\n[b]: {wide}\n")).len(), 0);
        assert_eq!(wide_lines("a", &format!("a\n{wide}\n")), ["a:2: 121 columns, at most 120"]);
    }
}
