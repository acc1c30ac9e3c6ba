//! What a crash can leave: every disk that the pending effects allow.

use std::fmt;
use std::sync::Arc;

use crate::disk::Disk;
use crate::effect::{Change, Cut, Effect, Part};
use crate::image::Image;
use crate::random::Random;

/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// How far the enumeration goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depth {
    /// Up to this many pending effects, every subset is made; beyond, a selection.
    pub effects_max: usize,
    /// Which cuts of a write are made.
    pub cuts: Cuts,
    /// How many companies of other effects a cut write is combined with, when there are more.
    pub companies_max: usize,
}

/// Which cuts of a write are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cuts {
    /// At every byte.
    Every,
    /// Behind the first byte, in the middle, and before the last byte, with and without the
    /// zeros at its end.
    Few,
}

impl Depth {
    /// Every subset, and every cut in every company, however many that makes.
    pub const FULL: Self = Self { effects_max: 12, cuts: Cuts::Every, companies_max: usize::MAX };
    /// Every subset, and every cut with all other effects, with none, and with the earlier ones.
    pub const QUICK: Self = Self { effects_max: 8, cuts: Cuts::Every, companies_max: 3 };
    /// Every subset of a handful, and a few cuts.
    pub const LIGHT: Self = Self { effects_max: 5, cuts: Cuts::Few, companies_max: 2 };
}

/// Which of the pending effects reached the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// For each pending effect, whether it did.
    pub kept: Arc<[bool]>,
    /// The write of which only a part did, and how much of it.
    pub cut: Option<(usize, Cut)>,
}

/// What a crash can leave, one after the other.
pub struct States {
    durable: Image,
    pending: Vec<Effect>,
    choices: Vec<Choice>,
    /// Whether every subset is among them.
    pub exhaustive: bool,
}

impl States {
    /// The disks that a crash can leave at this moment.
    #[must_use]
    pub fn of(disk: &Disk, depth: Depth) -> Self {
        let (durable, pending) = (disk.durable(), disk.pending());
        let (subsets, exhaustive) = subsets(pending.len(), depth.effects_max);
        let mut choices: Vec<Choice> =
            subsets.iter().map(|kept| Choice { kept: kept.clone(), cut: None }).collect();
        for (place, effect) in pending.iter().enumerate() {
            choices.extend(cuts_in_company(place, effect, &subsets, depth));
        }
        Self { durable, pending, choices, exhaustive }
    }

    /// How many there are, before equal ones are found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Whether there is none, which never is: a crash leaves something.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The disks, with what was chosen for each.
    pub fn iter(&self) -> impl Iterator<Item = (&Choice, Image)> {
        self.choices.iter().map(|choice| (choice, self.image(choice)))
    }

    /// The disk that a choice leaves.
    #[must_use]
    pub fn image(&self, choice: &Choice) -> Image {
        let mut image = self.durable.clone();
        for (place, effect) in self.pending.iter().enumerate() {
            match choice.cut {
                Some((cut_place, cut)) if cut_place == place => {
                    image.apply_cut(&effect.change, cut, effect.at_ms);
                }
                _ if choice.kept.get(place) == Some(&true) => {
                    image.apply(&effect.change, effect.at_ms);
                }
                _ => {}
            }
        }
        image
    }

    /// What a choice is, in words.
    #[must_use]
    pub fn describe(&self, choice: &Choice) -> String {
        Described { states: self, choice }.to_string()
    }
}

/// One disk that a crash can leave, picked by chance.
pub fn random_image(disk: &Disk, random: &mut Random) -> (Image, String) {
    let (durable, pending) = (disk.durable(), disk.pending());
    let odds = [0, 50, 90, 100].get(random.below(4)).copied().unwrap_or_default();
    let kept: Arc<[bool]> = pending.iter().map(|_| random.percent(odds)).collect();
    let place = random.below(pending.len());
    let cut = pending.get(place).filter(|effect| effect.len() > 1).map(|effect| {
        let bytes = 1 + random.below(effect.len() - 1);
        let part = [Part::First, Part::FirstThenZeros, Part::Last].get(random.below(3)).copied();
        (place, Cut { bytes, part: part.unwrap_or(Part::First) })
    });
    let choice = Choice { kept, cut };
    let states = States { durable, pending, choices: Vec::new(), exhaustive: false };
    (states.image(&choice), states.describe(&choice))
}

