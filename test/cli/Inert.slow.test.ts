import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { type AgentEvent, ProviderError } from "effect-agent"
import * as Outcome from "../../src/cli/agent/Outcome.ts"
import * as Inert from "../../src/cli/terminal/Inert.ts"
import * as Output from "../../src/cli/terminal/Output.ts"
import * as Preview from "../../src/cli/terminal/Preview.ts"
import { Screen, paintOf } from "../../src/cli/terminal/Screen.ts"
import { costOf } from "../tools/stretch.ts"

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

/** The least milliseconds of the processor that it takes, of five times: others are at work on this machine. */
const cost = Effect.fnUntraced(function* <E, R>(effect: Effect.Effect<unknown, E, R>) {
  let least = Infinity
  for (let times = 0; times < 5 && least > 100; times++) least = Math.min(least, yield* costOf(effect))
  return least
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
  paint: paintOf(true),
  isInteractive: true,
  rows: () => 24,
  width: () => 0
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
      ["CallLines.titleOf", (text) => one(() => Output.titleOf("shell", { command: text }))],
      ["Failure", (text) => one(() => Outcome.explain(failure(text)))]
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
            assert.isBelow(yield* cost(Output.text(silent).show([event])), 100, what)
            assert.isBelow(yield* cost(Output.json(silent)([event])), 100, what)
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
            const took = yield* cost(
              Effect.map(Preview.of(name, params, root), (preview) => Preview.brief(preview, silent.paint))
            )
            assert.isBelow(took, 100, `${name} ${JSON.stringify(text.slice(0, 20))}`)
          }
        }
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
    )
  }
)
