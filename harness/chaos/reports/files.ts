/**
 * Calls of the tools for files and commands as models make them, each in a folder of its own, and what the file is then.
 */
import { Effect } from "effect"
import * as Workspace from "../../../test/tools/workspace.ts"
import type { Report } from "./Report.ts"

type Files = Readonly<Record<string, string | Uint8Array>>
/** `after` is the file whose content is shown behind the result. `$ROOT` is the folder. */
interface Row {
  readonly source?: string
  readonly input: string
  readonly files?: Files
  readonly links?: Readonly<Record<string, string>>
  readonly call: readonly [tool: string, params: object]
  readonly after?: string
  readonly right: string | RegExp
}

const bytes = (text: string) => Buffer.from(text, "latin1")
const utf16 = (text: string) => Buffer.from(text, "utf16le")
const png = bytes("\x89PNG\r\n\x1a\n")

const edit = (
  input: string,
  content: string | Uint8Array,
  params: object,
  right: string | RegExp,
  source = ""
): Row => ({
  source,
  input: `edit ${input}`,
  files: { f: content },
  call: ["edit", { path: "f", ...params }],
  after: "f",
  right
})
const replace = (oldText: string, newText: string) => ({ oldText, newText })

const edits: ReadonlyArray<Row> = [
  edit(
    "of lines that end in CRLF, given as LF",
    "a\r\nb\r\nc\r\n",
    replace("a\nb", "x\ny\nz"),
    /"x\\r\\ny\\r\\nz\\r\\nc\\r\\n"$/,
    "anomalyco/opencode#9443"
  ),
  edit(
    "of lines with ends of both kinds",
    "a\r\nb\nc\r\nd\r\n",
    replace("b\nc", "B\nC"),
    '"Replaced 1 place in f (+2 -2 lines)." → "a\\r\\nB\\r\\nC\\r\\nd\\r\\n"'
  ),
  edit(
    "of lines that end in CR",
    "a\rb\rc\r",
    replace("a\nb", "x\ny"),
    'error: "f was not changed: the old text is not in the file. No line of the file is like it; read the file again" → "a\\rb\\rc\\r"'
  ),
  edit(
    "behind a byte order mark",
    "\ufefffirst\nsecond\n",
    replace("first", "1st"),
    /"\ufeff1st\\nsecond\\n"$/,
    "earendil-works/pi#360"
  ),
  edit(
    "with a byte order mark in the text",
    "\ufefffirst\n",
    replace("\ufefffirst", "1st"),
    '"Replaced 1 place in f (+1 -1 lines)." → "\ufeff1st\\n"'
  ),
  edit("of letters in parts, given as one", "cafe\u0301 x\n", replace("caf\u00e9 x", "tea"), /"tea\\n"$/),
  edit(
    "of typographic quotes, given as straight ones",
    "it\u2019s \u201cfine\u201d \u2014 ok\n",
    replace(`it's "fine"`, "bad"),
    '"Replaced 1 place in f (+1 -1 lines).\\n[The file has ’ (U+2019), “ (U+201C), ” (U+201D) there, unlike the old text.]" → "bad — ok\\n"'
  ),
  edit(
    "of a space that does not break",
    "a\u00a0b\n",
    replace("a b", "c"),
    '"Replaced 1 place in f (+1 -1 lines).\\n[The file has \u00a0 (U+00A0) there, unlike the old text.]" → "c\\n"'
  ),
  edit("with dollars", "price\n", replace("price", "$& $1 $$ $`"), /"\$& \$1 \$\$ \$`\\n"$/),
  edit(
    "of spaces at line ends",
    "a  \nb\n",
    replace("a\nb", "c\nb"),
    'error: "f was not changed: the old text is not in the file. It differs only in white space from line 1 on:\\na  \\nb" → "a  \\nb\\n"'
  ),
  edit(
    "of tabs, given as spaces",
    "\tfoo()\n\tbar()\n",
    replace("    foo()\n    bar()", "x"),
    'error: "f was not changed: the old text is not in the file. It differs only in white space from line 1 on:\\n\\tfoo()\\n\\tbar()" → "\\tfoo()\\n\\tbar()\\n"'
  ),
  edit("of all, which overlap", "aaaa\n", { ...replace("aa", "b"), replaceAll: true }, /"bb\\n"$/),
  edit(
    "one after the other",
    "one\ntwo\n",
    { edits: [replace("one", "two"), replace("two", "three")] },
    /"two\\nthree\\n"$/
  ),
  edit(
    "without a text",
    "x\n",
    { edits: [], oldText: null, newText: null },
    'error: "f was not changed: give oldText and newText, or edits" → "x\\n"'
  ),
  edit("with empty edits beside the text", "x\n", { edits: [], ...replace("x", "y") }, /"y\\n"$/),
  edit(
    "with edits as JSON text",
    "y\n",
    { edits: '[{"oldText":"y","newText":"z"}]' },
    /"z\\n"$/,
    "earendil-works/pi#5697"
  ),
  edit(
    "with an empty text beside the edits",
    "z\n",
    { edits: [replace("z", "q")], ...replace("", "") },
    /"q\\n"$/
  ),
  edit(
    "by other names",
    "q\n",
    { old_string: "q", new_string: "r" },
    'error: "f was not changed: give oldText and newText, or edits" → "q\\n"'
  ),
  {
    input: "edit of file_path",
    files: { f: "q\n" },
    call: ["edit", { file_path: "f", ...replace("q", "r") }],
    after: "f",
    right: 'error: "Invalid arguments for tool \\"edit\\": Missing key\\n  at [\\"path\\"]" → "q\\n"'
  },
  edit(
    "of Latin-1",
    bytes("caf\xe9\n"),
    replace("caf", "x"),
    'error: "\\"f\\": it is not valid UTF-8, and only UTF-8 text can be edited." → "caf\ufffd\\n"'
  ),
  edit(
    "of text with a NUL",
    "a\0\nneedle\n",
    replace("needle", "n"),
    'error: "\\"f\\": it is binary, and only UTF-8 text can be edited." → "a\\u0000\\nneedle\\n"'
  ),
  edit(
    "of a line of 3 MB",
    JSON.stringify({ a: "x".repeat(3_000_000), needle: 1 }),
    replace("needle", "pin"),
    '"Replaced 1 place in f (+1 -1 lines)." → "{\\"a\\":\\"xxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\",\\"pin\\":1}"'
  ),
  edit(
    "of an empty file",
    "",
    replace("", "x"),
    'error: "f was not changed: the old text is empty. To make or fill a file use write" → ""'
  ),
  {
    input: "edit of a link",
    files: { f: "x\n" },
    links: { l: "f" },
    call: ["edit", { path: "l", ...replace("x", "L") }],
    after: "f",
    right: /"L\\n"$/
  }
]

