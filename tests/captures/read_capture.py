"""Lists the regions of the first process in a capture of pmdb, with its resident pages and their frames: as
`help capture-format` describes the format, with the standard library alone."""
import gzip, json, struct, sys, tarfile

PRESENT, FRAME = 1 << 63, (1 << 55) - 1


def head(archive):
    lines = archive.extractfile("capture").read().decode().split("\n")
    if lines[0] != "pmdb capture 2":
        sys.exit("another format: " + lines[0])
    return dict(line.split(" ", 1) for line in lines[1:] if line.startswith(("page-bytes ", "byte-order ")))


def block(file, place):
    offset, packed, length = place
    file.seek(offset)
    found = gzip.decompress(file.read(packed))
    assert len(found) == length
    return found


def text(file, stored):
    if isinstance(stored, list):
        return b"".join(block(file, place) for place in stored)
    parts = stored.split("%")
    rest = (bytes([int(part[:2], 16)]) + part[2:].encode() for part in parts[1:])
    return parts[0].encode() + b"".join(rest)


def words(file, stored):
    """The words of each run, with the index of its first one."""
    for _, _, place in stored["blocks"]:
        found = block(file, place)
        count = len(found) // 8
        columns = [found[start:start + count] for start in range(0, len(found), count)]
        numbers = struct.unpack(f"<{count}Q", b"".join(bytes(word) for word in zip(*columns)))
        runs = numbers[0]
        gaps, lengths, kept = (numbers[1 + n * runs:1 + (n + 1) * runs] for n in range(3))
        differences = iter(numbers[1 + 3 * runs:])
        end = word = 0
        for gap, length, here in zip(gaps, lengths, kept):
            first, end = (end + gap) % 2**64, (end + gap) % 2**64 + length
            values = []
            for _ in range(here):
                word = (word + next(differences)) % 2**64
                values.append(word)
            yield first, values * length if here == 1 else values


with tarfile.open(sys.argv[1]) as archive, open(sys.argv[1], "rb") as file:
    page = int(head(archive)["page-bytes"])
    index = json.loads(gzip.decompress(archive.extractfile("index.json.gz").read()))
    process = index["processes"][0]
    entries = {(first + n) * page: word for first, run in words(file, process["page_map"]) for n, word in enumerate(run)}
    resident = {address: word & FRAME for address, word in entries.items() if word & PRESENT}
    for line in text(file, process["maps"]).decode(errors="replace").splitlines():
        start, end = (int(number, 16) for number in line.split(" ")[0].split("-"))
        pages = {hex(address): frame for address, frame in resident.items() if start <= address < end}
        print(json.dumps({"start": hex(start), "end": hex(end), "perms": line.split(" ")[1], "pages": pages}))
