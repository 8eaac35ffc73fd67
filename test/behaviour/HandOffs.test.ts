import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Logger, Stream } from "effect"
import { Agent, AgentEvent, Hook, Loop, Message, Tool, ToolRegistry } from "effect-agent"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

class Ledger extends Context.Service<Ledger, { readonly refund: string }>()("Ledger") {}

const refund = Tool.make({
  name: "refund",
  description: "Refunds.",
  execute: () => Effect.map(Ledger, ({ refund }) => refund)
})

const billing = Agent.handOff({
  to: "billing",
  description: "Questions about money.",
  agent: {
    model: "second",
    system: "You refund.",
    tools: [refund, Agent.handOff({ to: "triage", description: "All else." })]
  }
})

const options = {
  model: "first",
  system: "You triage.",
  agent: { name: "triage" },
  tools: [billing]
} as const

const toolsOf = ({ tools }: { readonly tools: ReadonlyArray<{ readonly name: string }> }) =>
  tools.map(({ name }) => name)

const to = (name: string) => ScriptedProvider.toolCall(`transfer_to_${name}`, {})

const handedOff = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) => (event._tag === "HandedOff" ? [`${event.from} -> ${event.to}`] : []))

describe("Agent.handOff", () => {
  it.effect("continues the run with the model, system prompt and tools of the other agent, and back", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        to("billing"),
        ScriptedProvider.toolCall("refund", {}),
        to("triage"),
        ScriptedProvider.text("Done."),
        ScriptedProvider.text("Still here.")
      ])
      const agent = yield* Agent.make(options).pipe(Effect.provide(provider.layer))
      const events = yield* Stream.runCollect(agent.stream("I want my money back"))
      assert.deepStrictEqual(handedOff(events), ["triage -> billing", "billing -> triage"])
      assert.strictEqual(events.filter(({ _tag }) => _tag === "RunEnd").length, 1)
      yield* agent.prompt("Are you there?")
      const requests = yield* provider.requests
      assert.deepStrictEqual(
        requests.map(({ model, system }) => [model, system]),
        [
          ["first", "You triage."],
          ["second", "You refund."],
          ["second", "You refund."],
          ["first", "You triage."],
          ["first", "You triage."]
        ]
      )
      assert.deepStrictEqual(requests.slice(0, 2).map(toolsOf), [
        ["transfer_to_billing"],
        ["refund", "transfer_to_triage"]
      ])
      const [event] = events.filter((event) => event._tag === "HandedOff")
      const { messages } = yield* agent.state.get
      assert.strictEqual(event?._tag === "HandedOff" ? event.messageId : "", messages[2]?.id)
      assert.strictEqual(
        messages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : []))[1],
        "refunded"
      )
      const before = events.findIndex((event) => event === events.find(({ _tag }) => _tag === "HandedOff"))
      assert.strictEqual(events[before - 1]?._tag, "TurnEnd")
      assert.strictEqual(events[before + 1]?._tag, "TurnStart")
    }).pipe(Effect.provideService(Ledger, { refund: "refunded" }), Effect.scoped)
  )

  it.effect("keeps the limits of the run, and ends a run of hand-offs without end", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        ...options,
        limits: { maxTurns: 5, maxIdenticalToolCalls: 50 }
      }).pipe(
        Effect.provide(
          ScriptedProvider.layer([], {
            exhausted: ({ model }) => to(model === "first" ? "billing" : "triage")
          })
        )
      )
      const error = yield* Effect.flip(agent.prompt("Go"))
      if (error._tag !== "RunFailed") return assert.fail(error._tag)
      assert.deepInclude(error.reason, { _tag: "LimitExceeded", limit: "maxTurns", value: 5 })
      assert.strictEqual((yield* agent.state.get).options.limits?.maxTurns, 5)
    }).pipe(Effect.provideService(Ledger, { refund: "refunded" }), Effect.scoped)
  )

  it.effect("hands off to no agent that the conversation is with", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        ...options,
        tools: [billing, Agent.handOff({ to: "triage", description: "x" })]
      }).pipe(Effect.provide(ScriptedProvider.layer([to("triage"), ScriptedProvider.text("a")])))
      const events = yield* Stream.runCollect(agent.stream("Go"))
      const [result] = events.flatMap((event) =>
        event._tag === "ToolExecutionEnd" ? [Message.textOf(event.result)] : []
      )
      assert.deepStrictEqual([result, handedOff(events)], ["The conversation is with triage already.", []])
    }).pipe(Effect.provideService(Ledger, { refund: "" }))
  )

  it.effect("returns to an agent with the options that the application has changed", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        to("billing"),
        to("triage"),
        ScriptedProvider.text("Back.")
      ])
      const agent = yield* Agent.make(options).pipe(Effect.provide(provider.layer))
      yield* agent.update({ model: "changed" })
      yield* agent.prompt("Go")
      assert.deepStrictEqual(
        (yield* provider.requests).map(({ model }) => model),
        ["changed", "second", "changed"]
      )
    }).pipe(Effect.provideService(Ledger, { refund: "" }))
  )

  it.effect("hands off once in a turn, and to agents that exist", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        model: "m",
        tools: [
          Agent.handOff({ to: "a", description: "a", agent: { model: "m" } }),
          Agent.handOff({ to: "b", description: "b", agent: { model: "m" } }),
          Agent.handOff({ to: "c", description: "c" })
        ]
      }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCalls(
              { name: "transfer_to_c", params: {} },
              { name: "transfer_to_a", params: {} },
              { name: "transfer_to_b", params: {} }
            ),
            ScriptedProvider.text("a")
          ])
        )
      )
      const { newMessages } = yield* agent.prompt("Go")
      assert.deepStrictEqual(
        newMessages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : [])),
        [
          "There is no agent c. Agents: main, a, b.",
          "a continues the conversation.",
          "The conversation continues with a already."
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("calls the hooks of the agent that the conversation is with", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const seeing = (name: string) => Hook.beforeModel(() => Effect.sync(() => void seen.push(name)))
      const agent = yield* Agent.make({
        model: "m",
        hooks: [seeing("first")],
        tools: [
          Agent.handOff({ to: "second", description: "x", agent: { model: "m", hooks: [seeing("second")] } })
        ]
      }).pipe(Effect.provide(ScriptedProvider.layer([to("second"), ScriptedProvider.text("Done.")])))
      yield* agent.prompt("Go")
      assert.deepStrictEqual(seen, ["first", "second"])
    }).pipe(Effect.scoped)
  )

  it.effect(
    "shows the other agent what `history` leaves of the messages before, and keeps the transcript",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([
          to("second"),
          ScriptedProvider.text("Hi."),
          ScriptedProvider.text("Hi again.")
        ])
        const agent = yield* Agent.make({
          model: "m",
          tools: [
            Agent.handOff({
              to: "second",
              description: "x",
              agent: { model: "m" },
              history: (before) => before.filter(({ role }) => role === "user")
            })
          ]
        }).pipe(Effect.provide(provider.layer))
        yield* agent.prompt("One")
        yield* agent.prompt("Two")
        const requests = yield* provider.requests
        assert.deepStrictEqual(
          requests.map(({ messages }) => messages.map(({ role }) => role)),
          [["user"], ["user"], ["user", "assistant", "user"]]
        )
        assert.strictEqual((yield* agent.state.get).messages.length, 6)
      }).pipe(Effect.scoped)
  )

  it.effect("names `history` where it leaves the other agent nothing to answer", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        model: "m",
        tools: [
          Agent.handOff({
            to: "second",
            description: "x",
            agent: { model: "m" },
            history: (before) => before.slice(-1)
          })
        ]
      }).pipe(Effect.provide(ScriptedProvider.layer([to("second")])))
      const { message } = yield* Effect.flip(agent.prompt("Go"))
      assert.include(message, "`history` of the hand-off to second leaves")
    }).pipe(Effect.scoped)
  )

  it.effect("works in a run without an agent", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([to("billing"), ScriptedProvider.text("Done.")])
      yield* Loop.run("Go", { messages: [] }, { model: "first" }).pipe(
        Effect.provide([provider.layer, ToolRegistry.layer(billing)])
      )
      assert.deepStrictEqual(
        (yield* provider.requests).map(({ model }) => model),
        ["first", "second"]
      )
    }).pipe(Effect.provideService(Ledger, { refund: "refunded" }))
  )

  it.effect("continues with the agent that the conversation was with, from a session", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        to("billing"),
        ScriptedProvider.text("One."),
        ScriptedProvider.text("Two.")
      ])
      const store = yield* SessionStore.SessionStore
      const id = yield* Effect.gen(function* () {
        const session = yield* store.create({ cwd: "/" })
        const agent = yield* Agent.make({ ...options, session })
        yield* agent.prompt("One")
        return session.id
      }).pipe(Effect.provide(provider.layer), Effect.scoped)
      yield* Effect.gen(function* () {
        const session = yield* store.open(id)
        const agent = yield* Agent.make({ ...options, session })
        assert.strictEqual((yield* agent.state.get).options.model, "second")
        yield* agent.prompt("Two")
      }).pipe(Effect.provide(provider.layer), Effect.scoped)
      assert.deepStrictEqual(
        (yield* provider.requests).map(({ model, system }) => [model, system]).slice(1),
        [
          ["second", "You refund."],
          ["second", "You refund."]
        ]
      )
    }).pipe(Effect.provideService(Ledger, { refund: "refunded" }), Effect.provide(MemorySessionStore.layer()))
  )

  it.effect(
    "continues with the first agent, with a warning, where the other one does not exist any more",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([
          to("billing"),
          ScriptedProvider.text("One."),
          ScriptedProvider.text("Two.")
        ])
        const store = yield* SessionStore.SessionStore
        const { id } = yield* Effect.gen(function* () {
          const session = yield* store.create({ cwd: "/" })
          const agent = yield* Agent.make({ ...options, session })
          yield* agent.prompt("One")
          return session
        }).pipe(Effect.provide(provider.layer), Effect.scoped)
        const logged: Array<unknown> = []
        const logger = Logger.make(({ message }) => void logged.push(message))
        yield* Effect.gen(function* () {
          const session = yield* store.open(id)
          const agent = yield* Agent.make({ ...options, tools: [], session })
          yield* agent.prompt("Two")
        }).pipe(Effect.provide([provider.layer, Logger.layer([logger])]), Effect.scoped)
        assert.include(String(logged[0]), "handed off to the agent billing, which does not exist: triage")
        assert.strictEqual((yield* provider.requests).at(-1)?.model, "first")
      }).pipe(
        Effect.provideService(Ledger, { refund: "refunded" }),
        Effect.provide(MemorySessionStore.layer())
      )
  )

  it("refuses options that are not valid", () => {
    assert.throws(
      () => Agent.handOff({ to: "x", description: "x", agent: { model: "" } }),
      /Tool "transfer_to_x": `agent`: Invalid options: model/
    )
  })
})
