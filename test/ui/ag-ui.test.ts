import { assert, describe, it } from "@effect/vitest"
import { HttpAgent } from "@ag-ui/client"
import { EventSchemas } from "@ag-ui/core/schemas"
import { Effect, Exit, Schema, Stream } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { Agent, type AgentEvent, Message } from "effect-agent"
import { AgUi } from "effect-agent/ag-ui"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { serve } from "./http.ts"
import * as Scripted from "./scripted.ts"

type Client = HttpAgent["messages"][number]

const ask = (respond: (input: AgUi.Input) => Response, messages: ReadonlyArray<Client> = []) =>
  Effect.promise(async () => {
    const agent = new HttpAgent({
      url: "http://localhost/",
      threadId: "thread-1",
      initialMessages: [...messages, { id: "user-1", role: "user", content: "clean up" }],
      fetch: async (_, init) => respond(JSON.parse(String(init?.body)))
    })
    const seen: Array<string> = []
    const outcomes: Array<unknown> = []
    const failure = await agent
      .runAgent(
        { runId: "run-1" },
        {
          onEvent: ({ event }) => {
            EventSchemas.parse(event)
            seen.push(event.type)
          },
          onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome),
          onRunErrorEvent: ({ event }) => void outcomes.push(event.message)
        }
      )
      .then(
        () => undefined,
        (error: unknown) => error
      )
    return { agent, seen, outcomes, failure, messages: agent.messages }
  })
const received = (events: ReadonlyArray<AgentEvent.AgentEvent>, messages?: ReadonlyArray<Client>) =>
  ask((input) => AgUi.webResponse(Stream.fromIterable(events), input), messages)

const shown = (messages: ReadonlyArray<Client>) =>
  messages.map((message) => `${message.role} ${JSON.stringify("content" in message ? message.content : "")}`)

