/** Logs in the files of sessions, also of those that a crash has cut. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, type Path, Schema, type Scope, Stream } from "effect"
import { Agent, type Provider, Tool } from "effect-agent"
import { Agents, JsonlRunLogStore, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { readdirSync, readFileSync } from "node:fs"
import { layer } from "./host.ts"

const live = <A, E>(effect: Effect.Effect<A, E, FileSystem.FileSystem | Path.Path | Scope.Scope>) =>
  effect.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const folder = FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped())

/** Stores in files. */
const storesIn = Effect.fnUntraced(function* (directory: string) {
  const sessions = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
  const logs = yield* Layer.build(JsonlRunLogStore.layer({ directory: `${directory}/logs` }))
  return Layer.mergeAll(
    Layer.succeed(SessionStore.SessionStore, sessions),
    Layer.succeed(RunLogStore.RunLogStore, Context.get(logs, RunLogStore.RunLogStore))
  )
})

const look = Tool.make({
  name: "look",
  description: "Looks.",
  effect: "idempotent",
  params: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => Effect.succeed(`saw ${at}`)
})

/** Two turns whose calls have the same id, and the answer. */
const answer = ({ messages }: Provider.ModelRequest) => {
  if (messages.length > 3) return ScriptedProvider.text("Seen.")
  const at = messages.length === 1 ? "one" : "two"
  return ScriptedProvider.turn(Step.toolCall("look", { at }, { id: "call_1" }), Step.finish("toolUse"))
}

const processIn = (directory: string) =>
  Effect.map(storesIn(directory), (stores) =>
    layer([answer, answer, answer, answer], { tools: [look], needsApproval: ["look"] }, stores)
  )

/** The events of a run, whose calls are approved. */
const driven = Effect.fnUntraced(function* (runId: string) {
  const runs = yield* Runs.Runs
  const seen: Array<Runs.Positioned> = []
  yield* Stream.runForEach(yield* runs.events(runId, 0), (entry) => {
    const { event } = entry
    if (event._tag !== "MessageDelta") seen.push(entry)
    if (event._tag !== "ApprovalRequested") return Effect.void
    const { approvalId, argumentsHash } = event
    return Effect.ignore(runs.approve(runId, approvalId, { decision: "approve", argumentsHash }))
  })
  return seen
})

const begun = Effect.gen(function* () {
  const runs = yield* Runs.Runs
  const sessionId = yield* runs.sessions.create({})
  const { runId } = yield* runs.start({ sessionId, prompt: "Look." })
  return { runId, sessionId, seen: yield* driven(runId) }
})

const queued = Effect.gen(function* () {
  const runs = yield* Runs.Runs
  const sessionId = yield* runs.sessions.create({})
  const { runId: before } = yield* runs.start({ sessionId, prompt: "Look." })
  const { runId } = yield* runs.start({ sessionId, prompt: "Again.", when: "queue" })
  yield* driven(before)
  return { runId, sessionId, seen: yield* driven(runId) }
})

/** The files of a run that has ended, before its end. */
const whole = Effect.fnUntraced(function* (run: typeof begun) {
  const files = yield* FileSystem.FileSystem
  const directory = yield* folder
  const { runId, sessionId } = yield* Effect.provide(run, yield* processIn(directory))
  const names = yield* files.readDirectory(directory)
  const path = `${directory}/${names.find((name) => name.endsWith(".jsonl")) ?? ""}`
  const lines = (yield* files.readFileString(path)).split(/(?<=\n)/)
  const log = `${directory}/logs/${sessionId}/${runId}`
  /** Leaves the files as a crash does that cut the session behind so many lines. */
  const cut = (count: number) =>
    Effect.andThen(
      files.writeFileString(path, lines.slice(0, count).join("")),
      Effect.ignore(files.rename(`${log}.jsonl`, `${log}.open.jsonl`))
    )
  return { cut, directory, lines, runId, sessionId }
})

