import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message, type Provider, ProviderError } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { Fallback } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { ofTag, play } from "./play.ts"

const { fail, text, toolCall } = ScriptedProvider
const image = Message.image("UElD", "image/png")
const look: Message.User["content"] = [Message.text("look"), image]
const thinking: Message.Assistant = Message.assistant(
  [
    { type: "thinking", text: "plan", opaque: { provider: "scripted", signature: "s" } },
    { type: "text", text: "one", opaque: { provider: "scripted", signature: "s" } }
  ],
  { model: "m" }
)
const refusal = (refused: ProviderError.RefusedPart) =>
  fail(new ProviderError.InvalidRequest({ detail: "no", status: 400, refused }))
const unexplained = fail(new ProviderError.InvalidRequest({ detail: "huh?", status: 400 }))

const typesOf = ({ messages }: Provider.ModelRequest) =>
  messages.map(({ content }) => content.map((block) => block.type + ("opaque" in block ? "+" : "")).join())

/** The types of the blocks in each request, and the events, after some prompts. */
const talk = (
  script: Parameters<typeof ScriptedProvider.make>[0],
  prompts: ReadonlyArray<Message.Input>,
  messages: ReadonlyArray<Message.Message> = []
) =>
  Effect.gen(function* () {
    const provider = yield* ScriptedProvider.make(script)
    const made = yield* Agent.make({ model: "m", messages }).pipe(Effect.provide(provider.layer))
    const adjusted: Array<ReadonlyArray<string>> = []
    yield* made.subscribe((event) =>
      Effect.sync(() => {
        if (event._tag === "ModelCallEnd")
          adjusted.push((event.adjusted ?? []).map(({ asked, option }) => `${option}: ${asked}`))
      })
    )
    const outcomes: Array<string> = []
    for (const prompt of prompts) {
      outcomes.push(
        yield* Effect.match(made.prompt(prompt), {
          onSuccess: (result) => result.text,
          onFailure: (failed) => failed.message
        })
      )
    }
    const requests = yield* provider.requests
    return { adjusted, outcomes, requests: requests.map(typesOf), state: yield* made.state.get }
  }).pipe(Effect.scoped)

