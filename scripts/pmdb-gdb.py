"""pmdb in gdb: the pages behind gdb's expressions.

    (gdb) source pmdb-gdb.py
    (gdb) pmdb translate buf
    (gdb) help pmdb

It needs gdb 10 and Python 3.7, or later, and the program pmdb. Each inferior has a pmdb of its own, which reads /proc and never
stops the process. Commands, their help and their completions come from that program.
"""

import atexit
import difflib
import functools
import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
import types

import gdb

# gdb runs this file among the names that the user has in Python, where `def find` would change what it does. The last lines give
# the user's names back, and run the file again as a module.
OF_THE_USER = dict(globals()) if __name__ == "__main__" else None

# An expression ends before one of these words, or a word of the command's own usage.
CLAUSES = {"where", "by", "limit", "top", "every", "for", "until", "with"}
# Commands that gdb has itself, or that belong to pmdb's prompt.
LEFT_OUT = {"print", "display", "undisplay", "info display"}
# Several processes, as `account` takes them, beside "NAME".
FAMILY = ["children", "cgroup"]
# Commands that take a range, and explain one address in detail.
ABOUT_ADDRESSES = {"translate"}
# The whole region of an address.
REGION = re.compile(r"region\s*(?=\()")
# Addresses of physical memory, which gdb does not have.
PHYSICAL = re.compile(r"(pfn|phys):(?!:)")
# Commands that would leave the inferior or end the server.
REFUSED = {"attach", "detach", "quit", "source", "target"}
NOT_IN_GDB = "pmdb in gdb has no {}: it examines the inferior, one line at a time"
# Lines that blocks are made of.
BLOCKS = {"if", "else", "end", "while", "loop_break", "loop_continue", "foreach", "define", "document"}
NO_BLOCKS = "pmdb in gdb takes one line; blocks of gdb, such as while and define, can have lines of pmdb"
PROTOCOL = 1
# Seconds to wait for answers that take milliseconds; pmdb hangs if it takes longer.
PATIENCE = 5


# ---- Taking a line apart

TEMPLATE = re.compile(r"<((?:(?!\b(?:and|or)\b)[\w\s:,*()\[\]]|&(?!&)|->(?=\s))*)>")


def without_templates(text):
    """The text with brackets in place of < and > around the arguments of templates: vector<int>. Its length stays."""
    def bracketed(match):
        return "(" + match.group(1) + ")" if re.search(r"[A-Za-z_]\w*$", text[:match.start()]) else match.group()
    before = None
    while before != text:
        before, text = text, TEMPLATE.sub(bracketed, text)
    return text


def outside(text):
    """The positions and characters of a text outside of brackets and quotes, and the closing brackets without an opening one."""
    text = without_templates(text)
    depth, quote, at = 0, None, 0
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = None
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}" and depth > 0:
            depth -= 1
        elif depth == 0:
            yield at, character
        at += 1


def find(text, what):
    """Where `what` first stands outside of brackets and quotes; -1 if nowhere."""
    return next((at for at, _ in outside(text) if text.startswith(what, at)), -1)


def closing(text, start):
    """Where the bracket that stands at `start` is closed; -1 if nowhere."""
    return next((start + 1 + at for at, character in outside(text[start + 1:]) if character in ")]}"), -1)


def cut_clauses(text, words):
    """Splits a text into an expression and its clauses. A word right behind an operator belongs to the expression."""
    free = {at for at, _ in outside(text)}
    for match in re.finditer(r"(?<![\w$.])[a-z]+(?!\w)", text):
        before = text[:match.start()].rstrip()
        continues = re.search(r"[-+*/%&|^~<>=!,.:@]$", before) and not re.search(r"(\+\+|--)$", before)
        if match.start() in free and match.group() in words and before and not continues:
            return before, text[match.start():]
    return text.strip(), ""


def without_brackets(text):
    """The text without the brackets that enclose all of it; {EXPR} is EXPR, as in pmdb's part of a line."""
    text = text.strip()
    while text.startswith(("(", "{")) and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def refuse_shell(expression):
    """Refuses `|` and `>`, which mean a pipe and a file at pmdb's prompt."""
    for at, character in outside(expression):
        around = expression[max(0, at - 1):at + 2]
        if character == "|" and "||" not in around or character == ">" and not re.search(r"->|>>|>=", around):
            raise gdb.GdbError("pmdb in gdb has no {0}: gdb's own pipe does that, and ({0}) in brackets is an operator".format(character))


# ---- Errors

def plainly(function):
    """Makes each error one line of gdb, without a traceback."""
    @functools.wraps(function)
    def called(*arguments):
        try:
            return function(*arguments)
        except gdb.GdbError:
            raise
        except KeyboardInterrupt:
            raise gdb.GdbError("Quit")
        except Exception as error:
            message = printable(" ".join(str(error).split())) or type(error).__name__
            if message.startswith("No symbol"):
                message += " For pmdb's own names, such as all and heap, use pmdb -- COMMAND"
            raise gdb.GdbError(message)
    return called


# ---- Expressions of gdb

NUMBERS = {gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_RANGE, gdb.TYPE_CODE_FLAGS}
PLACES = {gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_STRING, gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_FUNC, gdb.TYPE_CODE_METHOD}
REFERENCES = {gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF}


def evaluated(text):
    """The value of an expression, evaluated once. Memory behind it is not read."""
    text = without_brackets(text)
    if not text:
        raise gdb.GdbError("an expression is missing: pmdb wants an address here")
    return resolved(gdb.parse_and_eval(text))


def resolved(value):
    """What a reference refers to."""
    if value.type.strip_typedefs().code in REFERENCES:
        return value.referenced_value()
    return value


def location(value):
    """Where a value lies in memory."""
    code = value.type.strip_typedefs().code
    # For the address of an array that is not in memory, gdb would allocate memory in the inferior.
    lies_nowhere = code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_STRING) and not value.is_lazy
    address = None if lies_nowhere else value.address
    if address is None:
        raise gdb.GdbError("a value of type {} that is not in memory has no address".format(value.type))
    return int(address)


def function_end(start):
    """The end of the function that begins at an address, if the debug information has it."""
    block = gdb.block_for_pc(start)
    while block is not None and block.function is None:
        block = block.superblock
    return block.end if block is not None and block.start == start else start


def place(value):
    """The address of a value, as for gdb's x, and the size of the object there; 0 for a pointer or number."""
    kind = value.type.strip_typedefs()
    if kind.code in PLACES:
        address = location(value)
        if kind.code in (gdb.TYPE_CODE_FUNC, gdb.TYPE_CODE_METHOD):
            return address, function_end(address) - address
        return address, kind.sizeof or 0
    if kind.code == gdb.TYPE_CODE_PTR or kind.code in NUMBERS:
        return int(value) % 2 ** 64, 0
    raise gdb.GdbError("a value of type {} is not an address".format(value.type))


