//! How a component differs from the contract, in words. The engine's own words name no record and no field.

use std::collections::BTreeSet;

use wit_parser::{Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldId, WorldItem, WorldKey};

use crate::abi::v0::{PACKAGE, SERVED};
use crate::plugin::Kind;

/// An interface that a component imports or exports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Such as `autoscaler:plugin`; empty for a function or interface without a package.
    pub(crate) package: String,
    /// Such as `provider`.
    pub(crate) interface: String,
    /// Major, minor and patch.
    pub(crate) version: Option<(u64, u64, u64)>,
    id: Option<InterfaceId>,
}

impl Named {
    /// The track within which versions fit: the major, or below 1.0 the minor too.
    fn track(&self) -> Option<(u64, u64)> {
        self.version.map(|(major, minor, _)| if major == 0 { (0, minor) } else { (major, 0) })
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.package.is_empty() {
            write!(f, "{}/", self.package)?;
        }
        f.write_str(&self.interface)?;
        match self.version {
            Some((major, minor, patch)) => write!(f, "@{major}.{minor}.{patch}"),
            None => Ok(()),
        }
    }
}

/// What a component imports and exports.
pub(crate) struct Shape {
    resolve: Resolve,
    pub(crate) imports: Vec<Named>,
    pub(crate) exports: Vec<Named>,
}

impl Shape {
    pub(crate) fn new(resolve: Resolve, world: WorldId) -> Self {
        let (imports, exports) = match resolve.worlds.get(world) {
            Some(world) => (named(&resolve, &world.imports), named(&resolve, &world.exports)),
            None => (vec![], vec![]),
        };
        Self { resolve, imports, exports }
    }

    fn ours<'a>(list: &'a [Named], interface: &str) -> Option<&'a Named> {
        list.iter().find(|named| named.package == PACKAGE && named.interface == interface)
    }

    /// What the exports say it is.
    pub(crate) fn kind(&self) -> Option<Kind> {
        [Kind::CloudProvider, Kind::Expander]
            .into_iter()
            .find(|kind| Self::ours(&self.exports, kind.export()).is_some())
    }

    /// The version of the contract that it was built for.
    pub(crate) fn contract(&self) -> Option<(u64, u64)> {
        let all = self.exports.iter().chain(&self.imports);
        all.filter(|named| named.package == PACKAGE)
            .find_map(|named| named.version)
            .map(|(major, minor, _)| (major, minor))
    }
}

fn named<'a>(resolve: &Resolve, items: impl IntoIterator<Item = (&'a WorldKey, &'a WorldItem)>) -> Vec<Named> {
    let name = |(key, item): (&WorldKey, &WorldItem)| {
        // Types stand beside the functions that use them and are no demand of their own.
        let id = match item {
            WorldItem::Interface { id, .. } => Some(*id),
            WorldItem::Function(_) => None,
            WorldItem::Type { .. } => return None,
        };
        let interface = id.and_then(|id| resolve.interfaces.get(id));
        let package = interface.and_then(|interface| interface.package).and_then(|id| resolve.packages.get(id));
        Some(match (package, interface.and_then(|interface| interface.name.clone())) {
            (Some(package), Some(interface)) => Named {
                package: format!("{}:{}", package.name.namespace, package.name.name),
                interface,
                version: package.name.version.as_ref().map(|version| (version.major, version.minor, version.patch)),
                id,
            },
            _ => Named { package: String::new(), interface: resolve.name_world_key(key), version: None, id },
        })
    };
    items.into_iter().filter_map(name).collect()
}

/// Why a component does not fit, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mismatch {
    pub(crate) problems: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) fix: Option<String>,
}

