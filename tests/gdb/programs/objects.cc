// Objects, references and templates.
#include <cstring>

template <typename T, int N> struct Ring {
    T items[N];
    T &at(int index) { return items[index]; }
};

static Ring<char, 8 * 4096> ring;

static void stop(Ring<char, 8 * 4096> &reference, char &element) {
    reference.at(0) = element;
}

int main() {
    std::memset(ring.items, 1, sizeof ring.items);
    stop(ring, ring.items[4096]);
}
