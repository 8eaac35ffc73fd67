import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import * as Stretch from "./stretch.ts"
import * as Workspace from "./workspace.ts"

const project = {
  "README.md": "# Title\nSee src.\n",
  "src/index.ts": 'export * from "./a.ts"\n',
  "src/a.ts": "const one = 1\nconst two = 2\nconst three = 3\nconst four = 4\nexport { one, two }\n",
  "src/deep/b.test.ts": "it works\n",
  ".hidden/c.ts": "const one = 1\n",
  "node_modules/x/index.ts": "const one = 1\n",
  ".git/config": "one\n",
  "image.bin": Uint8Array.from([0x6f, 0x6e, 0x65, 0, 1])
}

/** What follows a result from which these were left out. */
const leftOut = (paths: string) => `[Left out as ignored: ${paths}. To include them set includeIgnored.]`
const ofProject = `\n${leftOut("node_modules/")}`

describe("ListTool", () => {
  it.live("lists a folder, with what its entries are", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make(project)
      yield* fs.symlink("src", path.join(root, "link"))
      const { details, text } = yield* call("list", {})
      assert.strictEqual(
        text,
        `.hidden/\nREADME.md (17)\nimage.bin (5)\nlink -> src\nsrc/\n${leftOut("node_modules/")}`
      )
      assert.deepStrictEqual(details, { path: ".", entries: 5, complete: true, leftOut: 1 })
      assert.strictEqual((yield* call("list", { path: "src/deep" })).text, "b.test.ts (9)")
    }).pipe(Workspace.provide)
  )

  it.live("says when a folder is empty, a file, or not there", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "src/a.ts": "" })
      const { call: empty } = yield* Workspace.make()
      assert.strictEqual((yield* empty("list", {})).text, "(The folder is empty.)")
      assert.include((yield* call("list", { path: "src/a.ts" })).text, "it is a file, not a folder")
      assert.include((yield* call("list", { path: "scr" })).text, "Near to it: src")
    }).pipe(Workspace.provide)
  )

  it.live("shows at most 500 entries", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(Array.from({ length: 510 }, (_, index) => [`f${1_000 + index}`, ""]))
      const { call } = yield* Workspace.make(files)
      const { text } = yield* call("list", {})
      assert.isTrue(text.endsWith("f1499 (0)\n[10 of 510 entries are not shown. Use find to narrow down.]"))
    }).pipe(Workspace.provide)
  )
})

describe("FindTool", () => {
  it.live("finds by name in all folders (row 149)", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(project)
      assert.strictEqual(
        (yield* call("find", { pattern: "*.ts" })).text,
        `.hidden/c.ts\nsrc/a.ts\nsrc/deep/b.test.ts\nsrc/index.ts${ofProject}`
      )
      assert.strictEqual((yield* call("find", { pattern: "b.*" })).text, `src/deep/b.test.ts${ofProject}`)
      assert.strictEqual((yield* call("find", { pattern: "nothing" })).text, `Nothing matches.${ofProject}`)
    }).pipe(Workspace.provide)
  )

  it.live("finds by path", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(project)
      assert.strictEqual(
        (yield* call("find", { pattern: "src/*.ts" })).text,
        `src/a.ts\nsrc/index.ts${ofProject}`
      )
      assert.strictEqual(
        (yield* call("find", { pattern: "src/**/*.{test.ts,md}" })).text,
        `src/deep/b.test.ts${ofProject}`
      )
      assert.strictEqual(
        (yield* call("find", { pattern: "*.ts", path: "src/deep" })).text,
        "src/deep/b.test.ts"
      )
      assert.strictEqual((yield* call("find", { pattern: "de*/" })).text, `src/deep/${ofProject}`)
    }).pipe(Workspace.provide)
  )

  it.live("looks into folders it leaves out when asked to", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(project)
      assert.include(
        (yield* call("find", { pattern: "*.ts", includeIgnored: true })).text,
        "node_modules/x/index.ts"
      )
      assert.strictEqual(
        (yield* call("find", { pattern: "*", path: "node_modules/x" })).text,
        "node_modules/x/index.ts"
      )
    }).pipe(Workspace.provide)
  )

  it.live("gives at most 1000 paths", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`f${index}`, ""]))
      const { call } = yield* Workspace.make(files)
      assert.include((yield* call("find", { pattern: "f*" })).text, "[Only the first 1000 are shown.")
    }).pipe(Workspace.provide)
  )
})