def number(text):
    value = evaluated(text)
    if value.type.strip_typedefs().code not in NUMBERS:
        raise gdb.GdbError("{} is not a number".format(text.strip()))
    return int(value)


def bits(text):
    """The bits of a number or a pointer."""
    value = evaluated(text)
    kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_PTR and kind.code not in NUMBERS:
        raise gdb.GdbError("a value of type {} is not a number".format(value.type))
    return int(value) % (1 << 8 * kind.sizeof)


SUFFIXED = re.compile(r"\s*(\d+)([KMGTp])\s*")


def length(text):
    """A number of bytes, also with a suffix of pmdb: 32M, 8p."""
    with_suffix = SUFFIXED.fullmatch(text)
    if with_suffix:
        size, suffix = int(with_suffix.group(1)), with_suffix.group(2)
        return size * os.sysconf("SC_PAGE_SIZE") if suffix == "p" else size << 10 * (1 + "KMGT".index(suffix))
    return number(text)


# Structures whose contents lie elsewhere: a vector, a text, a slice.
HEADERS = re.compile(r"(&(mut )?(str$|\[)|(alloc|std)::(\w+::)*(Vec|VecDeque|String|Box<\[|vector|deque|basic_string|__cxx11::basic_string|string)\b)")


def note_header(text, kind):
    """Says that a range is only the header of a container, and what to write for what is in it."""
    name = kind.name or kind.tag or ""
    if kind.code != gdb.TYPE_CODE_STRUCT or not HEADERS.match(name):
        return
    fields = {field.name for field in kind.fields()}
    contents = "*{0}.data_ptr@{0}.length".format(text.strip()) if {"data_ptr", "length"} <= fields else "*POINTER@COUNT of its data"
    write("note: {} is a header of {} bytes, and its contents are elsewhere; for those, write {}\n".format(
        text.strip(), kind.sizeof, contents))


def addressed(text, may_be_range=False):
    """The place of an expression. The value of a variable that is too small for an address is seldom meant as one."""
    value = evaluated(text)
    kind = value.type.strip_typedefs()
    if may_be_range:
        note_header(text, kind)
    if kind.code in NUMBERS and kind.sizeof < gdb.lookup_type("char").pointer().sizeof and value.address is not None:
        text = text.strip()
        place_of = text[1:].strip() if text.startswith("*") else "&" + text
        write("note: the value of {} is taken as an address; for the memory there, write {}\n".format(text, place_of))
    return place(value)


def address(text):
    return addressed(text)[0]


def span(text, keeps_size=False):
    """The first address of an expression, and its size: None for an address alone.

    An object within one page becomes an address, so that pmdb shows all facts of that page, unless its size is kept."""
    text = without_brackets(text)
    comma, dots, at = find(text, ","), find(text, ".."), find(text, "@")
    if comma >= 0 and text[comma + 1:].lstrip().startswith("+"):
        return sized(address(text[:comma]), length(text[comma + 1:].lstrip()[1:]))
    if comma >= 0:
        raise gdb.GdbError("a length follows a comma as +LENGTH: {}, +{}".format(text[:comma].strip(), text[comma + 1:].strip()))
    if dots >= 0:
        start, end = address(text[:dots]), address(text[dots + 2:])
        return sized(start, end - start)
    if at >= 0:
        if SUFFIXED.fullmatch(text[at + 1:]):
            raise gdb.GdbError("L@N counts elements; for a number of bytes write &{}, +{}".format(text[:at].strip(), text[at + 1:].strip()))
        value, count = evaluated(text[:at]), number(text[at + 1:])
        start = location(value)
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR and count > 1:
            write("note: these are {} pointers; for what the first one points to, write *({})@{}\n".format(
                count, text[:at].strip(), count))
        return sized(start, value.type.sizeof * count)
    start, size = addressed(text, True)
    page = os.sysconf("SC_PAGE_SIZE")
    is_one_page = start // page == (start + max(size, 1) - 1) // page
    return start, size if size and (keeps_size or not is_one_page) else None


def sized(start, size):
    if size is None:
        raise gdb.GdbError("one address is not a range; write L@N, or A, +LENGTH, or A..B")
    if size <= 0:
        raise gdb.GdbError("a range of {} bytes: its end must be above its start".format(size))
    return start, size


def ranged(text, keeps_size=False):
    """A range of pmdb. `region(EXPR)` is pmdb's."""
    text = without_brackets(text)
    region = REGION.match(text)
    if region and closing(text, region.end()) == len(text) - 1:
        return "region({:#x})".format(address(text[region.end():]))
    start, size = span(text, keeps_size)
    return "{:#x}".format(start) if size is None else "{:#x}, +{:#x}".format(start, size)


def filled(text):
    """Text of pmdb with each {gdb expression} replaced by its address, its number or, for L@N and the like, its range.

    A type in braces stays."""
    parts, at = [], 0
    quoted = re.compile(r"(['\"])(?:\\.|(?!\1).)*\1?")
    while at < len(text):
        end = at + 1
        if text[at] == "{":
            end = closing(text, at) + 1
            if end == 0:
                raise gdb.GdbError("a { has no }; {gdb expression} is replaced by its address or number")
            parts.append(filling(text[at + 1:end - 1]))
        else:
            if text[at] in "\"'":
                end = quoted.match(text, at).end()
            parts.append(text[at:end])
        at = end
    return "".join(parts)


def filling(inner):
    """What takes the place of braces and the text in them."""
    if any(find(inner, mark) >= 0 for mark in ("@", ",", "..")):
        return ranged(inner, keeps_size=True)
    try:
        value = evaluated(inner)
    except gdb.error as error:
        # {int[4]}ADDRESS means the same in both.
        if "type name" not in str(error):
            raise
        return "{" + inner + "}"
    is_number = value.type.strip_typedefs().code in NUMBERS
    return str(int(value)) if is_number else "{:#x}".format(place(value)[0])


# ---- The server

class Lost(Exception):
    """pmdb has ended, or does not answer."""


