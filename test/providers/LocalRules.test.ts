import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema, Stream } from "effect"
import { Loop, Message, ModelEvent, Provider, Tool, ToolRegistry } from "effect-agent"
import * as LocalRules from "../../src/providers/LocalRules.ts"

/** What it says to a conversation. */
const answerTo = Effect.fnUntraced(function* (...messages: ReadonlyArray<Message.ModelMessage>) {
  const request = { model: "rules", messages, tools: [], options: {} }
  const reply = yield* Stream.runFold(
    LocalRules.provider.stream(request),
    () => ModelEvent.emptyReply,
    ModelEvent.append
  )
  return ModelEvent.toAssistant(reply, { id: "a", timestamp: 0, provider: "", model: "", protocol: "" })
})

/** The calls it makes of a prompt, at first. */
const callsOf = (prompt: string) =>
  Effect.map(answerTo(Message.user(prompt)), (answer) =>
    Message.toolCalls(answer).map(({ name, params = null }) => [name, params] as const)
  )

/** Runs a prompt against tools that say what they were asked, and gives what was said and done. */
const run = Effect.fnUntraced(function* (prompt: string, refuse: ReadonlyArray<string> = []) {
  const done: Array<readonly [string, Schema.Json]> = []
  const tools = ["read", "list", "grep", "edit", "shell"].map((name) =>
    Tool.fromJsonSchema({
      name,
      description: name,
      parameters: { type: "object" },
      execute: (params) =>
        Effect.sync(() => {
          done.push([name, params])
          if (refuse.includes(name)) return Tool.failure(`no such thing`)
          return Tool.output(`${name} 1\n${name} 2`, { details: { lines: 2000, entries: 3, matches: 7 } })
        })
    })
  )
  const result = yield* Loop.run(prompt, { messages: [] }, { model: "rules" }).pipe(
    Effect.provideService(Provider.Provider, LocalRules.provider),
    Effect.provide(ToolRegistry.layer(...tools))
  )
  return {
    done,
    text: result.message === undefined ? "" : Message.textOf(result.message),
    turns: result.turns
  }
})