const tree = {
  "app/[id]/page.tsx": "route\n",
  "app/[...slug]/page.tsx": "route\n",
  "app/i/page.tsx": "route\n",
  "src/a.ts": "route\n",
  "src/b.test.ts": "route\n",
  "docs/c.yml": "route\n"
}
const routes = "app/[...slug]/page.tsx app/[id]/page.tsx app/i/page.tsx"

describe("globs", () => {
  it.live.each([
    ["a name with brackets", "app/[id]/*.tsx", "app/[id]/page.tsx app/i/page.tsx"],
    ["brackets that are no class", "app/[...slug]/*.tsx", "app/[...slug]/page.tsx"],
    ["an absolute path", "ROOT/src/*.ts", "src/a.ts src/b.test.ts"],
    ["a leading slash", "/src/*.ts", "src/a.ts src/b.test.ts"],
    ["a leading ./", "./src/*.ts", "src/a.ts src/b.test.ts"],
    ["a part that must not be there", "!*.tsx", "docs/c.yml src/a.ts src/b.test.ts"],
    ["a list", "*.ts,*.yml", "docs/c.yml src/a.ts src/b.test.ts"],
    ["a list with spaces and an exception", "*.ts, !*.test.ts, *.yml", "docs/c.yml src/a.ts"],
    ["a list with bars", "*.ts|*.yml", "docs/c.yml src/a.ts src/b.test.ts"],
    ["braces in braces", "{src/{a,x},docs/*}.{ts,yml}", "docs/c.yml src/a.ts"],
    ["two stars beside other characters", "**.tsx", routes],
    ["two stars in the middle", "app/**/page.tsx", routes]
  ] as const)("takes %s as models mean it", ([, glob, expected]) =>
    Effect.gen(function* () {
      const { call, root } = yield* Workspace.make(tree)
      const pattern = glob.replace("ROOT", root)
      const found = (yield* call("find", { pattern })).text.split("\n").filter((path) => !path.endsWith("/"))
      assert.strictEqual(found.join(" "), expected)
      const hits = (yield* call("grep", { pattern: "route", glob: pattern })).text
      assert.strictEqual(
        hits,
        expected
          .split(" ")
          .map((path) => `${path}:1: route`)
          .join("\n")
      )
    }).pipe(Workspace.provide)
  )

  it.live.each([
    ["*.TS", "In other letter case: src/a.ts"],
    ["~/src/*.ts", "~ is not expanded"],
    ["../src/*.ts", "set path"],
    ["src\\*.ts", "Use / between names"],
    [".*\\.md$", "not a regular expression"],
    ["deep/x.ts", "begin it with **/"],
    ["@(a|b).ts", "use {a,b}"],
    ["{a,b}".repeat(9), "200 patterns"],
    ["a".repeat(1_001), "more than 1000 characters"]
  ] as const)("gives advice on %s", ([pattern, advice]) =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(tree)
      assert.include((yield* call("find", { pattern })).text, advice)
      const { text } = yield* call("grep", { pattern: "route", glob: pattern })
      if (!advice.startsWith("In")) assert.include(text, advice)
      assert.notInclude(text, "No line matches")
    }).pipe(Workspace.provide)
  )

  it.live("takes a folder for its files in grep", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(tree)
      for (const glob of ["src", "src/", "./src/**"]) {
        const { text } = yield* call("grep", { pattern: "route", glob })
        assert.strictEqual(text, "src/a.ts:1: route\nsrc/b.test.ts:1: route")
      }
    }).pipe(Workspace.provide)
  )
})