class Failed(Exception):
    """pmdb has answered with an error, of this code."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


def program():
    """pmdb by its absolute path: as set, then from PATH, then beside this file. Never from the current folder."""
    if PROGRAM.value:
        return PROGRAM.value
    here = os.path.dirname(os.path.realpath(globals().get("__file__", "/")))
    for folder in os.environ.get("PATH", "").split(":") + [here]:
        path = os.path.join(folder, "pmdb")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise gdb.GdbError("pmdb is not in PATH and not beside pmdb-gdb.py: set pmdb program PATH")


class Server:
    """A running pmdb that answers requests."""

    def __init__(self, pid=None):
        # `programs` counts the programs that the process executes while this server runs.
        self.pid, self.last, self.buffer, self.programs = pid, 0, b"", 1
        target = [] if pid is None else ["-p", str(pid)]
        command = [program(), "-q", "--serve", "--no-shell"] + target
        # A session of its own, because Ctrl-C is for gdb, which then cancels the request.
        try:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                          start_new_session=True, bufsize=0)
        except OSError as error:
            raise gdb.GdbError("{} cannot be started: {}".format(command[0], error.strerror))
        try:
            hello = self.record(time.monotonic() + PATIENCE)
            if hello.get("protocol") != PROTOCOL:
                raise gdb.GdbError("{} is not a pmdb that speaks protocol {}".format(command[0], PROTOCOL))
            self.answer(0, lambda _: None, PATIENCE)
        except BaseException as error:
            self.kill()
            if isinstance(error, (Lost, Failed)):
                raise gdb.GdbError(str(error) or "{} does not answer: is it pmdb?".format(command[0]))
            raise

    def is_alive(self):
        return self.child.poll() is None

    def close(self):
        """Ends the server: it exits at the end of its input."""
        self.child.stdin.close()
        try:
            self.child.wait(1)
        except subprocess.TimeoutExpired:
            self.kill()
        self.child.stdout.close()

    def kill(self):
        self.child.kill()
        self.child.wait()

    def record(self, deadline):
        """The next record."""
        while b"\n" not in self.buffer:
            left = None if deadline is None else max(0, deadline - time.monotonic())
            if not select.select([self.child.stdout], [], [], left)[0]:
                raise Lost()
            data = os.read(self.child.stdout.fileno(), 1 << 16)
            if not data:
                raise Lost()
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            raise Lost()

    def answer(self, request, take, limit):
        """Passes on the records of an answer. Without a limit there is no timeout."""
        error = None
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            record = self.record(deadline)
            if record["type"] == "error":
                error = record
            elif record["type"] == "target" and record["event"] == "executed":
                self.programs += 1
            elif record["type"] != "end":
                take(record)
            elif record["id"] == request:
                if record["status"] == "error":
                    raise Failed(in_one_line(error), record.get("code"))
                return record["status"]

    def ask(self, line, take, limit=PATIENCE, **form):
        """Sends a request and passes on the records of its answer. Returns its status; Ctrl-C cancels it."""
        self.last += 1
        request = self.last
        try:
            self.send(dict(form, id=request, line=line))
            return self.answer(request, take, limit)
        except Lost:
            self.kill()
            raise
        except Failed:
            raise
        except KeyboardInterrupt:
            # The summary of a watch is its last record.
            for record in self.cancel(request):
                take(record)
            return "interrupted"
        except BaseException:
            self.cancel(request)
            raise

    def cancel(self, request):
        """Stops a request, and returns the last record of its answer."""
        last = []

        def keep(record):
            last[:] = [record]
        try:
            self.send({"cancel": request})
            self.answer(request, keep, PATIENCE)
        except Failed:
            pass
        except (Lost, KeyboardInterrupt):
            self.kill()
        return last

    def send(self, request):
        try:
            data = json.dumps(request).encode() + b"\n"
            while data:
                data = data[os.write(self.child.stdin.fileno(), data):]
        except OSError:
            raise Lost()


def in_one_line(error):
    """An error of pmdb in one line, as gdb shows errors."""
    if error is None:
        return "pmdb gave no reason"
    parts = [error["message"]]
    if error.get("expected"):
        parts.append("expected " + ", ".join(error["expected"]))
    if "--no-shell" in error["message"]:
        parts = ["pmdb in gdb runs no shell commands and writes no files; gdb's own pipe and set logging do"]
    elif "in one request" in (error.get("hint") or ""):
        parts.append(NO_BLOCKS)
    elif error.get("hint"):
        parts.append(error["hint"])
    return printable(" ".join("; ".join(parts).split()))


def printable(text):
    """The text in characters that gdb can print here."""
    try:
        charset = gdb.host_charset() if hasattr(gdb, "host_charset") else gdb.parameter("host-charset")
        return text.encode("ascii" if charset.startswith(("ANSI", "auto")) else charset, "replace").decode("utf-8", "replace")
    except (LookupError, UnicodeError):
        return text.encode("ascii", "replace").decode()


# Servers by the number of the inferior.
SERVERS = {}


NOT_RUN = "the program is not being run, and pmdb needs a process"


def live_process(inferior=None, is_needed=True):
    """The given inferior or the selected one, if pmdb can examine its process, or if none is needed."""
    inferior = inferior or gdb.selected_inferior()
    if inferior.pid == 0:
        if is_needed:
            raise gdb.GdbError(NOT_RUN)
        return inferior
    if gdb.current_recording() is not None:
        raise gdb.GdbError("pmdb shows the process as it is now, not as it was recorded: record stop ends the recording")
    return inferior


def check_target(inferior, line):
    """Refuses a target that is no process of this machine. A core file answers a line outside of gdb."""
    stack = gdb.execute("maintenance print target-stack", to_string=True)
    names = re.findall(r"^\s*-\s*([\w-]+)", stack, re.MULTILINE)
    if "core" in names:
        core = re.search(r"core dump file:\s*`(.*)', file type", gdb.execute("info files", to_string=True))
        command = [program(), "-c", core.group(1) if core else "CORE", line.strip()]
        raise gdb.GdbError("pmdb in gdb needs a process; a core file has no states and frames, but regions and memory; "
                           "for this core file: shell " + " ".join(map(shlex.quote, command)))
    if "native" in names:
        return
    is_remote = "remote" in names or "extended-remote" in names
    if not (is_remote and LOCAL.value):
        message = "pmdb needs a process of this machine; this target is {}".format(names[0] if names else "unknown")
        raise gdb.GdbError(message + ("; if it runs on this machine: set pmdb local on" if is_remote else ""))
    if not is_traced(inferior.pid):
        raise gdb.GdbError("process {} of this machine is not controlled by a debugger: the target runs elsewhere, or in "
                           "another pid namespace".format(inferior.pid))


def is_traced(pid):
    try:
        with open("/proc/{}/status".format(pid)) as status:
            return re.search(r"^TracerPid:\s*[1-9]", status.read(), re.MULTILINE) is not None
    except OSError:
        return False


def server(inferior=None, line="COMMAND"):
    """The server of the given inferior or the selected one, started again if it has ended. `line` is for it. Before the program
    runs, it has no process: some commands need none."""
    inferior = live_process(inferior, is_needed=False)
    held = running_server(inferior)
    if held is None and inferior.pid:
        check_target(inferior, line)
        # In a hook-stop, gdb has just run the commands of the breakpoint too, which may have started it.
        held = running_server(inferior)
    if held is None:
        forget(inferior.num)
        held = SERVERS[inferior.num] = Server(inferior.pid or None)
    return held


def running_server(inferior):
    held = SERVERS.get(inferior.num)
    return held if held is not None and (held.pid or 0) == inferior.pid and held.is_alive() else None


def forget(inferior):
    held = SERVERS.pop(inferior, None)
    if held is not None:
        held.close()


def forget_all():
    for inferior in list(SERVERS):
        forget(inferior)


def ask(line, take, limit=PATIENCE, inferior=None, **form):
    """Asks the server of the given inferior or the selected one; once more if it was lost before its first record.

    Ctrl-C ends it with an error, except that it is the normal end of a watch."""
    taken = []

    def note(record):
        taken.append(True)
        take(record)
    for again in (True, False):
        try:
            if server(inferior, line).ask(line, note, limit, errors="json", **form) == "interrupted" and not line.startswith("watch"):
                raise gdb.GdbError("Quit")
            return
        except Failed as error:
            raise gdb.GdbError(NOT_RUN if error.code == "no_target" else str(error))
        except Lost:
            if taken or not again:
                raise gdb.GdbError("pmdb ended in the middle of its answer; the next command starts it again")


def write(text):
    try:
        gdb.write(text)
    except UnicodeError:
        gdb.write(printable(text))


def show(record):
    write(record.get("text", ""))
    gdb.flush()


def show_value(record):
    """Shows what `print` says, without its number: in gdb, $1 is a value of gdb's."""
    show({"text": re.sub(r"^((\x1b\[[\d;]*m)*)\$\d+ = ", r"\1", record.get("text", ""))})


