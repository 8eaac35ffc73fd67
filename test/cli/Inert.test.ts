import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { type AgentEvent, ProviderError } from "effect-agent"
import * as Failure from "../../src/cli/Failure.ts"
import * as Inert from "../../src/cli/Inert.ts"
import * as JsonOutput from "../../src/cli/JsonOutput.ts"
import * as Paint from "../../src/cli/Paint.ts"
import * as Preview from "../../src/cli/Preview.ts"
import { Screen } from "../../src/cli/Screen.ts"
import * as TextOutput from "../../src/cli/TextOutput.ts"
import * as ToolTitle from "../../src/cli/ToolTitle.ts"

/** First and last code points of what a terminal shows as nothing, as a space, or in another order. */
const unseen: ReadonlyArray<readonly [name: string, first: number, last: number]> = [
  ["C0 controls before the tab", 0x0, 0x8],
  ["C0 controls behind the line end", 0xb, 0x1f],
  ["delete, C1 controls and the space that does not break", 0x7f, 0xa0],
  ["soft hyphen", 0xad, 0xad],
  ["combining grapheme joiner", 0x34f, 0x34f],
  ["Arabic letter mark", 0x61c, 0x61c],
  ["Hangul fillers", 0x115f, 0x1160],
  ["Ogham space", 0x1680, 0x1680],
  ["Khmer inherent vowels", 0x17b4, 0x17b5],
  ["Mongolian selectors and separator", 0x180b, 0x180f],
  ["spaces, zero width characters and direction marks", 0x2000, 0x200f],
  ["separators, embeddings and the narrow space", 0x2028, 0x202f],
  ["mathematical space, invisible operators, isolates", 0x205f, 0x206f],
  ["Braille blank", 0x2800, 0x2800],
  ["ideographic space", 0x3000, 0x3000],
  ["Hangul filler", 0x3164, 0x3164],
  ["halves of characters", 0xd800, 0xdfff],
  ["private use", 0xe000, 0xf8ff],
  ["variation selectors", 0xfe00, 0xfe0f],
  ["byte order mark", 0xfeff, 0xfeff],
  ["halfwidth Hangul filler", 0xffa0, 0xffa0],
  ["specials and the object that is not there", 0xfff0, 0xfffc],
  ["noncharacters", 0xfffe, 0xffff],
  ["Egyptian blanks", 0x13441, 0x13442],
  ["Khitan filler", 0x16fe4, 0x16fe4],
  ["shorthand controls", 0x1bca0, 0x1bca3],
  ["a note without a head", 0x1d159, 0x1d159],
  ["musical controls", 0x1d173, 0x1d17a],
  ["tags and further variation selectors", 0xe0000, 0xe0fff]
]

const codesOf = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe("Inert.exact", () => {
  it.each(unseen)("spells out %s", (_, first, last) => {
    for (const code of codesOf(first, last)) {
      const expected = `a\\u{${code.toString(16)}}b`
      assert.strictEqual(Inert.exact(`a${String.fromCodePoint(code)}b`), expected)
      assert.strictEqual(Inert.name(`a${String.fromCodePoint(code)}b`), expected)
    }
  })

  it("leaves what can be seen, line ends and tabs", () => {
    const ascii = String.fromCharCode(...codesOf(0x20, 0x7e))
    const words =
      "Übung e\u0301 Ελληνικά Кириллица עברית العربية हिन्दी ไทย 한국어 ひらがな 漢字 ＡＢ ░▒▓ ─│ 😀👍🏽 ⠁ ﷽"
    for (const seen of [ascii, words, "a\n\tb\n"]) assert.strictEqual(Inert.exact(seen), seen)
  })

  it("spells out line ends and tabs of a name", () => {
    assert.strictEqual(Inert.name("a b\n\tc\r\n"), "a b\\u{a}\\u{9}c\\u{d}\\u{a}")
  })
})

describe("Inert.line", () => {
  it.each([
    ["a \n\t\n  b\r\n\nc  ", "a b c"],
    [" \n\t a  b ", "a  b"],
    ["\n \n", ""],
    ["a\u001b[2J\nb", "a\\u{1b}[2J b"],
    [`${" ".repeat(1_000)}a`, "a"]
  ])("shows %j on one line", (raw, shown) => {
    assert.strictEqual(Inert.line(raw), shown)
  })

  it("cuts behind its limit, not before", () => {
    assert.strictEqual(Inert.line("abcd", 4), "abcd")
    assert.strictEqual(Inert.line("abc d", 4), "abc …")
  })
})

const size = 256 * 1024
const filled = (piece: string) => piece.repeat(Math.ceil(size / piece.length)).slice(0, size)

