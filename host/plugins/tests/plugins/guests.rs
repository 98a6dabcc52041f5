//! Makes components: the contract gives the signatures, a test gives the bodies that matter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use plimsoll_plugins::egress::InProcess;
use plimsoll_plugins::observer::{Event, Recorder};
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::restart::RestartPolicy;
use plimsoll_plugins::{HostOptions, Kind, Origin, Plugin, PluginHost, Provider, Source};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WasmExport, WasmExportKind, WorldItem};

/// Where answers that are all zero lie: results that are ok, and everything in them empty.
const ZEROS: u32 = 1024;
/// Where data of a test may lie.
pub(crate) const DATA: u32 = 4096;

/// Imports of `wasi:http` that a guest needs to send a request; see [`Guest::asks`].
const HTTP: &str = r#"
(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
(import "wasi:http/types@0.2.12" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))
(import "wasi:http/types@0.2.12" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]outgoing-request.set-authority"
  (func $set_authority (param i32 i32 i32 i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]outgoing-request.set-path-with-query"
  (func $set_path (param i32 i32 i32 i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]outgoing-request.set-scheme"
  (func $set_scheme (param i32 i32 i32 i32 i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]future-incoming-response.get" (func $get (param i32 i32)))
(import "wasi:http/outgoing-handler@0.2.12" "handle" (func $handle (param i32 i32 i32 i32)))
(import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))
"#;

/// A component in the making.
#[derive(Clone)]
pub(crate) struct Guest {
    world: &'static str,
    mixins: Vec<&'static str>,
    bodies: BTreeMap<String, String>,
    imports: String,
    rest: String,
    edits: Vec<(&'static str, &'static str)>,
    manifest: Option<String>,
}

impl Guest {
    /// A provider whose answers are all empty.
    pub(crate) fn provider() -> Self {
        Self::of("cloud-provider")
    }
    /// An expander whose answer is empty.
    pub(crate) fn expander() -> Self {
        Self::of("expander")
    }
    fn of(world: &'static str) -> Self {
        Self {
            world,
            mixins: vec![],
            bodies: BTreeMap::new(),
            imports: String::new(),
            rest: String::new(),
            edits: vec![],
            manifest: None,
        }
    }
    /// Body of an exported function, such as `refresh`; leaves the address of its answer on the stack.
    pub(crate) fn body(mut self, function: &str, body: impl Into<String>) -> Self {
        self.bodies.insert(function.to_owned(), body.into());
        self
    }
    /// Imports in text form.
    pub(crate) fn import(mut self, text: &str) -> Self {
        self.imports.push_str(text);
        self
    }
    /// More of the module: functions, globals, data.
    pub(crate) fn with(mut self, text: impl AsRef<str>) -> Self {
        self.rest.push_str(text.as_ref());
        self
    }
    /// An optional ability.
    pub(crate) fn mixin(mut self, world: &'static str) -> Self {
        self.mixins.push(world);
        self
    }
    /// Builds for a contract with this change in its text.
    pub(crate) fn contract_edit(mut self, from: &'static str, to: &'static str) -> Self {
        self.edits.push((from, to));
        self
    }
    /// A manifest inside the core module.
    pub(crate) fn manifest(mut self, json: &str) -> Self {
        self.manifest = Some(json.to_owned());
        self
    }
    /// A function `$ask` that sends a request to `https://AUTHORITY` with a header and leaves the answer in memory: the
    /// byte at the returned address is 1 if there is one, then 0 ok / 1 error at +8 …, as the contract lays it out.
    pub(crate) fn asks(self, scheme: u32, authority: &str, header: Option<(&str, &str)>) -> Self {
        let (name, value) = header.unwrap_or_default();
        let at = [DATA, DATA + 256, DATA + 512];
        let append = if header.is_some() {
            format!(
                "(call $append (local.get $fields) (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {}) \
                 (i32.const {}))",
                at[1],
                name.len(),
                at[2],
                value.len(),
                DATA + 1024
            )
        } else {
            String::new()
        };
        self.import(HTTP).with(format!(
            r#"
(data (i32.const {a0}) "{authority}") (data (i32.const {a1}) "{name}") (data (i32.const {a2}) "{value}")
(data (i32.const {path}) "/")
(func $ask (result i32) (local $fields i32) (local $request i32) (local $future i32)
  (local.set $fields (call $fields))
  {append}
  (local.set $request (call $request (local.get $fields)))
  (drop (call $set_scheme (local.get $request) (i32.const 1) (i32.const {scheme}) (i32.const 0) (i32.const 0)))
  (drop (call $set_authority (local.get $request) (i32.const 1) (i32.const {a0}) (i32.const {length})))
  (drop (call $set_path (local.get $request) (i32.const 1) (i32.const {path}) (i32.const 1)))
  (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const {handled}))
  (if (i32.load8_u (i32.const {handled})) (then unreachable))
  (local.set $future (i32.load (i32.const {future})))
  (call $block (call $subscribe (local.get $future)))
  (call $get (local.get $future) (i32.const {answer}))
  (i32.const {answer}))
"#,
            a0 = at[0],
            a1 = at[1],
            a2 = at[2],
            path = DATA + 768,
            length = authority.len(),
            handled = DATA + 1152,
            future = DATA + 1160,
            answer = DATA + 1280,
        ))
    }

    fn contract(&self) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v0");
        copy(&source, folder.path(), &self.edits);
        let path = folder.path().to_owned();
        (folder, path)
    }

    /// The component.
    pub(crate) fn build(&self) -> Vec<u8> {
        let (_folder, path) = self.contract();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(&path).unwrap();
        let world = if self.mixins.is_empty() {
            resolve.select_world(&[package], Some(self.world)).unwrap()
        } else {
            let version = resolve.packages[package].name.version.clone().unwrap();
            let include = |world: &str| format!("include autoscaler:plugin/{world}@{version};");
            let includes: String = self.mixins.iter().copied().chain([self.world]).map(include).collect();
            let text = format!("package test:guest; world guest {{ {includes} }}");
            let package = resolve.push_str("guest.wit", &text).unwrap();
            resolve.select_world(&[package], Some("guest")).unwrap()
        };
        let mut module = wat::parse_str(self.text(&resolve, world)).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
    }

    fn text(&self, resolve: &Resolve, world: wit_parser::WorldId) -> String {
        let mut text = format!("(module {}\n", self.imports);
        let mut unused: Vec<_> = self.bodies.keys().cloned().collect();
        for (key, item) in &resolve.worlds[world].exports {
            let WorldItem::Interface { id, .. } = item else { continue };
            for function in resolve.interfaces[*id].functions.values() {
                let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
                let name = resolve.wasm_export_name(
                    ManglingAndAbi::Legacy(LiftLowerAbi::Sync),
                    WasmExport::Func { interface: Some(key), func: function, kind: WasmExportKind::Normal },
                );
                let types = |kind: &str, types: &[WasmType]| match types {
                    [] => String::new(),
                    types => format!("({kind} {})", types.iter().map(word).collect::<Vec<_>>().join(" ")),
                };
                let fallback =
                    if signature.results.is_empty() { String::new() } else { format!("(i32.const {ZEROS})") };
                let body = self.bodies.get(&function.name).unwrap_or(&fallback);
                unused.retain(|name| *name != function.name);
                let (params, results) = (types("param", &signature.params), types("result", &signature.results));
                text.push_str(&format!("(func (export {name:?}) {params} {results} {body})\n"));
            }
        }
        assert_eq!(unused, Vec::<String>::new(), "bodies of functions that the world does not have");
        if !self.rest.contains("\"memory\"") {
            text.push_str("(memory (export \"memory\") 4)\n");
        }
        if !self.rest.contains("\"cabi_realloc\"") {
            text.push_str(REALLOC);
        }
        text.push_str(&self.rest);
        if let Some(manifest) = &self.manifest {
            text.push_str(&format!("(@custom \"autoscaler:plugin\" \"{}\")", manifest.escape_default()));
        }
        text.push(')');
        text
    }
}

