import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue, Schema } from "effect"
import { Agent, type AgentEvent, Approval, Hook, Message, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { broken } from "./invariants.ts"
import { agent, ofTag, settle } from "./play.ts"

/** A tool whose calls run in the background until the test ends them. */
const worker = (options: Partial<Tool.Options<string>> = {}) => {
  const ends = new Map<string, Deferred.Deferred<string, string>>()
  const of = (task: string) => {
    const end = ends.get(task) ?? Deferred.makeUnsafe<string, string>()
    ends.set(task, end)
    return end
  }
  const tool = Tool.make({
    name: "work",
    description: "Works on a task.",
    blocking: false,
    timeout: "Infinity",
    ...options,
    params: Schema.Struct({ task: Schema.String }),
    execute: ({ task }) =>
      Effect.gen(function* () {
        const { progress } = yield* Tool.ToolContext
        yield* progress(`begun ${task}`)
        return yield* Deferred.await(of(task))
      })
  })
  return { tool, end: (task: string, result = `did ${task}`) => Deferred.succeed(of(task), result), of }
}

const work = (...tasks: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...tasks.map((task) => ({ name: "work", params: { task } })))
const use = (params: Schema.Json) => ScriptedProvider.toolCall("background_calls", params)
const say = ScriptedProvider.text

const told = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) =>
    message.role === "user" && message.backgroundEnds !== undefined
      ? [message.backgroundEnds.map(({ handle, outcome }) => `${handle} ${outcome}`).join(", ")]
      : []
  )
const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : []))

const start = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  options: Parameters<typeof agent>[1] = {}
) {
  const played = yield* agent(script, options)
  const run = yield* Effect.forkChild(Effect.exit(played.agent.prompt("go")), { startImmediately: true })
  yield* settle()
  const ended = Effect.flatten(Fiber.join(run))
  return { ...played, ended, isOver: () => run.pollUnsafe() !== undefined }
})

