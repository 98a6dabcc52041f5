//! The Go autoscaler's flags: same names, same defaults, same spellings.
//!
//! The table in [`table`] says of every flag what it does here. A flag that has no effect is accepted with a warning that
//! says why; an unknown one is an error that suggests the nearest name.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_core::Settings;
use plimsoll_core::settings::Bounds;

mod table;

/// What a flag's value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`; the bare flag is `true`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A Go duration such as `1h30m`.
    Duration,
    /// Text; may be given several times.
    List,
    /// Text, split at commas; may be given several times.
    Slice,
}

/// Where a flag stands in the help text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    /// The process and what it talks to.
    Process,
    /// Node groups and limits of the cluster.
    Limits,
    /// The loop.
    Loop,
    /// Scale-up.
    ScaleUp,
    /// Scale-down.
    ScaleDown,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Process => "Process",
            Self::Limits => "Node groups and cluster limits",
            Self::Loop => "Loop",
            Self::ScaleUp => "Scale-up",
            Self::ScaleDown => "Scale-down",
        }
    }
}

type Setter = fn(&mut Settings, &Value<'_>) -> Result<(), String>;

/// What a flag does here.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    /// It changes the settings.
    Sets(Setter),
    /// It says how `plimsoll run` reaches the cluster and the cloud; other commands have no use for it.
    Run,
    /// Nothing yet, and why.
    Later(&'static str),
    /// Nothing ever, and why.
    None(&'static str),
}

/// A flag.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) section: Section,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
    pub(crate) effect: Effect,
}

/// What was given for a flag.
pub(crate) struct Value<'a> {
    texts: Vec<&'a str>,
}

impl Value<'_> {
    fn last(&self) -> &str {
        self.texts.last().copied().unwrap_or_default()
    }

    fn text(&self) -> String {
        self.last().to_owned()
    }

    fn parse<T: std::str::FromStr>(&self, expected: &str) -> Result<T, String> {
        self.last().parse().map_err(|_| format!("{:?} is not {expected}", self.last()))
    }

    fn int(&self) -> Result<i64, String> {
        self.parse("a whole number")
    }

    fn int32(&self) -> Result<i32, String> {
        self.parse("a whole number of 32 bits")
    }

    fn count(&self) -> Result<u32, String> {
        self.parse("a whole number from 0 up")
    }

    fn share(&self) -> Result<f64, String> {
        let share = self.float()?;
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("{share} is not a share from 0 to 1")) }
    }

    fn float(&self) -> Result<f64, String> {
        let number: f64 = self.parse("a number")?;
        if number.is_finite() { Ok(number) } else { Err(format!("{:?} is not a finite number", self.last())) }
    }

    fn bool(&self) -> Result<bool, String> {
        match self.last() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        }
    }

    fn duration(&self) -> Result<Duration, String> {
        let nanos = plimsoll_model::time::go_duration_nanos(self.last()).and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map(Duration::from_nanos).ok_or_else(|| {
            format!("{:?} is not a duration; expected a number with a unit, such as 30s, 10m or 1h30m", self.last())
        })
    }

    fn seconds(&self) -> Result<Duration, String> {
        let seconds: u64 = self.parse("a whole number of seconds")?;
        Ok(Duration::from_secs(seconds))
    }

    fn list(&self) -> Vec<String> {
        self.texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// Names that are separated by commas, of all times that the flag was given.
    fn names(&self) -> Vec<String> {
        let all = self.texts.iter().flat_map(|text| text.split(','));
        all.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn expanders(&self) -> Result<Vec<String>, String> {
        let names: Vec<String> = self.last().split(',').map(|name| name.trim().to_owned()).collect();
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(format!("{:?} has an empty name in the chain", self.last()));
            }
            if names.iter().take(index).any(|earlier| earlier == name) {
                return Err(format!("{name:?} is in the chain twice"));
            }
            if name == "random" && index + 1 < names.len() {
                return Err("nothing can come after \"random\", which always leaves one option".to_owned());
            }
        }
        Ok(names)
    }

    fn drain_priorities(&self) -> Result<Vec<(i32, Duration)>, String> {
        let one = |text: &str| {
            let expected = || format!("{text:?} is not <priority>:<seconds>");
            let (priority, seconds) = text.split_once(':').ok_or_else(expected)?;
            let seconds: u64 = seconds.trim().parse().map_err(|_| expected())?;
            Ok((priority.trim().parse().map_err(|_| expected())?, Duration::from_secs(seconds)))
        };
        let mut groups: Vec<(i32, Duration)> =
            self.last().split(',').filter(|text| !text.is_empty()).map(one).collect::<Result<_, String>>()?;
        groups.sort_unstable();
        if groups.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
            return Err(format!("{:?} names a priority twice", self.last()));
        }
        Ok(groups)
    }

    fn bounds(&self, unit: i64) -> Result<Bounds, String> {
        bounds(self.last(), unit)
    }

    fn named_bounds(&self) -> Result<Vec<(String, Bounds)>, String> {
        let one = |text: &&str| {
            let (name, rest) = text.split_once(':').ok_or_else(|| format!("{text:?} is not <model>:<min>:<max>"))?;
            Ok((name.to_owned(), bounds(rest, 1).map_err(|error| format!("{text:?}: {error}"))?))
        };
        self.texts.iter().map(one).collect()
    }
}

