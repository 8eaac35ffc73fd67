import { HttpAgent } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Chats from "./chats.ts"
import * as Host from "./host.ts"

const endless = ScriptedProvider.turn(Step.start, Step.text("half"), Step.never)
const approval = ScriptedProvider.toolCall("remove", { what: "a" })
const question = ScriptedProvider.toolCall("ask_user", { question: "Sure?" })
const done = ScriptedProvider.text("Done.")

/** Answers that go on where another agent of the session continues. */
const inTurn = (...turns: Array<ScriptedProvider.Turn>) => turns.map(() => () => turns.shift() ?? done)

/** The roles and texts of the conversation as the session has it. */
const kept = (runs: Host.Service, id: string) =>
  Effect.map(runs.sessions.get(id), ({ view }) =>
    (view["messages"] as ReadonlyArray<Message.Message>).map((message) =>
      message.role === "custom" ? "custom" : `${message.role} ${Message.textOf(message)}`
    )
  )
const statuses = (runs: Host.Service, id: string) =>
  Effect.map(runs.list(id), (all) => all.map(({ status }) => status))

const until = async (isThere: () => boolean) => {
  while (!isThere()) await Chats.tick()
}
const textOf = (chat: ReturnType<typeof Chats.chatOf>) => Chats.partsOf(chat.lastMessage, "text").at(-1)?.text

const errorOf = ({ error }: ReturnType<typeof Chats.chatOf>) => error?.message

const post = (url: string, body: object) =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json" }
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  })
const user = (id: string, text: string) => ({ id, role: "user", parts: [{ type: "text", text }] })
const submit = (id: string, ...messages: ReadonlyArray<object>) => ({
  id,
  trigger: "submit-message",
  messages
})

describe("a message after stop()", () => {
  it.live("ends the run that its page left, and so does regenerate()", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: inTurn(endless, endless, done) })
      const chat = Chats.chatOf(url, "chat-1")
      const stopped = (send: () => Promise<void>) =>
        Effect.promise(async () => {
          const sending = send()
          await until(() => chat.status === "streaming" && textOf(chat) === "half")
          await chat.stop()
          await sending
        })
      yield* stopped(() => chat.sendMessage({ text: "one" }))
      yield* stopped(() => chat.regenerate())
      yield* Effect.promise(() => chat.sendMessage({ text: "two" }))
      assert.isUndefined(chat.error)
      assert.strictEqual(textOf(chat), "Done.")
      assert.deepStrictEqual(yield* kept(runs, "chat-1"), [
        "user one",
        "assistant half",
        "user two",
        "assistant Done."
      ])
      assert.deepStrictEqual(yield* statuses(runs, "chat-1"), ["cancelled", "cancelled", "completed"])
    }).pipe(Effect.scoped)
  )

  it.live("leaves a run alone that another page follows, and one whose page comes back", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: inTurn(endless, done) })
      const [one, two] = [Chats.chatOf(url, "chat-1"), Chats.chatOf(url, "chat-1")]
      yield* Effect.promise(async () => {
        const sending = one.sendMessage({ text: "one" })
        await until(() => textOf(one) === "half")
        const resuming = two.resumeStream()
        await until(() => textOf(two) === "half")
        await one.stop()
        await sending
        await one.sendMessage({ text: "two" })
        await two.stop()
        await resuming
      })
      assert.include(errorOf(one), "run-goes-on")
      yield* Effect.promise(() => one.regenerate())
      assert.isUndefined(one.error)
      assert.deepStrictEqual(yield* kept(runs, "chat-1"), [
        "user one",
        "assistant half",
        "user two",
        "assistant Done."
      ])
    }).pipe(Effect.scoped)
  )

  it.live("ends the run of a thread of AG-UI, which has a route that does it too", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: [endless, endless, done] })
      const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId: "thread-1" })
      const send = (id: string) => {
        agent.addMessage({ id, role: "user", content: id })
        return agent.runAgent({ runId: `run-${id}` })
      }
      const half = () => until(() => JSON.stringify(agent.messages.at(-1)).includes("half"))
      yield* Effect.promise(async () => {
        const first = send("one")
        await half()
        agent.abortRun()
        await first.catch(() => undefined)
        const second = send("two")
        await half()
        await fetch(`${url}/ag-ui/thread-1/stop`, { method: "POST" })
        await second
        await send("three")
      })
      assert.deepStrictEqual(yield* statuses(runs, "thread-1"), ["cancelled", "cancelled", "completed"])
      assert.strictEqual((yield* kept(runs, "thread-1")).at(-1), "assistant Done.")
    }).pipe(Effect.scoped)
  )
})

