//! Expanders: a pure function from the host's point of view.

use std::time::Duration;

use plimsoll_core::ranking::{Amounts, GrowthOption, RankRequest, RankingFailure, Shape, Usage, Verdict};
use plimsoll_plugins::expander::{ExpanderOptions, RoleError};
use plimsoll_plugins::{Expander, Kind};

use crate::guests::{DATA, Guest, host, load};

pub(crate) fn request(options: usize) -> RankRequest {
    let amounts = |cores: u64| Amounts { cpu_milli: cores * 1000, memory_bytes: cores << 32, ..Amounts::default() };
    let option = |index: usize| {
        let (wanted, offered) = (6, 8 + index as u64 % 7);
        let wasted = ((offered - wanted) * 1_000_000 / offered) as u32;
        GrowthOption {
            group: format!("pool-{index}").as_str().into(),
            node_count: 1 + index as u32,
            target_size: 3,
            max_size: 10,
            pods: vec![(0, 6)],
            shape: Shape {
                instance_type: format!("standard-{offered}"),
                capacity: amounts(offered),
                allocatable: amounts(offered),
                labels: vec![("pool".into(), format!("p{index}")), ("secret".into(), "x".into())],
                ..Shape::default()
            },
            usage: Usage {
                wanted: amounts(wanted),
                offered: amounts(offered),
                wasted: amounts(offered - wanted),
                wasted_cpu_micro: wasted,
                wasted_memory_micro: wasted,
            },
            cost: None,
            priority: None,
            exists: true,
            similar: vec![],
        }
    };
    RankRequest {
        options: (0..options).map(option).collect(),
        pod_classes: vec![plimsoll_core::ranking::PodClass {
            label: "shop/ReplicaSet/web".into(),
            pending: 6,
            requests: amounts(1),
            priority: 0,
        }],
        cluster_nodes: 3,
        seed: 7,
        deadline: Duration::from_millis(500),
    }
}

/// Answers with these verdicts: index and score as text.
fn answering(verdicts: &[(u32, &str)]) -> Guest {
    let (answer, list) = (DATA, DATA + 64);
    let store: String = verdicts
        .iter()
        .enumerate()
        .map(|(n, (index, score))| {
            let at = list + 32 * n as u32;
            format!(
                "(i32.store (i32.const {at}) (i32.const {index})) (f64.store (i32.const {}) (f64.const {score}))",
                at + 8
            )
        })
        .collect();
    let count = verdicts.len();
    Guest::expander().body(
        "rank",
        format!(
            "{store} (i32.store (i32.const {}) (i32.const {list})) (i32.store (i32.const {}) (i32.const {count})) \
             (i32.const {answer})",
            answer + 4,
            answer + 8
        ),
    )
}

async fn expander(guest: &Guest) -> Expander {
    let (host, _) = host();
    let plugin = load(&host, "lot", guest).await;
    Expander::new(&host, &plugin, ExpanderOptions::default()).unwrap()
}

#[tokio::test]
async fn scores_come_back_by_index() {
    let verdicts = expander(&answering(&[(2, "0.5"), (0, "-3")])).await.rank(&request(3)).await.unwrap();
    let verdict = |index, score| Verdict { index, score, reason: None };
    assert_eq!(verdicts, [verdict(2, 0.5), verdict(0, -3.0)]);
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    assert_eq!(expander(&Guest::expander()).await.rank(&request(3)).await, Ok(vec![]));
}

#[rstest::rstest]
#[case::twice(answering(&[(1, "1"), (1, "2")]), "it scores option 1 twice")]
#[case::beyond(answering(&[(3, "1")]), "it scores option 3, but there are only 3")]
#[case::not_a_number(answering(&[(0, "nan")]), "its score of option 0 is NaN, not a finite number")]
#[tokio::test]
async fn an_answer_that_cannot_be_used_is_not_used(#[case] guest: Guest, #[case] reason: &str) {
    let failure = expander(&guest).await.rank(&request(3)).await.unwrap_err();
    assert_eq!(failure, RankingFailure::Unusable { name: "lot".into(), reason: reason.into() });
}

#[rstest::rstest]
#[case::trap("unreachable", "rank broke off with a bug in the plug-in: wasm `unreachable` instruction executed")]
#[case::spin(
    "(loop $again (br $again)) unreachable",
    "rank took longer than 500 ms and was stopped; it was still computing"
)]
#[case::memory(
    "(if (i32.eq (memory.grow (i32.const 65000)) (i32.const -1)) (then unreachable)) (i32.const 1024)",
    "rank was stopped: the plug-in needed more than 128 MiB of memory; if it really needs that, raise \
     plugins.lot.limits.memory-mib"
)]
// Result is an error: class quota, scope provider, no code, no message.
#[case::report(
    "(i32.store8 (i32.const 1024) (i32.const 1)) (i32.store8 (i32.const 1028) (i32.const 1)) (i32.const 1024)",
    "rank reports quota: "
)]
#[tokio::test]
async fn a_failure_is_told_and_the_next_question_is_answered(#[case] body: &str, #[case] reason: &str) {
    // Misbehaves only if there are three options: the length of the list is the second argument.
    let body = format!("(if (i32.ne (local.get 1) (i32.const 3)) (then (return (i32.const 2048)))) {body}");
    let expander = expander(&Guest::expander().body("rank", body)).await;
    let failure = expander.rank(&request(3)).await.unwrap_err();
    assert_eq!(failure, RankingFailure::Failed { name: "lot".into(), reason: reason.into() });
    assert_eq!(expander.rank(&request(2)).await, Ok(vec![]));
}