def is_coloured():
    # No colours if gdb captures the output, as for its pipe (the screen then has no size), nor into a log.
    is_screen = os.isatty(1) and (gdb.parameter("width") or gdb.parameter("height"))
    is_terminal = is_screen and os.environ.get("TERM", "dumb") != "dumb"
    return bool(is_terminal and gdb.parameter("style enabled") and not is_logging())


def is_logging():
    try:
        return gdb.parameter("logging enabled")
    except RuntimeError:
        # Before gdb 12.
        return "Currently logging" in gdb.execute("show logging", to_string=True)


# The last command in gdb's history when the last command of pmdb ran.
TYPED = []


def is_repeated(from_tty):
    """Whether Enter on an empty line runs a command again, which adds nothing to gdb's history."""
    if not from_tty or gdb.parameter("history remove-duplicates"):
        return False
    before = TYPED[:]
    TYPED[:] = gdb.execute("show commands", to_string=True).splitlines()[-1:]
    return bool(before) and TYPED == before


def run(line, from_tty=False):
    """Runs a line of pmdb and shows its answer. Enter after it goes on where it stopped."""
    if "\n" in line:
        raise gdb.GdbError("pmdb takes one line")
    form = {"as": "text", "continue": is_repeated(from_tty)}
    take = show_value if re.match(r"p(r|ri|rin|rint)?\b", line) else show
    ask(line, take, None, width=gdb.parameter("width") or 0, color=is_coloured(), **form)


# ---- Commands

# A name that an operator or a comma follows is a variable of the program: huge[1], children + 1. In `huge *p` the star is of p.
IS_OPERAND = re.compile(r"\w+(\[|\s*(,|@|\.|->|[<>=!]=)|[-+*/%&|^<>]|\s+[-+*/%&|^<>]\s)")


def one_usage(forms):
    """The forms of a command as alternatives after the words that they share."""
    if len(forms) == 1:
        return forms[0]
    forms = [form.split(" ") for form in forms]
    shared = os.path.commonprefix(forms)
    return "{} ({})".format(" ".join(shared), " | ".join(" ".join(form[len(shared) :]) for form in forms))


