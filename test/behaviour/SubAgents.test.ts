import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, AgentEvent, Message, ProviderError, RunReport, Session, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const researcher = Agent.asTool({
  name: "researcher",
  description: "Finds facts.",
  agent: { model: "child", system: "You find facts." }
})

const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })

const record = (agent: Agent.Agent, events: Array<AgentEvent.AgentEvent>) =>
  agent.subscribe((event) => Effect.sync(() => void events.push(event)))

const tagsOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events
    .filter(({ _tag }) => !/Message|TurnStart|TurnEnd|ModelCall/.test(_tag))
    .map(({ _tag, path }) => `${path?.length ?? 0} ${_tag}`)

const resultOf = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "toolResult" ? [message] : []))

describe("Agent.asTool", () => {
  it.effect("runs a new agent for a call, and publishes its events between those of the run that calls", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("researcher", { prompt: "the height" }, { usage: { input: 1, output: 2 } }),
        ScriptedProvider.text("2469 m", { usage: { input: 10, output: 20 } }),
        ScriptedProvider.text("It is 2469 m.", { usage: { input: 100, output: 200 } })
      ])
      const agent = yield* Agent.make({ model: "parent", tools: [researcher] }).pipe(
        Effect.provide(provider.layer)
      )
      const heard: Array<AgentEvent.AgentEvent> = []
      yield* record(agent, heard)
      const events = yield* Stream.runCollect(agent.stream("How high?"))
      assert.deepStrictEqual(events, heard)
      assert.deepStrictEqual(tagsOf(events), [
        "0 RunStart",
        "0 ToolsDetected",
        "0 ToolExecutionStart",
        "0 ToolInvoked",
        "1 RunStart",
        "1 RunEnd",
        "0 ToolExecutionEnd",
        "0 RunEnd"
      ])
      const [, request] = yield* provider.requests
      assert.strictEqual(request?.model, "child")
      assert.strictEqual(request?.system, "You find facts.")
      assert.deepStrictEqual(
        request?.messages.map(({ role }) => role),
        ["user"]
      )
      const [result] = resultOf((yield* agent.state.get).messages)
      assert.strictEqual(result && Message.textOf(result), "2469 m")
      const [start] = events.filter((event) => event._tag === "RunStart" && event.path !== undefined)
      assert.deepStrictEqual(result?.details, { runId: start?.runId ?? "", status: "completed" })
      assert.strictEqual((yield* agent.state.get).messages.length, 4)
    }).pipe(Effect.scoped)
  )

  it.effect("counts the usage of the run inside in the run that calls, and says which part it is", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "parent", tools: [researcher] })
      const { report, usage } = yield* agent.prompt("How high?")
      assert.strictEqual(usage.total, 333)
      assert.strictEqual(report.usage.total, 333)
      assert.strictEqual(report.childUsage?.total, 30)
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }, { usage: { input: 1, output: 2 } }),
          ScriptedProvider.text("2469 m", { usage: { input: 10, output: 20 } }),
          ScriptedProvider.text("It is 2469 m.", { usage: { input: 100, output: 200 } })
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("counts the usage of a run inside of a run inside in both runs around it, at their prices", () =>
    Effect.gen(function* () {
      const inner = Agent.asTool({ name: "inner", description: "x", agent: { model: "inner" } })
      const outer = Agent.asTool({
        name: "outer",
        description: "x",
        agent: { model: "outer", tools: [inner] }
      })
      const script = [
        ScriptedProvider.toolCall("outer", { prompt: "x" }),
        ScriptedProvider.toolCall("inner", { prompt: "x" }),
        ScriptedProvider.text("a", { usage: { input: 1_000_000, output: 0 } }),
        ScriptedProvider.text("b"),
        ScriptedProvider.text("c")
      ]
      const agent = yield* Agent.make({
        model: "m",
        tools: [outer],
        limits: { maxCost: 10, prices: { input: 2, output: 2 } }
      }).pipe(Effect.provide(ScriptedProvider.layer(script)))
      const { report, usage } = yield* agent.prompt("Go")
      assert.deepInclude(usage, { total: 1_000_000, cost: 2 })
      assert.deepInclude(report.childUsage, { total: 1_000_000, cost: 2 })
    })
  )

  it.effect("makes a failure of a run that failed, which names the reason", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "parent", tools: [researcher] })
      const { newMessages, usage } = yield* agent.prompt("How high?")
      const [result] = resultOf(newMessages)
      assert.strictEqual(result?.outcome, "error")
      assert.match(
        result === undefined ? "" : Message.textOf(result),
        /^The agent researcher failed: .*no key/
      )
      assert.deepInclude(result?.details, { _tag: "SubAgentFailed", agent: "researcher", status: "failed" })
      assert.strictEqual(usage.total, 0)
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }),
          ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no key" })),
          ScriptedProvider.text("I could not find out.")
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("says that the work of an agent at its limit of turns is not complete", () =>
    Effect.gen(function* () {
      const limits = { maxTurns: 1, onMaxTurns: "stop" } as const
      const busy = Agent.asTool({
        name: "busy",
        description: "Works.",
        agent: { model: "child", limits, tools: [ping] }
      })
      const agent = yield* Agent.make({ model: "parent", tools: [busy] })
      const [result] = resultOf((yield* agent.prompt("Go")).newMessages)
      assert.strictEqual(
        result && Message.textOf(result),
        "[The agent gave no answer.]\n\n[The agent reached its limit of turns: its work is not complete.]"
      )
      assert.strictEqual(result?.outcome, "success")
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("busy", { prompt: "x" }),
          ScriptedProvider.toolCall("ping", {}),
          ScriptedProvider.text("Half.")
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("takes params, and gives the output as JSON", () =>
    Effect.gen(function* () {
      const review = Agent.asTool({
        name: "review",
        description: "Reviews.",
        params: Schema.Struct({ path: Schema.String }),
        prompt: ({ path }) => `Review ${path}`,
        agent: { model: "child", output: Schema.Struct({ grade: Schema.Int }) }
      })
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("review", { path: "a.ts" }),
        ScriptedProvider.toolCall("final_answer", { grade: 2 }),
        ScriptedProvider.text("A 2.")
      ])
      const agent = yield* Agent.make({ model: "parent", tools: [review] }).pipe(
        Effect.provide(provider.layer)
      )
      const [result] = resultOf((yield* agent.prompt("Go")).newMessages)
      assert.strictEqual(result && Message.textOf(result), '{"grade":2}')
      assert.deepInclude(result?.details, { status: "completed", output: { grade: 2 } })
      const [, request] = yield* provider.requests
      assert.strictEqual(request?.messages[0] && Message.textOf(request.messages[0]), "Review a.ts")
    }).pipe(Effect.scoped)
  )

  it("refuses options that are not valid", () => {
    assert.throws(
      () => Agent.asTool({ name: "a", description: "b", agent: { model: "" } }),
      /Tool "a": `agent`: Invalid options: model/
    )
    assert.throws(
      () => Agent.asTool({ name: "a", description: "b", concurrency: 0, agent: { model: "m" } }),
      /`concurrency`/
    )
  })

  it.effect("runs as many calls of a run at a time as `concurrency` allows", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const work = Tool.make({
        name: "work",
        description: "Works.",
        execute: () =>
          Effect.suspend(() => {
            most = Math.max(most, ++running)
            return Effect.replicateEffect(Effect.yieldNow, 50)
          }).pipe(Effect.ensuring(Effect.sync(() => running--)))
      })
      const child = Agent.asTool({
        name: "child",
        description: "Works.",
        concurrency: 2,
        agent: { model: "child", tools: [work] }
      })
      const calls = Array.from({ length: 5 }, (_, n) => ({ name: "child", params: { prompt: `${n}` } }))
      const agent = yield* Agent.make({ model: "parent", tools: [child] }).pipe(
        Effect.provide(
          ScriptedProvider.layer([], {
            exhausted: ({ messages, model }) => {
              const isAnswered = messages.at(-1)?.role === "toolResult"
              if (isAnswered) return ScriptedProvider.text("done")
              return model === "parent"
                ? ScriptedProvider.toolCalls(...calls)
                : ScriptedProvider.toolCall("work", {})
            }
          })
        )
      )
      const { newMessages } = yield* agent.prompt("Go")
      assert.strictEqual(resultOf(newMessages).length, 5)
      assert.strictEqual(most, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("ends the run inside before its call when the run is cancelled, however long that takes", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const slow = Tool.make({
        name: "slow",
        description: "Ends late.",
        execute: () =>
          Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sleep("10 seconds"))
          )
      })
      const inner = Agent.asTool({
        name: "inner",
        description: "x",
        agent: { model: "m", tools: [slow] }
      })
      const outer = Agent.asTool({
        name: "outer",
        description: "x",
        agent: { model: "m", tools: [inner] }
      })
      const agent = yield* Agent.make({ model: "m", tools: [outer] }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCall("outer", { prompt: "x" }),
            ScriptedProvider.toolCall("inner", { prompt: "x" }),
            ScriptedProvider.toolCall("slow", {})
          ])
        )
      )
      const events: Array<AgentEvent.AgentEvent> = []
      yield* record(agent, events)
      const fiber = yield* Effect.forkChild(agent.prompt("Go"), { startImmediately: true })
      yield* Deferred.await(begun)
      yield* agent.cancel("enough")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber)).status, "cancelled")
      assert.deepStrictEqual(
        tagsOf(events).filter((tag) => /RunEnd|ExecutionEnd/.test(tag)),
        ["2 ToolExecutionEnd", "2 RunEnd", "1 ToolExecutionEnd", "1 RunEnd", "0 ToolExecutionEnd", "0 RunEnd"]
      )
      const reasons = events.flatMap((event) => (event._tag === "RunCancelled" ? [event.reason] : []))
      assert.deepStrictEqual(reasons, ["enough", "enough", "enough"])
    }).pipe(Effect.scoped)
  )

  it.effect("pauses and resumes the run inside together with the run that calls", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const wait = Tool.make({
        name: "wait",
        description: "x",
        execute: () => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go))
      })
      const child = Agent.asTool({
        name: "child",
        description: "x",
        agent: { model: "m", tools: [wait] }
      })
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("child", { prompt: "x" }),
        ScriptedProvider.toolCall("wait", {}),
        ScriptedProvider.text("inner"),
        ScriptedProvider.text("outer")
      ])
      const agent = yield* Agent.make({ model: "m", tools: [child] }).pipe(Effect.provide(provider.layer))
      const paused = yield* Deferred.make<AgentEvent.AgentEvent>()
      yield* agent.subscribe((event) =>
        event._tag === "RunPaused" ? Deferred.succeed(paused, event) : Effect.void
      )
      const fiber = yield* Effect.forkChild(agent.prompt("Go"), { startImmediately: true })
      yield* Deferred.await(begun)
      yield* agent.pause("hold")
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Deferred.await(paused)).path?.length, 1)
      assert.strictEqual((yield* provider.requests).length, 2)
      yield* agent.resume()
      assert.strictEqual((yield* Fiber.join(fiber)).text, "outer")
    }).pipe(Effect.scoped)
  )

  it.effect("ends the run inside at the time limit of the run that calls", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        model: "m",
        tools: [researcher],
        limits: { executionTime: "1 minute" }
      })
      const events: Array<AgentEvent.AgentEvent> = []
      const asked = yield* Deferred.make<void>()
      yield* record(agent, events)
      yield* agent.subscribe(({ _tag, path }) =>
        _tag === "ModelCallStart" && path !== undefined ? Deferred.succeed(asked, undefined) : Effect.void
      )
      const fiber = yield* Effect.forkChild(Effect.flip(agent.prompt("Go")), { startImmediately: true })
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error._tag === "RunFailed" && error.reason._tag, "LimitExceeded")
      const ends = events.flatMap((event) => (event._tag === "RunEnd" ? [event.status] : []))
      assert.deepStrictEqual(ends, ["cancelled", "failed"])
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }),
          ScriptedProvider.never
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("counts the tokens of the run inside once in the limit of the run that calls", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({
        model: "m",
        tools: [researcher],
        limits: { maxTotalTokens: 100 }
      })
      const error = yield* Effect.flip(agent.prompt("Go"))
      if (error._tag !== "RunFailed") return assert.fail(error._tag)
      assert.deepInclude(error.reason, { _tag: "LimitExceeded", limit: "maxTotalTokens", value: 133 })
      assert.strictEqual(error.result.usage.total, 133)
      assert.strictEqual(error.result.report.childUsage?.total, 130)
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }, { usage: { input: 1, output: 2 } }),
          ScriptedProvider.text("long", { usage: { input: 100, output: 30 } })
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("keeps the events of runs inside out of views, reports, states and texts", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "m", tools: [researcher] }).pipe(
        Effect.provide(
          ScriptedProvider.layer([], {
            exhausted: ({ messages, model }) =>
              model === "child"
                ? ScriptedProvider.text("inside")
                : messages.at(-1)?.role === "toolResult"
                  ? ScriptedProvider.text("outside")
                  : ScriptedProvider.toolCall("researcher", { prompt: "x" })
          })
        )
      )
      const events = yield* Stream.runCollect(agent.stream("Go"))
      const { messages } = yield* agent.state.get
      const view = events.reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(view.messages, messages)
      assert.strictEqual(view.status, "completed")
      assert.deepStrictEqual(RunReport.fromEvents(events), Option.getOrThrow(yield* agent.report))
      assert.strictEqual(RunReport.fromEvents(events).turns, 2)
      assert.deepStrictEqual(
        yield* Stream.runCollect(Stream.fromIterable(events).pipe(AgentEvent.textOnly)),
        ["outside"]
      )
      const inside = events.filter(({ path }) => path !== undefined)
      assert.deepStrictEqual(
        yield* Stream.runCollect(Stream.fromIterable(inside).pipe(AgentEvent.textOnly)),
        ["inside"]
      )
      assert.strictEqual(inside.reduce(AgentEvent.fold, AgentEvent.initial()).messages.length, 2)
      assert.deepStrictEqual(yield* Stream.runCollect(agent.stream("Again").pipe(AgentEvent.textOnly)), [
        "outside"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the run inside in the session of its call", () =>
    Effect.gen(function* () {
      const records = new Map<string, Array<string>>()
      const sessionOf = (id: string): Session.Session => ({
        id,
        restored: { messages: [], options: {}, queues: { steering: [], followUp: [] } },
        record: (written) =>
          Effect.sync(() => {
            const names = written.map((record) => (record._tag === "Event" ? record.event._tag : record._tag))
            records.set(id, [...(records.get(id) ?? []), ...names])
          }),
        child: (toolCallId) => Effect.sync(() => sessionOf(`${id}/${toolCallId}`))
      })
      const seeded = Agent.asTool({
        name: "researcher",
        description: "Finds facts.",
        agent: { model: "m", messages: [Message.user("An example"), Message.assistant("An answer")] }
      })
      const agent = yield* Agent.make({ model: "m", tools: [seeded], session: sessionOf("s") })
      const late: Array<string> = []
      yield* agent.subscribe((event) =>
        Effect.sync(() => {
          const id = event.path === undefined ? "s" : "s/c"
          if (event._tag === "RunEnd" && records.get(id)?.at(-1) !== "RunEnd") late.push(id)
        })
      )
      yield* agent.prompt("Go")
      assert.deepStrictEqual(late, [])
      assert.deepStrictEqual(records.get("s/c"), [
        "MessagesReplaced",
        "RunStart",
        "MessageEnd",
        "MessageEnd",
        "RunEnd"
      ])
      assert.deepStrictEqual(records.get("s"), [
        "RunStart",
        "MessageEnd",
        "MessageEnd",
        "ToolInvoked",
        "ToolExecutionEnd",
        "MessageEnd",
        "MessageEnd",
        "RunEnd"
      ])
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }, { id: "c" }),
          ScriptedProvider.text("inside"),
          ScriptedProvider.text("outside")
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("fails a call whose session cannot be opened", () =>
    Effect.gen(function* () {
      const reason = new Session.StorageFailed({ operation: "append", detail: "the disk is full" })
      const session: Session.Session = {
        id: "s",
        restored: { messages: [], options: {}, queues: { steering: [], followUp: [] } },
        record: () => Effect.void,
        child: () => Effect.fail(new Session.SessionError({ sessionId: "s", reason }))
      }
      const agent = yield* Agent.make({ model: "m", tools: [researcher], session })
      const [result] = resultOf((yield* agent.prompt("Go")).newMessages)
      assert.match(
        result === undefined ? "" : Message.textOf(result),
        /researcher failed: .*the disk is full/
      )
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("researcher", { prompt: "x" }),
          ScriptedProvider.text("outside")
        ])
      ),
      Effect.scoped
    )
  )

  it.effect("waits with deltas of the run inside while the reader is too far behind", () =>
    Effect.gen(function* () {
      let asked = 0
      const deltas = Array.from({ length: 1000 }, (_, n) =>
        Step.run(Effect.sync(() => void (asked = n)))
      ).flatMap((step) => [step, Step.text("x")])
      const agent = yield* Agent.make({ model: "m", tools: [researcher] }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCall("researcher", { prompt: "x" }),
            ScriptedProvider.turn(Step.start, ...deltas, Step.finish()),
            ScriptedProvider.text("done")
          ])
        )
      )
      yield* agent.stream("Go").pipe(
        Stream.takeUntil((event) => event._tag === "MessageDelta" && event.path !== undefined),
        Stream.runDrain
      )
      assert.isBelow(asked, 300)
    }).pipe(Effect.scoped)
  )
})
