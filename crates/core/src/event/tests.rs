pub(crate) mod arbitrary;
mod golden;
mod rules;
