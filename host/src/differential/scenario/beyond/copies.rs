//! Bulk and tensor copies with what `cuda::ptx` leaves out: cache policies, scopes, im2col modes.
//!
//! A policy or a scope changes no result: such a form is run as its relative in the headers is, with one operand more.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{MULTICAST_OBJECT, bulk, reduce, tensor};

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    if form.function.starts_with("multimem_") {
        return Err(MULTICAST_OBJECT.to_owned());
    }
    let relative = relative(form);
    let name = relative.function.as_str();
    let scenario = if form.instruction.contains("im2col") {
        tensor::columns(&relative)
    } else if name.contains("_tensor") {
        tensor::scenario(&relative)
    } else if name.starts_with("cp_reduce") {
        reduce::scenario(&relative)
    } else {
        bulk::scenario(&relative)
    };
    let scenario = scenario.ok_or_else(|| missing(form))?;
    Ok(match form.says("L2::cache_hint") && !implies_policy(form) {
        true => with_policy(scenario),
        false => scenario,
    })
}

/// Whether the policy is no operand of this form.
fn implies_policy(form: &Form) -> bool {
    form.function.contains("prefetch") && !form.function.ends_with("_cache_policy")
}

/// The form without policy, semantics and scope, under the name in the headers if they have it.
fn relative(form: &Form) -> Form {
    let mut relative = form.clone();
    relative
        .tags
        .retain(|tag| !tag.starts_with("sem_") && !tag.starts_with("scope_"));
    if form.says("L2::cache_hint") && !implies_policy(form) {
        relative.operands.pop();
    }
    let without = |part: &&str| {
        !["L2::cache_hint", "relaxed", "b128"].contains(part)
            && !(form.says("relaxed") && ["cta", "cluster", "gpu", "sys"].contains(part))
    };
    relative.instruction = Vec::from_iter(form.instruction.split('.').filter(without)).join(".");
    let names = [
        "cp_async_bulk_ignore_oob",
        "cp_reduce_async_bulk_tensor",
        "cp_reduce_async_bulk",
        "cp_async_bulk_tensor",
    ];
    let is = |name: &&str| match *name {
        "cp_async_bulk_ignore_oob" => form.says("ignore_oob"),
        name => form.function.starts_with(name),
    };
    relative.function = if form.function.contains("prefetch") {
        form.function.clone()
    } else {
        names
            .into_iter()
            .find(is)
            .unwrap_or("cp_async_bulk")
            .to_owned()
    };
    relative
}

/// The same with a policy as the last operand of the call.
fn with_policy(mut scenario: Scenario) -> Scenario {
    let lines = scenario
        .body
        .lines()
        .map(|line| match line.strip_suffix(')') {
            Some(call) if line.starts_with('@') => format!("{call}; policy_evict_first())\n"),
            _ => format!("{line}\n"),
        });
    scenario.body = lines.collect();
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(function: &str, instruction: &str, tags: &[&str], operands: &[&str]) -> Form {
        let strings = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
        Form {
            kernel: function.to_owned(),
            family: Some("cp_async_bulk".to_owned()),
            function: function.to_owned(),
            instruction: instruction.to_owned(),
            tags: strings(tags),
            operands: strings(operands),
            immediates: 0,
            outputs: 0,
            result: None,
        }
    }

    #[test]
    fn a_relaxed_copy_with_a_policy_is_run_as_a_plain_one() {
        let form = form(
            "cp_async_bulk_L2_cache_hint_sem_scope_bar",
            "cp.async.bulk.relaxed.cluster.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint.b128",
            &[
                "sem_relaxed",
                "scope_cluster",
                "space_shared",
                "space_global",
            ],
            &["void*", "const void*", "uint32_t", "uint64_t*", "uint64_t"],
        );
        let relative = relative(&form);
        assert_eq!(relative.function, "cp_async_bulk");
        assert_eq!(
            relative.instruction,
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
        );
        assert_eq!(relative.tags, ["space_shared", "space_global"]);
        assert_eq!(relative.operands.len(), 4);
        assert!(
            scenario(&form)
                .unwrap()
                .body
                .contains("bar; policy_evict_first())\n")
        );
    }
}
