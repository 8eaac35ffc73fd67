import { assert, describe, it } from "@effect/vitest"
import { type ClientContext, methods, RequestError } from "@agentclientprotocol/sdk"
import { Effect, Schema } from "effect"
import { type AgentEvent, Approval, Message, Tool } from "effect-agent"
import { AcpUpdates } from "effect-agent/acp"
import { Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Scripted from "../ui/scripted.ts"
import * as Editor from "./editor.ts"

const rm = Tool.make({
  name: "rm",
  description: "Removes a file.",
  params: Schema.Struct({ what: Schema.String }),
  execute: ({ what }) => Effect.succeed(`${what} is gone`)
})

const calling = (...whats: ReadonlyArray<string>) =>
  ScriptedProvider.turn(
    Step.start,
    ...whats.map((what, at) => Step.toolCall("rm", { what }, { id: `c${at}` })),
    Step.finish("toolUse", { input: 1, output: 1 })
  )

const question = (schema: Schema.JsonObject | undefined) =>
  ScriptedProvider.toolCall("ask_user", { question: "Which?", ...(schema === undefined ? {} : { schema }) })

const failure = (promise: Promise<unknown>): Promise<RequestError | undefined> =>
  promise.then(
    () => undefined,
    (error: unknown) => (error instanceof RequestError ? error : undefined)
  )

const withRuns = (script: ScriptedProvider.Script, setup: Editor.Setup = {}) =>
  Effect.provide(Editor.runs(ScriptedProvider.layer(script), setup))

const updatesOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  AcpUpdates.replay(AcpUpdates.initial(), Scripted.folded(events))[1]

/** What an editor shows of the outermost run: its messages in order, and its calls. */
const conversation = (updates: Parameters<typeof Editor.shown>[0]) => {
  const { calls, messages } = Editor.shown(updates)
  return { messages: [...messages.values()], calls: [...calls].filter(([id]) => !id.includes("/")) }
}

const seenSteering = new Set<string>()

describe("AcpAgent", () => {
  it.effect("shows the answer, calls, results and approvals of a run", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const { seen } = yield* Editor.connected(
        {
          capabilities: { elicitation: { form: {} } },
          form: () => ({ action: "accept", content: { answer: "Yes" } }),
          permission: async ({ sessionId }) => {
            const runId = await Effect.runPromise(runs.active(sessionId))
            if (seenSteering.size === 0 && runId !== undefined)
              await Effect.runPromise(runs.steer(runId, "Be careful"))
            seenSteering.add(sessionId)
            return Editor.select("once")
          }
        },
        {},
        async (agent) => {
          const sessionId = await Editor.begin(agent)
          const { stopReason } = await Editor.ask(agent, sessionId, "clean up")
          assert.strictEqual(stopReason, "end_turn")
        }
      )
      const { calls, messages } = Editor.shown(seen.updates)
      assert.deepStrictEqual(
        [...messages].map(([key, text]) => `${key.split(" ")[1]}: ${text}`),
        [
          "thought: Let me look first.",
          "message: I'll look.",
          "message: Be careful",
          // Void: a client of version 1 cannot take it back.
          "thought: Void",
          "message: This will be ",
          "message: [resource_link][image]All done."
        ]
      )
      assert.deepStrictEqual(
        [...calls].map(([id, { status, text }]) => `${id} ${status}: ${text}`),
        [
          "c1 completed: a mess in /tmp",
          "c2 completed: a.txt is gone",
          "c3 completed: Cleaned.",
          "c3/c4 completed: b.txt is gone",
          "c5 failed: it broke",
          "c6 completed: image",
          'c7 failed: Invalid arguments for tool "look": the arguments are not valid JSON',
          "c8 completed: Yes",
          "h1 completed: "
        ]
      )
      assert.deepStrictEqual(
        seen.permissions.map(({ toolCall }) => [toolCall.toolCallId, toolCall.rawInput]),
        [
          ["c2", { what: "a.txt" }],
          ["c3/c4", { what: "b.txt" }]
        ]
      )
      assert.lengthOf(seen.forms, 1)
    }).pipe(Effect.provide(Editor.runs(Scripted.provider(), { tools: Scripted.tools, ask: ["remove"] })))
  )

  it.effect("shows in a run what a load of the session shows", () =>
    Effect.gen(function* () {
      const { result, seen } = yield* Editor.connected({}, {}, async (agent, seen) => {
        const sessionId = await Editor.begin(agent)
        await Editor.ask(agent, sessionId, "first")
        await Editor.ask(agent, sessionId, "second")
        const live = seen.updates.splice(0)
        await agent.request(methods.agent.session.load, { sessionId, cwd: "/work", mcpServers: [] })
        return live
      })
      const loaded = conversation(seen.updates)
      assert.deepStrictEqual(loaded.messages, ["first", "Gone.", "second", "Gone too."])
      assert.deepStrictEqual(conversation(result).messages, ["Gone.", "Gone too."])
      assert.deepStrictEqual(loaded.calls, conversation(result).calls)
      // The vendor gave both calls one id.
      assert.deepStrictEqual(
        loaded.calls.map(([id, { text }]) => [id, text]),
        [
          ["c0", "a is gone"],
          ["c0~2", "b is gone"]
        ]
      )
    }).pipe(
      withRuns(
        [calling("a"), ScriptedProvider.text("Gone."), calling("b"), ScriptedProvider.text("Gone too.")],
        {
          tools: [rm]
        }
      )
    )
  )

  it.effect("keeps the answer always as a rule of the session", () =>
    Effect.gen(function* () {
      const { result, seen } = yield* Editor.connected(
        { permission: () => Editor.select("always") },
        { options: { scopeOf: (toolName) => ({ key: toolName, words: toolName }) } },
        async (agent, seen) => {
          const sessionId = await Editor.begin(agent)
          await Editor.ask(agent, sessionId, "one")
          const asked = seen.permissions.length
          await Editor.ask(agent, await Editor.begin(agent), "another session")
          return asked
        }
      )
      assert.deepStrictEqual([result, seen.permissions.length], [1, 2])
      assert.deepStrictEqual(
        seen.permissions[0]?.options.map(({ name }) => name),
        ["Allow", "Always allow rm", "Reject"]
      )
    }).pipe(
      withRuns(
        [
          calling("a"),
          calling("b"),
          ScriptedProvider.text("Done."),
          calling("c"),
          ScriptedProvider.text("Done.")
        ],
        { tools: [rm], ask: ["rm"] }
      )
    )
  )

  it.effect("rejects a call when the person rejects it, and when the editor cannot ask", () =>
    Effect.gen(function* () {
      let count = 0
      const permission = () => {
        count++
        if (count === 1) return Editor.select("no")
        if (count === 2) return Editor.select("an option of nobody")
        return Promise.reject(RequestError.methodNotFound("session/request_permission"))
      }
      const { seen } = yield* Editor.connected({ permission }, {}, async (agent) => {
        await Editor.ask(agent, await Editor.begin(agent), "go")
      })
      assert.deepStrictEqual(
        [...Editor.shown(seen.updates).calls.values()].map(({ status, text }) => `${status}: ${text}`),
        [
          "failed: Tool execution was rejected: the user answered no",
          "failed: Tool execution was rejected: the editor gave no answer",
          "failed: Tool execution was rejected: the editor gave no answer"
        ]
      )
    }).pipe(
      withRuns([calling("a"), calling("b"), calling("c"), ScriptedProvider.text("Well.")], {
        tools: [rm],
        ask: ["rm"]
      })
    )
  )

  it.effect("answers a cancel during an open request with cancelled", () =>
    Effect.gen(function* () {
      const { result, seen } = yield* Editor.connected(
        { permission: () => new Promise(() => {}) },
        {},
        async (agent, seen) => {
          const sessionId = await Editor.begin(agent)
          const prompt = Editor.ask(agent, sessionId, "go")
          await Editor.until(() => seen.permissions.length > 0)
          await agent.notify(methods.agent.session.cancel, { sessionId })
          const { stopReason } = await prompt
          const again = await Editor.ask(agent, sessionId, "and now?")
          return [stopReason, again.stopReason]
        }
      )
      assert.deepStrictEqual(result, ["cancelled", "end_turn"])
      assert.deepStrictEqual(
        [...Editor.shown(seen.updates).calls.values()].map(({ status }) => status),
        ["failed"]
      )
    }).pipe(withRuns([calling("a"), ScriptedProvider.text("Here.")], { tools: [rm], ask: ["rm"] }))
  )

  it.effect("continues a run that was suspended until the person answered", () =>
    Effect.gen(function* () {
      const { result, seen } = yield* Editor.connected({}, {}, async (agent) =>
        Editor.ask(agent, await Editor.begin(agent), "go")
      )
      assert.strictEqual(result.stopReason, "end_turn")
      assert.deepStrictEqual(
        [...Editor.shown(seen.updates).calls].map(([id, { status, text }]) => `${id} ${status}: ${text}`),
        ["c0 completed: a is gone", "c1 completed: b is gone"]
      )
      assert.include(conversation(seen.updates).messages, "Done.")
    }).pipe(
      withRuns([calling("a", "b"), ScriptedProvider.text("Done.")], {
        tools: [rm],
        ask: ["rm"],
        asked: "defer"
      })
    )
  )

  it.effect("asks questions by a form, by options, or declines", () =>
    Effect.gen(function* () {
      const answers: Array<string> = ["7", "3"]
      const work = async (agent: ClientContext) => Editor.ask(agent, await Editor.begin(agent), "go")
      const forms = yield* Editor.connected(
        {
          capabilities: { elicitation: { form: {} } },
          form: () => ({ action: "accept", content: { answer: Number(answers.shift()) } })
        },
        {},
        work
      )
      const refused = yield* Editor.connected(
        { capabilities: { elicitation: { form: {} } }, form: () => ({ action: "decline" }) },
        {},
        work
      )
      const options = yield* Editor.connected({ permission: () => Editor.select("answer-1") }, {}, work)
      const none = yield* Editor.connected({}, {}, work)
      const results = [forms, refused, options, none].map(({ seen }) =>
        [...Editor.shown(seen.updates).calls.values()].map(({ text }) => text)
      )
      assert.deepStrictEqual(results, [
        ["3"],
        ["Tool execution was rejected: the user gave no answer"],
        ["blue"],
        ["Tool execution was rejected: the editor cannot put this question to the user"]
      ])
      assert.lengthOf(forms.seen.forms, 2)
      assert.deepStrictEqual(
        options.seen.permissions[0]?.options.map(({ name }) => name),
        ["red", "blue", "No answer"]
      )
    }).pipe(
      withRuns(
        [
          question({ type: "integer", maximum: 5 }),
          ScriptedProvider.text("3."),
          question({ type: "string" }),
          ScriptedProvider.text("Well."),
          question({ enum: ["red", "blue"] }),
          ScriptedProvider.text("Blue."),
          question(undefined),
          ScriptedProvider.text("Well.")
        ],
        { tools: [Approval.askUser()] }
      )
    )
  )

  it.effect("cancels the run of a client that disconnects", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const { result } = yield* Editor.connected({}, {}, async (agent, seen) => {
        const sessionId = await Editor.begin(agent)
        void Editor.ask(agent, sessionId, "go").catch(() => undefined)
        await Editor.until(() => seen.updates.length > 0)
        return sessionId
      })
      // The layer of the runs waits for their ends.
      yield* runs.drain("5 seconds")
      const [run] = yield* runs.list(result)
      assert.strictEqual(run?.status, "cancelled")
    }).pipe(withRuns([ScriptedProvider.turn(Step.start, Step.text(["Hm"]), Step.never)]))
  )

  it.effect("answers requests that are not valid with an error", () =>
    Effect.gen(function* () {
      const { result } = yield* Editor.connected({}, {}, async (agent) => {
        const sessionId = await Editor.begin(agent)
        const unknown = await failure(Editor.ask(agent, "nope", "hi"))
        const empty = await failure(agent.request(methods.agent.session.prompt, { sessionId, prompt: [] }))
        const loaded = await failure(
          agent.request(methods.agent.session.load, { sessionId: "nope", cwd: "/work", mcpServers: [] })
        )
        const audio = await failure(
          agent.request(methods.agent.session.prompt, {
            sessionId,
            prompt: [{ type: "audio", data: "aGk=", mimeType: "audio/wav" }]
          })
        )
        const failed = await failure(Editor.ask(agent, sessionId, "hi"))
        return [unknown, empty, loaded, audio, failed].map((error) => error && [error.code, error.message])
      })
      assert.deepStrictEqual(result, [
        [-32002, "Resource not found"],
        [-32602, "Invalid params: The prompt has no content."],
        [-32002, "Resource not found"],
        [-32602, "Invalid params: The model does not read recordings."],
        [-32603, result[4]?.[1] ?? ""]
      ])
    }).pipe(withRuns([]))
  )

  it.effect("lists, resumes, closes and removes sessions", () =>
    Effect.gen(function* () {
      const { result } = yield* Editor.connected({}, {}, async (agent) => {
        const sessionId = await Editor.begin(agent)
        await agent.request(methods.agent.session.prompt, {
          sessionId,
          prompt: [
            { type: "text", text: "Look" },
            { type: "image", data: "aGk=", mimeType: "image/png" },
            { type: "resource_link", name: "a.ts", uri: "file:///work/a.ts" },
            { type: "resource", resource: { uri: "file:///work/b.ts", text: "let b" } }
          ]
        })
        await agent.request(methods.agent.session.close, { sessionId })
        const closed = await failure(Editor.ask(agent, sessionId, "hi"))
        await agent.request(methods.agent.session.resume, { sessionId, cwd: "/work" })
        const { stopReason } = await Editor.ask(agent, sessionId, "hi")
        const listed = await agent.request(methods.agent.session.list, { cwd: "/work" })
        const elsewhere = await agent.request(methods.agent.session.list, { cwd: "/elsewhere" })
        await agent.request(methods.agent.session.delete, { sessionId })
        const rest = await agent.request(methods.agent.session.list, {})
        return {
          closed: closed?.code,
          stopReason,
          listed: listed.sessions.map(({ cwd, title }) => [cwd, title]),
          elsewhere: elsewhere.sessions.length,
          rest: rest.sessions.length
        }
      })
      assert.deepStrictEqual(result, {
        closed: -32002,
        stopReason: "end_turn",
        listed: [["/work", 'Look[a.ts](file:///work/a.ts)<resource uri="file:///work/b.ts">']],
        elsewhere: 0,
        rest: 0
      })
    }).pipe(withRuns([ScriptedProvider.text("Seen."), ScriptedProvider.text("Hello.")]))
  )
})

describe("AcpUpdates", () => {
  it.effect("shows the messages of a run whose deltas are missing", () =>
    Effect.gen(function* () {
      const events = yield* Scripted.events()
      const whole = conversation(updatesOf(events))
      for (const cut of Scripted.cuts(events)) {
        const fold = (all: ReadonlyArray<AgentEvent.AgentEvent>) =>
          all.reduce<readonly [AcpUpdates.State, ReadonlyArray<AcpUpdates.Update>]>(
            ([state, updates], event) => {
              const [next, more] = AcpUpdates.step(Scripted.frozen(state), event)
              return [next, [...updates, ...more]]
            },
            [AcpUpdates.initial(), []]
          )[1]
        const shown = conversation(fold(Scripted.withoutDeltas(events, cut)))
        const isVoid = (text: string) => text === "Void" || text === "This will be " || text === "This "
        assert.deepStrictEqual(
          shown.messages.filter((text) => !isVoid(text)),
          whole.messages.filter((text) => text !== "clean up")
        )
        assert.deepStrictEqual(shown.calls, whole.calls)
      }
      assert.isTrue(Message.textOf(Scripted.folded(events).at(-1) ?? Message.user("")) === "All done.")
    })
  )
})
