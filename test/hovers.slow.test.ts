/**
 * What an editor shows where a program of an application stops the pointer.
 */
import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import ts from "typescript-5.9"

const program = `
import { Effect, Stream } from "effect"
import { Agent, AgentEvent } from "effect-agent"
import { createAgent } from "effect-agent/promise"
export const run = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "m" })
  const events = agent.stream("Hi")
  const ends = events.pipe(AgentEvent.ofTag("RunEnd"))
  yield* Stream.runForEach(events, (event) => {
    if (event._tag === "ToolExecutionEnd") { const narrowed = event; return Effect.log(narrowed) }
    return Effect.void
  })
  return ends
})
const promised = createAgent({ model: "m" })
for await (const one of promised.stream("Hi")) console.log(one)
`

const file = join(import.meta.dirname, "hovered.ts")
const host: ts.LanguageServiceHost = {
  getCompilationSettings: () => ({
    strict: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ESNext,
    skipLibCheck: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    customConditions: ["effect-agent-source"],
    types: []
  }),
  getScriptFileNames: () => [file],
  getScriptVersion: () => "1",
  getScriptSnapshot: (name) => {
    const text = name === file ? program : ts.sys.readFile(name)
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
  },
  getCurrentDirectory: () => import.meta.dirname,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: (name) => name === file || ts.sys.fileExists(name),
  readFile: (name) => (name === file ? program : ts.sys.readFile(name)),
  readDirectory: ts.sys.readDirectory,
  directoryExists: ts.sys.directoryExists,
  getDirectories: ts.sys.getDirectories
}
const service = ts.createLanguageService(host)

const hover = (text: string) =>
  ts.displayPartsToString(
    service.getQuickInfoAtPosition(file, program.indexOf(text) + text.length - 1)?.displayParts
  )

describe("an editor names", { timeout: 120_000 }, () => {
  it.each([
    [
      "const events",
      "const events: Stream.Stream<AgentEvent.AgentEvent, RunFailed | Agent.CannotBegin, never>"
    ],
    ["const ends", "const ends: Stream.Stream<AgentEvent.RunEnd, RunFailed | Agent.CannotBegin, never>"],
    ["const narrowed", "const narrowed: AgentEvent.ToolExecutionEnd"],
    ["const one", "const one: AgentEvent.AgentEvent"]
  ])("the type behind %s", (text, expected) => {
    assert.strictEqual(hover(text), expected)
  })
})