const read = (input: string, files: Files, params: object, right: string | RegExp, source = ""): Row => ({
  source,
  input: `read ${input}`,
  files,
  call: ["read", params],
  right
})
const lines = { f: "a\r\nb\r\n" }

const reads: ReadonlyArray<Row> = [
  read(
    "of Latin-1",
    { f: bytes("caf\xe9\n") },
    { path: "f" },
    '"caf\ufffd\\n\\n[\ufffd stands for bytes that are no UTF-8.]"'
  ),
  read("of UTF-16", { f: utf16("\ufeffhello\n") }, { path: "f" }, '"hello\\n\\n[The file is UTF-16 text.]"'),
  read(
    "of UTF-16 without a mark",
    { f: utf16("hello\n") },
    { path: "f" },
    '"hello\\n\\n[The file is UTF-16 text.]"'
  ),
  read(
    "of text with a NUL",
    { f: "a\0\nneedle\n" },
    { path: "f" },
    'error: "\\"f\\": it is binary (10 bytes); inspect it with another tool."'
  ),
  read(
    "of a line of 3 MB",
    { f: "x".repeat(3_000_000) },
    { path: "f" },
    '"xxxxxxxxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n\\n[Line 1 is cut after 2000 of 3000000 characters.]"'
  ),
  read(
    "of a line that is cut within a character",
    { f: `${"x".repeat(1999)}😀tail\n` },
    { path: "f" },
    '"xxxxxxxxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n\\n[Line 1 is cut after 2000 of 2005 characters.]"'
  ),
  read(
    "of a PDF",
    { f: Buffer.concat([bytes("%PDF-1.4\n%\xe2\xe3\0\x01\n")]) },
    { path: "f" },
    'error: "\\"f\\": it is binary (15 bytes); inspect it with another tool."'
  ),
  read("of a drawing", { "f.svg": "<svg/>" }, { path: "f.svg" }, '"<svg/>"'),
  read("of a folder", { "sub/f": "" }, { path: "sub" }, 'error: "\\"sub\\": it is a folder, not a file."'),
  read("from line 0", lines, { path: "f", offset: 0 }, '"a\\nb\\n\\n[Lines end in CRLF.]"'),
  read(
    "of a window in texts",
    lines,
    { path: "f", offset: "2", limit: "1" },
    '"b\\n\\n[Lines 2-2 of 2.]\\n[Lines end in CRLF.]"'
  ),
  read("of -1 lines", lines, { path: "f", limit: -1 }, '"a\\nb\\n\\n[Lines end in CRLF.]"'),
  read("from the end", lines, { path: "f", offset: -1 }, '"b\\n\\n[Lines 2-2 of 2.]\\n[Lines end in CRLF.]"'),
  read(
    "with an @ before the path",
    lines,
    { path: "@f" },
    'error: "\\"@f\\": there is no such file or folder."'
  ),
  read(
    "with quotes around the path",
    lines,
    { path: '"f"' },
    'error: "\\"\\"f\\"\\": there is no such file or folder."'
  ),
  read(
    "of a file: address",
    lines,
    { path: "file:///f" },
    'error: "\\"file:///f\\" is refused: it is a URL; give a path."'
  ),
  read(
    "of the home",
    lines,
    { path: "~/x" },
    'error: "\\"~/x\\" is refused: ~ is not expanded; give a path relative to the root."'
  ),
  read(
    "of a name with another space",
    { "a b\u202fPM.png": png },
    { path: "a b PM.png" },
    'error: "\\"a b PM.png\\": it is not a whole png image: it is cut or damaged."'
  ),
  read("of a name in parts, given as one", { "cafe\u0301.txt": "nfd\n" }, { path: "caf\u00e9.txt" }, '"nfd"'),
  read(
    "of a device",
    {},
    { path: "/dev/zero" },
    'error: "\\"/dev/zero\\" is refused: it leads outside. Only paths inside $ROOT may be read; a relative path starts at $ROOT."'
  ),
  read("of an empty file", { f: "" }, { path: "f" }, '"(The file is empty.)"'),
  read("of a path with brackets", { "app/[id]/p.tsx": "route\n" }, { path: "app/[id]/p.tsx" }, /route/)
]

