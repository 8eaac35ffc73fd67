import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Agent, Hook, Message, type Provider, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { agent, hookAt, say } from "./play.ts"

const call = ScriptedProvider.toolCall("a", {})
const script = [call, call, call, ScriptedProvider.text("done")]

/** A message that counts how often it is looked at. No provider is sent it. */
const counted = () => {
  let reads = 0
  const data = Object.defineProperty({}, "seen", { enumerable: true, get: () => ++reads })
  return { message: Message.custom("note", data), reads: () => reads }
}

const played = Effect.fnUntraced(function* (
  options: Partial<Agent.AgentOptions<[], ReadonlyArray<Hook.Runnable>>>
) {
  const one = yield* agent(script, { ...options, tools: [say("a")] })
  yield* one.agent.prompt("hi")
})

describe("the input of a hook", () => {
  it.effect("shows its members when it is printed", () =>
    Effect.gen(function* () {
      let printed = ""
      const print = Hook.beforeTool((input) => Effect.sync(() => void (printed ||= inspect(input))))
      yield* played({ hooks: [print] })
      assert.match(printed, /turn: 1,/)
      assert.match(printed, /params: \{\}/)
      assert.notMatch(printed, /Getter/)
    })
  )
})

describe("the model, system prompt and tools that hooks are shown", () => {
  interface Shown {
    readonly model: string
    readonly system?: string
    readonly tools?: ReadonlyArray<Provider.ToolDefinition>
  }

  it.effect("are those of the request of the turn, and before a turn those of the options", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const look = (point: Hook.Point) => (shown: Shown) =>
        Effect.sync(() => {
          const { model, system, tools } = shown
          seen.push([point, model, system, tools?.map(({ name }) => name).join()])
        })
      const one = yield* agent([call, ScriptedProvider.text("done")], {
        system: "calm",
        tools: [say("a"), say("b")],
        hooks: [
          Hook.pauseCheck(look("pauseCheck")),
          Hook.transformMessages((input) => Effect.as(look("transformMessages")(input), input.messages)),
          Hook.beforeModel((input) => {
            const changed = {
              model: "big",
              system: "bold",
              tools: input.tools.filter(({ name }) => name === "a")
            }
            return Effect.as(look("beforeModel")(input), input.turn === 1 ? { modified: changed } : {})
          }),
          Hook.afterModel(look("afterModel")),
          Hook.beforeTool(look("beforeTool")),
          Hook.approveTool(look("approveTool")),
          Hook.afterTool(look("afterTool")),
          Hook.prepareNextTurn((input) =>
            Effect.as(look("prepareNextTurn")(input), { model: "small", activeTools: ["b"] })
          ),
          Hook.shouldStopAfterTurn((input) => Effect.as(look("shouldStopAfterTurn")(input), false))
        ]
      })
      yield* one.agent.prompt("hi")
      assert.deepStrictEqual(seen, [
        ["pauseCheck", "m", "calm", undefined],
        ["transformMessages", "m", "calm", "a,b"],
        ["beforeModel", "m", "calm", "a,b"],
        ["afterModel", "big", "bold", "a"],
        ["beforeTool", "big", "bold", "a"],
        ["approveTool", "big", "bold", "a"],
        ["afterTool", "big", "bold", "a"],
        ["prepareNextTurn", "big", "bold", "a"],
        ["shouldStopAfterTurn", "big", "bold", "a"],
        ["pauseCheck", "small", "calm", undefined],
        ["transformMessages", "small", "calm", "b"],
        ["beforeModel", "small", "calm", "b"],
        ["afterModel", "small", "calm", "b"],
        ["prepareNextTurn", "small", "calm", "b"],
        ["shouldStopAfterTurn", "small", "calm", "b"]
      ])
    })
  )
})

describe("the time that a tool took", () => {
  it.effect("is shown to afterTool hooks", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const slow = Tool.make({
        name: "slow",
        description: "",
        execute: () => Effect.as(TestClock.adjust("3 seconds"), "done")
      })
      const hook = Hook.afterTool(({ durationMs }) => Effect.sync(() => void times.push(durationMs)))
      const one = yield* agent([ScriptedProvider.toolCall("slow", {}), ScriptedProvider.text("done")], {
        hooks: [hook],
        tools: [slow]
      })
      yield* one.agent.prompt("hi")
      assert.deepStrictEqual(times, [3_000])
    })
  )
})

describe("the history that hooks are shown", () => {
  it.effect("costs nothing where no hook looks at it", () =>
    Effect.gen(function* () {
      const { message, reads } = counted()
      const asked: Array<string> = []
      const points: ReadonlyArray<Hook.Point> = [
        "pauseCheck",
        "beforeModel",
        "afterModel",
        "beforeTool",
        "afterTool",
        "prepareNextTurn",
        "shouldStopAfterTurn",
        "transformMessages"
      ]
      const hooks = points.map((point) => hookAt(point, () => Effect.sync(() => void asked.push(point))))
      const one = yield* agent(script, { messages: [message], hooks, tools: [say("a")] })
      // The agent has checked its messages by now.
      const before = reads()
      yield* one.agent.prompt("hi")
      assert.isAbove(asked.length, 20)
      assert.strictEqual(reads(), before)
    })
  )

  it.effect("is copied once a message, however many turns and hooks look at it", () =>
    Effect.gen(function* () {
      const { message, reads } = counted()
      const counts: Array<number> = []
      const seen: Array<ReadonlyArray<Message.Message>> = []
      const look = ({ messages }: { readonly messages: ReadonlyArray<Message.Message> }) =>
        Effect.sync(() => {
          counts.push(reads())
          seen.push(messages)
        })
      yield* played({ messages: [message], hooks: [Hook.afterModel(look), Hook.prepareNextTurn(look)] })
      assert.deepStrictEqual(new Set(counts), new Set(counts.slice(0, 1)))
      assert.isAbove(counts[0] ?? 0, 0)
      for (const [index, messages] of seen.entries()) {
        assert.isTrue(Object.isFrozen(messages))
        assert.strictEqual(messages[0], seen[0]?.[0])
        const before = seen[index - 1] ?? []
        assert.isAtLeast(messages.length, before.length)
        assert.isTrue(before.every((one, at) => one === messages[at]))
      }
      assert.deepStrictEqual(
        seen.map(({ length }) => length),
        [3, 4, 5, 6, 7, 8, 9, 9]
      )
    })
  )

  it.effect("is what it is now: replaced, shortened, and with another beginning", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<string>> = []
      const one = yield* agent(
        Array.from({ length: 5 }, () => ScriptedProvider.text("ok")),
        {
          hooks: [
            Hook.afterModel(({ messages }) => Effect.sync(() => void seen.push(messages.map(Message.textOf))))
          ]
        }
      )
      const [first, second] = [Message.user("1"), Message.user("2")]
      for (const messages of [[first, second], [first], [first, Message.user("3")], [second, first], []]) {
        yield* one.agent.setMessages(messages)
        yield* one.agent.prompt("hi")
      }
      assert.deepStrictEqual(
        seen,
        [["1", "2"], ["1"], ["1", "3"], ["2", "1"], []].map((texts) => [...texts, "hi", "ok"])
      )
    })
  )
})