fn bounds(text: &str, unit: i64) -> Result<Bounds, String> {
    let expected = || format!("{text:?} is not <min>:<max> with whole numbers, 0 ≤ min ≤ max");
    let (min, max) = text.split_once(':').ok_or_else(expected)?;
    let (min, max): (i64, i64) = (min.parse().map_err(|_| expected())?, max.parse().map_err(|_| expected())?);
    if min < 0 || max < min {
        return Err(expected());
    }
    Ok(Bounds { min: min.saturating_mul(unit), max: max.saturating_mul(unit) })
}

/// Adds the flags to a command. Those without effect are accepted, but not shown.
pub(crate) fn add_to(command: Command) -> Command {
    table::FLAGS.iter().fold(command, |command, flag| command.arg(argument(flag)))
}

fn argument(flag: &'static Flag) -> Arg {
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .help(help(flag))
        .help_heading(flag.section.title())
        .hide(!matches!(flag.effect, Effect::Sets(_) | Effect::Run))
        .value_parser(ValueParser::string())
        .value_name(match flag.kind {
            Kind::Text | Kind::List | Kind::Slice => "TEXT",
            Kind::Bool => "true|false",
            Kind::Int => "N",
            Kind::Float => "NUMBER",
            Kind::Duration => "DURATION",
        })
        .allow_hyphen_values(true);
    match flag.kind {
        // As with the Go flags, the value of a switch needs the equals sign.
        Kind::Bool => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .action(ArgAction::Set)
            .overrides_with(flag.name),
        Kind::List | Kind::Slice => argument.action(ArgAction::Append),
        Kind::Text | Kind::Int | Kind::Float | Kind::Duration => {
            argument.action(ArgAction::Set).overrides_with(flag.name)
        }
    }
}

fn help(flag: &Flag) -> String {
    if flag.default.is_empty() { flag.help.to_owned() } else { format!("{} [default: {}]", flag.help, flag.default) }
}

/// An option that only `plimsoll run` has, and always with a value.
pub(crate) const RUNS: &str = "cluster";

/// The values of a flag, as they were given.
pub(crate) fn texts<'m>(matches: &'m ArgMatches, flag: &str) -> impl Iterator<Item = &'m String> {
    matches.get_many::<String>(flag).into_iter().flatten()
}