const tree: Files = {
  "src/a.ts": "needle --flag\n",
  ".env": "needle=secret\n",
  ".github/ci.yml": "needle: 1\n",
  "real/x.ts": "inlinked\n",
  "app/[id]/page.tsx": "route needle\n",
  "multi.ts": "function a(\n  b\n) {}\n",
  "crlf.txt": "end\r\nb\r\n",
  "u16.txt": utf16("\ufeffneedle16\n"),
  "nul.mjs": "x\0\nnulneedle\n",
  "nfd.txt": "cafe\u0301\n",
  ".gitignore": "ignored/\n*.log\n!keep.log\n",
  "ignored/z.ts": "needleignored\n",
  "x.log": "needlelog\n",
  "keep.log": "needlekeep\n"
}
const links = { broken: "/nowhere/x", link: "real" }
/** What every search of it leaves out. */
const rest =
  "\n[Not searched: 2 links (broken, link).]\n[Left out as ignored: ignored/, x.log. To include them set includeIgnored.]"
const search = (
  input: string,
  tool: "find" | "grep",
  params: object,
  right: string | RegExp,
  source = ""
): Row => ({ source, input: `${tool} ${input}`, files: tree, links, call: [tool, params], right })

const searches: ReadonlyArray<Row> = [
  search(
    "beside a broken link",
    "grep",
    { pattern: "--flag|ci" },
    '"src/a.ts:1: needle --flag …"',
    "anomalyco/opencode#8616"
  ),
  search(
    "for what begins with dashes",
    "grep",
    { pattern: "--flag" },
    '"src/a.ts:1: needle --flag …"',
    "anomalyco/opencode#18171"
  ),
  search("for what is an option elsewhere", "grep", { pattern: "-e" }, '"No line matches. …"'),
  search(
    "in a folder behind a link",
    "grep",
    { pattern: "inlinked", path: "link" },
    '"real/x.ts:1: inlinked"',
    "anomalyco/opencode#7498"
  ),
  search("over a folder behind a link", "grep", { pattern: "inlinked" }, '"real/x.ts:1: inlinked …"'),
  search("by an absolute pattern", "find", { pattern: "$ROOT/src/*.ts" }, '"src/a.ts …"'),
  search(
    "by an absolute pattern of elsewhere",
    "find",
    { pattern: "/elsewhere/*.ts" },
    '"Nothing matches. A glob with / starts at the folder that is searched. For any depth begin it with **/. …"'
  ),
  search("in all folders", "find", { pattern: "**/*.ts" }, '"multi.ts\\nreal/x.ts\\nsrc/a.ts …"'),
  search(
    "of two kinds",
    "find",
    { pattern: "**/*.{ts,yml}" },
    '".github/ci.yml\\nmulti.ts\\nreal/x.ts\\nsrc/a.ts …"'
  ),
  search("below a folder", "find", { pattern: "src/**" }, '"src/\\nsrc/a.ts …"'),
  search(
    "in another case",
    "find",
    { pattern: "*.TS" },
    '"Nothing matches. In other letter case: multi.ts …"'
  ),
  search("from ./", "find", { pattern: "./src/*.ts" }, '"src/a.ts …"'),
  search(
    "of others",
    "find",
    { pattern: "!*.ts" },
    '".env\\n.github/\\n.github/ci.yml\\n.gitignore\\napp/\\napp/[id]/\\napp/[id]/page.tsx\\nbroken\\ncrlf.txt\\nkeep.log\\nlink\\nnfd.txt\\nnul.mjs\\nreal/\\nsrc/\\nu16.txt …"'
  ),
  search(
    "of a list",
    "find",
    { pattern: "*.ts,*.yml" },
    '".github/ci.yml\\nmulti.ts\\nreal/x.ts\\nsrc/a.ts …"'
  ),
  search("of a name with brackets", "find", { pattern: "[id]" }, '"app/[id]/ …"'),
  search(
    "in a folder with brackets",
    "find",
    { pattern: "app/[id]/*.tsx" },
    '"app/[id]/page.tsx …"',
    "google-gemini/gemini-cli#5100"
  ),
  search(
    "in a path with brackets",
    "grep",
    { pattern: "route", path: "app/[id]" },
    '"app/[id]/page.tsx:1: route needle"'
  ),
  search(
    "in files of a folder with brackets",
    "grep",
    { pattern: "route", glob: "app/[id]/**" },
    '"app/[id]/page.tsx:1: route needle …"',
    "Aider-AI/aider#5530"
  ),
  search(
    "over two lines",
    "grep",
    { pattern: "function a\\(\\n" },
    '"No line matches. Each line is searched alone, so \\\\n never matches: search for a part of one line. …"'
  ),
  search(
    "with a look ahead",
    "grep",
    { pattern: "need(?=le)" },
    'error: "The pattern \\"need(?=le)\\" is invalid: invalid or unsupported Perl syntax: (?=. There is no look-around: search for the part that must be there. To search for it as text, set literal."'
  ),
  search(
    "with an open parenthesis",
    "grep",
    { pattern: "foo(" },
    'error: "The pattern \\"foo(\\" is invalid: missing closing ). To search for it as text, set literal."'
  ),
  search(
    "for a parenthesis as it is",
    "grep",
    { pattern: "a(", literal: true },
    '"multi.ts:1: function a( …"'
  ),
  search("with classes", "grep", { pattern: "\\bneedle\\b\\s" }, '"src/a.ts:1: needle --flag …"'),
  search("with a class of POSIX", "grep", { pattern: "[[:alpha:]]+le --" }, '"src/a.ts:1: needle --flag …"'),
  search(
    "with word ends of GNU",
    "grep",
    { pattern: "\\<needle\\>" },
    '"No line matches. The ends of a word are \\\\b. …"'
  ),
  search(
    "with alternatives of basic expressions",
    "grep",
    { pattern: "needle --\\|zzz" },
    '"No line matches. \\\\|, \\\\+ and \\\\? stand for the characters themselves: write |, + and ?. …"'
  ),
  search("with alternatives", "grep", { pattern: "zzz|needle --" }, '"src/a.ts:1: needle --flag …"'),
  search("with braces", "grep", { pattern: "interface{}" }, '"No line matches. …"'),
  search("with a brace", "grep", { pattern: "{" }, '"multi.ts:3: ) {} …"'),
  search(
    "with a template",
    "grep",
    { pattern: "${x}" },
    '"No line matches. $ stands for the end of a line: write \\\\$ for the character. …"'
  ),
  search(
    "in a list of globs",
    "grep",
    { pattern: "needle", glob: "*.ts,*.yml" },
    '".github/ci.yml:1: needle: 1\\nsrc/a.ts:1: needle --flag …"'
  ),
  search(
    "in a glob with braces",
    "grep",
    { pattern: "needle", glob: "*.{ts,yml}" },
    '".github/ci.yml:1: needle: 1\\nsrc/a.ts:1: needle --flag …"'
  ),
  search(
    "in all but a glob",
    "grep",
    { pattern: "needle", glob: "!*.ts" },
    '".env:1: needle=secret\\n.github/ci.yml:1: needle: 1\\napp/[id]/page.tsx:1: route needle\\nkeep.log:1: needlekeep\\nnul.mjs:2: nulneedle\\nu16.txt:1: needle16 …"'
  ),
  search("for the end of a line that ends in CRLF", "grep", { pattern: "end$" }, '"crlf.txt:1: end …"'),
  search("in UTF-16", "grep", { pattern: "needle16" }, '"u16.txt:1: needle16 …"'),
  search(
    "in text with a NUL",
    "grep",
    { pattern: "nulneedle" },
    '"nul.mjs:2: nulneedle …"',
    "anthropics/claude-code#82773"
  ),
  search(
    "in text with a NUL that is named",
    "grep",
    { pattern: "nulneedle", path: "nul.mjs" },
    '"nul.mjs:2: nulneedle"',
    "anthropics/claude-code#82773"
  ),
  search(
    "for letters in parts, given as one",
    "grep",
    { pattern: "caf\u00e9" },
    /No line matches\. .*search for a part without accents/
  ),
  search(
    "over ignored files",
    "grep",
    { pattern: "needleignored|needlelog|needlekeep" },
    '"keep.log:1: needlekeep …"'
  ),
  search(
    "in an ignored folder that is named",
    "grep",
    { pattern: "needleignored", path: "ignored" },
    '"ignored/z.ts:1: needleignored"'
  ),
  search(
    "in an ignored file that is named",
    "grep",
    { pattern: "needlelog", path: "x.log" },
    '"x.log:1: needlelog"'
  )
]