/// Compares a component with the contract for its kind. `contract` holds the world that it must have first, then those
/// of optional abilities.
pub(crate) fn compare(component: &Shape, kind: Kind, contract: &[Shape]) -> Mismatch {
    let mut found = Mismatch::default();
    let served = format!("{}.{}", SERVED.0, SERVED.1);
    let fix_rebuild = format!("rebuild it with plimsoll-guest {served}");
    let Some((required, optional)) = contract.split_first() else { return found };

    let wanted = kind.export();
    match Shape::ours(&component.exports, wanted) {
        None => {
            match component.kind() {
                Some(other) => {
                    found.problems.push(format!(
                        "it is {}: it exports {PACKAGE}/{}",
                        other.with_article(),
                        other.export()
                    ));
                    found.fix = Some(other.use_instead().to_owned());
                }
                None => {
                    let exports = list(&component.exports);
                    found.problems.push(format!("it does not export {PACKAGE}/{wanted}; it exports {exports}"));
                    found.fix = Some(format!("build it for the world {PACKAGE}/{}", kind.world()));
                }
            }
            return found;
        }
        Some(export) if export.track() != Some(SERVED) => {
            let built = component.contract().map_or_else(|| "no version".to_owned(), |(a, b)| format!("{a}.{b}"));
            found.problems.push(format!("it was built for {PACKAGE} {built}, this host serves {served}"));
            found.fix = Some(format!("{fix_rebuild}, or run a host that serves {built}"));
        }
        Some(_) => {}
    }

    for import in &component.imports {
        if let Some(problem) = unknown_import(import, kind, required) {
            found.problems.push(problem);
        }
    }
    let mut differences =
        Differences { theirs: &component.resolve, ours: &required.resolve, seen: BTreeSet::new(), found: vec![] };
    for export in &required.exports {
        if let Some(theirs) = Shape::ours(&component.exports, &export.interface) {
            differences.interface(theirs, export, Direction::Export, &served);
        }
    }
    for import in &required.imports {
        if let Some(theirs) = Shape::ours(&component.imports, &import.interface) {
            differences.interface(theirs, import, Direction::Import, &served);
        }
    }
    found.problems.append(&mut differences.found);
    if !found.problems.is_empty() && found.fix.is_none() {
        found.fix = Some(fix_rebuild);
    }

    for ability in optional {
        let mut differences =
            Differences { theirs: &component.resolve, ours: &ability.resolve, seen: BTreeSet::new(), found: vec![] };
        for export in &ability.exports {
            let Some(theirs) = Shape::ours(&component.exports, &export.interface) else { continue };
            differences.interface(theirs, export, Direction::Export, &served);
            if theirs.track() != Some(SERVED) || !differences.found.is_empty() {
                found.problems.push(format!("its optional ability {} does not fit", export.interface));
                found.fix.get_or_insert(format!("rebuild it with plimsoll-guest {served}, or without that ability"));
            }
        }
        found.problems.append(&mut differences.found);
    }
    found
}

fn list(named: &[Named]) -> String {
    match named {
        [] => "nothing".to_owned(),
        named => named.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn unknown_import(import: &Named, kind: Kind, required: &Shape) -> Option<String> {
    if import.package == PACKAGE {
        // Other versions are told once, by the export.
        let known = import.interface == "types" || Shape::ours(&required.imports, &import.interface).is_some();
        let offered = list(&required.imports);
        return (!known).then(|| {
            format!("it imports {import}, which {} is not offered; offered are {offered}", kind.with_article())
        });
    }
    if import.package.starts_with("wasi:") {
        if import.track() != Some((0, 2)) {
            return Some(format!("it imports {import}; this host offers WASI 0.2"));
        }
        if import.package == "wasi:http" && kind == Kind::Expander {
            return Some(format!("it imports {import}, but an expander has no network"));
        }
        return None;
    }
    Some(format!("it imports {import}, which this host does not offer"))
}

#[derive(Clone, Copy)]
enum Direction {
    Import,
    Export,
}

/// Where a difference is: a function, and the part of a type that holds what differs.
struct At<'a> {
    place: &'a str,
    part: String,
}

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.place, self.part)
    }
}

struct Differences<'a> {
    theirs: &'a Resolve,
    ours: &'a Resolve,
    /// Types that were compared; each difference is told once.
    seen: BTreeSet<(usize, usize)>,
    found: Vec<String>,
}