class Looking(gdb.Command):
    """A command of pmdb. Its usage, as pmdb prints it, decides how its arguments are parsed."""

    def __init__(self, name, usage, text):
        self.name = name
        pattern = r"^" + re.escape(name) + r"(?P<glued>\[/\S*\])?(?P<options>( \[--\w+\])*) (?P<star>\[\*\] )?(?P<first>.*)$"
        parts = re.match(pattern, usage + " ")
        first = parts.group("first")
        self.has_options = bool(parts.group("glued") or parts.group("options"))
        self.has_star = bool(parts.group("star"))
        # Of `(A | B)` and `[A | B]`, each may stand first.
        firsts = (first[1:closing(first, 0)] if first[:1] in ("(", "[") else first).split(" | ")
        kinds = [re.match(r"\[?(RANGE ,|RANGE|ADDRESS|VALUE|SUMMED)", one) for one in firsts]
        self.kind = next((kind.group(1) for kind in kinds if kind), None)
        self.is_optional = first.startswith("[") or any(kind and kind.group().startswith("[") for kind in kinds)
        self.has_number = first.endswith("ADDRESS [N] ")
        # Words that stand in the place of an expression, or before one.
        self.literal = [word for one in firsts for word in re.findall(r"^[a-z]+\b", one)]
        self.before_range = re.findall(r"\b([a-z]+) \[RANGE(?: \| in RANGE)?\]", first)
        self.has_family = "FAMILY" in first
        if self.has_family:
            self.literal += FAMILY
        if self.kind == "SUMMED":
            self.kind = "RANGE"
            self.literal.append("frames")
        self.has_in = "in RANGE" in usage
        self.clauses = CLAUSES | {word for words in re.findall(r"\[([a-z|]+)", usage) for word in words.split("|")}
        self.__doc__ = text
        super().__init__("pmdb " + name, gdb.COMMAND_DATA)

    @plainly
    def invoke(self, argument, from_tty):
        run(self.line(argument), from_tty)

    def line(self, argument):
        """The line for pmdb."""
        head = self.name
        options = re.match(r"(/\S+\s*)?(--(how|fault)(\s+|$))*", argument) if self.has_options else None
        if options:
            if self.name == "x" and re.match(r"/\d*[a-z]*i", argument):
                raise gdb.GdbError("pmdb does not decode instructions; gdb's own command does: x" + argument)
            head += ("" if argument.startswith("/") else " ") + options.group()
            argument = argument[options.end():]
        if self.has_star and argument.startswith("*"):
            argument = argument[1:]
        return " ".join((head.strip() + " " + self.operand(argument.strip())).split("\n"))

    def operand(self, argument):
        if self.kind == "RANGE ,":
            return self.searched(argument)
        expression, clauses = cut_clauses(argument, self.clauses)
        amount = re.search(r"(?<=[\w)\]])\s+(\d+)$", expression) if self.has_number else None
        if amount:
            expression, clauses = expression[:amount.start()], amount.group()
        first = re.match(r"\w*", argument).group()
        is_word = not IS_OPERAND.match(argument) or re.match(r"cgroup\s+/", argument)
        if is_word and first in self.before_range and not self.is_alone(argument[len(first):], True):
            expression = re.sub(r"^in\s+", "", expression[len(first):].strip())
            refuse_shell(expression)
            return "{} {} {}".format(first, ranged(expression, True), filled(clauses))
        # `of` is a variable of the program unless the name or number of a process follows.
        is_text = self.has_family and re.match(r"\"|of\s+[\w$'\"]", argument)
        is_filled = self.kind == "VALUE" and "{" in expression
        is_of_pmdb = is_word and first in self.literal or is_text or is_filled or PHYSICAL.match(argument)
        if self.kind is None or is_of_pmdb or self.is_alone(argument, self.is_optional):
            return self.within(argument)
        refuse_shell(expression)
        if self.kind == "VALUE":
            return "{:#x} {}".format(bits(expression), filled(clauses))
        is_range = self.kind == "RANGE"
        if not is_range:
            return "{:#x} {}".format(self.single(expression), filled(clauses))
        return "{} {}".format(ranged(expression, self.name not in ABOUT_ADDRESSES), filled(clauses))

    def is_alone(self, argument, is_optional):
        """Whether there is no expression, only clauses, if anything."""
        first = re.match(r"\w*", argument.lstrip()).group()
        return not argument.strip() or is_optional and first in self.clauses

    def single(self, expression):
        """The address of an expression that is no range."""
        expression = without_brackets(expression)
        if any(find(expression, mark) >= 0 for mark in (",", "..", "@")):
            raise gdb.GdbError("pmdb {} takes one address, not a range; pmdb walk takes ranges".format(self.name))
        return address(expression)

    def searched(self, argument):
        """`find`: a range, a comma and the patterns."""
        commas = [at for at, character in outside(argument) if character == ","]
        has_length = commas and argument[commas[0] + 1:].lstrip().startswith("+")
        behind = commas[1 if has_length else 0:]
        if not behind:
            raise gdb.GdbError("a comma and a value must follow the range: pmdb find RANGE, VALUE")
        start, size = sized(*span(argument[:behind[0]], True))
        return "{:#x}, +{:#x}{}".format(start, size, filled(argument[behind[0]:]))

    def within(self, argument):
        """`in EXPR` behind names of pmdb."""
        at = next((at for at, _ in outside(argument) if re.match(r"in\b", argument[at:]) and (at == 0 or argument[at - 1].isspace())), -1)
        if not self.has_in or at < 0:
            return filled(argument)
        expression, clauses = cut_clauses(argument[at + 2:], self.clauses)
        return "{}in {} {}".format(filled(argument[:at]), ranged(expression, True), filled(clauses))

    def complete(self, text, word):
        """The words of pmdb behind an expression, and names of gdb elsewhere."""
        head = text[:len(text) - len(word)] if word else text
        expression, clauses = cut_clauses(text, self.clauses)
        is_behind = clauses or (head.rstrip() and head != head.rstrip() and not re.search(r"[-+*/%&|^~<>=!,.:@(]$", head.rstrip()))
        if self.kind and not is_behind:
            return gdb.COMPLETE_EXPRESSION
        if not clauses:
            clauses = word
        before = "{} 0x0 ".format(self.name) if self.kind else self.name + " "
        return completions(before + (clauses if self.kind else text), word) or gdb.COMPLETE_EXPRESSION


def completions(line, word):
    """The completions of the last word of a line."""
    found = []
    quoted = line.replace("\\", "\\\\").replace('"', '\\"')
    try:
        held = Server()
    except gdb.GdbError:
        return found
    try:
        held.ask('complete "{}"'.format(quoted), lambda record: found.append(record.get("text", "").rstrip("\n")))
    except (Lost, Failed):
        pass
    held.close()
    start = len(line) - len(word)
    return [one[start:] for one in found if one.startswith(line[:start])]


class PassedOn(gdb.Command):
    """Run a line of pmdb in which each {gdb expression} is replaced.
Usage: pmdb -- COMMAND
       pmdb run COMMAND

Both are the same; `thread apply all -q -s pmdb run ...` needs the word.

A pointer, an array, a structure and a function are replaced by an address, a
number by that number, and L@N by a range. For all of an array, write
{buf[0]@N} or {buf}, +{sizeof(buf)}:

  pmdb -- print count({*p@n} where present)
  pmdb -- walk heap where mapcount > {limit}

Names outside of braces are pmdb's. Shell commands, pipes and files are
refused: use gdb's own shell, pipe and set logging."""

    def __init__(self, spelling):
        super().__init__("pmdb " + spelling, gdb.COMMAND_DATA)

    @plainly
    def invoke(self, argument, from_tty):
        word = re.match(r"\s*(\w*)", argument).group(1)
        if any(len(word) > 2 and name.startswith(word) for name in REFUSED) or word == "q":
            raise gdb.GdbError(NOT_IN_GDB.format(word))
        run(filled(argument).strip(), from_tty)

    def complete(self, text, word):
        return completions(text, word)


class Pmdb(gdb.Command):
    """Ask pmdb about the pages behind expressions: frames, sharing, swap, huge pages.

pmdb COMMAND EXPR examines the memory of the selected inferior, also while it
runs. EXPR is an expression of gdb. A pointer or a number is an address, as for
x. An array, a structure or a function stands for its address, or for all of
its bytes if the command takes a range.

  L@N            N objects like L, from the address of L on
  A, +LENGTH     LENGTH bytes from A on
  A..B           from A up to B
  region(A)      the whole region of A

Each part is evaluated once, and its memory is not read. EXPR ends before the
first of the words where, by, limit, top, every, for, until, with, and those of
the command's own usage; in parentheses they are names of the program. The rest
is pmdb's, with {gdb expression} replaced by its address or number. Braces
around EXPR are allowed too.

  pmdb translate buf                    where it physically lives
  pmdb walk p, +n*sizeof(*p) by state   the pages of an allocation
  pmdb explain $rsp                     what the next access will do
  pmdb -- print count({p}, +{n} where present)
  pmdb -- walk heap by state            pmdb's own names: heap, all, pfn:N

`set pmdb program` sets the program pmdb; without it gdb takes the one in PATH,
then the one beside pmdb-gdb.py. `set pmdb local on` lets it examine processes
of a gdbserver on this machine."""

    def __init__(self):
        super().__init__("pmdb", gdb.COMMAND_DATA, prefix=True)

    @plainly
    def invoke(self, argument, _from_tty):
        word = re.match(r"\w*", argument).group()
        if runs_once_loaded("pmdb " + argument):
            return
        if not word:
            raise gdb.GdbError("pmdb wants a command: help pmdb lists them")
        if word in REFUSED:
            raise gdb.GdbError(NOT_IN_GDB.format(word))
        if word in BLOCKS:
            raise gdb.GdbError(NO_BLOCKS)
        if word in ELSEWHERE:
            raise gdb.GdbError("`{0}` is not available as `pmdb {0}` in gdb: write `pmdb -- {0} ...`".format(word))
        near = difflib.get_close_matches(word, COMMANDS, 1)
        meant = "did you mean pmdb {}? ".format(near[0]) if near else ""
        message = "pmdb has no command {} in gdb: {}help pmdb lists them, pmdb -- COMMAND runs any other"
        raise gdb.GdbError(message.format(word, meant))


