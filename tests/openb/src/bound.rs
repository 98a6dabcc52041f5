//! How few machines could possibly do: for each resource on its own, as if pods could be cut into pieces.

use std::collections::BTreeSet;
use std::fmt;

use crate::trace::{Shape, Task};

/// A lower bound by one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The resource, such as `cpu`, or `gpu T4|P100` for pods that only these models will do for.
    pub resource: String,
    /// What is asked for, of pods that some machine could run.
    pub demand: u64,
    /// What all machines that count have together.
    pub supply: u64,
    /// The fewest machines that have what is asked for, or all of it if there is not enough.
    pub machines: u32,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, demand, supply, machines } = self;
        write!(f, "{resource}: {machines} machines for {demand} of {supply}")
    }
}

/// Lower bounds by cpu (thousandths of a core), memory (MiB) and GPUs. For GPUs there is one for each set of models that
/// some pods insist on, for the pods that nothing outside the set will do for, one for pods that take any, and one that
/// adds up those of single models, which no machine can serve two of. Pods that fit on no machine are left out.
pub fn lower_bounds(shapes: &[(Shape, u32)], tasks: &[Task]) -> Vec<Bound> {
    let served: Vec<_> = tasks.iter().filter(|task| shapes.iter().any(|(shape, _)| task.fits(shape))).collect();
    let everywhere = |_: &Shape| true;
    let mut bounds = vec![
        bound(
            "cpu".to_owned(),
            shapes,
            everywhere,
            |shape| shape.cpu_milli,
            served.iter().map(|task| task.cpu_milli).sum(),
        ),
        bound(
            "memory".to_owned(),
            shapes,
            everywhere,
            |shape| shape.memory_mib,
            served.iter().map(|task| task.memory_mib).sum(),
        ),
    ];
    let of_models = |allowed: Option<&BTreeSet<&str>>, name: String| {
        let counts = |shape: &Shape| allowed.is_none_or(|allowed| allowed.contains(shape.model.as_str()));
        let needs = |task: &Task| {
            allowed.is_none_or(|allowed| {
                !task.models.is_empty() && task.models.iter().all(|model| allowed.contains(model.as_str()))
            })
        };
        let demand = served.iter().filter(|task| needs(task)).map(|task| task.gpus).sum();
        bound(name, shapes, counts, |shape| shape.gpus, demand)
    };
    bounds.push(of_models(None, "gpu".to_owned()));
    let sets: BTreeSet<BTreeSet<&str>> = served
        .iter()
        .filter(|task| !task.models.is_empty() && task.gpus > 0)
        .map(|task| task.models.iter().map(String::as_str).collect())
        .collect();
    let named = |set: &BTreeSet<&str>| format!("gpu {}", set.iter().copied().collect::<Vec<_>>().join("|"));
    let by_set: Vec<_> = sets.iter().map(|set| (set, of_models(Some(set), named(set)))).collect();
    let single = || by_set.iter().filter(|(set, _)| set.len() == 1).map(|(_, bound)| bound);
    bounds.push(Bound {
        resource: "gpu, models apart".to_owned(),
        demand: single().map(|bound| bound.demand).sum(),
        supply: single().map(|bound| bound.supply).sum(),
        machines: single().map(|bound| bound.machines).sum(),
    });
    bounds.extend(by_set.into_iter().map(|(_, bound)| bound));
    bounds
}

/// Takes the largest machines first until they have what is asked for.
fn bound(
    resource: String,
    shapes: &[(Shape, u32)],
    counts: impl Fn(&Shape) -> bool,
    amount: impl Fn(&Shape) -> u64,
    demand: u64,
) -> Bound {
    let mut sizes: Vec<(u64, u32)> = shapes
        .iter()
        .filter(|(shape, _)| counts(shape))
        .map(|(shape, count)| (amount(shape), *count))
        .filter(|&(size, _)| size > 0)
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let supply = sizes.iter().map(|&(size, count)| size * u64::from(count)).sum();
    let mut left = demand.min(supply);
    let mut machines = 0;
    for (size, count) in sizes {
        let needed = left.div_ceil(size).min(u64::from(count));
        left = left.saturating_sub(needed * size);
        machines += u32::try_from(needed).unwrap_or(count);
    }
    Bound { resource, demand, supply, machines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cpu_milli: u64, gpus: u64, model: &str) -> Shape {
        Shape { cpu_milli, memory_mib: cpu_milli, gpus, model: model.to_owned() }
    }

    fn task(cpu_milli: u64, gpus: u64, models: &[&str]) -> Task {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        Task { name: String::new(), cpu_milli, memory_mib: 1, gpus, models, span: None }
    }

    fn of(bounds: &[Bound], resource: &str) -> (u64, u64, u32) {
        let found = bounds.iter().find(|bound| bound.resource == resource);
        found
            .map(|bound| (bound.demand, bound.supply, bound.machines))
            .unwrap_or_else(|| panic!("no bound by {resource}"))
    }

    #[test]
    fn the_largest_machines_are_taken_first() {
        let shapes = [(shape(10, 0, ""), 5), (shape(40, 0, ""), 2)];
        for (name, tasks, machines) in [
            ("nothing", vec![], 0),
            ("one large one is enough", vec![task(40, 0, &[])], 1),
            ("a little more", vec![task(40, 0, &[]), task(1, 0, &[])], 2),
            ("all large ones and two small ones", vec![task(40, 0, &[]), task(40, 0, &[]), task(15, 0, &[])], 4),
            ("more than there is", vec![task(40, 0, &[]); 9], 7),
        ] {
            assert_eq!(of(&lower_bounds(&shapes, &tasks), "cpu").2, machines, "{name}");
        }
    }

    #[test]
    fn pods_that_fit_nowhere_ask_for_nothing() {
        let shapes = [(shape(10, 1, "T4"), 5)];
        let tasks = [task(11, 0, &[]), task(5, 2, &[]), task(5, 1, &["A10"]), task(5, 1, &["T4"])];
        let bounds = lower_bounds(&shapes, &tasks);
        assert_eq!(of(&bounds, "cpu"), (5, 50, 1));
        assert_eq!(of(&bounds, "gpu"), (1, 5, 1));
        assert!(bounds.iter().all(|bound| bound.resource != "gpu A10"));
    }

    #[test]
    fn models_bound_each_on_its_own() {
        let shapes =
            [(shape(100, 8, "G2"), 10), (shape(100, 2, "T4"), 10), (shape(100, 4, "P100"), 1), (shape(100, 0, ""), 9)];
        let tasks = [
            vec![task(1, 1, &[]); 3],
            vec![task(1, 1, &["T4"]); 5],
            vec![task(1, 2, &["P100", "T4"]); 2],
            vec![task(1, 8, &["G2"]); 2],
            vec![task(1, 0, &["T4"]); 7],
        ]
        .concat();
        let bounds = lower_bounds(&shapes, &tasks);
        assert_eq!(of(&bounds, "gpu"), (28, 104, 4), "all of them on the largest machines");
        assert_eq!(of(&bounds, "gpu T4"), (5, 20, 3));
        assert_eq!(of(&bounds, "gpu P100|T4"), (9, 24, 4), "those that take T4 alone belong to it too");
        assert_eq!(of(&bounds, "gpu G2"), (16, 80, 2));
        assert_eq!(of(&bounds, "gpu, models apart"), (21, 100, 5));
    }

    #[test]
    fn bounds_can_be_read() {
        let bound = Bound { resource: "gpu T4".to_owned(), demand: 5, supply: 20, machines: 3 };
        assert_eq!(bound.to_string(), "gpu T4: 3 machines for 5 of 20");
    }
}
