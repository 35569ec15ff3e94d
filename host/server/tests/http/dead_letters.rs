//! Dead letters: the summary, redrive, discard.

use serde_json::json;

use crate::harness::Server;

const DEAD: &str = "/v1/queues/oncue.dead-letter";

/// Puts a message that a consumer gives back once and for all; its id.
async fn dead(server: &Server, queue: &str, detail: &str) -> String {
    let id = server.put(queue, &[], "a").await;
    let got = server
        .post(&format!("/v1/queues/{queue}/get"))
        .await
        .is(200);
    let lease = got.header("oncue-lease").to_owned();
    server
        .post(&format!("/v1/leases/{lease}/nack?reason={detail}"))
        .await
        .is(204);
    id
}

async fn started() -> Server {
    let server = Server::start().await;
    let once = json!({ "trigger": "none", "backout-threshold": 1 });
    for queue in ["q", "r"] {
        let path = format!("/v1/queues/{queue}");
        server.json("PUT", &path, once.clone()).await.is(201);
    }
    server
}

#[tokio::test]
async fn dead_letters_go_back() {
    let server = started().await;
    let id = dead(&server, "q", "no").await;
    let shown = server.get(&format!("{DEAD}/messages/{id}")).await.is(200);
    assert_eq!(shown.header("oncue-dead-letter-queue"), "q");
    assert_eq!(shown.header("oncue-dead-letter-reason"), "consumer");
    let page = server.get(&format!("{DEAD}/messages")).await.is(200).json();
    assert_eq!(page["messages"][0]["dead-letter"]["detail"], "no");
    let redrive = format!("{DEAD}/redrive");
    for none in [
        json!({ "from": "other" }),
        json!({ "reason": "trapped" }),
        json!({ "ids": ["0".repeat(24)] }),
    ] {
        let answer = server.json("POST", &redrive, none).await.is(200).json();
        assert_eq!(
            answer,
            json!({ "redriven": 0, "stayed": 0, "compiling": [] })
        );
    }
    let wrong = json!({ "ids": ["66"], "form": "q", "reason": "traped" });
    let problem = server.json("POST", &redrive, wrong).await;
    let faults = problem.problem(400, "invalid-json")["faults"].to_string();
    assert!(faults.contains("did you mean \\\"trapped\\\"?"), "{faults}");
    let mine = json!({ "ids": [id], "from": "q", "reason": "consumer", "detail": "n" });
    let answer = server.json("POST", &redrive, mine).await.is(200).json();
    assert_eq!(
        answer,
        json!({ "redriven": 1, "stayed": 0, "compiling": [] })
    );
    assert_eq!(server.ids("q").await, [id]);
}

#[tokio::test]
async fn dead_letters_are_summed_up_and_discarded() {
    let server = started().await;
    let empty = server.get("/v1/dead-letters").await.is(200).json();
    assert_eq!(empty["groups"], json!([]));
    dead(&server, "q", "first").await;
    let last = dead(&server, "q", "second").await;
    dead(&server, "r", "third").await;
    let view = server.get("/v1/dead-letters").await.is(200).json();
    let groups = view["groups"].as_array().expect("groups");
    assert_eq!((groups.len(), &view["scanned"]), (2, &json!(3)));
    assert_eq!(
        (
            &groups[0]["queue"],
            &groups[0]["reason"],
            &groups[0]["count"]
        ),
        (&json!("q"), &json!("consumer"), &json!(2))
    );
    assert_eq!(
        (&groups[0]["message"], &groups[0]["detail"]),
        (&json!(last), &json!("second"))
    );
    server
        .get("/v1/dead-letters?queue=nowhere")
        .await
        .problem(404, "unknown-queue");

    let discard = format!("{DEAD}/discard");
    let of_q = json!({ "from": "q" });
    let answer = server.json("POST", &discard, of_q).await.is(200).json();
    assert_eq!(answer, json!({ "discarded": 2, "stayed": 0 }));
    let answer = server.post(&discard).await.is(200).json();
    assert_eq!(answer["discarded"], 1);
    let view = server.get("/v1/dead-letters").await.is(200).json();
    assert_eq!(view["scanned"], 0);
}
