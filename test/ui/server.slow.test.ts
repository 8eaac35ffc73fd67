import { buildResumeArray, HttpAgent } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { AgUi } from "effect-agent/ag-ui"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Chats from "./chats.ts"
import * as Host from "./host.ts"
import * as Scripted from "./scripted.ts"

const endless = [ScriptedProvider.turn(Step.start, Step.text("half"), Step.never)]
const two = [
  ScriptedProvider.turn(
    Step.start,
    Step.toolCall("remove", { what: "a" }),
    Step.toolCall("remove", { what: "b" }),
    Step.toolCall("look", { where: "c" }),
    Step.finish("toolUse")
  ),
  ScriptedProvider.text("Done.")
]

/** Answers that go on where another agent of the session continues. */
const counting = () => {
  const texts = ["one", "two", "three", "four", "five", "six"]
  return texts.map(() => () => ScriptedProvider.text(texts.shift() ?? ""))
}

const question = [
  ScriptedProvider.toolCall("ask_user", { question: "Sure?" }),
  ScriptedProvider.text("Done.")
]

const post = (url: string, body: object) =>
  Effect.promise(() =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
  )
const prompt = (id: string, text: string, messageId = "u1") => ({
  id,
  trigger: "submit-message",
  messages: [{ id: messageId, role: "user", parts: [{ type: "text", text }] }]
})

/** The status of a run, once it has ended. */
const ended = (runs: Host.Service, runId: string | undefined) =>
  Effect.gen(function* () {
    const events = yield* Stream.runCollect(yield* runs.events(runId ?? "", 0))
    const last = events.at(-1)?.event
    return last?._tag === "RunEnd" ? last.status : undefined
  })

