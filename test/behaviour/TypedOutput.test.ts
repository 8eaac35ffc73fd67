import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { Agent, AgentEvent, Hook, Loop, Message, Provider, Run, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"
import { echo, ofTag, say } from "./play.ts"

const Review = Schema.Struct({ grade: Schema.Int, at: Schema.DateTimeUtcFromString })
const valid = { grade: 2, at: "2026-01-01T00:00:00.000Z" }
const native = Provider.decorate((inner) => Effect.succeed({ ...inner, structuredOutput: () => true }))

const json = (value: Schema.Json) => ScriptedProvider.text(JSON.stringify(value))
const answer = (params: Schema.Json) => ScriptedProvider.toolCall("final_answer", params)

type Options<A> = Partial<Agent.AgentOptions<ReadonlyArray<Tool.Runnable>, ReadonlyArray<Hook.Runnable>>> &
  Agent.OutputOptions<A>

/** An agent on a script whose provider asks for the output, or leaves it to a tool. */
const typed = Effect.fnUntraced(function* <A>(
  kind: "native" | "tool",
  script: ScriptedProvider.Script,
  options: Options<A>
) {
  const provider = yield* ScriptedProvider.make(script)
  const layer = kind === "native" ? native(provider.layer) : provider.layer
  const events: Array<AgentEvent.AgentEvent> = []
  const agent = yield* Agent.make({ model: "m", ...options }).pipe(Effect.provide(layer))
  yield* agent.subscribe((event) => Effect.sync(() => events.push(event)))
  return { agent, events, requests: provider.requests }
})

const reasonOf = <A>(effect: Effect.Effect<A, Run.RunFailed | Agent.CannotBegin>) =>
  Effect.flip(effect).pipe(
    Effect.flatMap((error) => (error._tag === "RunFailed" ? Effect.succeed(error) : Effect.die(error)))
  )

describe("typed output", () => {
  describe("by the provider", () => {
    it.effect("decodes the answer, and publishes the JSON before the end", () =>
      Effect.gen(function* () {
        const { agent, events, requests } = yield* typed("native", [json(valid)], { output: Review })
        const { output, status } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.strictEqual(output.at.epochMilliseconds, Date.parse(valid.at))
        assert.strictEqual(status, "completed")
        const [request] = yield* requests
        assert.deepInclude(request?.options.output?.schema, {
          type: "object",
          required: ["grade", "at"],
          additionalProperties: false
        })
        assert.deepStrictEqual(request?.tools, [])
        assert.deepStrictEqual(
          events.slice(-3).map(({ _tag }) => _tag),
          ["TurnEnd", "Output", "RunEnd"]
        )
        assert.deepStrictEqual(
          ofTag(events, "Output").map(({ value }) => value),
          [valid]
        )
      })
    )

    it.effect("reads an answer with many empty lines, in a fence or in one that does not close", () =>
      Effect.gen(function* () {
        const empty = "\n".repeat(200_000)
        const script = [
          ScriptedProvider.text(`\`\`\`json${empty}{"grade": 1}`),
          ScriptedProvider.text(`${empty}\`\`\`${empty}{"grade": 2}${empty}\`\`\`${empty}`)
        ]
        const { agent, requests } = yield* typed("native", script, {
          output: Schema.Struct({ grade: Schema.Int })
        })
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.strictEqual((yield* requests).length, 2)
      })
    )

    it.effect("reads an answer in a Markdown fence, and coerces scalars", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.text('```json\n{"grade": "2"}\n```')]
        const { agent } = yield* typed("native", script, { output: Schema.Struct({ grade: Schema.Int }) })
        const { output } = yield* agent.prompt("Review it")
        assert.deepStrictEqual(output, { grade: 2 })
      })
    )

    it.effect("wraps a value that is no object, as vendors demand", () =>
      Effect.gen(function* () {
        const script = [json({ output: ["a", "b"] })]
        const { agent, events, requests } = yield* typed("native", script, {
          output: Schema.Array(Schema.String)
        })
        const { output } = yield* agent.prompt("List them")
        assert.deepStrictEqual(output, ["a", "b"])
        assert.deepStrictEqual(
          ofTag(events, "Output").map(({ value }) => value),
          [["a", "b"]]
        )
        assert.deepInclude((yield* requests)[0]?.options.output?.schema, {
          type: "object",
          required: ["output"]
        })
      })
    )

    it.effect("asks for a repair that names the faults", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.text("Two."), json({ grade: "x" }), json(valid)]
        const { agent, requests } = yield* typed("native", script, { output: Review })
        const { newMessages, output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        const instructions = newMessages.filter(({ role }) => role === "user").map(Message.textOf)
        assert.include(instructions[1], "It is not JSON")
        assert.include(instructions[2], "grade")
        assert.strictEqual((yield* requests).length, 3)
      })
    )

    it.effect("fails with the last text when the repairs are used up", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.text("Two."), ScriptedProvider.text("Still two.")]
        const { agent, events } = yield* typed("native", script, { output: Review, outputRetries: 1 })
        const { reason, result } = yield* reasonOf(agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "OutputInvalid", text: "Still two.", attempts: 2 })
        assert.strictEqual(result.status, "failed")
        assert.deepStrictEqual(ofTag(events, "Output"), [])
        assert.strictEqual(ofTag(events, "RunEnd")[0]?.error?._tag, "OutputInvalid")
      })
    )

    it.effect("lets the model call tools before", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.toolCall("a", {}), json(valid)]
        const { agent } = yield* typed("native", script, { output: Review, tools: [say("a")] })
        const { output, turns } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.strictEqual(turns, 2)
      })
    )
  })

  describe("by a tool", () => {
    it.effect("ends the run when the model calls the tool", () =>
      Effect.gen(function* () {
        const { agent, events, requests } = yield* typed("tool", [answer(valid)], { output: Review })
        const { output, status, turns } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.deepStrictEqual([status, turns], ["completed", 1])
        const [request] = yield* requests
        assert.deepStrictEqual(
          request?.tools.map(({ name }) => name),
          ["final_answer"]
        )
        assert.isUndefined(request?.options.output)
        assert.isUndefined(request?.options.toolChoice)
        assert.strictEqual(ofTag(events, "TurnEnd")[0]?.toolsContinue, false)
        assert.strictEqual(ofTag(events, "Output").length, 1)
      })
    )

    it.effect("gives the next prompt its whole transcript", () =>
      Effect.gen(function* () {
        const { agent, requests } = yield* typed("tool", [answer(valid), answer({ ...valid, grade: 3 })], {
          output: Review
        })
        yield* agent.prompt("Review it")
        const { output } = yield* agent.prompt("Again")
        assert.strictEqual(output.grade, 3)
        assert.deepStrictEqual(
          (yield* requests)[1]?.messages.map(({ role }) => role),
          ["user", "assistant", "toolResult", "user"]
        )
      })
    )

    it.effect("runs the other calls of the answer, and does not ask again", () =>
      Effect.gen(function* () {
        const both = ScriptedProvider.toolCalls(
          { name: "final_answer", params: valid },
          { name: "a", params: {} }
        )
        const { agent, events } = yield* typed("tool", [both], { output: Review, tools: [say("a")] })
        const { output, status } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.strictEqual(status, "completed")
        assert.deepStrictEqual(
          ofTag(events, "ToolExecutionEnd").map(({ outcome }) => outcome),
          ["success", "success"]
        )
      })
    )

    it.effect(
      "answers a call that is not valid with its faults, also where a failed tool fails the run",
      () =>
        Effect.gen(function* () {
          const { agent, events } = yield* typed("tool", [answer({ grade: "x" }), answer(valid)], {
            output: Review,
            toolFailureMode: "fail"
          })
          const { output } = yield* agent.prompt("Review it")
          assert.strictEqual(output.grade, 2)
          assert.deepStrictEqual(
            ofTag(events, "ToolExecutionEnd").map(({ outcome }) => outcome),
            ["invalidArguments", "success"]
          )
        })
    )

    it.effect("fails with the last arguments when the repairs are used up", () =>
      Effect.gen(function* () {
        const script = [answer({ grade: "x" }), answer({ grade: "y" }), answer({ grade: "z" })]
        const { agent } = yield* typed("tool", script, { output: Review })
        const { reason } = yield* reasonOf(agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "OutputInvalid", text: '{"grade":"z"}', attempts: 3 })
      })
    )

    it.effect("makes the model call the tool after an answer in words, once", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.text("Two."), answer({ grade: "x" }), answer(valid)]
        const { agent, requests } = yield* typed("tool", script, { output: Review })
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.deepStrictEqual(
          (yield* requests).map(({ options }) => options.toolChoice),
          [undefined, { name: "final_answer" }, undefined]
        )
      })
    )

    it.effect("accepts an answer that is the JSON of the output", () =>
      Effect.gen(function* () {
        const { agent } = yield* typed("tool", [json(valid)], { output: Review })
        const { output, turns } = yield* agent.prompt("Review it")
        assert.deepStrictEqual([output.grade, turns], [2, 1])
      })
    )

    it.effect("takes a name that no tool has, and is offered beside activeTools", () =>
      Effect.gen(function* () {
        const { agent, requests } = yield* typed(
          "tool",
          [ScriptedProvider.toolCall("final_answer_", valid)],
          { output: Review, tools: [say("final_answer"), say("b")], activeTools: ["final_answer"] }
        )
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.deepStrictEqual(
          (yield* requests)[0]?.tools.map(({ name }) => name),
          ["final_answer", "final_answer_"]
        )
      })
    )

    it.effect("is no tool for hooks and limits", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const guard = Hook.approveTool(({ call }) => {
          asked.push(call.name)
          return Effect.succeed({ approved: call.name === "a" })
        })
        const { agent } = yield* typed("tool", [ScriptedProvider.toolCall("a", {}), answer(valid)], {
          output: Review,
          tools: [say("a")],
          hooks: [guard],
          limits: { maxToolCalls: 1 }
        })
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.deepStrictEqual(asked, ["a"])
      })
    )
  })

  describe.each(["native", "tool"] as const)("beside the rest of the loop (%s)", (kind) => {
    const good = kind === "native" ? json(valid) : answer(valid)
    const better = kind === "native" ? json({ ...valid, grade: 3 }) : answer({ ...valid, grade: 3 })

    it.effect("a follow-up asks for another output, and the last one counts", () =>
      Effect.gen(function* () {
        const { agent, events } = yield* typed(kind, [good, better], { output: Review })
        yield* agent.followUp("Be kinder")
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 3)
        assert.strictEqual(ofTag(events, "Output").length, 1)
      })
    )

    it.effect("a hook that stops the run leaves it without output", () =>
      Effect.gen(function* () {
        const hooks = [Hook.shouldStopAfterTurn(() => Effect.succeed(true))]
        const { agent, events } = yield* typed(kind, [good], { output: Review, hooks })
        const { reason, result } = yield* reasonOf(agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "OutputMissing", status: "stopped" })
        assert.strictEqual(result.status, "stopped")
        assert.deepStrictEqual(ofTag(events, "Output"), [])
      })
    )

    it.effect("a tool that ends the run leaves it without output", () =>
      Effect.gen(function* () {
        const stop = Tool.make({
          name: "stop",
          description: "Stops.",
          execute: () => Effect.succeed(Tool.output("", { terminate: true }))
        })
        const { agent } = yield* typed(kind, [ScriptedProvider.toolCall("stop", {})], {
          output: Review,
          tools: [stop]
        })
        const { reason } = yield* reasonOf(agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "OutputMissing", status: "terminated" })
      })
    )

    it.effect("a cancelled run has no output, and its stream ends without a failure", () =>
      Effect.gen(function* () {
        const { agent, events } = yield* typed(kind, [ScriptedProvider.never, ScriptedProvider.never], {
          output: Review
        })
        const running = yield* Effect.forkChild(reasonOf(agent.prompt("Review it")), {
          startImmediately: true
        })
        yield* agent.cancel()
        const { reason } = yield* Fiber.join(running)
        assert.deepInclude(reason, { _tag: "OutputMissing", status: "cancelled" })
        const { result } = yield* agent.start("Again")
        yield* agent.cancel()
        assert.strictEqual((yield* reasonOf(result)).reason._tag, "OutputMissing")
        assert.deepStrictEqual(
          ofTag(events, "RunEnd").map(({ error, status }) => [status, error]),
          [
            ["cancelled", undefined],
            ["cancelled", undefined]
          ]
        )
      })
    )

    it.effect("a repair takes a turn: without one the run ends by its limit", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.text("Two.")]
        const failing = yield* typed(kind, script, { output: Review, limits: { maxTurns: 1 } })
        const { reason } = yield* reasonOf(failing.agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "LimitExceeded", limit: "maxTurns" })
        const limits = { maxTurns: 1, onMaxTurns: "stop" } as const
        const stopping = yield* typed(kind, script, { output: Review, limits })
        const stopped = yield* reasonOf(stopping.agent.prompt("Review it"))
        assert.deepInclude(stopped.reason, { _tag: "OutputMissing", status: "incomplete" })
      })
    )

    it.effect("the summary of wrapUp is free text", () =>
      Effect.gen(function* () {
        const limits = { maxTurns: 1, onMaxTurns: "wrapUp" } as const
        const script = [ScriptedProvider.toolCall("echo", {}), ScriptedProvider.text("Nothing is done.")]
        const { agent, requests } = yield* typed(kind, script, { output: Review, tools: [echo], limits })
        const { reason, result } = yield* reasonOf(agent.prompt("Review it"))
        assert.deepInclude(reason, { _tag: "OutputMissing", status: "incomplete" })
        assert.strictEqual(result.message && Message.textOf(result.message), "Nothing is done.")
        const [, last] = yield* requests
        assert.deepStrictEqual([last?.tools, last?.options], [[], {}])
      })
    )

    it.effect("an answer that a hook gives is decoded", () =>
      Effect.gen(function* () {
        const skip = Hook.beforeModel(() => Effect.succeed({ skip: true, response: JSON.stringify(valid) }))
        const { agent, requests } = yield* typed(kind, [], { output: Review, hooks: [skip] })
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 2)
        assert.deepStrictEqual(yield* requests, [])
      })
    )

    it.effect("a message that steers after a valid output asks for another one", () =>
      Effect.gen(function* () {
        let isFirst = true
        const steer = Hook.steering(({ phase }) =>
          Effect.sync(() => {
            if (phase !== "turnEnd" || !isFirst) return []
            isFirst = false
            return [Message.user("Be kinder")]
          })
        )
        const { agent } = yield* typed(kind, [good, better], { output: Review, hooks: [steer] })
        const { output } = yield* agent.prompt("Review it")
        assert.strictEqual(output.grade, 3)
      })
    )
  })

  describe("schemas", () => {
    const city: StandardSchemaV1<unknown, { readonly city: string }> = {
      "~standard": {
        version: 1,
        vendor: "by-hand",
        validate: async (value) =>
          typeof value === "object" && value !== null && "city" in value && typeof value.city === "string"
            ? { value: { city: value.city.toUpperCase() } }
            : { issues: [{ message: "expected a text", path: ["city"] }] }
      }
    }

    it.effect("a Standard Schema validates and transforms", () =>
      Effect.gen(function* () {
        const script = [answer({ output: { city: 1 } }), answer({ output: { city: "Oslo" } })]
        const { agent, events } = yield* typed("tool", script, { output: city })
        const { output } = yield* agent.prompt("Where?")
        assert.deepStrictEqual(output, { city: "OSLO" })
        const [first] = ofTag(events, "ToolExecutionEnd")
        assert.include(first && Message.textOf(first.result), "city: expected a text")
      })
    )

    it.effect("a schema of zod", () =>
      Effect.gen(function* () {
        const output = z.object({ city: z.string(), days: z.number().int() })
        const { agent, requests } = yield* typed("native", [json({ city: "Oslo", days: "3" })], { output })
        const result = yield* agent.prompt("Where?")
        assert.deepStrictEqual(result.output, { city: "Oslo", days: 3 })
        assert.deepInclude((yield* requests)[0]?.options.output?.schema, { type: "object" })
      })
    )

    it.effect("a prompt can have a schema of its own", () =>
      Effect.gen(function* () {
        const { agent } = yield* typed("native", [json({ n: 1 }), json(valid)], { output: Review })
        const one = yield* agent.prompt("Count", { output: Schema.Struct({ n: Schema.Int }) })
        assert.strictEqual(one.output.n, 1)
        const two = yield* agent.prompt("Review it")
        assert.strictEqual(two.output.grade, 2)
      })
    )

    it.effect("the prompt of an agent without a schema can have one", () =>
      Effect.gen(function* () {
        const { agent } = yield* typed("native", [json({ n: 1 }), ScriptedProvider.text("Hi")], {})
        const one = yield* agent.prompt("Count", { output: Schema.Struct({ n: Schema.Int }) })
        assert.strictEqual(one.output.n, 1)
        const two = yield* agent.prompt("Hello")
        assert.notProperty(two, "output")
      })
    )

    it.effect("options that are no schema are named", () =>
      Effect.gen(function* () {
        const { agent } = yield* typed("native", [], {})
        const options: object = { output: "text", outputRetries: -1 }
        const error = yield* Effect.flip(agent.prompt("Count", options))
        assert.strictEqual(
          error.message,
          'Invalid options: output: expected a Schema or a Standard Schema, got "text"; outputRetries: expected a whole number from 0, got -1'
        )
        const made = yield* Effect.flip(
          Effect.provide(Agent.make({ model: "m", ...options }), ScriptedProvider.layer([]))
        )
        assert.strictEqual(made.message, error.message)
      })
    )
  })

  describe("of the loop without an agent", () => {
    const services = (...turns: ScriptedProvider.Script) =>
      Layer.merge(ScriptedProvider.layer(turns), ToolRegistry.layer(echo))

    it.effect("is in the result of run, decoded", () =>
      Effect.gen(function* () {
        const script = [ScriptedProvider.toolCall("echo", { n: 1 }), answer({ grade: "x" }), answer(valid)]
        const { output, turns } = yield* Loop.run(
          "Review it",
          { messages: [] },
          { model: "m", output: Review }
        ).pipe(Effect.provide(services(...script)))
        expectTypeOf(output).toEqualTypeOf<typeof Review.Type>()
        assert.deepStrictEqual([output.at.epochMilliseconds, turns], [Date.parse(valid.at), 3])
      })
    )

    it.effect("is not there without a schema", () =>
      Effect.gen(function* () {
        const result = yield* Loop.run("Hi", { messages: [] }, { model: "m" })
        expectTypeOf(result).toEqualTypeOf<Run.RunResult>()
        assert.notProperty(result, "output")
      }).pipe(Effect.provide(services(ScriptedProvider.text("Hi"))))
    )

    it.effect("may be that of a Standard Schema, and is an event of a stream", () =>
      Effect.gen(function* () {
        const options = { model: "m", output: z.object({ grade: z.int() }), outputRetries: 0 }
        const { output } = yield* Loop.run("Review it", { messages: [] }, options)
        expectTypeOf(output.grade).toBeNumber()
        assert.strictEqual(output.grade, 2)
        const values = yield* Loop.stream("Review it", { messages: [] }, options).pipe(
          AgentEvent.ofTag("Output"),
          Stream.map(({ value }) => value),
          Stream.runCollect
        )
        assert.deepStrictEqual(values, [{ grade: 3 }])
        const continued = yield* Loop.continue({ messages: [Message.user("Review it")] }, options).pipe(
          AgentEvent.ofTag("Output"),
          Stream.runCollect
        )
        assert.strictEqual(continued.length, 1)
      }).pipe(Effect.provide(services(answer({ grade: 2 }), answer({ grade: 3 }), answer({ grade: 4 }))))
    )

    it.effect("fails by a type where there is none, and for a schema that is none", () =>
      Effect.gen(function* () {
        const options = { model: "m", output: Review, outputRetries: 0 }
        const invalid = yield* Effect.flip(Loop.run("Review it", { messages: [] }, options))
        assert.strictEqual(invalid._tag === "RunFailed" && invalid.reason._tag, "OutputInvalid")
        const wrong: any = { model: "m", output: "text" }
        const { message } = yield* Effect.flip(Loop.run("Review it", { messages: [] }, wrong))
        assert.strictEqual(
          message,
          'Invalid options: output: expected a Schema or a Standard Schema, got "text"'
        )
      }).pipe(Effect.provide(services(ScriptedProvider.text("Two."))))
    )
  })

  it.effect(
    "whatever the model gives, the output decodes or the run fails by a type",
    () =>
      Effect.gen(function* () {
        const turns = [
          ScriptedProvider.text(""),
          ScriptedProvider.text("null"),
          ScriptedProvider.text('{"grade":2', { stopReason: "length" }),
          json({ ...valid, grade: "2" }),
          json({ output: valid }),
          answer({}),
          answer(valid),
          ScriptedProvider.toolCalls(
            { name: "final_answer", params: {} },
            { name: "final_answer", params: valid }
          ),
          ScriptedProvider.toolCall("unknown", {})
        ]
        // Each pair of turns, with a third one such that all pairs of a first or second and a third come too.
        const scripts = turns.flatMap((one, row) =>
          turns.map((two, column) => [one, two, turns[(row + column) % turns.length] ?? one])
        )
        const last = ScriptedProvider.text("no")
        for (const script of scripts) {
          for (const kind of ["native", "tool"] as const) {
            const { agent, events } = yield* typed(kind, [...script, last, last, last], { output: Review })
            const ended = yield* Effect.result(agent.prompt("Review it"))
            const outputs = ofTag(events, "Output").length
            if (ended._tag === "Success") {
              assert.isTrue(Schema.is(Schema.toType(Review))(ended.success.output))
              assert.strictEqual(outputs, 1)
            } else {
              assert.strictEqual(
                ended.failure._tag === "RunFailed" ? ended.failure.reason._tag : "",
                "OutputInvalid"
              )
              assert.strictEqual(outputs, 0)
            }
            assert.strictEqual(events.at(-1)?._tag, "RunEnd")
          }
        }
      }),
    60_000
  )
})
