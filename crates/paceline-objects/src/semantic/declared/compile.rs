//! Compiles an expression and bounds its cost.

use super::{DeclaredError, DeclaredRule};
use cel::common::ast::{Expr, IdedExpr, SelectExpr, operators};
use cel::parser::Parser;

/// The deepest nesting of an expression.
const DEPTH_MAX: u16 = 32;
/// The greatest number of operators, functions, variables and constants.
pub(super) const NODES_MAX: usize = 128;
/// The greatest number of fields, because texts can be joined.
const FIELDS_MAX: usize = 16;
const VARIABLES: [&str; 6] = ["distance", "angle", "error", "speed", "age", "interested"];
const FUNCTIONS: [&str; 7] =
    ["size", "contains", "startsWith", "endsWith", "int", "double", "string"];
const OPERATORS: [&str; 16] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::NEGATE,
];

/// Returns the expression of `text`.
///
/// # Errors
/// It is too long, wrong, or uses a construct that is not permitted.
pub(super) fn compile(part: &'static str, text: &str) -> Result<IdedExpr, DeclaredError> {
    if text.is_empty() || text.len() > DeclaredRule::TEXT_MAX {
        return Err(DeclaredError::Length { part, bytes: text.len() });
    }
    if text.contains(char::is_control) {
        let text = "control characters and line breaks are not permitted".to_owned();
        return Err(DeclaredError::Syntax { part, text });
    }
    let parser = Parser::new().max_recursion_depth(DEPTH_MAX);
    let expression = parser.parse(text).map_err(|errors| {
        let text = errors.to_string().chars().take(300).collect();
        DeclaredError::Syntax { part, text }
    })?;
    let mut check = Check { part, nodes: 0, fields: 0 };
    check.expression(&expression)?;
    Ok(expression)
}

struct Check {
    part: &'static str,
    nodes: usize,
    fields: usize,
}

impl Check {
    fn expression(&mut self, expression: &IdedExpr) -> Result<(), DeclaredError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return self.refuse("an expression of more than 128 parts");
        }
        match &expression.expr {
            Expr::Call(call) => {
                self.function(&call.func_name)?;
                call.target.iter().try_for_each(|target| self.expression(target))?;
                call.args.iter().try_for_each(|argument| self.expression(argument))
            }
            Expr::Ident(name) if VARIABLES.contains(&name.as_str()) => Ok(()),
            Expr::Ident(name) => self.unknown(name),
            Expr::Select(select) => {
                self.fields += 1;
                if self.fields > FIELDS_MAX {
                    return self.refuse("an expression with more than 16 fields");
                }
                self.select(select)
            }
            Expr::Literal(_) => Ok(()),
            Expr::Comprehension(_) => self.refuse("a comprehension"),
            Expr::List(_) => self.refuse("a list"),
            Expr::Map(_) => self.refuse("a map"),
            Expr::Struct(_) => self.refuse("a structure"),
            Expr::Unspecified => self.refuse("an empty expression"),
        }
    }

    fn function(&self, name: &str) -> Result<(), DeclaredError> {
        if FUNCTIONS.contains(&name) || OPERATORS.contains(&name) {
            Ok(())
        } else {
            Err(DeclaredError::Function { part: self.part, name: shortened(name) })
        }
    }

    /// Permits names that begin with `object`.
    fn select(&self, select: &SelectExpr) -> Result<(), DeclaredError> {
        if select.test {
            return self.refuse("has()");
        }
        match &select.operand.expr {
            Expr::Ident(name) if name == "object" => Ok(()),
            Expr::Ident(name) => self.unknown(&format!("{name}.{}", select.field)),
            Expr::Select(inner) => self.select(inner),
            Expr::Call(_)
            | Expr::Literal(_)
            | Expr::Comprehension(_)
            | Expr::List(_)
            | Expr::Map(_)
            | Expr::Struct(_)
            | Expr::Unspecified => self.refuse("the selection from a value"),
        }
    }

    fn unknown(&self, name: &str) -> Result<(), DeclaredError> {
        Err(DeclaredError::Variable { part: self.part, name: shortened(name) })
    }

    fn refuse(&self, construct: &'static str) -> Result<(), DeclaredError> {
        Err(DeclaredError::Construct { part: self.part, construct })
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}
