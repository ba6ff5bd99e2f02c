//! Descriptions of records: for the reference, the schema, and the tests that compare both with real output.

use crate::kernel::words::Worded;
use crate::report::flag_names::FLAGS_RAW;

/// What a value is in JSON.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Form {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// A number, perhaps with a fraction.
    Number,
    /// One of these words.
    Word(Words),
    /// A string of hexadecimal digits behind `0x`.
    Hex,
    /// A string.
    Text,
    /// A list.
    List(&'static Form),
    /// An object with these fields.
    Object(&'static [FieldDescription]),
    /// An object of one of several shapes. The field called `tag` names the shape.
    OneOf {
        /// The name of that field.
        tag: &'static str,
        /// The shapes.
        shapes: &'static [Shape],
    },
    /// An object whose keys are data, with values of this form.
    Map(&'static Form),
    /// One form or the other.
    Either(&'static Form, &'static Form),
    /// The form, or `null`.
    OrNull(&'static Form),
    /// Flags: two fields, a list of names and a number.
    Flags,
}

/// The words that a value may be.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What such a word is called.
    pub name: &'static str,
    /// All of them.
    pub all: fn() -> Vec<String>,
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// One field of a record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FieldDescription {
    /// Its name in JSON. Not used where `is_flat`.
    pub name: &'static str,
    /// Its meaning, with the line ends of the source.
    pub about: &'static str,
    /// What it is in JSON.
    pub form: Form,
    /// Whether it is left out when it is empty.
    pub is_optional: bool,
    /// Whether the fields of its object stand in its place.
    pub is_flat: bool,
}

/// One of several shapes that an object may have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// The value of the field that names the shape.
    pub name: &'static str,
    /// What it is about, with the line ends of the source.
    pub about: &'static str,
    /// Its other fields: an object, or again one of several shapes.
    pub form: Form,
}

/// The name of the field with the reasons for what is `null`.
pub const WHY: &str = "why";

impl FieldDescription {
    /// A field that is always there, and is not flat.
    pub const fn new(name: &'static str, about: &'static str, form: Form) -> Self {
        FieldDescription { name, about, form, is_optional: false, is_flat: false }
    }

    /// The reasons for what is `null`.
    pub const fn why(is_optional: bool) -> Self {
        let about = "Why fields are `null` or uncertain: a reason under the name of each.";
        FieldDescription { is_optional, ..FieldDescription::new(WHY, about, Form::Map(&Form::Text)) }
    }
}

impl Form {
    /// A word of an enumeration.
    pub const fn word<T: Worded>(name: &'static str) -> Form {
        Form::Word(Words { name, all: || T::words().map(str::to_owned).collect() })
    }

    /// The JSON fields of an object of this form, in order: flat fields are replaced by theirs, and flags are two
    /// fields. For several shapes: the fields of all, optional unless every shape has them. Empty if the form is no
    /// object.
    pub fn fields(self) -> Vec<FieldDescription> {
        let mut all = Vec::new();
        match self {
            Form::Object(fields) => fields.iter().for_each(|field| field.expand(&mut all)),
            Form::OneOf { tag, shapes } => {
                all.push(FieldDescription::new(tag, "The form of this record.", Form::Text));
                let shapes: Vec<_> = shapes.iter().map(|shape| shape.form.fields()).collect();
                let everywhere = |name| {
                    let has = |fields: &Vec<FieldDescription>| fields.iter().any(|field| field.name == name);
                    shapes.iter().all(has)
                };
                for field in shapes.iter().flatten() {
                    let is_optional = field.is_optional || !everywhere(field.name);
                    if all.iter().all(|known| known.name != field.name) {
                        all.push(FieldDescription { is_optional, ..*field });
                    }
                }
            }
            Form::OrNull(form) => all = form.fields(),
            _ => {}
        }
        all
    }
}

impl FieldDescription {
    fn expand(&self, all: &mut Vec<FieldDescription>) {
        let is_optional = |field: FieldDescription| FieldDescription {
            is_optional: field.is_optional || matches!(self.form, Form::OrNull(_)),
            ..field
        };
        let (names, number) = match self.form {
            // Its reasons are among those of the whole.
            _ if self.is_flat => {
                let fields = self.form.fields().into_iter();
                return all.extend(fields.filter(|field| field.name != WHY).map(is_optional));
            }
            Form::Flags => (Form::List(&Form::Text), Form::Hex),
            Form::OrNull(Form::Flags) => (Form::OrNull(&Form::List(&Form::Text)), Form::OrNull(&Form::Hex)),
            _ => return all.push(*self),
        };
        all.push(FieldDescription { form: names, ..*self });
        let name = FLAGS_RAW;
        let about = "The same flags as a number.";
        all.push(FieldDescription { name, about, form: number, ..*self });
    }
}
