//! The patterns, and their number in a text.

/// The second words of a noun clause with "what".
const AFTER_WHAT: &[&str] = &[
    "is", "was", "were", "are", "come", "comes", "came", "goes", "fits", "did", "does", "has",
    "it", "a", "the",
];

/// The forms of a verb that "reports", "returns" and "notifies" replace.
pub(super) const REPORTING: &[&str] = &["tell", "tells", "told"];

/// Two words that stand for a noun. The noun itself is clearer.
const PRONOUNS: &[(&str, &str)] = &[("those", "of"), ("that", "of"), ("the", "others")];

fn is_pronoun(first: &str, second: &str) -> bool {
    PRONOUNS.contains(&(first, second))
}

fn makes_clause(second: &str) -> bool {
    AFTER_WHAT.contains(&second)
}

/// The patterns found in the texts of a group.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) words: usize,
    /// The places of noun clauses with "what".
    pub(super) what: Vec<String>,
    /// The places of the words in [`REPORTING`].
    pub(super) told: Vec<String>,
    /// The places of [`PRONOUNS`].
    pub(super) pronouns: Vec<String>,
    pub(super) defaults: usize,
    pub(super) returns: usize,
}

impl Counts {
    /// Adds a text whose lines are those of the file `name`.
    pub(super) fn add(&mut self, name: &str, text: &str) {
        let mut before = Word::default();
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{name}:{}: {}", number + 1, line.trim());
            if line.trim().is_empty() {
                // A paragraph ends here.
                before = Word::default();
            }
            for word in words(line) {
                self.words += usize::from(!word.continues);
                if word.after_space && is_pronoun(&before.lower, &word.lower) {
                    self.pronouns.push(place());
                }
                match word.lower.as_str() {
                    verb if REPORTING.contains(&verb) => self.told.push(place()),
                    "default" | "defaults" => self.defaults += 1,
                    "return" | "returns" => self.returns += 1,
                    second
                        if before.lower == "what" && word.after_space && makes_clause(second) =>
                    {
                        self.what.push(place());
                    }
                    _ => {}
                }
                before = word;
            }
        }
    }

    /// Returns a number of places per 10,000 words, rounded to a tenth.
    pub(super) fn rate(&self, found: usize) -> f64 {
        let words = self.words.max(1);
        let tenths = (found * 100_000 + words / 2) / words;
        u32::try_from(tenths).map_or(f64::INFINITY, |tenths| f64::from(tenths) / 10.0)
    }
}

/// A run of letters, digits and underscores.
#[derive(Debug, Default, Eq, PartialEq)]
struct Word {
    lower: String,
    /// True if only white space separates it from the word before.
    after_space: bool,
    /// True if it is the second part of a word such as `don't` or `round-trip`.
    continues: bool,
}

fn words(line: &str) -> Vec<Word> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        let (between, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        let (word, after) = from.split_at_checked(end).unwrap_or((from, ""));
        found.push(Word {
            lower: word.to_lowercase(),
            after_space: between.chars().all(char::is_whitespace),
            continues: !found.is_empty() && matches!(between, "'" | "’" | "-"),
        });
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> (usize, usize, usize, usize, usize) {
        let mut counts = Counts::default();
        counts.add("a.rs", text);
        let Counts { words, what, told, defaults, returns, .. } = counts;
        (words, what.len(), told.len(), defaults, returns)
    }

    #[test]
    fn pronouns_for_nouns_are_found() {
        let mut counts = Counts::default();
        counts.add("a.rs", "those of it, That\nof, the others; others, of those. that, of");
        assert_eq!(counts.pronouns.len(), 3, "{:?}", counts.pronouns);
    }

    #[test]
    fn noun_clauses_are_found() {
        assert_eq!(counts("Says what is granted, What the node has").1, 2);
        assert_eq!(counts("what\nit needs").1, 1, "also across a line break");
        assert_eq!(counts("what it's for").1, 1);
        assert_eq!(counts("what\n\nit needs").1, 0, "not across paragraphs");
        assert_eq!(counts("whatever is, what, the; what remains; somewhat is").1, 0);
    }

    #[test]
    fn terms_are_whole_words() {
        assert_eq!(counts("It tells; told. Telling, untold").2, 2);
        assert_eq!(counts("Defaults to 1 s: the default. defaulted").3, 2);
        assert_eq!(counts("Returns x, or return. returned").4, 2);
    }

    #[test]
    fn a_hyphenated_word_counts_once() {
        assert_eq!(counts("a round-trip, don't, p99 (snake_case)").0, 5);
    }

    #[test]
    fn the_rate_is_per_ten_thousand_words() {
        let mut counts = Counts::default();
        counts.add("a.rs", &"word ".repeat(2_000));
        assert_eq!(format!("{:.1} {:.1}", counts.rate(1), counts.rate(0)), "5.0 0.0");
    }

    #[test]
    fn a_place_has_file_line_and_text() {
        let mut counts = Counts::default();
        counts.add("a.rs", "\n  is told.\n");
        assert_eq!(counts.told, ["a.rs:2: is told."]);
    }
}
