//! Deficit round robin (Shreedhar & Varghese, SIGCOMM 1995), without going round.
//!
//! Every round visits each backlogged stream once, adds its quantum to its deficit, and sends its
//! segments while the deficit covers them. The papers' bounds hold: of two backlogged streams i and j,
//! |Si/Qi − Sj/Qj| ≤ 1 + Li/Qi + Lj/Qj in every interval; where every quantum is at least the longest
//! segment, the latency of a stream is at most (3F − 2Qi)/C, with F the sum of the quanta.
//!
//! **Quanta.** A quantum is what the rate amounts to in 2^-20 s, about a microsecond, down to a fraction
//! of a byte: no stream sends much at a time, however different the rates are. The price in the paper
//! for quanta shorter than a segment is that many rounds visit a stream in vain. Here a visit that sends
//! nothing costs nothing: how many of them a segment takes is one division,
//! n = ⌈(length − deficit) / quantum⌉, so a head ranks by the round in which it will be sent, and rounds
//! that send nothing are stepped over. All of it is exact.
//!
//! **Order within a round** is that of the stream indexes, where the paper has a list whose tail a
//! stream joins when it becomes backlogged. Either way nobody is visited twice before another is
//! visited once, which is all that the bounds need; a place of its own keeps a stream that empties and
//! comes back from a second visit in the same round.
//!
//! **What happens to a deficit.** It is kept while heads follow each other, also one whose head is
//! withdrawn or missed. It is lost when the stream has none. A suspended stream is not visited: it keeps
//! what it saved for its head, which is less than the head's length, and loses the rest of a turn. A
//! segment longer than it was said to be leaves a debt, which later rounds pay, idle or not.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;

/// Deficits are counted in 2^-20 bytes, so that a quantum is the rate in bytes per second.
const BYTE: u32 = 20;

/// Where the round stands.
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

/// Of one stream: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// The round in which the head will be sent; of a stream without one, or suspended, the last
    /// round that its deficit knows of. 2^82 rounds a second would take half a million years to use
    /// up the bits of a rank.
    round: u128,
    /// The deficit in that round, its quantum included. Negative: a debt.
    deficit: i64,
    quantum: i64,
    index: u32,
}

impl Account {
    /// The deficit in `round`, if the stream were backlogged from the one that it knows of.
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

    /// No visit since: the deficit is that of `round` as it is.
    fn stand_still(&mut self, round: u128) {
        self.round = round;
    }

    /// The stream has nothing to send, up to `round`: only debts change.
    fn idle(&mut self, round: u128) {
        self.deficit = self.deficit_in(round).min(0);
        self.round = round;
    }

    /// Moves on to the round that sends `length`.
    fn advance(&mut self, length: i64) {
        let rounds = length.saturating_sub(self.deficit).max(1).unsigned_abs();
        let rounds = rounds.div_ceil(self.quantum.unsigned_abs().max(1));
        let gain = i64::try_from(rounds).unwrap_or(i64::MAX).saturating_mul(self.quantum);
        self.deficit = self.deficit.saturating_add(gain);
        self.round = self.round.saturating_add(u128::from(rounds));
    }
}

/// At least a byte: nothing is for free.
fn length(bytes: u32) -> i64 {
    i64::from(bytes.max(1)) << BYTE
}

impl Rules {
    /// The last round that has visited the stream's place.
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
            // Its turn lasts while nobody else has been visited.
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
