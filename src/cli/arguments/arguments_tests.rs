#![allow(clippy::unwrap_used, clippy::panic)]

use mission_contract::vocabulary::{FLAGS, Status};

use super::super::objective::{Line, read};
use super::*;

fn run(words: &[&str]) -> Result<RunArguments, CliError> {
    match read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())? {
        Line::Run(line) => RunArguments::read(line),
        other => panic!("{other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    run(words).unwrap_err().to_string()
}

#[test]
fn flags_are_read() {
    let words = [
        "--mission",
        "add",
        "--mcp-stdio",
        "a=b --c",
        "--mcp-stdio=-x y",
        "--seed",
        "-7",
        "--top-p=-1",
        "--events",
        "-",
        "--no-stream",
        "--model",
        "x",
        "--model",
        "y",
        "--mcp-env",
        "A=B",
        "--grace",
        "3",
    ];
    let arguments = run(&words).unwrap();
    let flags = arguments.flags;
    assert_eq!(arguments.objective.as_deref(), Some("add"));
    assert!(flags.mission && flags.model.no_stream);
    assert_eq!(flags.tools.servers.mcp_stdio, ["a=b --c", "-x y"]);
    assert_eq!(
        (flags.model.seed.as_deref(), flags.model.top_p.as_deref(), flags.streams.events.as_deref()),
        (Some("-7"), Some("-1"), Some("-"))
    );
    assert_eq!(flags.model.model.as_deref(), Some("y"), "the last one counts");
    assert_eq!(
        (flags.tools.servers.mcp_env.as_slice(), flags.limits.grace.as_deref()),
        (["A=B".to_owned()].as_slice(), Some("3"))
    );
    assert_eq!(arguments.later, []);
}

#[test]
fn blanks_are_values_here() {
    let arguments = run(&["--mission", "add", "--model", "", "--events=", "--mcp-stdio", ""]).unwrap();
    assert_eq!((arguments.flags.model.model.as_deref(), arguments.flags.tools.servers.mcp_stdio.len()), (Some(""), 1));
}

#[test]
fn a_misspelt_flag_is_refused_with_the_one_that_is_near() {
    insta::assert_snapshot!(refused(&["--mission", "add", "--protocl", "json"]), @"`--protocl` is no flag of mission (did you mean --protocol?); an objective that begins with a dash stands after `--`");
    insta::assert_snapshot!(refused(&["--mission", "add", "--mission-step=3"]), @"`--mission-step` is no flag of mission (did you mean --mission-steps?); an objective that begins with a dash stands after `--`");
    insta::assert_snapshot!(refused(&["--mission", "-x"]), @"`-x` is no flag of mission; an objective that begins with a dash stands after `--`");
    insta::assert_snapshot!(refused(&["--mission", "--api-key=hunter2"]), @"`--api-key` is no flag of mission; an objective that begins with a dash stands after `--`");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--jsn".to_owned()]).unwrap_err(), @"`--jsn` is no flag of `mission tools` (did you mean --json?); its flags are listed by --help");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["me".to_owned()]).unwrap_err(), @"`mission tools` takes no word `me`; see mission tools --help");
    insta::assert_snapshot!(read_verb::<ConformArguments>(Verb::Conform, &["a".to_owned(), "b".to_owned()]).unwrap_err(), @"`mission conform` takes no word `b`; see mission conform --help");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--mcp-stdio".to_owned()]).unwrap_err(), @"--mcp-stdio needs a value; write it behind the flag, or as --mcp-stdio=VALUE when it begins with a dash");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--json=yes".to_owned()]).unwrap_err(), @"--json is a switch and takes no value; write it alone");
}

#[test]
fn every_flag_of_the_contract_is_known_and_no_other() {
    let command = later::add(run_command());
    let mut typed: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
    let mut published: Vec<String> =
        FLAGS.iter().map(|flag| flag.name.to_owned()).chain(["--help".to_owned(), "--version".to_owned()]).collect();
    typed.sort();
    published.sort();
    assert_eq!(typed, published);
    for arg in command.get_arguments() {
        let Some(flag) = arg.get_long().and_then(|long| mission_contract::vocabulary::flag(&format!("--{long}"))) else {
            continue;
        };
        assert_eq!(arg.get_action().takes_values(), flag.value.is_some(), "{}", flag.name);
        if let (Status::Landed, Some(value)) = (flag.status, flag.value) {
            assert_eq!(arg.get_value_names().unwrap().first().unwrap().as_str(), value, "{}", flag.name);
            assert_eq!(matches!(arg.get_action(), clap::ArgAction::Append), flag.repeatable, "{}", flag.name);
        }
        assert_eq!(arg.is_hide_set(), flag.status != Status::Landed, "{}", flag.name);
    }
}