#[tokio::test]
async fn nothing_is_remembered_between_decisions() {
    // Scores option 0 with how often this memory was asked.
    let guest = Guest::expander().body(
        "rank",
        format!(
            "(i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (i32.const 1)))
             (f64.store (i32.const {}) (f64.convert_i32_u (i32.load (i32.const 16))))
             (i32.store (i32.const {}) (i32.const {}))
             (i32.store (i32.const {}) (i32.const 1))
             (i32.const {DATA})",
            DATA + 72,
            DATA + 4,
            DATA + 64,
            DATA + 8
        ),
    );
    let expander = expander(&guest).await;
    for _ in 0..3 {
        assert_eq!(expander.rank(&request(1)).await.unwrap()[0].score, 1.0);
    }
}

#[tokio::test]
async fn chance_and_time_come_from_the_question() {
    // Scores option 0 with a random number plus the time.
    let guest = Guest::expander()
        .contract_edit(
            "  include expander-host;",
            "  include expander-host; import wasi:random/random@0.2.12; import wasi:clocks/wall-clock@0.2.12;",
        )
        .import(
            r#"(import "wasi:random/random@0.2.12" "get-random-u64" (func $random (result i64)))
               (import "wasi:clocks/wall-clock@0.2.12" "now" (func $now (param i32)))"#,
        )
        .body(
            "rank",
            format!(
                "(call $now (i32.const 512))
                 (f64.store (i32.const {}) (f64.convert_i64_u (i64.add (call $random) (i64.load (i32.const 512)))))
                 (i32.store (i32.const {}) (i32.const {}))
                 (i32.store (i32.const {}) (i32.const 1))
                 (i32.const {DATA})",
                DATA + 72,
                DATA + 4,
                DATA + 64,
                DATA + 8
            ),
        );
    let expander = expander(&guest).await;
    let first = expander.rank(&request(1)).await.unwrap();
    assert_eq!(expander.rank(&request(1)).await.unwrap(), first);
    let other = RankRequest { seed: 8, ..request(1) };
    assert_ne!(expander.rank(&other).await.unwrap(), first);
}

#[tokio::test]
async fn only_labels_that_the_manifest_asks_for_are_handed_over() {
    // Scores option 0 with the number of labels in its shape. Options lie at the first argument; the offset of the list
    // of labels in an option follows from the contract.
    let guest = |manifest: Option<&str>| {
        let guest = Guest::expander().body(
            "rank",
            format!(
                "(f64.store (i32.const {}) (f64.convert_i32_u (i32.load (i32.add (local.get 0) (i32.const {})))))
                 (i32.store (i32.const {}) (i32.const {}))
                 (i32.store (i32.const {}) (i32.const 1))
                 (i32.const {DATA})",
                DATA + 72,
                labels_offset() + 4,
                DATA + 4,
                DATA + 64,
                DATA + 8
            ),
        );
        match manifest {
            Some(manifest) => guest.manifest(manifest),
            None => guest,
        }
    };
    for (manifest, expected) in
        [(None, 0.0), (Some(r#"{"labels": ["pool"]}"#), 1.0), (Some(r#"{"labels": ["pool", "secret"]}"#), 2.0)]
    {
        let expander = expander(&guest(manifest)).await;
        assert_eq!(expander.rank(&request(1)).await.unwrap()[0].score, expected, "{manifest:?}");
    }
}

/// Where the labels of a growth option lie, by the contract's own layout.
fn labels_offset() -> usize {
    let mut resolve = wit_parser::Resolve::default();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v0");
    resolve.push_dir(folder).unwrap();
    let mut sizes = wit_parser::SizeAlign::default();
    sizes.fill(&resolve);
    let field = |record: &str, field: &str| {
        let (_, def) = resolve.types.iter().find(|(_, def)| def.name.as_deref() == Some(record)).unwrap();
        let wit_parser::TypeDefKind::Record(record) = &def.kind else { panic!("{record} is a record") };
        let offsets = sizes.field_offsets(record.fields.iter().map(|field| &field.ty));
        let at = record.fields.iter().position(|other| other.name == field).unwrap();
        offsets[at].0.size_wasm32()
    };
    field("growth-option", "shape") + field("template-shape", "labels")
}

#[tokio::test]
async fn a_provider_is_no_expander() {
    let (host, _) = host();
    let plugin = load(&host, "cloud", &Guest::provider()).await;
    let error = Expander::new(&host, &plugin, ExpanderOptions::default()).err().unwrap();
    let (found, wanted) = (Kind::CloudProvider, Kind::Expander);
    assert_eq!(error, RoleError::WrongKind { plugin: "cloud".into(), found, wanted });
    assert_eq!(error.to_string(), "plugin \"cloud\" is a cloud provider, not an expander");
}
