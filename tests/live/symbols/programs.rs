//! Programs that are compiled for the test, with every layout of linkers.

use super::super::support::{at, skip};
use super::super::target::Target;
use super::with_names;
use pmdb::kernel::Name;
use pmdb::symbol::{NamesIn, SymbolAt, Symbols};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = r#"
#include <stdio.h>
int filled[1000] = {1, 2, 3};
static char zeroed[300000];
const char constant[100] = "constant";
static __thread int per_thread = 5;
__attribute__((noinline)) static int helper(int x) { return x + zeroed[x & 7] + filled[1]; }
int main(void) {
    per_thread += helper(1);
    printf("%p %p %p %p %p\n", (void *)filled, (void *)zeroed, (void *)constant, (void *)helper, (void *)main);
    fflush(stdout);
    return getchar() == per_thread;
}
"#;

/// Whether a compiler is installed. If it is, it has to be able to compile the tests' programs.
pub(crate) fn is_installed(compiler: &str) -> bool {
    let version = Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Compiles C with `flags`; `None` if that is not possible here.
pub(crate) fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compile_with("gcc", folder, name, source, flags)
}

pub(crate) fn compile_with(compiler: &str, folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let text = folder.join(format!(
        "{name}.{}",
        match compiler {
            "g++" => "cc",
            "rustc" => "rs",
            _ => "c",
        }
    ));
    std::fs::write(&text, source).expect("a source file");
    let program = folder.join(name);
    let done = Command::new(compiler)
        .arg("-o")
        .arg(&program)
        .arg(&text)
        .args(flags)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success()).then_some(program)
}

pub(super) fn however_a_program_is_linked() {
    let test = "symbols::however_a_program_is_linked";
    if !is_installed("gcc") {
        return skip(test, "there is no C compiler here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, flags) in [
        ("plain", &[][..]),
        ("fixed", &["-no-pie"]),
        ("pie", &["-pie", "-fPIE"]),
        ("static", &["-static", "-no-pie"]),
        ("static-pie", &["-static-pie", "-fPIE"]),
        ("packed", &["-Wl,-z,noseparate-code"]),
        ("huge-pages", &["-Wl,-z,max-page-size=0x200000"]),
        ("gold", &["-fuse-ld=gold"]),
        ("lld", &["-fuse-ld=lld"]),
        ("narrow", &["-m32"]),
        ("apart", &["-no-pie", "-Wl,-Tbss=0x520000"]),
        ("relocatable-read-only", &["-Wl,-z,relro,-z,now"]),
    ] {
        let Some(program) = compile(folder.path(), name, PROGRAM, flags) else {
            assert!(!flags.is_empty(), "the program does not compile");
            skip(test, &format!("gcc {} does not work here", flags.join(" ")));
            continue;
        };
        let mut target = Target::spawn(&mut Command::new(&program));
        let words = target.numbers();
        let attached = target.attach();
        let symbols = Symbols::default();
        with_names(&symbols, &attached, |names, _| {
            let expected = [
                ("filled", words[0], 4000, ".data"),
                ("zeroed", words[1], 300_000, ".bss"),
                ("constant", words[2], 100, ".rodata"),
                ("helper", words[3], 0, ".text"),
                ("main", words[4], 0, ".text"),
            ];
            for (symbol, address, size, section) in expected {
                let found = names.find(Some(name), symbol).expect(symbol);
                let starts: Vec<_> = found.iter().map(|one| one.start).collect();
                assert_eq!(starts, [at(address)], "{name}: {symbol}");
                let last = found[0].size.max(1) - 1;
                for offset in [0, last / 2, last] {
                    let found: Option<SymbolAt> = names.at(at(address + offset));
                    let found = found.unwrap_or_else(|| panic!("{name}: nothing at {symbol}+{offset}"));
                    assert_eq!(found.mangled, Name::from(symbol), "{name}");
                    assert_eq!(found.offset, offset, "{name}");
                    assert_eq!(found.section, Some(Name::from(section)), "{name}");
                    assert!(size == 0 || found.size == size, "{name}: {found:?}");
                    let is_zeroed = names.is_zeroed(at(address + offset));
                    assert_eq!(is_zeroed, section == ".bss", "{name}: {symbol}");
                }
            }
            let error = names.find(Some(name), "per_thread").expect_err("thread-local");
            assert!(error.to_string().contains("thread-local"), "{error}");
            if name == "fixed" {
                let (_, file_address) = names.file_address(at(words[4])).expect("main");
                assert_eq!(file_address, at(words[4]));
            }
            let beyond = names.address_in(name, 1 << 40).expect_err("not in the file");
            assert!(beyond.to_string().contains("no load segment"), "{beyond}");
            assert!(names.address_in("no-such-module", 0).is_err());
        });
        target.send("");
    }
}

const CPP_PROGRAM: &str = r#"
#include <cstdio>
#include <string>
namespace shapes {
    struct circle { virtual ~circle() {} __attribute__((noinline)) double area(int n) const { return n * r; } double r = 2; };
    template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }
    static __attribute__((noinline)) int hidden(const std::string &s) { return s.size(); }
    int table[100] = {1};
}
namespace { __attribute__((noinline)) int nameless(int x) { return x * shapes::table[x & 63]; } }
int main() {
    shapes::circle c;
    double (shapes::circle::*area)(int) const = &shapes::circle::area;
    int x = c.area(1) + shapes::twice(1) + shapes::twice(1.5) + shapes::hidden("x") + nameless(3);
    std::printf("%p %p %p %p %p %p\n", reinterpret_cast<void *&>(area), (void *)shapes::twice<int>,
        (void *)shapes::twice<double>, (void *)shapes::hidden, (void *)nameless, (void *)shapes::table);
    std::fflush(stdout);
    return std::getchar() == x;
}
"#;

pub(super) fn names_of_a_cpp_program() {
    let test = "symbols::names_of_a_cpp_program";
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed("g++") {
        return skip(test, "there is no C++ compiler here");
    }
    let program = compile_with("g++", folder.path(), "cpp", CPP_PROGRAM, &["-O1"]);
    let program = program.expect("to compile");
    let mut target = Target::spawn(&mut Command::new(&program));
    let words = target.numbers();
    let symbols = Symbols::default();
    with_names(&symbols, &target.attach(), |names, _| {
        for (typed, address) in [
            ("shapes::circle::area", words[0]),
            ("shapes::circle::area(int) const", words[0]),
            ("shapes::circle::area(int)const", words[0]),
            ("_ZNK6shapes6circle4areaEi", words[0]),
            ("shapes::twice<int>", words[1]),
            ("int shapes::twice<int>(int)", words[1]),
            ("shapes::twice<double>", words[2]),
            ("shapes::hidden", words[3]),
            ("(anonymous namespace)::nameless", words[4]),
            ("(anonymous namespace)::nameless(int)", words[4]),
            ("shapes::table", words[5]),
        ] {
            let found = names.find(Some("cpp"), typed).expect("a search");
            let starts: Vec<_> = found.iter().map(|one| one.start).collect();
            assert_eq!(starts, [at(address)], "{typed}");
            // What is shown can be typed.
            let shown = found[0].name().to_string();
            let again = names.find(Some("cpp"), &shown).expect("a search");
            assert_eq!(again, found, "{shown}");
        }
        let completed = names.names(NamesIn::Module("cpp"), "shapes::", 100, Duration::from_secs(60));
        for expected in ["shapes::circle::area", "shapes::hidden", "shapes::table", "shapes::twice<double>"] {
            assert!(completed.contains(&Name::from(expected)), "{expected} is not among {completed:?}");
        }
    });
    target.send("");
}
