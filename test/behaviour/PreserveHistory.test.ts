import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { Agent, Approval, Message, type Session } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { approve, calls, done, recorder } from "./approving.ts"
import { agent, gated, texts } from "./play.ts"

const answers = ["1", "2", "3", "4"].map((text) => ScriptedProvider.text(text))

describe("preserveHistory", () => {
  it.effect("false begins each prompt from the first messages, and true from the last run (row 232)", () =>
    Effect.gen(function* () {
      const sent = Effect.fnUntraced(function* (preserveHistory?: boolean) {
        const script = yield* agent(answers, {
          messages: [Message.user("rules"), Message.assistant("ok")],
          ...(preserveHistory === undefined ? {} : { preserveHistory })
        })
        yield* script.agent.prompt("a")
        const { newMessages } = yield* script.agent.prompt("b")
        assert.deepStrictEqual(texts(newMessages), ["b", "2"])
        const { messages } = yield* script.agent.state.get
        const requests = yield* script.requests
        return [texts(messages), texts(requests[1]?.messages ?? [])]
      })
      const once = [
        ["rules", "ok", "b", "2"],
        ["rules", "ok", "b"]
      ]
      const kept = [
        ["rules", "ok", "a", "1", "b", "2"],
        ["rules", "ok", "a", "1", "b"]
      ]
      assert.deepStrictEqual(yield* sent(false), once)
      assert.deepStrictEqual(yield* sent(true), kept)
      assert.deepStrictEqual(yield* sent(), kept)
    })
  )

  it.effect("false keeps the queues, and what the application puts in place of the first messages", () =>
    Effect.gen(function* () {
      const script = yield* agent(answers, { messages: [Message.user("rules")], preserveHistory: false })
      yield* script.agent.prompt("a")
      yield* script.agent.setMessages([Message.user("others"), Message.assistant("ok")])
      yield* script.agent.followUp("later")
      yield* script.agent.prompt("b")
      const asked = (yield* script.requests).map(({ messages }) => texts(messages))
      assert.deepStrictEqual(asked.slice(1), [
        ["others", "ok", "b"],
        ["others", "ok", "b", "2", "later"]
      ])
      yield* script.agent.reset
      yield* script.agent.prompt("c")
      assert.deepStrictEqual(texts((yield* script.agent.state.get).messages), ["c", "4"])
    })
  )

  it.effect("false keeps the summary of the first messages, and lets a summary of a run go", () =>
    Effect.gen(function* () {
      const messages = [Message.user("x"), Message.assistant("y"), Message.user("z"), Message.assistant("w")]
      const compaction = { summary: "They talked.", firstKept: messages[2]?.id ?? "" }
      const script = yield* agent(answers, { messages, compaction, preserveHistory: false })
      yield* script.agent.prompt("a")
      yield* script.agent.prompt("b")
      const [first, second] = (yield* script.requests).map(({ messages }) => messages.length)
      assert.strictEqual(first, second)
      const state = yield* script.agent.state.get
      assert.strictEqual(state.compaction?.summary, "They talked.")
    })
  )

  it.effect("false lets a suspended run continue, and a prompt forget it", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const script = yield* agent([calls("a"), done, calls("b"), done], {
        tools: [tool],
        preserveHistory: false
      })
      assert.strictEqual((yield* script.agent.prompt("x")).status, "suspended")
      const [request] = (yield* script.agent.requests).approvals
      yield* approve(script.agent, request)
      assert.strictEqual((yield* script.agent.continue).text, "done")
      assert.strictEqual((yield* script.agent.prompt("y")).status, "suspended")
      assert.deepStrictEqual(texts((yield* script.agent.prompt("z")).newMessages), ["z", "done"])
      assert.deepStrictEqual([(yield* script.agent.requests).approvals, ran], [[], ["a"]])
    }).pipe(Effect.provide(Approval.layer({ asked: "defer" })))
  )

  it.effect("false changes nothing during a run", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const script = yield* agent([ScriptedProvider.toolCall("gated", {}), ...answers], {
        tools: [tool],
        preserveHistory: false
      })
      const run = yield* Effect.forkChild(script.agent.prompt("x"))
      yield* began.await
      assert.isTrue(Option.isNone(yield* Effect.option(script.agent.prompt("y"))))
      yield* go.open
      assert.strictEqual((yield* Fiber.join(run)).newMessages.length, 4)
    })
  )

  it.effect("false is refused beside a session, whose purpose is to keep", () =>
    Effect.gen(function* () {
      const session: Session.Session = {
        id: "s",
        restored: { messages: [], options: {}, queues: { steering: [], followUp: [] } },
        record: () => Effect.void,
        child: () => Effect.never
      }
      const error = yield* Effect.flip(
        Agent.make({ model: "m", preserveHistory: false, session }).pipe(
          Effect.provide(ScriptedProvider.layer([]))
        )
      )
      assert.include(error.message, "preserveHistory is false beside session")
    })
  )
})
