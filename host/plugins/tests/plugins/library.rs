//! Expanders as files: what serves while files come, go, break and are replaced.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use plimsoll_core::ranking::RankingFailure;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::folder::FileWatch;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::{Event, Recorder};
use plimsoll_plugins::{Kind, Library, PluginHost};

use crate::expander::request;
use crate::guests::{DATA, Guest, host};

/// Gives option 0 this score.
fn scoring(score: u32) -> Vec<u8> {
    Guest::expander()
        .body(
            "rank",
            format!(
                "(f64.store (i32.const {}) (f64.const {score})) (i32.store (i32.const {}) (i32.const {}))
                 (i32.store (i32.const {}) (i32.const 1)) (i32.const {DATA})",
                DATA + 72,
                DATA + 4,
                DATA + 64,
                DATA + 8
            ),
        )
        .build()
}

static EMBEDDED: LazyLock<Vec<u8>> = LazyLock::new(|| scoring(1));

struct Shelf {
    host: PluginHost,
    recorder: Arc<Recorder>,
    library: Library,
    folder: tempfile::TempDir,
}

impl Shelf {
    /// A library with the embedded expander `lot`, a folder, and a chain.
    async fn new(chain: &[&str], prepare: impl FnOnce(&Path), config: &str) -> Self {
        Self::with(chain, prepare, config, false).await
    }

