//! Sums the reports of test binaries.

/// Counts and names from the output of test binaries.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
    broken: Vec<String>,
}

impl Tally {
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count(counts, "passed");
            self.failed += count(counts, "failed");
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((name, result)) = test.split_once(" ... ")
        {
            match result.strip_prefix("ignored") {
                Some("") => self.skipped.push(name.to_owned()),
                Some(reason) => {
                    self.skipped.push(format!("{name}: {}", reason.trim_start_matches(", ")));
                }
                None if result == "FAILED" => self.broken.push(name.to_owned()),
                None => {}
            }
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.broken.extend(other.broken);
    }

    /// Prints the names of skipped and failed tests.
    pub(crate) fn show(&self) {
        self.skipped.iter().for_each(|name| println!("skipped: {name}"));
        self.broken.iter().for_each(|name| println!("failed: {name}"));
    }

    pub(crate) fn detail(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped.len());
        format!("{passed} tests passed, {failed} failed, {skipped} skipped")
    }
}

/// Returns the number before `word` in "ok. 12 passed; 0 failed; …".
fn count(text: &str, word: &str) -> u64 {
    let words: Vec<&str> = text.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.filter(|(_, next)| **next == word).find_map(|(n, _)| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up_and_skipped_tests_named() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test link::a ... ok",
            "test link::b ... ignored",
            "test link::c ... ignored, needs root",
            "test link::d ... FAILED",
            "test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; in 0.0s",
        ] {
            tally.read(line);
        }
        let mut other = Tally::default();
        other.read(
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        tally.add(other);
        assert_eq!((tally.passed, tally.failed), (11, 2));
        assert_eq!(tally.skipped, ["link::b", "link::c: needs root"]);
        assert_eq!(tally.broken, ["link::d"]);
    }
}