/// All subsets of so many effects, or a selection, and whether it is all of them.
fn subsets(effects: usize, effects_max: usize) -> (Vec<Arc<[bool]>>, bool) {
    if effects <= effects_max {
        let all = 0..1_u32 << effects;
        let kept = |mask: u32| (0..effects).map(|place| mask >> place & 1 == 1).collect();
        return (all.rev().map(kept).collect(), true);
    }
    let pick = |kept: &dyn Fn(usize) -> bool| (0..effects).map(kept).collect::<Arc<[bool]>>();
    let mut chosen: Vec<Arc<[bool]>> =
        (0..=effects).rev().map(|end| pick(&|place| place < end)).collect();
    chosen.extend((0..effects).map(|one| pick(&|place| place != one)));
    chosen.extend((0..effects).map(|one| pick(&|place| place == one)));
    let mut random = Random::new(effects as u64);
    for _ in 0..1 << effects_max {
        let odds = random.below(101);
        chosen.push((0..effects).map(|_| random.percent(odds)).collect());
    }
    (chosen, false)
}

/// The cuts of one write, each with several choices of the other effects.
fn cuts_in_company<'a>(
    place: usize,
    effect: &'a Effect,
    subsets: &'a [Arc<[bool]>],
    depth: Depth,
) -> impl Iterator<Item = Choice> + 'a {
    // The write is cut, so of each pair of subsets that differ in it, one will do.
    let mut companies: Vec<&Arc<[bool]>> =
        subsets.iter().filter(|kept| kept.get(place) == Some(&true)).collect();
    let selected = companies.len() > depth.companies_max;
    if selected {
        // Everything else, nothing else, what came before: the likely ones.
        let before = |kept: &&&Arc<[bool]>| {
            kept.iter().enumerate().all(|(other, kept)| *kept == (other <= place))
        };
        let earlier = companies.iter().find(before).copied();
        let alone = companies.iter().min_by_key(|kept| kept.iter().filter(|kept| **kept).count());
        let likely: Vec<&Arc<[bool]>> =
            companies.first().into_iter().chain(alone).copied().chain(earlier).collect();
        companies = likely;
        companies.truncate(depth.companies_max);
    }
    let cuts = cuts(effect, depth.cuts);
    let told = told(effect);
    let choices = move |(number, kept): (usize, &'a Arc<[bool]>)| {
        // Room that is set aside is cut everywhere too, but once: when it is new.
        let once = number == 0 && place + 1 == kept.len();
        let telling = |cut: &&Cut| cut.bytes <= told + 1 || once || !selected;
        let choice = |cut: &Cut| Choice { kept: kept.clone(), cut: Some((place, *cut)) };
        cuts.iter().filter(telling).map(choice).collect::<Vec<_>>()
    };
    companies.into_iter().enumerate().flat_map(choices)
}

/// How long a write is without the zeros at its end.
fn told(effect: &Effect) -> usize {
    match &effect.change {
        Change::Write { bytes, .. } => {
            bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
        }
        _ => 0,
    }
}

fn cuts(effect: &Effect, which: Cuts) -> Vec<Cut> {
    let Change::Write { offset, bytes, .. } = &effect.change else { return Vec::new() };
    let (last, told) = (bytes.len().saturating_sub(1), told(effect));
    let places: Vec<usize> = match which {
        Cuts::Every => (0..=last).collect(),
        Cuts::Few => vec![1.min(last), told / 2, told.saturating_sub(1), last],
    };
    let before = |bytes| [Part::First, Part::FirstThenZeros].map(|part| Cut { bytes, part });
    let sectors = (1..=last).filter(|cut| (offset + *cut as u64).is_multiple_of(SECTOR));
    let behind = sectors.map(|bytes| Cut { bytes, part: Part::Last });
    let nothing = Cut { bytes: 0, part: Part::First };
    places.into_iter().flat_map(before).filter(|cut| *cut != nothing).chain(behind).collect()
}

struct Described<'a> {
    states: &'a States,
    choice: &'a Choice,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, effect) in self.states.pending.iter().enumerate() {
            let kept = self.choice.kept.get(place) == Some(&true);
            match self.choice.cut {
                Some((cut_place, cut)) if cut_place == place => {
                    let Cut { bytes, part } = cut;
                    writeln!(f, "  {place} cut   {effect} at {bytes}: {part:?}")?;
                }
                _ if kept => writeln!(f, "  {place} kept  {effect}")?,
                _ => writeln!(f, "  {place} lost  {effect}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
