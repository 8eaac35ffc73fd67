import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, type AgentEvent, Approval, Message, Tool } from "effect-agent"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

/** An agent whose agent inside has an agent inside, which removes files. */
const tree = () => {
  const ran: Array<string> = []
  const remove = Tool.make({
    name: "remove",
    description: "Removes a file.",
    params: Schema.Struct({ path: Schema.String }),
    execute: ({ path }) => Effect.sync(() => (ran.push(path), `removed ${path}`))
  })
  const inner = Agent.asTool({
    name: "inner",
    description: "x",
    agent: { model: "inner", tools: [remove] }
  })
  const outer = Agent.asTool({ name: "outer", description: "x", agent: { model: "outer", tools: [inner] } })
  return { ran, tools: [outer, remove] as const }
}

const removes = (...paths: ReadonlyArray<string>) =>
  paths.map((path) => ({ name: "remove", params: { path } }))

/** The agents make these calls first, and then answer with their model and the last result. */
const provider = (scripts: Readonly<Record<string, ScriptedProvider.Turn>>) =>
  ScriptedProvider.make([], {
    exhausted: ({ messages, model }) => {
      const last = messages.at(-1)
      const script = scripts[model]
      return last?.role === "toolResult" || script === undefined
        ? ScriptedProvider.text(`${model}: ${last === undefined ? "" : Message.textOf(last)}`)
        : script
    }
  })

const scripts = {
  root: ScriptedProvider.toolCalls({ name: "outer", params: { prompt: "x" } }, ...removes("ok0")),
  outer: ScriptedProvider.toolCall("inner", { prompt: "x" }),
  inner: ScriptedProvider.toolCalls(...removes("ok1", "a"))
}

const deferring = Approval.layer({
  rules: [
    Approval.allow("remove", (params) => JSON.stringify(params).includes("ok")),
    Approval.allow("inner"),
    Approval.allow("outer")
  ],
  asked: "defer"
})

const approve = Effect.fnUntraced(function* (agent: Agent.Agent) {
  const [request, ...others] = (yield* agent.requests).approvals
  assert.deepStrictEqual(others, [])
  assert.strictEqual(request?.path?.length, 2)
  yield* agent.answer(request?.approvalId ?? "", {
    decision: "approve",
    argumentsHash: request?.argumentsHash ?? ""
  })
})

const ends = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) => (event._tag === "RunEnd" ? [`${event.path?.length ?? 0} ${event.status}`] : []))

describe("a suspended run inside of a call", () => {
  it.effect("suspends the runs around it, and all of them continue where they stopped", () =>
    Effect.gen(function* () {
      const { ran, tools } = tree()
      const scripted = yield* provider(scripts)
      const agent = yield* Agent.make({ model: "root", tools }).pipe(Effect.provide(scripted.layer))
      const events: Array<AgentEvent.AgentEvent> = []
      yield* agent.subscribe((event) => Effect.sync(() => void events.push(event)))
      assert.strictEqual((yield* agent.prompt("Go")).status, "suspended")
      assert.deepStrictEqual(ends(events), ["2 suspended", "1 suspended", "0 suspended"])
      assert.deepStrictEqual(ran.toSorted(), ["ok0", "ok1"])
      assert.strictEqual((yield* scripted.requests).length, 3)
      yield* approve(agent)
      const { newMessages, status } = yield* agent.continue
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(ran.toSorted(), ["a", "ok0", "ok1"])
      assert.deepStrictEqual(
        newMessages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : [])),
        ["outer: inner: removed a", "removed ok0"]
      )
      assert.deepStrictEqual(
        (yield* scripted.requests).slice(3).map(({ model }) => model),
        ["inner", "outer", "root"]
      )
      assert.deepStrictEqual(ends(events).slice(3), ["2 completed", "1 completed", "0 completed"])
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
    }).pipe(Effect.provide(deferring), Effect.scoped)
  )

  it.effect("waits again while the answer has not come", () =>
    Effect.gen(function* () {
      const { ran, tools } = tree()
      const scripted = yield* provider(scripts)
      const agent = yield* Agent.make({ model: "root", tools }).pipe(Effect.provide(scripted.layer))
      yield* agent.prompt("Go")
      assert.strictEqual((yield* agent.continue).status, "suspended")
      assert.strictEqual((yield* scripted.requests).length, 3)
      yield* approve(agent)
      assert.strictEqual((yield* agent.continue).status, "completed")
      assert.deepStrictEqual(ran.toSorted(), ["a", "ok0", "ok1"])
    }).pipe(Effect.provide(deferring), Effect.scoped)
  )

  it.effect("is closed by a new prompt, and its request with it", () =>
    Effect.gen(function* () {
      const { ran, tools } = tree()
      const scripted = yield* provider(scripts)
      const agent = yield* Agent.make({ model: "root", tools }).pipe(Effect.provide(scripted.layer))
      yield* agent.prompt("Go")
      yield* agent.setMessages((yield* agent.state.get).messages)
      assert.deepStrictEqual((yield* agent.requests).approvals, [])
      assert.deepStrictEqual(ran.toSorted(), ["ok0", "ok1"])
    }).pipe(Effect.provide(deferring), Effect.scoped)
  )

  it.effect("continues from a session, with an answer that was given before or after the restart", () =>
    Effect.gen(function* () {
      for (const isAnsweredBefore of [true, false]) {
        const { ran, tools } = tree()
        const scripted = yield* provider(scripts)
        const store = yield* SessionStore.SessionStore
        const id = yield* Effect.gen(function* () {
          const session = yield* store.create()
          const agent = yield* Agent.make({ model: "root", tools, session })
          assert.strictEqual((yield* agent.prompt("Go")).status, "suspended")
          if (isAnsweredBefore) yield* approve(agent)
          return session.id
        }).pipe(Effect.provide(scripted.layer), Effect.scoped)
        yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "root", tools, session: yield* store.open(id) })
          if (!isAnsweredBefore) yield* approve(agent)
          const { newMessages, status } = yield* agent.continue
          assert.strictEqual(status, "completed")
          assert.deepStrictEqual(ran.toSorted(), ["a", "ok0", "ok1"])
          assert.deepStrictEqual(
            newMessages.flatMap((message) =>
              message.role === "toolResult" ? [Message.textOf(message)] : []
            ),
            ["outer: inner: removed a", "removed ok0"]
          )
        }).pipe(Effect.provide(scripted.layer), Effect.scoped)
        assert.strictEqual((yield* scripted.requests).length, 6)
      }
    }).pipe(Effect.provide(deferring), Effect.provide(MemorySessionStore.layer()))
  )
})
