//! Pages of a list.
#![allow(clippy::unwrap_used)]

use super::super::exchange::tests::answer_line;
use super::*;

fn page(pages: &mut Pages, body: &str) -> Result<bool, Trouble> {
    pages.take(&answer_line(&format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#)))
}

fn result(pages: &mut Pages, tools: &str, next: &str) -> Result<bool, Trouble> {
    page(pages, &format!(r#""result":{{"tools":[{tools}],"nextCursor":{next}}}"#))
}

fn because(trouble: Result<bool, Trouble>) -> String {
    match trouble.unwrap_err() {
        Trouble::Because(why) => why,
        other => format!("{other:?}"),
    }
}

#[test]
fn every_page_is_read_to_the_last() {
    let mut pages = Pages::default();
    assert_eq!(pages.cursor.clone(), None);
    assert_eq!(result(&mut pages, r#"{"name":"b","inputSchema":{}}"#, r#""""#), Ok(false));
    assert_eq!(pages.cursor.clone().as_deref(), Some(""), "an empty cursor is one");
    assert_eq!(result(&mut pages, r#"{"name":"a","inputSchema":{}},{"name":7}"#, r#""p\u0032""#), Ok(false));
    assert_eq!(pages.cursor.clone().as_deref(), Some("p2"));
    assert_eq!(result(&mut pages, r#"{"name":"c","inputSchema":{}}"#, "null"), Ok(true));
    let listing = definitions("s", pages.raw, false);
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let told: Vec<&str> = listing.notices.iter().map(|(what, _)| *what).collect();
    assert_eq!(told, ["tool_undescribed", "tool_undescribed", "tool_refused", "tool_undescribed"]);
}

#[test]
fn a_list_without_an_end_is_an_error() {
    let mut pages = Pages::default();
    assert_eq!(result(&mut pages, "", r#""x""#), Ok(false));
    insta::assert_snapshot!(because(result(&mut pages, "", r#""x""#)), @r#"names the page "x" of its list twice: the list would have no end"#);
    let mut pages = Pages::default();
    for number in 1..limits::MCP_LIST_PAGES {
        assert_eq!(result(&mut pages, "", &format!(r#""{number}""#)), Ok(false));
    }
    insta::assert_snapshot!(because(result(&mut pages, "", r#""last""#)), @"has more than 100 pages in its list of tools, which are allowed");
    let large = format!(r#"{{"name":"t","description":"{}"}}"#, "x".repeat(1 << 20));
    let mut pages = Pages::default();
    for number in 0..63 {
        assert_eq!(result(&mut pages, &large, &format!(r#""{number}""#)), Ok(false));
    }
    insta::assert_snapshot!(because(result(&mut pages, &large, "null")), @"lists more than 67108864 bytes of tools, which are allowed");
    let many = vec![r#"{"name":"t"}"#; 4_097].join(",");
    insta::assert_snapshot!(because(result(&mut Pages::default(), &many, "null")), @"lists more than 4096 tools, which are allowed");
}

#[test]
fn one_bad_definition_costs_no_other() {
    let mut pages = Pages::default();
    let tools = r#"{"name":"good","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":"x"},17,{"name":"good","inputSchema":{"type":"object"}},
        {"name":"good","inputSchema":{}},{"name":"bare"}"#;
    assert_eq!(result(&mut pages, tools, "null"), Ok(true));
    let listing = definitions("s", pages.raw, false);
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["bare"]);
    let notices: Vec<String> = listing.notices.iter().map(|(what, detail)| format!("{what}: {detail}")).collect();
    insta::assert_snapshot!(notices.join("\n"), @r#"
    tool_undescribed: The tool `good` has no description; the model is told its name and its arguments alone.
    tool_refused: The tool `bad` is refused: its inputSchema is no object.
    tool_refused: A tool is refused: its definition is no object. Its definition begins with "17"
    tool_refused: The tool `good` is refused: it is defined twice, and not in the same way.
    tool_repaired: The tool `bare` has no inputSchema; it is taken to have no arguments.
    tool_undescribed: The tool `bare` has no description; the model is told its name and its arguments alone.
    "#);
}

#[test]
fn what_is_no_list_is_told() {
    insta::assert_snapshot!(because(page(&mut Pages::default(), r#""result":{"content":[]}"#)), @"answers tools/list with something that has no tools");
    insta::assert_snapshot!(because(page(&mut Pages::default(), r#""result":{"tools":{}}"#)), @"answers tools/list with something that is no list of tools: invalid type: map, expected a sequence at line 1 column 9");
    insta::assert_snapshot!(because(page(&mut Pages::default(), r#""result":{"resultType":"later","tools":[]}"#)), @r#"answers tools/list with a result of the type "later", which is not known"#);
    insta::assert_snapshot!(because(result(&mut Pages::default(), "", "7")), @"names a next page in its list by something that is no text");
    insta::assert_snapshot!(because(page(&mut Pages::default(), r#""error":{"code":-32603,"message":"broken"}"#)), @"answers tools/list with error -32603: broken");
    assert_eq!(page(&mut Pages::default(), r#""error":{"code":-32601,"message":"no"}"#), Err(Trouble::NoTools));
    let mut later = Pages::default();
    result(&mut later, "", r#""x""#).unwrap();
    assert!(matches!(page(&mut later, r#""error":{"code":-32602,"message":"cursor"}"#), Err(Trouble::StaleCursor(_))));
}

#[test]
fn a_list_has_a_size() {
    let large = format!(r#"{{"name":"t","description":"{}"}}"#, "d".repeat(8 << 20));
    let mut pages = Pages::default();
    for page in 0..7 {
        assert_eq!(result(&mut pages, &large, &format!("\"{page}\"")), Ok(false));
    }
    assert!(matches!(result(&mut pages, &large, "null"), Err(Trouble::Because(why)) if why.contains("67108864 bytes")));
}
