//! Dense tables, and the small numbers that index them.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A number that is a position in a [`Table`].
pub(crate) trait Id: Copy {
    /// From a position.
    fn at(index: usize) -> Self;
    /// The position.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $vis:vis $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $vis struct $name(u32);

        impl $crate::table::Id for $name {
            #[allow(clippy::cast_possible_truncation, reason = "no table holds more than 2^32 rows")]
            fn at(index: usize) -> Self {
                Self(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
pub(crate) use ids;

/// Rows that are numbered in the order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Table<I, T> {
    rows: Vec<T>,
    ids: PhantomData<fn(I)>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// The number of the row that is pushed next.
    pub(crate) fn next(&self) -> I {
        I::at(self.rows.len())
    }

    pub(crate) fn push(&mut self, row: T) -> I {
        let id = self.next();
        self.rows.push(row);
        id
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.rows.pop()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.rows.len()).map(I::at)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.rows.iter().enumerate().map(|(index, row)| (I::at(index), row))
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut()
    }

    /// A row, after making it and all before it if they are missing.
    pub(crate) fn grown(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        if self.rows.len() <= id.index() {
            self.rows.resize_with(id.index() + 1, T::default);
        }
        &mut self[id]
    }
}

/// # Panics
///
/// If the row does not exist.
#[allow(clippy::indexing_slicing, reason = "an index operator may panic, and says so")]
impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

#[allow(clippy::indexing_slicing, reason = "an index operator may panic, and says so")]
impl<I: Id, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I: Id, T> FromIterator<T> for Table<I, T> {
    fn from_iter<R: IntoIterator<Item = T>>(rows: R) -> Self {
        Self { rows: rows.into_iter().collect(), ids: PhantomData }
    }
}
