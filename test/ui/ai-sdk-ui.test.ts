import { assert, describe, it } from "@effect/vitest"
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  type UIDataTypes,
  type UIMessage,
  type UIMessageChunk,
  validateUIMessages
} from "ai"
import { Effect, Exit, Schema, Stream } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { Agent, type AgentEvent, Message, Tool } from "effect-agent"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { Chat } from "./aiSdk.ts"
import { serve } from "./http.ts"
import * as Scripted from "./scripted.ts"

/** The chunks are those of the AI SDK. */
export const chunkOf = (chunk: AiSdkUi.Chunk): UIMessageChunk => chunk

const ask = (fetch: () => Response) =>
  Effect.promise(async () => {
    const finished: Array<string | undefined> = []
    const transport = new DefaultChatTransport({ api: "http://localhost/", fetch: async () => fetch() })
    const chat = new Chat({
      id: "chat-1",
      transport,
      onFinish: (end) => void finished.push(end.finishReason)
    })
    await chat.sendMessage({ text: "clean up" })
    return { chat, finished, message: chat.lastMessage ?? { id: "", role: "user", parts: [] } }
  })
const received = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  ask(() => AiSdkUi.webResponse(Stream.fromIterable(events)))

type UiMessage = Chat["messages"][number]
const toolsOf = ({ parts }: UiMessage) =>
  parts.flatMap((part) => (isToolUIPart(part) ? [`${getToolName(part)} ${part.state}`] : []))
const textOf = ({ parts }: UiMessage) =>
  parts.flatMap((part) =>
    part.type === "text" || part.type === "reasoning" ? [`${part.text} ${part.state}`] : []
  )
const eventsOf = ({ parts }: UiMessage, type: string) =>
  parts.flatMap((part) =>
    part.type === type && "data" in part && typeof part.data === "object" && part.data && "_tag" in part.data
      ? [part.data._tag]
      : []
  )