describe("what a search leaves out", () => {
  const wide = (text: string, swap: boolean) => {
    const bytes = Buffer.from(text, "utf16le")
    return Uint8Array.from(swap ? bytes.swap16() : bytes)
  }

  it.live("searches text with a NUL, and text in UTF-16", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "be.txt": wide("\ufeffneedle\n", true),
        "le.txt": wide("\ufeffneedle\n", false),
        "nul.mjs": "const a = '\0'\nconst needle = 1 + '\0'\n",
        "bare.txt": wide("needle\n", false)
      })
      const { text } = yield* call("grep", { pattern: "need(le)" })
      assert.strictEqual(
        text,
        "bare.txt:1: needle\nbe.txt:1: needle\nle.txt:1: needle\nnul.mjs:2: const needle = 1 + '\u2400'"
      )
      assert.include((yield* call("read", { path: "be.txt" })).text, "needle\n\n[The file is UTF-16 text.]")
      assert.include((yield* call("read", { path: "nul.mjs" })).text, "[\u2400 stands for a NUL.]")
      assert.isNotTrue((yield* call("edit", { path: "nul.mjs", oldText: "needle", newText: "pin" })).isError)
      assert.include(
        (yield* call("edit", { path: "le.txt", oldText: "needle", newText: "pin" })).text,
        "UTF-16"
      )
    }).pipe(Workspace.provide)
  )

  it.live("names files whose bytes in another encoding may hide a match", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "latin1.txt": Uint8Array.from([0x63, 0x61, 0x66, 0xe9, 0x0a]),
        "utf8.txt": "caf\u00e9 \ufffd\n"
      })
      const note = "[Not searched: 1 non-UTF-8 file (latin1.txt).]"
      for (const pattern of ["caf\u00e9", "caf\\u00e9", "caf[\u00e9]"]) {
        const { details, text } = yield* call("grep", { pattern })
        assert.strictEqual(text, `utf8.txt:1: caf\u00e9 \ufffd\n${note}`)
        assert.deepInclude(details, { complete: false })
      }
      const { text } = yield* call("grep", { pattern: "caf\u00e9", path: "latin1.txt" })
      assert.strictEqual(text.split("\n").at(-1), note)
      assert.notInclude((yield* call("grep", { pattern: "caf" })).text, "Not searched")
      assert.include(
        (yield* call("read", { path: "latin1.txt" })).text,
        "[\ufffd stands for bytes that are no UTF-8.]"
      )
    }).pipe(Workspace.provide)
  )

  it.live("names the reason, with the number of paths", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({
        "a.txt": "x\n",
        "b.bin": new Uint8Array([0x6e, 0x6f, 0, 1, 2, 3]),
        "large.txt": "x\n"
      })
      yield* fs.link(path.join(root, "a.txt"), path.join(root, "c.txt"))
      yield* fs.symlink("a.txt", path.join(root, "link"))
      yield* fs.truncate(path.join(root, "large.txt"), 17 * 1024 * 1024)
      const { details, text } = yield* call("grep", { pattern: "no" })
      assert.strictEqual(
        text,
        "No line matches.\n[Not searched: 1 binary file (b.bin), 1 large file (large.txt), 1 link (link), 2 hard links (a.txt, c.txt).]"
      )
      assert.deepInclude(details, { complete: false })
      assert.include((yield* call("grep", { pattern: "no", path: "b.bin" })).text, "1 binary file (b.bin)")
      assert.notInclude((yield* call("grep", { pattern: "other" })).text, "binary")
    }).pipe(Workspace.provide)
  )

  it.live.each([
    ["a(?=b)", "There is no look-around"],
    ["(a)\\1", "There are no back references"],
    ["a++", "possessive"],
    ["one\\ntwo", "Each line is searched alone"],
    ["\\<one\\>", "The ends of a word"],
    ["one\\|two", "write |"],
    ["${one}", "write \\$"]
  ] as const)("gives advice on the expression %s", ([pattern, advice]) =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "one\ntwo\n" })
      assert.include((yield* call("grep", { pattern })).text, advice)
    }).pipe(Workspace.provide)
  )
})

