import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { Agent, type AgentEvent, Approval, Message, Session } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { SessionStore, MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { approve, calls, done, recorder } from "../behaviour/approving.ts"
import * as Invariants from "../behaviour/invariants.ts"
import { ofTag, range, reasonOf, texts } from "../behaviour/play.ts"

const long = "x".repeat(2_000)
const layer = Compaction.layer({ contextWindow: 4_000 })
const answer = ({ system }: { readonly system?: string }) =>
  ScriptedProvider.text(system === undefined ? long : "They wrote x.")

const sent = (messages: ReadonlyArray<Message.Message> = []) =>
  texts(messages).map((text) => text.split("\n").at(-1)?.slice(0, 13))

describe("a session of an agent that compacts", () => {
  it.effect("has the compaction before others see its end, and another agent starts from it", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const provider = yield* ScriptedProvider.make([], { exhausted: answer })
      const opened = (
        use: (agent: Agent.Agent, session: SessionStore.OpenSession) => Effect.Effect<void, unknown>
      ) =>
        Effect.gen(function* () {
          const session = yield* store.open("s1")
          yield* use(yield* Agent.make({ model: "m", session }), session)
        }).pipe(Effect.scoped, Effect.provide([provider.layer, layer]))
      yield* Effect.scoped(store.create({ sessionId: "s1", cwd: "/" }))
      const written: Array<ReadonlyArray<string>> = []
      yield* opened((agent) =>
        Effect.gen(function* () {
          yield* agent.subscribe((event) =>
            event._tag === "Compaction" && event.status === "end"
              ? Effect.map(Effect.orDie(store.read("s1")), ({ entries }) => {
                  const found = entries.filter(
                    (entry) => entry.type === "compaction" && entry.id === event.entryId
                  )
                  written.push(found.map(({ type }) => type))
                })
              : Effect.void
          )
          for (const n of range(9)) yield* agent.prompt(`q${n}`)
        }).pipe(Effect.scoped)
      )
      assert.deepStrictEqual(written, [["compaction"]])
      const before = (yield* provider.requests).at(-1)?.messages ?? []
      yield* opened((agent) => Effect.asVoid(agent.prompt("more")))
      const after = (yield* provider.requests).at(-1)?.messages ?? []
      assert.deepStrictEqual(sent(after), [...sent(before), "xxxxxxxxxxxxx", "more"])
      assert.deepStrictEqual(sent(after).slice(0, 2), ["q0", "They wrote x."])
      // What the vendor has cached is sent again, word for word.
      assert.deepStrictEqual(
        after.slice(0, before.length).map((message) => JSON.stringify(message)),
        before.map((message) => JSON.stringify(message))
      )
    }).pipe(Effect.provide(MemorySessionStore.layer()))
  )

  it.effect("that cannot be written ends the run, and the compaction does not hold", () =>
    Effect.gen(function* () {
      const isBroken = yield* Ref.make(false)
      const reason = new Session.StorageFailed({ operation: "append", detail: "full" })
      const error = new Session.SessionError({ sessionId: "s1", reason })
      const session: Session.Session = {
        id: "s1",
        restored: {
          messages: range(9).flatMap((n) => [Message.user(`q${n}`), Message.assistant(long)]),
          options: {},
          queues: { steering: [], followUp: [] }
        },
        record: (records) =>
          Effect.flatMap(Ref.get(isBroken), (broken) =>
            broken || records.some(({ _tag }) => _tag === "Compacted") ? error : Effect.void
          ),
        child: () => error
      }
      const events: Array<AgentEvent.AgentEvent> = []
      const agent = yield* Agent.make({ model: "m", session })
      yield* agent.subscribe((event) => Effect.sync(() => events.push(event)))
      const exit = yield* Effect.exit(agent.prompt("hi"))
      assert.deepInclude(reasonOf(exit), { _tag: "SessionError" })
      assert.deepStrictEqual(
        ofTag(events, "Compaction").map(({ status }) => status),
        ["start", "failed"]
      )
      assert.isUndefined((yield* agent.state.get).compaction)
      assert.deepStrictEqual(Invariants.broken(events), [])
    }).pipe(Effect.provide([ScriptedProvider.layer([], { exhausted: answer }), layer]))
  )

  it.effect("keeps the turn that waits for a person, and the agent inside of its call", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const { ran, tool } = recorder()
      const inner = Agent.asTool({
        name: "inner",
        description: "Removes.",
        agent: { model: "inner", tools: [tool] }
      })
      const provider = yield* ScriptedProvider.make([
        ...range(3).map(() => ScriptedProvider.text(long)),
        ScriptedProvider.toolCall("inner", { prompt: "Remove a." }),
        calls("a"),
        ScriptedProvider.text("They wrote x."),
        done,
        done
      ])
      const opened = (use: (agent: Agent.Agent) => Effect.Effect<void, unknown>) =>
        Effect.gen(function* () {
          const session = yield* store.openOrCreate("s1")
          yield* use(yield* Agent.make({ model: "m", tools: [inner], session }))
        }).pipe(
          Effect.scoped,
          Effect.provide([
            provider.layer,
            layer,
            Approval.layer({ rules: [Approval.allow(inner)], asked: "defer" })
          ])
        )
      yield* opened((agent) =>
        Effect.gen(function* () {
          for (const n of range(3)) yield* agent.prompt(`q${n}`)
          yield* agent.prompt("Remove a.")
          yield* agent.compact()
        })
      )
      yield* opened((agent) =>
        Effect.gen(function* () {
          const [request] = (yield* agent.requests).approvals
          yield* approve(agent, request)
          const { status } = yield* agent.continue
          assert.strictEqual(status, "completed")
        })
      )
      assert.deepStrictEqual(ran, ["a"])
    }).pipe(Effect.provide(MemorySessionStore.layer()))
  )
})
