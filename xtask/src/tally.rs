//! Sums the reports of test binaries.

/// Counts and names from the output of test binaries.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
    broken: Vec<String>,
    /// The tests that failed next to others and passed alone.
    alone: Vec<String>,
}

impl Tally {
    /// Takes the output of a test binary, which contains that of its tests after its own. A test whose requirement is
    /// missing prints `skipped: ` and its name.
    pub(crate) fn read(&mut self, output: &str) {
        let of_tests = ["\nsuccesses:\n", "\nfailures:\n"].map(|title| output.find(title));
        let begin = of_tests.into_iter().flatten().min().unwrap_or(output.len());
        let (own, of_tests) = output.split_at(begin);
        own.lines().for_each(|line| self.read_result(line));
        let lacks = of_tests.lines().filter_map(|line| line.strip_prefix("skipped: "));
        self.skipped.extend(lacks.map(str::to_owned));
        let counts = output.lines().rev().find_map(|line| line.strip_prefix("test result: "));
        self.passed += counts.map_or(0, |counts| count(counts, "passed"));
        self.failed += counts.map_or(0, |counts| count(counts, "failed"));
    }

    fn read_result(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("test ")
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
        self.alone.extend(other.alone);
    }

    /// Returns the names of the failed tests.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &str> {
        self.broken.iter().map(String::as_str)
    }

    /// Returns whether all failures are those of known tests, of which there are at most `most`.
    pub(crate) fn is_repeatable(&self, most: usize) -> bool {
        (1..=most).contains(&self.broken.len())
            && u64::try_from(self.broken.len()) == Ok(self.failed)
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.failed > 0
    }

    /// Takes over the results of the failed tests from a second run of them alone, if all of them ran.
    pub(crate) fn repeated(&mut self, second: &Self) {
        if second.passed + second.failed < self.failed {
            return;
        }
        let passed = self.broken.extract_if(.., |name| !second.broken.contains(name));
        self.alone.extend(passed);
        let count = self.failed.saturating_sub(second.failed);
        self.passed += count;
        self.failed -= count;
    }

    /// Prints the names of skipped and failed tests.
    pub(crate) fn show(&self) {
        self.alone.iter().for_each(|name| println!("passed only alone: {name}"));
        self.skipped.iter().for_each(|name| println!("skipped: {name}"));
        self.broken.iter().for_each(|name| println!("failed: {name}"));
    }

    pub(crate) fn detail(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped.len());
        let alone = match self.alone.len() {
            0 => String::new(),
            count => format!(", {count} passed only alone"),
        };
        format!("{passed} tests passed, {failed} failed, {skipped} skipped{alone}")
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
        tally.read(
            "running 4 tests\ntest link::a ... ok\ntest link::b ... ignored\n\
             test link::c ... ignored, needs root\ntest link::d ... FAILED\n\nsuccesses:\n\n\
             ---- link::a stdout ----\nskipped: link::a (needs root)\ntest x ... FAILED\n\
             test result: FAILED. 3 passed; 3 failed\n\nsuccesses:\n    link::a\n\nfailures:\n    link::d\n\n\
             test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n",
        );
        let mut other = Tally::default();
        other.read("test result: FAILED. 10 passed; 1 failed; 0 ignored; 0 measured");
        tally.add(other);
        assert_eq!((tally.passed, tally.failed), (11, 2));
        assert_eq!(tally.skipped, ["link::b", "link::c: needs root", "link::a (needs root)"]);
        assert_eq!(tally.broken, ["link::d"]);
    }
}