/** What a log has once. */
const nameOf = ({ event }: Runs.Positioned): string | undefined => {
  if (event._tag === "MessageEnd") return `${event._tag} ${event.message.id}`
  return "toolCallId" in event ? `${event._tag} ${event.turn} ${event.toolCallId}` : undefined
}

describe("a log in the file of its session", () => {
  it.live("has each message and each call once after a crash between a line and an entry", () =>
    Effect.gen(function* () {
      const { cut, directory, lines, runId } = yield* whole(begun)
      const first = lines.findIndex((line) => line.includes('"type":"message"'))
      const isLine = (at: number) => lines[at]?.startsWith('{"type":"log"') === true
      const second = lines.findIndex(
        (line) => line.includes('"_tag":"TurnStart","runId"') && line.includes('"turn":2')
      )
      for (let count = first + 1; count < second; count++) {
        if (isLine(count) === isLine(count - 1)) continue
        yield* cut(count)
        const seen = yield* Effect.provide(driven(runId), yield* processIn(directory))
        const names = seen.flatMap((entry) => nameOf(entry) ?? [])
        assert.deepStrictEqual(names, [...new Set(names)], `cut behind line ${count}`)
        assert.strictEqual(seen.at(-1)?.event._tag, "RunEnd")
        const read = yield* Effect.provide(driven(runId), yield* processIn(directory))
        assert.deepStrictEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(seen)))
      }
    }).pipe(live)
  )

  it.live("begins a run that waited once more whose first write a crash has cut", () =>
    Effect.gen(function* () {
      const { cut, directory, lines, runId } = yield* whole(queued)
      const first = lines.findIndex((line) => line.includes(`"phase":"start","runId":"${runId}"`))
      const prompt = lines.findIndex((line, at) => at > first && line.includes('"type":"message"'))
      for (let count = first; count <= prompt + 1; count++) {
        yield* cut(count)
        const seen = yield* Effect.provide(driven(runId), yield* processIn(directory))
        const tags = seen.map(({ event }) => event._tag)
        assert.deepStrictEqual(tags.slice(0, 2), ["RunStart", "TurnStart"], `cut behind line ${count}`)
        assert.strictEqual(tags.filter((tag) => tag === "RunStart" || tag === "TurnStart").length, 2)
        assert.strictEqual(tags.at(-1), "RunEnd")
        const read = yield* Effect.provide(driven(runId), yield* processIn(directory))
        assert.deepStrictEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(seen)))
      }
    }).pipe(live)
  )

  it.live("has the start of a call before the call, in an agent whose session keeps no events", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      let atCall = ""
      const pay = Tool.make({
        name: "pay",
        description: "Pays.",
        params: Schema.Struct({}),
        // In one step with the start of the call.
        execute: () =>
          Effect.sync(() => {
            const names = readdirSync(directory).filter((name) => name.endsWith(".jsonl"))
            atCall = names.map((name) => readFileSync(`${directory}/${name}`, "utf8")).join("")
            return "paid"
          })
      })
      const inner = Agent.asTool({
        name: "inner",
        description: "Pays.",
        agent: { model: "any", tools: [pay] }
      })
      const script = [
        ScriptedProvider.toolCall("inner", { prompt: "Pay." }),
        ScriptedProvider.toolCall("pay", {}),
        ScriptedProvider.text("Paid."),
        ScriptedProvider.text("Done.")
      ]
      const agents = Agents.layer(({ session: { child, id, record, restored } }) =>
        Agent.make({ model: "any", tools: [inner], session: { child, id, record, restored } })
      ).pipe(Layer.provide(ScriptedProvider.layer(script)))
      const stores = yield* storesIn(directory)
      yield* Effect.provide(begun, LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, stores])))
      assert.match(atCall, /"phase":"start"[^\n]*"toolName":"pay"/)
    }).pipe(live)
  )
})
