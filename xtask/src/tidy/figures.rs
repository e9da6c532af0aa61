//! Checks that every figure in the README names the commit of its measurement.

use super::Findings;
use std::fs;
use std::path::Path;

const HEAD: &str = "| what | figure | command | commit |";
/// The minimum number of digits of a commit.
const DIGITS_MIN: usize = 7;

pub(super) fn check(root: &Path, findings: &mut Findings) {
    let text = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for problem in problems(&text) {
        findings.error(format!("README.md: {problem}"));
    }
}

fn problems(text: &str) -> Vec<String> {
    let Some((_, table)) = text.split_once(HEAD) else {
        return vec![format!("the table of figures does not begin with '{HEAD}'")];
    };
    // Skip the rest of the heading and the separator line.
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let wrong = rows.filter(|row| !names_commit(row));
    wrong.map(|row| format!("no commit at the end of the figure '{row}'")).collect()
}

fn names_commit(row: &str) -> bool {
    let last = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    last.len() >= DIGITS_MIN && last.chars().all(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_a_commit_is_found() {
        let table =
            |rows: &str| format!("# A\n\n{HEAD}\n| --- | --- | --- | --- |\n{rows}\n\n| b |");
        assert_eq!(problems(&table("| delay | 7 ms | `a` | 0123abc |")), Vec::<String>::new());
        for row in
            ["| delay | 7 ms | `a` | today |", "| delay | 7 ms | `a` |", "| d | 7 | `a` | 012 |"]
        {
            assert_eq!(problems(&table(row)).len(), 1, "{row}");
        }
        assert_eq!(problems("no table").len(), 1);
    }
}
