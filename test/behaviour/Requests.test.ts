/** Requests to a person where something comes in between: a restart, a hand-off, another agent, a fault of the one who answers. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Latch, type Layer, Result, Schema, SchemaGetter, type Scope } from "effect"
import {
  Agent,
  type AgentEvent,
  Approval,
  Hook,
  Message,
  type Provider,
  type Session,
  Tool
} from "effect-agent"
import { MemorySessionStore, SessionEntry, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { OpenQuestion, Requests } from "../../src/internal/requests.ts"
import { approve, calls, done, recorder } from "./approving.ts"
import { broken } from "./invariants.ts"
import { agent, outcomes, range, resultTexts, settle, texts } from "./play.ts"

/** Allows agents inside, hand-offs, and calls whose path begins with "ok". */
const policy = (options: Approval.Options = {}) =>
  Approval.layer({
    rules: [
      Approval.allow("remove", (params) => JSON.stringify(params).includes("ok")),
      Approval.allow("inner"),
      Approval.allow("transfer_to_billing")
    ],
    asked: "defer",
    ...options
  })

/** A conversation in a session, which each process opens anew. */
const processes = Effect.fnUntraced(function* <E>(
  script: ScriptedProvider.Script,
  make: (session: Session.Session) => Effect.Effect<Agent.Agent, E, Provider.Provider | Scope.Scope>,
  layer: Layer.Layer<never> = policy(),
  options: SessionStore.Options = {}
) {
  const store = SessionStore.make(MemorySessionStore.storage(), options)
  const scripted = yield* ScriptedProvider.make(script)
  const inProcess = <A, E2>(use: (made: Agent.Agent) => Effect.Effect<A, E2, Scope.Scope>) =>
    Effect.flatMap(store.openOrCreate("s1"), make).pipe(
      Effect.flatMap(use),
      Effect.scoped,
      Effect.provide([scripted.layer, layer])
    )
  return { inProcess, requests: scripted.requests, read: store.read("s1") }
})

/** An agent that has an agent inside with a tool that removes files. */
const nested = () => {
  const { ran, tool } = recorder()
  const inner = Agent.asTool({
    name: "inner",
    description: "Removes.",
    agent: { model: "inner", tools: [tool] }
  })
  return { inner, ran }
}

const delegating = ScriptedProvider.toolCall("inner", { prompt: "x" })

