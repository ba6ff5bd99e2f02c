//! BTF that tests make, type by type.

/// BTF under construction.
pub struct Made {
    is_big_endian: bool,
    types: Vec<u8>,
    names: Vec<u8>,
    count: u32,
}

impl Made {
    pub fn new(is_big_endian: bool) -> Self {
        Made { is_big_endian, types: Vec::new(), names: vec![0], count: 0 }
    }

    /// The offset of a name; 0 is that of none.
    fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let at = self.names.len() as u32;
        self.names.extend(name.bytes().chain([0]));
        at
    }

    fn words(&self, words: &[u32]) -> Vec<u8> {
        let bytes = |word: &u32| if self.is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        words.iter().flat_map(bytes).collect()
    }

    /// Adds a type, and returns its number. `info` has its kind and its flag, `count` how many elements `rest` has.
    fn add(&mut self, name: &str, info: u32, count: usize, size: u32, rest: &[u32]) -> u32 {
        let name = self.name(name);
        let head = [name, info << 24 | count as u32, size];
        let bytes = self.words(&[&head, rest].concat());
        self.types.extend(bytes);
        self.count += 1;
        self.count
    }

    /// An integer of that many bits, which begin at `bit_offset`.
    pub fn int(&mut self, name: &str, bytes: u32, is_signed: bool, bit_offset: u32, bits: u32) -> u32 {
        self.add(name, 1, 0, bytes, &[u32::from(is_signed) << 24 | bit_offset << 16 | bits])
    }

    pub fn array(&mut self, element: u32, count: u32) -> u32 {
        self.add("", 3, 0, 0, &[element, 1, count])
    }

    /// A type that refers to another: a pointer (kind 2), a typedef (8), a qualifier.
    pub fn reference(&mut self, name: &str, kind: u32, to: u32) -> u32 {
        self.add(name, kind, 0, to, &[])
    }

    /// A structure (kind 4) or union (5), with the name, type and bit offset of each member. With bit 7 of `kind` the
    /// widths of bit fields are in the upper byte of the offset.
    pub fn structure(&mut self, name: &str, kind: u32, bytes: u32, members: &[(&str, u32, u32)]) -> u32 {
        let rest: Vec<u32> = members.iter().flat_map(|&(name, to, place)| [self.name(name), to, place]).collect();
        self.add(name, kind, members.len(), bytes, &rest)
    }

    /// An enumeration of 32 bits (kind 6) or 64 (19). With bit 7 of `kind` its values are signed.
    pub fn enumeration(&mut self, name: &str, kind: u32, values: &[(&str, i64)]) -> u32 {
        let is_wide = kind & 0x7f == 19;
        let rest = values.iter().flat_map(|&(name, value)| {
            let words = [self.name(name), value as u32, (value >> 32) as u32];
            words.into_iter().take(if is_wide { 3 } else { 2 })
        });
        let rest: Vec<u32> = rest.collect();
        self.add(name, kind, values.len(), if is_wide { 8 } else { 4 }, &rest)
    }

    /// One of each kind that has no layout: a forward declaration, a function with its prototype, a variable in a
    /// section, and tags.
    pub fn others(&mut self, name: &str, number: u32) {
        self.add(name, 7, 0, 0, &[]);
        let prototype = self.add("", 13, 2, number, &[0, number, 0, 0]);
        let function = self.add("fault", 12, 1, prototype, &[]);
        let variable = self.add("jiffies", 14, 0, number, &[1]);
        self.add(".data", 15, 1, 8, &[variable, 0, 8]);
        self.add("hot", 17, 0, function, &[u32::MAX]);
    }

    /// A type of a kind that does not exist yet, with one word and two elements of another.
    pub fn future(&mut self) -> u32 {
        self.add("future", 40, 2, 0, &[7, 8, 9])
    }

    /// How many types there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        self.with_header(&[])
    }

    /// The same with the sizes of kinds up to [`future`](Self::future).
    pub fn with_kinds(&self) -> Vec<u8> {
        let mut kinds = vec![0; 41 * 4];
        kinds[160..162].copy_from_slice(&[4, 4]);
        self.with_header(&kinds)
    }

    fn with_header(&self, kinds: &[u8]) -> Vec<u8> {
        let (types, names) = (self.types.len() as u32, self.names.len() as u32);
        let mut header = vec![if kinds.is_empty() { 24 } else { 32 }, 0, types, types, names];
        if !kinds.is_empty() {
            header.extend([types + names, kinds.len() as u32]);
        }
        let magic = if self.is_big_endian { [0xeb, 0x9f] } else { [0x9f, 0xeb] };
        [&magic, &[1, 0][..], &self.words(&header), &self.types, &self.names, kinds].concat()
    }
}

/// The description of a small kernel, with all kinds of types.
pub fn kernel(is_big_endian: bool) -> Made {
    let mut made = Made::new(is_big_endian);
    let int = made.int("int", 4, true, 0, 32);
    let long = made.int("long unsigned int", 8, false, 0, 64);
    let byte = made.int("unsigned char", 1, false, 0, 8);
    // As compilers wrote bit fields before structures had the flag.
    let narrow = made.int("unsigned int", 4, false, 2, 3);
    let double = made.reference("double", 16, 8);
    let atomic = made.structure("", 4, 4, &[("counter", int, 0)]);
    let atomic = made.reference("atomic_t", 8, atomic);
    let tagged = made.reference("rcu", 18, atomic);
    let volatile = made.reference("", 9, tagged);
    let constant = made.reference("", 10, volatile);
    let restricted = made.reference("", 11, constant);
    let pointer = made.reference("", 2, long);
    let state = made.enumeration("state", 6 | 0x80, &[("GONE", -2), ("HERE", 3)]);
    made.enumeration("pageflags", 6, &[("PG_locked", 0), ("PG_head", 6), ("PG_last", 0xffff_fffe)]);
    made.enumeration("wide", 19, &[("LOW", 1), ("HIGH", 1 << 40), ("HIGHEST", -1)]);
    made.enumeration("wide_signed", 19 | 0x80, &[("LOWEST", i64::MIN)]);
    let list = made.structure("list_head", 4, 16, &[("next", pointer, 0), ("prev", pointer, 64)]);
    let deeper = made.structure("", 4, 16, &[("mapping", pointer, 0), ("index", long, 64)]);
    let either = made.structure("", 5, 16, &[("", deeper, 0), ("lru", list, 0)]);
    let members = [("flags", long, 0), ("", either, 64), ("_refcount", restricted, 192), ("_mapcount", atomic, 224)];
    let page = made.structure("page", 4, 32, &members);
    let first = made.structure("", 4, 32, &[("mapping", pointer, 64), ("private", long, 192)]);
    let both = made.structure("", 5, 32, &[("", first, 0), ("page", page, 0)]);
    made.structure("folio", 4, 64, &[("", both, 0), ("_pincount", atomic, 256 + 64), ("kind", state, 256 + 96)]);
    let slots = made.array(pointer, 4);
    let rows = made.array(slots, 3);
    made.structure("node", 4, 112, &[("shift", byte, 0), ("slots", rows, 64), ("load", double, 832)]);
    let fields = [("low", int, 3 << 24), ("next", long, 40 << 24 | 3), ("whole", byte, 48)];
    made.structure("packed", 4 | 0x80, 8, &fields);
    made.structure("old", 4, 8, &[("field", narrow, 32)]);
    made.structure("twice", 4, 16, &[("same", int, 32), ("other", int, 64)]);
    made.structure("twice", 4, 16, &[("same", int, 32), ("other", int, 96)]);
    made.others("page", long);
    made
}
