//! What a server says, message by message, whatever wire it came over: answers go to whoever waits, notifications are taken note of,
//! requests are answered here.

use std::borrow::Cow;
use std::sync::Arc;

use mission_contract::log::Era;
use serde_json::Value;
use serde_json::value::RawValue;

use super::exchange::{Answer, Exchange, Message};
use super::frame::{Damaged, Id, Outline, Shape, part, shape};
use super::result::{quoted, sample};

/// Takes one line for what it is. `of` is the request that it came in answer to, on a wire that says so.
pub(crate) fn dispatch(exchange: &Arc<Exchange>, line: Cow<'_, [u8]>, of: Option<&Id>) {
    match shape(&line) {
        Shape::Blank => {}
        Shape::Object(outline) => message(exchange, line, &outline, of),
        Shape::Batch(elements) => {
            for element in elements {
                let element = line.get(element).unwrap_or_default();
                match shape(element) {
                    Shape::Object(outline) => message(exchange, Cow::Borrowed(element), &outline, of),
                    Shape::Damaged(damaged) => broken(exchange, element, &damaged, of),
                    _ => exchange.noise(|| sample(element)),
                }
            }
        }
        Shape::Damaged(damaged) => broken(exchange, &line, &damaged, of),
        Shape::Other => exchange.noise(|| sample(&line)),
    }
}

fn message(exchange: &Arc<Exchange>, line: Cow<'_, [u8]>, outline: &Outline, of: Option<&Id>) {
    let id = part(&line, outline.id.as_ref());
    if let Some(method) = part(&line, outline.method.as_ref()) {
        let Some(method) = outline.is_protocol.then(|| serde_json::from_slice::<String>(method).ok()).flatten() else {
            // A log line that happens to have such a member.
            return exchange.noise(|| sample(&line));
        };
        let params = part(&line, outline.params.as_ref()).unwrap_or_default();
        match id {
            Some(id) => request(exchange, id, &method),
            None => notification(exchange, &method, params),
        }
        return;
    }
    let is_answer = outline.result.is_some() || outline.error.is_some();
    let id = id.and_then(Id::read);
    match id {
        Some(id) if is_answer || outline.is_protocol => {
            let message = Message::new(line.into_owned(), outline);
            // An answer that nobody waits for, or no longer: a second one, or one of a number that never was.
            exchange.answer(&id, message);
        }
        None if outline.error.is_some() && outline.is_protocol => {
            // A server that could not read the id.
            let message = Message::new(line.into_owned(), outline);
            match of {
                Some(of) => exchange.answer(of, message),
                None => exchange.answer_the_only_one(|| Answer::Message(message)),
            };
        }
        _ => exchange.noise(|| sample(&line)),
    }
}

/// A message that cannot be read whole. If it is an answer, whoever waits for it is not left waiting.
fn broken(exchange: &Exchange, line: &[u8], damaged: &Damaged, of: Option<&Id>) {
    let why = || format!("sent an answer that is no JSON (at byte {}: {})", damaged.at, sample(line));
    let outline = &damaged.outline;
    let taken = match part(line, outline.id.as_ref()).and_then(Id::read).or_else(|| of.cloned()) {
        Some(id) if outline.method.is_none() => exchange.unreadable(&id, why()),
        None if outline.result.is_some() || outline.error.is_some() => exchange.answer_the_only_one(|| Answer::Unreadable(why())),
        _ => false,
    };
    if !taken {
        exchange.noise(|| sample(line));
    }
}

/// Answers a request of the server. Only `ping` is granted; where the protocol has no requests of a server nothing is answered at all.
fn request(exchange: &Exchange, id: &[u8], method: &str) {
    let is_handshake = exchange.agreed().is_some_and(|agreed| agreed.era == Era::Handshake);
    if !is_handshake && (exchange.agreed().is_some() || method != "ping") {
        let method = quoted(method);
        return exchange.declined(
            "server_request_refused",
            &format!("The server makes a request of its own ({method:?}), which this era of the protocol does not have; it is not answered."),
        );
    }
    let Ok(id) = serde_json::from_slice::<&RawValue>(id) else { return };
    let reply = match method {
        "ping" => r#""result":{}"#.to_owned(),
        "elicitation/create" => {
            exchange.declined("elicitation_declined", "The server asks for input from a person, which is declined.");
            r#""result":{"action":"decline"}"#.to_owned()
        }
        method => {
            if method == "sampling/createMessage" {
                exchange.declined("sampling_declined", "The server asks for an answer of the model, which is declined.");
            }
            let words = serde_json::Value::from(format!("{method} is not offered by this client"));
            format!(r#""error":{{"code":-32601,"message":{words}}}"#)
        }
    };
    exchange.reply(format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#).into_bytes());
}

fn notification(exchange: &Arc<Exchange>, method: &str, params: &[u8]) {
    #[derive(serde::Deserialize)]
    struct Progress<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
        progress: f64,
    }
    match method {
        "notifications/progress" => {
            if let Ok(progress) = serde_json::from_slice::<Progress<'_>>(params)
                && let Some(token) = Id::read(progress.token.get().as_bytes())
            {
                exchange.progress(&token, progress.progress);
            }
        }
        "notifications/tools/list_changed" => exchange.list_changed(),
        "notifications/subscriptions/acknowledged" => {
            let granted: Value = serde_json::from_slice(params).unwrap_or_default();
            exchange.set_hears_changes(granted.pointer("/notifications/toolsListChanged") == Some(&Value::Bool(true)));
        }
        // Log messages, other lists, resources, cancellations of what was answered at once.
        _ => {}
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
