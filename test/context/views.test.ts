import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ContextManager, Message, Transcript } from "effect-agent"
import { GptTokenizer, Pruning, TokenWindow, Tokens } from "effect-agent/context"
import { range } from "../behaviour/play.ts"
import { seeds, transcript } from "./transcripts.ts"

const estimated = { count: Tokens.estimate }
const size = (messages: ReadonlyArray<Message.Message>) =>
  messages.reduce((sum, message) => sum + Tokens.ofMessage(estimated)(message), 0)

const viewed = (layer: Layer.Layer<never>, messages: ReadonlyArray<Message.Message>) =>
  Effect.flatMap(ContextManager.ContextManager, ({ view }) => view(messages, { model: "m" })).pipe(
    Effect.provide(layer)
  )

const call = { type: "toolCall" as const, id: "c", name: "look", rawArguments: "{}", params: {} }

/** A prompt, and turns with a result of so many characters each. */
const looking = (turns: number, characters = 400) => [
  Message.user("Look"),
  ...range(turns).flatMap((n) => [
    Message.assistant([{ ...call, id: `c${n}` }], { stopReason: "toolUse" }),
    Message.toolResult({ id: `c${n}`, name: "look" }, "x".repeat(characters))
  ])
]

/** How often a later view does not begin with the whole one before. */
const changes = (views: ReadonlyArray<ReadonlyArray<Message.Message>>) =>
  views.filter((view, index) => !Transcript.goesOnFrom(view, views[index - 1] ?? [])).length

/** A view keeps the rules of a transcript, which it may have broken only where the whole has. */
const isSound = (view: ReadonlyArray<Message.Message>) => {
  assert.deepStrictEqual(Transcript.violations(view), [])
  assert.strictEqual(view.find(({ role }) => role !== "custom")?.role, "user")
}

describe("places to cut a transcript", () => {
  it("never separate a call from its result, nor a prompt from its answer (row 186)", () => {
    for (const seed of seeds) {
      const messages = transcript(seed)
      assert.deepStrictEqual(Transcript.violations(messages), [])
      const starts = Transcript.turnStarts(messages)
      assert.strictEqual(starts[0], 0)
      for (const start of starts) {
        assert.deepStrictEqual(Transcript.violations(messages.slice(start)), [])
        assert.deepStrictEqual(Transcript.violations(messages.slice(0, start)), [])
        assert.notStrictEqual(messages[start - 1]?.role, "user")
        const firstKept = messages[start]?.id ?? ""
        const { dropped, messages: view } = Transcript.compacted(messages, { summary: "s", firstKept })
        isSound(view)
        // The summary is new.
        assert.strictEqual(view.length, messages.length - dropped + (start === 0 ? 0 : 1))
      }
    }
  })

  it("are where a result that comes late has come", () => {
    const late = [
      Message.user("q"),
      Message.assistant([call], { stopReason: "toolUse" }),
      Message.user("and?"),
      Message.toolResult({ id: "c", name: "look" }, "r"),
      Message.assistant("a")
    ]
    assert.deepStrictEqual(Transcript.turnStarts(late), [0, 4])
    assert.deepStrictEqual(Transcript.turnStarts([]), [])
  })

  it("leave a transcript whole that does not have the message", () => {
    const messages = looking(2)
    const compaction = { summary: "s", firstKept: "gone" }
    assert.strictEqual(Transcript.compacted(messages, compaction).messages, messages)
    assert.strictEqual(Transcript.compacted(messages, undefined).messages, messages)
  })

  it("give the same summary in another process", () => {
    const messages = looking(3)
    const compaction = { summary: "s", firstKept: messages[3]?.id ?? "" }
    const [again, once] = [{ ...compaction }, compaction].map((compaction) =>
      Transcript.compacted(messages, compaction)
    )
    assert.deepStrictEqual(again, once)
    assert.strictEqual(Transcript.compacted(messages, compaction).messages[1], once?.messages[1])
  })
})

describe("TokenWindow", () => {
  it.effect("is within its tokens, pair-safe, and starts with the user, for any transcript (row 263)", () =>
    Effect.gen(function* () {
      for (const seed of seeds) {
        const messages = transcript(seed)
        const maxTokens = 100 + (seed % 7) * 400
        const { dropped, messages: view } = yield* viewed(TokenWindow.layer({ maxTokens }), messages)
        isSound(view)
        assert.strictEqual(dropped, messages.length - view.length)
        const starts = Transcript.turnStarts(messages)
        const newest = size(messages.slice(starts.at(-1))) + size(messages.slice(0, 2))
        if (dropped > 0) assert.isAtMost(size(view), Math.max(maxTokens, newest))
        else if (starts.length > 1) assert.isAtMost(size(view), Math.max(maxTokens, newest))
      }
    })
  )

  it.effect("keeps all that is short enough, the task, and the developer's message", () =>
    Effect.gen(function* () {
      const developer = Message.custom("developer", "d")
      const messages = [developer, ...looking(20)]
      assert.strictEqual(
        (yield* viewed(TokenWindow.layer({ maxTokens: 10_000 }), messages)).messages,
        messages
      )
      const { messages: view } = yield* viewed(TokenWindow.layer({ maxTokens: 500 }), messages)
      assert.deepStrictEqual(view.slice(0, 2), messages.slice(0, 2))
      assert.strictEqual(view.at(-1), messages.at(-1))
      const bare = yield* viewed(TokenWindow.layer({ maxTokens: 500, keepFirstUser: false }), messages)
      assert.strictEqual(bare.messages[1]?.role, "assistant")
    })
  )

  it.effect("moves on in steps, so that the start of the requests changes seldom", () =>
    Effect.gen(function* () {
      const messages = looking(200)
      const layer = TokenWindow.layer({ maxTokens: 4_000 })
      const views = yield* Effect.forEach(range(200), (turn) =>
        Effect.map(viewed(layer, messages.slice(0, 3 + 2 * turn)), (view) => view.messages)
      )
      // A step is 1000 tokens, and a turn has 102.
      assert.isAtMost(changes(views), 18)
    })
  )
})