describe("POST /ui/chat", () => {
  it.live("rebuilds a session with approvals, a question, a sub-agent and a message that steers", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make()
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(() => chat.sendMessage({ text: "clean up" }))
      const runId = yield* runs.active("chat-1")
      yield* runs.steer(runId ?? "", "Be careful")
      yield* Effect.promise(() => Chats.answering(chat))
      assert.isUndefined(chat.error)
      const events = yield* Host.eventsOf(runs, "chat-1")
      assert.deepStrictEqual(AiSdkUi.messagesOf(chat.messages), Scripted.folded(events))
      assert.deepStrictEqual(
        Chats.plain(chat.lastMessage?.parts),
        Chats.plain((yield* Chats.whole(events))?.parts)
      )
      assert.strictEqual(chat.messages.length, 2)
      assert.strictEqual(Chats.partsOf(chat.lastMessage, "steering-message").length, 1)
      assert.strictEqual(Chats.partsOf(chat.lastMessage, "text").at(-1)?.text, "All done.")
    }).pipe(Effect.scoped)
  )

  it.live("asks for two approvals of a turn at once, and runs what is allowed beside them", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: two })
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(() => chat.sendMessage({ text: "clean up" }))
      assert.deepStrictEqual(
        Chats.toolsOf(chat.lastMessage).map(({ state }) => state),
        ["approval-requested", "approval-requested", "output-available"]
      )
      yield* Effect.promise(() => Chats.answering(chat, false))
      assert.deepStrictEqual(
        Chats.toolsOf(chat.lastMessage).map(({ state }) => state),
        ["output-denied", "output-denied", "output-available"]
      )
      const events = yield* Host.eventsOf(runs, "chat-1")
      assert.deepStrictEqual(AiSdkUi.messagesOf(chat.messages), Scripted.folded(events))
    }).pipe(Effect.scoped)
  )

  it.live("continues a suspended run in the same message", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: two, asked: "defer" })
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(() => chat.sendMessage({ text: "clean up" }))
      yield* Effect.promise(() => Chats.answering(chat))
      assert.isUndefined(chat.error)
      assert.strictEqual(chat.messages.length, 2)
      const events = yield* Host.eventsOf(runs, "chat-1")
      assert.deepStrictEqual(AiSdkUi.messagesOf(chat.messages), Scripted.folded(events))
      assert.deepStrictEqual(
        Chats.toolsOf(chat.lastMessage).map(({ state }) => state),
        ["output-available", "output-available", "output-available"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("refuses a prompt while a run goes on, and what no run waits for", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: endless })
      const first = yield* post(`${url}/ui/chat`, prompt("chat-1", "one"))
      const runId = yield* runs.active("chat-1")
      const second = yield* post(`${url}/ui/chat`, prompt("chat-1", "two", "u2"))
      assert.strictEqual(second.status, 409)
      assert.include(yield* Effect.promise(() => second.json()), { runId })
      const answer = {
        id: "chat-1",
        trigger: "submit-message",
        messages: [{ id: "a1", role: "assistant", parts: [] }]
      }
      assert.strictEqual((yield* post(`${url}/ui/chat`, answer)).status, 409)
      assert.strictEqual((yield* post(`${url}/ui/chat`, { ...answer, id: "chat-2" })).status, 400)
      assert.strictEqual((yield* post(`${url}/ui/chat`, { id: 1 })).status, 400)
      yield* Effect.promise(async () => first.body?.cancel())
    }).pipe(Effect.scoped)
  )

  it.live("takes an error of the client as its refusal to answer a question", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: question })
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(async () => {
        await chat.sendMessage({ text: "go" })
        const [part] = Chats.toolsOf(chat.lastMessage)
        const toolCallId = part?.toolCallId ?? ""
        await chat.addToolOutput({
          tool: "ask_user",
          toolCallId,
          state: "output-error",
          errorText: "no idea"
        })
        await Chats.answering(chat)
      })
      assert.isUndefined(chat.error)
      assert.strictEqual(Chats.partsOf(chat.lastMessage, "text").at(-1)?.text, "Done.")
      const events = yield* Host.eventsOf(runs, "chat-1")
      assert.include(JSON.stringify(events), "Tool execution was rejected: no idea")
      assert.deepStrictEqual(AiSdkUi.messagesOf(chat.messages), Scripted.folded(events))
    }).pipe(Effect.scoped)
  )

  it.live("regenerates answers, and takes edited messages", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: counting() })
      let isDown = false
      const chat = Chats.chatOf(url, "chat-1", (input, init) =>
        isDown ? Promise.reject(new TypeError("network error")) : fetch(input, init)
      )
      const shown = () => chat.messages.map((message) => Chats.partsOf(message, "text")[0]?.text)
      const kept = Effect.map(runs.sessions.get("chat-1"), ({ view }) => view["messages"])
      const rebuilt = Effect.gen(function* () {
        assert.isUndefined(chat.error)
        assert.deepStrictEqual<unknown>(Chats.plain(AiSdkUi.messagesOf(chat.messages)), yield* kept)
      })
      yield* Effect.promise(() => chat.sendMessage({ text: "a" }))
      yield* Effect.promise(() => chat.regenerate())
      assert.deepStrictEqual(shown(), ["a", "two"])
      yield* rebuilt
      yield* Effect.promise(() => chat.sendMessage({ text: "b" }))
      const [first] = chat.messages
      yield* Effect.promise(() => chat.sendMessage({ text: "c", messageId: first?.id ?? "" }))
      assert.deepStrictEqual(shown(), ["c", "four"])
      yield* rebuilt
      isDown = true
      yield* Effect.promise(() => chat.sendMessage({ text: "d" }))
      isDown = false
      assert.strictEqual(chat.status, "error")
      yield* Effect.promise(() => chat.regenerate())
      assert.deepStrictEqual(shown(), ["c", "four", "d", "five"])
      yield* rebuilt
      yield* Effect.promise(() => chat.regenerate({ messageId: chat.messages[1]?.id ?? "" }))
      assert.deepStrictEqual(shown(), ["c", "six"])
      yield* rebuilt
      const unknown = { ...prompt("chat-1", "e"), trigger: "regenerate-message" }
      const refused = yield* post(`${url}/ui/chat`, unknown)
      assert.strictEqual(refused.status, 404)
      assert.include(yield* Effect.promise(() => refused.json()), { sessionId: "chat-1", messageId: "u1" })
      yield* rebuilt
    }).pipe(Effect.scoped)
  )

  it.live("stops a run by its own route alone: leaving does not cancel it", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: endless })
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(async () => {
        const sending = chat.sendMessage({ text: "one" })
        while (Chats.partsOf(chat.lastMessage, "text").at(-1)?.text !== "half") await Chats.tick()
        await chat.stop()
        await sending
      })
      const runId = yield* runs.active("chat-1")
      assert.strictEqual((yield* runs.get(runId ?? "")).status, "running")
      const resuming = chat.resumeStream()
      assert.strictEqual((yield* post(`${url}/ui/chat/chat-1/stop`, {})).status, 204)
      yield* Effect.promise(() => resuming)
      assert.strictEqual(yield* ended(runs, runId), "cancelled")
      assert.deepStrictEqual(
        [chat.status, Chats.partsOf(chat.lastMessage, "text").map(({ text }) => text)],
        ["ready", ["half"]]
      )
      assert.strictEqual((yield* Effect.promise(() => fetch(`${url}/ui/chat/chat-1/stream`))).status, 204)
      assert.strictEqual((yield* Effect.promise(() => fetch(`${url}/ui/chat/other/stream`))).status, 204)
    }).pipe(Effect.scoped)
  )

  it.live("cancels a run whose client leaves, where it asks so, but not one that waits for its answer", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: endless })
      const response = yield* post(`${url}/ui/chat?onDisconnect=cancel`, prompt("chat-1", "one"))
      const runId = yield* runs.active("chat-1")
      yield* Effect.promise(async () => response.body?.cancel())
      assert.strictEqual(yield* ended(runs, runId), "cancelled")
      const other = yield* Host.make({ turns: two })
      const waiting = yield* post(`${other.url}/ui/chat?onDisconnect=cancel`, prompt("chat-1", "one"))
      assert.include(yield* Effect.promise(() => waiting.text()), '"finishReason":"tool-calls"')
      yield* Effect.sleep(20)
      const run = yield* other.runs.get((yield* other.runs.active("chat-1")) ?? "")
      assert.strictEqual(run.pending.approvals.length, 2)
    }).pipe(Effect.scoped)
  )

  it.live("shows a failure", () =>
    Effect.gen(function* () {
      const { url } = yield* Host.make({
        turns: [ScriptedProvider.text("Fine."), ...[1, 2, 3, 4].map(() => failing)]
      })
      const chat = Chats.chatOf(url, "chat-1")
      yield* Effect.promise(() => chat.sendMessage({ text: "one" }))
      yield* Effect.promise(() => chat.sendMessage({ text: "two" }))
      assert.strictEqual(chat.status, "error")
      assert.include(chat.lastMessage?.metadata, { status: "failed" })
    }).pipe(Effect.scoped)
  )
})

