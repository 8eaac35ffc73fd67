import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Queue, Schema } from "effect"
import { Approval, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { broken } from "./invariants.ts"
import { agent, ofTag, outcomes, resultTexts, settle, tags } from "./play.ts"

const ask = (question: string, schema?: Readonly<Record<string, Schema.Json>>) => ({
  name: "ask_user",
  params: { question, ...(schema === undefined ? {} : { schema }) }
})
const done = ScriptedProvider.text("done")
const policy = (asked: Approval.Asked) => Approval.layer({ otherwise: "allow", asked })

/** A run that waits for the answers to its questions. */
const asking = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  layer: Layer.Layer<never>,
  options: Parameters<typeof agent>[1] = {}
) {
  const played = yield* Effect.provide(agent(script, { tools: [Approval.askUser()], ...options }), layer)
  const asked = yield* Queue.unbounded<Approval.Question>()
  yield* played.agent.subscribe((event) =>
    event._tag === "QuestionAsked" ? Queue.offer(asked, event) : Effect.void
  )
  const run = yield* Effect.forkChild(played.agent.prompt("go"), { startImmediately: true })
  return { ...played, asked: Queue.take(asked), run }
})

describe("questions", () => {
  it.effect("wait for an answer that matches the schema of the model", () =>
    Effect.gen(function* () {
      const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
      const { agent, asked, events, run } = yield* asking(
        [ScriptedProvider.toolCalls(ask("How many?", schema), ask("Where?")), done],
        policy("wait"),
        { toolTimeout: "1 second", limits: { executionTime: "1 minute" }, toolConcurrency: 1 }
      )
      const many = yield* asked
      const where = yield* asked
      assert.deepStrictEqual(
        [many.question, many.schema, where.schema],
        ["How many?", schema, { type: "string" }]
      )
      assert.deepStrictEqual(
        (yield* agent.requests).questions.map(({ questionId }) => questionId),
        [many.questionId, where.questionId]
      )
      yield* settle()
      yield* TestClock.adjust("1 day")
      const refused = yield* Effect.flip(agent.answer(many.questionId, { answer: { n: "x" } }))
      assert.strictEqual(refused._tag, "InvalidAnswer")
      assert.strictEqual(
        (yield* Effect.flip(agent.answer("qst_none", { answer: 1 })))._tag,
        "RequestNotFound"
      )
      const first = yield* agent.answer(many.questionId, { answer: { n: "3" }, by: "ada" })
      assert.deepStrictEqual(first, { answer: { n: 3 }, by: "ada" })
      assert.deepStrictEqual(yield* agent.answer(many.questionId, { answer: { n: 3 } }), first)
      assert.strictEqual(
        (yield* Effect.flip(agent.answer(many.questionId, { answer: { n: 4 } })))._tag,
        "AnswerConflict"
      )
      yield* agent.answer(where.questionId, { answer: "Oslo" })
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), ['{"n":3}', "Oslo"])
      assert.deepStrictEqual(broken(events), [])
      const of = events.filter((event) => "toolCallId" in event && event.toolCallId === many.toolCallId)
      assert.deepStrictEqual(tags(of), [
        "ToolExecutionStart",
        "QuestionAsked",
        "QuestionAnswered",
        "ToolInvoked",
        "ToolExecutionEnd"
      ])
      assert.deepStrictEqual((yield* agent.requests).questions, [])
    })
  )

  it.effect("are declined with a reason, which the model reads", () =>
    Effect.gen(function* () {
      const declined = { answer: null, declined: true, reason: "none of your business", by: "ada" } as const
      const { agent, asked, events, run } = yield* asking(
        [ScriptedProvider.toolCalls(ask("Where?"), ask("When?")), done],
        policy("wait")
      )
      const where = yield* asked
      const when = yield* asked
      const { answer: _, ...reply } = declined
      assert.deepStrictEqual(yield* agent.answer(where.questionId, reply), declined)
      assert.deepStrictEqual(yield* agent.answer(where.questionId, { declined: true }), declined)
      const late = yield* Effect.flip(agent.answer(where.questionId, { answer: "Oslo" }))
      assert.strictEqual(late._tag, "AnswerConflict")
      yield* agent.answer(when.questionId, { answer: "now" })
      const changed = yield* Effect.flip(agent.answer(when.questionId, reply))
      assert.strictEqual(changed._tag, "AnswerConflict")
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(outcomes(events), ["rejected", "success"])
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: none of your business",
        "now"
      ])
      assert.deepInclude(ofTag(events, "QuestionAnswered")[0], declined)
    })
  )

  it.effect("are declined by a program, while a run is suspended, and in the middle of a call", () =>
    Effect.gen(function* () {
      const refusing: Approval.Person = {
        approve: () => Effect.fail("not asked"),
        answer: () => Effect.succeed({ declined: true })
      }
      const script = [ScriptedProvider.toolCalls(ask("Where?")), done, done]
      const rejected = ["Tool execution was rejected: the user declined to answer"]
      const asked = yield* asking(script, Approval.layer({ asked: refusing, otherwise: "allow" }))
      assert.deepStrictEqual(resultTexts((yield* Fiber.join(asked.run)).newMessages), rejected)
      for (const next of ["continue", "prompt"] as const) {
        const { agent, asked, run } = yield* asking(script, policy("defer"))
        const { questionId } = yield* asked
        assert.strictEqual((yield* Fiber.join(run)).status, "suspended")
        yield* agent.answer(questionId, { declined: true })
        const { newMessages } = yield* next === "continue" ? agent.continue : agent.prompt("and?")
        assert.deepStrictEqual(resultTexts(newMessages), rejected)
      }
      const asks = Tool.make({
        name: "asks",
        description: "Asks.",
        execute: () =>
          Tool.ToolContext.use(({ ask }) =>
            Effect.map((ask ?? nobody)({ question: "Sure?", schema: {} }), (answer) => answer._tag)
          )
      })
      const inside = yield* asking(
        [ScriptedProvider.toolCall("asks", {}), done],
        Approval.layer({ asked: refusing, otherwise: "allow" }),
        { tools: [asks] }
      )
      assert.deepStrictEqual(resultTexts((yield* Fiber.join(inside.run)).newMessages), ["None"])
    })
  )

  it.effect("are rejected where no person is", () =>
    Effect.gen(function* () {
      const { events, run } = yield* asking([ScriptedProvider.toolCalls(ask("Where?")), done], Layer.empty)
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(outcomes(events), ["rejected"])
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: it needs a person to answer, and this run has none"
      ])
      assert.deepStrictEqual(ofTag(events, "QuestionAsked"), [])
    })
  )

  it.effect("are no call to approve, but a policy may deny them", () =>
    Effect.gen(function* () {
      const person: Approval.Person = {
        approve: () => Effect.fail("not asked"),
        answer: ({ question }) => Effect.succeed({ answer: `to ${question}` })
      }
      const script = [ScriptedProvider.toolCalls(ask("Where?")), done]
      const asked = yield* asking(script, Approval.layer({ asked: person }))
      assert.deepStrictEqual(resultTexts((yield* Fiber.join(asked.run)).newMessages), ["to Where?"])
      const denied = yield* asking(
        script,
        Approval.layer({ rules: [Approval.deny("ask_user")], asked: person })
      )
      assert.deepStrictEqual(outcomes((yield* Fiber.join(denied.run), denied.events)), ["rejected"])
    })
  )

  it.effect("suspend a run that defers, and are answered before it continues", () =>
    Effect.gen(function* () {
      const { agent, asked, run } = yield* asking(
        [ScriptedProvider.toolCalls(ask("Where?"), ask("When?")), done],
        policy("defer")
      )
      const where = yield* asked
      const when = yield* asked
      assert.strictEqual((yield* Fiber.join(run)).status, "suspended")
      yield* agent.answer(where.questionId, { answer: "Oslo" })
      assert.strictEqual((yield* agent.continue).status, "suspended")
      assert.strictEqual((yield* asked).questionId, when.questionId)
      yield* agent.answer(when.questionId, { answer: "now" })
      const { newMessages, status } = yield* agent.continue
      assert.deepStrictEqual([status, resultTexts(newMessages)], ["completed", ["Oslo", "now"]])
    })
  )

  it.effect("end with a cancel", () =>
    Effect.gen(function* () {
      const { agent, asked, events, run } = yield* asking(
        [ScriptedProvider.toolCalls(ask("Where?")), done],
        policy("wait")
      )
      const { questionId } = yield* asked
      yield* agent.cancel()
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.deepStrictEqual([outcomes(events), (yield* agent.requests).questions], [["aborted"], []])
      assert.strictEqual(
        (yield* Effect.flip(agent.answer(questionId, { answer: "x" })))._tag,
        "RequestNotFound"
      )
    })
  )

  it.effect("come from any tool with a question", () =>
    Effect.gen(function* () {
      const choose = {
        ...Tool.make({
          name: "choose",
          description: "Lets the user choose.",
          params: Schema.Struct({ options: Schema.Array(Schema.String) }),
          execute: ({ options }) =>
            Effect.map(Tool.ToolContext, ({ answer }) => `${String(answer)} of ${options.length}`)
        }),
        question: ({ options }: { readonly options: ReadonlyArray<string> }) => ({
          question: "Which?",
          schema: { enum: options }
        })
      }
      const { agent, asked, run } = yield* asking(
        [ScriptedProvider.toolCall("choose", { options: ["a", "b"] }), done],
        policy("wait"),
        { tools: [choose] }
      )
      const { questionId } = yield* asked
      const refused = yield* Effect.flip(agent.answer(questionId, { answer: "c" }))
      assert.strictEqual(refused._tag, "InvalidAnswer")
      assert.strictEqual(
        refused.message,
        'The answer is not valid: the value must be one of "a", "b", got "c"'
      )
      yield* agent.answer(questionId, { answer: "b" })
      assert.deepStrictEqual(resultTexts((yield* Fiber.join(run)).newMessages), ["b of 2"])
    })
  )

  it.effect("are asked by a tool in the middle of its call, whose time stands still", () =>
    Effect.gen(function* () {
      const order = Tool.make({
        name: "order",
        description: "Orders.",
        timeout: "1 second",
        execute: () =>
          Effect.gen(function* () {
            const { ask } = yield* Tool.ToolContext
            const given = yield* Effect.forEach(["Which?", "How many?"], (question) =>
              (ask ?? nobody)({ question, schema: { type: "string" } })
            )
            return given.map(Option.getOrElse(() => "none")).join(" ")
          })
      })
      const script = [ScriptedProvider.toolCall("order", {}), done]
      const options = { tools: [order] }
      const { agent, asked, events, run } = yield* asking(script, policy("wait"), options)
      const which = yield* asked
      assert.strictEqual((yield* agent.requests).questions.length, 1)
      yield* settle()
      yield* TestClock.adjust("1 day")
      yield* agent.answer(which.questionId, { answer: "tea" })
      yield* agent.answer((yield* asked).questionId, { answer: "two" })
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), ["tea two"])
      assert.deepStrictEqual([broken(events), (yield* agent.requests).questions], [[], []])
      assert.deepStrictEqual(tags(events.filter((event) => "toolCallId" in event)), [
        "ToolExecutionStart",
        "ToolInvoked",
        "QuestionAsked",
        "QuestionAnswered",
        "QuestionAsked",
        "QuestionAnswered",
        "ToolExecutionEnd"
      ])
      const person: Approval.Person = {
        approve: () => Effect.fail("not asked"),
        answer: ({ question }) =>
          question === "Which?" ? Effect.fail("away") : Effect.succeed({ answer: "2" })
      }
      const texts = yield* Effect.forEach([policy("deny"), policy("defer"), policy(person)], (layer) =>
        Effect.flatMap(asking(script, layer, options), ({ run }) =>
          Effect.map(Fiber.join(run), ({ newMessages }) => resultTexts(newMessages))
        )
      )
      assert.deepStrictEqual(texts, [["none none"], ["none none"], ["none 2"]])
      const expiring = Approval.layer({ otherwise: "allow", asked: "wait", expiresAfter: "1 hour" })
      const late = yield* asking(script, expiring, options)
      yield* late.asked
      yield* TestClock.adjust("1 hour")
      yield* late.asked
      yield* late.agent.cancel()
      assert.strictEqual((yield* Fiber.join(late.run)).status, "cancelled")
      assert.deepStrictEqual((yield* late.agent.requests).questions, [])
    })
  )

  it.effect("of a tool are closed where the person throws, or ignores the end of the run", () =>
    Effect.gen(function* () {
      const asks = Tool.make({
        name: "asks",
        description: "Asks.",
        execute: () =>
          Tool.ToolContext.use(({ ask }) =>
            Effect.map((ask ?? nobody)({ question: "Sure?", schema: {} }), (answer) => answer._tag)
          )
      })
      const asked = (answer: Approval.Person["answer"]) =>
        asking(
          [ScriptedProvider.toolCall("asks", {}), done],
          policy({ approve: () => Effect.fail("not asked"), answer }),
          { tools: [asks] }
        )
      const thrown = yield* asked(() => {
        throw new Error("no person")
      })
      const { newMessages } = yield* Fiber.join(thrown.run)
      assert.deepStrictEqual(resultTexts(newMessages), ["Tool asks failed unexpectedly: no person"])
      assert.deepStrictEqual((yield* thrown.agent.requests).questions, [])
      const deaf = yield* asked(() => Effect.uninterruptible(Effect.never))
      yield* deaf.asked
      yield* settle()
      yield* deaf.agent.cancel()
      yield* settle()
      yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* Fiber.join(deaf.run)).status, "cancelled")
      assert.deepStrictEqual((yield* deaf.agent.requests).questions, [])
    })
  )
})

const nobody = () => Effect.succeedNone
