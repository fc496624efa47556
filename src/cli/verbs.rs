//! The verbs that have landed.

use std::io::BufReader;

use mission_contract::vocabulary::exit;

use super::contract_verbs::{self, ContractVerbError};

/// Why a verb was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    /// The words of the command line do not fit.
    #[error("{0}")]
    Usage(String),
    /// A verb of the contract failed.
    #[error(transparent)]
    Contract(#[from] ContractVerbError),
}

const USAGE: &str = "The verbs are `schema [NAME]`, `contract` and `conform [FILE]`";

/// Carries out the verb that the first word names.
///
/// # Errors
/// When the words do not fit, or the verb could not do its work.
pub fn run(words: &[String]) -> Result<u8, VerbError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut out = std::io::stdout().lock();
    match words.as_slice() {
        ["schema"] => contract_verbs::schema(None, &mut out)?,
        ["schema", name] => contract_verbs::schema(Some(name), &mut out)?,
        ["contract"] => contract_verbs::contract(&mut out)?,
        ["conform"] => return Ok(contract_verbs::conform(BufReader::new(std::io::stdin().lock()), &mut out)?),
        ["conform", path] => {
            let file = std::fs::File::open(path)
                .map_err(|error| VerbError::Usage(format!("The file {path} cannot be read ({error}): name a readable file.")))?;
            return Ok(contract_verbs::conform(BufReader::new(file), &mut out)?);
        }
        [] => return Err(VerbError::Usage(format!("Nothing was asked for. {USAGE}."))),
        [word, ..] => {
            return Err(VerbError::Usage(format!(
                "`{}` with these words is not supported by this build yet. {USAGE}.",
                crate::engine::words::quote(word)
            )));
        }
    }
    Ok(exit::FINE)
}
