//! Answers of a provider, held against the question: what contradicts itself must not reach the loop.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::cloud::{
    CloudError, DeleteOutcome, DeleteStatus, ErrorClass, ErrorScope, GroupId, GroupTemplates, InstanceId, Refresh,
    SizeOutcome,
};

/// A snapshot names every group, and every machine of a group, once.
pub(super) fn refresh(answer: &Refresh, asked_previous: bool) -> Result<(), String> {
    let Some(snapshot) = &answer.snapshot else {
        return if asked_previous {
            Ok(())
        } else {
            Err("it says that nothing changed, but nothing was known".to_owned())
        };
    };
    let mut groups = BTreeSet::new();
    for group in &snapshot.groups {
        let id = &group.id;
        if id.as_str().is_empty() {
            return Err("a group has no id".to_owned());
        }
        if !groups.insert(id) {
            return Err(format!("group {:?} is listed twice", id.as_str()));
        }
        let mut instances = BTreeSet::new();
        for instance in &group.instances {
            if instance.id.as_str().is_empty() && !instance.placeholder {
                return Err(format!("a machine of group {:?} has no id", id.as_str()));
            }
            if !instance.id.as_str().is_empty() && !instances.insert(&instance.id) {
                return Err(format!("machine {:?} of group {:?} is listed twice", instance.id.as_str(), id.as_str()));
            }
        }
        if group.min_size > group.max_size {
            let (min, max) = (group.min_size, group.max_size);
            return Err(format!("group {:?} has a minimum of {min} above its maximum of {max}", id.as_str()));
        }
    }
    Ok(())
}

/// No more can be accepted than was wished for.
pub(super) fn resize(answer: &SizeOutcome, delta: u32) -> Result<(), String> {
    if answer.accepted > delta {
        return Err(format!("it accepted {} of a wish for {delta}", answer.accepted));
    }
    Ok(())
}

/// One entry for each group asked for, in the order of the question.
pub(super) fn templates(answer: Vec<GroupTemplates>, asked: &[GroupId]) -> Vec<GroupTemplates> {
    let mut found: BTreeMap<_, _> = answer.into_iter().map(|entry| (entry.group.clone(), entry)).collect();
    let entry = |group: &GroupId| {
        found.remove(group).unwrap_or_else(|| GroupTemplates {
            group: group.clone(),
            version: String::new(),
            templates: Err(CloudError {
                class: ErrorClass::Other,
                scope: ErrorScope::Group(group.clone()),
                code: "no-answer".to_owned(),
                message: "the plug-in did not mention the group".to_owned(),
                retry_after: None,
                outcome_unknown: false,
                request_id: None,
            }),
        })
    };
    asked.iter().map(entry).collect()
}

/// One result for each machine asked for, in the order of the question. A machine that the answer does not mention may
/// have been deleted or not. Machines that were not asked for are left out.
pub(super) fn delete(answer: DeleteOutcome, asked: &[InstanceId]) -> DeleteOutcome {
    let mut found: BTreeMap<_, _> = answer.results.into_iter().collect();
    let result = |id: &InstanceId| {
        let status = found.remove(id).unwrap_or_else(|| {
            DeleteStatus::Failed(CloudError {
                class: ErrorClass::Transient,
                scope: ErrorScope::Instance(id.clone()),
                code: "no-answer".to_owned(),
                message: "the plug-in did not mention the machine".to_owned(),
                retry_after: None,
                outcome_unknown: true,
                request_id: None,
            })
        });
        (id.clone(), status)
    };
    DeleteOutcome { results: asked.iter().map(result).collect(), ..answer }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::cloud::{Group, Instance, InstanceState, Snapshot};

    use super::*;

    fn machine(id: &str, placeholder: bool) -> Instance {
        Instance {
            id: id.into(),
            matches: vec![],
            state: InstanceState::Running,
            error: None,
            created_at: None,
            zone: None,
            instance_type: None,
            spot: false,
            protected: None,
            placeholder,
            attributes: vec![],
        }
    }

    fn group(id: &str, min: u32, max: u32, machines: &[(&str, bool)]) -> Group {
        let instances = machines.iter().map(|(id, placeholder)| machine(id, *placeholder)).collect();
        Group { instances, ..Group::sized(id, min, max, 0) }
    }

    #[rstest::rstest]
    #[case::plain(vec![group("a", 0, 3, &[("i1", false), ("i2", false)]), group("b", 1, 1, &[("i1", false)])], None)]
    #[case::placeholders(vec![group("a", 0, 3, &[("", true), ("", true)])], None)]
    #[case::group_twice(vec![group("a", 0, 3, &[]), group("a", 0, 3, &[])], Some("group \"a\" is listed twice"))]
    #[case::no_id(vec![group("", 0, 3, &[])], Some("a group has no id"))]
    #[case::machine_twice(
        vec![group("a", 0, 3, &[("i", false), ("i", false)])],
        Some("machine \"i\" of group \"a\" is listed twice")
    )]
    #[case::machine_without_id(vec![group("a", 0, 3, &[("", false)])], Some("a machine of group \"a\" has no id"))]
    #[case::sizes(vec![group("a", 5, 3, &[])], Some("group \"a\" has a minimum of 5 above its maximum of 3"))]
    fn checks_snapshots(#[case] groups: Vec<Group>, #[case] problem: Option<&str>) {
        let answer = Refresh {
            revision: "r".into(),
            observed_at: Default::default(),
            snapshot: Some(Snapshot { groups, complete: true }),
            diagnostics: vec![],
            next_refresh: None,
        };
        assert_eq!(refresh(&answer, false).err().as_deref(), problem);
    }

    #[test]
    fn unchanged_is_an_answer_only_if_something_was_known() {
        let answer = Refresh {
            revision: "r".into(),
            observed_at: Default::default(),
            snapshot: None,
            diagnostics: vec![],
            next_refresh: None,
        };
        assert_eq!(refresh(&answer, true), Ok(()));
        assert!(refresh(&answer, false).is_err());
    }

    #[test]
    fn a_wish_cannot_be_surpassed() {
        let answer =
            |accepted| SizeOutcome { target_size: 9, accepted, activity: None, confirmed: true, shortfall: None };
        assert_eq!(resize(&answer(2), 2), Ok(()));
        assert_eq!(resize(&answer(3), 2), Err("it accepted 3 of a wish for 2".to_owned()));
    }

    #[test]
    fn every_machine_gets_one_result() {
        let answer = DeleteOutcome {
            target_size: 1,
            results: vec![("c".into(), DeleteStatus::Accepted), ("a".into(), DeleteStatus::AlreadyGone)],
            activity: None,
        };
        let outcome = delete(answer, &["a".into(), "b".into()]);
        assert_eq!(outcome.results.len(), 2);
        assert_eq!(outcome.results[0], ("a".into(), DeleteStatus::AlreadyGone));
        assert!(matches!(&outcome.results[1].1, DeleteStatus::Failed(error) if error.outcome_unknown));
    }

    #[test]
    fn every_group_gets_one_entry() {
        let known = GroupTemplates { group: "b".into(), version: "1".into(), templates: Ok(vec![]) };
        let entries = templates(vec![known.clone()], &["a".into(), "b".into()]);
        assert!(entries[0].templates.is_err());
        assert_eq!(entries[1], known);
    }
}
