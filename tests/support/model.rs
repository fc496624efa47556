//! A scripted model, turn by turn: what the integration tests say of [`ModelServer`], which does the serving.

use serde_json::{Value, json};

use super::model_server::{Answer, ModelServer, Request, answers, calls, says, stalls, status};

/// One turn of the model.
#[derive(Clone, Debug)]
pub enum Turn {
    /// Calls tools, by their full names: one in the `json` protocol, any number in `native`.
    Call(Vec<(String, Value)>),
    /// Answers.
    Answer(String),
    /// Says exactly this, whatever the protocol.
    Text(String),
    /// Fails with this HTTP status.
    Status(u16),
    /// Says nothing and keeps the connection.
    Stall,
    /// Says that, once [`Model::let_go`] was called.
    Held(Box<Turn>),
}

/// Calls one tool.
pub fn call(tool: &str, arguments: Value) -> Turn {
    Turn::Call(vec![(tool.to_owned(), arguments)])
}

/// Answers.
pub fn answer(text: &str) -> Turn {
    Turn::Answer(text.to_owned())
}

/// Says exactly this.
pub fn text(text: &str) -> Turn {
    Turn::Text(text.to_owned())
}

/// Says that, once it is let go.
pub fn held(turn: Turn) -> Turn {
    Turn::Held(Box::new(turn))
}

/// The model. It listens on loopback for as long as this value lives.
pub struct Model(ModelServer);

impl Model {
    /// A model whose turns are these; the last one repeats.
    pub fn says(turns: impl IntoIterator<Item = Turn>) -> Self {
        let answers = (1..).zip(turns).map(|(number, turn)| said(turn).costing(usage(number)));
        Self(answers.fold(ModelServer::start().repeating(), ModelServer::reply))
    }

    /// A model that says the turn to which a conversation has come, however often it is asked: the number of its own messages in it. The
    /// last one repeats.
    pub fn follows(turns: impl IntoIterator<Item = Turn>) -> Self {
        let answers: Vec<Answer> = (1..).zip(turns).map(|(number, turn)| said(turn).costing(usage(number))).collect();
        Self(ModelServer::start().saying(move |request| {
            let said = request.messages().iter().filter(|message| message["role"] == "assistant").count();
            answers.get(said).or(answers.last()).unwrap().clone()
        }))
    }

    /// What `LOCAL_API_BASE` is to be.
    pub fn base_url(&self) -> String {
        self.0.base_url()
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.0.requests().into_iter().map(|Request { body, .. }| body).collect()
    }

    /// Waits until there were so many requests, and gives the last of them.
    pub fn wait_for_request(&self, number: usize) -> Value {
        self.0.wait_for_request(number).body
    }

    /// Lets all held turns be said.
    pub fn let_go(&self) {
        self.0.let_go();
    }

    /// Waits until a client has hung up on a turn that stalls.
    pub fn wait_for_hang_up(&self) {
        self.0.wait_for_hang_up(1);
    }
}

fn said(turn: Turn) -> Answer {
    match turn {
        Turn::Call(all) => calls(all),
        Turn::Answer(text) => answers(&text),
        Turn::Text(text) => says(&text),
        Turn::Status(code) => {
            status(code, &json!({"error": {"message": format!("scripted status {code}"), "type": "server_error"}}))
        }
        Turn::Stall => stalls(),
        Turn::Held(then) => said(*then).held(),
    }
}

/// What the turn of this number costs.
fn usage(number: u64) -> Value {
    json!({"prompt_tokens": 100 * number, "completion_tokens": 7, "total_tokens": 100 * number + 7})
}
