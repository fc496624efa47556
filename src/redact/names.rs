//! What a name says about the value behind it.

use super::class::Makeup;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A password or a secret: any text may be one.
    Password,
    /// `secret` and nothing else: objects are named so too.
    Secret,
    /// A token or key of a kind that is secret.
    Token,
    /// `token` and nothing else: texts are made of tokens too.
    BareToken,
    /// `key`, `sig` or `signature` in a query.
    QueryOnly,
    /// A header with a credential.
    Header,
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In quotes.
    Quoted,
    /// In the query of a URL.
    Query,
    /// Behind a flag.
    Flag,
    /// Behind a variable's name.
    Environment,
    /// Behind any other name.
    Bare,
}

/// What stands before `token` where it is none that opens anything.
const COMMON_TOKENS: &[&str] = &[
    "next",
    "page",
    "continuation",
    "max",
    "min",
    "pad",
    "eos",
    "bos",
    "unk",
    "sep",
    "cls",
    "mask",
    "start",
    "end",
    "stop",
    "special",
    "first",
    "last",
    "current",
    "prev",
    "previous",
    "input",
    "output",
    "sync",
    "pagination",
    "cursor",
    "per",
    "cancellation",
    "cancel",
    "progress",
    "syntax",
    "design",
    "lock",
    "resume",
    "image",
    "audio",
    "begin",
    "separator",
    "watch",
    "skip",
    "marker",
    "client",
    "device",
    "expected",
    "unexpected",
    "string",
    "num",
    "count",
];

/// What stands before `key` where it opens something.
const SECRET_KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "account",
    "encryption",
    "auth",
    "signing",
    "shared",
    "master",
    "service",
    "subscription",
    "license",
    "storage",
    "application",
    "admin",
    "consumer",
    "hmac",
    "deploy",
    "ingest",
    "webhook",
    "crypto",
    "cipher",
    "session",
];

/// What stands before `KEY` in a variable where it opens nothing.
const COMMON_KEYS: &[&str] = &[
    "primary",
    "public",
    "foreign",
    "sort",
    "partition",
    "cache",
    "publishable",
    "index",
    "row",
    "object",
    "hash",
    "hot",
    "short",
    "registry",
    "map",
    "lookup",
    "group",
    "idempotency",
    "routing",
    "translation",
    "message",
    "unique",
    "pub",
    "h",
    "composite",
    "candidate",
    "super",
    "arrow",
    "function",
    "dict",
    "json",
    "any",
    "press",
    "enter",
    "escape",
    "label",
    "column",
    "field",
    "range",
    "shard",
    "dedup",
];

/// What a name stands for; nothing when it does not stand for a secret.
pub(super) fn classify(name: &str, in_query: bool) -> Option<Kind> {
    let bare: String = name.chars().filter(|each| !matches!(each, '_' | '-')).map(|each| each.to_ascii_lowercase()).collect();
    let before = |end: &str| bare.strip_suffix(end);
    let of_environment = name.contains('_') && !name.bytes().any(|byte| byte.is_ascii_lowercase());
    if before("authorization").is_some() {
        return Some(Kind::Header);
    }
    if matches!(bare.as_str(), "pwd" | "oldpwd") {
        return (name == "Pwd" || in_query).then_some(Kind::Password);
    }
    if ["password", "passwd", "passphrase", "pwd"].iter().any(|end| before(end).is_some()) {
        return Some(Kind::Password);
    }
    if let Some(before) = before("secret") {
        return Some(if before.is_empty() && name != "SECRET" { Kind::Secret } else { Kind::Password });
    }
    if let Some(before) = before("token") {
        let common = COMMON_TOKENS.iter().any(|word| before.ends_with(word));
        return match before {
            "" => Some(if in_query { Kind::Token } else { Kind::BareToken }),
            _ if common => None,
            _ => Some(Kind::Token),
        };
    }
    if let Some(before) = before("key") {
        let secret = SECRET_KEYS.iter().any(|word| before.ends_with(word));
        let common = COMMON_KEYS.iter().any(|word| before.ends_with(word));
        return match before {
            "" => in_query.then_some(Kind::QueryOnly),
            _ if secret || (of_environment && !common) => Some(Kind::Token),
            _ => None,
        };
    }
    let signs = ["signature", "sig"].iter().any(|end| before(end).is_some());
    (signs && in_query).then_some(Kind::QueryOnly)
}

impl Kind {
    /// Whether a value of this makeup is taken for what the name stands for.
    pub fn takes(self, value: &Makeup, place: Place) -> bool {
        let long = value.length >= 16;
        let mixed_case = value.capitals >= 2 && value.small >= 2;
        match (self, place) {
            (Kind::Header, _) => false,
            (Kind::QueryOnly, Place::Query) => long && value.is_drawn(),
            (Kind::QueryOnly, _) => false,
            (Kind::BareToken, Place::Flag) => value.length >= 6 && value.is_mixed(),
            (Kind::BareToken, _) => long && value.is_random(16),
            (Kind::Password, Place::Environment) => value.length >= 4,
            (Kind::Password | Kind::Secret, Place::Query) => value.length >= 4,
            (Kind::Password, Place::Quoted) => value.length >= 6 || value.length >= 4 && value.is_mixed(),
            (Kind::Password, Place::Flag) => value.length >= 6,
            (Kind::Password, Place::Bare) => value.length >= 6 && value.is_mixed(),
            (Kind::Secret, Place::Quoted | Place::Flag) => value.length >= 8 && value.is_mixed(),
            (Kind::Secret, _) => value.is_random(12),
            (Kind::Token, Place::Environment) => value.length >= 8 && value.is_mixed() || long && mixed_case,
            (Kind::Token, Place::Query) => value.length >= 6 && value.is_mixed() || long,
            (Kind::Token, Place::Quoted) => value.length >= 4 && value.is_mixed() || long && mixed_case,
            (Kind::Token, Place::Flag) => value.length >= 6 && value.is_mixed(),
            (Kind::Token, Place::Bare) => value.is_random(12) || value.length >= 24 && mixed_case,
        }
    }
}
