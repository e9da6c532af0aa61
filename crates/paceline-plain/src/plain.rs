//! The plain side of a node: its session and its running rules.

use crate::export::Export;
use crate::import::Import;
use crate::loops::{self, RuleConflict};
use crate::query::Queries;
use crate::rule::{ExportRule, ImportRule, RULES_MAX, Rules};
use crate::session::{EndpointError, PlainConfig};
use crate::tokens::{Own, TokenExport, TokenImport};
use paceline::Node;
use zenoh::{Session, Wait};

/// Why the plain side could not be opened or its rules could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// An endpoint is invalid.
    #[error("plain: {0}")]
    Endpoint(#[from] EndpointError),
    /// Two rules conflict.
    #[error("{0}")]
    Conflict(#[from] RuleConflict),
    /// Too many rules of one kind.
    #[error(
        "{0} rules of one kind: must be at most {RULES_MAX} per node; a pattern may cover several keys"
    )]
    TooManyRules(usize),
    /// Zenoh could not listen on an endpoint.
    #[error(
        "cannot open the plain side at {endpoints}: {what}; if a Zenoh router uses that address, \
         set another listen in [plain], or connect to the router"
    )]
    Open {
        /// The endpoints to listen on or to connect to.
        endpoints: String,
        /// Zenoh's message.
        what: String,
    },
    /// Zenoh refused a rule.
    #[error("{rule}: {what}")]
    Rule {
        /// The kind and number of the rule.
        rule: String,
        /// Zenoh's message.
        what: String,
    },
}

/// The plain side of a node. Dropping it stops all rules.
pub struct Plain {
    node: Node,
    session: Session,
    // The rules are dropped before the session.
    imports: Vec<Import>,
    exports: Vec<Export>,
    token_imports: Vec<TokenImport>,
    token_exports: Vec<TokenExport>,
    queries: Vec<Queries>,
    own_tokens: Own,
}

impl Plain {
    /// Opens the session and starts the rules.
    ///
    /// # Errors
    /// [`PlainError`] names the problem and the remedy.
    pub fn open(node: &Node, config: &PlainConfig, rules: &Rules) -> Result<Self, PlainError> {
        config.check()?;
        let session = config.open().map_err(|error| {
            let endpoints: Vec<_> = config.listen.iter().chain(&config.connect).cloned().collect();
            PlainError::Open { endpoints: endpoints.join(", "), what: to_text(&error) }
        })?;
        let mut plain = Self {
            node: node.clone(),
            session,
            imports: Vec::new(),
            exports: Vec::new(),
            token_imports: Vec::new(),
            token_exports: Vec::new(),
            queries: Vec::new(),
            own_tokens: Own::default(),
        };
        plain.set(rules)?;
        Ok(plain)
    }

    /// Replaces the running rules by `rules`. Unchanged rules continue undisturbed.
    ///
    /// # Errors
    /// [`PlainError`] if rules conflict, in which case nothing changes, or if Zenoh refuses a rule.
    /// The rules before a refused one then run.
    pub fn set(&mut self, rules: &Rules) -> Result<(), PlainError> {
        loops::check(rules)?;
        let most = rules.imports.len().max(rules.exports.len()).max(rules.queries.len());
        if most > RULES_MAX {
            return Err(PlainError::TooManyRules(most));
        }
        self.imports.retain(|open| rules.imports.contains(open.rule()));
        self.exports.retain(|open| rules.exports.contains(open.rule()));
        self.token_imports.retain(|open| rules.imports.contains(open.rule()));
        self.token_exports.retain(|open| rules.exports.contains(open.rule()));
        self.queries.retain(|open| rules.queries.contains(open.rule()));
        for (number, rule) in (1..).zip(&rules.queries) {
            if !self.queries.iter().any(|open| open.rule() == rule) {
                let opened = Queries::open(&self.node, &self.session, number, rule);
                self.queries.push(opened.map_err(|error| refused("query", number, &error))?);
            }
        }
        for (number, rule) in (1..).zip(&rules.exports) {
            if rule.tokens {
                self.export_tokens(number, rule)?;
            } else if !self.exports.iter().any(|open| open.rule() == rule) {
                let export = Export::open(&self.node, &self.session, number, rule.clone());
                self.exports.push(export.map_err(|error| refused("export", number, &error))?);
            }
        }
        for (number, rule) in (1..).zip(&rules.imports) {
            if rule.tokens {
                self.import_tokens(number, rule)?;
            } else if !self.imports.iter().any(|open| open.rule() == rule) {
                let import = Import::open(&self.node, &self.session, number, rule.clone());
                self.imports.push(import.map_err(|error| refused("import", number, &error))?);
            }
        }
        Ok(())
    }

    fn import_tokens(&mut self, number: usize, rule: &ImportRule) -> Result<(), PlainError> {
        if self.token_imports.iter().any(|open| open.rule() == rule) {
            return Ok(());
        }
        let rule = (number, rule.clone());
        let opened = TokenImport::open(&self.node, &self.session, rule, &self.own_tokens);
        self.token_imports.push(opened.map_err(|error| refused("import", number, &error))?);
        Ok(())
    }

    fn export_tokens(&mut self, number: usize, rule: &ExportRule) -> Result<(), PlainError> {
        if self.token_exports.iter().any(|open| open.rule() == rule) {
            return Ok(());
        }
        let rule = (number, rule.clone());
        let opened = TokenExport::open(&self.node, &self.session, rule, &self.own_tokens);
        self.token_exports.push(opened.map_err(|error| refused("export", number, &error))?);
        Ok(())
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.queries.clear();
        self.token_imports.clear();
        self.token_exports.clear();
        self.imports.clear();
        self.exports.clear();
        if let Err(error) = self.session.close().wait() {
            tracing::debug!("cannot close the plain side cleanly: {error}");
        }
    }
}

fn refused(kind: &str, number: usize, error: &zenoh::Error) -> PlainError {
    PlainError::Rule { rule: format!("{kind} {number}"), what: to_text(error) }
}

/// Returns Zenoh's message without the position in its source code.
fn to_text(error: &zenoh::Error) -> String {
    let error = error.to_string();
    error.split(" at /").next().unwrap_or(&error).to_owned()
}