describe("a provider that refuses a part of the conversation", () => {
  it.effect("is asked once more without thinking and signatures, and so from then on", () =>
    Effect.gen(function* () {
      const script = [refusal("thinking"), text("two"), text("three")]
      const { adjusted, outcomes, requests, state } = yield* talk(
        script,
        ["b", "c"],
        [Message.user("a"), thinking]
      )
      assert.deepStrictEqual(outcomes, ["two", "three"])
      assert.deepStrictEqual(requests, [
        ["text", "thinking+,text+", "text"],
        ["text", "text", "text"],
        ["text", "text", "text", "text", "text"]
      ])
      assert.deepStrictEqual(adjusted, [["thinking: of 1 answer"], ["thinking: of 1 answer"]])
      assert.strictEqual(state.messages[1], thinking)
    })
  )

  it.effect("is reported with the run, each part once", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([refusal("image"), toolCall("no", {}), text("ok")])
      const made = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
      const { report } = yield* made.prompt(look)
      const [left, ...others] = report.adjusted ?? []
      assert.deepInclude(left, { option: "image", asked: "1 image", sent: null })
      assert.deepStrictEqual([report.turns, others], [2, []])
    }).pipe(Effect.scoped)
  )

  it.effect("and refuses the rest too is asked without the answer", () =>
    Effect.gen(function* () {
      const script = [refusal("thinking"), refusal("thinking"), text("two"), text("later")]
      const { adjusted, outcomes, requests } = yield* talk(script, ["b", "c"], [Message.user("a"), thinking])
      assert.deepStrictEqual(outcomes, ["two", "later"])
      assert.deepStrictEqual(requests.slice(1, 3), [
        ["text", "text", "text"],
        ["text", "text", "text"]
      ])
      assert.deepStrictEqual(adjusted[1], ["thinking: of 1 answer", "answer: 1 answer"])
    })
  )

  it.effect("gets a note in place of the new image, and keeps the images that it has read", () =>
    Effect.gen(function* () {
      const script = [text("a cat"), refusal("image"), text("none"), text("three")]
      const { requests } = yield* talk(script, [look, look, "c"])
      assert.deepStrictEqual(requests, [
        ["text,image"],
        ["text,image", "text", "text,image"],
        ["text,image", "text", "text"],
        ["text,image", "text", "text", "text", "text"]
      ])
    })
  )

  it.effect(
    "after another model gets notes in place of all images, which come back with that model (row 47)",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([
          text("a cat"),
          refusal("image"),
          text("blind"),
          text("a cat again")
        ])
        const made = yield* Agent.make({ model: "m" }).pipe(Effect.provide(provider.layer))
        yield* made.prompt(look)
        yield* made.prompt("b", { model: "blind" })
        yield* made.prompt("c")
        const requests = yield* provider.requests
        assert.deepStrictEqual(requests.map(typesOf).slice(2), [
          ["text", "text", "text"],
          ["text,image", "text", "text", "text", "text"]
        ])
      }).pipe(Effect.scoped)
  )

  it.effect(
    "in words that name no part is asked without the new images, then without all that it may mean",
    () =>
      Effect.gen(function* () {
        const script = [unexplained, unexplained, text("ok"), text("later")]
        const history = [Message.user(look), thinking]
        const { outcomes, requests } = yield* talk(script, [look, "c"], history)
        assert.deepStrictEqual(outcomes, ["ok", "later"])
        assert.deepStrictEqual(requests, [
          ["text,image", "thinking+,text+", "text,image"],
          ["text,image", "thinking+,text+", "text"],
          ["text", "text", "text"],
          ["text", "text", "text", "text", "text"]
        ])
      })
  )

  it.effect("in such words for another cause fails with its first error, and forgets nothing", () =>
    Effect.gen(function* () {
      const other = fail(new ProviderError.InvalidRequest({ detail: "again", status: 400 }))
      const script = [unexplained, other, other, other, text("later")]
      const { outcomes, requests } = yield* talk(script, ["b", "c"], [Message.user("a"), thinking])
      assert.include(outcomes[0], "huh?")
      assert.deepStrictEqual(requests, [
        ["text", "thinking+,text+", "text"],
        ["text", "text", "text"],
        ["text", "text", "text"],
        ["text"],
        ["text", "thinking+,text+", "text", "text"]
      ])
    })
  )

  it.effect(
    "is asked without results, then without the answer that called, then without all before the prompt",
    () =>
      Effect.gen(function* () {
        const call: Message.ToolCall = {
          type: "toolCall",
          id: "c1",
          name: "f",
          rawArguments: '{"a":1}',
          params: { a: 1 }
        }
        const history = [
          Message.user("a"),
          Message.assistant([call], { model: "m" }),
          Message.toolResult(call, "long"),
          Message.assistant("one", { model: "m" }),
          Message.user("b"),
          Message.assistant([Message.text("two"), call], { model: "m" }),
          Message.toolResult(call, "long")
        ]
        const provider = yield* ScriptedProvider.make([
          unexplained,
          unexplained,
          unexplained,
          text("ok"),
          text("later")
        ])
        const agent = yield* Agent.make({ model: "m", messages: history }).pipe(
          Effect.provide(provider.layer)
        )
        yield* agent.prompt("c")
        yield* agent.prompt("d")
        const contents = (yield* provider.requests).map(({ messages }) =>
          messages
            .slice(-4)
            .map((message) =>
              [
                message.role,
                ...message.content.map((block) =>
                  block.type === "toolCall"
                    ? block.rawArguments
                    : block.type === "text"
                      ? block.text
                      : block.type
                )
              ].join(" ")
            )
        )
        const gone =
          "[The result of this call is left out, and so are its arguments: the provider refused it.]"
        assert.deepStrictEqual(contents, [
          ["user b", 'assistant two {"a":1}', "toolResult long", "user c"],
          ["user b", "assistant two {}", `toolResult ${gone}`, "user c"],
          [
            "user b",
            "assistant [This answer is left out: the provider refused it.]",
            "user [The result of a call:] long",
            "user c"
          ],
          [
            "user b",
            "assistant [This answer is left out: the provider refused it.]",
            `user [The result of a call:] ${gone}`,
            "user c"
          ],
          [`user [The result of a call:] ${gone}`, "user c", "assistant ok", "user d"]
        ])
        const lengths = (yield* provider.requests).map(({ messages }) => messages.length)
        assert.deepStrictEqual(lengths, [8, 8, 8, 4, 6])
      }).pipe(Effect.scoped)
  )

  it.effect("for a tool or an option is not asked again", () =>
    Effect.gen(function* () {
      for (const part of ["tool", "option"] as const) {
        const { requests } = yield* talk([refusal(part)], [look], [Message.user("a"), thinking])
        assert.strictEqual(requests.length, 1)
      }
    })
  )

  it.effect("and what it cannot encode, is asked with a note", () =>
    Effect.gen(function* () {
      const unsupported = fail(new ProviderError.UnsupportedContent({ detail: "takes no files" }))
      const { outcomes, requests } = yield* talk([unsupported, text("ok")], [look])
      assert.deepStrictEqual([outcomes, requests], [["ok"], [["text,image"], ["text"]]])
    })
  )

  it.effect("for its content never gets the prompt again, and is not asked twice", () =>
    Effect.gen(function* () {
      const flagged = fail(new ProviderError.ContentPolicy({ detail: "flagged", status: 400 }))
      const { outcomes, requests } = yield* talk([text("hi"), flagged, text("ok")], ["a", "bad", "c"])
      assert.deepStrictEqual([outcomes[2], requests.length], ["ok", 3])
      assert.deepStrictEqual(requests[2], ["text", "text", "text"])
    })
  )

  it.effect("behind a fallback is asked again once the others failed too", () =>
    Effect.gen(function* () {
      const first = ScriptedProvider.layer([refusal("image"), text("ok")])
      const second = ScriptedProvider.layer([refusal("image")])
      const made = yield* Agent.make({ model: "m" }).pipe(Effect.provide(Fallback.layer([first, second])))
      assert.strictEqual((yield* made.prompt(look)).text, "ok")
    }).pipe(Effect.scoped)
  )
})

