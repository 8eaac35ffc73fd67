import { assert, describe, it } from "@effect/vitest"
import { existsSync, globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { exportsOf, modules } from "./docstrings.ts"
import * as Options from "../scripts/options.ts"
import * as SessionTables from "../scripts/sessionTables.ts"

const root = join(import.meta.dirname, "..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

/** A section of a page, from its heading to the next heading of the same level. */
const sectionOf = (page: string, heading: string): string => {
  const [, section = ""] = read(page).split(`\n${heading}\n`)
  const [hashes = ""] = heading.split(" ")
  return section.split(`\n${hashes} `)[0] ?? ""
}

/** The anchors of the headings of a page, as GitHub makes them. */
const anchorsOf = (page: string): ReadonlyArray<string> =>
  Array.from(read(page).matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-")
  )

/** The cells of the rows of all tables in a text. */
const rowsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text
    .split("\n")
    .filter((line) => line.startsWith("|") && !line.startsWith("| --"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
    )

const pages = ["README.md", "CHANGELOG.md", ...globSync("docs/*.md", { cwd: root })]

describe.each(pages)("%s", (page) => {
  const blocks = [...read(page).matchAll(/```ts\n\/\/ (examples\/[\w-]+\.ts)\n([^]*?)```/g)]

  it("shows code of examples, which the compiler checks", () => {
    assert.strictEqual(blocks.length, [...read(page).matchAll(/```ts\n/g)].length)
  })

  it.each(blocks.map(([, file = "", code = ""]) => [file, code] as const))(
    "shows %s as it is",
    (file, code) => {
      assert.strictEqual(code, read(file))
    }
  )
})

describe("README", () => {
  it("stays within 900 words, CONTRIBUTING.md within 80 lines, CHANGELOG.md within 400", () => {
    assert.isAtMost(read("README.md").split(/\s+/).length, 900)
    assert.isAtMost(read("CONTRIBUTING.md").split("\n").length, 80)
    assert.isAtMost(read("CHANGELOG.md").split("\n").length, 400)
  })

  it("leads to each page of docs, and each example is on a page", () => {
    const unlisted = globSync("docs/*.md", { cwd: root }).filter(
      (file) => !read("README.md").includes(`](${file}`)
    )
    assert.deepStrictEqual(unlisted, [])
    const texts = pages.map(read).join("\n")
    assert.deepStrictEqual(
      globSync("examples/*.ts", { cwd: root }).filter((file) => !texts.includes(`// ${file}\n`)),
      []
    )
  })

  it("draws the grammar of events as the docs of `AgentEvent` do, which the tests check", () => {
    const drawn = /```text\n([^]*?)```/
    const [, stars = ""] = drawn.exec(read("src/AgentEvent.ts")) ?? []
    const [, page] = drawn.exec(read("docs/events.md")) ?? []
    assert.strictEqual(page, stars.replaceAll(/^ \* ?/gm, ""))
  })

  it("links to files and headings that are there", () => {
    const broken = pages.flatMap((page) =>
      Array.from(
        read(page)
          .replace(/```[^]*?```|`[^`\n]*`/g, "")
          .matchAll(/\]\(([^)\s]+)\)/g)
      ).flatMap(([, link = ""]) => {
        if (/^https?:/.test(link)) return []
        const [path = "", anchor] = link.split("#")
        const file = path === "" ? page : join(page, "..", path)
        if (!existsSync(join(root, file))) return [`${page}: ${link}`]
        return anchor === undefined || anchorsOf(file).includes(anchor) ? [] : [`${page}: ${link}`]
      })
    )
    assert.deepStrictEqual(broken, [])
  })

  it("has a map of the public modules in CONTRIBUTING.md", () => {
    const text = read("CONTRIBUTING.md")
    const modules = globSync("*.ts", { cwd: join(root, "src") }).filter((file) => file !== "index.ts")
    const missing = modules.filter((file) => !text.includes(file.replace(/\.ts$/, "")))
    assert.deepStrictEqual(missing, [])
  })

  it("has each public error in docs/reference.md", () => {
    const tables = sectionOf("docs/reference.md", "## Errors")
    const exported = modules.flatMap((file) => exportsOf(file).map(({ name }) => name))
    const errors = globSync("src/**/*.ts", { cwd: root }).flatMap((file) =>
      Array.from(read(file).matchAll(/^export class (\w+) extends TaggedError</gm), ([, name = ""]) => name)
    )
    assert.isAbove(errors.length, 30)
    const missing = errors.filter((name) => exported.includes(name) && !tables.includes(`\`${name}\``))
    assert.deepStrictEqual(missing, [])
  })

  it("has each point of hooks in docs/hooks.md, with its input and its output", () => {
    const [, source = ""] = read("src/Hook.ts").split("export interface Points {")
    const points = Array.from(
      (source.split("\n}")[0] ?? "").matchAll(/^ {2}readonly (\w+): \[/gm),
      ([, name]) => name
    )
    const rows = Array.from(
      read("docs/hooks.md").matchAll(/^\| `(\w+)` +\|[^|]+\|[^|]+\|$/gm),
      ([, name]) => name
    )
    assert.deepStrictEqual(rows.toSorted(), points.toSorted())
  })
})

/** The exported names of each namespace. */
const namespaces = new Map(
  modules.map((file) => [file.replace(/^.*\/|\.ts$/g, ""), new Set(exportsOf(file).map(({ name }) => name))])
)
/** Names that `exportsOf` does not list: a namespace, and a function that has another name in its module. */
const unlisted = ["Loop.continue", "OpenAiCompatible.presets"]

/** The names of a text such as `Agent.make` that no namespace of this package exports. */
const missingIn = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/\b([A-Z]\w+)\.(\w+)/g)).flatMap(([name, namespace = "", member = ""]) =>
    namespaces.get(namespace)?.has(member) === false && !unlisted.includes(name) ? [name] : []
  )

describe("docs/options.md", () => {
  it("is made from the source: npm run docs", () => {
    const text = read("docs/options.md")
    assert.strictEqual(text, Options.pageWith(text))
  })
})

describe("docs/program.md", () => {
  const text = read("docs/program.md")

  it("has the keys and commands of the session: npm run docs", () => {
    assert.strictEqual(text, SessionTables.pageWith(text))
  })

  it("shows each picture, with words for those who do not see it: npm run pictures", () => {
    const shown = Array.from(
      text.matchAll(/!\[[^\]]{20,}\]\((pictures\/[\w-]+\.svg)\)/g),
      ([, file]) => `docs/${file}`
    )
    assert.deepStrictEqual(shown.toSorted(), globSync("docs/pictures/*", { cwd: root }).toSorted())
  })
})

describe("names of this package", () => {
  it.each(pages.filter((page) => page !== "CHANGELOG.md"))("in %s exist", (page) => {
    assert.deepStrictEqual(missingIn(read(page)), [])
  })

  it("that replace those of 0.1.0 exist", () => {
    const rows = rowsOf(sectionOf("CHANGELOG.md", "### Migrating from 0.1.0"))
    assert.isAtLeast(rows.length, 30)
    assert.deepStrictEqual(
      rows.flatMap(([, replacement = ""]) => missingIn(replacement)),
      []
    )
  })
})

/** The defaults of docs/reference.md, by the cell before. */
const defaults = new Map(
  rowsOf(sectionOf("docs/reference.md", "## Defaults")).flatMap((cells) =>
    cells.flatMap((cell, index) => (index % 2 === 0 ? [[cell, cells[index + 1] ?? ""] as const] : []))
  )
)

/** The place of each number in the source. */
const numbers: ReadonlyArray<readonly [name: string, file: string, pattern: RegExp]> = [
  ["`toolConcurrency`", "internal/turn", /defaultConcurrency = (\d+)/],
  ["`toolTimeout`", "internal/toolOutcome", /defaultTimeout = Duration\.seconds\((\d+)\)/],
  ["`hookTimeout`", "internal/hookCalls", /hookTimeout: Duration\.seconds\((\d+)\)/],
  ["`maxConsecutiveHookErrors`", "internal/hookCalls", /defaultMaxErrors = (\d+)/],
  ["`limits.maxTurns`", "internal/limitTable", /maxTurns: { initial: (\d+)/],
  ["`limits.maxIdenticalToolCalls`", "internal/limitTable", /maxIdenticalToolCalls: {\s+initial: (\d+)/],
  ["`limits.maxToolRetries`", "internal/limitTable", /maxToolRetries: { initial: (\d+)/],
  ["`outputRetries`", "internal/output", /defaultRetries = (\d+)/],
  ["`Agent.asTool`: `concurrency`", "internal/subAgent", /defaultConcurrency = (\d+)/],
  ["`maxRetryAfter`, with `retry`", "internal/options", /maxRetryAfter \?\? "(\d+) minutes"/],
  ["`Retry`: `schedule`", "resilience/Retry", /Schedule\.upTo\(\{ times: (\d+) \}\)/],
  ["`Retry`: `maxRetryAfter`", "resilience/Retry", /maxRetryAfter (?:\?\?|=) "(\d+) seconds"/],
  [
    "`timeouts.firstByte` of a provider",
    "providers/internal/connection",
    /timeouts\.firstByte \?\? "(\d+) seconds"/
  ],
  ["`timeouts.idle` of a provider", "providers/internal/connection", /timeouts\.idle \?\? "(\d+) seconds"/],
  ["`agent.subscribe`: `timeout`", "internal/mailbox", /defaultTimeout = Duration\.seconds\((\d+)\)/],
  ["`Compaction`: `reserve`", "context/Compaction", /Math\.min\(([\d_]+), window \/ 6/],
  ["`Compaction`: `keepRecent`", "context/Compaction", /Math\.min\(([\d_]+), window \/ 8/],
  ["`Compaction`: `maxResult`", "context/Compaction", /maxResult = ([\d_]+)/],
  ["`Pruning`: `budget`", "context/Pruning", /budget = ([\d_]+)/],
  ["`Pruning`: `keepTurns`", "context/Pruning", /keepTurns = (\d+)/],
  ["`slidingWindow`: `maxMessages`", "ContextManager", /maxMessages \?\? (\d+)/],
  ["`shell`: `timeout`", "tools/ShellTool", /options\.timeout \?\? "(\d+) seconds"/],
  ["`shell`: `maxTimeout`", "tools/ShellTool", /options\.maxTimeout \?\? "(\d+) seconds"/],
  ["`shell`: `maxOutput`", "tools/ShellTool", /options\.maxOutput \?\? ([\d_]+)/],
  ["`grep` and `find`: `searchTime`", "tools/internal/Walk", /searchTime = "(\d+) seconds"/],
  ["wait for work that ignores its interruption", "internal/interruption", /grace = (\d+)/],
  ["lag of a reader of `agent.events`", "internal/mailbox", /eventBuffer = (\d+)/],
  ["text in the result of a tool", "internal/toolOutput", /maxText = ([\d_]+)/],
  ["answer of a provider, decompressed", "providers/internal/answer", /maxBytes = (\d+) \* 1024 \* 1024/],
  ["arguments of the calls of an answer", "internal/answerSize", /maxArguments = (\d+) \* 1024 \* 1024/],
  ["text and thinking of an answer", "internal/answerSize", /maxText = (\d+) \* 1024 \* 1024/]
]

/** The default that the docstring of an option gives: a word in code, or nothing. */
const documented = (name: string): string | undefined => {
  const member = name.slice(name.lastIndexOf(".") + 1)
  const source = read("src/RunOptions.ts")
  const [before = ""] = source.split(new RegExp(`^  ${member}: Schema`, "m"))
  return /Default (`[^`]+`)/.exec(before.slice(before.lastIndexOf("/**")))?.[1]
}

describe("the defaults in docs/reference.md", () => {
  it.each(numbers)("are those of the source: %s", (name, file, pattern) => {
    const [, number = "none"] = pattern.exec(read(`src/${file}.ts`)) ?? []
    const shown = /^[\d,]+/.exec(defaults.get(name) ?? "")?.[0]
    assert.strictEqual(shown?.replaceAll(",", ""), number.replaceAll("_", ""))
  })

  it("have a check for each number", () => {
    const shown = [...defaults].flatMap(([name, value]) => (/^\d/.test(value) ? [name] : []))
    assert.deepStrictEqual(shown.toSorted(), numbers.map(([name]) => name).toSorted())
  })

  it("are those of the docstrings, where they are words", () => {
    const words = [...defaults].flatMap(([name, value]) => {
      const word = documented(name.replaceAll("`", ""))
      return word === undefined ? [] : [[name, word, value] as const]
    })
    assert.isAtLeast(words.length, 10)
    for (const [name, word, value] of words) assert.strictEqual(value, word, name)
  })
})