    async fn with(chain: &[&str], prepare: impl FnOnce(&Path), config: &str, in_background: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let (host, recorder) = host();
        let chain: Vec<_> = chain.iter().map(|name| (*name).to_owned()).collect();
        let config = config.replace("FOLDER", folder.path().to_str().unwrap());
        let options = LibraryOptions {
            embedded: vec![("lot", EMBEDDED.as_slice())],
            folder: Some(folder.path().to_owned()),
            config: PluginConfig::parse("plugins.yaml", &config).unwrap(),
            in_background,
        };
        let library = Library::open(&host, &chain, options).await;
        Self { host, recorder, library, folder }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    async fn score(&self, name: &str) -> Result<f64, String> {
        match self.library.rank(name, &request(1)).await {
            Ok(verdicts) => Ok(verdicts[0].score),
            Err(failure) => Err(failure.to_string().replace(self.folder.path().to_str().unwrap(), "FOLDER")),
        }
    }

    /// What happened since the last time, shortened.
    fn events(&self) -> Vec<String> {
        let folder = self.folder.path().to_str().unwrap();
        let short = |event: Event| match event {
            Event::Loaded { origin, .. } => format!("loaded {origin}"),
            Event::Rejected { origin, reason, .. } => format!("rejected {origin}: {reason}"),
            Event::FellBack { to, reason, .. } => format!("fell back to {}: {reason}", to.unwrap_or("nothing".into())),
            Event::Warning { message, .. } => format!("warning: {message}"),
            other => format!("{other:?}"),
        };
        self.recorder.take().into_iter().map(|event| short(event).replace(folder, "FOLDER")).collect()
    }
}

#[tokio::test]
async fn a_file_replaces_the_embedded_one_and_gives_its_place_back() {
    let shelf = Shelf::new(&["lot"], |_| {}, "").await;
    assert_eq!((shelf.score("lot").await, shelf.events()), (Ok(1.0), vec!["loaded built in".into()]));

    shelf.write("lot.wasm", &scoring(2));
    assert_eq!(shelf.score("lot").await, Ok(1.0), "nothing changes before the driver looks");
    shelf.library.poll().await;
    assert_eq!((shelf.score("lot").await, shelf.events()), (Ok(2.0), vec!["loaded FOLDER/lot.wasm".into()]));

    shelf.library.poll().await;
    assert_eq!(shelf.events(), Vec::<String>::new(), "nothing changed");

    shelf.write("lot.wasm", &scoring(3));
    shelf.library.poll().await;
    assert_eq!((shelf.score("lot").await, shelf.events()), (Ok(3.0), vec!["loaded FOLDER/lot.wasm".into()]));

    std::fs::remove_file(shelf.folder.path().join("lot.wasm")).unwrap();
    shelf.library.poll().await;
    let expected = vec!["loaded built in".into(), "fell back to built in: FOLDER/lot.wasm is gone".to_owned()];
    assert_eq!((shelf.score("lot").await, shelf.events()), (Ok(1.0), expected));
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_is_told_once() {
    let shelf = Shelf::new(&["lot"], |_| {}, "").await;
    shelf.write("lot.wasm", &scoring(2));
    shelf.library.poll().await;
    shelf.events();

    let half = scoring(3);
    shelf.write("lot.wasm", &half[..half.len() / 2]);
    shelf.library.poll().await;
    shelf.library.poll().await;
    let events = shelf.events();
    assert_eq!((shelf.score("lot").await, events.len()), (Ok(2.0), 1), "{events:?}");
    assert!(events[0].starts_with("rejected FOLDER/lot.wasm: plugin \"lot\" cannot be used: "), "{events:?}");

    // A copy that was not finished when the driver looked is taken once it is.
    shelf.write("lot.wasm", &half);
    shelf.library.poll().await;
    assert_eq!(shelf.score("lot").await, Ok(3.0));

    shelf.write("lot.wasm", b"rubbish");
    shelf.library.poll().await;
    shelf.write("lot.wasm", &half);
    shelf.library.poll().await;
    assert_eq!(shelf.score("lot").await, Ok(3.0));
    assert_eq!(shelf.events().len(), 2, "loaded and rejected; what served before needs no second load");
}

#[tokio::test]
async fn at_start_a_bad_file_leaves_the_place_to_the_embedded_one() {
    let shelf = Shelf::new(&["lot"], |folder| std::fs::write(folder.join("lot.wasm"), "#!/bin/sh").unwrap(), "").await;
    assert_eq!(shelf.score("lot").await, Ok(1.0));
    assert_eq!(
        shelf.events(),
        [
            "rejected FOLDER/lot.wasm: plugin \"lot\" cannot be used: FOLDER/lot.wasm is a text file that begins with \
         \"#!/bin/sh\"; expected a WebAssembly component (.wasm)",
            "loaded built in",
        ]
    );
    shelf.library.poll().await;
    assert_eq!(shelf.events(), Vec::<String>::new());
}

#[tokio::test]
async fn in_the_background_the_old_one_serves_until_the_new_one_is_compiled() {
    let shelf = Shelf::with(&["lot"], |_| {}, "", true).await;
    shelf.write("lot.wasm", &scoring(9));
    shelf.library.poll().await;
    assert_eq!(shelf.score("lot").await, Ok(1.0), "a look does not wait for the compiler");
    while shelf.score("lot").await == Ok(1.0) {
        shelf.library.poll().await;
        tokio::task::yield_now().await;
    }
    assert_eq!(shelf.score("lot").await, Ok(9.0));

    shelf.write("lot.wasm", b"hello");
    shelf.events();
    while shelf.events().is_empty() {
        shelf.library.poll().await;
    }
    assert_eq!(shelf.score("lot").await, Ok(9.0), "a bad file leaves the one that serves");
}

#[tokio::test]
async fn an_expander_that_nobody_has_is_missing_until_its_file_comes() {
    let shelf = Shelf::new(&["mine", "lot"], |_| {}, "").await;
    let reason = "there is no file FOLDER/mine.wasm, and built in are lot";
    assert_eq!(shelf.score("mine").await, Err(format!("expander \"mine\" is not loaded: {reason}")));
    assert_eq!(shelf.events()[1], format!("warning: expander \"mine\" is not loaded: {reason}"));

    shelf.write("mine.wasm", &scoring(9));
    shelf.library.poll().await;
    assert_eq!(shelf.score("mine").await, Ok(9.0));

    std::fs::remove_file(shelf.folder.path().join("mine.wasm")).unwrap();
    shelf.library.poll().await;
    assert_eq!(shelf.score("mine").await, Err("expander \"mine\" is not loaded: FOLDER/mine.wasm is gone".into()));
    assert_eq!(shelf.events().last().unwrap(), "fell back to nothing: FOLDER/mine.wasm is gone");
}

#[tokio::test]
async fn a_bad_file_without_an_embedded_one_is_missing_with_its_reason() {
    let shelf = Shelf::new(&["mine"], |folder| std::fs::write(folder.join("mine.wasm"), "").unwrap(), "").await;
    assert_eq!(
        shelf.score("mine").await,
        Err("expander \"mine\" is not loaded: plugin \"mine\" cannot be used: FOLDER/mine.wasm is empty; expected a \
             WebAssembly component"
            .into())
    );
}

#[tokio::test]
async fn only_the_chain_is_loaded() {
    let shelf = Shelf::new(&["lot"], |folder| std::fs::write(folder.join("mine.wasm"), "").unwrap(), "").await;
    let failure = shelf.library.rank("mine", &request(1)).await.unwrap_err();
    assert_eq!(failure, RankingFailure::Missing { name: "mine".into(), reason: "it is not in the chain".into() });
    assert_eq!(shelf.events(), ["loaded built in"]);
}

#[tokio::test]
async fn a_file_that_the_configuration_names_wins_over_the_folder() {
    let shelf = Shelf::new(
        &["lot"],
        |folder| {
            std::fs::write(folder.join("lot.wasm"), scoring(2)).unwrap();
            std::fs::write(folder.join("other.wasm"), scoring(5)).unwrap();
        },
        "plugins: {lot: {file: FOLDER/other.wasm}}",
    )
    .await;
    assert_eq!(shelf.score("lot").await, Ok(5.0));
}

#[tokio::test]
async fn a_provider_in_the_place_of_an_expander_is_rejected() {
    let bytes = Guest::provider().build();
    let shelf = Shelf::new(&["lot"], |folder| std::fs::write(folder.join("lot.wasm"), bytes).unwrap(), "").await;
    assert_eq!(shelf.score("lot").await, Ok(1.0));
    assert!(shelf.events()[0].contains("it is a cloud provider"), "told why");
}

#[tokio::test]
async fn a_folder_is_loaded_file_by_file() {
    let shelf = Shelf::new(&[], |_| {}, "").await;
    shelf.write("b-cloud.wasm", &Guest::provider().build());
    shelf.write("a-lot.wasm", &scoring(1));
    shelf.write("c-broken.wasm", b"\0asm");
    shelf.write(".hidden.wasm", b"");
    shelf.write("readme.txt", b"");
    let loaded = shelf.host.load_folder(shelf.folder.path(), &PluginConfig::default()).await.unwrap();
    let told: Vec<_> = loaded
        .iter()
        .map(|loaded| match loaded {
            Ok(plugin) => format!("{}: {}", plugin.name(), plugin.kind()),
            Err(error) => format!("{}: bad", error.plugin),
        })
        .collect();
    assert_eq!(told, ["a-lot: expander", "b-cloud: cloud-provider", "c-broken: bad"]);
}

#[tokio::test]
async fn the_file_of_a_provider_is_watched() {
    let shelf = Shelf::new(&[], |_| {}, "").await;
    let (old, new) = (Guest::provider().build(), Guest::provider().mixin("pricing-mixin").build());
    shelf.write("cloud.wasm", &old);
    let path = shelf.folder.path().join("cloud.wasm");
    let plugin = shelf.host.load_file("cloud", &path, Some(Kind::CloudProvider), None).await.unwrap();
    let mut watch = FileWatch::of(&plugin).unwrap();
    assert!(watch.poll(&shelf.host, None).await.is_none());
    shelf.write("cloud.wasm", &new);
    let changed = watch.poll(&shelf.host, None).await.unwrap().unwrap();
    assert_ne!(changed.sha256(), plugin.sha256());
    assert!(watch.poll(&shelf.host, None).await.is_none());
    std::fs::remove_file(&path).unwrap();
    assert!(watch.poll(&shelf.host, None).await.unwrap().is_err());
    assert!(watch.poll(&shelf.host, None).await.is_none(), "told once");
    shelf.write("cloud.wasm", &new);
    assert!(watch.poll(&shelf.host, None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_compiled_plugin_is_found_again_by_the_next_host() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path().join("compiled")).unwrap().count();
    for _ in 0..2 {
        let cache = plimsoll_plugins::cache::CompileCache::open(folder.path().join("compiled")).unwrap();
        let options = plimsoll_plugins::HostOptions { cache: Some(cache), ..Default::default() };
        let host = plimsoll_plugins::PluginHost::new(options).unwrap();
        host.load(crate::guests::source("good", None, crate::guests::Guest::provider().build()), None).await.unwrap();
        assert_eq!(files(), 1);
    }
}