describe("a refusal in unknown words", () => {
  const long = (size: number) => [
    Message.user("a"),
    Message.assistant("x".repeat(4 * size)),
    Message.user("b")
  ]
  const compaction = Compaction.layer({ contextWindow: 1_000, keepRecent: 100 })

  it.effect("of a conversation that fills half of the context window is taken for an overflow, once", () =>
    Effect.gen(function* () {
      // Words about a length may mention an option or an image too.
      for (const refused of [unexplained, refusal("option"), refusal("image"), refusal("tool")]) {
        const script = [refused, text("They talked."), text("ok")]
        const { events, requests } = yield* play(script, { messages: long(600), layer: compaction })
        assert.strictEqual(requests.length, 3)
        assert.deepStrictEqual(
          ofTag(events, "Compaction").map(({ reason, status }) => [reason, status]),
          [
            ["overflow", "start"],
            ["overflow", "end"]
          ]
        )
        assert.strictEqual(ofTag(events, "RunEnd")[0]?.status, "completed")
      }
    })
  )

  it.effect("of a shorter conversation fails, and so does one that a compaction does not help", () =>
    Effect.gen(function* () {
      const short = yield* play([unexplained, unexplained, unexplained], {
        messages: long(400),
        layer: compaction
      })
      assert.deepStrictEqual([short.requests.length, ofTag(short.events, "Compaction").length], [3, 0])
      const other = fail(new ProviderError.InvalidRequest({ detail: "again", status: 400 }))
      const script = [unexplained, text("They talked."), other, other, other]
      const { events } = yield* play(script, { messages: long(600), layer: compaction })
      const [end] = ofTag(events, "RunEnd")
      assert.include(end?.error?.message, "huh?")
    })
  )
})