/// What was given for a flag last; its default if it was not given.
pub(crate) fn text<'m>(matches: &'m ArgMatches, name: &str) -> &'m str {
    let flag = table::FLAGS.iter().find(|flag| flag.name == name);
    let default = flag.map_or("", |flag| flag.default);
    texts(matches, name).last().map_or(default, String::as_str)
}

/// A flag that is a duration; its default if it was not given.
pub(crate) fn duration(matches: &ArgMatches, name: &'static str) -> Result<Duration, FlagError> {
    let value = Value { texts: vec![text(matches, name)] };
    value.duration().map_err(|problem| FlagError { flag: name, problem })
}

/// A flag that is a switch; its default if it was not given.
pub(crate) fn switch(matches: &ArgMatches, name: &'static str) -> Result<bool, FlagError> {
    let value = Value { texts: vec![text(matches, name)] };
    value.bool().map_err(|problem| FlagError { flag: name, problem })
}

/// A flag that is a number; its default if it was not given.
pub(crate) fn float(matches: &ArgMatches, name: &'static str) -> Result<f64, FlagError> {
    let value = Value { texts: vec![text(matches, name)] };
    value.float().map_err(|problem| FlagError { flag: name, problem })
}

/// A flag that is a number of things; its default if it was not given.
pub(crate) fn count(matches: &ArgMatches, name: &'static str) -> Result<u32, FlagError> {
    let value = Value { texts: vec![text(matches, name)] };
    value.count().map_err(|problem| FlagError { flag: name, problem })
}

/// A flag whose value cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FlagError {
    pub(crate) flag: &'static str,
    pub(crate) problem: String,
}

/// Settings from the flags that were given; for each one without effect, a warning.
pub(crate) fn settings(matches: &ArgMatches) -> Result<(Settings, Vec<String>), FlagError> {
    settings_upon(Settings::default(), matches)
}

/// The flags that were given and that decisions hang on, as on a command line.
pub(crate) fn deciding(matches: &ArgMatches) -> Vec<String> {
    let decides = |flag: &&Flag| matches!(flag.effect, Effect::Sets(_));
    let given =
        |flag: &Flag| texts(matches, flag.name).map(|text| format!("--{}={text}", flag.name)).collect::<Vec<_>>();
    table::FLAGS.iter().filter(decides).flat_map(given).collect()
}

/// The same, where other settings than the defaults hold for flags that were not given.
pub(crate) fn settings_upon(
    mut settings: Settings,
    matches: &ArgMatches,
) -> Result<(Settings, Vec<String>), FlagError> {
    let mut warnings = Vec::new();
    for flag in table::FLAGS {
        let Some(values) = matches.get_many::<String>(flag.name) else { continue };
        let value = Value { texts: values.map(String::as_str).collect() };
        let error = |problem| FlagError { flag: flag.name, problem };
        check(flag, &value).map_err(error)?;
        match flag.effect {
            Effect::Sets(set) => set(&mut settings, &value).map_err(error)?,
            Effect::Run if matches.try_get_one::<String>(RUNS).is_ok_and(|given| given.is_some()) => {}
            Effect::Run => {
                warnings.push(format!("flag --{} is for `plimsoll run`; it changes nothing here", flag.name))
            }
            Effect::Later(why) => warnings.push(format!("flag --{} {why}; it changes nothing here", flag.name)),
            Effect::None(why) => warnings.push(format!("flag --{} changes nothing: {why}", flag.name)),
        }
    }
    agree(&settings)?;
    Ok((settings, warnings))
}

/// Flags that contradict each other are refused, as by the Go autoscaler.
fn agree(settings: &Settings) -> Result<(), FlagError> {
    let refuse = |flag, problem: &str| Err(FlagError { flag, problem: problem.to_owned() });
    if !settings.drain_priorities.is_empty()
        && settings.max_graceful_termination != Settings::default().max_graceful_termination
    {
        return refuse(
            "drain-priority-config",
            "says how long pods may take; leave --max-graceful-termination-sec out",
        );
    }
    if !settings.likeness.only_labels.is_empty() && !settings.likeness.ignored_labels.is_empty() {
        return refuse("balancing-label", "compares nothing but its labels; leave --balancing-ignore-label out");
    }
    let allowed = &settings.allowed_schedulers;
    if !allowed.is_empty() && settings.bypassed_schedulers.iter().any(|name| !allowed.contains(name)) {
        return refuse("bypassed-scheduler-names", "names a scheduler that is not among --allowed-scheduler-names");
    }
    Ok(())
}

