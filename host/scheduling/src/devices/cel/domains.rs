//! Attributes or capacities of a device, by domain and name.

use std::collections::HashMap;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Sizer};
use cel::common::types::{self, CelMap, CelMapKey, CelString, Type};
use cel::common::value::{CowVal, Val};

/// A map by domain, in which every domain can be found: those that the device has nothing of are empty.
#[derive(Clone, Debug)]
pub(super) struct Domains(CelMap<'static>);

/// Values by name.
pub(super) type Entries = HashMap<CelMapKey<'static>, Box<dyn Val>>;

impl Domains {
    /// From names with or without domain; those without belong to the driver.
    pub(super) fn new<'a>(driver: &'a str, values: impl Iterator<Item = (&'a str, Box<dyn Val>)>) -> Self {
        let mut domains: HashMap<&str, Entries> = HashMap::new();
        // Names that spell out the driver win over those that leave it away.
        let (plain, qualified): (Vec<_>, Vec<_>) = values.partition(|(name, _)| !name.contains('/'));
        for (name, value) in plain.into_iter().chain(qualified) {
            let (domain, id) = name.split_once('/').unwrap_or((driver, name));
            domains.entry(domain).or_default().insert(id.to_owned().into(), value);
        }
        let entries: Entries = domains
            .into_iter()
            .map(|(domain, entries)| {
                let map: Box<dyn Val> = Box::new(CelMap::from(entries));
                (domain.to_owned().into(), map)
            })
            .collect();
        Self(CelMap::from(entries))
    }
}

impl Val for Domains {
    fn get_type(&self) -> &Type {
        &types::MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &types::MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.0.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        self.0.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.0.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.0.equals(other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for Domains {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match Indexer::get(&self.0, index) {
            Err(ExecutionError::NoSuchKey(_)) if index.downcast_ref::<CelString<'_>>().is_some() => {
                Ok(CowVal::owned(CelMap::default()))
            }
            found => found,
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match Indexer::get(&*self, index) {
            Ok(found) => Ok(found.into_owned().clone_as_boxed()),
            Err(error) => Err(error),
        }
    }
}
