fn main() {
    pmdb::demo::become_child_if_asked();
}