/// Never frees; asks for more memory when it must.
const REALLOC: &str = r#"
(global $heap (mut i32) (i32.const 65536))
(func (export "cabi_realloc") (param $old i32) (param $size i32) (param $align i32) (param $new i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
  (global.set $heap (i32.add (local.get $at) (local.get $new)))
  (block $enough
    (br_if $enough (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
    (br_if $enough (i32.ne (i32.const -1)
      (memory.grow (i32.add (i32.div_u (local.get $new) (i32.const 65536)) (i32.const 1)))))
    unreachable)
  (local.get $at))
"#;

fn word(ty: &WasmType) -> &'static str {
    match ty {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
    }
}

fn copy(from: &Path, to: &Path, edits: &[(&str, &str)]) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&path, &target, &[]);
        } else {
            let mut text = std::fs::read_to_string(&path).unwrap();
            for (from, to) in edits {
                text = text.replace(from, to);
            }
            std::fs::write(target, text).unwrap();
        }
    }
}

/// A source with a name, as if read from a file.
pub(crate) fn source(name: &str, kind: Option<Kind>, bytes: Vec<u8>) -> Source {
    Source { name: name.into(), origin: Origin::File(format!("{name}.wasm").into()), kind, bytes: Cow::Owned(bytes) }
}

/// A host, and what it noticed.
pub(crate) fn host() -> (PluginHost, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let options = HostOptions { observer: recorder.clone(), ..HostOptions::default() };
    (PluginHost::new(options).unwrap(), recorder)
}

pub(crate) async fn load(host: &PluginHost, name: &str, guest: &Guest) -> Plugin {
    host.load(source(name, None, guest.build()), None).await.unwrap()
}

/// A network in which every request is answered with 200.
pub(crate) fn network() -> InProcess {
    InProcess::new(|_| async { Response::new(Bytes::from_static(b"hello")) })
}

/// Options for a provider that restarts at once.
pub(crate) fn options() -> ProviderOptions {
    let mut options = ProviderOptions::new(Setup::default(), Arc::new(network()));
    options.restarts = RestartPolicy::immediate();
    options
}

/// A provider in service, its host's observer, and its options changed by `adjust`.
pub(crate) async fn provider(guest: &Guest, adjust: impl FnOnce(&mut ProviderOptions)) -> (Provider, Arc<Recorder>) {
    let (host, recorder) = host();
    let plugin = load(&host, "guest", guest).await;
    let mut options = options();
    adjust(&mut options);
    (Provider::spawn(&host, &plugin, options).unwrap(), recorder)
}

/// The texts of log lines.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match event {
        Event::Log { message, .. } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(line).collect()
}
