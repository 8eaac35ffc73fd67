/** Calls in the background, as pages, editors and programs show them. */
import { assert, describe, it } from "@effect/vitest"
import { HttpAgent } from "@ag-ui/client"
import { DefaultChatTransport, isToolUIPart } from "ai"
import { Effect, Fiber, Latch, Queue, Stream } from "effect"
import { Agent, AgentEvent, Approval, RunReport, Tool } from "effect-agent"
import { AcpUpdates } from "effect-agent/acp"
import { AgUi } from "effect-agent/ag-ui"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { OneRingEmitter } from "effect-agent/compat"
import { ScriptedProvider } from "effect-agent/testing"
import { Chat } from "./aiSdk.ts"

const script = [
  ScriptedProvider.toolCall("work", {}, { id: "c1" }),
  ScriptedProvider.text("I wait."),
  ScriptedProvider.text("Done.")
]

/** The events of a run with a call that ends after its turn. */
const events = Effect.gen(function* () {
  const end = yield* Latch.make(false)
  const work = Tool.make({
    name: "work",
    description: "Works.",
    blocking: false,
    execute: () => Effect.as(end.await, "worked")
  })
  const agent = yield* Agent.make({ model: "m", tools: [work] })
  const seen: Array<AgentEvent.AgentEvent> = []
  yield* agent.subscribe((event) => {
    seen.push(event)
    return event._tag === "TurnEnd" && event.turn === 2 ? end.open : Effect.void
  })
  yield* agent.prompt("Work.")
  return seen
}).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))

const folded = (all: ReadonlyArray<AgentEvent.AgentEvent>) =>
  all.reduce(AgentEvent.fold, AgentEvent.initial()).messages

describe("a call in the background (row 151)", () => {
  it.effect("is a part of an AI SDK page until it ends, and its end is no message of the person", () =>
    Effect.gen(function* () {
      const all = yield* events
      const chat = new Chat({
        id: "chat-1",
        transport: new DefaultChatTransport({
          api: "http://localhost/",
          fetch: async () => AiSdkUi.webResponse(Stream.fromIterable(all))
        })
      })
      yield* Effect.promise(() => chat.sendMessage({ text: "Work." }))
      assert.isUndefined(chat.error)
      assert.deepStrictEqual(
        chat.messages.map(({ role }) => role),
        ["user", "assistant"]
      )
      const [part] = chat.lastMessage?.parts.filter(isToolUIPart) ?? []
      assert.deepStrictEqual([part?.state, part?.output], ["output-available", "worked"])
      const { lastMessage } = chat
      assert.deepStrictEqual(
        AiSdkUi.messagesOf(lastMessage === undefined ? [] : [lastMessage]).map(({ id }) => id),
        folded(all).map(({ id }) => id)
      )
      const stored = AiSdkUi.uiMessages(folded(all))
      assert.deepStrictEqual(
        stored.map(({ role }) => role),
        ["user", "assistant"]
      )
    })
  )

  it.effect("is followed by an AG-UI client, which rebuilds the messages with their ends", () =>
    Effect.gen(function* () {
      const all = yield* events
      const customs: Array<string> = []
      const agent = new HttpAgent({
        url: "http://localhost/",
        initialMessages: [{ id: "user-1", role: "user", content: "Work." }],
        fetch: async (_, init) => AgUi.webResponse(Stream.fromIterable(all), JSON.parse(String(init?.body)))
      })
      yield* Effect.promise(() =>
        agent.runAgent({ runId: "run-1" }, { onCustomEvent: ({ event }) => void customs.push(event.name) })
      )
      assert.includeMembers(customs, ["effect-agent.ToolBackgrounded", "effect-agent.ToolExecutionEnd"])
      const ends = AgUi.messagesOf(agent.messages).flatMap((message) =>
        message.role === "user" ? (message.backgroundEnds ?? []) : []
      )
      assert.deepStrictEqual(
        ends.map(({ handle, toolName }) => [handle, toolName]),
        [["bg_1", "work"]]
      )
    })
  )

  it.effect("is a call that completes in an editor, and one that does not block for oneringai", () =>
    Effect.gen(function* () {
      const all = yield* events
      let state = AcpUpdates.initial({ cwd: "/" })
      const updates = all.flatMap((event) => {
        const [next, more] = AcpUpdates.step(state, event)
        state = next
        return more
      })
      const statuses = updates.flatMap((update) =>
        "status" in update && update.status ? [update.status] : []
      )
      assert.deepStrictEqual(statuses, ["pending", "in_progress", "completed"])
      assert.isFalse(updates.some(({ sessionUpdate }) => sessionUpdate === "user_message_chunk"))
      const emitted = yield* Stream.runCollect(OneRingEmitter.project(Stream.fromIterable(all)))
      const [complete] = emitted.filter((event) => event.type === "tool:complete")
      assert.deepStrictEqual(
        [complete?.toolCall.blocking, complete?.toolCall.function.arguments, complete?.iteration],
        [false, "{}", 1]
      )
      assert.strictEqual(RunReport.fromEvents(all).toolSuccess, 1)
    })
  )

  it.effect("that asks a person lets the run wait only when nothing else is to be done", () =>
    Effect.gen(function* () {
      const work = Tool.make({
        name: "work",
        description: "Asks.",
        blocking: false,
        execute: Effect.fnUntraced(function* () {
          const { ask } = yield* Tool.ToolContext
          if (ask !== undefined) yield* ask({ question: "Sure?", schema: { type: "string" } })
          return "asked"
        })
      })
      const agent = yield* Agent.make({ model: "m", tools: [work] }).pipe(
        Effect.provide(Approval.layer({ otherwise: "allow", asked: "wait" }))
      )
      let state = AgUi.initial({ threadId: "t", runId: "r", messages: [] })
      const waits: Array<string> = []
      const waiting = yield* Queue.unbounded<string>()
      yield* agent.subscribe((event) => {
        const before = AgUi.isWaiting(state)
        ;[state] = AgUi.step(state, event)
        if (before || !AgUi.isWaiting(state)) return Effect.void
        waits.push(event._tag)
        const [request] = AgUi.requests(state)
        return Queue.offer(waiting, request?._tag === "QuestionAsked" ? request.questionId : "")
      })
      const run = yield* Effect.forkChild(agent.prompt("Work."), { startImmediately: true })
      yield* agent.answer(yield* Queue.take(waiting), { answer: "yes" })
      yield* Fiber.join(run)
      assert.deepStrictEqual(waits, ["TurnEnd"])
    }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))
  )
})