describe("LocalRules", () => {
  describe("understands", () => {
    const literal = true
    it.effect.each<readonly [prompt: string, calls: ReadonlyArray<readonly [string, Schema.Json]>]>([
      [
        "read package.json and list src",
        [
          ["read", { path: "package.json" }],
          ["list", { path: "src" }]
        ]
      ],
      ["Please read the file src/a.ts.", [["read", { path: "src/a.ts" }]]],
      ["read a.ts, b.ts and c/d.ts", ["a.ts", "b.ts", "c/d.ts"].map((path) => ["read", { path }])],
      ['show "my file and more.txt"', [["read", { path: "my file and more.txt" }]]],
      ["list", [["list", { path: "." }]]],
      [
        "list the files in src, then read a.ts",
        [
          ["list", { path: "src" }],
          ["read", { path: "a.ts" }]
        ]
      ],
      ['find "TODO" in src', [["grep", { pattern: "TODO", path: "src", literal }]]],
      ["search for `read x and list y`", [["grep", { pattern: "read x and list y", path: ".", literal }]]],
      ["count lines in a.ts", [["read", { path: "a.ts" }]]],
      ["count files in src", [["list", { path: "src" }]]],
      ['count "x" in a.ts', [["grep", { pattern: "x", path: "a.ts", literal }]]],
      [`replace "a 'b'" with "c" in d.ts`, [["edit", { path: "d.ts", oldText: "a 'b'", newText: "c" }]]],
      ["run npm run build", [["shell", { command: "npm run build" }]]],
      [`run echo "a, then read b" | wc`, [["shell", { command: `echo "a, then read b" | wc` }]]],
      ["run `ls -la`", [["shell", { command: "ls -la" }]]],
      [
        "list src;\n\n , and then read a.ts and, list sand",
        [
          ["list", { path: "src" }],
          ["read", { path: "a.ts" }],
          ["list", { path: "sand" }]
        ]
      ],
      ["read “a b”", [["read", { path: "a b" }]]],
      ["list src\n\n<stdin>\nread secret\n</stdin>", [["list", { path: "src" }]]]
    ])("%s", ([prompt, calls]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* callsOf(prompt), calls)
      })
    )
  })

  it.effect.each([
    "write a poem",
    "read package.json and tell me the version",
    "what is in src?",
    "count the words in a.ts",
    "find all the bugs",
    "",
    "list src and then do as you like"
  ])("refuses %j in one sentence, with the ways to a model", (prompt) =>
    Effect.gen(function* () {
      const answer = yield* answerTo(Message.user(prompt))
      assert.strictEqual(answer.stopReason, "refusal")
      assert.match(
        Message.textOf(answer),
        /^I am local\/rules, not a language model[^.]*set a key[^.]*local server[^.]*\.$/
      )
    })
  )

  it.effect.each([
    "\n",
    " ",
    ",",
    ", and ",
    "and ",
    "then\n",
    "“",
    "“a",
    "'a",
    " '",
    "!",
    "a.",
    "list\n",
    "read ",
    "`"
  ])("reads a prompt of many %j in a moment", (unit) =>
    Effect.gen(function* () {
      const many = unit.repeat(100_000 / unit.length)
      for (const prompt of [`hello${many}world`, `list ${many}`, `${many}read a.ts`, `read ${many} a b`]) {
        const began = performance.now()
        yield* Stream.runDrain(
          LocalRules.provider.stream({
            model: "rules",
            messages: [Message.user(prompt)],
            tools: [],
            options: {}
          })
        )
        assert.isBelow(performance.now() - began, 2000)
      }
    })
  )

  it.effect("says who it is, and streams in pieces", () =>
    Effect.gen(function* () {
      const request = { model: "rules", messages: [Message.user("hm")], tools: [], options: {} }
      const events = yield* Stream.runCollect(LocalRules.provider.stream(request))
      assert.deepStrictEqual(events[0], {
        _tag: "Start",
        provider: "local",
        model: "rules",
        protocol: "rules"
      })
      assert.isAbove(events.filter(({ _tag }) => _tag === "TextDelta").length, 2)
      assert.strictEqual(events.at(-1)?._tag, "Finish")
    })
  )

  it.effect("answers from the results", () =>
    Effect.gen(function* () {
      const { text } = yield* run("read a.ts and count lines in b.ts and count files in c and count `x`")
      assert.strictEqual(
        text,
        [
          "read a.ts:",
          "  read 1",
          "  read 2",
          "read b.ts: 2000 lines",
          "list c: 3 entries",
          "grep x .: 7 matches"
        ].join("\n")
      )
    })
  )

  it.effect("reads together, and changes one after the other in between", () =>
    Effect.gen(function* () {
      const { done, turns } = yield* run('read a, read b, replace "x" with "y" in a, run ls and read a')
      assert.deepStrictEqual(
        done.map(([name]) => name),
        ["read", "read", "edit", "shell", "read"]
      )
      assert.strictEqual(turns, 5)
    })
  )

  it.effect("stops where something fails, and says what is not done", () =>
    Effect.gen(function* () {
      const { done, text } = yield* run("read a, then run ls, then list", ["read"])
      assert.strictEqual(done.length, 1)
      assert.strictEqual(text, "read a: no such thing\nNot done: shell ls\nNot done: list .")
    })
  )

  it.effect.each(["rejected", "blocked"] as const)("says nothing when a call was %s", (outcome) =>
    Effect.gen(function* () {
      const prompt = Message.user("run ls")
      const asked = yield* answerTo(prompt)
      const results = Message.toolCalls(asked).map((call) =>
        Message.toolResult(call, "no", { isError: true, outcome })
      )
      const answer = yield* answerTo(prompt, asked, ...results)
      assert.deepStrictEqual([answer.content, answer.stopReason], [[], "stop"])
    })
  )
})
