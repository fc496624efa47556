//! `mission lock`: the tools of a skill are written down as they are defined now, for `--locked`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use mission_contract::log::ServerCondition;
use mission_contract::vocabulary::exit;

use super::arguments::{Asked, LockArguments};
use super::closing::closed;
use super::configuration::refuse_later;
use super::discover::{discover, is_short};
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::run::Exit;
use super::{servers, skills};
use crate::skill::pins::{self, LOCK_FILE};
use crate::stream::console::visible::one_line as harmless;
use crate::sys::files::{Durability, replace_file};

/// Who may read a lock: it belongs to the skill, as its manifest does, and holds no secret.
const READABLE: u32 = 0o644;

/// Starts the servers, and writes `mission.lock` beside the manifest. Exit code 1 when a server did not come up: nothing is written then.
///
/// # Errors
/// What is refused at the door; names without a tool; a file that cannot be written.
pub(super) fn lock(
    arguments: &LockArguments,
    later: &[Asked],
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    refuse_later(later, environment)?;
    let stated = Stated::either("--skill", arguments.skill.as_deref(), environment, "MISSION_SKILL").ok_or_else(|| {
        CliError::Usage(
            "there is no skill to lock; name it with --skill, and its servers with --mcp-stdio or --mcp-url".to_owned(),
        )
    })?;
    let found = skills::read(&stated)?;
    let Some(file) = &found.file else {
        return Err(stated
            .refuse("that skill is shipped with the program, and a lock lies in a skill's folder; name a skill in a folder"));
    };
    let path = file.with_file_name(LOCK_FILE);
    let discovery = match discover(servers::resolve(&arguments.servers, environment)?)? {
        Ok(discovery) => discovery,
        Err(signal) => return Ok(Exit::Signal(signal)),
    };
    if is_short(&discovery) {
        let failed = discovery.servers.iter().filter(|server| server.state == ServerCondition::Failed && !server.optional);
        let why: Vec<&str> = failed.filter_map(|server| server.detail.as_deref()).collect();
        return Err(CliError::Failed(format!("nothing was locked: {}", why.join(" "))));
    }
    let allowed = closed(&found.manifest, &discovery.tools)?;
    let lock = pins::pin(found.manifest.reference(), &allowed, &discovery.tools, &discovery.servers);
    let text = pins::write(&lock);
    let unwritten =
        |error: std::io::Error| CliError::Failed(format!("{} cannot be written: {error}", quoted(&path.to_string_lossy())));
    replace_file(&path, text.as_bytes(), Durability::Synced).map_err(unwritten)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(READABLE)).map_err(unwritten)?;
    let mut said = format!("{}: the skill {}, set {}\n", harmless(&path.to_string_lossy()), harmless(&lock.skill.name), lock.set);
    for server in &lock.servers {
        let own = server.implementation.as_deref().unwrap_or("no name of its own");
        said.push_str(&format!("  {} ({})\n", server.name, harmless(own)));
    }
    for tool in &lock.tools {
        said.push_str(&format!("  {}  {}\n", tool.name, tool.digest));
    }
    for seen in &discovery.observed {
        said.push_str(&format!("  ! {}: {}\n", seen.what, harmless(&seen.detail)));
    }
    out.write_all(said.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}
