//! The table of rules: what a secret looks like that nobody named to us. One row a kind; the sources are what the makers publish
//! about their formats, or the standard that defines one.

use super::class::Class;

/// One kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, for people.
    pub name: &'static str,
    /// What stands in its place. `NAME` is the name that the text gives.
    pub placeholder: &'static str,
    /// Texts, in any case of letters, at which it is looked for.
    pub anchors: &'static [&'static str],
    /// What has to follow.
    pub pattern: Pattern,
    /// Who says that it looks like this.
    pub source: &'static str,
}

/// What has to follow an anchor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// Written exactly like its anchor, behind no letter or digit: at least so many characters of a class that look drawn at
    /// random. All that follow belong to it.
    Token {
        /// The class.
        class: Class,
        /// How many at least.
        least: usize,
    },
    /// The same with so many capitals and digits, and no letter or digit behind them.
    Exactly {
        /// How many.
        count: usize,
    },
    /// Two more parts of a signed or encrypted token.
    SignedToken,
    /// White space and a token.
    Bearer,
    /// A user's name, a colon, a password and an at sign.
    UrlPassword,
    /// The rest of a header line, and lines of a key.
    PrivateKey,
    /// A value, where the anchor is the end of a name that stands for a secret.
    Assignment,
    /// A value that looks drawn at random, on a line with a cookie header.
    Cookie,
}

impl Rule {
    /// True where the anchor itself is hidden with what follows it.
    pub fn hides_anchor(&self) -> bool {
        match self.pattern {
            Pattern::Token { .. } | Pattern::Exactly { .. } | Pattern::SignedToken | Pattern::PrivateKey => true,
            Pattern::Bearer | Pattern::UrlPassword | Pattern::Assignment | Pattern::Cookie => false,
        }
    }
}

const fn token(
    name: &'static str,
    placeholder: &'static str,
    anchors: &'static [&'static str],
    class: Class,
    least: usize,
    source: &'static str,
) -> Rule {
    Rule { name, placeholder, anchors, pattern: Pattern::Token { class, least }, source }
}

const fn other(
    name: &'static str,
    placeholder: &'static str,
    anchors: &'static [&'static str],
    pattern: Pattern,
    source: &'static str,
) -> Rule {
    Rule { name, placeholder, anchors, pattern, source }
}

use Class::{Alphanumeric, Dotted, Word};