const failing = ScriptedProvider.turn(Step.start, Step.text("half"), Step.fail(Scripted.overloaded))

const agentOf = (url: string) => {
  const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId: "thread-1" })
  agent.addMessage({ id: "user-1", role: "user", content: "clean up" })
  return agent
}

/** Runs an agent, and answers its interrupts until it has none. Succeeds with the number of runs. */
const answered = (agent: HttpAgent, answer: (message: string | undefined) => unknown) =>
  Effect.promise(async () => {
    await agent.runAgent({ runId: "run-0" })
    let runs = 1
    for (; agent.pendingInterrupts.length > 0; runs++) {
      const replies = agent.pendingInterrupts.map(({ id, message }) => [
        id,
        { status: "resolved" as const, payload: answer(message) }
      ])
      const resume = buildResumeArray(agent.pendingInterrupts, Object.fromEntries(replies))
      await agent.runAgent({ runId: `run-${runs}`, resume })
    }
    return runs
  })

describe("the guards of the server", () => {
  it.live("stand before the routes", () =>
    Effect.gen(function* () {
      const { guardedUrl, runs } = yield* Host.make({ turns: [ScriptedProvider.text("Fine.")] })
      const ask = (path: string, headers: Record<string, string>, body: string | null) =>
        Effect.promise(() => fetch(guardedUrl + path, { method: "POST", headers, body }))
      const json = { "content-type": "application/json" }
      const authorization = `Bearer ${Host.token}`
      const deep = "[".repeat(100_000) + "]".repeat(100_000)
      for (const [path, body] of [
        ["/ui/chat", JSON.stringify(prompt("chat-1", "one"))],
        [
          "/ag-ui",
          JSON.stringify({ threadId: "t", runId: "r", messages: [{ id: "u", role: "user", content: "hi" }] })
        ]
      ] as const) {
        assert.strictEqual((yield* ask(path, json, body)).status, 401)
        assert.strictEqual(
          (yield* ask(path, { authorization, "content-type": "text/plain" }, body)).status,
          415
        )
        assert.strictEqual((yield* ask(path, { authorization, ...json }, "{")).status, 400)
        assert.strictEqual((yield* ask(path, { authorization, ...json }, deep)).status, 400)
        const nested = body.replace(
          /}$/,
          `,"resume":[{"interruptId":"1","status":"resolved","payload":${deep}}]}`
        )
        assert.isBelow((yield* ask(path, { authorization, ...json }, nested)).status, 500)
      }
      assert.isUndefined(yield* runs.active("t"))
      const chat = Chats.chatOf(guardedUrl, "chat-1", (input, init) =>
        fetch(input, { ...init, headers: { ...json, authorization } })
      )
      yield* Effect.promise(() => chat.sendMessage({ text: "one" }))
      assert.strictEqual(Chats.partsOf(chat.lastMessage, "text").at(-1)?.text, "Fine.")
      assert.strictEqual((yield* ask("/ui/chat/chat-1/stop", { authorization }, null)).status, 204)
    }).pipe(Effect.scoped)
  )
})