impl Differences<'_> {
    fn interface(&mut self, theirs: &Named, ours: &Named, direction: Direction, served: &str) {
        let their_side = theirs.id.and_then(|id| self.theirs.interfaces.get(id));
        let our_side = ours.id.and_then(|id| self.ours.interfaces.get(id));
        let (Some(their_side), Some(our_side)) = (their_side, our_side) else { return };
        let name = &ours.interface;
        let (their_functions, our_functions) = (their_side.functions.clone(), our_side.functions.clone());
        match direction {
            Direction::Export => {
                for (function, ours) in &our_functions {
                    match their_functions.get(function) {
                        Some(theirs) => self.function(theirs, ours, &format!("its export {name}.{function}"), served),
                        None => self.found.push(format!("it does not export {name}.{function}, which {served} has")),
                    }
                }
            }
            Direction::Import => {
                for (function, theirs) in &their_functions {
                    match our_functions.get(function) {
                        Some(ours) => self.function(theirs, ours, &format!("its import {name}.{function}"), served),
                        None => {
                            self.found.push(format!("it imports {name}.{function}, which {served} does not have"));
                        }
                    }
                }
            }
        }
    }

    fn function(&mut self, theirs: &Function, ours: &Function, place: &str, served: &str) {
        let names = |function: &Function| function.params.iter().map(|param| param.name.clone()).collect::<Vec<_>>();
        let (their_names, our_names) = (names(theirs), names(ours));
        if their_names != our_names {
            let (theirs, ours) = (their_names.join(", "), our_names.join(", "));
            self.found.push(format!("{place} takes ({theirs}), {served} says ({ours})"));
            return;
        }
        let takes = At { place: &format!("{place} takes"), part: String::new() };
        for (theirs, ours) in theirs.params.iter().zip(&ours.params) {
            self.types(&theirs.ty, &ours.ty, &takes, served);
        }
        let returns = At { place: &format!("{place} returns"), part: String::new() };
        self.maybe(theirs.result.as_ref(), ours.result.as_ref(), &returns, served);
    }

    fn maybe(&mut self, theirs: Option<&Type>, ours: Option<&Type>, at: &At<'_>, served: &str) {
        match (theirs, ours) {
            (Some(theirs), Some(ours)) => self.types(theirs, ours, at, served),
            (None, None) => {}
            (Some(theirs), None) => {
                let theirs = describe(self.theirs, theirs);
                self.found.push(format!("{at} {theirs}, {served} says nothing"));
            }
            (None, Some(ours)) => {
                let ours = describe(self.ours, ours);
                self.found.push(format!("{at} nothing, {served} says {ours}"));
            }
        }
    }

    fn types(&mut self, theirs: &Type, ours: &Type, at: &At<'_>, served: &str) {
        let (theirs, ours) = (plain(self.theirs, theirs), plain(self.ours, ours));
        let (Type::Id(their_id), Type::Id(our_id)) = (theirs, ours) else {
            if theirs != ours {
                self.other(&theirs, &ours, at, served);
            }
            return;
        };
        if !self.seen.insert((their_id.index(), our_id.index())) {
            return;
        }
        let (Some(their_def), Some(our_def)) = (self.theirs.types.get(their_id), self.ours.types.get(our_id)) else {
            return;
        };
        let (their_kind, our_kind) = (their_def.kind.clone(), our_def.kind.clone());
        let name = our_def.name.clone().unwrap_or_default();
        match (&their_kind, &our_kind) {
            (TypeDefKind::Record(a), TypeDefKind::Record(b)) => {
                let parts = |fields: &[wit_parser::Field]| {
                    fields.iter().map(|field| (field.name.clone(), Some(field.ty))).collect::<Vec<_>>()
                };
                self.parts("record", "field", &name, &parts(&a.fields), &parts(&b.fields), at.place, served);
            }
            (TypeDefKind::Variant(a), TypeDefKind::Variant(b)) => {
                let parts = |cases: &[wit_parser::Case]| {
                    cases.iter().map(|case| (case.name.clone(), case.ty)).collect::<Vec<_>>()
                };
                self.parts("variant", "case", &name, &parts(&a.cases), &parts(&b.cases), at.place, served);
            }
            (TypeDefKind::Enum(a), TypeDefKind::Enum(b)) => {
                let parts = |cases: &[wit_parser::EnumCase]| {
                    cases.iter().map(|case| (case.name.clone(), None)).collect::<Vec<_>>()
                };
                self.parts("enum", "case", &name, &parts(&a.cases), &parts(&b.cases), at.place, served);
            }
            (TypeDefKind::Flags(a), TypeDefKind::Flags(b)) => {
                let parts =
                    |flags: &[wit_parser::Flag]| flags.iter().map(|flag| (flag.name.clone(), None)).collect::<Vec<_>>();
                self.parts("flags", "flag", &name, &parts(&a.flags), &parts(&b.flags), at.place, served);
            }
            (TypeDefKind::Option(a), TypeDefKind::Option(b)) | (TypeDefKind::List(a), TypeDefKind::List(b)) => {
                self.types(a, b, at, served);
            }
            (TypeDefKind::Result(a), TypeDefKind::Result(b)) => {
                self.maybe(a.ok.as_ref(), b.ok.as_ref(), at, served);
                self.maybe(a.err.as_ref(), b.err.as_ref(), at, served);
            }
            (TypeDefKind::Tuple(a), TypeDefKind::Tuple(b)) if a.types.len() == b.types.len() => {
                for (a, b) in a.types.iter().zip(&b.types) {
                    self.types(a, b, at, served);
                }
            }
            (TypeDefKind::Resource, TypeDefKind::Resource) | (TypeDefKind::Handle(_), TypeDefKind::Handle(_)) => {}
            _ => self.other(&theirs, &ours, at, served),
        }
    }

    fn other(&mut self, theirs: &Type, ours: &Type, at: &At<'_>, served: &str) {
        let (theirs, ours) = (describe(self.theirs, theirs), describe(self.ours, ours));
        self.found.push(format!("{at} {theirs}, {served} says {ours}"));
    }

    #[expect(clippy::too_many_arguments, reason = "the two sides, and the words to tell them with")]
    fn parts(
        &mut self,
        what: &str,
        part: &str,
        name: &str,
        theirs: &[(String, Option<Type>)],
        ours: &[(String, Option<Type>)],
        place: &str,
        served: &str,
    ) {
        let lacks = |list: &[(String, Option<Type>)], name: &str| !list.iter().any(|(other, _)| other == name);
        let before = self.found.len();
        for (extra, _) in theirs.iter().filter(|(name, _)| lacks(ours, name)) {
            self.found.push(format!("{place} {what} {name} with a {part} `{extra}` that {served} does not have"));
        }
        for (missing, _) in ours.iter().filter(|(name, _)| lacks(theirs, name)) {
            self.found.push(format!("{place} {what} {name} without the {part} `{missing}` that {served} has"));
        }
        if self.found.len() == before && theirs.iter().zip(ours).any(|((a, _), (b, _))| a != b) {
            self.found.push(format!("{place} {what} {name} with its {part}s in another order than {served} has them"));
        }
        for (part_name, ours) in ours {
            let Some((_, theirs)) = theirs.iter().find(|(name, _)| name == part_name) else { continue };
            let at = At { place, part: format!(" {what} {name} whose {part} `{part_name}` is") };
            self.maybe(theirs.as_ref(), ours.as_ref(), &at, served);
        }
    }
}

