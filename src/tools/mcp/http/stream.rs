//! An answer that comes as a stream of events, and picking up one that broke off. Only the handshake era has that, and only where
//! the server gave its events ids; reading on is no second call.

use std::borrow::Cow;
use std::time::Duration;

use mission_contract::log::Era;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use tokio::time::{sleep, timeout};

use super::Link;
use super::client::{Trouble, trouble};
use super::post::broken;
use crate::limits;
use crate::sys::http::header;
use crate::sys::sse::{SseEvent, SseSplitter};
use crate::tools::mcp::exchange::Answer;
use crate::tools::mcp::frame::{Id, Shape, shape};
use crate::tools::mcp::incoming::dispatch;
use crate::tools::mcp::outgoing::Asked;
use crate::tools::mcp::result::quoted;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How far a stream has come, over all its connections.
#[derive(Debug, Default)]
pub(super) struct Place {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
    events: u64,
    bytes: u64,
}

impl Place {
    /// How long is waited before it is picked up again.
    pub(super) fn wait(&self) -> Duration {
        let most = Duration::from_secs(limits::MCP_RETRY_SECONDS_MOST);
        self.retry.unwrap_or(Duration::from_millis(limits::MCP_RESUME_MS)).min(most)
    }

    /// The last event that came, by its id.
    pub(super) fn last(&self) -> Option<HeaderValue> {
        self.last.clone()
    }

    fn note(&mut self, event: &SseEvent) {
        self.events = self.events.saturating_add(1);
        self.retry = event.retry.or(self.retry);
        if let Some(id) = &event.id {
            let fits = u64::try_from(id.len()).unwrap_or(u64::MAX) <= limits::MCP_SESSION_ID_BYTES;
            self.last = Some(id).filter(|id| fits && !id.is_empty()).and_then(|id| HeaderValue::from_str(id).ok());
        }
    }
}

/// How a connection of a stream came to its end.
pub(super) enum Ended {
    /// What it was read for is here.
    Answered,
    /// It ended, or broke off; how, as the second half of a sentence about the server.
    Short(String),
    /// It is not read any further; why.
    Enough(Answer),
}

/// Why a stream could not be picked up.
pub(super) enum NotOpened {
    /// The server does not have that, or not any more.
    Refused(String),
    /// Nobody was there.
    Passing(String),
}

impl Link {
    /// Reads an answer from a stream, and picks it up where it breaks off. What it returns is said to whoever waits.
    pub(super) async fn stream(&self, response: Response, id: &Id, asked: &Asked) -> Option<Answer> {
        let mut place = Place::default();
        let mut response = Some(response);
        let mut why = String::new();
        for resumes in 0..=limits::MCP_RESUMES {
            if let Some(response) = response.take() {
                match self.follow(response, Some((id, asked)), &mut place).await {
                    Ended::Answered => return None,
                    Ended::Enough(answer) => return Some(answer),
                    Ended::Short(how) => why = how,
                }
            }
            let may_resume =
                self.exchange.agreed().is_none_or(|agreed| agreed.era == Era::Handshake) && asked.method != "server/discover";
            let Some(last) = place.last().filter(|_| may_resume) else { return Some(Answer::Lost(why)) };
            if resumes == limits::MCP_RESUMES {
                break;
            }
            sleep(place.wait()).await;
            match self.get(Some(last)).await {
                Ok(next) => response = Some(next),
                Err(NotOpened::Passing(how)) => why = how,
                Err(NotOpened::Refused(how)) => return Some(Answer::Lost(format!("{why}, and {how}"))),
            }
        }
        Some(Answer::Lost(format!("{why}; it was picked up {} times, which is all that is allowed", limits::MCP_RESUMES)))
    }

