import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Latch, Layer, Option, Ref, Schema, Stream } from "effect"
import { Agent, AgentEvent, Hook, Message, Tool, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const say = (name: string) =>
  Tool.make({ name, description: `Says ${name}.`, execute: () => Effect.succeed(name) })

const texts = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)

/** A tool that tells when it began and ends when it is let go. */
const gated = Effect.gen(function* () {
  const began = yield* Latch.make(false)
  const go = yield* Latch.make(false)
  const tool = Tool.make({
    name: "gated",
    description: "Waits to be let go.",
    execute: () => Effect.andThen(began.open, Effect.as(go.await, "went"))
  })
  return { began, go, tool }
})

describe("Agent", () => {
  it.effect("goes on from prompt to prompt", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.text("one"),
        ScriptedProvider.text("two")
      ])
      const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
      yield* agent.prompt("1")
      const { message, status } = yield* agent.prompt("2")
      assert.strictEqual(status, "completed")
      assert.strictEqual(message === undefined ? "" : Message.textOf(message), "two")
      assert.deepStrictEqual(texts((yield* provider.requests)[1]?.messages ?? []), ["1", "one", "2"])
    })
  )

  it.effect("two agents in one app have their own tools", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([ScriptedProvider.text("a"), ScriptedProvider.text("b")])
      const [left, right] = yield* Effect.all([
        Agent.make({ model: "m", tools: [say("left")] }),
        Agent.make({ model: "m", tools: [say("right")] })
      ]).pipe(Effect.provide(provider.layer))
      yield* left.prompt("hi")
      yield* right.prompt("hi")
      assert.deepStrictEqual(
        (yield* provider.requests).map(({ tools }) => tools.map(({ name }) => name)),
        [["left"], ["right"]]
      )
    })
  )

  it.effect("pausing one agent leaves the other running", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([ScriptedProvider.text("a"), ScriptedProvider.text("b")])
      const layer = provider.layer
      const one = yield* Agent.make({ model: "m" }).pipe(Effect.provide(layer))
      yield* one.subscribe((event) => (event._tag === "RunStart" ? one.pause("lunch") : Effect.void))
      const two = yield* Agent.make({ model: "m" }).pipe(Effect.provide(layer))
      const paused = yield* Effect.forkChild(one.prompt("hi"))
      assert.strictEqual((yield* two.prompt("hi")).status, "completed")
      assert.strictEqual(one.state.getUnsafe().phase, "paused")
      yield* one.resume()
      assert.strictEqual((yield* Fiber.join(paused)).status, "completed")
    })
  )

  it.effect("is busy while it runs, and takes steering meanwhile", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("gated", {}),
        ScriptedProvider.text("changed course")
      ])
      const agent = yield* Agent.make({ model: "m", tools: [tool] }).pipe(Effect.provide(provider.layer))
      const run = yield* Effect.forkChild(agent.prompt("hi"))
      yield* began.await
      assert.strictEqual((yield* Effect.flip(agent.prompt("me too")))._tag, "AgentBusy")
      assert.strictEqual((yield* Effect.flip(agent.reset))._tag, "AgentBusy")
      yield* agent.steer("stop that")
      assert.deepStrictEqual(yield* agent.queues.sizes, { steering: 1, followUp: 0 })
      yield* go.open
      yield* Fiber.join(run)
      assert.deepStrictEqual(texts((yield* provider.requests)[1]?.messages ?? []), [
        "hi",
        "",
        "went",
        "stop that"
      ])
    })
  )

  it.effect("cancels what is in flight, answers every call, and leaves the queues alone", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* gated
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCalls({ name: "gated", params: {} }, { name: "gated", params: {} }),
        ScriptedProvider.text("next")
      ])
      const agent = yield* Agent.make({ model: "m", tools: [tool] }).pipe(Effect.provide(provider.layer))
      const run = yield* Effect.forkChild(agent.prompt("hi"))
      yield* began.await
      yield* agent.followUp("later")
      yield* agent.cancel("enough")
      const result = yield* Fiber.join(run)
      assert.strictEqual(result.status, "cancelled")
      assert.deepStrictEqual(Transcript.violations(result.newMessages), [])
      assert.strictEqual(result.newMessages.length, 4)
      assert.deepStrictEqual(yield* agent.queues.sizes, { steering: 0, followUp: 1 })
    })
  )

  it.effect(
    "interrupting a prompt takes the controlled path: subscribers hear of the end, and the next prompt is free",
    () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const provider = yield* ScriptedProvider.make([
          ScriptedProvider.toolCall("gated", {}),
          ScriptedProvider.text("next")
        ])
        const agent = yield* Agent.make({ model: "m", tools: [tool] }).pipe(Effect.provide(provider.layer))
        const heard: Array<string> = []
        yield* agent.subscribe((event) => Effect.sync(() => heard.push(event._tag)))
        const run = yield* Effect.forkChild(agent.prompt("hi"))
        yield* began.await
        yield* Fiber.interrupt(run)
        assert.deepStrictEqual(heard.slice(-3), ["RunCancelled", "TurnEnd", "RunEnd"])
        assert.strictEqual((yield* agent.prompt("again")).status, "completed")
      })
  )

  it.effect("a failing subscriber changes nothing, and others still hear everything", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
      const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
      const heard: Array<string> = []
      yield* agent.subscribe(() => Effect.die("broken"))
      yield* agent.subscribe((event) => Effect.sync(() => heard.push(event._tag)))
      const { status } = yield* agent.prompt("hi")
      assert.strictEqual(status, "completed")
      assert.strictEqual(heard.at(-1), "RunEnd")
    })
  )

  it.effect("shows the answer being said, and its state at boundaries only (rows 63, 164, 190)", () =>
    Effect.gen(function* () {
      const halfway = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.turn(
          Step.text(["Hel"]),
          Step.run(Effect.andThen(Deferred.succeed(halfway, undefined), Deferred.await(go))),
          Step.text(["lo"]),
          Step.finish()
        )
      ])
      const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
      const run = yield* Effect.forkChild(agent.prompt("hi"))
      yield* Deferred.await(halfway)
      assert.deepStrictEqual(Option.map(yield* agent.partial, Message.textOf), Option.some("Hel"))
      assert.strictEqual(agent.state.getUnsafe().messages.length, 1)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(run)
      assert.isTrue(Option.isNone(yield* agent.partial))
      assert.strictEqual(agent.state.getUnsafe().messages.length, 2)
    })
  )

  it.effect("folding its events gives its state (row 63)", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("say", {}),
        ScriptedProvider.text("ok")
      ])
      const agent = yield* Agent.make({ model: "m", tools: [say("say")] }).pipe(
        Effect.provide(provider.layer)
      )
      const view = yield* agent.stream("hi").pipe(Stream.runFold(AgentEvent.initial, AgentEvent.fold))
      const state = agent.state.getUnsafe()
      assert.deepStrictEqual(view.messages, state.messages)
      assert.strictEqual(view.phase, state.phase)
      assert.strictEqual(view.pendingToolCalls.size, 0)
    })
  )

  it.effect(
    "never lets a reader of its events slow it down, and counts what such a reader lost (row 68)",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([
          ScriptedProvider.text(Array.from({ length: 2_000 }, () => "x")),
          ScriptedProvider.text("ok")
        ])
        const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
        const stuck = yield* Latch.make(false)
        yield* agent.events.pipe(
          Stream.runForEach(() => stuck.await),
          Effect.forkScoped({ startImmediately: true })
        )
        yield* agent.prompt("hi")
        assert.isAbove(yield* agent.droppedEvents, 500)
      })
  )

  it.effect(
    "resumes from a tail the model has not answered, from unanswered calls, and from its queues (row 195)",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([
          ScriptedProvider.text("a"),
          ScriptedProvider.text("b"),
          ScriptedProvider.text("c")
        ])
        const agent = yield* Agent.make({ model: "m", messages: [Message.user("hi")] }).pipe(
          Effect.provide(provider.layer)
        )
        yield* agent.continue
        assert.strictEqual((yield* Effect.flip(agent.continue))._tag, "InvalidContinuation")
        yield* agent.steer("and?")
        yield* agent.continue
        assert.deepStrictEqual(texts((yield* provider.requests)[1]?.messages ?? []), ["hi", "a", "and?"])
        const open = Message.assistant([
          { type: "toolCall", id: "x", name: "t", rawArguments: "{}", params: {} }
        ])
        yield* agent.setMessages([Message.user("hi"), open])
        yield* agent.continue
        assert.deepStrictEqual(Transcript.violations(agent.state.getUnsafe().messages), [])
      })
  )

  it.effect("keeps what a run was too late for, under the options of the next prompt", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make(
        Array.from({ length: 3 }, () => ScriptedProvider.text("ok"))
      )
      const agent = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
      let late = true
      yield* agent.subscribe(({ _tag }) => {
        if (_tag !== "TurnEnd" || !late) return Effect.void
        late = false
        return Effect.andThen(
          agent.update({ system: "late", model: "late" }),
          agent.setMessages([Message.user("instead")])
        )
      })
      yield* agent.prompt("one")
      yield* agent.setMessages([])
      yield* agent.prompt("two", { system: "of the prompt" })
      yield* agent.prompt("three")
      const requests = yield* provider.requests
      assert.deepStrictEqual(
        requests.map(({ model, system }) => [model, system]),
        [
          ["m", undefined],
          ["late", "of the prompt"],
          ["late", "late"]
        ]
      )
      assert.deepStrictEqual(texts(requests[1]?.messages ?? []), ["two"])
    })
  )

  it.effect("changes model and tools in mid-run, from the next turn (row 145)", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("gated", {}),
        ScriptedProvider.text("ok")
      ])
      const agent = yield* Agent.make({ model: "m", tools: [tool] }).pipe(Effect.provide(provider.layer))
      const run = yield* Effect.forkChild(agent.prompt("hi"))
      yield* began.await
      yield* agent.update({ model: "bigger", modelOptions: { thinkingLevel: "high" } })
      yield* agent.tools.register(say("extra"))
      yield* go.open
      yield* Fiber.join(run)
      const second = (yield* provider.requests)[1]
      assert.strictEqual(second?.model, "bigger")
      assert.strictEqual(second?.options.thinkingLevel, "high")
      assert.deepStrictEqual(
        second?.tools.map(({ name }) => name),
        ["gated", "extra"]
      )
    })
  )

  it.effect("asks a guard before a tool, decodes changed params again, and closes when in doubt", () =>
    Effect.gen(function* () {
      const seen = yield* Ref.make<ReadonlyArray<number>>([])
      const count = Tool.make({
        name: "count",
        description: "Counts.",
        params: Schema.Struct({ n: Schema.Int }),
        execute: ({ n }) => Ref.update(seen, (all) => [...all, n])
      })
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCalls(
          { name: "count", params: { n: 1 }, id: "change" },
          { name: "count", params: { n: 1 }, id: "spoil" },
          { name: "count", params: { n: 1 }, id: "break" },
          { name: "count", params: { n: 1 }, id: "deny" }
        ),
        ScriptedProvider.text("ok")
      ])
      const agent = yield* Agent.make({
        model: "m",
        tools: [count],
        hooks: [
          Hook.beforeTool(({ call }) =>
            call.id === "break"
              ? Effect.fail("guard broke")
              : Effect.succeed(
                  call.id === "change"
                    ? { params: { n: 7 } }
                    : call.id === "spoil"
                      ? { params: { n: "x" } }
                      : {}
                )
          ),
          Hook.approveTool(({ call }) => Effect.succeed({ approved: call.id !== "deny", reason: "no" })),
          Hook.approveTool(() => Effect.succeed({ approved: true }))
        ]
      }).pipe(Effect.provide(provider.layer))
      const { newMessages } = yield* agent.prompt("hi")
      const outcomes = newMessages.flatMap((message) =>
        message.role === "toolResult" ? [message.outcome] : []
      )
      assert.deepStrictEqual(outcomes, ["success", "invalidArguments", "rejected", "rejected"])
      assert.deepStrictEqual(yield* Ref.get(seen), [7])
    })
  )

  it.effect("keeps a started run for its scope, and ends it with its scope (rows 194, 206)", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* gated
      const provider = yield* ScriptedProvider.make([ScriptedProvider.toolCall("gated", {})])
      const started = yield* Effect.scoped(
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools: [tool] })
          const run = yield* agent.start("hi")
          yield* began.await
          return run
        })
      ).pipe(Effect.provide(provider.layer))
      assert.strictEqual((yield* started.result).status, "cancelled")
    })
  )

  it.effect("stands behind a tag of your own (row 206)", () =>
    Effect.gen(function* () {
      class Coder extends Context.Service<Coder, Agent.Agent>()("test/Coder") {}
      const provider = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
      const { status } = yield* Coder.use((coder) => coder.prompt("hi")).pipe(
        Effect.provide(Agent.layer(Coder, { model: "m" }).pipe(Layer.provide(provider.layer)))
      )
      assert.strictEqual(status, "completed")
    })
  )

  it.effect("a run inside a tool names the call it belongs to", () =>
    Effect.gen(function* () {
      const parents: Array<AgentEvent.AgentEvent["parent"]> = []
      const inner = yield* ScriptedProvider.make([ScriptedProvider.text("inner")])
      const outer = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("delegate", {}, { id: "d1" }),
        ScriptedProvider.text("outer")
      ])
      const helper = yield* Agent.make({ model: "m" }).pipe(Effect.provide(inner.layer))
      yield* helper.subscribe((event) => Effect.sync(() => parents.push(event.parent)))
      const delegate = Tool.make({
        name: "delegate",
        description: "Asks another agent.",
        execute: () => Effect.map(helper.prompt("go"), ({ status }) => status)
      })
      const agent = yield* Agent.make({ model: "m", tools: [delegate] }).pipe(Effect.provide(outer.layer))
      const { runId } = yield* agent.prompt("hi")
      assert.isAbove(parents.length, 0)
      assert.isTrue(parents.every((parent) => parent?.toolCallId === "d1" && parent.runId === runId))
    })
  )

  it.effect("tells the report of the last run, a failed one too", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("say", {}, { usage: { input: 7, output: 3 } })
      ])
      const agent = yield* Agent.make({ model: "m", tools: [say("say")], limits: { maxTurns: 1 } }).pipe(
        Effect.provide(provider.layer)
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(agent.prompt("hi"))))
      const report = Option.getOrThrow(yield* agent.report)
      assert.deepInclude(report, { turns: 1, toolCalls: 1, toolSuccess: 1 })
      assert.strictEqual(report.usage.total, 10)
    })
  )
})