describe("Pruning", () => {
  it.effect("leaves calls and results as they are but for their text, for any transcript", () =>
    Effect.gen(function* () {
      for (const seed of seeds) {
        const messages = transcript(seed)
        const layer = Pruning.layer({ budget: 50 + (seed % 5) * 300, keepTurns: 1 + (seed % 3) })
        const { messages: view } = yield* viewed(layer, messages)
        isSound(view)
        assert.deepStrictEqual(
          view.map(({ id }) => id),
          messages.map(({ id }) => id)
        )
        assert.isAtMost(size(view), size(messages))
        const recent = Transcript.turnStarts(messages).at(-1 - (seed % 3)) ?? 0
        assert.isTrue(messages.slice(recent).every((message, index) => view[recent + index] === message))
      }
    })
  )

  it.effect("prunes beyond its budget only, oldest first, and says what is missing", () =>
    Effect.gen(function* () {
      const messages = looking(10)
      const within = yield* viewed(Pruning.layer({ budget: 1_000 }), messages)
      assert.isTrue(within.messages.every((message, index) => message === messages[index]))
      const { messages: view } = yield* viewed(
        Pruning.layer({ budget: 400, step: 100, keepTurns: 2 }),
        messages
      )
      const texts = view.flatMap((message) =>
        message.role === "toolResult" ? [Message.textOf(message)] : []
      )
      assert.deepStrictEqual(
        texts.map((text) => text.length),
        [105, 105, 105, 105, 400, 400, 400, 400, 400, 400]
      )
      assert.strictEqual(
        texts[0],
        "[This old result of look was left out to save space: 400 characters. Call the tool again if you need it.]"
      )
    })
  )

  it.effect("prunes in steps, so that the start of the requests changes seldom, and keeps its notes", () =>
    Effect.gen(function* () {
      const messages = looking(200)
      const layer = Pruning.layer({ budget: 2_000, step: 1_000, keepTurns: 2 })
      const views = yield* Effect.forEach(range(200), (turn) =>
        Effect.map(viewed(layer, messages.slice(0, 3 + 2 * turn)), (view) => view.messages)
      )
      assert.isAtMost(changes(views), 18)
      assert.isAtLeast(changes(views), 15)
    })
  )

  it.effect("works before a window that it is provided to (row 186)", () =>
    Effect.gen(function* () {
      const messages = looking(20)
      const both = TokenWindow.layer({ maxTokens: 1_000 }).pipe(
        Layer.provide(Pruning.layer({ budget: 200, step: 100, keepTurns: 1 }))
      )
      const { dropped } = yield* viewed(both, messages)
      assert.isBelow(dropped, (yield* viewed(TokenWindow.layer({ maxTokens: 1_000 }), messages)).dropped)
    })
  )
})

describe("Tokens", () => {
  it("counts four characters of text for a token, and an image whatever its bytes are (row 187)", () => {
    const count = Tokens.ofMessage(estimated)
    const [short, long] = ["x".repeat(400), "x".repeat(4_000)].map((text) => count(Message.user(text)))
    assert.strictEqual((long ?? 0) - (short ?? 0), 900)
    const [small, large] = ["AAAA", "A".repeat(400_000)].map((data) =>
      count(Message.user([Message.image(data, "image/png")]))
    )
    assert.isAbove(small ?? 0, 100)
    assert.strictEqual(small, large)
  })
})

describe("GptTokenizer", () => {
  it.effect("counts the tokens of texts, also of long ones and of names of special tokens (row 187)", () =>
    Effect.gen(function* () {
      const { count } = yield* Tokens.Tokens
      assert.strictEqual(count("Do I need a coat in Oslo?"), 8)
      assert.isAbove(count("<|endoftext|>"), 1)
      assert.isBelow(Math.abs(count("hello world ".repeat(10_000)) - 20_000), 1_000)
      assert.isAbove(count("x".repeat(200_000)), 10_000)
      assert.isAbove(count("漢字".repeat(1_000)), Tokens.estimate("漢字".repeat(1_000)) * 2)
    }).pipe(Effect.provide(GptTokenizer.layer))
  )
})