describe("requests to a person", () => {
  it.effect("reject the call where the person throws", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const throwing = () => {
        throw new Error("no terminal")
      }
      const layer = policy({ asked: { approve: throwing, answer: throwing } })
      const played = yield* Effect.provide(agent([calls("a", "ok"), done], { tools: [tool] }), layer)
      const { newMessages, status } = yield* played.agent.prompt("go")
      assert.deepStrictEqual([status, ran], ["completed", ["ok"]])
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: the approval failed: no terminal",
        "removed ok"
      ])
      assert.deepStrictEqual(broken(played.events), [])
    })
  )

  for (const restarts of [false, true]) {
    const when = restarts ? "after a restart" : "in one process"
    it.effect(`wait beside a hand-off for the tools of the agent that called them, ${when}`, () =>
      Effect.gen(function* () {
        const { ran, tool } = recorder()
        const billing = Agent.handOff({ to: "billing", description: "x", agent: { model: "billing" } })
        const { inProcess, requests } = yield* processes(
          [
            ScriptedProvider.toolCalls(
              { name: "transfer_to_billing", params: {} },
              { name: "remove", params: { path: "a" } }
            ),
            done
          ],
          (session) => Agent.make({ model: "m", tools: [billing, tool], session })
        )
        const begin = (made: Agent.Agent) => made.prompt("go")
        const end = Effect.fnUntraced(function* (made: Agent.Agent) {
          yield* approve(made, (yield* made.requests).approvals[0])
          return yield* made.continue
        })
        const { newMessages } = restarts
          ? yield* Effect.andThen(inProcess(begin), inProcess(end))
          : yield* inProcess((made) => Effect.andThen(begin(made), end(made)))
        assert.deepStrictEqual(ran, ["a"])
        assert.deepStrictEqual(resultTexts(newMessages), ["billing continues the conversation.", "removed a"])
        assert.deepStrictEqual(
          (yield* requests).map(({ model }) => model),
          ["m", "billing"]
        )
      })
    )
  }

  it.effect("take params in place of theirs after a hand-off and a restart", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const billing = Agent.handOff({
        to: "billing",
        description: "x",
        agent: { model: "billing", tools: [tool] }
      })
      const { inProcess } = yield* processes(
        [ScriptedProvider.toolCall("transfer_to_billing", {}), calls("a"), done],
        (session) => Agent.make({ model: "m", tools: [billing], session })
      )
      yield* inProcess((made) => made.prompt("go"))
      yield* inProcess(
        Effect.fnUntraced(function* (made) {
          const [request] = (yield* made.requests).approvals
          const refused = yield* Effect.flip(approve(made, request, { params: { file: "b" } }))
          assert.strictEqual(refused._tag, "InvalidAnswer")
          yield* approve(made, request, { params: { path: "b" } })
          yield* made.continue
        })
      )
      assert.deepStrictEqual(ran, ["b"])
    })
  )

  it.effect("of an agent inside take params in place of theirs after a restart", () =>
    Effect.gen(function* () {
      const { inner, ran } = nested()
      const { inProcess } = yield* processes([delegating, calls("a"), done, done], (session) =>
        Agent.make({ model: "m", tools: [inner], session })
      )
      yield* inProcess((made) => made.prompt("go"))
      const { status } = yield* inProcess(
        Effect.fnUntraced(function* (made) {
          yield* approve(made, (yield* made.requests).approvals[0], { params: { path: "b" } })
          return yield* made.continue
        })
      )
      assert.deepStrictEqual([status, ran], ["completed", ["b"]])
    })
  )

  it.effect(
    "of an agent inside fail the call whose tool does not take the params given after a restart",
    () =>
      Effect.gen(function* () {
        const { inner, ran } = nested()
        const { inProcess, requests } = yield* processes([delegating, calls("a"), done, done], (session) =>
          Agent.make({ model: "m", tools: [inner], session })
        )
        yield* inProcess((made) => made.prompt("go"))
        yield* inProcess(
          Effect.fnUntraced(function* (made) {
            yield* approve(made, (yield* made.requests).approvals[0], { params: { file: "b" } })
            yield* made.continue
          })
        )
        assert.deepStrictEqual(ran, [])
        const [, , last] = yield* requests
        assert.match(resultTexts(last?.messages)[0] ?? "", /path/)
      })
  )

  it.effect("of an agent inside are closed by a new prompt, in words that are true", () =>
    Effect.gen(function* () {
      const { inner, ran } = nested()
      const scripted = yield* ScriptedProvider.make([delegating, calls("ok", "a"), done])
      const made = yield* Effect.provide(Agent.make({ model: "m", tools: [inner] }), scripted.layer)
      assert.strictEqual((yield* made.prompt("go")).status, "suspended")
      const { newMessages } = yield* made.prompt("never mind")
      assert.deepStrictEqual(ran, ["ok"])
      assert.deepStrictEqual(texts(newMessages), [
        "Tool inner waited for a person, and the user wrote a message first. It may have had effects: check before you call it again.",
        "never mind",
        "done"
      ])
      assert.deepStrictEqual((yield* made.requests).approvals, [])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("of an agent inside that then failed are not those of a later call with the same id", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const inner = Agent.asTool({
        name: "inner",
        description: "Removes.",
        agent: { model: "inner", tools: [tool], limits: { maxTurns: 1 } }
      })
      const call = (prompt: string) =>
        ScriptedProvider.toolCalls({ name: "inner", params: { prompt }, id: "call_1" })
      const scripted = yield* ScriptedProvider.make([], {
        exhausted: ({ messages, model }) => {
          const results = resultTexts(messages).length
          if (model !== "inner") return [call("first"), call("second")][results] ?? done
          return texts(messages)[0] === "first" ? calls("a") : ScriptedProvider.text(texts(messages).join())
        }
      })
      const made = yield* Effect.provide(Agent.make({ model: "m", tools: [inner] }), scripted.layer)
      yield* made.prompt("go")
      yield* approve(made, (yield* made.requests).approvals[0], { decision: "reject" })
      const { newMessages } = yield* made.continue
      assert.deepStrictEqual(resultTexts(newMessages), [
        "The agent inner failed: Limit maxTurns reached: 1, allowed 1",
        "second"
      ])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("a call that a hook has run again begins anew, with a session too", () =>
    Effect.gen(function* () {
      const inner = Agent.asTool({ name: "inner", description: "x", agent: { model: "inner" } })
      let times = 0
      const again = Hook.afterTool(inner, () => Effect.succeed({ retry: times++ === 0 }))
      const { inProcess, requests } = yield* processes(
        [delegating, ScriptedProvider.text("one"), ScriptedProvider.text("two"), done],
        (session) => Agent.make({ model: "m", tools: [inner], hooks: [again], session })
      )
      const { newMessages } = yield* inProcess((made) => made.prompt("go"))
      assert.deepStrictEqual(resultTexts(newMessages), ["two"])
      assert.deepStrictEqual(
        (yield* requests).slice(1, 3).map(({ messages }) => texts(messages)),
        [["x"], ["x"]]
      )
    })
  )

  it.effect("of an agent inside are gone with their turn, also for a call with the same id", () =>
    Effect.gen(function* () {
      const { inner } = nested()
      const call = (prompt: string) =>
        ScriptedProvider.toolCalls({ name: "inner", params: { prompt }, id: "call_1" })
      const scripted = yield* ScriptedProvider.make([
        call("first"),
        calls("a"),
        call("second"),
        ScriptedProvider.text("two"),
        done
      ])
      const made = yield* Effect.provide(Agent.make({ model: "m", tools: [inner] }), scripted.layer)
      yield* made.prompt("go")
      const { newMessages } = yield* made.prompt("something else")
      assert.strictEqual(resultTexts(newMessages).at(-1), "two")
      assert.deepStrictEqual(texts((yield* scripted.requests)[3]?.messages ?? []), ["second"])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("of an agent inside are not those of a call around it with the same id, after a restart", () =>
    Effect.gen(function* () {
      const { inner, ran } = nested()
      const outer = recorder()
      const remove = (path: string) => ({ name: "remove", params: { path }, id: "same" })
      const { inProcess } = yield* processes(
        [
          ScriptedProvider.toolCalls({ name: "inner", params: { prompt: "x" } }, remove("b")),
          ScriptedProvider.toolCalls(remove("a")),
          done,
          done
        ],
        (session) =>
          Agent.make({ model: "m", tools: [inner, outer.tool], session, toolExecution: "parallel" })
      )
      yield* inProcess((made) => made.prompt("go"))
      const { newMessages } = yield* inProcess(
        Effect.fnUntraced(function* (made) {
          const requests = (yield* made.requests).approvals
          const inside = requests.find(({ path }) => path !== undefined)
          const around = requests.find(({ path }) => path === undefined)
          yield* approve(made, inside)
          yield* approve(made, around, { decision: "reject" })
          return yield* made.continue
        })
      )
      assert.deepStrictEqual([ran, outer.ran], [["a"], []])
      assert.deepStrictEqual(resultTexts(newMessages), ["done", "Tool execution was rejected: not approved"])
    })
  )

  it.effect("are rejected inside of a tool whose run could not be resumed", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const delegate = Tool.make({
        name: "inner",
        description: "Runs an agent of its own.",
        execute: () =>
          Effect.gen(function* () {
            const own = yield* agent([calls("a"), done], { tools: [tool] })
            return resultTexts((yield* own.agent.prompt("go")).newMessages).join()
          })
      })
      const played = yield* agent([delegating, done], { tools: [delegate] })
      const { newMessages, status } = yield* played.agent.prompt("go")
      assert.deepStrictEqual([status, ran], ["completed", []])
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: it needs a person to answer, and this run has none"
      ])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("reach subscribers before the person who is asked at once", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const log: Array<string> = []
      const person: Approval.Person = {
        approve: () => Effect.sync(() => (log.push("asked"), { decision: "approve" as const })),
        answer: () => Effect.fail("none")
      }
      const played = yield* Effect.provide(
        agent([calls("a"), done], { tools: [tool] }),
        policy({ asked: person })
      )
      yield* played.agent.subscribe((event) =>
        event._tag === "ApprovalRequested"
          ? Effect.andThen(
              settle(),
              Effect.sync(() => log.push("seen"))
            )
          : Effect.void
      )
      yield* played.agent.prompt("go")
      assert.deepStrictEqual(log, ["seen", "asked"])
    })
  )

  it.effect("that expire while the params of an answer are decoded take no answer", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const decoding = yield* Deferred.make<void>()
      const decode = SchemaGetter.transformEffect((path: string) =>
        path === "slow"
          ? Effect.as(Effect.andThen(Deferred.succeed(decoding, undefined), Effect.sleep("2 hours")), path)
          : Effect.succeed(path)
      )
      const Path = Schema.String.pipe(
        Schema.decodeTo(Schema.String, { decode, encode: SchemaGetter.passthrough() })
      )
      const tool = Tool.make({
        name: "remove",
        description: "Removes a file.",
        params: Schema.Struct({ path: Path }),
        execute: ({ path }) => Effect.sync(() => (ran.push(path), "removed"))
      })
      const played = yield* agent([calls("a"), done], { tools: [tool] })
      yield* played.agent.prompt("go")
      const [request] = (yield* played.agent.requests).approvals
      const answering = yield* Effect.forkChild(
        Effect.flip(approve(played.agent, request, { params: { path: "slow" } })),
        { startImmediately: true }
      )
      yield* Deferred.await(decoding)
      yield* TestClock.adjust("2 hours")
      assert.strictEqual((yield* Fiber.join(answering))._tag, "RequestNotFound")
      yield* played.agent.continue
      assert.deepStrictEqual([ran, outcomes(played.events)], [[], ["expired"]])
    }).pipe(Effect.provide(policy({ expiresAfter: "1 hour" })))
  )

  it.effect("that are questions keep an answer that was given before a restart", () =>
    Effect.gen(function* () {
      const { inProcess } = yield* processes(
        [ScriptedProvider.toolCall("ask_user", { question: "Where?" }), done],
        (session) => Agent.make({ model: "m", tools: [Approval.askUser()], session }),
        Approval.layer({ otherwise: "allow", asked: "defer" })
      )
      yield* inProcess(
        Effect.fnUntraced(function* (made) {
          yield* made.prompt("go")
          const [question] = (yield* made.requests).questions
          yield* made.answer(question?.questionId ?? "", { answer: "Oslo", by: "ada" })
        })
      )
      const { newMessages } = yield* inProcess((made) => made.continue)
      assert.deepStrictEqual(resultTexts(newMessages), ["Oslo"])
    })
  )

  it.effect("are rejected after a restart if the store has taken a secret out of their params", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const redact = (entry: SessionEntry.Known) => {
        const read = SessionEntry.decode(SessionEntry.encode(entry).replaceAll("hunter2", "[removed]"))
        return Result.isSuccess(read) && read.success.type !== "unknown" ? read.success : entry
      }
      const { inProcess } = yield* processes(
        [calls("hunter2", "b"), done],
        (session) => Agent.make({ model: "m", tools: [tool], session }),
        policy(),
        { redact }
      )
      yield* inProcess((made) => made.prompt("go"))
      const { newMessages } = yield* inProcess(
        Effect.fnUntraced(function* (made) {
          const requests = (yield* made.requests).approvals
          assert.deepStrictEqual(requests[0]?.params, { path: "[removed]" })
          for (const request of requests) yield* approve(made, request)
          return yield* made.continue
        })
      )
      assert.deepStrictEqual(ran, ["b"])
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool execution was rejected: the approval is for other params",
        "removed b"
      ])
    })
  )

  for (const asked of ["wait", "defer"] as const)
    it.effect(`that are questions of an agent inside have the path to it, where the run would ${asked}`, () =>
      Effect.gen(function* () {
        const inner = Agent.asTool({
          name: "inner",
          description: "Asks.",
          agent: { model: "inner", tools: [Approval.askUser()] }
        })
        const asking = ScriptedProvider.toolCalls(
          { name: "ask_user", params: { question: "Where?" } },
          { name: "ask_user", params: { question: "When?", schema: { type: "integer" } } }
        )
        const { inProcess, requests } = yield* processes(
          [delegating, asking, done, done],
          (session) => Agent.make({ model: "m", tools: [inner], session }),
          Approval.layer({ otherwise: "allow", asked })
        )
        const seen: Array<AgentEvent.AgentEvent> = []
        const answer = Effect.fnUntraced(function* (made: Agent.Agent) {
          const [where, when] = (yield* made.requests).questions
          assert.deepStrictEqual([where?.question, when?.question], ["Where?", "When?"])
          assert.deepStrictEqual(
            where?.path?.map(({ toolCallId }) => toolCallId),
            ["call-1"]
          )
          assert.deepStrictEqual(when?.path, where?.path)
          const wrong = made.answer(when?.questionId ?? "", { answer: "soon" })
          assert.strictEqual((yield* Effect.flip(wrong))._tag, "InvalidAnswer")
          yield* made.answer(when?.questionId ?? "", { answer: 5 })
          yield* made.answer(where?.questionId ?? "", { answer: "Oslo", by: "ada" })
        })
        if (asked === "defer") {
          yield* inProcess((made) => made.prompt("go"))
          yield* inProcess(answer)
          yield* inProcess((made) => made.continue)
        } else
          yield* inProcess(
            Effect.fnUntraced(function* (made) {
              yield* made.subscribe((event) => Effect.sync(() => seen.push(event)))
              const run = yield* Effect.forkChild(made.prompt("go"), { startImmediately: true })
              yield* settle()
              yield* answer(made)
              yield* Fiber.join(run)
              const paths = seen.flatMap((event) =>
                event._tag === "QuestionAsked" || event._tag === "QuestionAnswered"
                  ? [event.path?.length]
                  : []
              )
              assert.deepStrictEqual(paths, [1, 1, 1, 1])
            })
          )
        assert.deepStrictEqual(resultTexts((yield* requests)[2]?.messages), ["Oslo", "5"])
      })
    )

  it.effect("take one answer of two fibers, and one run of two callers that continue", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const played = yield* agent([calls("a", "b"), done], { tools: [tool] })
      yield* played.agent.prompt("go")
      const [a, b] = (yield* played.agent.requests).approvals
      const answers = yield* Effect.all(
        [
          approve(played.agent, a, { params: { path: "one" } }),
          approve(played.agent, a, { decision: "reject" }),
          approve(played.agent, b, { decision: "reject" }),
          approve(played.agent, b, { params: { path: "two" } })
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([answers[0], answers[2]], [answers[1], answers[3]])
      const runs = yield* Effect.all(
        [Effect.exit(played.agent.continue), Effect.exit(played.agent.continue)],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        runs.map(({ _tag }) => _tag),
        ["Success", "Failure"]
      )
      const expected = [answers[0], answers[2]].flatMap(({ decision, params }) =>
        decision === "approve" ? [params] : []
      )
      assert.deepStrictEqual(
        ran.map((path) => ({ path })),
        expected
      )
    }).pipe(Effect.provide(policy()))
  )

  it.effect("stop the time of a run until all of them have answers", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const played = yield* agent([calls("a", "b"), done], {
        tools: [tool],
        limits: { executionTime: "1 minute" }
      })
      const both = yield* Latch.make(false)
      let count = 0
      yield* played.agent.subscribe((event) =>
        event._tag === "ApprovalRequested" && ++count === 2 ? both.open : Effect.void
      )
      const run = yield* Effect.forkChild(played.agent.prompt("go"), { startImmediately: true })
      yield* both.await
      yield* settle()
      const [a, b] = (yield* played.agent.requests).approvals
      yield* approve(played.agent, a)
      yield* settle()
      yield* TestClock.adjust("1 hour")
      yield* approve(played.agent, b)
      assert.deepStrictEqual([(yield* Fiber.join(run)).status, ran], ["completed", ["a", "b"]])
    }).pipe(Effect.provide(policy({ asked: "wait" })))
  )

  it.effect("wait although a call of an earlier turn had the same id", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const call = (path: string) =>
        ScriptedProvider.toolCalls({ name: "remove", params: { path }, id: "same" })
      const played = yield* agent([call("ok"), call("a"), done], { tools: [tool] })
      yield* played.agent.prompt("go")
      yield* approve(played.agent, (yield* played.agent.requests).approvals[0])
      const { newMessages } = yield* played.agent.continue
      assert.deepStrictEqual([ran, resultTexts(newMessages)], [["ok", "a"], ["removed a"]])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("that were rejected say so when a new prompt closes their turn", () =>
    Effect.gen(function* () {
      const { tool } = recorder()
      const played = yield* agent([calls("a"), done], { tools: [tool] })
      yield* played.agent.prompt("go")
      yield* approve(played.agent, (yield* played.agent.requests).approvals[0], {
        decision: "reject",
        reason: "keep a"
      })
      const { newMessages } = yield* played.agent.prompt("never mind")
      assert.deepStrictEqual(resultTexts(newMessages), ["Tool execution was rejected: keep a"])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("leave a message that was queued meanwhile for the turn after them", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const played = yield* agent([calls("a"), done], { tools: [tool] })
      yield* played.agent.prompt("go")
      yield* played.agent.steer("hurry")
      assert.strictEqual((yield* played.agent.continue).status, "suspended")
      yield* approve(played.agent, (yield* played.agent.requests).approvals[0])
      const { newMessages } = yield* played.agent.continue
      assert.deepStrictEqual([ran, texts(newMessages)], [["a"], ["removed a", "hurry", "done"]])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("keep the latest answers for a caller who answers once more, and no others", () =>
    Effect.gen(function* () {
      const requests = new Requests()
      const open = (number: number) =>
        requests.add(OpenQuestion, {
          request: {
            runId: "run",
            toolCallId: "call",
            questionId: `qst_${number}`,
            question: "Where?",
            schema: true
          }
        })
      const answer = (number: number) => requests.answer(`qst_${number}`, { answer: "Oslo" })
      yield* Effect.forEach(range(1001), (number) =>
        Effect.andThen(
          Effect.sync(() => open(number)),
          answer(number)
        )
      )
      open(1001)
      assert.strictEqual((yield* Effect.flip(answer(0)))._tag, "RequestNotFound")
      assert.deepStrictEqual(yield* answer(1), { answer: "Oslo" })
    })
  )

  it.effect("are forgotten where the application has replaced the messages during their run", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const played = yield* agent([calls("ok", "a"), done], { tools: [tool] })
      yield* played.agent.subscribe((event) =>
        event._tag === "ToolInvoked"
          ? Effect.orDie(played.agent.setMessages([Message.user("other")]))
          : Effect.void
      )
      yield* played.agent.prompt("go")
      assert.deepStrictEqual((yield* played.agent.requests).approvals, [])
      const { messages } = played.agent.state.getUnsafe()
      assert.deepStrictEqual(texts(messages), ["other"])
      assert.strictEqual((yield* played.agent.continue).text, "done")
      assert.deepStrictEqual(ran, ["ok"])
      assert.deepStrictEqual(texts((yield* played.requests).at(-1)?.messages ?? []), ["other"])
    }).pipe(Effect.provide(policy()))
  )

  it.effect("that are questions expire after a restart too", () =>
    Effect.gen(function* () {
      const { inProcess } = yield* processes(
        [ScriptedProvider.toolCall("ask_user", { question: "Where?" }), done],
        (session) => Agent.make({ model: "m", tools: [Approval.askUser()], session }),
        Approval.layer({ otherwise: "allow", asked: "defer", expiresAfter: "1 hour" })
      )
      yield* inProcess((made) => made.prompt("go"))
      yield* TestClock.adjust("1 hour")
      const { newMessages } = yield* inProcess(
        Effect.fnUntraced(function* (made) {
          const [question] = (yield* made.requests).questions
          assert.strictEqual(question?.expiresAt, 3_600_000)
          const late = yield* Effect.flip(made.answer(question?.questionId ?? "", { answer: "x" }))
          assert.strictEqual(late._tag, "RequestNotFound")
          return yield* made.continue
        })
      )
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Not answered: the time to answer this question is over."
      ])
    })
  )

  it.effect(
    "lost with their process are closed by a new prompt, and a call that had begun has no known end",
    () =>
      Effect.gen(function* () {
        const message = Message.assistant(
          ["begun", "unseen"].map((id) => ({
            type: "toolCall",
            id,
            name: "remove",
            rawArguments: `{"path":"${id}"}`,
            params: { path: id }
          })),
          { stopReason: "toolUse" }
        )
        const { ran, tool } = recorder()
        const session: Session.Session = {
          id: "s1",
          restored: {
            messages: [Message.user("go"), message],
            options: {},
            queues: { steering: [], followUp: [] },
            lostRun: "run_lost",
            open: {
              runId: "run_lost",
              message,
              isSuspended: false,
              ended: [],
              begun: ["begun"],
              approvals: [],
              questions: []
            }
          },
          record: () => Effect.void,
          child: () => Effect.die("no agent inside")
        }
        const played = yield* agent([done], { tools: [tool], session })
        const { newMessages } = yield* played.agent.prompt("and now?")
        assert.deepStrictEqual(ran, [])
        assert.deepStrictEqual(resultTexts(newMessages), [
          "The process ended while tool remove ran, and its end is not known. It may have had effects: check before you call it again.",
          "Not run: the process ended before this call began."
        ])
      })
  )
})