const writes: ReadonlyArray<Row> = [
  {
    input: "write over lines that end in CRLF",
    files: lines,
    call: ["write", { path: "f", content: "new\nlines\n" }],
    after: "f",
    right:
      '"Replaced 6 bytes of f: 12 bytes, 2 lines.\\n[Lines end in CRLF, as before.]" → "new\\r\\nlines\\r\\n"'
  },
  {
    input: "write over a byte order mark",
    files: { f: "\ufeffa\n" },
    call: ["write", { path: "f", content: "b\n" }],
    after: "f",
    right:
      '"Replaced 5 bytes of f: 5 bytes, 1 line.\\n[It begins with a byte order mark, as before.]" → "\ufeffb\\n"'
  },
  {
    input: "write through a link to nothing",
    links: { l: "gone.txt" },
    call: ["write", { path: "l", content: "x" }],
    right: 'error: "\\"l\\": it is a symbolic link to nothing."'
  },
  {
    input: "write of an object into a JSON file",
    call: ["write", { path: "o.json", content: { a: 1 } }],
    after: "o.json",
    right: '"Wrote new file o.json: 13 bytes, 3 lines." → "{\\n  \\"a\\": 1\\n}\\n"'
  },
  {
    input: "write of nothing into new folders",
    call: ["write", { path: "x/y/z.txt", content: "" }],
    after: "x/y/z.txt",
    right: '"Wrote new file x/y/z.txt: 0 bytes, 0 lines." → ""'
  },
  {
    input: "write over a folder",
    files: { "src/f": "" },
    call: ["write", { path: "src", content: "x" }],
    right: 'error: "\\"src\\": it is a folder, not a file."'
  },
  {
    input: "write of a name with a line end",
    call: ["write", { path: "bad\nname", content: "x" }],
    right: '"Wrote new file bad\\nname: 1 bytes, 1 line."'
  },
  {
    input: "write of no name",
    call: ["write", { path: "", content: "x" }],
    right: 'error: "\\"\\" is refused: it is empty."'
  },
  {
    input: "write without content",
    call: ["write", { path: "q.txt" }],
    right: 'error: "Invalid arguments for tool \\"write\\": Missing key\\n  at [\\"content\\"]"'
  }
]

