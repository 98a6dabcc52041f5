//! Kubernetes quantities in expressions (apiserver CEL library `quantity`).

use std::cmp::Ordering;
use std::sync::LazyLock;

use cel::common::types::{self, CelBool, CelDouble, CelInt, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use plimsoll_model::Quantity;

/// An amount.
#[derive(Clone, Debug)]
pub(super) struct Amount(pub(super) Quantity);

const NAME: &str = "kubernetes.Quantity";

static TYPE: LazyLock<Type> = LazyLock::new(|| Type::new_opaque_type(NAME));

impl StaticVal for Amount {}

impl Val for Amount {
    fn get_type(&self) -> &Type {
        &TYPE
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
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

fn text<'a>(arguments: &'a [CowVal<'_, '_>]) -> &'a str {
    arguments.first().and_then(|text| text.downcast_ref::<CelString<'_>>()).map_or("", |text| text.inner())
}

fn amount(arguments: &[CowVal<'_, '_>], index: usize) -> Quantity {
    let Some(argument) = arguments.get(index) else { return Quantity::default() };
    if let Some(Amount(amount)) = argument.downcast_ref::<Amount>() {
        return *amount;
    }
    argument.downcast_ref::<CelInt>().map_or(Quantity::default(), |number| Quantity::from_units(*number.inner()))
}

fn order(arguments: &[CowVal<'_, '_>]) -> Ordering {
    amount(arguments, 0).cmp(&amount(arguments, 1))
}

fn whole(amount: Quantity) -> Option<i64> {
    let units = amount.units();
    (Quantity::from_units(units) == amount).then_some(units)
}

fn yes<'b, 'v>(yes: bool) -> Given<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(yes)))
}

fn number<'b, 'v>(number: i64) -> Given<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(number)))
}

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let own = || Type::new_opaque_type(NAME);
    let text_type = || vec![types::STRING_TYPE];
    env.add_overload("quantity", "string_to_quantity", text_type(), |arguments| match text(&arguments).parse() {
        Ok(amount) => Ok(CowVal::owned(Amount(amount))),
        Err(error) => Err(ExecutionError::function_error("quantity", error)),
    })?;
    env.add_overload("isQuantity", "is_quantity_string", text_type(), |arguments| {
        yes(text(&arguments).parse::<Quantity>().is_ok())
    })?;
    env.add_member_overload("compareTo", "quantity_compare_to", own(), vec![own()], |arguments| {
        number(order(&arguments) as i64)
    })?;
    env.add_member_overload("isLessThan", "quantity_is_less_than", own(), vec![own()], |arguments| {
        yes(order(&arguments) == Ordering::Less)
    })?;
    env.add_member_overload("isGreaterThan", "quantity_is_greater_than", own(), vec![own()], |arguments| {
        yes(order(&arguments) == Ordering::Greater)
    })?;
    for (id, other) in [("quantity_add", own()), ("quantity_add_int", types::INT_TYPE)] {
        env.add_member_overload("add", id, own(), vec![other], |arguments| {
            Ok(CowVal::owned(Amount(amount(&arguments, 0).plus(amount(&arguments, 1)))))
        })?;
    }
    for (id, other) in [("quantity_sub", own()), ("quantity_sub_int", types::INT_TYPE)] {
        env.add_member_overload("sub", id, own(), vec![other], |arguments| {
            Ok(CowVal::owned(Amount(amount(&arguments, 0).minus(amount(&arguments, 1)))))
        })?;
    }
    env.add_member_overload("sign", "quantity_sign", own(), vec![], |arguments| {
        number(amount(&arguments, 0).cmp(&Quantity::default()) as i64)
    })?;
    env.add_member_overload("isInteger", "quantity_is_integer", own(), vec![], |arguments| {
        yes(whole(amount(&arguments, 0)).is_some())
    })?;
    env.add_member_overload("asInteger", "quantity_as_integer", own(), vec![], |arguments| {
        match whole(amount(&arguments, 0)) {
            Some(units) => number(units),
            None => Err(ExecutionError::function_error("asInteger", "cannot convert value to integer")),
        }
    })?;
    env.add_member_overload("asApproximateFloat", "quantity_as_float", own(), vec![], |arguments| {
        let float = amount(&arguments, 0).to_string().parse::<f64>().unwrap_or(f64::NAN);
        Ok(CowVal::owned(CelDouble::from(float)))
    })
}
