//! The servers of a run as one tool plane.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use mission_contract::log::{CallResult, Observed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::exchange::Reports;
use super::http::client::Clients;
use super::request::{Reach, ServerRequest};
use super::result::protocol;
use super::secrets::Secrets;
use super::server::{Part, Server};
use super::wire::Start;
use crate::engine::request::ToolDispatch;
use crate::limits;
use crate::sys::environment::child_environment;
use crate::sys::spawn::GuardianProgram;
use crate::tools::{Discovery, PlaneEvent, ToolPlane};

/// What the servers of a run have in common.
#[derive(Clone, Debug)]
pub struct PlaneOptions {
    /// The name that we give to servers (`MCP_CLIENT_NAME`); the version is this package's.
    pub client_name: String,
    /// The program that guards their process trees: this one.
    pub guardian_program: GuardianProgram,
    /// Our environment, of which they see the allow-list and what is passed to them.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for PlaneOptions {
    /// The name `mission`, this program, this process's environment.
    fn default() -> Self {
        Self {
            client_name: "mission".to_owned(),
            guardian_program: GuardianProgram::default(),
            environment: std::env::vars_os().collect(),
        }
    }
}

/// Tool servers over stdio and HTTP. To be closed; when it is dropped instead, the guardians end the process trees all the same.
#[derive(Debug)]
pub struct McpPlane {
    servers: Vec<Arc<Server>>,
}

/// Starts the servers, all at once, each within its own timeout, and lists their tools.
///
/// It does not fail: a server that does not come up is in the discovery with its reason. Must be called within a tokio runtime
/// whose thread lives as long as the process. What the servers report by themselves comes from the receiver; it holds
/// [`limits::MCP_EVENT_QUEUE`] events, and what comes beyond is dropped.
pub async fn connect(requests: Vec<ServerRequest>, options: PlaneOptions) -> (McpPlane, Discovery, mpsc::Receiver<PlaneEvent>) {
    let (events, mut receiver) = mpsc::channel(limits::size(limits::MCP_EVENT_QUEUE));
    let mut servers = Vec::new();
    let mut beginnings: Vec<BoxFuture<'static, Part>> = Vec::new();
    let clients = Arc::new(Clients::default());
    for request in requests {
        let environment = match &request.reach {
            Reach::Stdio { passes, .. } => child_environment(options.environment.iter().cloned(), passes),
            Reach::Http { .. } => Ok(BTreeMap::new()),
        };
        let (environment, refusal) = match environment {
            Ok(environment) => (environment, None),
            Err(error) => (BTreeMap::new(), Some(format!("was not started: {error}"))),
        };
        let start = Start {
            client_name: options.client_name.clone(),
            guardian_program: options.guardian_program.clone(),
            environment,
            clients: clients.clone(),
        };
        let secrets = Secrets::new(request.reach.secrets().into_iter().map(|(_, value)| value).collect());
        let reports = Reports { server: request.name.clone(), events: events.clone(), secrets };
        let server = Server::new(request, start, reports);
        let beginning = server.clone();
        beginnings.push(Box::pin(async move {
            match refusal {
                None => beginning.begin().await,
                Some(why) => beginning.refuse(why).await,
            }
        }));
        servers.push(server);
    }
    let mut discovery = discovery(join_all(beginnings).await);
    discovery.observed.extend(shared_names(&discovery));
    // What was seen meanwhile belongs to the discovery.
    let mut others = Vec::new();
    while let Ok(event) = receiver.try_recv() {
        match event {
            PlaneEvent::Observed(observed) => discovery.observed.push(observed),
            other => others.push(other),
        }
    }
    for event in others {
        let _ = events.try_send(event);
    }
    (McpPlane { servers }, discovery, receiver)
}

fn discovery(parts: Vec<Part>) -> Discovery {
    let mut discovery = Discovery::default();
    for part in parts {
        discovery.servers.push(part.state);
        discovery.tools.extend(part.tools.iter().cloned());
        discovery.observed.extend(part.observed);
    }
    discovery.tools.sort_by_cached_key(|definition| definition.full_name());
    discovery
}

/// Tells of names that tools of several servers have: each is called by its full name, and a skill has to name it so.
fn shared_names(discovery: &Discovery) -> Option<Observed> {
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for tool in &discovery.tools {
        by_name.entry(&tool.name).or_default().push(tool.full_name());
    }
    let shared: Vec<String> = by_name.into_values().filter(|tools| tools.len() > 1).map(|tools| tools.join(" and ")).collect();
    let most = limits::size(limits::NAMES_LISTED);
    let more = match shared.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let listed = shared.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    let detail = format!("Tools of several servers have one name, and each is called by its full name: {listed}{more}.");
    (!shared.is_empty()).then(|| Observed { what: "tool_names_shared".to_owned(), detail, ..Observed::default() })
}

impl ToolPlane for McpPlane {
    fn call(&self, dispatch: ToolDispatch, cancel: CancellationToken) -> BoxFuture<'static, CallResult> {
        match self.servers.iter().find(|server| server.name() == dispatch.server) {
            Some(server) => Box::pin(server.clone().call(dispatch, cancel)),
            None => {
                let ToolDispatch { server, name, .. } = dispatch;
                Box::pin(
                    async move { protocol(format!("The call of `{name}` was not made, because there is no server `{server}`.")) },
                )
            }
        }
    }

    fn list(&self) -> BoxFuture<'static, Discovery> {
        let servers = self.servers.clone();
        Box::pin(async move { discovery(join_all(servers.iter().map(|server| server.list())).await) })
    }

    fn list_unheard(&self) -> BoxFuture<'static, Option<Discovery>> {
        let servers = self.servers.clone();
        Box::pin(async move {
            let parts = join_all(servers.iter().map(|server| server.list_unheard())).await;
            if parts.iter().all(Option::is_none) {
                return None;
            }
            let parts = servers.iter().zip(parts).map(async |(server, part)| match part {
                Some(part) => part,
                None => server.part().await,
            });
            Some(discovery(join_all(parts).await))
        })
    }

    fn wake(&self, server: &str) -> BoxFuture<'static, ()> {
        match self.servers.iter().find(|each| each.name() == server) {
            Some(server) => {
                let server = server.clone();
                Box::pin(async move { server.wake().await })
            }
            None => Box::pin(std::future::ready(())),
        }
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let servers = self.servers.clone();
        Box::pin(async move {
            join_all(servers.iter().map(|server| server.close())).await;
        })
    }
}
