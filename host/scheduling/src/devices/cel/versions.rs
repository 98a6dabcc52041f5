//! Versions in expressions (apiserver CEL library `semver`).

use std::cmp::Ordering;
use std::sync::LazyLock;

use cel::common::types::{self, CelBool, CelInt, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// A version as in semver 2.0.0.
#[derive(Clone, Debug)]
pub(super) struct Version(semver::Version);

const NAME: &str = "kubernetes.Semver";

static TYPE: LazyLock<Type> = LazyLock::new(|| Type::new_opaque_type(NAME));

impl Version {
    /// Reads a version.
    pub(super) fn of(text: &str) -> Option<Self> {
        semver::Version::parse(text).ok().map(Self)
    }

    /// Reads a version that may begin with `v`, leave away minor and patch, and have zeros in front of numbers.
    fn normalized(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
        let mut parts: Vec<&str> = core.split('.').collect();
        if parts.len() > 3 || (parts.len() < 3 && !rest.is_empty()) {
            return None;
        }
        parts.resize(3, "0");
        let bare = |part: &&str| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            digits => digits.to_owned(),
        };
        let core: Vec<String> = parts.iter().map(bare).collect();
        Self::of(&format!("{}{rest}", core.join(".")))
    }
}

impl StaticVal for Version {}

impl Val for Version {
    fn get_type(&self) -> &Type {
        &TYPE
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0.cmp_precedence(&other.0) == Ordering::Equal)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

type Given<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn read(arguments: &[CowVal<'_, '_>]) -> Option<Version> {
    let text = arguments.first().and_then(|text| text.downcast_ref::<CelString<'_>>()).map_or("", |text| text.inner());
    let normalize = arguments.get(1).and_then(|switch| switch.downcast_ref::<CelBool>());
    if normalize.is_some_and(|switch| *switch.inner()) { Version::normalized(text) } else { Version::of(text) }
}

fn version<'a>(arguments: &'a [CowVal<'_, '_>], index: usize) -> Option<&'a semver::Version> {
    arguments.get(index)?.downcast_ref::<Version>().map(|version| &version.0)
}

fn order(arguments: &[CowVal<'_, '_>]) -> Ordering {
    match (version(arguments, 0), version(arguments, 1)) {
        (Some(one), Some(other)) => one.cmp_precedence(other),
        _ => Ordering::Equal,
    }
}

fn yes<'b, 'v>(yes: bool) -> Given<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(yes)))
}

fn part<'b, 'v>(arguments: &[CowVal<'b, 'v>], part: fn(&semver::Version) -> u64) -> Given<'b, 'v> {
    let number = version(arguments, 0).map_or(0, part);
    Ok(CowVal::owned(CelInt::from(i64::try_from(number).unwrap_or(i64::MAX))))
}

fn parse<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    match read(&arguments) {
        Some(version) => Ok(CowVal::owned(version)),
        None => Err(ExecutionError::function_error("semver", "not a version as in semver 2.0.0")),
    }
}

fn is_version<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    yes(read(&arguments).is_some())
}

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let own = || Type::new_opaque_type(NAME);
    let text = || vec![types::STRING_TYPE];
    let with_switch = || vec![types::STRING_TYPE, types::BOOL_TYPE];
    env.add_overload("semver", "string_to_semver", text(), parse)?;
    env.add_overload("semver", "string_bool_to_semver", with_switch(), parse)?;
    env.add_overload("isSemver", "is_semver_string", text(), is_version)?;
    env.add_overload("isSemver", "is_semver_string_bool", with_switch(), is_version)?;
    env.add_member_overload("compareTo", "semver_compare_to", own(), vec![own()], |arguments| {
        Ok(CowVal::owned(CelInt::from(order(&arguments) as i64)))
    })?;
    env.add_member_overload("isLessThan", "semver_is_less_than", own(), vec![own()], |arguments| {
        yes(order(&arguments) == Ordering::Less)
    })?;
    env.add_member_overload("isGreaterThan", "semver_is_greater_than", own(), vec![own()], |arguments| {
        yes(order(&arguments) == Ordering::Greater)
    })?;
    env.add_member_overload("major", "semver_major", own(), vec![], |arguments| part(&arguments, |v| v.major))?;
    env.add_member_overload("minor", "semver_minor", own(), vec![], |arguments| part(&arguments, |v| v.minor))?;
    env.add_member_overload("patch", "semver_patch", own(), vec![], |arguments| part(&arguments, |v| v.patch))
}
