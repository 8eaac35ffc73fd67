import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Schema, Stream } from "effect"
import { Agent, type AgentEvent, ContextManager, Message, type Session } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { MemorySessionStore, SessionEntry, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import * as TaskList from "../../src/cli/agent/TaskList.ts"

const task = (text: string, status: TaskList.Task["status"]): TaskList.Task => ({ text, status })
const first = [task("look", "active"), task("mend", "pending")]
const second = [task("look", "done"), task("mend", "active"), task("tell", "cancelled")]

const writes = (tasks: Schema.Json) => ScriptedProvider.toolCall("tasks", { tasks })
const done = ScriptedProvider.text("done")

/** The events and the results of prompts, each with a script of its own. */
const prompts = (session: Session.Session, ...scripts: ReadonlyArray<ScriptedProvider.Script>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m", tools: [TaskList.tool()], session })
    const events: Array<AgentEvent.AgentEvent> = []
    for (const [index] of scripts.entries())
      yield* Stream.runForEach(agent.stream(`prompt ${index}`), (event) =>
        Effect.sync(() => events.push(event))
      )
    return { agent, events }
  }).pipe(Effect.provide(ScriptedProvider.layer(scripts.flat())))

const listOf = (sessionId: string) =>
  Effect.flatMap(SessionStore.SessionStore, (store) =>
    Effect.map(store.read(sessionId), ({ entries }) => TaskList.ofEntries(entries))
  )

describe("the tool tasks", () => {
  it.effect("replaces the list, says how many are done, and keeps the list through an invalid call", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const session = yield* store.create()
      const script = [writes(first), writes(second), writes([{ text: "x", status: "started" }]), done]
      const { agent, events } = yield* prompts(session, script)
      const results = agent.state.getUnsafe().messages.filter(({ role }) => role === "toolResult")
      assert.deepStrictEqual(results.slice(0, 2).map(Message.textOf), ["0 of 2 done", "1 of 3 done"])
      const lists = events.reduce<ReadonlyArray<TaskList.TaskList>>(
        (all, event) => [...all, TaskList.step(all.at(-1) ?? TaskList.empty, event)],
        []
      )
      assert.deepStrictEqual([...new Set(lists)], [TaskList.empty, first, second])
      assert.deepStrictEqual(yield* listOf(session.id), second)
    }).pipe(Effect.provide(MemorySessionStore.layer()))
  )
})

describe("the task list of a session", () => {
  const compacting = Layer.effect(
    ContextManager.ContextManager,
    Effect.map(ContextManager.ContextManager, TaskList.summarized)
  ).pipe(Layer.provide(Compaction.layer({ contextWindow: 1_000_000 })))

  it.effect("survives a resume, a fork and a compaction, which takes the call out of the requests", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const sessionId = yield* Effect.scoped(
        Effect.gen(function* () {
          const session = yield* store.create()
          yield* prompts(session, [writes(second), done], [done], [done])
          return session.id
        })
      )
      const long = "x".repeat(4_000)
      const compacted = yield* Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* ScriptedProvider.make([
            ScriptedProvider.text(long),
            ScriptedProvider.text("a summary"),
            done
          ])
          const session = yield* store.open(sessionId)
          return yield* Effect.gen(function* () {
            const agent = yield* Agent.make({ model: "m", tools: [TaskList.tool()], session })
            yield* agent.prompt(long)
            assert.strictEqual((yield* agent.compact()).status, "compacted")
            yield* agent.prompt("and now?")
            return (yield* provider.requests).at(-1)?.messages ?? []
          }).pipe(Effect.provide([provider.layer, compacting]))
        })
      )
      assert.isFalse(compacted.some(({ role }) => role === "toolResult"))
      // The model reads it all the same.
      const words = compacted.flatMap((message) => (message.role === "user" ? [Message.textOf(message)] : []))
      const lines = "a summary\n\nThe list of your tasks:\n- done: look\n- active: mend\n- cancelled: tell"
      assert.isTrue(words.some((text) => text.endsWith(lines)))
      assert.deepStrictEqual(yield* listOf(sessionId), second)
      const fork = yield* store.fork(sessionId)
      assert.deepStrictEqual(yield* listOf(fork), second)
      const { entries } = yield* store.read(fork)
      assert.deepStrictEqual(TaskList.ofShown(entries.map(SessionEntry.toJson)), second)
    }).pipe(Effect.provide(MemorySessionStore.layer()))
  )

  it.effect("is empty once it is cleared, also in a fork, until the model writes another one", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const session = yield* store.create()
      yield* Effect.scoped(prompts(session, [writes(first), done]))
      yield* TaskList.clear(session)
      assert.deepStrictEqual(yield* listOf(session.id), [])
      assert.deepStrictEqual(yield* listOf(yield* store.fork(session.id)), [])
      const { entries } = yield* store.read(session.id)
      const before = entries.findLast(({ type }) => type === "message")?.id ?? ""
      yield* session.rewind(before)
      assert.deepStrictEqual(yield* listOf(session.id), first)
    }).pipe(Effect.provide(MemorySessionStore.layer()))
  )
})
