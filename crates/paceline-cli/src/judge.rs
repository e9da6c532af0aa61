//! `paceline judge`: compares the requested, granted and delivered quality of each tag, based on a
//! recording alone.

use anyhow::anyhow;
use paceline_record::{Asked, DecisionJudgement, Judgement, StreamJudgement, Verdict};
use paceline_tool::exit::REFUSED;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table, width};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = "\
kept: no window had more late or missing samples than --loss allows; without --loss, no sample was late or missing.
broken: a window had more. refused: the path refused the request. best_effort: there was no contract.
unknown: the file does not contain the answer.
beyond: windows with more misses than --loss allows. on links: samples that links of the path dropped.
Exits with code 3 if a stream is broken or refused.";

/// Options of `paceline judge`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct JudgeArgs {
    /// Recording to check
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// Checks a recording and prints the results.
pub(crate) fn run(args: &JudgeArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.as_path();
    let judgement = Judgement::of(crate::record::open(file)?);
    let judgement = judgement.map_err(|error| anyhow!("{} {error}", file.display()))?;
    match args.json {
        true => show::json(&judgement)?,
        false => show::text(&render(file, &judgement))?,
    }
    let failed = |stream: &StreamJudgement| match stream.verdict {
        Verdict::Broken | Verdict::Refused => true,
        Verdict::Kept | Verdict::BestEffort | Verdict::Unknown => false,
    };
    let code = if judgement.streams.iter().any(failed) { REFUSED } else { 0 };
    Ok(ExitCode::from(code))
}

fn render(file: &Path, judgement: &Judgement) -> String {
    let Judgement { recorder, asked, samples, seconds, ended, cut, dropped, decisions, streams } =
        judgement;
    let by = recorder.as_ref().map_or_else(String::new, |name| format!(", recorded by {name}"));
    let ended = match (cut, ended) {
        (Some(cut), _) => format!("it {cut}"),
        (None, Some(why)) => format!("ended by {why}"),
        (None, None) => "the reason for the end is unknown".to_owned(),
    };
    let name = file.display();
    let of = show::count(streams.len(), "publisher");
    let mut text = format!("{name}: {samples} samples of {of} in {seconds:.1} s{by}; {ended}\n");
    match asked {
        Some(asked) => text.push_str(&format!("asked: {}\n", wish(asked))),
        None => text.push_str("the request is unknown\n"),
    }
    if !dropped.is_empty() {
        let reasons: Vec<String> =
            dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        text.push_str(&format!("dropped at the recorder: {}\n", reasons.join(", ")));
    }
    if let Some(one) = decisions {
        let DecisionJudgement { released, stale, silences, longest_silence_us, .. } = one;
        let longest = match longest_silence_us {
            0 => String::new(),
            us => format!(", the longest that ended {} ms", show::millis(*us)),
        };
        text.push_str(&format!(
            "commands: {released} released, {stale} stale, {silences} silences{longest}\n"
        ));
    }
    text.push_str(&table(streams).render(width()));
    for stream in streams {
        if let Some(reason) = &stream.refused {
            text.push_str(&format!("refused: {}: {reason}\n", stream.tag));
        }
    }
    text
}

fn wish(asked: &Asked) -> String {
    let mut text = asked.form.clone();
    if let Some(us) = asked.within_us {
        text.push_str(&format!(" within {} ms", show::millis(us)));
    }
    if let Some(loss) = &asked.loss {
        text.push_str(&format!(" loss {loss}"));
    }
    if let Some(us) = asked.fresh_us {
        text.push_str(&format!(" fresh {} ms", show::millis(us)));
    }
    text
}

fn table(streams: &[StreamJudgement]) -> Table {
    let mut table = Table::new(&[
        ("tag", Name),
        ("verdict", Left),
        ("samples", Right),
        ("hz", Right),
        ("p99 ms", Right),
        ("late", Right),
        ("missing", Right),
        ("beyond", Right),
        ("on links", Right),
    ]);
    for stream in streams {
        let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let age = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), show::millis);
        table.row(vec![
            stream.tag.clone(),
            verdict(stream.verdict).to_owned(),
            stream.samples.to_string(),
            format!("{:.1}", stream.rate_hz),
            age(stream.age_us.map(|ages| ages.p99)),
            number(stream.late),
            number(stream.missing),
            number(stream.beyond),
            stream.dropped_on_links.values().sum::<u64>().to_string(),
        ]);
    }
    table
}

/// Returns the verdict's name in JSON.
const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Broken => "broken",
        Verdict::Refused => "refused",
        Verdict::BestEffort => "best_effort",
        Verdict::Unknown => "unknown",
    }
}