/// All rules. Where several fit at one place, the first that fits names it.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // models
    token("key of a model provider", "<redacted:api-key>", &["sk-"], Word, 20, "OpenAI, Anthropic, OpenRouter, DeepSeek"),
    token("Groq key", "<redacted:api-key>", &["gsk_"], Alphanumeric, 40, "Groq"),
    token("xAI key", "<redacted:api-key>", &["xai-"], Alphanumeric, 40, "xAI"),
    token("Perplexity key", "<redacted:api-key>", &["pplx-"], Alphanumeric, 32, "Perplexity"),
    token("NVIDIA key", "<redacted:api-key>", &["nvapi-"], Word, 40, "NVIDIA"),
    token("Cerebras key", "<redacted:api-key>", &["csk-"], Alphanumeric, 40, "Cerebras"),
    token("Fireworks key", "<redacted:api-key>", &["fw_"], Alphanumeric, 22, "Fireworks"),
    token("Replicate token", "<redacted:api-key>", &["r8_"], Alphanumeric, 37, "Replicate"),
    token("Tavily key", "<redacted:api-key>", &["tvly-"], Word, 28, "Tavily"),
    token("LangSmith key", "<redacted:api-key>", &["lsv2_pt_", "lsv2_sk_"], Word, 32, "LangSmith"),
    token("Hugging Face token", "<redacted:huggingface-token>", &["hf_", "api_org_"], Alphanumeric, 30, "Hugging Face"),
    // code
    token("GitHub token", "<redacted:github-token>", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], Word, 36, "GitHub"),
    token("GitHub token", "<redacted:github-token>", &["github_pat_"], Word, 36, "GitHub"),
    token("GitLab token", "<redacted:gitlab-token>", &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glagent-"], Dotted, 20, "GitLab"),
    token("npm token", "<redacted:npm-token>", &["npm_"], Alphanumeric, 36, "npm"),
    token("PyPI token", "<redacted:pypi-token>", &["pypi-AgE"], Word, 32, "PyPI: a macaroon, in base64"),
    token("RubyGems key", "<redacted:rubygems-key>", &["rubygems_"], Alphanumeric, 48, "RubyGems"),
    token("Docker token", "<redacted:docker-token>", &["dckr_pat_", "dckr_oat_"], Word, 24, "Docker"),
    token("Linear key", "<redacted:linear-key>", &["lin_api_"], Alphanumeric, 32, "Linear"),
    token("Figma token", "<redacted:figma-token>", &["figd_"], Word, 36, "Figma"),
    token("Atlassian token", "<redacted:atlassian-token>", &["ATATT3"], Word, 60, "Atlassian"),
    token("Postman key", "<redacted:postman-key>", &["PMAK-"], Word, 40, "Postman"),
    // clouds
    other("AWS access key id", "<redacted:aws-access-key-id>", &["AKIA", "ASIA", "ABIA", "ACCA"], Pattern::Exactly { count: 16 }, "AWS"),
    token("Google API key", "<redacted:google-api-key>", &["AIza"], Word, 35, "Google Cloud"),
    token("Google OAuth token", "<redacted:google-oauth-token>", &["ya29."], Dotted, 20, "Google Cloud"),
    token("Google OAuth secret", "<redacted:google-oauth-secret>", &["GOCSPX-"], Word, 24, "Google Cloud"),
    token("DigitalOcean token", "<redacted:digitalocean-token>", &["dop_v1_", "doo_v1_", "dor_v1_"], Alphanumeric, 60, "DigitalOcean"),
    token("Databricks token", "<redacted:databricks-token>", &["dapi"], Alphanumeric, 32, "Databricks"),
    token("Vault token", "<redacted:vault-token>", &["hvs.", "hvb.", "hvr."], Word, 24, "HashiCorp"),
    token("Doppler token", "<redacted:doppler-token>", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], Dotted, 40, "Doppler"),
    token("Tailscale key", "<redacted:tailscale-key>", &["tskey-"], Word, 24, "Tailscale"),
    token("Supabase key", "<redacted:supabase-key>", &["sbp_", "sb_secret_"], Word, 28, "Supabase"),
    token("PlanetScale key", "<redacted:planetscale-key>", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], Dotted, 32, "PlanetScale"),
    token("age key", "<redacted:age-key>", &["AGE-SECRET-KEY-1"], Alphanumeric, 50, "age"),
    // services
    token("Slack token", "<redacted:slack-token>", &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], Dotted, 16, "Slack"),
    token("Slack webhook", "<redacted:slack-webhook>", &["hooks.slack.com/services/", "hooks.slack.com/workflows/"], Class::Path, 24, "Slack"),
    token("Stripe key", "<redacted:stripe-key>", &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"], Alphanumeric, 16, "Stripe"),
    token("SendGrid key", "<redacted:sendgrid-key>", &["SG."], Dotted, 60, "SendGrid"),
    token("Shopify token", "<redacted:shopify-token>", &["shpat_", "shpss_", "shpca_", "shppa_"], Alphanumeric, 32, "Shopify"),
    token("Grafana token", "<redacted:grafana-token>", &["glsa_", "glc_"], Class::Base64, 32, "Grafana"),
    token("New Relic key", "<redacted:newrelic-key>", &["NRAK-"], Alphanumeric, 24, "New Relic"),
    token("Sentry token", "<redacted:sentry-token>", &["sntrys_", "sntryu_"], Class::Base64, 32, "Sentry"),
    token("Notion token", "<redacted:notion-token>", &["ntn_"], Alphanumeric, 40, "Notion"),
    token("PostHog key", "<redacted:posthog-key>", &["phx_"], Alphanumeric, 32, "PostHog"),
    // standards
    other("signed token", "<redacted:jwt>", &["eyJ"], Pattern::SignedToken, "RFC 7519, RFC 7516"),
    other("private key", "<redacted:private-key>", &["-----BEGIN ", "---- BEGIN "], Pattern::PrivateKey, "RFC 7468, RFC 4880, RFC 4716"),
    other("bearer token", "<redacted:bearer>", &["bearer"], Pattern::Bearer, "RFC 6750; seed 2"),
    other("password in a URL", "<redacted:url-password>", &["://", ":\\/\\/"], Pattern::UrlPassword, "RFC 3986"),
    // by name
    other("value behind a name", "<redacted:NAME>", &["key", "token", "secret", "password", "passwd", "passphrase", "pwd", "signature", "sig", "authorization"], Pattern::Assignment, "RFC 9110, POSIX; seed 2"),
    other("session in a cookie", "<redacted:cookie>", &["sid=", "session=", "sessionid=", "sessid=", "session_id=", "auth="], Pattern::Cookie, "RFC 6265"),
];
