// Objects, references and templates.
#include <cstring>
#include <vector>

template <typename T, int N> struct Ring {
    T items[N];
    T &at(int index) { return items[index]; }
};

static Ring<char, 8 * 4096> ring;
// Called as words of pmdb are.
static char huge[4 * 4096], children[4 * 4096];
static char *frames = huge;
static std::vector<int> numbers(4096, 1);

template <typename T, int N> static T *skipped(T *from) {
    return from + N;
}

static void stop(Ring<char, 8 * 4096> &reference, char &element) {
    reference.at(0) = element;
}

int main() {
    std::memset(ring.items, 1, sizeof ring.items);
    std::memset(huge, 2, sizeof huge);
    std::memset(children, 3, sizeof children);
    frames = skipped<char, 4096>(frames);
    stop(ring, ring.items[4096]);
}