/// Follows aliases.
fn plain(resolve: &Resolve, ty: &Type) -> Type {
    let mut ty = *ty;
    while let Type::Id(id) = ty {
        match resolve.types.get(id).map(|def| &def.kind) {
            Some(TypeDefKind::Type(inner)) => ty = *inner,
            _ => break,
        }
    }
    ty
}

fn describe(resolve: &Resolve, ty: &Type) -> String {
    let name = match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(id) => return describe_defined(resolve, *id),
    };
    name.to_owned()
}

fn describe_defined(resolve: &Resolve, id: TypeId) -> String {
    let Some(def) = resolve.types.get(id) else { return "an unknown type".to_owned() };
    if let Some(name) = &def.name {
        return format!("{} {name}", def.kind.as_str());
    }
    let maybe = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| describe(resolve, ty));
    match &def.kind {
        TypeDefKind::Option(inner) => format!("option<{}>", describe(resolve, inner)),
        TypeDefKind::List(inner) => format!("list<{}>", describe(resolve, inner)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", maybe(&result.ok), maybe(&result.err)),
        TypeDefKind::Tuple(tuple) => {
            let types: Vec<_> = tuple.types.iter().map(|ty| describe(resolve, ty)).collect();
            format!("tuple<{}>", types.join(", "))
        }
        TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => describe_defined(resolve, *id),
        TypeDefKind::Type(inner) => describe(resolve, inner),
        kind => kind.as_str().to_owned(),
    }
}