const shell = (
  input: string,
  command: string,
  right: string | RegExp,
  more: object = {},
  source = ""
): Row => ({ source, input: `shell ${input}`, call: ["shell", { command, ...more }], right })

const commands: ReadonlyArray<Row> = [
  shell(
    "with a process behind it that keeps its output open",
    "sleep 20 & echo done",
    '"done"',
    {},
    "earendil-works/pi#7636"
  ),
  shell(
    "whose process leaves its session and writes on",
    "setsid sh -c 'for i in $(seq 60); do echo x; sleep 0.05; done' & sleep 30",
    /Timed out after 0\.5 seconds.*left the session of the command \(setsid\) still runs/,
    { timeout: 0.5 },
    "getkimchi/kimchi#833"
  ),
  shell("that reads its input", "cat; echo after", '"after"'),
  shell(
    "with words of bash",
    "[[ 1 == 1 ]] && echo yes",
    'error: "/bin/sh: 1: [[: not found\\n[Exit code 127]"'
  ),
  shell("with a document in it", "cat <<'EOF'\nline $x\nEOF", /line \$x/),
  shell("of several lines", "for i in 1 2; do\n  echo $i\ndone", '"1\\n2"'),
  shell("that prints no text", "printf '\\001\\002\\351'", '"\\u0001\\u0002\ufffd"'),
  shell(
    "that prints escape sequences",
    "printf '\\033[31mred\\033[0m\\na\\rb\\n'",
    '"\\u001b[31mred\\u001b[0m\\na\\rb"'
  ),
  shell(
    "that prints a line of 200 kB",
    "head -c 200000 /dev/zero | tr '\\0' x",
    '"xxxxxxxxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"'
  ),
  shell("without an end", "yes", /y\\ny.*Timed out after 0\.5 seconds/, { timeout: 0.5 }),
  shell("that fails", "echo out; echo err >&2; exit 3", 'error: "out\\nerr\\n[Exit code 3]"'),
  shell("that is killed", "kill -9 $$", 'error: "(no output)\\n[Ended by SIGKILL]"'),
  shell(
    "that ignores the end",
    "trap '' TERM; sleep 30",
    'error: "(no output)\\n[Timed out after 0.5 seconds. Its processes were ended]"',
    { timeout: 0.5 }
  ),
  shell("without a terminal", "test -t 1 && echo tty || echo notty", '"notty"'),
  shell(
    "that wants an editor",
    "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty; echo rc=$?",
    '"Aborting commit due to empty commit message.\\nrc=1"',
    { timeout: 5 },
    "charmbracelet/crush#3025"
  ),
  shell(
    "that asks the terminal",
    "read x < /dev/tty; echo rc=$?",
    '"/bin/sh: 1: cannot open /dev/tty: No such device or address\\nrc=2"',
    { timeout: 5 }
  ),
  shell("with its time in milliseconds", "echo hi", '"hi"', { timeout: 120000 }),
  shell("with its time as text", "echo hi", '"hi"', { timeout: "5" }),
  shell("with a NUL", "echo a\0b", 'error: "The command was not run: Argument 6 contains a NUL character"'),
  shell(
    "of 200 kB",
    `echo ${"x".repeat(200_000)}`,
    'error: "The command was not run: it has 200005 bytes, and the system takes 131000. Write it to a file, and run that."'
  ),
  shell(
    "with secrets around it",
    "env | grep -iE 'openai_api|github_token'; echo end",
    '"end"',
    {},
    "openai/codex#3064"
  )
]