describe("background calls (row 151)", () => {
  it.effect("return at once, and their end starts another turn", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const { ended, events, isOver, requests } = yield* start(
        [work("a"), say("I wait."), say("All done.")],
        { tools: [tool] }
      )
      assert.isFalse(isOver())
      assert.strictEqual((yield* requests).length, 2)
      yield* end("a")
      const { newMessages, report, status, text } = yield* ended
      assert.deepStrictEqual([status, text], ["completed", "All done."])
      assert.deepStrictEqual(
        newMessages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant", "user", "assistant"]
      )
      const [result] = newMessages.filter(({ role }) => role === "toolResult")
      assert.strictEqual(result?.role === "toolResult" ? result.background : "", "bg_1")
      const [note] = newMessages.filter(({ role }) => role === "user").slice(1)
      assert.strictEqual(
        note === undefined ? "" : Message.textOf(note),
        "[Background call bg_1 (work) ended: success]\ndid a"
      )
      assert.deepStrictEqual(told(newMessages), ["bg_1 success"])
      assert.deepStrictEqual(
        ofTag(events, "ToolBackgrounded").map(({ handle }) => handle),
        ["bg_1"]
      )
      assert.deepStrictEqual(
        ofTag(events, "ToolExecutionEnd").map(({ background, outcome }) => [background, outcome]),
        [["bg_1", "success"]]
      )
      assert.deepStrictEqual([report.toolCalls, report.toolSuccess], [1, 1])
      assert.deepStrictEqual(broken(events), [])
    })
  )

  it.effect("end together, and one message tells both before the next turn", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const pause = Tool.make({
        name: "pause",
        description: "Waits.",
        execute: () => Effect.as(Effect.sleep("1 second"), "waited")
      })
      const { ended, requests } = yield* start(
        [work("a", "b", "c"), ScriptedProvider.toolCall("pause", {}), say("two"), say("three")],
        { tools: [tool, pause] }
      )
      yield* end("b")
      yield* end("a")
      yield* settle()
      yield* TestClock.adjust("1 second")
      yield* settle()
      assert.deepStrictEqual(told((yield* requests)[2]?.messages ?? []), ["bg_1 success, bg_2 success"])
      yield* end("c")
      assert.deepStrictEqual(told((yield* ended).newMessages), ["bg_1 success, bg_2 success", "bg_3 success"])
    })
  )

  it.effect("are listed, read, waited for and cancelled by one tool, whose results tell the ends", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const { ended, requests } = yield* start(
        [
          work("a", "b"),
          use({ action: "list" }),
          use({ action: "read", calls: ["bg_1"] }),
          use({ action: "wait", until: "any", seconds: 30 }),
          use({ action: "wait", until: "all", seconds: 5 }),
          use({ action: "cancel", calls: ["bg_2"] }),
          use({ action: "read", calls: ["bg_9"] }),
          use({ action: "read" }),
          say("end")
        ],
        { tools: [tool] }
      )
      yield* TestClock.adjust("2 seconds")
      yield* end("a")
      yield* settle()
      yield* TestClock.adjust("5 seconds")
      const { newMessages } = yield* ended
      assert.deepStrictEqual(results(newMessages).slice(2), [
        "[Background call bg_1 (work) has run for 0 s]\n[Background call bg_2 (work) has run for 0 s]",
        "[Background call bg_1 (work) has run for 0 s]\nbegun a",
        "[Background call bg_1 (work) ended: success]\ndid a\n\n[Background call bg_2 (work) has run for 2 s]\nbegun b",
        "[Background call bg_2 (work) has run for 7 s]\nbegun b",
        "[Background call bg_2 (work) ended: aborted]\nTool work was aborted.",
        'No background call is named "bg_9". Their names are: bg_1, bg_2.',
        "You have read the ends of all background calls."
      ])
      assert.deepStrictEqual(told(newMessages), [])
      assert.isTrue(
        (yield* requests).every(({ tools }) => tools.some(({ name }) => name === "background_calls"))
      )
    })
  )

  it.effect("are continued by a tool that decides while it runs, as an Effect and as a promise", () =>
    Effect.gen(function* () {
      const end = yield* Deferred.make<void>()
      const build = Tool.make({
        name: "build",
        description: "Builds.",
        blocking: "optional",
        params: Schema.Struct({ long: Schema.Boolean }),
        execute: Effect.fnUntraced(function* ({ long }) {
          const { background } = yield* Tool.ToolContext
          if (!long || background === undefined) return "short"
          yield* background("It takes long.")
          yield* Deferred.await(end)
          return "built"
        })
      })
      const plain = Tool.fromPromise({
        name: "plain",
        description: "Builds.",
        blocking: "optional",
        execute: async (_, { background }) => {
          background()
          await Effect.runPromise(Deferred.await(end))
          return "promised"
        }
      })
      const { ended, events } = yield* start(
        [
          ScriptedProvider.toolCalls(
            { name: "build", params: { long: true } },
            { name: "build", params: { long: false } },
            { name: "plain", params: {} }
          ),
          say("one"),
          say("two"),
          say("three")
        ],
        { tools: [build, plain] }
      )
      yield* Deferred.succeed(end, undefined)
      const { newMessages } = yield* ended
      const [first, second] = results(newMessages)
      assert.match(first ?? "", /^Runs in the background as bg_1\. .*\n\nIt takes long\.$/s)
      assert.strictEqual(second, "short")
      assert.strictEqual(told(newMessages).join(", "), "bg_1 success, bg_3 success")
      assert.deepStrictEqual(broken(events), [])
    })
  )

  it.effect("end when the run is cancelled: 100 of them at once, each with a result", () =>
    Effect.gen(function* () {
      const { tool } = worker()
      const names = Array.from({ length: 100 }, (_, index) => `t${index}`)
      const { agent, ended, events } = yield* start([work(...names), say("I wait.")], {
        tools: [tool],
        toolConcurrency: 60
      })
      yield* settle(3000)
      assert.strictEqual(ofTag(events, "ToolInvoked").length, 60)
      yield* agent.cancel("enough")
      const { newMessages, status } = yield* ended
      assert.strictEqual(status, "cancelled")
      const ends = ofTag(events, "ToolExecutionEnd")
      assert.deepStrictEqual(
        [ends.length, [...new Set(ends.map(({ outcome }) => outcome))]],
        [100, ["aborted"]]
      )
      assert.strictEqual(told(newMessages).join().split(", ").length, 100)
      assert.deepStrictEqual(broken(events), [])
    })
  )

  it.effect("are interrupted when the run fails, and their ends are in the transcript", () =>
    Effect.gen(function* () {
      const { tool } = worker()
      const { agent, ended, events } = yield* start([work("a"), say("I wait."), say("later")], {
        tools: [tool],
        limits: { executionTime: "1 minute" }
      })
      yield* TestClock.adjust("1 minute")
      const failed = yield* Effect.flip(ended)
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason._tag : "", "LimitExceeded")
      assert.deepStrictEqual(told((yield* agent.state.get).messages), ["bg_1 aborted"])
      assert.deepStrictEqual(broken(events), [])
      assert.strictEqual((yield* agent.prompt("again")).text, "later")
    })
  )

  it.effect("keep the limit on tool calls, the time of a tool, its hooks and the limit of results", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const afterTool = Hook.afterTool(({ call, isError, outcome }) =>
        Effect.sync(() => void seen.push(`${call.name} ${outcome} ${isError}`))
      )
      const { tool } = worker({ timeout: "3 seconds" })
      const { ended, isOver } = yield* start([work("a"), say("I wait."), say("It took too long.")], {
        tools: [tool],
        hooks: [afterTool]
      })
      assert.isFalse(isOver())
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(told((yield* ended).newMessages), ["bg_1 timeout"])
      assert.deepStrictEqual(seen, ["work timeout true"])
      const limited = yield* start([work("a", "b", "c")], { tools: [tool], limits: { maxToolCalls: 2 } })
      const failed = yield* Effect.flip(limited.ended)
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason._tag : "", "LimitExceeded")
    })
  )

  it.effect("wait for a place: the concurrency of tools bounds those at work", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const { ended, events } = yield* start([work("a", "b"), say("I wait."), say("one"), say("two")], {
        tools: [tool],
        toolConcurrency: 1
      })
      assert.strictEqual(ofTag(events, "ToolInvoked").length, 1)
      yield* end("a")
      yield* settle()
      assert.strictEqual(ofTag(events, "ToolInvoked").length, 2)
      yield* end("b")
      assert.deepStrictEqual(told((yield* ended).newMessages), ["bg_1 success", "bg_2 success"])
    })
  )

  it.effect("need their approval before they start, and ask questions without holding the turn", () =>
    Effect.gen(function* () {
      const asked = yield* Queue.unbounded<string>()
      const tool = Tool.make({
        name: "work",
        description: "Asks.",
        blocking: false,
        params: Schema.Struct({ task: Schema.String }),
        execute: Effect.fnUntraced(function* () {
          const { ask } = yield* Tool.ToolContext
          const answer =
            ask === undefined ? undefined : yield* ask({ question: "Sure?", schema: { type: "string" } })
          return answer?._tag === "Some" ? `answer ${String(answer.value)}` : "none"
        })
      })
      const layer = Approval.layer({ rules: [Approval.ask("work")], otherwise: "allow", asked: "wait" })
      const played = yield* Effect.provide(
        agent([work("a"), say("I wait."), say("end")], { tools: [tool] }),
        layer
      )
      const requests = yield* Queue.unbounded<Approval.Request>()
      yield* played.agent.subscribe((event) => {
        if (event._tag === "ApprovalRequested") return Queue.offer(requests, event)
        return event._tag === "QuestionAsked" ? Queue.offer(asked, event.questionId) : Effect.void
      })
      const run = yield* Effect.forkChild(played.agent.prompt("go"), { startImmediately: true })
      const { approvalId, argumentsHash } = yield* Queue.take(requests)
      assert.deepStrictEqual(ofTag(played.events, "ToolBackgrounded"), [])
      yield* played.agent.answer(approvalId, { decision: "approve", argumentsHash })
      const questionId = yield* Queue.take(asked)
      yield* settle()
      assert.strictEqual((yield* played.requests).length, 2)
      yield* played.agent.answer(questionId, { answer: "yes" })
      const { newMessages } = yield* Fiber.join(run)
      assert.include(Message.textOf(newMessages.at(-2) ?? Message.user("")), "answer yes")
    })
  )

  it.effect("let a message of the user and a pause through while the run waits for them", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const { agent, ended, events, requests } = yield* start(
        [work("a"), say("I wait."), say("Hello."), say("Again."), say("end")],
        { tools: [tool] }
      )
      yield* agent.steer("Are you there?")
      yield* settle()
      assert.strictEqual((yield* requests).length, 3)
      yield* agent.followUp("And now?")
      yield* settle()
      assert.strictEqual((yield* requests).length, 4)
      yield* agent.pause("wait")
      yield* settle()
      assert.strictEqual(ofTag(events, "RunPaused").length, 1)
      yield* end("a")
      yield* settle()
      assert.strictEqual((yield* requests).length, 4)
      yield* agent.resume()
      assert.strictEqual((yield* ended).text, "end")
      assert.deepStrictEqual(broken(events), [])
    })
  )

  it.effect("fail the run where the failure of a tool does", () =>
    Effect.gen(function* () {
      const { of, tool } = worker()
      const { ended } = yield* start([work("a"), say("I wait.")], { tools: [tool], toolFailureMode: "fail" })
      yield* Deferred.fail(of("a"), "broken")
      const failed = yield* Effect.flip(ended)
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason._tag : "", "ToolFailed")
    })
  )

  it.effect("run an agent as a tool, whose usage counts in the run", () =>
    Effect.gen(function* () {
      const helper = Agent.asTool({
        name: "helper",
        description: "Helps.",
        blocking: false,
        agent: { model: "small", system: "inside" }
      })
      const script = [
        ScriptedProvider.toolCall("helper", { prompt: "Help" }),
        say("The help."),
        say("I wait."),
        say("Helped.")
      ]
      const provider = yield* ScriptedProvider.make(script)
      const events: Array<AgentEvent.AgentEvent> = []
      const made = yield* Agent.make({ model: "m", tools: [helper] }).pipe(Effect.provide(provider.layer))
      yield* made.subscribe((event) => Effect.sync(() => events.push(event)))
      const { newMessages, report, usage } = yield* made.prompt("go")
      assert.strictEqual(told(newMessages).join(), "bg_1 success")
      assert.strictEqual(report.usage.total, usage.total)
      assert.strictEqual(ofTag(events, "RunEnd").length, 2)
    })
  )

  it.effect("count their turns: at the last one the run fails in place of losing an end", () =>
    Effect.gen(function* () {
      const { tool } = worker()
      const { ended } = yield* start([work("a"), say("I wait.")], { tools: [tool], limits: { maxTurns: 2 } })
      const failed = yield* Effect.flip(ended)
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason._tag : "", "LimitExceeded")
    })
  )

  it.effect("have a result within the limit of results", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const limit = Layer.succeed(ToolRegistry.ResultLimit, (_, output) =>
        Message.textOf(output).length < 1_000
          ? undefined
          : { unstored: Tool.output("cut"), store: Effect.fail("no store") }
      )
      const { ended } = yield* Effect.provide(
        start([work("a"), say("I wait."), say("end")], { tools: [tool] }),
        limit
      )
      yield* end("a", "x".repeat(2_000))
      assert.include(Message.textOf((yield* ended).newMessages.at(-2) ?? Message.user("")), "\ncut")
    })
  )

  it.effect("end before a run is suspended, and the run that resumes it reports those of earlier turns", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const remove = Tool.make({
        name: "remove",
        description: "Removes.",
        execute: () => Effect.succeed("removed")
      })
      const layer = Approval.layer({ rules: [Approval.ask("remove")], otherwise: "allow", asked: "defer" })
      const script = [
        work("a"),
        ScriptedProvider.toolCalls({ name: "remove", params: {} }, { name: "work", params: { task: "b" } }),
        say("end")
      ]
      const { agent, ended, events, isOver } = yield* Effect.provide(
        start(script, { tools: [tool, remove] }),
        layer
      )
      assert.isFalse(isOver())
      yield* end("a")
      yield* settle()
      assert.isFalse(isOver())
      yield* end("b")
      assert.strictEqual((yield* ended).status, "suspended")
      const [request] = (yield* agent.requests).approvals
      yield* agent.answer(request?.approvalId ?? "", {
        decision: "approve",
        argumentsHash: request?.argumentsHash ?? ""
      })
      const { newMessages, text } = yield* agent.continue
      assert.strictEqual(text, "end")
      assert.deepStrictEqual(results(newMessages), ["removed", "did b"])
      assert.deepStrictEqual(told(newMessages), ["bg_1 success"])
      assert.strictEqual(ofTag(events, "ToolExecutionEnd").length, 3)
    })
  )

  it.effect("change nothing where no tool may continue, and take no name that a tool has", () =>
    Effect.gen(function* () {
      const { end, tool } = worker()
      const plain = worker({ blocking: true })
      yield* plain.end("a")
      const without = yield* start([work("a"), say("end")], { tools: [plain.tool] })
      yield* without.ended
      assert.deepStrictEqual(
        (yield* without.requests).map(({ tools }) => tools.map(({ name }) => name)),
        [["work"], ["work"]]
      )
      const own = Tool.make({
        name: "background_calls",
        description: "Mine.",
        execute: () => Effect.succeed(1)
      })
      const both = yield* start([work("a"), say("I wait."), say("end")], { tools: [tool, own] })
      yield* end("a")
      yield* both.ended
      assert.deepStrictEqual(
        (yield* both.requests)[0]?.tools.map(({ name }) => name),
        ["work", "background_calls", "background_calls_2"]
      )
      assert.throws(() => worker({ blocking: "no" as never }), /`blocking` is "no"/)
    })
  )
})
