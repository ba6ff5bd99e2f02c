//! Records of `--serve`.

use crate::kernel::words::worded;
use crate::report::ErrorCode;
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
        status: EndStatus,
        /// The code of the error, as in its record; `null` for `ok`.
        code: Option<ErrorCode>,
    }
}

leaf! {
    RequestId => Form::Either(&Form::Integer, &Form::Text),
    EndStatus => Form::word::<EndStatus>("status"),
}

worded! {
    /// How a request has ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EndStatus, word {
        /// Without an error.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// Stopped before its end.
        Interrupted = "interrupted",
    }
}

/// The id of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(u64),
    /// A text of the client's own.
    Text(String),
}
