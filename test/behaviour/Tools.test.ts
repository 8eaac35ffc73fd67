import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Latch, Layer, Logger, Ref, Schema } from "effect"
import { Hook, Loop, Message, RunOptions, Tool, ToolRegistry, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { agent, echo, failing, failureOf, ofTag, outcomes, play, range, reasonOf } from "./play.ts"
import { resultTexts, say, sleeper, tags, toolResults } from "./play.ts"

const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))
const done = ScriptedProvider.text("done")

describe("Tools", () => {
  it.effect("F152 a defect with a stack that would fill the log is logged in part", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ cause, message }) => {
        logged.push(String([message, ...(Cause.isCause(cause) ? [Cause.pretty(cause)] : [])]))
      })
      const deep = new Error("deep")
      deep.stack = `Error: deep${"\n    at a (/b.js:1:2)".repeat(30_000)}`
      const tool = Tool.make({ name: "deep", description: "", execute: () => Effect.die(deep) })
      yield* play([calls("deep"), done], { tools: [tool] }).pipe(
        Effect.provide(Logger.layer([logger], { mergeWithExisting: false }))
      )
      const all = logged.join("")
      assert.include(all, "Tool deep died")
      assert.include(all, "at a (/b.js:1:2)")
      assert.isBelow(all.length, 12_000)
    })
  )

  it.effect("malformed arguments give a result with isError for that very call (rows 77, 158)", () =>
    Effect.gen(function* () {
      const { requests, view } = yield* play(
        [
          ScriptedProvider.turn(
            Step.rawToolCall("echo", ['{"n":'], { id: "bad" }),
            Step.toolCall("echo", { n: 1 }, { id: "good" }),
            Step.finish("toolUse")
          ),
          done
        ],
        { tools: [echo] }
      )
      assert.deepStrictEqual(
        toolResults(view.messages).map(({ isError, outcome, toolCallId }) => [toolCallId, isError, outcome]),
        [
          ["bad", true, "invalidArguments"],
          ["good", false, "success"]
        ]
      )
      assert.deepStrictEqual(
        requests[1]?.messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "toolResult"]
      )
    })
  )

  it.effect("a timeout names the tool, is counted, and interrupts what ran (row 156)", () =>
    Effect.gen(function* () {
      const { begun, log, tool } = yield* sleeper()
      const script = yield* agent([ScriptedProvider.toolCall("sleep", { ms: 60_000 }), done], {
        tools: [tool],
        toolTimeout: "1 second"
      })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* begun
      yield* TestClock.adjust("1 second")
      const { newMessages, report } = yield* Fiber.join(run)
      assert.include(resultTexts(newMessages)[0], "sleep timed out after 1s")
      assert.deepInclude(report, { toolCalls: 1, toolTimeout: 1, toolFailure: 0, toolSuccess: 0 })
      assert.deepStrictEqual(log, ["start 60000", "interrupted 60000"])
    })
  )

  it.effect("the text of a tool's failure is in the next request (row 11)", () =>
    Effect.gen(function* () {
      class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", { host: Schema.String }) {
        override get message() {
          return `${this.host} is unreachable`
        }
      }
      const { requests } = yield* play([calls("ping"), done], {
        tools: [failing("ping", new Unreachable({ host: "db" }))]
      })
      assert.deepStrictEqual(resultTexts(requests[1]?.messages), ["db is unreachable"])
    })
  )

  it.effect(
    "a call in an answer cut at its token limit is not run, and the model is asked again (row 74)",
    () =>
      Effect.gen(function* () {
        let ran = 0
        const count = Tool.make({
          name: "count",
          description: "Counts.",
          execute: () => Effect.sync(() => ++ran)
        })
        const { events, requests } = yield* play(
          [ScriptedProvider.turn(Step.toolCall("count", {}), Step.finish("length")), done],
          { tools: [count] }
        )
        assert.strictEqual(ran, 0)
        assert.deepStrictEqual(outcomes(events), ["truncated"])
        assert.include(resultTexts(requests[1]?.messages)[0], "token limit")
      })
  )

  it.effect("a call in an answer that the provider stopped is not run, and the model is asked again", () =>
    Effect.gen(function* () {
      for (const stopReason of ["contentFilter", "refusal"] as const) {
        const { events, requests } = yield* play(
          [ScriptedProvider.turn(Step.toolCall("a", {}), Step.finish(stopReason)), done],
          { tools: [say("a")] }
        )
        assert.deepStrictEqual(outcomes(events), ["truncated"])
        assert.include(resultTexts(requests[1]?.messages)[0], "stopped")
      }
    })
  )

  it.effect("F074: runs the calls of an answer whose stop reason names none (row 73)", () =>
    Effect.gen(function* () {
      const { events } = yield* play(
        [ScriptedProvider.turn(Step.toolCall("a", {}), Step.finish("stop")), done],
        { tools: [say("a")] }
      )
      assert.deepStrictEqual(outcomes(events), ["success"])
    })
  )

  it.effect("a hook that dies before or after a tool makes an error of its result", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { events } = yield* play([calls("before", "after", "nope", "thrown"), done], {
        tools: [say("before"), say("after"), failing("thrown")],
        options: { toolExecution: "sequential" },
        hooks: [
          Hook.beforeTool(({ call }) => (call.name === "before" ? Effect.die("no") : Effect.void)),
          Hook.afterTool(({ call, isError }) => {
            told.push(call.name)
            if (call.name === "after") return Effect.die("no")
            return isError
              ? Effect.succeed({ isError: false, content: [Message.text("saved")] })
              : Effect.void
          })
        ]
      })
      const ends = ofTag(events, "ToolExecutionEnd").map(({ isError, outcome }) => [outcome, isError])
      assert.deepStrictEqual(ends, [
        ["rejected", true],
        ["error", true],
        ["unknownTool", true],
        ["success", false]
      ])
      assert.deepStrictEqual(told, ["after", "thrown"])
    })
  )

  it.effect(
    "tools end as they finish, are answered as they were called, and then the turn ends (rows 102, 154)",
    () =>
      Effect.gen(function* () {
        const { begun, tool } = yield* sleeper()
        const run = yield* Effect.forkChild(
          play(
            [
              ScriptedProvider.toolCalls(
                { name: "sleep", params: { ms: 20 }, id: "1" },
                { name: "sleep", params: { ms: 10 }, id: "2" }
              ),
              done
            ],
            { tools: [tool] }
          )
        )
        yield* Effect.andThen(begun, begun)
        yield* TestClock.adjust(20)
        const { events } = yield* Fiber.join(run)
        const order = events.flatMap((event) => {
          if (event._tag === "ToolExecutionEnd") return [`end ${event.toolCallId}`]
          if (event._tag === "TurnEnd" && event.turn === 1) return ["turn"]
          return event._tag === "MessageEnd" && event.message.role === "toolResult"
            ? [`result ${event.message.toolCallId}`]
            : []
        })
        assert.deepStrictEqual(order, ["end 2", "end 1", "result 1", "result 2", "turn"])
      })
  )

  it.effect("text beside a call stays in the transcript and in the next request (row 20)", () =>
    Effect.gen(function* () {
      const { requests } = yield* play(
        [
          ScriptedProvider.turn(Step.text("Let me look."), Step.toolCall("a", {}), Step.finish("toolUse")),
          done
        ],
        { tools: [say("a")] }
      )
      const answer = requests[1]?.messages[1]
      assert.deepStrictEqual(answer?.role === "assistant" ? answer.content.map(({ type }) => type) : [], [
        "text",
        "toolCall"
      ])
    })
  )

  describe("when they fail", () => {
    it.effect("go on with the others by default (rows 157, 251)", () =>
      Effect.gen(function* () {
        const { events, view } = yield* play([calls("a", "bad", "b"), done], {
          tools: [say("a"), failing("bad"), say("b")]
        })
        assert.sameMembers(outcomes(events), ["success", "error", "success"])
        assert.deepStrictEqual(resultTexts(view.messages), ["a", "not today", "b"])
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("end the run in fail mode, with a result for every call (row 157)", () =>
      Effect.gen(function* () {
        const { events, exit, view } = yield* play([calls("a", "bad", "b")], {
          tools: [say("a"), failing("bad"), say("b")],
          options: { toolExecution: "sequential", toolFailureMode: "fail" }
        })
        assert.deepStrictEqual(outcomes(events), ["success", "error", "aborted"])
        assert.deepInclude(reasonOf(exit), { _tag: "ToolFailed", toolName: "bad", detail: "not today" })
        assert.deepStrictEqual(Transcript.violations(view.messages), [])
        assert.deepStrictEqual(tags(events).slice(-3), ["TurnEnd", "RunError", "RunEnd"])
      })
    )

    it.effect("in fail mode no guard is asked about the calls after the one that failed", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const hooks = [
          Hook.beforeTool(({ call }) => Effect.sync(() => void asked.push(`before ${call.name}`))),
          Hook.approveTool(({ call }) =>
            Effect.sync(() => {
              asked.push(`approve ${call.name}`)
              return { approved: true }
            })
          )
        ]
        const ran: Array<string> = []
        const counted = Tool.make({
          name: "b",
          description: "Says that it ran.",
          execute: () => Effect.sync(() => void ran.push("b"))
        })
        const one = Tool.make({
          name: "bad",
          description: "Fails, and makes the batch sequential.",
          executionMode: "sequential",
          execute: () => Effect.fail("not today")
        })
        for (const setup of [
          { tools: [say("a"), failing("bad"), counted], options: { toolExecution: "sequential" } },
          { tools: [say("a"), one, counted], options: {} }
        ] as const) {
          asked.length = 0
          const { events, exit, view } = yield* play([calls("a", "bad", "b", "b")], {
            tools: setup.tools,
            hooks,
            options: { ...setup.options, toolFailureMode: "fail" }
          })
          assert.deepStrictEqual(asked, ["before a", "approve a", "before bad", "approve bad"])
          assert.deepStrictEqual(ran, [])
          assert.deepStrictEqual(outcomes(events), ["success", "error", "aborted", "aborted"])
          assert.deepInclude(reasonOf(exit), { _tag: "ToolFailed", toolName: "bad" })
          assert.deepStrictEqual(Transcript.violations(view.messages), [])
        }
      })
    )

    it.effect("in fail mode a call that had not begun says that another one failed", () =>
      Effect.gen(function* () {
        for (const order of [{ toolExecution: "sequential" }, { toolConcurrency: 1 }] as const) {
          const { events, view } = yield* play([calls("bad", "b")], {
            tools: [failing("bad"), say("b")],
            options: { ...order, toolFailureMode: "fail" }
          })
          assert.deepStrictEqual(outcomes(events), ["error", "aborted"])
          assert.match(resultTexts(view.messages)[1] ?? "", /another tool of this batch failed/)
        }
      })
    )

    it.effect("a block, a rejection and a skip are no failures of the tool in fail mode (row 116)", () =>
      Effect.gen(function* () {
        const { view } = yield* play([calls("block", "reject", "skip"), done], {
          tools: [say("block"), say("reject"), say("skip")],
          options: { toolFailureMode: "fail" },
          hooks: [
            Hook.beforeTool(({ call }) =>
              Effect.succeed(call.name === "skip" ? { skip: true } : { block: call.name === "block" })
            ),
            Hook.approveTool(({ call }) => Effect.succeed({ approved: call.name !== "reject" }))
          ]
        })
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("a typed failure keeps its data, for programs (row 144)", () =>
      Effect.gen(function* () {
        class Denied extends Schema.TaggedError<Denied>()("Denied", { path: Schema.String }) {}
        const read = Tool.make({
          name: "read",
          description: "Reads.",
          failure: Denied,
          execute: () => Effect.fail(new Denied({ path: "/etc" }))
        })
        const { view } = yield* play([calls("read"), done], { tools: [read] })
        assert.deepStrictEqual(toolResults(view.messages)[0]?.details, { _tag: "Denied", path: "/etc" })
      })
    )

    it.effect("a defect is told shortly, and without its stack (rows 138, 162)", () =>
      Effect.gen(function* () {
        const broken = Tool.make({
          name: "broken",
          description: "Dies.",
          execute: () => Effect.die(new Error("first line\n    at secret (/home/me/app.ts:1:1)"))
        })
        const thrower = Tool.make({
          name: "thrower",
          description: "Throws before it makes an Effect.",
          execute: (): Effect.Effect<string> => {
            throw new Error("sync")
          }
        })
        const { view } = yield* play([calls("broken", "thrower"), done], { tools: [broken, thrower] })
        const [first, second] = resultTexts(view.messages)
        assert.include(first, "first line")
        assert.notInclude(first, "secret")
        assert.include(second, "sync")
      })
    )

    it.effect("a tool that interrupts itself is answered, and the run goes on", () =>
      Effect.gen(function* () {
        const quitter = Tool.make({ name: "quitter", description: "Quits.", execute: () => Effect.interrupt })
        const { events, view } = yield* play([calls("quitter"), done], { tools: [quitter] })
        assert.deepStrictEqual(outcomes(events), ["aborted"])
        assert.strictEqual(view.status, "completed")
      })
    )
  })

  describe("results", () => {
    it.effect("nothing, null and values are told as what they are (rows 10, 166)", () =>
      Effect.gen(function* () {
        const { view } = yield* play([calls("nothing", "nil", "zero", "no", "object", "empty"), done], {
          tools: [
            Tool.make({ name: "nothing", description: "Says nothing.", execute: () => Effect.void }),
            say("nil", null),
            say("zero", 0),
            say("no", false),
            say("object", { a: [1, { b: "ü" }] }),
            say("empty", "")
          ]
        })
        assert.deepStrictEqual(resultTexts(view.messages), [
          "",
          "null",
          "0",
          "false",
          '{"a":[1,{"b":"ü"}]}',
          ""
        ])
        assert.isTrue(toolResults(view.messages).every(({ isError }) => !isError))
      })
    )

    it.effect("a value that is not JSON is an error, not a crash", () =>
      Effect.gen(function* () {
        const circle: { self?: unknown } = {}
        circle.self = circle
        const { events } = yield* play([calls("circle", "big"), done], {
          tools: [say("circle", circle), say("big", 1n)]
        })
        assert.deepStrictEqual(outcomes(events), ["error", "error"])
      })
    )

    it.effect("a tool may say its content, details and error itself (row 10)", () =>
      Effect.gen(function* () {
        const image = Message.image("aGk=", "image/png")
        const { view } = yield* play([calls("shot"), done], {
          tools: [
            say("shot", Tool.output([Message.text("there"), image], { details: { w: 1 }, isError: true }))
          ]
        })
        assert.deepInclude(toolResults(view.messages)[0], {
          content: [Message.text("there"), image],
          details: { w: 1 },
          isError: true,
          outcome: "error"
        })
      })
    )

    it.effect("an encoded success is text for the model and details for programs", () =>
      Effect.gen(function* () {
        const when = Tool.make({
          name: "when",
          description: "Tells a date.",
          success: Schema.Struct({ at: Schema.Date }),
          execute: () => Effect.succeed({ at: new Date(0) })
        })
        const { view } = yield* play([calls("when"), done], { tools: [when] })
        assert.deepInclude(toolResults(view.messages)[0], {
          content: [Message.text('{"at":"1970-01-01T00:00:00.000Z"}')],
          details: { at: "1970-01-01T00:00:00.000Z" }
        })
      })
    )

    it.effect("a very large result reaches the model whole", () =>
      Effect.gen(function* () {
        const large = "ü".repeat(500_000)
        const { requests } = yield* play([calls("large"), done], { tools: [say("large", large)] })
        assert.strictEqual(resultTexts(requests[1]?.messages)[0]?.length, 500_000)
      })
    )

    it.effect("longer than any model reads is cut, and says so", () =>
      Effect.gen(function* () {
        const { requests } = yield* play([calls("huge"), done], {
          tools: [say("huge", "H".repeat(8_000_000))]
        })
        const [text = ""] = resultTexts(requests[1]?.messages)
        assert.isBelow(text.length, 1_100_000)
        assert.match(text.slice(-50), /cut: 8000000 characters in all/)
      })
    )

    it.effect("a hundred calls of one answer are all answered, in order", () =>
      Effect.gen(function* () {
        const { view } = yield* play(
          [ScriptedProvider.toolCalls(...range(100).map((n) => ({ name: "echo", params: { n } }))), done],
          { tools: [echo] }
        )
        assert.deepStrictEqual(resultTexts(view.messages), range(100).map(String))
        assert.strictEqual(view.status, "completed")
      })
    )
  })

  describe("params", () => {
    const seen = Ref.make<ReadonlyArray<unknown>>([])
    const taking = <P>(params: Schema.Codec<P, any, never, never>, told: Ref.Ref<ReadonlyArray<unknown>>) =>
      Tool.make({
        name: "take",
        description: "Takes.",
        params,
        execute: (given) => Ref.update(told, (all) => [...all, given])
      })
    const send = Effect.fnUntraced(function* <P>(
      params: Schema.Codec<P, any, never, never>,
      raw: ReadonlyArray<string>
    ) {
      const told = yield* seen
      const { events } = yield* play(
        [
          ScriptedProvider.turn(
            ...raw.map((text) => Step.rawToolCall("take", [text])),
            Step.finish("toolUse")
          ),
          done
        ],
        { tools: [taking(params, told)] }
      )
      return { outcomes: outcomes(events), told: yield* Ref.get(told) }
    })

    it.effect("invent no value for one that is missing or null", () =>
      Effect.gen(function* () {
        const all = Schema.Struct({ s: Schema.String, n: Schema.Finite, b: Schema.Boolean })
        const sent = yield* send(all, [
          '{"s":null,"n":1,"b":true}',
          '{"s":"x","n":null,"b":true}',
          '{"s":"x","n":1,"b":null}',
          '{"s":"x","n":1}',
          '{"s":"x","n":"","b":true}',
          '{"s":"x","n":"1e999","b":true}'
        ])
        assert.deepStrictEqual(new Set(sent.outcomes), new Set(["invalidArguments"]))
        assert.deepStrictEqual(sent.told, [])
      })
    )

    it.effect("read JSON that came as a string where a list or an object is wanted", () =>
      Effect.gen(function* () {
        const nested = Schema.Struct({
          list: Schema.Array(Schema.Finite),
          object: Schema.Struct({ ok: Schema.Boolean })
        })
        const { told } = yield* send(nested, ['{"list":"[1,2]","object":"{\\"ok\\":\\"true\\"}"}'])
        assert.deepStrictEqual(told, [{ list: [1, 2], object: { ok: true } }])
      })
    )

    it.effect("keep what fits as it is: a string of digits stays a string", () =>
      Effect.gen(function* () {
        const { told } = yield* send(Schema.Struct({ id: Schema.String }), ['{"id":"042"}', '{"id":7}'])
        assert.deepStrictEqual(told, [{ id: "042" }, { id: "7" }])
      })
    )

    it.effect("of a union are read in the order of the union", () =>
      Effect.gen(function* () {
        const either = Schema.Struct({ v: Schema.Union([Schema.Finite, Schema.Boolean]) })
        const { told } = yield* send(either, ['{"v":"4"}', '{"v":"true"}', '{"v":2}'])
        assert.deepStrictEqual(told, [{ v: 4 }, { v: true }, { v: 2 }])
      })
    )

    it.effect("that may be null are, when the model writes null in quotes", () =>
      Effect.gen(function* () {
        const optional = Schema.Struct({
          object: Schema.NullOr(Schema.Struct({ n: Schema.Finite })),
          list: Schema.NullOr(Schema.Array(Schema.String)),
          text: Schema.NullOr(Schema.String)
        })
        const { told } = yield* send(optional, ['{"object":"null","list":"null","text":"null"}'])
        assert.deepStrictEqual(told, [{ object: null, list: null, text: "null" }])
      })
    )

    it.effect("are an object or nothing", () =>
      Effect.gen(function* () {
        const sent = yield* send(Schema.Struct({}), ["5", "[1]", '"x"', "true"])
        assert.deepStrictEqual(new Set(sent.outcomes), new Set(["invalidArguments"]))
        assert.deepStrictEqual(sent.told, [])
      })
    )

    it.effect("no text at all means no arguments (row 158)", () =>
      Effect.gen(function* () {
        const sent = yield* send(Schema.Struct({}), ["", "  \n", "{}"])
        assert.deepStrictEqual(sent.outcomes, ["success", "success", "success"])
      })
    )

    it.effect("nested deeper than anything means are none: the model is told", () =>
      Effect.gen(function* () {
        const deep = `{"n":${"[".repeat(20_000)}${"]".repeat(20_000)}}`
        const { view } = yield* play(
          [ScriptedProvider.turn(Step.rawToolCall("echo", [deep]), Step.finish("toolUse")), done],
          { tools: [echo] }
        )
        assert.deepStrictEqual(
          toolResults(view.messages).map(({ outcome }) => outcome),
          ["invalidArguments"]
        )
        assert.strictEqual(view.status, "completed")
      })
    )

    it.effect("are checked for all faults at once, each named (row 159)", () =>
      Effect.gen(function* () {
        const { view } = yield* play([ScriptedProvider.toolCall("take", { a: [], b: [] }), done], {
          tools: [taking(Schema.Struct({ a: Schema.Finite, b: Schema.String }), yield* seen)]
        })
        const [text] = resultTexts(view.messages)
        assert.include(text, '"a"')
        assert.include(text, '"b"')
      })
    )

    it.effect("with many faults are told by the first of them", () =>
      Effect.gen(function* () {
        const list = Array.from({ length: 500 }, () => "no")
        const { view } = yield* play([ScriptedProvider.toolCall("take", { list }), done], {
          tools: [taking(Schema.Struct({ list: Schema.Array(Schema.Finite) }), yield* seen)]
        })
        const [text = ""] = resultTexts(view.messages)
        assert.include(text, '["list"][0]')
        assert.isAtMost(text.length, 2000)
      })
    )

    it.effect("keep special characters, split anywhere", () =>
      Effect.gen(function* () {
        const told = yield* seen
        const text = 'a "quote", a \\ and a \n, ü, 🎉, \u2028'
        const raw = JSON.stringify({ text })
        yield* play(
          [
            ScriptedProvider.turn(
              Step.rawToolCall(
                "take",
                Array.from({ length: raw.length }, (_, at) => raw.charAt(at))
              ),
              Step.finish("toolUse")
            ),
            done
          ],
          { tools: [taking(Schema.Struct({ text: Schema.String }), told)] }
        )
        assert.deepStrictEqual(yield* Ref.get(told), [{ text }])
      })
    )

    it.effect("changed by a guard are decoded again, and what ran is on record (row 120)", () =>
      Effect.gen(function* () {
        const told = yield* seen
        const { events, view } = yield* play([ScriptedProvider.toolCall("take", { n: 1 }), done], {
          tools: [taking(Schema.Struct({ n: Schema.Finite }), told)],
          hooks: [Hook.beforeTool(() => Effect.succeed({ params: { n: "2" } }))]
        })
        assert.deepStrictEqual(yield* Ref.get(told), [{ n: 2 }])
        assert.deepInclude(ofTag(events, "ToolInvoked")[0], { params: { n: "2" }, modified: true })
        assert.deepStrictEqual(ofTag(events, "ToolExecutionStart")[0]?.params, { n: 1 })
        const call = view.messages.flatMap((message) =>
          message.role === "assistant" ? Message.toolCalls(message) : []
        )[0]
        assert.deepStrictEqual(call?.params, { n: 1 })
      })
    )

    it.effect("that a shim cannot read are told to the model, with its reason (row 147)", () =>
      Effect.gen(function* () {
        const shimmed = Tool.make({
          name: "take",
          description: "Takes.",
          params: Schema.Struct({}),
          prepareArguments: () => {
            throw new Error("unreadable")
          },
          execute: () => Effect.void
        })
        const { events, view } = yield* play([calls("take"), done], { tools: [shimmed] })
        assert.deepStrictEqual(outcomes(events), ["invalidArguments"])
        assert.include(resultTexts(view.messages)[0], "unreadable")
      })
    )

    it.effect("are decoded as a shim leaves them (row 147)", () =>
      Effect.gen(function* () {
        const shimmed = {
          ...echo,
          prepareArguments: (raw: Schema.Json) => ({
            n: raw !== null && typeof raw === "object" && "count" in raw ? (raw.count ?? null) : null
          })
        }
        const { events, view } = yield* play([ScriptedProvider.toolCall("echo", { count: "3" }), done], {
          tools: [shimmed]
        })
        assert.deepStrictEqual(outcomes(events), ["success"])
        assert.deepStrictEqual(resultTexts(view.messages), ["3"])
      })
    )
  })

  describe("names", () => {
    it.effect("are found although they are padded (row 142)", () =>
      Effect.gen(function* () {
        const { events } = yield* play([calls(" read_file\t", "read_file", "Read_File"), done], {
          tools: [say("read_file")]
        })
        assert.sameMembers(outcomes(events), ["success", "success", "unknownTool"])
      })
    )

    it.effect("in disorder still make a batch sequential, and show their label", () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const step = (name: string) =>
          Effect.gen(function* () {
            order.push(`${name} in`)
            yield* Effect.yieldNow
            order.push(`${name} out`)
          })
        const write = Tool.make({
          name: "write",
          label: "Write a file",
          description: "Writes.",
          executionMode: "sequential",
          execute: () => step("write")
        })
        const look = Tool.make({ name: "look", description: "Looks.", execute: () => step("look") })
        const { events } = yield* play([calls("look", " write "), done], { tools: [look, write] })
        assert.deepStrictEqual(order, ["look in", "look out", "write in", "write out"])
        assert.strictEqual(ofTag(events, "ToolExecutionStart")[1]?.label, "Write a file")
      })
    )

    it.effect("nobody knows are told to the model, with those it may use (row 143)", () =>
      Effect.gen(function* () {
        const { requests, events } = yield* play([calls("hidden", "nope"), done], {
          tools: [say("shown"), say("hidden")],
          options: { activeTools: ["shown"] }
        })
        assert.deepStrictEqual(outcomes(events), ["unknownTool", "unknownTool"])
        for (const text of resultTexts(requests[1]?.messages)) {
          assert.include(text, "not found")
          assert.include(text, "shown")
        }
        assert.deepStrictEqual(
          requests[0]?.tools.map(({ name }) => name),
          ["shown"]
        )
      })
    )

    it.effect("are offered in a stable order, as the same definitions from turn to turn (row 141)", () =>
      Effect.gen(function* () {
        const { requests } = yield* play([calls("b"), calls("a"), done], { tools: [say("b"), say("a")] })
        assert.deepStrictEqual(
          requests[0]?.tools.map(({ name }) => name),
          ["b", "a"]
        )
        assert.strictEqual(requests[0]?.tools, requests[2]?.tools)
      })
    )

    it.effect("say whether their arguments are strict, where the tool does", () =>
      Effect.gen(function* () {
        const strict = (name: string, strict?: boolean) =>
          Tool.make({
            name,
            description: "Looks.",
            execute: () => Effect.succeed("ok"),
            ...(strict === undefined ? {} : { strict })
          })
        const { requests } = yield* play([done], {
          tools: [strict("a", true), strict("b", false), strict("c")]
        })
        assert.deepStrictEqual(
          requests[0]?.tools.map((tool) => [tool.strict, "strict" in tool]),
          [
            [true, true],
            [false, true],
            [undefined, false]
          ]
        )
      })
    )

    it.effect(
      "of active tools that are not registered are left out, and repeated ones offered once (row 148)",
      () =>
        Effect.gen(function* () {
          const { requests } = yield* play([done], {
            tools: [say("a"), say("b")],
            options: { activeTools: ["b", "gone", "b", "a"] }
          })
          assert.deepStrictEqual(
            requests[0]?.tools.map(({ name }) => name),
            ["b", "a"]
          )
        })
    )
  })

  describe("concurrency", () => {
    it.effect(
      "a thousand calls that are done at once, one after another or all together",
      () =>
        Effect.gen(function* () {
          const names = Array.from({ length: 1000 }, () => "now")
          for (const toolConcurrency of [0, 1, 1000]) {
            const { events, view } = yield* play([calls(...names), done], {
              tools: [say("now")],
              options: { toolConcurrency, limits: { maxIdenticalToolCalls: Infinity } }
            })
            assert.strictEqual(toolResults(view.messages).length, 1000)
            assert.isTrue(outcomes(events).every((outcome) => outcome === "success"))
          }
        }),
      60_000
    )

    /** How many ran at once, at most. */
    const busiest = Effect.fnUntraced(function* (
      count: number,
      options: Partial<RunOptions.RunOptions> = {}
    ) {
      let running = 0
      let most = 0
      const began = yield* Latch.make(false)
      const work = Tool.make({
        name: "work",
        description: "Works for a second.",
        execute: () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* began.open
            yield* Effect.sleep(1000)
            running--
          })
      })
      const run = yield* Effect.forkChild(
        play([calls(...range(count).map(() => "work")), done], {
          tools: [work],
          options: { ...options, limits: { maxIdenticalToolCalls: Infinity } }
        })
      )
      yield* began.await
      yield* TestClock.adjust(count * 1000)
      const { view } = yield* Fiber.join(run)
      assert.strictEqual(view.status, "completed")
      return most
    })

    it.effect("is bounded: 16 by default, else as told, and never less than one (row 155)", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* busiest(40), 16)
        assert.strictEqual(yield* busiest(9, { toolConcurrency: 3 }), 3)
        assert.strictEqual(yield* busiest(40, { toolConcurrency: Infinity }), 40)
        assert.strictEqual(yield* busiest(4, { toolConcurrency: 0 }), 1)
        assert.strictEqual(yield* busiest(4, { toolExecution: "sequential" }), 1)
      })
    )

    it.effect("is none in a sequential run, also for tools that would run in parallel (row 153)", () =>
      Effect.gen(function* () {
        const { begun, log, tool } = yield* sleeper({ executionMode: "parallel" })
        const two = ScriptedProvider.toolCalls(
          { name: "sleep", params: { ms: 2 } },
          { name: "sleep", params: { ms: 1 } }
        )
        const run = yield* Effect.forkChild(
          play([two, done], { tools: [tool], options: { toolExecution: "sequential" } })
        )
        yield* begun
        yield* TestClock.adjust(2)
        yield* begun
        yield* TestClock.adjust(1)
        yield* Fiber.join(run)
        assert.deepStrictEqual(log, ["start 2", "end 2", "start 1", "end 1"])
      })
    )
  })

  describe("that wait for a slot", () => {
    it.effect("do not begin once the run is stopped: no ToolInvoked, and an aborted result", () =>
      Effect.gen(function* () {
        const { begun, log, tool } = yield* sleeper()
        const three = range(3).map((n) => ({ name: "sleep", params: { ms: 100 + n } }))
        const script = yield* agent([ScriptedProvider.toolCalls(...three)], {
          tools: [tool],
          toolConcurrency: 1
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* begun
        yield* script.agent.cancel()
        assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
        assert.deepStrictEqual(outcomes(script.events), ["aborted", "aborted", "aborted"])
        assert.strictEqual(ofTag(script.events, "ToolInvoked").length, 1)
        assert.deepStrictEqual(log, ["start 100", "interrupted 100"])
      })
    )

    it.effect("do not begin once another failed in fail mode", () =>
      Effect.gen(function* () {
        const { events } = yield* play([calls("bad", "a", "a")], {
          tools: [failing("bad"), say("a")],
          options: { toolConcurrency: 1, toolFailureMode: "fail" }
        })
        assert.deepStrictEqual(outcomes(events), ["error", "aborted", "aborted"])
        assert.strictEqual(ofTag(events, "ToolInvoked").length, 1)
      })
    )
  })

  describe("that were aborted", () => {
    it.effect("are not shown to afterTool hooks, in fail mode and in a cancelled run", () =>
      Effect.gen(function* () {
        const reviewed: Array<string> = []
        const review = Hook.afterTool(({ call: { name }, outcome }) =>
          Effect.sync(() => void reviewed.push(`${name} ${outcome}`))
        )
        const { begun, tool } = yield* sleeper()
        const bad = Tool.make({
          name: "bad",
          description: "Fails once the other one runs.",
          execute: () => Effect.andThen(begun, Effect.fail("not today"))
        })
        const both = ScriptedProvider.toolCalls(
          { name: "bad", params: {} },
          { name: "sleep", params: { ms: 100 } }
        )
        const { events } = yield* play([both], {
          tools: [bad, tool],
          hooks: [review],
          options: { toolFailureMode: "fail" }
        })
        assert.deepStrictEqual(outcomes(events).toSorted(), ["aborted", "error"])
        assert.deepStrictEqual(reviewed, ["bad error"])

        const script = yield* agent([ScriptedProvider.toolCall("sleep", { ms: 100 })], {
          tools: [tool],
          hooks: [review]
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* begun
        yield* script.agent.cancel()
        yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(script.events), ["aborted"])
        assert.deepStrictEqual(reviewed, ["bad error"])
      })
    )
  })

  describe("that fail in fail mode", () => {
    it.effect("fail the run although it was cancelled meanwhile", () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("bad")], { tools: [failing("bad")], toolFailureMode: "fail" })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "ToolExecutionEnd" ? script.agent.cancel() : Effect.void
        )
        const exit = yield* Effect.exit(script.agent.prompt("hi"))
        assert.deepInclude(reasonOf(exit), { _tag: "ToolFailed", toolName: "bad" })
        assert.deepInclude(ofTag(script.events, "RunEnd")[0], { status: "failed" })
        assert.notInclude(tags(script.events), "RunCancelled")
      })
    )
  })

  describe("progress", () => {
    it.effect("is told before the end, and its calls are told apart (row 160)", () =>
      Effect.gen(function* () {
        const loud = Tool.make({
          name: "loud",
          description: "Tells how far it is.",
          execute: () =>
            Effect.gen(function* () {
              const { progress, toolCallId } = yield* Tool.ToolContext
              yield* progress(Tool.output(`${toolCallId} half`))
              yield* Effect.yieldNow
              yield* progress(`${toolCallId} nearly`)
              return toolCallId
            })
        })
        const { events } = yield* play(
          [
            ScriptedProvider.toolCalls(
              { name: "loud", params: {}, id: "x" },
              { name: "loud", params: {}, id: "y" }
            ),
            done
          ],
          { tools: [loud] }
        )
        for (const id of ["x", "y"]) {
          const told = events.flatMap((event) => {
            if (event._tag === "ToolExecutionProgress" && event.toolCallId === id) {
              return [event.partial.content]
            }
            return event._tag === "ToolExecutionEnd" && event.toolCallId === id ? [event.result.content] : []
          })
          assert.deepStrictEqual(told, [
            [Message.text(`${id} half`)],
            [Message.text(`${id} nearly`)],
            [Message.text(id)]
          ])
        }
      })
    )

    it.effect("that comes after the call settled is ignored, while others still run too (row 160)", () =>
      Effect.gen(function* () {
        const saved = yield* Ref.make<Effect.Effect<void>>(Effect.void)
        const early = Tool.make({
          name: "early",
          description: "Leaves its progress behind.",
          execute: () =>
            Effect.flatMap(Tool.ToolContext, ({ progress }) => Ref.set(saved, progress(Tool.output("late"))))
        })
        const late = Tool.make({
          name: "late",
          description: "Uses the progress of another.",
          execute: () => Effect.flatten(Ref.get(saved))
        })
        const { events } = yield* play([calls("early", "late"), done], {
          tools: [early, late],
          options: { toolConcurrency: 1 }
        })
        assert.deepStrictEqual(outcomes(events), ["success", "success"])
        assert.deepStrictEqual(ofTag(events, "ToolExecutionProgress"), [])
      })
    )
  })

  describe("context", () => {
    it.effect("tells a call its ids and its turn (row 137)", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const look = Tool.make({
          name: "look",
          description: "Looks.",
          execute: () =>
            Effect.map(Tool.ToolContext, ({ runId, toolCallId, turn }) => {
              seen.push({ runId, toolCallId, turn })
            })
        })
        const { events } = yield* play(
          [
            ScriptedProvider.toolCall("look", {}, { id: "1" }),
            ScriptedProvider.toolCall("look", {}, { id: "2" }),
            done
          ],
          { tools: [look] }
        )
        const runId = events[0]?.runId
        assert.deepStrictEqual(seen, [
          { runId, toolCallId: "1", turn: 1 },
          { runId, toolCallId: "2", turn: 2 }
        ])
      })
    )

    it.effect("a label is for people, and the request does not have it", () =>
      Effect.gen(function* () {
        const labelled = Tool.make({
          name: "ls",
          label: "List files",
          description: "Lists.",
          execute: () => Effect.succeed("")
        })
        const { events, requests } = yield* play([calls("ls"), done], { tools: [labelled] })
        assert.strictEqual(ofTag(events, "ToolExecutionStart")[0]?.label, "List files")
        assert.sameMembers(Object.keys(requests[0]?.tools[0] ?? {}), ["name", "description", "parameters"])
      })
    )
  })

  describe("of plain functions", () => {
    it.effect("may be async, sync, or throw", () =>
      Effect.gen(function* () {
        const later = Tool.fromPromise({
          name: "later",
          description: "Async.",
          execute: async () => ({ a: 1 })
        })
        const now = Tool.fromPromise({ name: "now", description: "Sync.", execute: () => "now" })
        const bad = Tool.fromPromise({
          name: "bad",
          description: "Throws.",
          execute: () => {
            throw new Error("nope")
          }
        })
        const { view } = yield* play([calls("later", "now", "bad"), done], { tools: [later, now, bad] })
        assert.deepStrictEqual(resultTexts(view.messages), ['{"a":1}', "now", "nope"])
      })
    )

    it.effect("hear of a timeout by their signal (rows 137, 217)", () =>
      Effect.gen(function* () {
        const aborted = yield* Latch.make(false)
        const began = yield* Latch.make(false)
        const slow = Tool.fromPromise({
          name: "slow",
          description: "Waits for its signal.",
          timeout: 500,
          execute: (_params, { signal }) => {
            began.openUnsafe()
            return new Promise(() => {
              signal.addEventListener("abort", () => aborted.openUnsafe())
            })
          }
        })
        const run = yield* Effect.forkChild(play([calls("slow"), done], { tools: [slow] }))
        yield* began.await
        yield* TestClock.adjust(500)
        const { events } = yield* Fiber.join(run)
        yield* aborted.await
        assert.deepStrictEqual(outcomes(events), ["timeout"])
      })
    )

    it.effect("find it aborted who look at their signal when all is over", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const told: Array<Tool.PromiseContext> = []
        const slow = Tool.fromPromise({
          name: "slow",
          description: "Never ends.",
          timeout: 500,
          execute: (_params, context) => {
            told.push(context)
            began.openUnsafe()
            return new Promise(() => {})
          }
        })
        const run = yield* Effect.forkChild(play([calls("slow"), done], { tools: [slow] }))
        yield* began.await
        yield* TestClock.adjust(500)
        yield* Fiber.join(run)
        const [context] = told
        assert.isTrue(context?.signal.aborted)
        assert.strictEqual({ ...context }.signal, context?.signal)
      })
    )

    it.effect("have their progress told before their end", () =>
      Effect.gen(function* () {
        const loud = Tool.fromPromise({
          name: "loud",
          description: "Loud.",
          execute: (_params, { progress }) => {
            progress("half")
            return "whole"
          }
        })
        const { events } = yield* play([calls("loud"), done], { tools: [loud] })
        assert.deepStrictEqual(
          tags(events).filter((tag) => tag.startsWith("ToolExecution")),
          ["ToolExecutionStart", "ToolExecutionProgress", "ToolExecutionEnd"]
        )
      })
    )

    it.effect("show all progress in order, also of a call that then fails, and none after the end", () =>
      Effect.gen(function* () {
        const report: Array<Tool.PromiseContext["progress"]> = []
        const loud = Tool.fromPromise({
          name: "loud",
          description: "Fails after three partial results.",
          execute: async (_params, { progress }) => {
            report.push(progress)
            progress("one")
            await Promise.resolve()
            progress("two")
            progress(Tool.output("three"))
            throw new Error("no")
          }
        })
        const late = Tool.fromPromise({
          name: "late",
          description: "Uses the progress of the first call.",
          execute: () => {
            for (const progress of report) progress("late")
          }
        })
        const { events } = yield* play([calls("loud", "late"), done], {
          tools: [loud, late],
          options: { toolConcurrency: 1 }
        })
        assert.deepStrictEqual(outcomes(events), ["error", "success"])
        const shown = ofTag(events, "ToolExecutionProgress").map(({ partial }) => partial.content)
        assert.deepStrictEqual(shown, [[Message.text("one")], [Message.text("two")], [Message.text("three")]])
      })
    )
  })

  it.effect(
    "a call has one idempotency key, also when a hook has it run again, and no other call has it",
    () =>
      Effect.gen(function* () {
        const keys: Array<string> = []
        const pay = Tool.make({
          name: "pay",
          description: "Pays.",
          executionMode: "sequential",
          execute: () => Effect.map(Tool.ToolContext, ({ idempotencyKey }) => void keys.push(idempotencyKey))
        })
        const twice = Hook.afterTool(({ call: { id } }) => Effect.succeed({ retry: id === "ö/1" }))
        const call = (id: string) => Step.toolCall("pay", {}, { id })
        yield* play(
          [
            ScriptedProvider.turn(call("ö/1"), call("2"), Step.finish("toolUse")),
            ScriptedProvider.turn(call("2"), Step.finish("toolUse")),
            done
          ],
          { tools: [pay], hooks: [twice] }
        )
        const [first, again, second, later] = keys
        assert.strictEqual(first, again)
        assert.strictEqual(new Set([first, second, later]).size, 3)
        for (const key of keys) assert.match(key, /^[\w.~-]{1,200}$/u)
      })
  )

  describe("registry", () => {
    const call = (name: string, params: Schema.Json = {}): Message.ToolCall => ({
      type: "toolCall",
      id: "c",
      name,
      rawArguments: JSON.stringify(params),
      params
    })
    const context = {
      toolCallId: "c",
      idempotencyKey: "key",
      runId: "r",
      turn: 1,
      progress: () => Effect.void
    }

    it.effect("dies when a name is taken, and keeps the tool that has it (row 140)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(say("a", "first"))
        const exit = yield* Effect.exit(registry.register(say("a", "second")))
        assert.include(
          Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "",
          'Tool "a": Another tool has this name'
        )
        const { content } = yield* registry.execute(yield* registry.prepare(call("a")), context)
        assert.deepStrictEqual(content, [Message.text("first")])
      })
    )

    it.effect("forgets a tool, once (row 139)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(say("a"), say("b"))
        assert.isTrue(yield* registry.unregister("a"))
        assert.isFalse(yield* registry.unregister("a"))
        assert.isUndefined(yield* registry.get("a"))
        const error = yield* Effect.flip(registry.prepare(call("a")))
        assert.deepInclude(error, { _tag: "ToolNotFound", toolName: "a", known: ["b"] })
        yield* registry.register(say("a"))
        assert.deepStrictEqual(
          (yield* registry.definitions).map(({ name }) => name),
          ["b", "a"]
        )
      })
    )

    it.effect("knows which names are taken, and forgets all tools at once (row 139)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(say("a"), say("b"))
        assert.deepStrictEqual([yield* registry.has("a"), yield* registry.has("c")], [true, false])
        yield* registry.clear
        assert.isFalse(yield* registry.has("a"))
        assert.deepStrictEqual(yield* registry.definitions, [])
        yield* registry.register(say("a"))
        assert.isTrue(yield* registry.has("a"))
      })
    )

    it.effect("finds a name in other upper and lower case on request, if it is the only one (row 142)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(say("read_file"), say("Look"), say("LOOK"))
        const found = (name: string, caseInsensitiveTools: boolean) =>
          Effect.match(registry.prepare(call(name), { caseInsensitiveTools }), {
            onSuccess: ({ tool }) => tool.name,
            onFailure: ({ _tag }) => _tag
          })
        assert.strictEqual(yield* found(" Read_File ", true), "read_file")
        assert.strictEqual(yield* found("Read_File", false), "ToolNotFound")
        assert.strictEqual(yield* found("LOOK", true), "LOOK")
        assert.strictEqual(yield* found("look", true), "ToolNotFound")
      })
    )

    it.effect("finds a name without what models write around it, unless that is a name too (row 142)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(say("look"), say("functions"))
        const found = (name: string) =>
          Effect.match(registry.prepare(call(name)), {
            onSuccess: ({ tool }) => tool.name,
            onFailure: ({ _tag }) => _tag
          })
        for (const name of [
          "functions.look",
          "functions.look:0",
          "default_api:look",
          " default_api.look\n",
          "look<|channel|>json",
          "functions.look<|constrain|>json"
        ])
          assert.strictEqual(yield* found(name), "look", name)
        assert.strictEqual(yield* found("functions"), "functions")
        for (const name of ["other.look", "functions.functions.look", "<|look", "look.functions"])
          assert.strictEqual(yield* found(name), "ToolNotFound", name)
      })
    )

    it.effect("takes arguments that are not JSON for an empty object on request", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(echo, say("a"))
        const broken = (name: string): Message.ToolCall => {
          const { params: _, ...rest } = call(name)
          return { ...rest, rawArguments: "{broken" }
        }
        const prepared = (name: string, invalidJsonArguments?: "error" | "emptyObject") =>
          Effect.match(
            registry.prepare(
              broken(name),
              invalidJsonArguments === undefined ? {} : { invalidJsonArguments }
            ),
            { onSuccess: ({ input }) => input, onFailure: ({ message }) => message }
          )
        assert.include(yield* prepared("a"), "not valid JSON")
        assert.include(yield* prepared("a", "error"), "not valid JSON")
        assert.deepStrictEqual(yield* prepared("a", "emptyObject"), {})
        // What is missing in it is still missing.
        assert.include(yield* prepared("echo", "emptyObject"), "Invalid arguments")
      })
    )

    it.effect("is asked for every call by whoever wraps it, also of plain functions", () =>
      Effect.gen(function* () {
        const plain = Tool.fromPromise({ name: "plain", description: "Plain.", execute: () => "done" })
        const asked: Array<string> = []
        const wrapped = Layer.effect(
          ToolRegistry.ToolRegistry,
          Effect.map(ToolRegistry.make(plain), (inner) =>
            ToolRegistry.ToolRegistry.of({
              ...inner,
              execute: (prepared, context) =>
                Effect.tap(inner.execute(prepared, context), () =>
                  Effect.sync(() => asked.push(prepared.call.name))
                )
            })
          )
        )
        const provider = yield* ScriptedProvider.make([calls("plain", "plain"), calls("plain"), done])
        yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
          Effect.provide([provider.layer, wrapped])
        )
        assert.deepStrictEqual(asked, ["plain", "plain", "plain"])
      })
    )

    it.effect("fails typed for what the model got wrong, and never for what a tool does (row 139)", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(echo, failing("bad"))
        assert.strictEqual((yield* Effect.flip(registry.prepare(call("nope"))))._tag, "ToolNotFound")
        assert.deepInclude(yield* Effect.flip(registry.prepare(call("echo", { n: [] }))), {
          _tag: "InvalidArguments",
          toolName: "echo"
        })
        const done = yield* registry.execute(yield* registry.prepare(call("bad")), context)
        assert.deepInclude(done, { outcome: "error", isError: true })
      })
    )

    it.effect("fails with errors that print under their own names, not under the tool's", () =>
      Effect.gen(function* () {
        const registry = yield* ToolRegistry.make(echo)
        const [missing, invalid] = yield* Effect.all([
          Effect.flip(registry.prepare(call("nope"))),
          Effect.flip(registry.prepare(call("echo", { n: [] })))
        ])
        assert.strictEqual(String(missing), 'ToolNotFound: Tool "nope" not found. Tools: echo.')
        assert.match(String(invalid), /^InvalidArguments: Invalid arguments for tool "echo": /)
        assert.deepStrictEqual([missing.name, invalid.name], ["ToolNotFound", "InvalidArguments"])
        assert.match(missing.stack ?? "", /^ToolNotFound: Tool "nope" not found/)
        assert.match(invalid.stack ?? "", /^InvalidArguments: Invalid arguments/)
      })
    )

    it.effect("runs a call that was prepared before its tool was unregistered", () =>
      Effect.gen(function* () {
        class Db extends Context.Service<Db, { readonly name: string }>()("test/Db") {}
        const query = Tool.make({
          name: "query",
          description: "Asks.",
          execute: () => Effect.map(Db, ({ name }) => name)
        })
        const registry = yield* ToolRegistry.make(query).pipe(Effect.provideService(Db, { name: "main" }))
        const prepared = yield* registry.prepare(call("query"))
        yield* registry.unregister("query")
        const { content } = yield* registry.execute(prepared, context)
        assert.deepStrictEqual(content, [Message.text("main")])
      })
    )
  })

  it.effect("a failed run by a tool keeps the run's work for the caller", () =>
    Effect.gen(function* () {
      const { exit } = yield* play([calls("bad")], {
        tools: [failing("bad")],
        options: { toolFailureMode: "fail" }
      })
      const failure = failureOf(exit)
      assert.deepStrictEqual(
        failure?.result.newMessages.map(({ role }) => role),
        ["user", "assistant", "toolResult"]
      )
      assert.strictEqual(failure?.result.report.toolFailure, 1)
    })
  )

  it.effect("a failed run has the failure of the tool as its schema encodes it (row 144)", () =>
    Effect.gen(function* () {
      class NoSuchCity extends Schema.TaggedError<NoSuchCity>()("NoSuchCity", { city: Schema.String }) {}
      const weather = Tool.make({
        name: "weather",
        description: "The weather.",
        failure: NoSuchCity,
        execute: () => new NoSuchCity({ city: "Atlantis" })
      })
      const script = [ScriptedProvider.toolCall("weather", {})]
      const { exit } = yield* play(script, { tools: [weather], options: { toolFailureMode: "fail" } })
      const reason = reasonOf(exit)
      assert.strictEqual(reason?._tag, "ToolFailed")
      const failure = reason?._tag === "ToolFailed" ? reason.failure : undefined
      assert.deepStrictEqual(failure, { _tag: "NoSuchCity", city: "Atlantis" })
    })
  )

  it.effect(
    "options let a call mean a tool in other letters, and run without arguments that are JSON (row 158)",
    () =>
      Effect.gen(function* () {
        const tool = say("Look")
        const script = [
          ScriptedProvider.turn(Step.rawToolCall("look", ["{oops"]), Step.finish("toolUse")),
          ScriptedProvider.text("done")
        ]
        const strict = yield* play(script, { tools: [tool] })
        assert.deepStrictEqual(outcomes(strict.events), ["unknownTool"])
        const named = yield* play(script, { tools: [tool], options: { caseInsensitiveTools: true } })
        assert.deepStrictEqual(outcomes(named.events), ["invalidArguments"])
        const lenient = { caseInsensitiveTools: true, invalidJsonArguments: "emptyObject" } as const
        const ran = yield* play(script, { tools: [tool], options: lenient })
        assert.deepStrictEqual(outcomes(ran.events), ["success"])
        assert.deepStrictEqual(ofTag(ran.events, "ToolInvoked")[0]?.params, {})
      })
  )

  it.effect("an answer that was cut runs no call, also with invalidJsonArguments emptyObject", () =>
    Effect.gen(function* () {
      const cut = ScriptedProvider.turn(Step.rawToolCall("a", ['{"path":']), Step.finish("length"))
      const { events } = yield* play([cut, ScriptedProvider.text("done")], {
        tools: [say("a")],
        options: { invalidJsonArguments: "emptyObject" }
      })
      assert.deepStrictEqual(outcomes(events), ["truncated"])
      assert.deepStrictEqual(ofTag(events, "ToolInvoked"), [])
    })
  )

  it.effect("a sequential tool runs alone under another spelling too", () =>
    Effect.gen(function* () {
      const alone = Tool.make({ ...say("Alone"), executionMode: "sequential" })
      const both = calls("alone", "b")
      const { events } = yield* play([both, done], {
        tools: [alone, say("b")],
        options: { caseInsensitiveTools: true }
      })
      const order = events.flatMap((event) =>
        event._tag === "ToolExecutionStart" || event._tag === "ToolExecutionEnd" ? [event.toolName] : []
      )
      assert.deepStrictEqual(order, ["alone", "alone", "b", "b"])
    })
  )
})
