import { assert, describe, it } from "@effect/vitest"
import { Message, Transcript } from "effect-agent"

const range = (length: number) => Array.from({ length }, (_, index) => index)
const call = (id: string): Message.ToolCall => ({
  type: "toolCall",
  id,
  name: "t",
  rawArguments: "{}",
  params: {}
})
const calls = (...ids: ReadonlyArray<string>) => Message.assistant(ids.map(call), { stopReason: "toolUse" })
const result = (id: string) => Message.toolResult({ id, name: "t" }, `result ${id}`)
const shape = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => (message.role === "toolResult" ? `result ${message.toolCallId}` : message.role))

describe("Transcript", () => {
  describe("repair", () => {
    it("gives the same array when nothing is wrong", () => {
      const messages = [
        Message.user("hi"),
        calls("a", "b"),
        result("a"),
        result("b"),
        Message.assistant("done")
      ]
      assert.strictEqual(Transcript.repair(messages).messages, messages)
    })

    it("answers a call that has no result, honestly, and with the same object each time", () => {
      const messages = [Message.user("hi"), calls("a", "b"), result("b")]
      const { dropped, messages: repaired } = Transcript.repair(messages)
      assert.deepStrictEqual(shape(repaired), ["user", "assistant", "result a", "result b"])
      assert.strictEqual(dropped, 0)
      assert.strictEqual(repaired[2], Transcript.repair(messages).messages[2])
      assert.isTrue(repaired[2]?.role === "toolResult" && repaired[2].isError)
    })

    it("drops failed answers, their results, orphans and doubles, and puts results in order (row 47)", () => {
      const failed = Message.assistant([call("x")], { stopReason: "aborted" })
      const messages = [
        result("q"),
        Message.user("hi"),
        failed,
        result("x"),
        calls("a", "b"),
        result("b"),
        result("a"),
        result("a")
      ]
      const { dropped, messages: repaired } = Transcript.repair(messages)
      assert.deepStrictEqual(shape(repaired), ["user", "assistant", "result a", "result b"])
      assert.strictEqual(dropped, 4)
      assert.deepStrictEqual(Transcript.violations(repaired), [])
    })

    it("puts results behind their answer at once, before what was said between", () => {
      const messages = [Message.user("hi"), calls("a"), Message.user("wait"), result("a")]
      const { dropped, messages: repaired } = Transcript.repair(messages)
      assert.deepStrictEqual(shape(repaired), ["user", "assistant", "result a", "user"])
      assert.strictEqual(dropped, 0)
      assert.deepStrictEqual(Transcript.violations(repaired), [])
    })

    it("lets the first of two calls with one id stand, and its result", () => {
      const thought = Message.text("both")
      const answer = Message.assistant([thought, call("a"), call("b"), call("a")], { stopReason: "toolUse" })
      const messages = [Message.user("hi"), answer, result("a"), result("b"), result("a")]
      const { messages: repaired } = Transcript.repair(messages)
      assert.deepStrictEqual(shape(repaired), ["user", "assistant", "result a", "result b"])
      assert.deepStrictEqual(Transcript.violations(repaired), [])
      assert.strictEqual(repaired[1], Transcript.repair(messages).messages[1])
      assert.strictEqual(repaired[1]?.id, answer.id)
    })

    it("looks at a conversation again when it does not just go on", () => {
      const start: Array<Message.Message> = [Message.user("hi"), calls("a"), result("a")]
      const violated = (...messages: ReadonlyArray<Message.Message>) =>
        Transcript.violations(Transcript.repair(messages).messages)
      assert.strictEqual(Transcript.repair(start).messages, start)
      start.push(calls("b"))
      assert.deepStrictEqual(shape(Transcript.repair(start).messages).slice(3), ["assistant", "result b"])
      start.push(result("b"))
      assert.strictEqual(Transcript.repair(start).messages, start)
      const [first = Message.user("hi"), second = first] = start
      assert.deepStrictEqual(violated(...start, result("b")), [])
      assert.deepStrictEqual(violated(first, second), [])
      assert.deepStrictEqual(violated(first, second, Message.user("wait"), result("a")), [])
      assert.deepStrictEqual(violated(first, ...start.slice(2)), [])
    })

    it("keeps calls of different answers apart although a vendor repeats ids", () => {
      const messages = [Message.user("hi"), calls("a"), result("a"), calls("a"), result("a")]
      assert.deepStrictEqual(Transcript.violations(messages), [])
      assert.strictEqual(Transcript.repair(messages).messages, messages)
    })
  })

  it("names blank ids, and repair makes up ids for them (row 176)", () => {
    const whole = calls("", "b", " ")
    const messages = [
      Message.user("hi"),
      whole,
      result(""),
      result("b"),
      result(" "),
      Message.assistant("ok")
    ]
    assert.deepStrictEqual(Transcript.violations(messages), [
      "a call of t has a blank id",
      "a call of t has a blank id",
      "a result of t has a blank id",
      "a result of t has a blank id"
    ])
    const { dropped, messages: repaired } = Transcript.repair(messages)
    assert.deepStrictEqual(
      repaired.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : [])),
      ["result ", "result b", "result  "]
    )
    assert.strictEqual(dropped, 0)
    assert.deepStrictEqual(Transcript.violations(repaired), [])
    for (const index of [1, 2, 4])
      assert.strictEqual(repaired[index], Transcript.repair(messages).messages[index])
    const orphans = Transcript.repair([Message.user("hi"), calls(""), result(""), result("")])
    assert.deepStrictEqual([orphans.messages.length, orphans.dropped], [3, 1])
    assert.deepStrictEqual(Transcript.violations(orphans.messages), [])
  })

  describe("truncate", () => {
    const turn = (id: string) => [Message.user(id), calls(id), result(id)]
    const messages = [...turn("a"), ...turn("b"), ...turn("c"), ...turn("d")]
    const both = (options: Transcript.TruncateOptions, of: ReadonlyArray<Message.Message> = messages) => {
      const { dropped, kept } = Transcript.truncate(of, options)
      assert.deepStrictEqual(
        of.filter((message) => kept.includes(message)),
        kept
      )
      assert.sameMembers([...kept, ...dropped], [...of])
      return kept.map((message) => of.indexOf(message))
    }

    it("keeps both ends, and pairs whole (row 188)", () => {
      assert.strictEqual(Transcript.truncate(messages).kept, messages)
      assert.deepStrictEqual(both({ maxMessages: 12 }), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
      assert.deepStrictEqual(both({ maxMessages: 11 }), [0, 1, 2, 3, 6, 7, 8, 9, 10, 11])
      assert.deepStrictEqual(both({ maxMessages: 6 }), [0, 1, 2, 9, 10, 11])
      assert.deepStrictEqual(both({ maxMessages: 5 }), [0, 9, 10, 11])
      assert.deepStrictEqual(both({ maxMessages: 6, keep: "end" }), [6, 7, 8, 9, 10, 11])
      assert.deepStrictEqual(both({ maxMessages: 0 }), [10, 11])
      assert.deepStrictEqual(Transcript.truncate([]), { kept: [], dropped: [] })
    })

    it("counts characters too", () => {
      const long = range(9).map((n) => Message.user(`${n}`.repeat(1000)))
      assert.deepStrictEqual(both({ maxCharacters: 4500 }, long), [0, 1, 7, 8])
      assert.deepStrictEqual(both({ maxCharacters: 4500, keep: "end" }, long), [5, 6, 7, 8])
      assert.deepStrictEqual(both({ maxCharacters: 10 }, long), [8])
    })

    it("keeps a developer message at the start, and never begins with a result", () => {
      const led = [Message.custom("developer", "rules"), ...messages]
      assert.deepStrictEqual(both({ maxMessages: 3, keep: "end" }, led), [0, 11, 12])
      assert.deepStrictEqual(both({ maxMessages: 2 }, [result("q"), result("r"), ...messages]), [12, 13])
    })
  })

  describe("window", () => {
    const turn = (id: string) => [Message.user(id), calls(id), result(id)]
    const messages = [...turn("a"), ...turn("b"), ...turn("c")]

    it("sends everything that fits", () => {
      assert.strictEqual(Transcript.window(messages, 9).messages, messages)
    })

    it("never begins with a result: cuts at the next safe place", () => {
      const { dropped, messages: kept } = Transcript.window(messages, 4)
      assert.deepStrictEqual(shape(kept), ["user", "assistant", "result c"])
      assert.strictEqual(dropped, 6)
    })

    it("keeps more than asked rather than split the last call from its result", () => {
      assert.deepStrictEqual(shape(Transcript.window(messages, 1).messages), ["assistant", "result c"])
    })

    it("keeps a leading developer message, and the first user message when told to", () => {
      const led = [Message.custom("developer", "rules"), ...messages]
      assert.deepStrictEqual(shape(Transcript.window(led, 3, { keepFirstUser: true }).messages), [
        "custom",
        "user",
        "user",
        "assistant",
        "result c"
      ])
    })
  })

  it("names a result that comes late, and a message that stands before it", () => {
    const late = [Message.user("hi"), calls("a", "b"), result("a"), Message.user("wait"), result("b")]
    assert.deepStrictEqual(Transcript.violations(late), ["result b does not follow its answer at once"])
    const note = Message.custom("note", {})
    assert.deepStrictEqual(Transcript.violations([Message.user("hi"), calls("a"), note, result("a")]), [])
  })

  it("names what a provider would refuse", () => {
    assert.deepStrictEqual(Transcript.violations([result("q"), calls("a", "a")]), [
      "result q answers no call",
      "call id a is used twice in one answer",
      "call a has 0 results",
      "call a has 0 results"
    ])
  })

  it("finds the calls that are still open", () => {
    assert.deepStrictEqual(
      Transcript.openCalls([calls("a", "b"), result("a")]).map(({ id }) => id),
      ["b"]
    )
    assert.deepStrictEqual(Transcript.openCalls([calls("a"), result("a"), Message.user("hi")]), [])
  })
})