def runs_once_loaded(line):
    """If pmdb was not found when this file was loaded, loads its commands now and runs the line again."""
    if COMMANDS:
        return False
    load()
    gdb.execute(line)
    return True


class Prefix(gdb.Command):
    """A prefix of commands."""

    def __init__(self, name, text):
        self.__doc__, self.name = text, name
        super().__init__(name, gdb.COMMAND_DATA, prefix=True)

    @plainly
    def invoke(self, argument, _from_tty):
        if self.name == "pmdb info" and runs_once_loaded("pmdb info " + argument):
            return
        if argument.strip():
            raise gdb.GdbError("{} has no subcommand {}: help {} lists them".format(self.name, argument.strip(), self.name))
        gdb.execute("help " + self.name)


class Program(gdb.Parameter):
    """The program pmdb, by its absolute path."""

    set_doc = "Set the program pmdb."
    show_doc = "Show the program pmdb."

    def __init__(self):
        super().__init__("pmdb program", gdb.COMMAND_DATA, gdb.PARAM_OPTIONAL_FILENAME)
        self.value = self.working = ""

    def get_set_string(self):
        path = os.path.expanduser(self.value or "")
        try:
            if path and not os.path.isabs(path):
                raise gdb.GdbError("the program pmdb needs an absolute path, not {}".format(path))
            self.value = path
            forget_all()
            load()
        except gdb.GdbError:
            # The one before is used again: it answered.
            self.value = self.working
            raise
        self.working = path
        return ""

    def get_show_string(self, _value):
        return "pmdb is {}.".format(program())


