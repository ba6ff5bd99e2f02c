//! Programs that are compiled for these tests.

pub const C_PROGRAM: &str = r#"
#include <stdio.h>
static volatile int sink;
static inline __attribute__((always_inline)) int square(int x) {
    sink += x;
    return x * x;
}
static inline __attribute__((always_inline)) int twice(int x) {
    int first = square(x);
    return first + square(x + 1);
}
__attribute__((noinline)) int work(int x) {
    for (int i = 0; i < x; i++)
        sink += twice(i);
    return sink;
}
__attribute__((cold, noinline)) void report(const char *text) {
    fprintf(stderr, "%s\n", text);
}
int main(void) {
    printf("%p %p\n", (void *)work, (void *)main);
    fflush(stdout);
    if (work(3) == 1)
        report("no");
    return getchar() == sink;
}
"#;

pub const CPP_PROGRAM: &str = r#"
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace shop {
    struct item { std::string name; int price; };
    static inline int sum(const std::vector<item> &items) {
        int all = 0;
        std::for_each(items.begin(), items.end(), [&](const item &one) { all += one.price; });
        return all;
    }
    template <class T> __attribute__((noinline)) T cheapest(std::vector<T> items) {
        std::sort(items.begin(), items.end(), [](const T &a, const T &b) { return a.price < b.price; });
        return items.front();
    }
}
int main() {
    std::vector<shop::item> items = {{"a", 3}, {"b", 1}};
    std::map<std::string, int> index;
    for (const auto &one : items) index[one.name] = one.price;
    std::printf("%d %d %zu\n", shop::sum(items), shop::cheapest(items).price, index.size());
    std::fflush(stdout);
    return std::getchar();
}
"#;

pub const RUST_PROGRAM: &str = r#"
use std::collections::BTreeMap;
use std::io::Read;
#[inline(never)]
fn count(words: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in words { *counts.entry(word.as_str()).or_insert(0) += word.chars().filter(|c| c.is_alphabetic()).count(); }
    counts
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    println!("{}", count(&words).len());
    let _ = std::io::stdin().read(&mut [0]);
}
"#;