describe("GrepTool", () => {
  it.live("gives path, line number and text of matching lines (row 149)", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(project)
      const { details, text } = yield* call("grep", { pattern: "\\bone\\b" })
      assert.strictEqual(
        text,
        `.hidden/c.ts:1: const one = 1\nsrc/a.ts:1: const one = 1\nsrc/a.ts:5: export { one, two }\n[Not searched: 1 binary file (image.bin).]${ofProject}`
      )
      assert.deepStrictEqual(details, { matches: 3, files: 2, complete: false, leftOut: 1 })
      assert.strictEqual((yield* call("grep", { pattern: "nothing" })).text, `No line matches.${ofProject}`)
    }).pipe(Workspace.provide)
  )

  it.live("searches one file, one folder, or files of a glob", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(project)
      assert.strictEqual((yield* call("grep", { pattern: "o", path: "README.md" })).text, "No line matches.")
      assert.strictEqual(
        (yield* call("grep", { pattern: "src", path: "README.md" })).text,
        "README.md:2: See src."
      )
      assert.strictEqual(
        (yield* call("grep", { pattern: ".", path: "src/deep" })).text,
        "src/deep/b.test.ts:1: it works"
      )
      assert.strictEqual(
        (yield* call("grep", { pattern: "s", glob: "*.md" })).text,
        `README.md:2: See src.${ofProject}`
      )
      assert.strictEqual((yield* call("grep", { pattern: "one", path: ".git" })).text, ".git/config:1: one")
    }).pipe(Workspace.provide)
  )

  it.live("takes a pattern as text, and ignores case", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "f(x)\nF(X)\nfx\n" })
      assert.strictEqual((yield* call("grep", { pattern: "f(x)", literal: true })).text, "a.txt:1: f(x)")
      assert.strictEqual(
        (yield* call("grep", { pattern: "f(x)", literal: true, ignoreCase: true })).text,
        "a.txt:1: f(x)\na.txt:2: F(X)"
      )
    }).pipe(Workspace.provide)
  )

  it.live("shows the lines around a match, each once", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "a.txt": "1\nhit\n3\nhit\n5\n6\n7\n8\nhit\r\n",
        "b.txt": "hit"
      })
      assert.strictEqual(
        (yield* call("grep", { pattern: "hit$", context: 1 })).text,
        [
          "a.txt-1- 1",
          "a.txt:2: hit",
          "a.txt-3- 3",
          "a.txt:4: hit",
          "a.txt-5- 5",
          "--",
          "a.txt-8- 8",
          "a.txt:9: hit",
          "--",
          "b.txt:1: hit"
        ].join("\n")
      )
    }).pipe(Workspace.provide)
  )

  it.live("stops at its limits, and says so", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "a.txt": "hit\n".repeat(300),
        "b.txt": `${"x".repeat(250)} hit\n`.repeat(200)
      })
      const two = yield* call("grep", { pattern: "hit", limit: 2 })
      assert.strictEqual(
        two.text,
        "a.txt:1: hit\na.txt:2: hit\n[Only the first 2 matching lines are shown. Narrow the pattern, the path or the glob.]"
      )
      assert.include((yield* call("grep", { pattern: "hit" })).text, "[Only the first 200 matching")
      assert.isBelow((yield* call("grep", { pattern: "hit", path: "b.txt" })).text.length, 31_000)
    }).pipe(Workspace.provide)
  )

  it.live("counts the files it shows something of", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "hit\n", "b.txt": "hit\n", "c.txt": "hit\n" })
      const { details, text } = yield* call("grep", { pattern: "hit", limit: 2 })
      assert.match(text, /^a\.txt:1: hit\nb\.txt:1: hit\n\[Only/)
      assert.deepStrictEqual(details, { matches: 2, files: 2, complete: false, leftOut: 0 })
    }).pipe(Workspace.provide)
  )

  it.live("shows the part of a long line that matches", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": `${"x".repeat(5_000)}needle${"y".repeat(5_000)}` })
      const { text } = yield* call("grep", { pattern: "needle" })
      assert.match(text, /^a\.txt:1: \[\.\.\.\] x+needley+ \[\.\.\.\]$/)
      assert.isBelow(text.length, 350)
    }).pipe(Workspace.provide)
  )

  it.live("says what is wrong with a pattern", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const { isError, text } = yield* call("grep", { pattern: "f(" })
      assert.isTrue(isError)
      assert.strictEqual(
        text,
        'The pattern "f(" is invalid: missing closing ). To search for it as text, set literal.'
      )
    }).pipe(Workspace.provide)
  )

  it.live("says that an accent may be a character of its own, if nothing matches", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ a: "cafe\u0301" })
      assert.include(
        (yield* call("grep", { pattern: "caf\u00e9" })).text,
        "search for a part without accents"
      )
      assert.strictEqual((yield* call("grep", { pattern: "caf" })).text, "a:1: cafe\u0301")
    }).pipe(Workspace.provide)
  )

  it.live("does not hang on a pattern", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": `${"a".repeat(100_000)}!` })
      const started = performance.now()
      assert.strictEqual((yield* call("grep", { pattern: "^(a+)+$" })).text, "No line matches.")
      assert.isBelow(performance.now() - started, 2_000)
    }).pipe(Workspace.provide)
  )

  // One line for which the pattern has a new state at nearly each character, of up to 400 steps.
  const hard = { pattern: "[ab]*a[ab]{400}[cd]", line: disorder(1_000_000) }
  // Two words of which the engine compares half at each place of the file.
  const word = `${"a".repeat(30_000)}b${"a".repeat(30_000)}`

  it.live.each([
    ["a pattern of many states", hard.pattern, hard.line],
    ["a long word that nearly matches", word, "a".repeat(300_000)],
    ["the same in any case", `(?i)${"a".repeat(500)}b`, "A".repeat(300_000)],
    ["many empty lines", "^x", "\n".repeat(3_000_000)],
    ["bytes that are no text", "\\p{Lu}", new Uint8Array(3_000_000).fill(0xff)]
  ] as const)(
    "lets others go on, and ends when it is interrupted: %s",
    ([, pattern, content]) =>
      Effect.gen(function* () {
        const { call } = yield* Workspace.make({ "a.txt": content })
        yield* call("grep", { pattern: "x", path: "none" })
        const { result, stretch } = yield* Stretch.longest(
          Effect.timeoutOption(call("grep", { pattern }), "400 millis")
        )
        assert.isBelow(stretch, 60)
        // Slow machines come to no end in that time either.
        if (Option.isSome(result)) assert.match(result.value.text, /^No line matches\./)
      }).pipe(Workspace.provide),
    Stretch.tries
  )

  it.live("gives what it found until its time is over", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "xc\n", "b.txt": hard.line }, () => ({
        searchTime: "800 millis"
      }))
      const started = performance.now()
      const { details, text } = yield* call("grep", { pattern: `x?${hard.pattern}|xc` })
      assert.isBelow(performance.now() - started, 3_000)
      assert.strictEqual(
        text,
        "a.txt:1: xc\n[Stopped after 0.8 seconds: not all was searched. Narrow the pattern or the path.]"
      )
      assert.deepStrictEqual(details, { matches: 1, files: 1, complete: false, leftOut: 0 })
    }).pipe(Workspace.provide)
  )

  it.live("says when there was no time for a folder, also in find", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "hit\n" }, () => ({ searchTime: 0 }))
      const note = "[Stopped after 0 seconds: not all was searched. Narrow the pattern or the path.]"
      assert.strictEqual((yield* call("grep", { pattern: "hit" })).text, `No line matches.\n${note}`)
      const found = yield* call("find", { pattern: "*" })
      assert.strictEqual(found.text, `Nothing matches.\n${note}`)
      assert.deepInclude(found.details, { complete: false })
    }).pipe(Workspace.provide)
  )

  it.live("has all the time it is given", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "hit\n" }, () => ({ searchTime: "Infinity" }))
      const { details, text } = yield* call("grep", { pattern: "hit" })
      assert.strictEqual(text, "a.txt:1: hit")
      assert.deepInclude(details, { complete: true })
    }).pipe(Workspace.provide)
  )

  it.live("can be interrupted between files", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(
        Array.from({ length: 400 }, (_, index) => [`f${index}`, "a line\n".repeat(2_000)])
      )
      const { call } = yield* Workspace.make(files)
      const fiber = yield* Effect.forkChild(call("grep", { pattern: "(n|o)t there" }))
      yield* Effect.sleep("30 millis")
      const started = performance.now()
      yield* Fiber.interrupt(fiber)
      assert.isBelow(performance.now() - started, 200)
    }).pipe(Workspace.provide)
  )
})

/** As and bs in no order. */
function disorder(length: number): string {
  let [state, text] = [1, ""]
  for (let index = 0; index < length; index++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    text += (state >>> 16) % 2 === 0 ? "a" : "b"
  }
  return text
}
