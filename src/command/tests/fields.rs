//! What the descriptions of fields of JSON promise.

use crate::command::RECORDS;
use crate::inspect::RegionAmount;
use crate::kernel::PageFact;
use crate::lang::{FilterField, RegionField};
use crate::report::{FieldDescription, JsonForm};
use regex_lite::Regex;

/// A field of JSON that is a field of filters by another word says by which.
#[test]
fn fields_that_filters_call_otherwise_say_the_word() {
    let pages = PageFact::ALL.iter().map(|fact| (fact.row().json, fact.row().word));
    let others: Vec<_> = pages.filter(|(json, word)| !json.is_empty() && json != word).collect();
    let mut silent = Vec::new();
    for shape in &*RECORDS {
        for field in shape.form.fields() {
            let region = RegionField::with_name(field.name, true).filter(|_| shape.name == "region");
            let mut words: Vec<_> = others.iter().filter(|(json, _)| *json == field.name).map(|of| of.1).collect();
            words.extend(region.map(FilterField::name).filter(|word| *word != field.name));
            for word in words.iter().filter(|_| field.form.fields().is_empty()) {
                if !field.about.contains(&format!("`{word}` in filters")) {
                    silent.push(format!("{} of {}", field.name, shape.name));
                }
            }
        }
    }
    assert_eq!(silent, [""; 0]);
    // What `region` has of amounts, filters of regions have too.
    for amount in RegionAmount::ALL {
        assert!(RegionField::with_name(amount.word(), true).is_some(), "{}", amount.word());
    }
}

/// Whether strings in it are words of a closed list, as far as there are strings.
fn is_closed(form: JsonForm) -> bool {
    match form {
        JsonForm::OrNull(form) | JsonForm::List(form) | JsonForm::Map(form) => is_closed(*form),
        JsonForm::Either(one, other) => is_closed(*one) && is_closed(*other),
        form => form != JsonForm::Text,
    }
}

/// Visits the fields of a record, and those of its parts.
fn each_field(form: JsonForm, visit: &mut dyn FnMut(FieldDescription)) {
    match form {
        JsonForm::OrNull(form) | JsonForm::List(form) | JsonForm::Map(form) => each_field(*form, visit),
        form => form.fields().into_iter().for_each(|field| {
            visit(field);
            each_field(field.form, visit);
        }),
    }
}

/// The schema has the words as an `enum`, from the type that prints them.
#[test]
fn fields_whose_words_are_listed_are_enumerations() {
    let list = Regex::new("`[a-z_-]+`(, | or )`[a-z_-]+`").expect("a regular expression");
    let mut open = Vec::new();
    for shape in &*RECORDS {
        each_field(shape.form, &mut |field| {
            if list.is_match(field.about)
                && !field.about.contains('…')
                && !field.about.contains("or a fact")
                && !is_closed(field.form)
            {
                open.push(format!("{} of {}", field.name, shape.name));
            }
        });
    }
    open.dedup();
    assert_eq!(open, [""; 0]);
}
