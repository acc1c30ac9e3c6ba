pub(crate) mod arbitrary;
pub(crate) mod golden;
mod newer;
mod rules;
