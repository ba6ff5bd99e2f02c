//! Names of symbols in the schemes of C++ and Rust, with versions: demangled, and searched for as people type them.

use crate::elf::{region, with_names};
use pmdb::kernel::VirtualAddress;
use pmdb::symbol::{Symbols, TargetSymbols};

const CODE: u64 = 0x7f00_0000_0000;

/// Pieces of the schemes that nest, repeat and refer back.
pub const PIECES: &[&str] = &[
    "dldldldldldldldl",
    "dadadadadada",
    "nananana",
    "cvT_I",
    "NUlS_E",
    "LN1aIX",
    "S_S_S_S_",
    "S0_S1_S2_",
    "T_T_T_T_",
    "E",
    "EEEEEEEE",
    "_",
    "RRRRRRRR",
    "PPPPPPPP",
    "JE",
    "DpT_",
    "FvS_S0_E",
    "IS_S_E",
    "XE",
    "sr",
    "L_Z",
    "_GLOBAL__I_",
    "B_",
    "B0_B1_",
    "TpB0_B1_E",
    "MIC1bppppppppEu",
    "RB_",
    "Kj7_",
    "$LT$",
    "..",
    "@@V_1",
    "@V_1",
    ".cold.1",
];

pub fn seeds() -> Vec<Vec<u8>> {
    let nested = |outer: &str, inner: &str, count| format!("{outer}{}", inner.repeat(count));
    [
        "_ZNSt8functionIFvRPN4llvm5ValueEEEaSIZNS0_4LessELPKc0EEERS5_OT_@@V_1",
        "_ZNK1aIXadL_ZN1b1cEvEELi5EJiDpT_EEcvT_IiEIcEEv.part.0.cold",
        "_Z1fIiEDTcldtfp_1gIT_EspfL0p0_LZ1hvEEES1_A10_KcPDoFviE",
        "_Z1fIXfLplfp_Lj3EEXqultfp_LDnEgsdlfp_ngLd3ff0EE",
        "_ZN3std2rt10lang_start17h0123456789abcdefE",
        "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
        "_RNvXs_NtC1a1bINtB4_1cTjhENtB4_1dE1f",
        "memcpy@GLIBC_2.2.5",
        &nested("_Z1fRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRi", "S10_", 1900),
        &nested("_RIC1aTMIC1bppppppppppppppppppppppppppppppppppppppEu", "B5_", 2000),
        &nested("_Z1fIX", "dl", 40),
    ]
    .map(|name| name.as_bytes().to_vec())
    .to_vec()
}

/// A JIT compiler may give code any name.
pub fn feed(name: &[u8]) {
    let symbols = Symbols::default();
    symbols.use_perf_maps(true);
    let line = [format!("{CODE:x} 10 ").as_bytes(), name].concat();
    with_names(&line, &symbols, &[region(CODE, 0, "")], ask);
}

fn ask(names: &TargetSymbols) {
    if let Some(symbol) = names.at(VirtualAddress::new(CODE)) {
        let shown = symbol.name().to_string();
        assert_eq!(symbol.name().to_string(), shown);
    }
}
