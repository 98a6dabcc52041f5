//! Whether pods that are placed can make room for others: then a node that refuses a pod need not refuse the next one.

use plimsoll_model::Symbol;
use plimsoll_model::devices::DeviceSelector;
use plimsoll_model::symbol::known;
use rustc_hash::FxHashMap;

use crate::devices::cel::Answer;
use crate::devices::problem;
use crate::devices::wants::Wants;
use crate::snapshot::base::Base;
use crate::snapshot::topology::KeyId;

/// What was met so far, and whether verdicts may shift because of it.
#[derive(Debug, Default)]
pub(super) struct Shifting {
    /// Whether pods of some class may come into each other's way from node to node.
    links: bool,
    /// Whether some class asks for devices in such a way that more pods can make room for it: a claim that is shared goes
    /// where its first pod goes, a claim to all is for fewer where others take parts, and a device of which a selector
    /// cannot say whether it matches is in nobody's way once it is taken.
    fickle: bool,
    /// Whether there is such a device, for a device class and selectors.
    unclear: FxHashMap<(Symbol, Box<[DeviceSelector]>), bool>,
    /// How many templates were looked at for that.
    shapes: usize,
    /// The key of host names, under which verdicts shift.
    key: Option<KeyId>,
    /// How often pods that matter here came or went.
    moves: u64,
}

impl Shifting {
    /// Looks at what a new class wants. True if classes that were prepared before may shift now.
    pub(super) fn meet(&mut self, base: &Base<'_>, wants: &Wants, linked: bool) -> bool {
        let before = (self.links, self.fickle);
        self.links |= linked;
        self.look(base, wants);
        before != (self.links, self.fickle)
    }

    /// A class is about to be asked about. Templates may have come since it was met.
    pub(super) fn prepare(&mut self, base: &mut Base<'_>, wants: &Wants, may_pick: bool, gives_back: bool) {
        self.look(base, wants);
        if self.key.is_none() && may_pick && (self.links || gives_back) {
            self.key = Some(base.key(known::HOSTNAME));
        }
    }

    /// Some pod came or went.
    pub(super) fn note_move(&mut self) {
        self.moves = self.moves.wrapping_add(1);
    }

    /// A number that changes with each move.
    pub(super) fn moves(&self) -> u64 {
        self.moves
    }

    /// The key of host names, if it is needed.
    pub(super) fn key(&self) -> Option<KeyId> {
        self.key
    }

    /// Whether more pods on a node can make room there.
    pub(super) fn is_fickle(&self) -> bool {
        self.fickle
    }

    /// Whether pods placed on other nodes may make room for pods that are to be given devices. `gives_back`: they have
    /// claims with devices already, which nobody else has once they are placed.
    pub(super) fn concerns(&self, gives_back: bool) -> bool {
        self.fickle && (self.links || gives_back)
    }

    fn look(&mut self, base: &Base<'_>, wants: &Wants) {
        self.fickle = self.fickle || self.makes_room(base, wants);
    }

    fn makes_room(&mut self, base: &Base<'_>, wants: &Wants) -> bool {
        let devices = &base.facts.cluster.devices;
        if !wants.shared.is_empty() || wants.own.iter().any(|spec| problem::takes_all(&devices.specs[*spec])) {
            return true;
        }
        // Where no claim matters to several nodes, a selector can only matter on the very node that a pod comes to.
        let may_link = !base.facts.inventory.is_local() || self.links || !base.facts.given_back.is_empty();
        may_link && problem::asks(&base.facts, wants).into_iter().any(|asked| self.is_unclear(base, asked))
    }

    /// Whether selectors cannot say of some device whether it matches.
    fn is_unclear(&mut self, base: &Base<'_>, (class, selectors): (Symbol, &[DeviceSelector])) -> bool {
        let facts = &base.facts;
        let Some(of_class) = facts.cluster.devices.classes.get(&class) else { return false };
        if self.shapes != base.shapes.len() {
            self.shapes = base.shapes.len();
            self.unclear.clear();
        }
        *self.unclear.entry((class, selectors.into())).or_insert_with(|| {
            let own = base.shapes.iter().flat_map(|(_, shape)| &shape.slices);
            let slices = facts.cluster.devices.slices.iter().chain(own);
            let mut devices = slices.flat_map(|slice| slice.devices.iter().map(|device| (slice.driver, device)));
            let asked: Vec<&DeviceSelector> = of_class.selectors.iter().chain(selectors).collect();
            devices.any(|(driver, device)| {
                asked.iter().any(|selector| match selector {
                    DeviceSelector::Cel(text) => {
                        matches!(facts.selectors.ask(*text, driver, device, facts.symbols()), Answer::Error(_))
                    }
                    DeviceSelector::Unknown => false,
                })
            })
        })
    }
}
