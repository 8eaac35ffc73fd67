import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { seeded } from "./searches.ts"
import * as Stretch from "./stretch.ts"
import * as Workspace from "./workspace.ts"

const note = (paths: string) => `[Left out as ignored: ${paths}. To include them set includeIgnored.]`

/** The files that `find` gives, less the note. */
const filesOf = (space: Workspace.Workspace, params: object = {}) =>
  Effect.map(space.call("find", { pattern: "*", ...params }), ({ text }) =>
    text
      .split("\n")
      .filter(
        (line) =>
          !line.endsWith("/") && !/^\[(?:Left out|Not searched)/.test(line) && line !== "Nothing matches."
      )
  )

/** What git says are the files of the project. */
const filesOfGit = (root: string): ReadonlyArray<string> => {
  const env = { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" }
  execFileSync("git", ["init", "-q", root], { env })
  const args = ["-C", root, "ls-files", "-z", "--others", "--exclude-standard"]
  return execFileSync("git", args, { env, encoding: "utf8" })
    .split("\0")
    .filter((path) => path !== "")
    .toSorted()
}

const files = (paths: string) => Object.fromEntries(paths.split(" ").map((path) => [path, "hit\n"]))

describe("IgnoreRules", () => {
  it.live.each([
    [
      "names, at any depth",
      "*.log\nbuild\nsecret.txt",
      "a.log d/e/b.log build/x d/build/y buildx d/secret.txt keep"
    ],
    ["folders alone", "out/\n", "out/a d/out/b e/out f/outer/x"],
    ["one place", "/top\nd/mid\n/e/*.txt", "top d/top d/mid x/d/mid e/a.txt e/f/b.txt"],
    [
      "any depth between",
      "a/**/z\n**/deep/x\nall/**",
      "a/z a/b/z a/b/c/z z deep/x q/deep/x q/deep/y all/1 all/2/3"
    ],
    [
      "exceptions",
      "*.txt\n!keep.txt\nd/*\n!d/e/\nd/e/*\n!d/e/f",
      "a.txt keep.txt d/x d/e/f d/e/g q/keep.txt"
    ],
    ["no exception in a folder that is ignored", "d/\n!d/keep", "d/keep d/x keep"],
    ["comments, blanks and quoted marks", "#no\n\\#yes\n\\!odd\n  \nsp \\ \nend\\ ", "#no #yes !odd sp end"],
    [
      "classes and single characters",
      "[ab].c\n?.h\n[0-9]*\n[!x]y\n[^x]z",
      "a.c b.c c.c a.h ab.h 1 12 q1 xy zy xz zz"
    ],
    ["many stars", "*a*b*c\n**/a*/**/b*/**/*c", "aabbcc acbb x/a1/y/b1/z/1c x/a1/c"],
    ["other cases of a letter", "Build\n*.LOG", "Build/x build/x a.log b.LOG"],
    ["braces as they are", "{a,b}", "a b {a,b}"]
  ] as const)("leaves out what git ignores: %s", ([, rules, paths]) =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ ".gitignore": rules, ...files(paths) })
      assert.deepStrictEqual(yield* filesOf(space), filesOfGit(space.root))
    }).pipe(Workspace.provide)
  )

  it.live("reads the rules of each folder, and those of the repository", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({
        ".gitignore": "*.log\ndist\n/only-here\n",
        "sub/.gitignore": "!dist\n!keep.log\n/place\ninner/deep\n*.tmp\n",
        "sub/[odd]*/.gitignore": "/x\ny\n",
        ".git/info/exclude": "excluded\n!b.log\n",
        ...files(
          "a.log b.log dist/x only-here excluded sub/excluded sub/dist/x sub/keep.log sub/other.log sub/place sub/d/place " +
            "sub/inner/deep sub/q/inner/deep sub/a.tmp sub/d/b.tmp a.tmp sub/only-here sub/[odd]*/x sub/[odd]*/d/x " +
            "sub/[odd]*/d/y sub/o/x sub/o/y"
        )
      })
      assert.deepStrictEqual(yield* filesOf(space), filesOfGit(space.root))
      // The rules of the folders above hold as well when the search begins below.
      assert.deepStrictEqual(
        yield* filesOf(space, { path: "sub" }),
        filesOfGit(space.root).filter((path) => path.startsWith("sub/"))
      )
    }).pipe(Workspace.provide)
  )

  it.live("says what it left out, and includes it when asked to", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({
        ".gitignore": "dist\n*.log\n",
        ".git/config": "hit\n",
        ...files("dist/a src/b src/c.log node_modules/d/e src/node_modules/f g.log h.log")
      })
      const { call } = space
      const found = yield* call("find", { pattern: "*" })
      const left = "dist/, g.log, h.log, node_modules/, src/c.log and 1 more"
      assert.strictEqual(found.text, `.gitignore\nsrc/\nsrc/b\n${note(left)}`)
      assert.deepStrictEqual(found.details, { path: ".", found: 3, complete: true, leftOut: 6 })
      assert.strictEqual((yield* call("grep", { pattern: "hit" })).text, `src/b:1: hit\n${note(left)}`)
      assert.strictEqual(
        (yield* call("list", { path: "src" })).text,
        `b (4)\n${note("c.log, node_modules/")}`
      )
      const all = "dist/a g.log h.log node_modules/d/e src/b src/c.log src/node_modules/f".split(" ")
      assert.deepStrictEqual(yield* filesOf(space, { includeIgnored: true }), [".gitignore", ...all])
      const hits = yield* call("grep", { pattern: "hit", includeIgnored: true })
      assert.strictEqual(hits.text, all.map((path) => `${path}:1: hit`).join("\n"))
      const listed = yield* call("list", { includeIgnored: true })
      assert.strictEqual(listed.text, ".gitignore (11)\ndist/\ng.log (4)\nh.log (4)\nnode_modules/\nsrc/")
    }).pipe(Workspace.provide)
  )

  it.live("looks into what is ignored when its path is given", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({
        ".gitignore": "dist\n*.log\n",
        "dist/.gitignore": "x\n",
        ".git/hooks/pre": "hit\n",
        ...files("dist/a/x dist/b.log node_modules/d/node_modules/e c.log")
      })
      assert.deepStrictEqual(yield* filesOf(space, { path: "dist" }), [
        "dist/.gitignore",
        "dist/a/x",
        "dist/b.log"
      ])
      assert.deepStrictEqual(yield* filesOf(space, { path: "dist/a" }), ["dist/a/x"])
      const inner = "node_modules/d/node_modules/e"
      assert.deepStrictEqual(yield* filesOf(space, { path: "node_modules/d" }), [inner])
      assert.deepStrictEqual(yield* filesOf(space, { path: ".git/hooks" }), [".git/hooks/pre"])
      assert.strictEqual((yield* space.call("grep", { pattern: "hit", path: "c.log" })).text, "c.log:1: hit")
      assert.strictEqual((yield* space.call("list", { path: "dist/a" })).text, "x (4)")
    }).pipe(Workspace.provide)
  )

  it.live(
    "takes a rule of the project before the usual ones, and a repository inside for one of its own",
    () =>
      Effect.gen(function* () {
        const space = yield* Workspace.make({
          ".gitignore": "!/src/node_modules/\n*.log\n",
          "inner/.git/config": "",
          "inner/.gitignore": "*.tmp\n",
          "tree/.git": "gitdir: elsewhere\n",
          ...files("src/node_modules/a node_modules/b inner/a.log inner/b.tmp tree/c.log d.log")
        })
        assert.deepStrictEqual(yield* filesOf(space), [
          ".gitignore",
          "inner/.gitignore",
          "inner/a.log",
          "src/node_modules/a",
          "tree/c.log"
        ])
      }).pipe(Workspace.provide)
  )

  it.live.each(Array.from({ length: 25 }, (_, seed) => seed))(
    "leaves out what git ignores, by made up rules %s",
    (seed) =>
      Effect.gen(function* () {
        const random = seeded(seed)
        const pick = (words: string) => {
          const among = words.split(" ")
          return among[random(among.length)] ?? ""
        }
        const many = (most: number, make: () => string) => Array.from({ length: 1 + random(most) }, make)
        const part = () =>
          many(4, () => pick("a b ab * ** ? [ab] [!a] [^b] [a-c] [[:alpha:]] [c-a] ]a \\* \\a . *.a -"))
            .join("")
            .replace(/\*{3,}/g, "*")
        const rule = () =>
          pick("! - - -").replace("-", "") +
          pick("/ - -").replace("-", "") +
          many(3, part).join("/") +
          pick("/ - /** -").replace("-", "")
        const name = () =>
          many(4, () => pick("a b c ab . - * [ ]"))
            .join("")
            .replace(/^\.+$/, "d")
        const made = Object.fromEntries(
          many(40, () => many(4, name).join("/f/")).map((path) => [`${path}.x`, "hit\n"])
        )
        const rules = () => many(6, rule).join("\n")
        const space = yield* Workspace.make({
          ".gitignore": rules(),
          "a/f/.gitignore": rules(),
          "b/f/.gitignore": rules(),
          ...made
        })
        const expected = filesOfGit(space.root)
        assert.deepStrictEqual((yield* filesOf(space)).toSorted(), expected)
      }).pipe(Workspace.provide)
  )

  it.live("reads no rules outside the root, nor through links", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make(files("a.log b.txt"))
      const { fs, outside, path, root } = space
      yield* fs.writeFileString(path.join(path.dirname(root), ".gitignore"), "*.log\n")
      yield* fs.writeFileString(path.join(outside, "rules"), "*.txt\n")
      yield* fs.symlink(path.join(outside, "rules"), path.join(root, ".gitignore"))
      assert.deepStrictEqual(yield* filesOf(space), [".gitignore", "a.log", "b.txt"])
    }).pipe(Workspace.provide)
  )

  const name = "a".repeat(250)
  it.live.each([
    ["many stars", `${"*a".repeat(30)}*b\n${"**/a/".repeat(30)}b\n${"*a*b\n".repeat(1_000)}`],
    ["many rules", Array.from({ length: 30_000 }, (_, index) => `*${index}.x`).join("\n")],
    ["one long line", `${" ".repeat(256 * 1024 - 10)}x`],
    ["empty lines", "\n".repeat(256 * 1024)],
    ["open brackets and backslashes", `${"[".repeat(200)}\n${"\\".repeat(201)}\n[z-a]\n[[:x:\n\\`],
    ["bytes that are no text", new Uint8Array(200_000).fill(0xff)]
  ] as const)(
    "is not held up by rules: %s",
    ([, rules]) =>
      Effect.gen(function* () {
        const deep = "aaaa/".repeat(50)
        const space = yield* Workspace.make({ ".gitignore": rules, [name]: "", [`${deep}${name}`]: "" })
        yield* space.call("find", { pattern: "*", path: "none" })
        const { result, stretch } = yield* Stretch.longest(filesOf(space))
        assert.isBelow(stretch, 100)
        assert.include(result, name)
        assert.include(result, `${deep}${name}`)
      }).pipe(Workspace.provide),
    Stretch.tries
  )
})