describe("POST /ag-ui", () => {
  it.live("rebuilds a session with approvals, a question, a sub-agent and a message that steers", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make()
      const agent = agentOf(url)
      const count = yield* answered(agent, (message) => (message === "Sure?" ? "Yes" : { approved: true }))
      assert.strictEqual(count, 4)
      const events = yield* Host.eventsOf(runs, "thread-1")
      assert.deepStrictEqual(AgUi.messagesOf(agent.messages), Scripted.folded(events))
      assert.deepStrictEqual(
        agent.messages.flatMap((message) =>
          message.role === "assistant" && message.content !== "" && message.content !== undefined
            ? [message.content]
            : []
        ),
        ["I'll look.", "On it.", "Cleaned.", "All done."]
      )
    }).pipe(Effect.scoped)
  )

  it.live("asks for two approvals at once, and continues a suspended run", () =>
    Effect.gen(function* () {
      for (const asked of ["wait", "defer"] as const) {
        const { runs, url } = yield* Host.make({ turns: two, asked })
        const agent = agentOf(url)
        assert.strictEqual(yield* answered(agent, () => ({ approved: false, reason: "no way" })), 2)
        const events = yield* Host.eventsOf(runs, "thread-1")
        assert.deepStrictEqual(AgUi.messagesOf(agent.messages), Scripted.folded(events))
        assert.include(JSON.stringify(agent.messages), "no way")
        assert.deepStrictEqual(
          agent.messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])),
          agent.messages.flatMap((message) =>
            message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id) : []
          )
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses answers that no run waits for, and payloads of another kind", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: two })
      const agent = agentOf(url)
      yield* Effect.promise(() => agent.runAgent({ runId: "run-0" }))
      const body = {
        threadId: "thread-1",
        runId: "run-1",
        messages: agent.messages,
        tools: [],
        context: []
      }
      const unknown = [{ interruptId: "none", status: "resolved", payload: { approved: true } }]
      assert.strictEqual((yield* post(`${url}/ag-ui`, { ...body, resume: unknown })).status, 409)
      const [first] = agent.pendingInterrupts
      const wrong = [{ interruptId: first?.id, status: "resolved", payload: "yes" }]
      assert.strictEqual((yield* post(`${url}/ag-ui`, { ...body, resume: wrong })).status, 422)
      assert.strictEqual(
        (yield* post(`${url}/ag-ui`, { ...body, threadId: "other", messages: [] })).status,
        400
      )
      assert.strictEqual((yield* post(`${url}/ag-ui`, { threadId: "other" })).status, 400)
      assert.strictEqual(
        (yield* runs.get((yield* runs.active("thread-1")) ?? "")).pending.approvals.length,
        2
      )
    }).pipe(Effect.scoped)
  )

  it.live("takes a cancelled question as the refusal to answer it", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: question })
      const agent = agentOf(url)
      yield* Effect.promise(async () => {
        await agent.runAgent({ runId: "run-0" })
        const resume = agent.pendingInterrupts.map(({ id }) => ({
          interruptId: id,
          status: "cancelled" as const
        }))
        await agent.runAgent({ runId: "run-1", resume })
      })
      assert.include(JSON.stringify(agent.messages), "the user declined to answer")
      const events = yield* Host.eventsOf(runs, "thread-1")
      assert.deepInclude(events.at(-1), { _tag: "RunEnd", status: "completed" })
      assert.deepStrictEqual(AgUi.messagesOf(agent.messages), Scripted.folded(events))
    }).pipe(Effect.scoped)
  )

  it.live("replaces what stands where the last message comes again", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: counting() })
      const agent = agentOf(url)
      const run = (runId: string) => Effect.promise(() => agent.runAgent({ runId }))
      const rebuilt = Effect.gen(function* () {
        const { view } = yield* runs.sessions.get("thread-1")
        assert.deepStrictEqual<unknown>(Chats.plain(AgUi.messagesOf(agent.messages)), view["messages"])
        return agent.messages.map(({ content }) => content)
      })
      yield* run("run-0")
      agent.setMessages(agent.messages.slice(0, 1))
      yield* run("run-1")
      assert.deepStrictEqual(yield* rebuilt, ["clean up", "two"])
      agent.addMessage({ id: "user-2", role: "user", content: "b" })
      yield* run("run-2")
      agent.setMessages([{ id: "user-1", role: "user", content: "c" }])
      yield* run("run-3")
      assert.deepStrictEqual(yield* rebuilt, ["c", "four"])
    }).pipe(Effect.scoped)
  )

  it.live("cancels a run whose client leaves where it asks so", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* Host.make({ turns: endless })
      for (const [query, threadId] of [
        ["", "running"],
        ["?onDisconnect=cancel", "cancelled"]
      ] as const) {
        const agent = new HttpAgent({ url: `${url}/ag-ui${query}`, threadId })
        agent.addMessage({ id: "user-1", role: "user", content: "one" })
        yield* Effect.promise(async () => {
          const running = agent.runAgent({ runId: "run-0" })
          while (!JSON.stringify(agent.messages).includes("half")) await Chats.tick()
          agent.abortRun()
          await running.catch(() => undefined)
        })
        const [run] = yield* runs.list(threadId)
        if (threadId === "cancelled") assert.strictEqual(yield* ended(runs, run?.runId), "cancelled")
        else assert.strictEqual(run?.status, "running")
      }
    }).pipe(Effect.scoped)
  )

  it.live("shows a failure", () =>
    Effect.gen(function* () {
      const { url } = yield* Host.make({ turns: [1, 2, 3, 4].map(() => failing) })
      const agent = agentOf(url)
      const errors: Array<string | undefined> = []
      yield* Effect.promise(() =>
        agent
          .runAgent({ runId: "run-0" }, { onRunErrorEvent: ({ event }) => void errors.push(event.code) })
          .catch(() => undefined)
      )
      assert.deepStrictEqual(errors, ["Defect"])
    }).pipe(Effect.scoped)
  )
})
