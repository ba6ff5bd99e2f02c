//! What lies at which physical address: `/proc/iomem`.

use super::text::{self, BadLine};
use super::{Name, PhysicalAddress};

/// The physical address space, divided into nested resources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resources(Vec<Resource>);

/// One stretch of physical addresses, and what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// How many resources it lies in.
    pub depth: usize,
    /// Its first byte.
    pub first: PhysicalAddress,
    /// Its last byte: after the last byte of the address space there is no address.
    pub last: PhysicalAddress,
    /// `System RAM`, `Kernel code`, a device.
    pub name: Name,
}

impl Resources {
    /// Decodes `/proc/iomem`: a row `first-last : name` for each resource, indented by two blanks for each that it lies
    /// in.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let rows = text::lines(bytes);
        let rows = rows.map(|line| resource(line.bytes).ok_or_else(|| line.bad("iomem")));
        Ok(Resources(rows.collect::<Result<_, _>>()?))
    }

    /// Whether the kernel hides the addresses: without CAP_SYS_ADMIN it shows all as 0 (Linux 4.6).
    pub fn are_hidden(&self) -> bool {
        let nowhere = |resource: &Resource| (resource.first.get(), resource.last.get()) == (0, 0);
        !self.0.is_empty() && self.0.iter().all(nowhere)
    }

    /// Whether there are none: no machine is so, but containers mount an empty file over this one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The resources that `address` lies in, the outermost first.
    pub fn at(&self, address: PhysicalAddress) -> Vec<&Resource> {
        let mut nested: Vec<&Resource> = Vec::new();
        for resource in &self.0 {
            let holds = resource.first <= address && address <= resource.last;
            if holds && resource.depth == nested.len() {
                nested.push(resource);
            }
        }
        nested
    }
}

fn resource(line: &[u8]) -> Option<Resource> {
    let indent = line.iter().take_while(|&&byte| byte == b' ').count();
    let (range, name) = text::split_once(line.get(indent..)?, b' ')?;
    let (first, last) = text::split_once(range, b'-')?;
    Some(Resource {
        depth: indent / 2,
        first: PhysicalAddress::new(text::hexadecimal(first)?),
        last: PhysicalAddress::new(text::hexadecimal(last)?),
        name: Name::new(name.strip_prefix(b": ")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"00000000-00000fff : Reserved
00001000-0009fbff : System RAM
00100000-bfffffff : System RAM
  01000000-0220bb07 : Kernel code
  03000000-0327c13f : Kernel data
eec00000-febfffff : Reserved
  eec00000-eecfffff : PCI ECAM 0000 [bus 00-00]
    eec00000-eecfffff : PCI Bus 0000:00
100000000-ffffffffffffffff : System RAM
";

    #[test]
    fn resources_of_an_address() {
        let resources = Resources::parse(TEXT).expect("rows");
        assert!(!resources.are_hidden());
        let at = |address| {
            let nested = resources.at(PhysicalAddress::new(address));
            let names = nested.iter().map(|resource| resource.name.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(at(0), ["Reserved"]);
        assert_eq!(at(0xfff), ["Reserved"]);
        assert_eq!(at(0x1000), ["System RAM"]);
        assert!(at(0x9_fc00).is_empty());
        assert_eq!(at(0x100_0000), ["System RAM", "Kernel code"]);
        assert_eq!(at(0x220_bb07), ["System RAM", "Kernel code"]);
        assert_eq!(at(0x220_bb08), ["System RAM"]);
        let deep = ["Reserved", "PCI ECAM 0000 [bus 00-00]", "PCI Bus 0000:00"];
        assert_eq!(at(0xeec0_0000), deep);
        assert_eq!(at(u64::MAX), ["System RAM"]);
    }

    #[test]
    fn hidden_addresses() {
        let hidden = b"00000000-00000000 : Reserved\n  00000000-00000000 : Kernel code\n";
        assert!(Resources::parse(hidden).expect("rows").are_hidden());
        let none = Resources::parse(b"").expect("no rows");
        assert!(none.is_empty() && !none.are_hidden());
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in ["0-f Reserved", "0 : Reserved", "-f : Reserved", "0-g : x"] {
            let text = format!("0-f : Reserved\n{bad}\n");
            let error = Resources::parse(text.as_bytes()).expect_err("a bad line");
            assert_eq!((error.file, error.line), ("iomem", 2), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), address: u64) {
            if let Ok(resources) = Resources::parse(&bytes) {
                resources.at(PhysicalAddress::new(address));
            }
        }
    }
}