describe("AiSdkUi", () => {
  it.effect("rebuilds the messages of a run in a client", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const { chat, finished, message } = yield* received(events)
      assert.isUndefined(chat.error)
      assert.deepStrictEqual(AiSdkUi.messagesOf([message]), Scripted.folded(events))
      assert.deepStrictEqual(finished, ["stop"])
      assert.deepStrictEqual(toolsOf(message), [
        "look output-available",
        "remove output-available",
        "helper output-available",
        "remove output-available",
        "breaks output-error",
        "draw output-available",
        "look output-error",
        "ask_user output-available",
        "web_search output-available"
      ])
      assert.deepStrictEqual(textOf(message), [
        "Let me look first. done",
        "I'll look. done",
        "All done. done"
      ])
      assert.includeMembers(
        message.parts.map(({ type }) => type),
        ["steering-message", "source-url", "source-document", "file", "data-child"]
      )
      assert.deepStrictEqual(eventsOf(message, "data-event"), [
        "ModelCallRetry",
        "ApprovalAnswered",
        "ModelCallRetry",
        "QuestionAsked",
        "QuestionAnswered"
      ])
      assert.include(eventsOf(message, "data-child"), "MessageEnd")
      assert.notInclude(eventsOf(message, "data-child"), "MessageDelta")
      yield* Effect.promise(() => validateUIMessages({ messages: chat.messages }))
    })
  )

  it.effect("gives a client the same message, wherever the log has lost its deltas", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const { message: whole } = yield* received(events)
      for (const cut of Scripted.cuts(events)) {
        const { message } = yield* received(Scripted.withoutDeltas(events, cut))
        assert.deepStrictEqual(message.parts, whole.parts, `deltas up to ${cut}`)
      }
    })
  )

  it.effect("changes neither states nor events", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      let state = Scripted.frozen(AiSdkUi.initial())
      for (const event of Scripted.frozen(events)) {
        const [next, chunks] = AiSdkUi.step(state, event)
        assert.deepStrictEqual(AiSdkUi.step(state, event)[1], chunks)
        state = Scripted.frozen(next)
      }
      assert.isTrue(state.hasEnded)
    })
  )

  it.effect("takes the words of an answer back that a hook replaces", () =>
    Effect.gen(function* () {
      const events = Scripted.broken({}).flatMap((event): ReadonlyArray<AgentEvent.AgentEvent> => {
        if (event._tag !== "RunCancelled") return [event]
        const message = { ...Message.assistant("Other words"), id: "m1" }
        return [{ _tag: "MessageEnd", runId: "run-1", seq: 8, timestamp: 0, message }]
      })
      const { message } = yield* received(events)
      assert.deepStrictEqual(textOf(message), ["Other words done"])
    })
  )

  it.effect("ends a response as the run ended, with nothing left open", () =>
    Effect.gen(function* () {
      const message = "overloaded"
      for (const [end, status, error, reason] of [
        [{ status: "failed", error: { _tag: "Defect", message } }, "error", message, ["error"]],
        [{ status: "cancelled" }, "ready", undefined, [undefined]],
        [{ status: "suspended", resume: { runId: "run-1" } }, "ready", undefined, ["interrupted"]],
        [{ status: "incomplete" }, "ready", undefined, ["other"]]
      ] as const) {
        const { chat, finished, message } = yield* received(Scripted.broken(end))
        assert.strictEqual(chat.status, status)
        assert.strictEqual(chat.error?.message, error)
        assert.deepStrictEqual(finished, [...reason])
        assert.deepStrictEqual(textOf(message), [" done", "half done"])
        assert.deepInclude(message.metadata, { runId: "run-1", status: end.status, turns: 1 })
      }
      const chunks = yield* Stream.runCollect(
        AiSdkUi.project()(Stream.fromIterable(Scripted.broken({ status: "cancelled" })))
      )
      assert.deepStrictEqual(chunks.at(-1), { type: "abort", reason: "stopped" })
    })
  )

  it.effect("ends with an error where the events fail, and shows no defect", () =>
    Effect.gen(function* () {
      const start = Stream.fromIterable(Scripted.broken({}).slice(0, 5))
      const failed = yield* ask(() =>
        AiSdkUi.webResponse(Stream.concat(start, Stream.fail(new Error("lost"))))
      )
      assert.strictEqual(failed.chat.error?.message, "lost")
      const died = yield* ask(() => AiSdkUi.webResponse(Stream.concat(start, Stream.die("secret"))))
      assert.strictEqual(died.chat.error?.message, "The run failed")
      const late = Stream.concat(Stream.fromIterable(Scripted.broken({})), Stream.fail("late"))
      assert.isUndefined((yield* ask(() => AiSdkUi.webResponse(late))).chat.error)
    })
  )

  it.effect("shows refused calls as denied, with the reason", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events({ decision: "reject" })
      const { chat, message } = yield* received(events)
      const denied = message.parts.flatMap((part) =>
        isToolUIPart(part) && part.state === "output-denied" ? [part.approval.reason] : []
      )
      assert.deepStrictEqual(denied, ["no way", "no way"])
      yield* Effect.promise(() => validateUIMessages({ messages: chat.messages }))
      // A policy may refuse without a person.
      const unasked = events.filter(({ _tag }) => !_tag.startsWith("Approval"))
      const automatic = yield* received(unasked)
      assert.include(toolsOf(automatic.message), "remove output-denied")
      yield* Effect.promise(() => validateUIMessages({ messages: automatic.chat.messages }))
    })
  )

  it.effect("keeps calls apart whose ids come again", () =>
    Effect.gen(function* () {
      const call = (name: string, params: Schema.Json) =>
        ScriptedProvider.turn(Step.start, Step.toolCall(name, params, { id: "c" }), Step.finish("toolUse"))
      const events = yield* Scripted.events({
        decision: "reject",
        turns: [call("remove", { what: "a" }), call("look", { where: "b" }), ScriptedProvider.text("Done.")]
      })
      const { message } = yield* received(events)
      assert.deepStrictEqual(toolsOf(message), ["remove output-denied", "look output-available"])
    })
  )

  it.effect("gives pages the values that tools return, in parts with the names of the tools", () =>
    Effect.gen(function* () {
      const params = Schema.Struct({ city: Schema.String })
      const value = { city: "Oslo", celsius: 4 }
      const plain = { description: "A tool.", params }
      const tools = [
        Tool.make({ ...plain, name: "object", execute: ({ city }) => Effect.succeed({ city, celsius: 4 }) }),
        Tool.make({ ...plain, name: "text", execute: () => Effect.succeed(JSON.stringify(value)) }),
        Tool.make({ ...plain, name: "number", execute: () => Effect.succeed(42) }),
        Tool.make({ ...plain, name: "digits", execute: () => Effect.succeed("42") }),
        Tool.make({ ...plain, name: "nothing", execute: () => Effect.void }),
        Tool.make({
          ...plain,
          name: "encoded",
          success: Schema.Struct({ at: Schema.DateFromString }),
          execute: () => Effect.succeed({ at: new Date(0) })
        }),
        Tool.make({ ...plain, name: "word", success: Schema.String, execute: () => Effect.succeed("Hi") }),
        Tool.make({
          ...plain,
          name: "own",
          execute: () => Effect.succeed(Tool.output("4 °C", { details: value }))
        }),
        Tool.make({ ...plain, name: "mcp__web__find", execute: () => Effect.succeed([1]) })
      ] as const
      const calls = tools.map(({ name }) => Step.toolCall(name, { city: "Oslo" }))
      const turns = [
        ScriptedProvider.turn(Step.start, ...calls, Step.finish("toolUse")),
        ScriptedProvider.text("")
      ]
      const events = yield* Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "scripted", tools: [...tools] })
        return yield* Stream.runCollect(agent.streamEvents("Hi"))
      }).pipe(Effect.provide(ScriptedProvider.layer(turns)), Effect.scoped)
      const { message } = yield* received(events)
      assert.deepStrictEqual(
        message.parts.flatMap((part) => (isToolUIPart(part) ? [[part.type, part.output]] : [])),
        [
          ["tool-object", value],
          ["tool-text", JSON.stringify(value)],
          ["tool-number", 42],
          ["tool-digits", "42"],
          ["tool-nothing", ""],
          ["tool-encoded", { at: "1970-01-01T00:00:00.000Z" }],
          ["tool-word", "Hi"],
          ["tool-own", { content: [{ type: "text", text: "4 °C" }], details: value }],
          ["dynamic-tool", [1]]
        ]
      )
      yield* Effect.promise(() => validateUIMessages({ messages: [message] }))
      const celsius = ({ parts }: UIMessage<AiSdkUi.Metadata, UIDataTypes, AiSdkUi.UiTools<typeof tools>>) =>
        parts.flatMap((part) =>
          part.type === "tool-object" && part.state === "output-available" ? [part.output.celsius] : []
        )
      assert.isFunction(celsius)
      const chunks = yield* Stream.runCollect(AiSdkUi.project({ dynamic: true })(Stream.fromIterable(events)))
      assert.isTrue(chunks.every((chunk) => chunk.type !== "tool-input-start" || chunk.dynamic === true))
    })
  )

  it.effect("waits only where every call of the turn waits or has ended", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      let state = AiSdkUi.initial()
      const waiting = events.flatMap((event) => {
        state = AiSdkUi.step(state, event)[0]
        return AiSdkUi.isWaiting(state)
          ? [AiSdkUi.requests(state).map(({ request }) => request.toolCallId)]
          : []
      })
      assert.isTrue(waiting.every(({ length }) => length === 1))
      assert.includeDeepMembers(waiting, [["c4"]])
      assert.isFalse(AiSdkUi.isWaiting(state))
    })
  )

  it("reads no answer from an output that shows how far a call has come", () => {
    const part = { type: "dynamic-tool", toolCallId: "c1", state: "output-available", output: "half" }
    const request = (preliminary: boolean): AiSdkUi.ChatRequest => ({
      id: "s",
      trigger: "submit-message",
      messages: [{ id: "m", role: "assistant", parts: [{ ...part, preliminary }] }]
    })
    assert.deepStrictEqual(AiSdkUi.answers(request(true)).outputs, [])
    assert.deepStrictEqual(AiSdkUi.answers(request(false)).outputs, [
      { toolCallId: "c1", answer: { answer: "half" } }
    ])
  })

  it("reads prompts with files", () => {
    const decode = Schema.decodeUnknownSync(AiSdkUi.ChatRequest)
    const file = { type: "file", mediaType: "image/png", url: "data:image/png;base64,aGk=" }
    const request = (parts: ReadonlyArray<object>) => ({
      id: "c",
      trigger: "submit-message",
      messages: [
        { id: "u1", role: "user", parts: [{ type: "text", text: "old" }] },
        { id: "a1", role: "assistant", metadata: null, parts: [{ type: "step-start" }] },
        { id: "u2", role: "user", parts }
      ]
    })
    const parts = [
      { type: "text", text: "Look" },
      file,
      { ...file, mediaType: "image", url: "https://example.com/a.png" },
      { ...file, mediaType: "text/plain", url: "data:text/plain,a%20b", filename: "a.txt" }
    ]
    assert.deepStrictEqual(
      AiSdkUi.prompt(decode(request(parts)), 1).map(({ content, id }) => ({ content, id })),
      [
        {
          id: "u2",
          content: [
            Message.text("Look"),
            Message.image("aGk=", "image/png"),
            { type: "image", source: { url: "https://example.com/a.png" } },
            { type: "file", source: { data: "YSBi", mediaType: "text/plain" }, name: "a.txt" }
          ]
        }
      ]
    )
    for (const url of ["file:///etc/passwd", "javascript:1", ""]) {
      assert.isTrue(
        Exit.isFailure(Schema.decodeUnknownExit(AiSdkUi.ChatRequest)(request([{ ...file, url }])))
      )
    }
  })

  it.live("answers a client of the AI SDK over HTTP with one line", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "scripted" })
      const url = yield* serve(
        HttpRouter.add(
          "POST",
          "/chat",
          Effect.map(HttpServerRequest.schemaBodyJson(AiSdkUi.ChatRequest), (request) =>
            AiSdkUi.response(agent.streamEvents(AiSdkUi.prompt(request)))
          ).pipe(Effect.orDie)
        )
      )
      yield* Effect.promise(async () => {
        const chat = new Chat({ transport: new DefaultChatTransport({ api: `${url}/chat` }) })
        await chat.sendMessage({ text: "Hi" })
        assert.deepStrictEqual(chat.lastMessage && textOf(chat.lastMessage), ["Hello done"])
        // The client's message is the prompt, under its id.
        assert.deepStrictEqual(
          AiSdkUi.messagesOf(chat.messages).map(({ role }) => role),
          ["user", "assistant"]
        )
        assert.strictEqual(AiSdkUi.messagesOf(chat.messages)[0]?.id, chat.messages[0]?.id)
      })
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.turn(Step.start, Step.text(["Hel", "lo"]), Step.finish("stop"))
        ])
      ),
      Effect.scoped
    )
  )
})