    /// Reads one connection of a stream to its end, or until the request that it is read for has its answer.
    pub(super) async fn follow(&self, mut response: Response, of: Option<(&Id, &Asked)>, place: &mut Place) -> Ended {
        let cap = limits::size(limits::MCP_LINE_BYTES);
        let id = of.map(|(id, _)| id);
        // What stands for as long as the server likes has no end to be bounded by.
        let bounded = of.is_some_and(|(_, asked)| !asked.is_standing);
        let mut splitter = SseSplitter::new(cap);
        let how = loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break "ended its answer before it was complete".to_owned(),
                Err(error) => break broken(&trouble(&error, &self.address)),
            };
            place.bytes = place.bytes.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            let pushed = splitter.push_whole(&chunk, &mut |event| {
                place.note(&event);
                self.event(event, id);
            });
            if id.is_some_and(|id| !self.exchange.awaits(id)) {
                self.drain(response).await;
                return Ended::Answered;
            }
            if pushed.is_err() {
                return Ended::Enough(Answer::Unreadable(format!(
                    "sent an answer of more than {cap} bytes, and {cap} are allowed"
                )));
            }
            if bounded && place.events > limits::MCP_STREAM_EVENTS {
                let most = limits::MCP_STREAM_EVENTS;
                return Ended::Enough(Answer::Lost(format!(
                    "sent more than {most} events in place of one answer, and {most} are allowed"
                )));
            }
            if bounded && place.bytes > limits::MCP_STREAM_BYTES {
                let most = limits::MCP_STREAM_BYTES;
                return Ended::Enough(Answer::Lost(format!(
                    "sent more than {most} bytes in place of one answer, and {most} are allowed"
                )));
            }
            if let Some(id) = id.filter(|_| splitter.is_within_data()) {
                self.exchange.sign_of_life(id);
            }
        };
        // An event that was cut in two is none; one that only lacks its end is.
        splitter.finish_whole(&mut |event| {
            let data = event.data.as_deref().unwrap_or_default();
            if matches!(shape(data.as_bytes()), Shape::Object(_) | Shape::Batch(_)) {
                place.note(&event);
                self.event(event, id);
            }
        });
        if id.is_some_and(|id| !self.exchange.awaits(id)) { Ended::Answered } else { Ended::Short(how) }
    }

    fn event(&self, event: SseEvent, of: Option<&Id>) {
        let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { return };
        if event.name.is_empty() || event.name == "message" {
            dispatch(&self.exchange, Cow::Owned(data.into_bytes()), of);
        } else {
            self.exchange.noise(|| format!("an event of the kind {:?}", quoted(&event.name)));
        }
    }

    /// Reads what is left of a stream that has said what it was to say, so that its connection can be used again.
    async fn drain(&self, mut response: Response) {
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        let _ = timeout(Duration::from_millis(limits::MCP_DRAIN_MS), rest).await;
    }

    /// Opens a stream by GET: a new one, or one behind the last event that came of it.
    pub(super) async fn get(&self, last: Option<HeaderValue>) -> Result<Response, NotOpened> {
        let mut request = self.to_server(Method::GET, None).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header(LAST_EVENT, last);
        }
        let response = match request.send().await.map_err(|error| trouble(&error, &self.address)) {
            Ok(response) => response,
            Err(Trouble::NotSent { why, .. } | Trouble::Broken(why)) => return Err(NotOpened::Passing(why)),
        };
        if !response.status().is_success() {
            // Many a server does not have this and says so with a 404: only a POST tells whether the session is gone.
            return Err(match self.refused(response, None, false).await {
                Some(Answer::Refused(refused)) if refused.is_passing() => NotOpened::Passing(refused.why),
                Some(Answer::Refused(refused)) => NotOpened::Refused(refused.why),
                _ => NotOpened::Refused("does not open a stream".to_owned()),
            });
        }
        let kind = header(response.headers(), &CONTENT_TYPE).unwrap_or_default();
        if kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")) {
            return Ok(response);
        }
        Err(NotOpened::Refused(format!("answers a GET with {:?} and no stream of events", quoted(&kind))))
    }
}
