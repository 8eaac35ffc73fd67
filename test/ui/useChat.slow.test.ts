import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import type { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Chats from "./chats.ts"
import { listen } from "./http.ts"
import * as UseChat from "./useChat.ts"

const params = Schema.Struct({ city: Schema.String })
const weather = Tool.make({
  name: "weather",
  description: "The weather in a city.",
  params,
  execute: ({ city }) => Effect.succeed({ city, celsius: 4 })
})
const book = Tool.make({
  name: "book",
  description: "Books a hotel.",
  params,
  execute: ({ city }) => Effect.succeed(`booked in ${city}`)
})
type Tools = AiSdkUi.UiTools<[typeof weather, typeof book]>

const calls = ScriptedProvider.turn(
  Step.start,
  Step.toolCall("weather", { city: "Oslo" }),
  Step.toolCall("book", { city: "Oslo" }),
  Step.finish("toolUse")
)
const endless = ScriptedProvider.turn(Step.start, Step.text("half"), Step.never)
const text = ScriptedProvider.text

/** The address of a server of an application, whose sessions have one script together. */
const serve = (...turns: Array<ScriptedProvider.Turn>) => {
  const script = turns.map(() => () => turns.shift() ?? text("?"))
  const agents = Agents.layer(({ session }) =>
    Agent.make({ model: "any", tools: [weather, book], session })
  ).pipe(
    Layer.provide([
      ScriptedProvider.layer(script),
      Approval.layer({ rules: [Approval.allow(weather)], asked: "wait" })
    ])
  )
  const runs = LiveRuns.layer({ flush: 0 }).pipe(
    Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
  )
  return listen(
    Layer.provide(Server.layer({ tokens: [Redacted.make("secret")], grace: 0 }), Layer.orDie(runs))
  )
}

const headers = { authorization: "Bearer secret" }

const open = (url: string, more: { readonly messages?: Array<never>; readonly resume?: boolean } = {}) =>
  Effect.promise(() =>
    UseChat.open<Tools>({
      api: `${url}/ui/chat`,
      headers,
      id: "chat-1",
      ...more,
      shown: (part) => {
        if (part.type === "text") return part.text
        if (part.type === "tool-weather")
          return part.state === "output-available" ? `[${part.output.celsius} °C]` : `[weather ${part.state}]`
        if (part.type === "tool-book")
          return `[${part.state === "output-available" ? part.output : `book ${part.state}`}]`
        return ""
      }
    })
  )
type Page = Effect.Success<ReturnType<typeof open>>

const until = (page: Page, ...lines: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const isThere = () =>
      JSON.stringify(page.lines()) === JSON.stringify(lines) &&
      (lines.at(-1)?.endsWith("half") === true || page.chat().status === "ready")
    for (const end = Date.now() + 8000; !isThere() && Date.now() < end; ) await Chats.tick()
    assert.deepStrictEqual(page.lines(), [...lines])
    assert.isUndefined(page.chat().error)
  })

describe("useChat with a server of an application", () => {
  for (const approved of [true, false])
    it.live(`shows typed tools, and continues with the answer ${approved ? "yes" : "no"}`, () =>
      Effect.gen(function* () {
        const page = yield* open(yield* serve(calls, text("Done.")))
        void page.chat().sendMessage({ text: "go" })
        yield* until(page, "user: go", "assistant: [4 °C][book approval-requested]")
        const part = page
          .chat()
          .messages.at(-1)
          ?.parts.find((part) => part.type === "tool-book")
        void page
          .chat()
          .addToolApprovalResponse({ id: part?.approval?.id ?? "", approved, reason: "too dear" })
        const booked = approved ? "[booked in Oslo]" : "[book output-denied]"
        yield* until(page, "user: go", `assistant: [4 °C]${booked}Done.`)
        yield* Effect.promise(() => page.close())
      }).pipe(Effect.scoped)
    )

  it.live("goes on after stop(), regenerates, takes edits, and a message in place of an answer", () =>
    Effect.gen(function* () {
      const page = yield* open(
        yield* serve(endless, text("next"), text("again"), endless, text("after"), calls, text("edited"))
      )
      void page.chat().sendMessage({ text: "a" })
      yield* until(page, "user: a", "assistant: half")
      yield* Effect.promise(() => page.chat().stop())
      void page.chat().sendMessage({ text: "b" })
      yield* until(page, "user: a", "assistant: half", "user: b", "assistant: next")
      void page.chat().regenerate()
      yield* until(page, "user: a", "assistant: half", "user: b", "assistant: again")
      void page.chat().regenerate()
      yield* until(page, "user: a", "assistant: half", "user: b", "assistant: half")
      yield* Effect.promise(() => page.chat().stop())
      void page.chat().regenerate()
      yield* until(page, "user: a", "assistant: half", "user: b", "assistant: after")
      const [first, , second] = page.chat().messages
      void page.chat().sendMessage({ text: "c", messageId: second?.id ?? "" })
      const asked = "assistant: [4 °C][book approval-requested]"
      yield* until(page, "user: a", "assistant: half", "user: c", asked)
      void page.chat().sendMessage({ text: "d", messageId: first?.id ?? "" })
      yield* until(page, "user: d", "assistant: edited")
      yield* Effect.promise(() => page.close())
    }).pipe(Effect.scoped)
  )

  it.live(
    "comes back after a reload, to an answer that streams, to one that waits, and to an old conversation",
    () =>
      Effect.gen(function* () {
        const gate = Effect.sleep(300)
        const slow = ScriptedProvider.turn(
          Step.start,
          Step.text("half"),
          Step.run(gate),
          Step.text(" and whole"),
          Step.finish("stop")
        )
        const url = yield* serve(slow, calls, text("Done."))
        const reload = Effect.gen(function* () {
          const stored = yield* Effect.promise(async () =>
            (await fetch(`${url}/ui/chat/chat-1`, { headers })).json()
          )
          return yield* open(url, { messages: stored, resume: true })
        })
        const first = yield* reload
        void first.chat().sendMessage({ text: "a" })
        yield* until(first, "user: a", "assistant: half")
        yield* Effect.promise(() => first.close())
        const second = yield* reload
        yield* until(second, "user: a", "assistant: half and whole")
        void second.chat().sendMessage({ text: "b" })
        const asked = [
          "user: a",
          "assistant: half and whole",
          "user: b",
          "assistant: [4 °C][book approval-requested]"
        ]
        yield* until(second, ...asked)
        yield* Effect.promise(() => second.close())
        const third = yield* reload
        yield* until(third, ...asked)
        const part = third
          .chat()
          .messages.at(-1)
          ?.parts.find((part) => part.type === "tool-book")
        void third.chat().addToolApprovalResponse({ id: part?.approval?.id ?? "", approved: true })
        const whole = [...asked.slice(0, 3), "assistant: [4 °C][booked in Oslo]Done."]
        yield* until(third, ...whole)
        yield* Effect.promise(() => third.close())
        const fourth = yield* reload
        yield* until(fourth, ...whole)
        yield* Effect.promise(() => fourth.close())
      }).pipe(Effect.scoped)
  )
})