/// A value is checked even where it has no effect: a manifest with a typing error should not look right.
fn check(flag: &Flag, value: &Value<'_>) -> Result<(), String> {
    match flag.kind {
        Kind::Bool => value.bool().map(drop),
        Kind::Int => value.int().map(drop),
        Kind::Float => value.float().map(drop),
        Kind::Duration => value.duration().map(drop),
        Kind::Text | Kind::List | Kind::Slice => Ok(()),
    }
}

/// Go's flag package reads `_` in a flag's name as `-`, and one dash as two.
pub(crate) fn normalized(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let one = |argument: OsString| {
        let Some(text) = argument.to_str() else { return argument };
        let long = text.strip_prefix("--").or_else(|| text.strip_prefix('-').filter(|rest| is_known(rest)));
        let Some(rest) = long.filter(|rest| !rest.is_empty()) else { return argument };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        let name = name.replace('_', "-");
        match value {
            Some(value) => format!("--{name}={value}").into(),
            None => format!("--{name}").into(),
        }
    };
    arguments.into_iter().map(one).collect()
}

/// Whether a flag of this name, perhaps with a value behind it, is in the table.
fn is_known(argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument).replace('_', "-");
    table::FLAGS.iter().any(|flag| flag.name == name)
}

/// The known flag that is most like an unknown one, if any is like it.
pub(crate) fn nearest(name: &str, command: &Command) -> Option<String> {
    let names = command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned);
    let scored = names.map(|known| (strsim::jaro_winkler(name, &known), known));
    scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// The table of all flags, as Markdown.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Flags\n\n<!-- made by `make docs`; a test keeps it true -->\n\nNames, types and defaults are \
         those of the Go Cluster Autoscaler. *effect* says what a flag does in this version.\n",
    );
    let mut section = None;
    for flag in table::FLAGS {
        if section != Some(flag.section) && !text.contains(&format!("## {}\n", flag.section.title())) {
            section = Some(flag.section);
            let of_section = table::FLAGS.iter().filter(|other| other.section == flag.section);
            text.push_str(&format!(
                "\n## {}\n\n| flag | type | default | meaning | effect |\n|---|---|---|---|---|\n",
                flag.section.title()
            ));
            for flag in of_section {
                let effect = match flag.effect {
                    Effect::Sets(_) => "yes".to_owned(),
                    Effect::Run => "yes, in `plimsoll run`".to_owned(),
                    Effect::Later(why) => format!("not yet: {why}"),
                    Effect::None(why) => format!("none: {why}"),
                };
                let kind = format!("{:?}", flag.kind).to_lowercase();
                let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
                let help = flag.help.replace('|', "\\|").replace('<', "&lt;");
                text.push_str(&format!("| `{}` | {kind} | {default} | {help} | {effect} |\n", flag.name));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<(Settings, Vec<String>), FlagError> {
        let command = add_to(Command::new("test"));
        let given = std::iter::once("test").chain(arguments.iter().copied()).map(OsString::from);
        settings(&command.try_get_matches_from(normalized(given)).unwrap())
    }

    /// The table's defaults are the settings' defaults: giving every default explicitly changes nothing.
    #[test]
    fn defaults_agree() {
        for flag in table::FLAGS {
            if !flag.default.is_empty() && matches!(flag.effect, Effect::Sets(_)) {
                let (settings, warnings) = parse(&[&format!("--{}={}", flag.name, flag.default)]).unwrap();
                assert_eq!(settings, Settings::default(), "default of --{}", flag.name);
                assert_eq!(warnings, Vec::<String>::new());
            }
        }
    }

    #[test]
    fn the_table_in_the_docs_is_true() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
        assert_eq!(std::fs::read_to_string(path).unwrap(), markdown(), "run `make docs`");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = table::FLAGS.iter().map(|flag| flag.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn spellings_of_go_flags() {
        for (name, arguments) in [
            ("equals", &["--scale-down-unneeded-time=90s"][..]),
            ("a space", &["--scale-down-unneeded-time", "1m30s"]),
            ("underscores", &["--scale_down_unneeded_time=1.5m"]),
            ("one dash", &["-scale-down-unneeded-time=90s"]),
            ("the last wins", &["--scale-down-unneeded-time=1s", "--scale-down-unneeded-time=90s"]),
        ] {
            assert_eq!(parse(arguments).unwrap().0.scale_down_unneeded_time, Duration::from_secs(90), "{name}");
        }
        assert!(!parse(&["--skip-nodes-with-local-storage=false"]).unwrap().0.skip_nodes_with_local_storage);
        assert!(parse(&["--force-ds"]).unwrap().0.force_ds);
        assert_eq!(parse(&["--expendable-pods-priority-cutoff=-5"]).unwrap().0.expendable_pods_priority_cutoff, -5);
        assert_eq!(parse(&["--max-nodes-total=7"]).unwrap().0.max_nodes_total, Some(7));
        assert_eq!(parse(&["--gpu-total=t4:0:3", "--gpu-total=l4:1:2"]).unwrap().0.gpu_total.len(), 2);
    }

    #[test]
    fn flags_that_contradict_each_other() {
        for (first, second, flag) in [
            ("--drain-priority-config=10:5", "--max-graceful-termination-sec=60", "drain-priority-config"),
            ("--balancing-label=a", "--balancing-ignore-label=b", "balancing-label"),
            ("--allowed-scheduler-names=a,b", "--bypassed-scheduler-names=b,c", "bypassed-scheduler-names"),
        ] {
            assert!(parse(&[first]).is_ok() && parse(&[second]).is_ok());
            assert_eq!(parse(&[first, second]).unwrap_err().flag, flag);
        }
        assert!(parse(&["--allowed-scheduler-names=a,b", "--bypassed-scheduler-names=b"]).is_ok());
    }

    #[test]
    fn flags_without_effect_warn() {
        let (_, warnings) = parse(&["--scan-interval=10s", "--scale-down-candidates-pool-ratio=0.2"]).unwrap();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn values_that_cannot_be_read() {
        for (argument, problem) in [
            ("--scale-down-unneeded-time=10", "duration"),
            ("--scale-down-utilization-threshold=half", "is not a number"),
            ("--scale-down-enabled=maybe", "is neither true nor false"),
            ("--cores-total=5", "is not <min>:<max>"),
            ("--memory-total=9:5", "is not <min>:<max>"),
            ("--gpu-total=t4", "is not <model>:<min>:<max>"),
            ("--max-nodes-per-scaleup=-1", "is not a whole number from 0 up"),
            ("--expander=random,price", "nothing can come after"),
            ("--expander=price,price", "twice"),
            ("--expander=price,", "empty name"),
            ("--scan-interval=soon", "duration"),
            ("--scale-down-utilization-threshold=50", "is not a share from 0 to 1"),
            ("--v=many", "is not a whole number"),
            ("--drain-priority-config=10", "is not <priority>:<seconds>"),
            ("--drain-priority-config=10:5,10:6", "twice"),
            ("--enable-dynamic-resource-allocation=false", "cannot be turned off"),
        ] {
            let error = parse(&[argument]).unwrap_err();
            assert!(error.problem.contains(problem), "{argument}: {}", error.problem);
        }
    }
}