describe("a message in place of an answer", () => {
  for (const asked of ["wait", "defer"] as const) {
    it.live(`refuses what waits, and the chat goes on (${asked})`, () =>
      Effect.gen(function* () {
        const { runs, url } = yield* Host.make({ turns: [approval, question, done], asked })
        const chat = Chats.chatOf(url, "chat-1")
        yield* Effect.promise(async () => {
          for (const text of ["one", "two", "three"]) await chat.sendMessage({ text })
        })
        assert.isUndefined(chat.error)
        assert.deepStrictEqual(yield* kept(runs, "chat-1"), [
          "user one",
          "assistant ",
          "toolResult Tool execution was rejected: the user wrote a message and did not approve this call",
          "user two",
          "assistant ",
          "toolResult Tool execution was rejected: the user wrote a message and did not answer this question",
          "user three",
          "assistant Done."
        ])
        // The part of the first message still has its buttons: they begin nothing, and show what has become of the call.
        const part = () => Chats.toolsOf(chat.messages[1])[0]
        yield* Effect.promise(async () =>
          chat.addToolApprovalResponse({ id: part()?.approval?.id ?? "", approved: true })
        )
        yield* Effect.promise(() => chat.sendMessage())
        if (asked === "wait") assert.strictEqual(part()?.state, "output-denied")
        assert.lengthOf(yield* runs.list("chat-1"), 3)
      }).pipe(Effect.scoped)
    )
  }

  it.live("does so in AG-UI, where the client lets it through", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: [approval, done] })
      const one = { id: "u1", role: "user", content: "one" }
      const base = { threadId: "thread-1", tools: [], context: [] }
      yield* post(`${url}/ag-ui`, { ...base, runId: "r1", messages: [one] })
      const other = { id: "u2", role: "user", content: "two" }
      const messages = [one, { id: "a1", role: "assistant", content: "" }, other]
      const { status } = yield* post(`${url}/ag-ui`, { ...base, runId: "r2", messages })
      assert.strictEqual(status, 200)
      assert.strictEqual((yield* kept(runs, "thread-1")).at(-1), "assistant Done.")
    }).pipe(Effect.scoped)
  )
})

describe("a message that comes again", () => {
  it.live("is answered by the run that it began, while it goes on and after its end", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: [approval, done, done, done] })
      const api = `${url}/ui/chat`
      const first = yield* post(api, submit("chat-1", user("u1", "one")))
      const again = yield* post(api, submit("chat-1", user("u1", "one")))
      assert.include(again.text, "approval-request")
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(async () => {
        await chat.resumeStream()
        await Chats.answering(chat)
      })
      const whole = yield* post(api, submit("chat-1", user("u1", "one")))
      assert.include(whole.text, "Done.")
      yield* post(api, submit("chat-1", user("u2", "two")))
      assert.strictEqual((yield* post(api, submit("chat-1", user("u1", "one")))).text, whole.text)
      assert.strictEqual((yield* post(api, submit("chat-1", user("u1", "other")))).status, 409)
      // Its answer has not come to the client.
      yield* post(api, submit("chat-1", user("u2", "two"), user("u3", "three")))
      assert.deepStrictEqual(yield* statuses(runs, "chat-1"), ["completed", "completed", "completed"])
      assert.deepStrictEqual(
        (yield* kept(runs, "chat-1")).filter((text) => text.startsWith("user")),
        ["user one", "user two", "user three"]
      )
      assert.strictEqual(first.status, 200)
    }).pipe(Effect.scoped)
  )
})