/** Texts that make an expression with two ways to match the same characters take quadratic time. */
const slow = [
  " ",
  "\n",
  "\r",
  "\t",
  ".",
  ". ",
  " \n",
  "\n\n ",
  "\u00a0",
  "\u3000",
  "\u0001",
  "\u009b",
  "\ud800",
  "\\",
  '"',
  "a",
  "\u001b[",
  "a ",
  "a\n",
  "x".repeat(300) + "\n",
  "\u202e",
  "{",
  "%",
  "at "
].map((piece) => `a${filled(piece)}b`)

/** The least milliseconds of the processor that it takes, of three times: others are at work on this machine. */
const cost = Effect.fnUntraced(function* <E, R>(effect: Effect.Effect<unknown, E, R>) {
  const times: Array<number> = []
  while (times.length < 3 && (times.at(-1) ?? Infinity) > 100) {
    const before = process.cpuUsage()
    yield* effect
    const { system, user } = process.cpuUsage(before)
    times.push((system + user) / 1000)
  }
  return Math.min(...times)
})

const stamp = { runId: "run_1", seq: 1, timestamp: 0, toolCallId: "call_1" }
const failure = (text: string) =>
  new ProviderError.ProviderError({ provider: "p", reason: new ProviderError.ServerError({ detail: text }) })

const ended = (toolName: string, text: string, isError: boolean): AgentEvent.AgentEvent => ({
  ...stamp,
  _tag: "ToolExecutionEnd",
  toolName,
  result: { content: [{ type: "text", text }] },
  isError,
  outcome: isError ? "error" : "success",
  durationMs: 1
})

const events = (text: string): ReadonlyArray<AgentEvent.AgentEvent> => [
  {
    ...stamp,
    _tag: "MessageDelta",
    messageId: "m",
    delta: { _tag: "TextDelta", contentIndex: 0, delta: text }
  },
  { ...stamp, _tag: "ToolExecutionStart", toolName: "shell", params: { command: text } },
  { ...stamp, _tag: "ToolExecutionStart", toolName: text, params: { x: [text] } },
  ended("read", text, false),
  ended("read", text, true),
  { ...stamp, _tag: "ModelCallRetry", attempt: 1, delayMs: 1, error: failure(text) }
]

const silent = Screen.of({
  out: () => Effect.void,
  err: () => Effect.void,
  paint: Paint.make(true),
  isInteractive: true,
  rows: () => 24
})

describe(
  "256 kB of a model, a tool, a file or a server block for 100 ms at most",
  { timeout: 120_000 },
  () => {
    const one = <A>(work: () => A) => Effect.sync(work)
    const ways: ReadonlyArray<readonly [string, (text: string) => Effect.Effect<unknown>]> = [
      ["Inert.text", (text) => one(() => Inert.text(text))],
      ["Inert.line", (text) => one(() => Inert.line(text))],
      ["Inert.exact", (text) => one(() => Inert.exact(text))],
      ["Inert.name", (text) => one(() => Inert.name(text))],
      ["ToolTitle", (text) => one(() => ToolTitle.of("shell", { command: text }))],
      ["Failure", (text) => one(() => Failure.explain(failure(text)))]
    ]
    it.live.each(ways)("in %s", ([, way]) =>
      Effect.gen(function* () {
        for (const text of slow) {
          assert.isBelow(yield* cost(way(text)), 100, JSON.stringify(text.slice(0, 20)))
        }
      })
    )

    it.live("in an event that is shown, as text and as JSON", () =>
      Effect.gen(function* () {
        for (const text of slow) {
          for (const event of events(text)) {
            const what = `${event._tag} ${JSON.stringify(text.slice(0, 20))}`
            assert.isBelow(yield* cost(TextOutput.make(silent)([event])), 100, what)
            assert.isBelow(yield* cost(JsonOutput.make(silent)([event])), 100, what)
          }
        }
      })
    )

    it.live("in the preview of a call", () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const root = yield* files.makeTempDirectoryScoped()
        for (const text of slow) {
          yield* files.writeFileString(`${root}/old`, `${text}!`)
          const calls = [
            ["shell", { command: text }],
            ["write", { path: "old", content: text }],
            ["write", { path: text, content: "" }],
            ["edit", { path: "old", oldText: text, newText: `${text}!` }],
            ["else", { [text]: [text] }]
          ] as const
          for (const [name, params] of calls) {
            const took = yield* cost(Effect.map(Preview.of(name, params, root), Preview.brief))
            assert.isBelow(took, 100, `${name} ${JSON.stringify(text.slice(0, 20))}`)
          }
        }
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
    )
  }
)
