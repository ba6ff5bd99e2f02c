//! Records of `--serve`.

use crate::report::json::{Form, leaf};
use crate::report::record::record;
use serde::{Deserialize, Serialize};

record! {
    /// The first record of `--serve`.
    pub struct Hello as "hello" {
        /// `pmdb`
        program: &'static str,
        /// Its version.
        version: &'static str,
        /// The version of the protocol: a client for another one stops here.
        protocol: u32,
    }

    /// The end of a request (`--serve`).
    pub struct End as "end" {
        /// The request's own id, or the number of its line, from 1; 0 for the request of the command line.
        id: RequestId,
        /// `ok`, `error`, or `interrupted`
        status: &'static str,
    }
}

leaf!(RequestId => Form::Either(&Form::Number, &Form::Text));

/// The id of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(u64),
    /// A text of the client's own.
    Text(String),
}
