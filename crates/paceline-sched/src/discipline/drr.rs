//! Deficit round robin (Shreedhar & Varghese, SIGCOMM 1995), without iterating over idle rounds.
//!
//! Every round visits each backlogged stream once, adds its quantum to its deficit, and sends its
//! segments while the deficit covers them. The paper's bounds apply. In every interval, two backlogged
//! streams i and j satisfy |Si/Qi − Sj/Qj| ≤ 1 + Li/Qi + Lj/Qj. If every quantum is at least the longest
//! segment, the latency of a stream is at most (3F − 2Qi)/C, where F is the sum of the quanta.
//!
//! **Quanta.** A quantum is the traffic of the stream's rate in 2^-20 s, about a microsecond, exact to a
//! fraction of a byte. No stream therefore sends much at once, however different the rates are. In the
//! paper, quanta shorter than a segment cost many visits that send nothing. Here such visits cost
//! nothing: one division, n = ⌈(length − deficit) / quantum⌉, gives the number of rounds until a segment
//! can be sent. A head ranks by the round in which it will be sent, and empty rounds are skipped. All of
//! it is exact.
//!
//! **Order within a round.** Streams are ordered by index. The paper appends a stream to a list when it
//! becomes backlogged. With both rules no stream is visited twice before another is visited once, which
//! is all that the bounds need. A fixed position prevents a second visit in the same round to a stream
//! that empties and becomes backlogged again.
//!
//! **Deficits.** A deficit is kept while heads follow each other, even if a head is withdrawn or missed.
//! It is lost when the stream has no head. A suspended stream is not visited: it keeps its savings for
//! its head, which are less than the head's length, and loses the rest of its visit. A segment longer
//! than announced leaves a debt, which later rounds repay whether the stream is idle or not.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;

/// The fraction bits of a deficit: the unit is 2^-20 bytes, so that a quantum equals the rate in bytes
/// per second.
const BYTE: u32 = 20;

/// The current round and position.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    round: u128,
    /// The stream that was visited last.
    at: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { round: 1, at: 0 }
    }
}

/// The deficit account of one stream: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// The round in which the head will be sent. For a stream without a head, or a suspended one, the
    /// last round included in its deficit. At 2^82 rounds per second the bits of a rank would last half
    /// a million years.
    round: u128,
    /// The deficit in that round, including its quantum. Negative for a debt.
    deficit: i64,
    quantum: i64,
    index: u32,
}

impl Account {
    /// Returns the deficit in `round` if the stream is backlogged since the recorded round.
    fn deficit_in(&self, round: u128) -> i64 {
        let rounds = |rounds| {
            let rounds = i64::try_from(rounds).unwrap_or(i64::MAX);
            rounds.saturating_mul(self.quantum)
        };
        if round >= self.round {
            return self.deficit.saturating_add(rounds(round - self.round));
        }
        self.deficit.saturating_sub(rounds(self.round - round))
    }

    /// Moves the account to `round` without changing the deficit, because the stream was not visited.
    fn stand_still(&mut self, round: u128) {
        self.round = round;
    }

    /// Moves the account to `round` for a stream that had nothing to send: only debts change.
    fn idle(&mut self, round: u128) {
        self.deficit = self.deficit_in(round).min(0);
        self.round = round;
    }

    /// Moves the account to the round that sends `length`.
    fn advance(&mut self, length: i64) {
        let rounds = length.saturating_sub(self.deficit).max(1).unsigned_abs();
        let rounds = rounds.div_ceil(self.quantum.unsigned_abs().max(1));
        let gain = i64::try_from(rounds).unwrap_or(i64::MAX).saturating_mul(self.quantum);
        self.deficit = self.deficit.saturating_add(gain);
        self.round = self.round.saturating_add(u128::from(rounds));
    }
}

/// Returns the length in deficit units, at least one byte, so that no segment is free.
fn length(bytes: u32) -> i64 {
    i64::from(bytes.max(1)) << BYTE
}

impl Rules {
    /// Returns the last round that has visited the stream's position.
    const fn visited(&self, account: &Account) -> u128 {
        if account.index <= self.at { self.round } else { self.round - 1 }
    }
}

impl CoreRules for Rules {
    type Own = Account;

    fn open(&mut self, terms: &Terms) -> Account {
        let quantum = i64::try_from(terms.share()).unwrap_or(i64::MAX);
        Account { round: 0, deficit: 0, quantum, index: 0 }
    }

    fn announced(&mut self, stream: &mut Stream<Account>, arrival: Arrival) {
        let account = &mut stream.own;
        account.index = arrival.index.0;
        if !arrival.follows {
            account.idle(self.visited(account));
        }
    }

    fn rank(&mut self, stream: &mut Stream<Account>) -> Option<u128> {
        if !stream.ranks() {
            return None;
        }
        let (account, length) = (&mut stream.own, length(stream.segment));
        if !stream.suspended {
            let visited = self.visited(account);
            account.deficit = account.deficit_in(visited);
            account.stand_still(visited);
            // A visit lasts until another stream is visited.
            if account.index != self.at || account.deficit < length {
                account.advance(length);
            }
        }
        Some(owed(account.round))
    }

    fn sent(&mut self, stream: &mut Stream<Account>, bytes: u32) -> Option<u128> {
        let account = &mut stream.own;
        if account.round >= self.round {
            (self.round, self.at) = (account.round, account.index);
        }
        account.deficit = account.deficit.saturating_sub(length(bytes));
        if stream.has_head() { self.rank(stream) } else { None }
    }

    fn emptied(&mut self, stream: &mut Stream<Account>) {
        let account = &mut stream.own;
        let visited = self.visited(account);
        if stream.suspended {
            account.stand_still(visited);
        }
        account.idle(visited);
    }

    fn suspended(&mut self, stream: &mut Stream<Account>) {
        if stream.has_head() {
            let (account, length) = (&mut stream.own, length(stream.segment));
            let visited = self.visited(account);
            account.deficit = account.deficit_in(visited).min(length - 1);
            account.stand_still(visited);
        }
    }

    fn resumed(&mut self, stream: &mut Stream<Account>) {
        if stream.has_head() {
            let visited = self.visited(&stream.own);
            stream.own.stand_still(visited);
        }
    }
}