#[test]
fn what_has_not_landed_is_asked_for_unless_it_says_what_holds_anyway() {
    let arguments = run(&["--mission", "add", "--swarm", "--campaign-plan", "", "--profile", "dev"]).unwrap();
    let wishes: Vec<(&str, Option<&str>)> = arguments.later.iter().map(|asked| (asked.flag.name, asked.wish())).collect();
    assert_eq!(wishes, [("--swarm", Some("")), ("--campaign-plan", None)]);
}

#[test]
fn the_help_is_short_and_says_where_more_is() {
    let help = help(None);
    assert!(help.lines().count() <= 110 && help.lines().all(|line| line.chars().count() <= HELP_COLUMNS), "{help}");
    insta::assert_snapshot!(help, @"
    Carries out one objective with a language model and MCP tools, under governance.

    Usage: mission --mission [FLAGS] TEXT
           mission run [FLAGS] -- TEXT
           mission VERB …

    Run:
          --mission                     TEXT is the objective, whatever it says
          --mission-steps <INTEGER>     Ceiling on model turns; 0 is none [else 0]
          --mission-seconds <SECONDS>   Ceiling on time [MISSION_SECONDS]
          --max-tokens-total <INTEGER>  Ceiling on tokens, of requests and replies
          --max-bytes <INTEGER>         Ceiling on bytes of tool results
          --max-cost <AMOUNT>           Ceiling on money, in the currency of the model's price
          --supervisor <WORD>           off, warn or on: what is done about a run that makes no progress [else on]
          --grace <SECONDS>             How long what is in flight may resist when the run ends [else 10]
          --events <-|fd:N|PATH>        Write the event stream there, one JSON object a line [MISSION_EVENTS]
          --control <-|fd:N|PATH>       Take words from there: inject, steer, cancel, cancel_step, gate_decision
                                        [MISSION_CONTROL]
          --control-acks                Answer each of those lines on the event stream
          --tick <SECONDS>              A sign of life on the event stream after so much silence
          --on-reader-gone <WORD>       stop or continue when nobody reads the event stream any more [else
                                        continue]
          --exit-codes <WORD>           outcome: the exit status tells the outcome
          --redact-file <FILE>          Hide each line of this file wherever it turns up [MISSION_REDACT_FILE]
          --redact-evidence             Redact outputs and arguments of tools too
          --resume <ID>                 Carry this run on, as its log has it [MISSION_RESUME]
          --start-or-resume             Begin the run that --run-id names, or carry it on
          --run-id <ID>                 The run of --start-or-resume, `run_NAME`
          --approve <ID>                Approve this, and exit (or: mission approvals)
          --refuse <ID>                 Refuse this, and exit
          --decided-by <WHO>            Who approves or refuses
          --note <TEXT>                 In their words
          --replay <ID|DIR>             Run a recording again: nothing is asked, called or written
                                        [MISSION_REPLAY]

    Model:
          --provider <NAME>       local, openai or scripted [MISSION_PROVIDER, else openai]
          --model <NAME>          The model [LOCAL_MODEL, else the provider's]
          --script <FILE>         What the scripted provider says, a JSON file
          --protocol <WORD>       json or native: how the model is spoken to [MISSION_PROTOCOL, else json]
          --no-stream             Take each reply whole [MISSION_STREAM=off]
          --temperature <NUMBER>  Sampling; not sent unless given
          --top-p <NUMBER>        Sampling; not sent unless given
          --seed <INTEGER>        Sampling; not sent unless given
          --personality <FILE>    Who the model is: a file of TOML, JSON or YAML [MISSION_PERSONALITY]
          --history <FILE>        Earlier turns to begin with, as JSON [MISSION_HISTORY]

    Tools:
          --mcp-stdio <[NAME=]COMMAND>  A tool server to start; again for each further one [MCP_STDIO]
          --mcp-url <[NAME=]URL>        A tool server to reach over HTTP; again for each further one [MCP_URL]
          --mcp-token <TOKEN>           The token of the URL in the same place, '' where it needs none [MCP_TOKEN]
          --mcp-timeout <SECONDS>       How long a server may take to come up or answer [MCP_TIMEOUT_S, else 30]
          --mcp-optional <NAME>         Go on without this server when it does not come up
          --mcp-env <[NAME=]VAR>        Let the servers see this variable, perhaps by another name
          --trust-annotations <NAME>    Believe this server which of its tools may be called twice
          --skill <DIR|FILE|NAME>       SKILL.md, its folder or a shipped skill: only the tools it names, in its
                                        order [MISSION_SKILL]
          --locked                      The tools are those of mission.lock beside the manifest, or nothing is
                                        done
          --tool-limit <INTEGER>        Refuse to offer more tools than these
          --no-grounding                Do without the checks of answers that the skill asks for

    Gates:
          --gate-tool <NAME>        This tool needs a person's approval; again for each further one
          --gate <WORD>             So do tools that are destructive, open-world or all-writes
          --gate-wait <SECONDS>     Wait so long for a decision before the run ends [MISSION_GATE_WAIT]
          --gate-time <WORD>        free: waiting at a gate is no time of the run
          --gate-expires <SECONDS>  An approval can be decided and spent for so long
          --approval <ID>           The approved call that this run may make [MISSION_APPROVAL]

    Policy:
          --profile <NAME>          safe, dev, research, ops or god: each grants more scopes than the one before
                                    [MISSION_PROFILE, else safe]
          --grant <SCOPE[,SCOPE…]>  Grant this scope too; again for each further one
          --policy <FILE>           Rules that narrow further what may be called (mission schema policy has their
                                    form)

    Other:
      -h, --help     Print this, or with a verb what it takes
      -V, --version  Print the version

    Verbs:
      run        Carries out an objective: `mission run [flags] -- TEXT`.
      demo       Carries out a mission with a scripted model and a tool server of its own.
      tools      Lists the tools that servers offer.
      runs       Lists, shows, follows, exports and prunes runs.
      approvals  Lists, shows and decides what waits for a person.
      skill      Checks a skill, against tool servers where some are named.
      lock       Writes down the tools of a skill as its servers define them now, for `--locked`.
      policy     Says what the profile, the grants and the policy file say about a call.
      verify     Checks the logs of runs, line by line.
      replay     Runs recordings again and reports drift.
      schema     Prints the JSON Schema of a record, or the names of all.
      contract   Prints this vocabulary and the limits.
      conform    Holds a recorded stream to the contract, a line a problem.

    A flag beats its variable, given in brackets. `mission contract` prints every flag, variable and exit code.
    ");
}

#[test]
fn every_verb_has_its_own_help() {
    insta::assert_snapshot!(help(Some(Verb::Tools)), @"
    Lists the tools that servers offer.

    Usage: mission tools [OPTIONS]

    Tools:
          --mcp-stdio <[NAME=]COMMAND>  A tool server to start; again for each further one [MCP_STDIO]
          --mcp-url <[NAME=]URL>        A tool server to reach over HTTP; again for each further one [MCP_URL]
          --mcp-token <TOKEN>           The token of the URL in the same place, '' where it needs none [MCP_TOKEN]
          --mcp-timeout <SECONDS>       How long a server may take to come up or answer [MCP_TIMEOUT_S, else 30]
          --mcp-optional <NAME>         Go on without this server when it does not come up
          --mcp-env <[NAME=]VAR>        Let the servers see this variable, perhaps by another name

    Output:
          --json  Print one JSON object
    ");
    insta::assert_snapshot!(help(Some(Verb::Demo)), @"
    Carries out a mission with a scripted model and a tool server of its own.

    Usage: mission demo [OPTIONS]

    Options:
          --protocol <WORD>       json or native: how the model is spoken to [default: json]
          --keep <DIR>            Put the skill, the script and the run there [else .mission]
          --events <-|fd:N|PATH>  Write the event stream there [MISSION_EVENTS]
          --no-stream             Take each reply whole
    ");
    insta::assert_snapshot!(help(Some(Verb::Conform)), @"
    Holds a recorded stream to the contract, a line a problem.

    Usage: mission conform [FILE]

    Arguments:
      [FILE]  A recorded event stream [else standard input]
    ");
    insta::assert_snapshot!(help(Some(Verb::Schema)), @"
    Prints the JSON Schema of a record, or the names of all.

    Usage: mission schema [NAME]

    Arguments:
      [NAME]  A record, `log-line`, `control` or `stream`; without it the names are listed
    ");
    insta::assert_snapshot!(help(Some(Verb::Contract)), @"
    Prints this vocabulary and the limits.

    Usage: mission contract
    ");
    assert_eq!(help(Some(Verb::Run)), help(None));
}

#[test]
fn the_flags_of_the_verbs_are_those_that_are_published() {
    use mission_contract::vocabulary::VERB_FLAGS;
    fn of<T: Args>(verb: Verb) -> Command {
        verb_command::<T>(verb.name(), verb.meaning())
    }
    let commands = RunsVerb::ALL.into_iter().map(|verb| (verb.name(), runs_command(verb))).chain([
        ("verify", of::<VerifyArguments>(Verb::Verify)),
        ("tools", of::<ToolsArguments>(Verb::Tools)),
        ("demo", of::<DemoArguments>(Verb::Demo)),
        ("schema", of::<SchemaArguments>(Verb::Schema)),
        ("conform", of::<ConformArguments>(Verb::Conform)),
    ]);
    for (verb, command) in commands {
        let own: Vec<(String, bool)> = command
            .get_arguments()
            .filter_map(|arg| Some((format!("--{}", arg.get_long()?), arg.get_action().takes_values())))
            .filter(|(flag, _)| !FLAGS.iter().any(|known| known.name == flag))
            .collect();
        let published: Vec<(String, bool)> =
            VERB_FLAGS.iter().filter(|flag| flag.verb == verb).map(|flag| (flag.name.to_owned(), flag.value.is_some())).collect();
        assert_eq!(own, published, "mission {verb}");
    }
}

#[test]
fn the_words_behind_runs_are_told_apart() {
    let read = |words: &[&str]| {
        read_runs(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
            .map(|read| read.map(|(verb, rest)| (verb.name(), rest.join(" "))))
    };
    assert_eq!(read(&["list"]).unwrap(), Some(("runs list", String::new())));
    assert_eq!(read(&["--json", "show", "run_1"]).unwrap(), Some(("runs show", "--json run_1".to_owned())));
    assert_eq!(read(&["--help"]).unwrap(), None);
    insta::assert_snapshot!(read(&[]).unwrap_err(), @"`mission runs` needs a word: list, show, follow, export, prune");
    insta::assert_snapshot!(read(&["remove", "run_1"]).unwrap_err(), @"`remove` is nothing that `mission runs` does; it does list, show, follow, export, prune");
    insta::assert_snapshot!(help(Some(Verb::Runs)), @"
    Lists, shows, follows, exports and prunes runs.

    Usage: mission runs WORD …

    Words:
      list    Every run, newest first, without reading a log.
      show    One run as a timeline, or the prompt of a step.
      follow  The records of a run as they become durable, until it ends.
      export  A run's records, or the files of the harness before.
      prune   Removes runs that have ended.

    Each has a help of its own: mission runs WORD --help
    ");
    insta::assert_snapshot!(runs_help(RunsVerb::Export), @"
    A run's records, or the files of the harness before.

    Usage: mission runs export [OPTIONS] [RUN]

    Arguments:
      [RUN]  A run's id, its folder or its log

    Options:
          --format <seed2|ndjson>  The files of the harness before, or the records as they went out
          --output <PATH|->        A new folder for seed2 [else the run's id]; a new file for ndjson [else
                                   standard output]
    ");
    insta::assert_snapshot!(help(Some(Verb::Verify)), @"
    Checks the logs of runs, line by line.

    Usage: mission verify [OPTIONS] [RUN|FILE]...

    Arguments:
      [RUN|FILE]...  A run's id, its folder or its log; or an audit file

    Options:
          --head <SHA256>  The sum of a line that the log or the audit file is known to hold
    ");
}