describe("AgUi", () => {
  it.effect("rebuilds the messages of a run in a client", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const { failure, messages, outcomes, seen } = yield* received(events)
      assert.isUndefined(failure)
      assert.deepStrictEqual(AgUi.messagesOf(messages), Scripted.folded(events))
      assert.deepStrictEqual(outcomes, [{ type: "success" }])
      assert.deepStrictEqual(shown(messages.filter(({ subagentRunId }) => subagentRunId === undefined)), [
        'user "clean up"',
        'user "Be careful"',
        'reasoning "Let me look first."',
        'assistant "I\'ll look."',
        'tool "a mess in /tmp"',
        'tool "a.txt is gone"',
        'assistant ""',
        'tool "Cleaned."',
        'assistant ""',
        'tool "it broke"',
        'tool [{"type":"image","source":{"type":"data","value":"aGk=","mimeType":"image/png"}}]',
        'tool "Invalid arguments for tool \\"look\\": the arguments are not valid JSON"',
        'tool "Yes"',
        'assistant "All done."'
      ])
      assert.deepStrictEqual(shown(messages.filter(({ subagentRunId }) => subagentRunId !== undefined)), [
        'assistant "On it."',
        'tool "b.txt is gone"',
        'assistant "Cleaned."'
      ])
      assert.includeMembers(seen, ["SUBAGENT_STARTED", "SUBAGENT_FINISHED", "MESSAGES_SNAPSHOT", "CUSTOM"])
    })
  )

  it.effect("gives a client the same messages, wherever the log has lost its deltas", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const earlier: ReadonlyArray<Client> = [
        { id: "user-0", role: "user", content: "hello" },
        { id: "think-0", role: "reasoning", content: "hm" },
        { id: "answer-0", role: "assistant", content: "hi" }
      ]
      const { messages: whole } = yield* received(events, earlier)
      assert.deepStrictEqual(whole.slice(0, 3), [...earlier])
      for (const cut of Scripted.cuts(events)) {
        const { failure, messages } = yield* received(Scripted.withoutDeltas(events, cut), earlier)
        assert.isUndefined(failure)
        assert.deepStrictEqual(shown(messages), shown(whole), `deltas up to ${cut}`)
        assert.deepStrictEqual(AgUi.messagesOf(messages), Scripted.folded(events))
      }
    })
  )

  it.effect("changes neither states nor events", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      let state = Scripted.frozen(AgUi.initial({ threadId: "t", runId: "r" }))
      for (const event of Scripted.frozen(events)) {
        const [next, more] = AgUi.step(state, event)
        assert.deepStrictEqual(AgUi.step(state, event)[1], more)
        state = Scripted.frozen(next)
      }
      assert.isTrue(state.hasEnded)
    })
  )

  it.effect("takes words back, of a hook that replaces an answer too", () =>
    Effect.gen(function* () {
      const events = Scripted.broken({}).flatMap((event): ReadonlyArray<AgentEvent.AgentEvent> => {
        if (event._tag !== "RunCancelled") return [event]
        const message = { ...Message.assistant("Other words"), id: "m1" }
        return [{ _tag: "MessageEnd", runId: "run-1", seq: 8, timestamp: 0, message }]
      })
      const { messages } = yield* received(events)
      assert.deepStrictEqual(
        shown(messages).filter((text) => !text.startsWith('reasoning ""')),
        ['user "clean up"', 'assistant "Other words"']
      )
    })
  )

  it.effect("ends as the run ended, with nothing left open", () =>
    Effect.gen(function* () {
      const message = "overloaded"
      for (const [end, outcome] of [
        [{ status: "failed", error: { _tag: "Defect", message } }, message],
        [{ status: "cancelled" }, { type: "cancelled" }],
        [{ status: "suspended", resume: { runId: "run-1" } }, { type: "success" }],
        [{ status: "incomplete" }, { type: "success" }]
      ] as const) {
        const { outcomes } = yield* received(Scripted.broken(end))
        assert.deepStrictEqual(outcomes, [outcome])
      }
      const start = Stream.fromIterable(Scripted.broken({}).slice(0, 5))
      const died = yield* ask((input) => AgUi.webResponse(Stream.concat(start, Stream.die("secret")), input))
      assert.deepStrictEqual(died.outcomes, ["The run failed"])
    })
  )

  it.effect("keeps calls apart whose ids come again", () =>
    Effect.gen(function* () {
      const again = (id: string, where: string) =>
        ScriptedProvider.turn(Step.start, Step.toolCall("look", { where }, { id }), Step.finish("toolUse"))
      const events = yield* Scripted.events({
        turns: [again("c", "a"), again("c", "b"), ScriptedProvider.text("Done.")]
      })
      const { messages } = yield* received(events)
      assert.deepStrictEqual(AgUi.messagesOf(messages), Scripted.folded(events))
      assert.deepStrictEqual(
        messages.flatMap((message) => (message.role === "tool" ? [message.content] : [])),
        ["a mess in a", "a mess in b"]
      )
    })
  )

  it.effect("keeps the words of one sub-agent where another one takes words back", () =>
    Effect.gen(function* () {
      const partial = ScriptedProvider.turn(
        Step.start,
        Step.thinking("Void"),
        Step.text(["This ", "is "]),
        Step.run(Effect.yieldNow),
        Step.toolCall("look", { where: "void" }),
        Step.fail(Scripted.overloaded)
      )
      const whole = ScriptedProvider.turn(
        Step.start,
        Step.thinking("Well"),
        Step.run(Effect.yieldNow),
        Step.text(["a ", "whole"]),
        Step.finish("stop")
      )
      const events = yield* Scripted.events({
        turns: [
          ScriptedProvider.turn(
            Step.start,
            Step.toolCall("helper", { prompt: "1" }),
            Step.toolCall("helper", { prompt: "2" }),
            Step.finish("toolUse")
          ),
          partial,
          whole,
          partial,
          whole,
          ScriptedProvider.text("Done.")
        ]
      })
      const { failure, messages } = yield* received(events)
      assert.isUndefined(failure)
      assert.deepStrictEqual(AgUi.messagesOf(messages), Scripted.folded(events))
      assert.deepStrictEqual(
        shown(messages.filter(({ subagentRunId }) => subagentRunId !== undefined)).toSorted(),
        ['assistant "a whole"', 'assistant "a whole"', 'reasoning "Well"', 'reasoning "Well"']
      )
    })
  )

  it.effect("ends a run with all open requests as interrupts, and begins the next one where it was", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const input = { threadId: "thread-1", runId: "run-1" }
      let state = AgUi.initial(input)
      let runs = 0
      const all = events.flatMap((event) => {
        const [next, more] = AgUi.step(state, event)
        state = next
        if (!AgUi.isWaiting(state)) return more
        const pause = AgUi.pause(state)
        const last = pause.at(-1)
        const interrupts =
          last?.type === "RUN_FINISHED" && last.outcome.type === "interrupt" ? last.outcome.interrupts : []
        assert.deepStrictEqual(
          interrupts.map(({ id }) => id),
          AgUi.requests(state).map((request) =>
            request._tag === "QuestionAsked" ? request.questionId : request.approvalId
          )
        )
        const [resumed, begin] = AgUi.resume(state, { ...input, runId: `run-${++runs}` })
        state = resumed
        return [...more, ...pause, ...begin]
      })
      assert.isAbove(runs, 1)
      const { failure, messages } = yield* ask(
        () => new Response(all.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))
      )
      assert.isUndefined(failure)
      assert.deepStrictEqual(AgUi.messagesOf(messages), Scripted.folded(events))
    })
  )

  it("reads prompts and answers", () => {
    const decode = Schema.decodeUnknownSync(AgUi.RunAgentInput)
    const request = (source: object, resume: ReadonlyArray<object> = []) => ({
      threadId: "t",
      runId: "r",
      tools: [],
      context: [],
      messages: [
        { id: "u0", role: "user", content: "old" },
        { id: "a0", role: "assistant", toolCalls: [{ id: "c", type: "function" }] },
        {
          id: "u1",
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image", source }
          ]
        }
      ],
      resume
    })
    const [prompt] = AgUi.prompt(decode(request({ type: "data", value: "aGk=", mimeType: "image/png" })), 1)
    assert.deepStrictEqual(prompt, {
      ...Message.user([Message.text("Look"), Message.image("aGk=", "image/png")], 1),
      id: "u1"
    })
    const refused = Schema.decodeUnknownExit(AgUi.RunAgentInput)(request({ type: "url", value: "file:///a" }))
    assert.isTrue(Exit.isFailure(refused))
    const replies = AgUi.replies(
      decode(
        request({ type: "url", value: "https://example.com/a.png" }, [
          { interruptId: "1", status: "resolved", payload: { approved: false, reason: "no" } },
          { interruptId: "2", status: "cancelled" },
          { interruptId: "3", status: "resolved", payload: "Oslo" }
        ])
      )
    )
    assert.deepStrictEqual(
      replies.map(({ answer, decision, isCancelled }) => [
        decision?.decision,
        decision?.reason,
        answer,
        isCancelled
      ]),
      [
        ["reject", "no", { approved: false, reason: "no" }, false],
        ["reject", undefined, undefined, true],
        [undefined, undefined, "Oslo", false]
      ]
    )
  })

  it.live("answers a client of AG-UI over HTTP with one line", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "scripted" })
      const url = yield* serve(
        HttpRouter.add(
          "POST",
          "/agent",
          Effect.map(HttpServerRequest.schemaBodyJson(AgUi.RunAgentInput), (input) =>
            AgUi.response(agent.streamEvents(AgUi.prompt(input)), input)
          ).pipe(Effect.orDie)
        )
      )
      yield* Effect.promise(async () => {
        const client = new HttpAgent({ url: `${url}/agent`, threadId: "t" })
        client.addMessage({ id: "u1", role: "user", content: "Hi" })
        await client.runAgent({ runId: "r1" })
        assert.deepStrictEqual(shown(client.messages), ['user "Hi"', 'assistant "Hello"'])
      })
    }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])), Effect.scoped)
  )
})
