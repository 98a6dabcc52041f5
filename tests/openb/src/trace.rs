//! The rows of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde::Deserialize;

/// A row that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A table that is not as expected.
    #[error("cannot read the table of {what}: {source}; expected the columns {columns}")]
    Table {
        /// Machines or pods.
        what: &'static str,
        /// What was met.
        source: csv::Error,
        /// The columns that are read.
        columns: &'static str,
    },
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Machine {
    /// Thousandths of a core.
    pub cpu_milli: u64,
    /// MiB.
    pub memory_mib: u64,
    /// GPUs.
    #[serde(rename = "gpu")]
    pub gpus: u64,
    /// Model of the GPUs; empty if there are none.
    pub model: String,
}

/// What machines have in common that can stand for one another. The largest come last.
pub type Shape = Machine;

/// A pod of the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Thousandths of a core.
    pub cpu_milli: u64,
    /// MiB.
    pub memory_mib: u64,
    /// Whole GPUs; a share of one is rounded up to one.
    pub gpus: u64,
    /// Models of GPUs that will do, each once, sorted; empty: any, and none if it needs no GPU.
    pub models: Vec<String>,
    /// When it was made and when it was deleted, in seconds since the beginning of the trace, if the table tells.
    pub span: Option<(u64, u64)>,
}

#[derive(Deserialize)]
struct TaskRow {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    num_gpu: u64,
    gpu_milli: u64,
    gpu_spec: String,
    #[serde(default)]
    creation_time: Option<u64>,
    #[serde(default)]
    deletion_time: Option<u64>,
}

/// Reads the table of machines.
///
/// # Errors
///
/// If a column is missing or a figure is no whole number.
pub fn machines(table: impl Read) -> Result<Vec<Machine>, TraceError> {
    rows(table, "machines", "cpu_milli, memory_mib, gpu and model")
}

/// Reads the table of pods.
///
/// # Errors
///
/// If a column is missing or a figure is no whole number.
pub fn tasks(table: impl Read) -> Result<Vec<Task>, TraceError> {
    let columns = "name, cpu_milli, memory_mib, num_gpu, gpu_milli and gpu_spec";
    let rows: Vec<TaskRow> = rows(table, "pods", columns)?;
    Ok(rows.into_iter().map(task).collect())
}

fn rows<T: serde::de::DeserializeOwned>(
    table: impl Read,
    what: &'static str,
    columns: &'static str,
) -> Result<Vec<T>, TraceError> {
    let rows: Result<Vec<T>, csv::Error> = csv::Reader::from_reader(table).into_deserialize().collect();
    rows.map_err(|source| TraceError::Table { what, source, columns })
}

fn task(row: TaskRow) -> Task {
    let models: BTreeSet<&str> = row.gpu_spec.split('|').filter(|model| !model.is_empty()).collect();
    Task {
        // A pod that names no number of GPUs but takes a share of one takes one.
        gpus: row.num_gpu.max(u64::from(row.gpu_milli > 0)),
        models: models.into_iter().map(str::to_owned).collect(),
        name: row.name,
        cpu_milli: row.cpu_milli,
        memory_mib: row.memory_mib,
        span: row.creation_time.zip(row.deletion_time),
    }
}

/// The shapes of machines, with how many there are of each.
pub fn shapes(machines: &[Machine]) -> Vec<(Shape, u32)> {
    let mut counts = BTreeMap::new();
    for machine in machines {
        *counts.entry((machine.cpu_milli, machine.memory_mib, machine.gpus, &machine.model)).or_insert(0) += 1;
    }
    let shape = |((cpu_milli, memory_mib, gpus, model), count): ((u64, u64, u64, &String), u32)| {
        (Shape { cpu_milli, memory_mib, gpus, model: model.clone() }, count)
    };
    counts.into_iter().map(shape).collect()
}

impl Task {
    /// Whether an empty machine of this shape could run it.
    pub fn fits(&self, shape: &Shape) -> bool {
        self.cpu_milli <= shape.cpu_milli
            && self.memory_mib <= shape.memory_mib
            && self.gpus <= shape.gpus
            && (self.models.is_empty() || self.models.contains(&shape.model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let found =
            machines("sn,cpu_milli,memory_mib,gpu,model\na,1000,2048,0,\nb,2000,4096,2,T4\n".as_bytes()).unwrap();
        assert_eq!((found[0].cpu_milli, found[0].gpus, found[0].model.as_str()), (1000, 0, ""));
        assert_eq!((found[1].memory_mib, found[1].gpus, found[1].model.as_str()), (4096, 2, "T4"));

        let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";
        for (name, row, gpus, models) in [
            ("no GPU", "p,100,5,0,0,,LS,Running,0,,", 0, &[][..]),
            ("a share of one", "p,100,5,1,460,,LS,Running,0,9,1", 1, &[]),
            ("a whole one", "p,100,5,1,1000,T4,LS,Running,0,9,1", 1, &["T4"]),
            ("many", "p,100,5,8,1000,V100M32|V100M16|V100M32,BE,Pending,0,9,1", 8, &["V100M16", "V100M32"]),
        ] {
            let found = tasks(format!("{header}{row}\n").as_bytes()).unwrap();
            assert_eq!(
                (found[0].gpus, &found[0].models[..]),
                (gpus, &models.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>()[..]),
                "{name}"
            );
        }
    }

    #[test]
    fn other_tables_are_refused() {
        let error = machines("name,age\nx,5\n".as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the table of machines: "), "{error}");
        assert!(error.ends_with("; expected the columns cpu_milli, memory_mib, gpu and model"), "{error}");
        assert!(tasks("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,many,5,0,0,\n".as_bytes()).is_err());
    }

    #[test]
    fn equal_machines_are_one_shape() {
        let table = "cpu_milli,memory_mib,gpu,model\n2000,1,0,\n1000,1,0,\n2000,1,0,\n2000,1,1,T4\n";
        let found: Vec<_> = shapes(&machines(table.as_bytes()).unwrap())
            .into_iter()
            .map(|(shape, count)| (shape.cpu_milli, shape.gpus, count))
            .collect();
        assert_eq!(found, [(1000, 0, 1), (2000, 0, 2), (2000, 1, 1)]);
    }
}