class Local(gdb.Parameter):
    """Whether pmdb examines the processes of a gdbserver, because it runs on this machine and in the same pid namespace."""

    set_doc = "Set whether a gdbserver runs on this machine."
    show_doc = "Show whether a gdbserver runs on this machine."

    def __init__(self):
        super().__init__("pmdb local", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False

    def get_set_string(self):
        forget_all()
        return ""

    def get_show_string(self, value):
        return "Examining processes of a gdbserver on this machine is {}.".format(value)


# ---- Between stops

ANOTHER_PROGRAM = "the process executes another program now, which has other memory"


def say_unseen(snapshot, where, inferior):
    """Says which changes do not show here, and why."""
    summaries = []
    ask("diff {} in {}".format(snapshot, where), lambda row: row["type"] == "diff-summary" and summaries.append(row), None, inferior)
    kinds = {}
    for blind in summaries[-1]["blind"] if summaries else []:
        # Writes in place are shown on request only.
        if blind["kind"] not in ("soft_dirty", "written"):
            kinds.setdefault(blind["reason"], []).append(blind["kind"].replace("_", " "))
    for reason, words in kinds.items():
        write("pmdb: not visible here: {}: {}\n".format(", ".join(words), reason))


class Track:
    """A range whose pages are compared with those of the last stop at each stop."""

    def __init__(self, inferior, where, text, with_content):
        self.inferior, self.number, self.pid, self.where, self.text = inferior, inferior.num, inferior.pid, where, text
        self.with_content = with_content
        self.names = ["_gdb_{}_{}".format(id(self), which) for which in "ab"]
        self.asked = None
        self.keep()
        say_unseen(self.names[0], where, inferior)

    def keep(self):
        """Takes a snapshot, the only read of the range at a stop."""
        content = " with content" if self.with_content else ""
        ask("snapshot {} in {}{}".format(self.names[0], self.where, content), lambda _: None, None, self.inferior)
        self.asked = server(self.inferior)
        self.programs = self.asked.programs

    def changes(self):
        """The changes since the last time, a line for each stretch; `None` if the addresses are those of another program now."""
        before, programs = self.asked, self.programs
        self.names.reverse()
        self.keep()
        if self.asked is before and self.programs != programs:
            return None
        if self.asked is not before:
            return ["pmdb was started again: changes of {} are reported from now on".format(self.text)]
        rows = []
        ask("diff {1} {0}".format(*self.names), rows.append, None, self.inferior)
        lines = [change(row, self.where, self.text) for row in rows if row["type"] == "change"]
        return lines + [row["message"] for row in rows if row["type"] == "note"]

    def drop(self):
        held = SERVERS.get(self.inferior.num) if self.inferior.is_valid() else None
        if held is self.asked and held is not None and held.is_alive():
            for name in self.names:
                try:
                    held.ask("snapshot delete " + name, lambda _: None)
                except (Lost, Failed):
                    pass


def change(row, where, text):
    """A row of `diff` in one line, with the offset in the expression's range."""
    symbol = row.get("symbol")
    offset = int(row["start"], 16) - int(where.split(",")[0], 16)
    at = "<{}+{}>".format(symbol["name"], symbol["offset"]) if symbol else "+{:#x} in {}".format(max(offset, 0), text)
    states = [(row.get(side) or {}).get("state") for side in ("before", "after")]
    became = " → ".join(state for state in states if state) if states[0] != states[1] else states[0] or ""
    return "{:<10} {:>6} page{} {} {}  {}".format(row["change"].replace("_", " "), row["pages"], " " if row["pages"] == 1 else "s", row["start"], at, became).rstrip()


TRACKED = []


def untrack(tracks, why=None):
    for track in tracks:
        TRACKED.remove(track)
        track.drop()
        if why:
            write("pmdb: {} is no longer tracked: {}\n".format(track.text, why))


def tracked_in(number):
    """The ranges that are tracked in the inferior with this number."""
    return [track for track in TRACKED if track.number == number]


def at_exit(event):
    """Forgets an inferior whose process is gone."""
    number = event.inferior.num
    others = [one.num for one in gdb.inferiors() if one.pid and one.num != number]
    for track in tracked_in(number):
        word = "has exited" if hasattr(event, "exit_code") else "was killed or detached"
        # As after a fork, where gdb follows the child.
        instead = "; in inferior {}: pmdb track {}".format(others[-1], track.text) if others else ""
        untrack([track], "process {} {}{}".format(track.pid, word, instead))
    if Steps.running and Steps.running.in_background and Steps.running.inferior.num == number:
        gdb.post_event(Steps.running.end)
    forget(number)


def at_stop(_event):
    """Prints the changes in the tracked ranges. No exception may escape: gdb would print a traceback."""
    if Steps.running and Steps.running.in_background:
        gdb.post_event(Steps.running.end)
    for track in list(TRACKED):
        try:
            lines = track.changes()
        except gdb.GdbError as error:
            lines = ["{} cannot be compared: {}".format(track.text, error)]
        except KeyboardInterrupt:
            lines = ["{} was not compared: Quit".format(track.text)]
        if lines is None:
            untrack([track], ANOTHER_PROGRAM)
            continue
        of = "inferior {}: ".format(track.inferior.num) if len(gdb.inferiors()) > 1 else ""
        for line in lines:
            write("pmdb: {}{}\n".format(of, line))


class TrackCommand(gdb.Command):
    """Show at each stop which pages of a range changed since the last one.
Usage: pmdb track[/content] EXPR
       pmdb track off

A line for each stretch: it came, went, was copied on write, moved, swapped,
split or collapsed. With /content, hashes of resident pages also show pages that
were written in place: that reads the memory at each stop, and the kernel marks
pages that are read as used. `info pmdb track` lists the ranges."""

    def __init__(self):
        super().__init__("pmdb track", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    @plainly
    def invoke(self, argument, _from_tty):
        options = re.match(r"/(\w*)\s*", argument)
        if options and options.group(1) != "content":
            raise gdb.GdbError("the only option of pmdb track is /content")
        expression = argument[options.end():] if options else argument
        if expression.strip() == "off":
            untrack(list(TRACKED))
            return
        if not expression.strip():
            raise gdb.GdbError("pmdb track needs a range, as in pmdb track buf; info pmdb track lists the tracked ranges")
        refuse_shell(expression)
        inferior, where = live_process(), ranged(expression)
        if any((one.where, one.with_content) == (where, bool(options)) for one in tracked_in(inferior.num)):
            write("{} is tracked already: its changes are listed at each stop\n".format(expression.strip()))
            return
        track = Track(inferior, where, expression.strip(), bool(options))
        TRACKED.append(track)
        write("tracking {} ({})\n".format(track.text, track.where))


class InfoTrack(gdb.Command):
    """List the ranges that pmdb compares at each stop."""

    def __init__(self):
        super().__init__("info pmdb track", gdb.COMMAND_DATA)

    @plainly
    def invoke(self, _argument, _from_tty):
        if not TRACKED:
            write("No range is tracked.\n")
        for track in TRACKED:
            content = ", with content" if track.with_content else ""
            write("inferior {}: {} ({}){}\n".format(track.inferior.num, track.text, track.where, content))


class UntilChange(gdb.Command):
    """Step by instructions until a page of a range changes its state.
Usage: pmdb until-change EXPR

It ends after the instruction by which a page came, went, moved or was copied,
and wherever the program stops by itself. Each instruction costs a sample of the
range: some thousands a second. First get close with a breakpoint, for example
`break f if $_resident(buf, 65536) > 3`.

Only the selected thread runs meanwhile. After `set scheduler-locking off` the
others run too, as for stepi, and one of them may have changed the page."""

    def __init__(self):
        super().__init__("pmdb until-change", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    @plainly
    def invoke(self, argument, _from_tty):
        if not argument.strip():
            raise gdb.GdbError("pmdb until-change needs a range, as in pmdb until-change buf")
        refuse_shell(argument)
        if Steps.running:
            raise gdb.GdbError("pmdb until-change is running")
        Steps(live_process(), ranged(argument), argument.strip()).run()


class Steps:
    """Steps by instructions until a page of a range changes.

    It is one command of gdb, with a watchpoint on a function that gdb evaluates after each instruction. So it has one stop, and
    Ctrl-C and the interrupt of a front end work as for any other step."""

    NAME, MOST = "_gdb_until", 2 ** 31 - 1
    # The steps that are being made.
    running = None

    def __init__(self, inferior, where, text):
        self.inferior, self.where, self.text = inferior, where, text
        self.count, self.stop, self.rows, self.failure, self.with_others, self.watchpoint = 0, 0, [], None, False, None
        ask("snapshot {} in {}".format(self.NAME, where), lambda _: None, None, inferior)
        say_unseen(self.NAME, where, inferior)
        self.server = server(inferior)
        self.programs, self.thread = self.server.programs, gdb.selected_thread()
        # gdb forgets it when the thread ends.
        self.ptid = self.thread.ptid
        # Unless the user has chosen: `replay` is what gdb begins with.
        self.locks = gdb.parameter("scheduler-locking") == "replay"

    def run(self):
        # A front end reads no command before a step in the foreground has ended.
        self.in_background = is_machine_interface()
        Steps.running, said = self, ""
        try:
            self.watchpoint = gdb.Breakpoint("$_pmdb_changed()", gdb.BP_WATCHPOINT, gdb.WP_WRITE, True)
            self.watchpoint.silent = not self.in_background
            if self.locks:
                gdb.execute("set scheduler-locking step")
            said = gdb.execute("stepi {}{}".format(self.MOST, " &" if self.in_background else ""), False, True)
        except BaseException:
            self.in_background = False
            raise
        finally:
            if not self.in_background:
                self.end(said)

    def sample(self):
        """0 until there is a reason to stop. gdb asks when the watchpoint is made, and then after each instruction."""
        if self.watchpoint is None:
            return 0
        if self.stop:
            # gdb also asks after an exec and after a library was loaded, and takes that answer for the old value.
            self.stop += 1
            return self.stop
        thread = gdb.selected_thread()
        self.count += thread is not None and thread.ptid == self.ptid
        self.with_others = any(one.is_running() for one in self.inferior.threads() if one.ptid != self.ptid)
        try:
            take = lambda row: row["type"] == "change" and self.rows.append(row)
            if self.server.ask("diff {} in {}".format(self.NAME, self.where), take) == "interrupted":
                self.failure = "Quit"
        except (Exception, KeyboardInterrupt) as error:
            self.failure = str(error) or "pmdb has ended"
        if self.server.programs != self.programs:
            self.rows, self.failure = [], ANOTHER_PROGRAM
        self.stop = int(bool(self.rows or self.failure))
        return self.stop

    def end(self, said=""):
        """Says what happened, below what gdb said."""
        Steps.running = None
        if self.locks:
            gdb.execute("set scheduler-locking replay")
        if self.watchpoint is not None:
            self.watchpoint.delete()
        # gdb selects the thread in which it has seen the change, which may be another one.
        if self.thread.is_valid() and self.inferior.pid:
            self.thread.switch()
        write(said)
        for row in self.rows:
            write("pmdb: {}\n".format(change(row, self.where, self.text)))
        if self.failure:
            write("pmdb: {}\n".format(self.failure))
        is_one_of_several = self.inferior.is_valid() and len(self.inferior.threads()) > 1
        write("{} after {} instruction{}{}{}\n".format(
            "changed" if self.rows else "stopped without a change", self.count, "" if self.count == 1 else "s",
            " of thread {}".format(self.thread.num) if is_one_of_several and self.thread.is_valid() else "",
            ", by this or another thread" if self.rows and self.with_others else ""))
        # A front end shows the frame by itself.
        if (self.rows or self.failure) and self.inferior.pid and not self.in_background:
            gdb.execute("frame")


class Changed(gdb.Function):
    """1 once `pmdb until-change` has found a change."""

    def __init__(self):
        super().__init__("_pmdb_changed")

    def invoke(self):
        return Steps.running.sample() if Steps.running else 0


def is_machine_interface():
    """Whether a front end runs gdb: it reads its commands from a pipe, in its own syntax."""
    with open("/proc/self/cmdline", "rb") as arguments:
        return re.search(rb"\0--?i(nterpreter)?[=\0](mi|dap)", arguments.read()) is not None


# The defined commands, by name.
COMMANDS = {}
# The names of pmdb's other commands, and their short forms.
ELSEWHERE = set()


def load():
    """Defines the commands of the program pmdb."""
    held = Server()
    records = []
    try:
        for line in ("help look", "help memory", "help time", "help target", "help all"):
            held.ask(line, records.append)
        entries = {entry["name"]: record["name"] for record in records for entry in record.get("commands", ())}
        for record in records:
            name, group = record["name"], entries.get(record["name"])
            is_looking = group in ("look", "memory", "time") or name.startswith("info ")
            if record["topic"] == "command" and is_looking and name not in LEFT_OUT and name not in COMMANDS:
                text = []
                held.ask("help " + name, lambda record: text.append(record["text"]), width=78, **{"as": "text"})
                # gdb puts the name before it.
                about = re.sub(r"^.*?: ", "", "".join(text).rstrip(), count=1)
                COMMANDS[name] = Looking(name, one_usage(record["usage"]), about)
                for short in record["short"]:
                    gdb.execute("alias -- pmdb {} = pmdb {}".format(short, name))
            elif record["topic"] == "command" and name not in COMMANDS:
                ELSEWHERE.update([name.split()[0], *record["short"]])
    except (Lost, Failed) as error:
        raise gdb.GdbError("pmdb does not list its commands: {}".format(error or "it has ended"))
    finally:
        held.close()


# ---- Convenience functions

class OfPages(gdb.Function):
    """A function of gdb that evaluates an expression of pmdb."""

    def __init__(self, name, question, has_length, text):
        self.name, self.question, self.has_length = name, question, has_length
        self.__doc__ = text
        super().__init__(name)

    @plainly
    def invoke(self, *arguments):
        if len(arguments) != 1 + self.has_length:
            raise gdb.GdbError("${} takes {}".format(self.name, "an address and a length in bytes" if self.has_length else "one address"))
        start = place(resolved(arguments[0]))[0]
        if self.has_length and arguments[1].type.strip_typedefs().code == gdb.TYPE_CODE_FLT:
            raise gdb.GdbError("a length is a whole number of bytes")
        length = int(arguments[1]) if self.has_length else 1
        if length < 0:
            raise gdb.GdbError("a length of {} bytes".format(length))
        if length == 0:
            return 0
        answer = []
        ask("output " + self.question.format(start, min(start + length, 2 ** 64 - 1)), answer.append)
        said = answer[-1]["text"].split(":")[-1]
        return said if said.isidentifier() else int(said, 0)


FUNCTIONS = [
    ("_pfn", "pfn({:#x})", False, "The number of the page frame of an address."),
    ("_phys", "phys({:#x})", False, "The physical address of an address."),
    ("_page_state", "state({:#x})", False, """The state of the page at an address, a word: present, swapped, untouched.

Compare it with $_streq. gdb allocates memory in the inferior for texts that
are compared with == or passed to printf. This does not:

  break fill if $_streq($_page_state(p), "present")
  set $state = $_page_state(p)
  printf "%s\\n", $state

In Rust, only printf shows it as a text; for conditions take $_resident."""),
    ("_map_count", "mapcount({:#x})", False, "The map count of the page frame of an address."),
    ("_huge", "pmd_mapped({:#x})", False, "1 if the page at an address is mapped as a huge page, by one PMD; otherwise 0."),
    ("_exclusive", "exclusive({:#x})", False, "1 if the page frame of an address is mapped only there; otherwise 0."),
    ("_resident", "count({:#x}..{:#x} where present)", True, "How many pages of LENGTH bytes at an address are resident; 0 where nothing is mapped."),
    ("_swapped", "count({:#x}..{:#x} where swapped)", True, "How many pages of LENGTH bytes at an address are in swap; 0 where nothing is mapped."),
]

FUNCTION_HELP = """
Usage: ${}({})

A hidden or unknown value is an error with its reason, never 0. Use it in
conditions of breakpoints, in display, while and printf."""


def begin():
    global PROGRAM, LOCAL
    Pmdb()
    for spelling in ("--", "run"):
        PassedOn(spelling)
    Prefix("pmdb info", "Facts about the process, its snapshots, and what this kernel allows.")
    for verb in ("set", "show", "info"):
        Prefix(verb + " pmdb", "pmdb in gdb: the program pmdb, and the tracked ranges.")
    for command in (TrackCommand, InfoTrack, UntilChange):
        command()
    Changed()
    PROGRAM, LOCAL = Program(), Local()
    for name, question, has_length, text in FUNCTIONS:
        usage = FUNCTION_HELP.format(name, "ADDRESS, LENGTH" if has_length else "ADDRESS")
        OfPages(name, question, has_length, text + "\n" + usage)
    for gone in (gdb.events.exited, gdb.events.inferior_deleted):
        gone.connect(at_exit)
    if hasattr(gdb.events, "gdb_exiting"):
        gdb.events.gdb_exiting.connect(lambda _event: TRACKED.clear())
    # Sourced again, it replaces the handler of the last time.
    if hasattr(gdb, "pmdb_at_stop"):
        gdb.events.stop.disconnect(gdb.pmdb_at_stop)
    gdb.pmdb_at_stop = at_stop
    gdb.events.stop.connect(at_stop)
    atexit.register(forget_all)
    try:
        load()
    except gdb.GdbError as error:
        gdb.write("pmdb-gdb.py: {}\n".format(error), gdb.STDERR)


def as_module(path):
    """Runs this file again, with names of its own."""
    module = types.ModuleType("pmdb_gdb", __doc__)
    module.__file__ = path
    with open(path) as file:
        text = file.read()
    sys.modules[module.__name__] = module
    exec(compile(text, path, "exec"), module.__dict__)


def give_back(names):
    """The names of the user's Python are these alone."""
    own = globals()
    own.clear()
    own.update(names)


if OF_THE_USER is None:
    begin()
else:
    as_module(__file__)
    give_back(OF_THE_USER)
