import { buildResumeArray, HttpAgent } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { type UIMessage, validateUIMessages } from "ai"
import { Effect } from "effect"
import { AgUi } from "effect-agent/ag-ui"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { ScriptedProvider } from "effect-agent/testing"
import * as Chats from "./chats.ts"
import * as Host from "./host.ts"
import * as Scripted from "./scripted.ts"

const approval = ScriptedProvider.toolCall("remove", { what: "a" })
const done = ScriptedProvider.text("Done.")

/** The messages of a page are those of the AI SDK. */
export const uiMessageOf = (message: AiSdkUi.UiMessage): UIMessage => message

const stored = (url: string, id: string) =>
  Effect.promise(
    async (): Promise<Array<UIMessage>> => (await fetch(`${url}/ui/chat/${encodeURIComponent(id)}`)).json()
  )

/** The parts that a person sees. */
const shown = (message: UIMessage | undefined) =>
  (message?.parts ?? []).flatMap((part) => {
    if (part.type.startsWith("data-") || part.type === "step-start") return []
    if (part.type === "text" || part.type === "reasoning") return [[part.type, part.text]]
    if ("toolCallId" in part)
      return [[part.type, part.toolCallId, part.state, part.input, part.output, part.errorText]]
    return [part.type === "file" || part.type.startsWith("source-") ? part : [part.type]]
  })

describe("AiSdkUi.uiMessages", () => {
  for (const decision of ["approve", "reject"] as const)
    it.effect(`gives the messages that a page has that has followed the runs (${decision})`, () =>
      Effect.gen(function* () {
        const events = yield* Scripted.events({ decision })
        const transcript = Scripted.folded(events)
        const messages = AiSdkUi.uiMessages(transcript)
        assert.deepStrictEqual(AiSdkUi.messagesOf(messages), transcript)
        yield* Effect.promise(() => validateUIMessages({ messages }))
        const live = yield* Chats.whole(events)
        const isOfRun = (part: unknown) => !JSON.stringify(part).includes("steering-message")
        const parts = messages
          .slice(1)
          .filter(({ role }) => role === "assistant")
          .flatMap(shown)
        // Calls of runs inside have parts only where a page follows them.
        const inside = (part: unknown) => /"run_[^"]*:c4"/.test(JSON.stringify(part))
        assert.deepStrictEqual(
          Chats.plain(parts),
          Chats.plain(shown(live).filter((part) => isOfRun(part) && !inside(part)))
        )
      })
    )
})

describe("GET /ui/chat/{chatId}", () => {
  it.live("gives a fresh page the conversation, which it continues, edits and regenerates", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: [1, 2, 3, 4].map(() => () => done) })
      assert.deepStrictEqual(yield* stored(url, "chat-1"), [])
      const first = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(() => first.sendMessage({ text: "one" }))
      const chat = Chats.chatOf(url, "chat-1", undefined, yield* stored(url, "chat-1"))
      yield* Effect.promise(async () => {
        await chat.resumeStream()
        await chat.sendMessage({ text: "two" })
        await chat.regenerate()
        await chat.sendMessage({ text: "other", messageId: chat.messages[0]?.id ?? "" })
      })
      assert.isUndefined(chat.error)
      assert.deepStrictEqual(
        (yield* stored(url, "chat-1")).map((message) => Chats.partsOf(message, "text")[0]?.text),
        ["other", "Done."]
      )
      const { view } = yield* runs.sessions.get("chat-1")
      assert.deepStrictEqual<unknown>(Chats.plain(AiSdkUi.messagesOf(chat.messages)), view["messages"])
    }).pipe(Effect.scoped)
  )

  for (const asked of ["wait", "defer"] as const)
    it.live(`leaves an open run to its stream, which asks again (${asked})`, () =>
      Effect.gen(function* () {
        const { url } = yield* Host.make({ turns: [approval, done], asked })
        yield* Effect.promise(() => Chats.chatOf(url, "chat-1").sendMessage({ text: "one" }))
        const messages = yield* stored(url, "chat-1")
        assert.deepStrictEqual(
          messages.map(({ role }) => role),
          ["user"]
        )
        const chat = Chats.chatOf(url, "chat-1", undefined, messages)
        yield* Effect.promise(async () => {
          await chat.resumeStream()
          await Chats.answering(chat)
        })
        assert.isUndefined(chat.error)
        assert.lengthOf(chat.messages, 2)
        assert.deepStrictEqual(
          Chats.toolsOf(chat.lastMessage).map(({ state }) => state),
          ["output-available"]
        )
      }).pipe(Effect.scoped)
    )
})

describe("POST /ag-ui of a client that lacks messages", () => {
  const agentOf = (url: string) => new HttpAgent({ url: `${url}/ag-ui`, threadId: "thread-1" })
  const shownBy = ({ messages }: HttpAgent) => messages.map(({ content, role }) => `${role} ${content ?? ""}`)

  it.live("gives it the conversation, alone or before the answer to its message", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: [approval, done, done, done] })
      const first = agentOf(url)
      first.addMessage({ id: "u1", role: "user", content: "one" })
      yield* Effect.promise(() => first.runAgent({ runId: "r1" }))
      const fresh = agentOf(url)
      yield* Effect.promise(async () => {
        await fresh.runAgent({ runId: "r2" })
        const answers = fresh.pendingInterrupts.map(({ id }) => [
          id,
          { status: "resolved" as const, payload: { approved: true } }
        ])
        const resume = buildResumeArray(fresh.pendingInterrupts, Object.fromEntries(answers))
        await fresh.runAgent({ runId: "r3", resume })
      })
      const rebuilt = Effect.gen(function* () {
        const { view } = yield* runs.sessions.get("thread-1")
        return view["messages"]
      })
      assert.deepStrictEqual<unknown>(Chats.plain(AgUi.messagesOf(fresh.messages)), yield* rebuilt)
      const all = ["user one", "assistant ", "tool a is gone", "assistant Done."]
      assert.deepStrictEqual(shownBy(fresh), all)
      const other = agentOf(url)
      yield* Effect.promise(() => other.runAgent({ runId: "r4" }))
      assert.deepStrictEqual(shownBy(other), all)
      const last = agentOf(url)
      last.addMessage({ id: "u2", role: "user", content: "two" })
      yield* Effect.promise(() => last.runAgent({ runId: "r5" }))
      assert.deepStrictEqual(shownBy(last), [...all, "user two", "assistant Done."])
      assert.deepStrictEqual<unknown>(Chats.plain(AgUi.messagesOf(last.messages)), yield* rebuilt)
      yield* Effect.promise(() => last.runAgent({ runId: "r6" }))
      assert.lengthOf(yield* runs.list("thread-1"), 2)
    }).pipe(Effect.scoped)
  )
})
