//! Lists page by page: each entry once, in the order that was asked for, and no cursor but theirs.

use oncue_server::auth::identity::{Grants, Role};
use serde_json::{Value, json};

use crate::guarded::{Guarded, grants};
use crate::harness::Server;

/// All pages of a list; how long each was. `next` is followed to the end.
async fn pages(server: &Server, list: &str, query: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut all, mut lengths, mut cursor) = (Vec::new(), Vec::new(), String::new());
    for _ in 0..100 {
        let path = format!("/v1/{list}?{query}{cursor}");
        let page = server.get(&path).await.is(200).json();
        let found = page[list].as_array().expect("a list");
        lengths.push(found.len());
        all.extend(found.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (all, lengths),
        }
    }
    panic!("the pages of {list} have no end");
}

fn names(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .map(|entry| entry["name"].as_str().expect("a name"))
        .collect()
}

/// A server with five queues that hold as many messages as their number says.
async fn with_depths() -> Server {
    let server = Server::start().await;
    for (queue, depth) in [("a", 2), ("b", 0), ("c", 3), ("Da", 2), ("e", 1)] {
        server.queue(queue).await;
        for _ in 0..depth {
            server.put(queue, &[], "x").await;
        }
    }
    server
}

#[tokio::test]
async fn queues_come_in_pages_as_they_are_asked_for() {
    let server = with_depths().await;
    let check = async |query: &str, wanted: &[&str], lengths: &[usize]| {
        let (all, found) = pages(&server, "queues", query).await;
        assert_eq!(names(&all), wanted, "{query}");
        assert_eq!(found, lengths, "{query}");
    };
    let mut by_name = [
        "Da",
        "a",
        "b",
        "c",
        "e",
        "oncue.dead-letter",
        "oncue.replies",
    ];
    check("max=7", &by_name, &[7]).await;
    check("max=4", &by_name, &[4, 3]).await;
    by_name.reverse();
    check("max=1&order=descending", &by_name, &[1; 7]).await;
    // The deepest first; those that are equal by name, also over the end of a page.
    let deepest = ["c", "Da", "a", "e"];
    check("sort=depth&hide-empty=true&max=2", &deepest, &[2, 2]).await;
    check("sort=depth&hide-empty=true&max=3", &deepest, &[3, 1]).await;
    let least = ["e", "Da", "a", "c"];
    let query = "sort=depth&hide-empty=true&max=1&order=ascending";
    check(query, &least, &[1; 4]).await;
    check("search=A&max=1", &["Da", "a", "oncue.dead-letter"], &[1; 3]).await;
    check("search=nothing", &[], &[0]).await;
    let page = server.get("/v1/queues?search=a&max=1").await.is(200).json();
    assert_eq!(
        (&page["matching"], &page["defined"]),
        (&json!(3), &json!(7))
    );
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended_whatever_came_and_went() {
    let server = with_depths().await;
    let page = server.get("/v1/queues?max=2").await.is(200).json();
    assert_eq!(
        names(page["queues"].as_array().expect("a list")),
        ["Da", "a"]
    );
    let next = page["next"].as_str().expect("a cursor");
    server.delete("/v1/queues/b").await.is(204);
    server.queue("A").await;
    server.queue("cc").await;
    let path = format!("/v1/queues?max=9&cursor={next}");
    let page = server.get(&path).await.is(200).json();
    let rest = page["queues"].as_array().expect("a list");
    assert_eq!(
        names(rest),
        ["c", "cc", "e", "oncue.dead-letter", "oncue.replies"]
    );
    // The last one of a page may be gone itself.
    server.delete("/v1/queues/a?force=true").await.is(204);
    let page = server.get(&path).await.is(200).json();
    assert_eq!(page["queues"][0]["name"], "c");
}

#[tokio::test]
async fn ages_that_grow_from_page_to_page_lose_no_queue() {
    let server = Server::start().await;
    for queue in ["a", "b", "c", "d"] {
        server.queue(queue).await;
    }
    for queue in ["c", "a", "d"] {
        server.put(queue, &[], "x").await;
        server.clock.advance(2);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..6 {
        let path = format!("/v1/queues?sort=oldest-age&max=1{cursor}");
        let page = server.get(&path).await.is(200).json();
        seen.push(
            page["queues"][0]["name"]
                .as_str()
                .expect("a name")
                .to_owned(),
        );
        let next = page["next"].as_str().map(|next| format!("&cursor={next}"));
        cursor = next.unwrap_or_default();
        server.clock.advance(1_000);
    }
    assert_eq!(
        seen,
        ["c", "a", "d", "b", "oncue.dead-letter", "oncue.replies"]
    );
}

#[tokio::test]
async fn processes_and_plugins_come_in_pages() {
    let server = Server::start().await;
    let all = ["a", "b", "c"];
    for process in all {
        let path = format!("/v1/processes/{process}");
        server.json("PUT", &path, json!({})).await.is(201);
    }
    for max in 1..4 {
        let (found, _) = pages(&server, "processes", &format!("max={max}")).await;
        assert_eq!(names(&found), all, "pages of {max}");
    }
    crate::tasks::plugin(&server).await;
    let (found, lengths) = pages(&server, "plugins", "max=1").await;
    assert_eq!((names(&found), lengths), (vec!["p"], vec![1]));
}

/// A cursor of each list.
async fn cursors(server: &Server) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for path in [
        "/v1/queues?max=1",
        "/v1/queues?max=1&sort=depth",
        "/v1/queues?max=1&search=a",
        "/v1/processes?max=1",
        "/v1/queues/a/messages?max=1",
        "/v1/queues/c/messages?max=1",
    ] {
        let page = server.get(path).await.is(200).json();
        let next = page["next"].as_str().expect("there are more");
        all.push((path, next.to_owned()));
    }
    all
}

#[tokio::test]
async fn a_cursor_that_is_mangled_or_of_another_list_is_refused() {
    let server = with_depths().await;
    for process in ["p", "r"] {
        let path = format!("/v1/processes/{process}");
        server.json("PUT", &path, json!({})).await.is(201);
    }
    let cursors = cursors(&server).await;
    for (path, cursor) in &cursors {
        server.get(&format!("{path}&cursor={cursor}")).await.is(200);
        let others = cursors.iter().filter(|(other, _)| other != path);
        let foreign = others.map(|(_, cursor)| cursor.clone());
        let digit = |at: usize| {
            let mut bytes = cursor.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            String::from_utf8(bytes).expect("ASCII")
        };
        let mangled = (0..cursor.len()).map(digit);
        let cut = (0..cursor.len()).map(|at| cursor[..at].to_owned());
        for bad in foreign.chain(mangled).chain(cut) {
            let answered = server.get(&format!("{path}&cursor={bad}")).await;
            answered.problem(400, "invalid-cursor");
        }
    }
    let twice = server.get("/v1/queues?cursor=a&cursor=b").await;
    twice.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn wrong_parameters_of_a_list_are_told_all_at_once() {
    let server = Server::start().await;
    let path = "/v1/queues?max=0&sort=dept&order=up&hide-empty=yes&limit=5";
    let problem = server.get(path).await.problem(400, "invalid-parameter");
    assert_eq!(
        problem["faults"].as_array().map(Vec::len),
        Some(5),
        "{problem:#}"
    );
    let told = problem.to_string();
    assert!(told.contains("did you mean \\\"depth\\\"?"), "{problem:#}");
    for list in ["processes", "plugins"] {
        let path = format!("/v1/{list}?max=1001");
        server.get(&path).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn pages_and_their_numbers_are_of_what_an_identity_sees() {
    let shop = ("shop", Role::Application, grants(&["a", "b"], &[], &[]));
    let nobody = ("nobody", Role::Application, Grants::default());
    let (guarded, _, made) = Guarded::with(&[shop, nobody]).await;
    let page = guarded.call(&made[0], "GET", "/v1/queues?max=1").await;
    let page = page.is(200).json();
    assert_eq!(page["queues"][0]["name"], "a");
    assert_eq!(
        (&page["matching"], &page["defined"]),
        (&json!(2), &json!(2))
    );
    let next = page["next"].as_str().expect("a cursor");
    let path = format!("/v1/queues?max=1&cursor={next}");
    let page = guarded.call(&made[0], "GET", &path).await.is(200).json();
    assert_eq!(page["queues"][0]["name"], "b");
    assert_eq!(page.get("next"), None);
    let none = guarded.call(&made[1], "GET", "/v1/queues").await;
    let none = none.is(200).json();
    assert_eq!(none, json!({ "queues": [], "matching": 0, "defined": 0 }));
}