const rows = [...edits, ...reads, ...searches, ...writes, ...commands]

const shortened = (text: string): string =>
  text.length < 400 ? text : `${text.slice(0, 20)} … ${text.slice(-120)}`

/** Arguments that the tool does not take are told to the model too. */
const refused = (called: Effect.Effect<Workspace.Called>) =>
  Effect.catchDefect(called, (defect) =>
    Effect.succeed({ isError: true, text: defect instanceof Error ? defect.message : String(defect) })
  )

const seen = ({ after, call: [tool, params], files, links }: Row) =>
  Effect.gen(function* () {
    const { call, fs, path, root } = yield* Workspace.make(files)
    for (const [from, to] of Object.entries(links ?? {})) yield* fs.symlink(to, path.join(root, from))
    const given = JSON.parse(JSON.stringify(params).replaceAll("$ROOT", root))
    const { isError, text } = yield* refused(call(tool, given))
    const content =
      after === undefined
        ? ""
        : ` → ${JSON.stringify(shortened(Buffer.from(yield* fs.readFile(path.join(root, after))).toString()))}`
    return `${isError === true ? "error: " : ""}${JSON.stringify(shortened(text.replace(rest, " …").replaceAll(root, "$ROOT")))}${content}`
  }).pipe(Workspace.provide, Effect.orDie)

export const reports: ReadonlyArray<Report> = rows.map((row) => ({
  source: row.source ?? "",
  input: row.input,
  seen: seen(row),
  right: row.right
}))
