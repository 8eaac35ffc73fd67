import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Agent, type RunOptions } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import * as Input from "../../src/internal/invalidInput.ts"
import { agent, say } from "./play.ts"

const done = ScriptedProvider.text("done")

describe("a prompt with members that are undefined", () => {
  it.effect("is one without them", () =>
    Effect.gen(function* () {
      const image = { type: "image", source: { data: "UElD", mediaType: "image/png" }, detail: undefined }
      const file = { type: "file", source: { url: "https://a.b/c", mediaType: undefined }, name: undefined }
      const content = [{ type: "text", text: "hi", vendor: undefined, opaque: undefined }, image, file]
      const message = { role: "user", id: "m1", timestamp: 1, content, vendor: undefined }
      const set = JSON.parse(JSON.stringify(message))
      assert.deepStrictEqual(Result.getOrThrow(Input.prompt(message, 0)), [set])
      assert.deepInclude(Result.getOrThrow(Input.prompt(content, 0))[0], { content: set.content })
      const missing = { ...message, content: [{ type: "text", text: undefined }] }
      const { message: refusal } = yield* Effect.flip(Effect.fromResult(Input.prompt(missing, 0)))
      assert.include(refusal, "content[0].text is missing")
    })
  )
})

describe("agent.update with null", () => {
  it.effect("unsets an option, so that its default counts again (row 207)", () =>
    Effect.gen(function* () {
      const script = yield* agent([done, done], {
        system: "Be brief.",
        activeTools: [],
        limits: { maxTurns: 3, maxToolCalls: 9 },
        modelOptions: { temperature: 1, seed: 7 },
        tools: [say("a")]
      })
      yield* script.agent.update({
        system: null,
        activeTools: null,
        limits: { maxTurns: null },
        modelOptions: { temperature: null, topP: 0.5 }
      })
      yield* script.agent.prompt("hi")
      const [request] = yield* script.requests
      assert.isUndefined(request?.system)
      assert.deepStrictEqual(
        request?.tools.map(({ name }) => name),
        ["a"]
      )
      assert.deepStrictEqual(request?.options, { seed: 7, topP: 0.5 })
      const { options } = yield* script.agent.state.get
      assert.deepStrictEqual(options, {
        model: "m",
        limits: { maxToolCalls: 9 },
        modelOptions: { seed: 7, topP: 0.5 }
      })
      yield* script.agent.update({ limits: null, modelOptions: null })
      assert.deepStrictEqual((yield* script.agent.state.get).options, { model: "m" })
    })
  )

  it.effect("unsets it for later turns of the current run, and what is set later counts", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.toolCall("a", {}), done, done], {
        system: "old",
        modelOptions: { seed: 7 },
        tools: [say("a")]
      })
      yield* script.agent.subscribe((event) =>
        event._tag === "ToolInvoked"
          ? Effect.orDie(
              Effect.andThen(
                script.agent.update({ system: null, modelOptions: { seed: null } }),
                script.agent.update({ modelOptions: { seed: 8 } })
              )
            )
          : Effect.void
      )
      yield* script.agent.prompt("hi")
      const [first, second] = yield* script.requests
      assert.deepStrictEqual([first?.system, second?.system], ["old", undefined])
      assert.deepStrictEqual([first?.options.seed, second?.options.seed], [7, 8])
    })
  )

  it.effect("leaves what is undefined, and refuses null where nothing can be unset", () =>
    Effect.gen(function* () {
      const script = yield* agent([], { system: "s" })
      const undefinedOnly: object = { system: undefined }
      yield* script.agent.update(undefinedOnly)
      assert.strictEqual((yield* script.agent.state.get).options.system, "s")
      for (const wrong of [{ model: null }, { sytem: null }, { limits: { maxTurn: null } }]) {
        const changes: object = wrong
        assert.instanceOf(yield* Effect.flip(script.agent.update(changes)), Agent.InvalidInput)
      }
    })
  )

  it.effect("is kept by the session, until the option is set again", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const options = { model: "m", system: "Be brief.", limits: { maxTurns: 3 } }
      const reopened = (change?: RunOptions.Update) =>
        Effect.scoped(
          Effect.gen(function* () {
            const session = yield* store.open("s")
            const made = yield* Agent.make({ ...options, session })
            const before = (yield* made.state.get).options
            if (change !== undefined) yield* made.update(change)
            return before
          })
        )
      yield* Effect.scoped(store.create({ sessionId: "s" }))
      assert.deepStrictEqual(yield* reopened({ system: null, limits: { maxTurns: null } }), options)
      assert.deepStrictEqual(yield* reopened({ system: "Be kind." }), { model: "m", limits: {} })
      assert.deepStrictEqual(yield* reopened(), { model: "m", system: "Be kind.", limits: {} })
    }).pipe(Effect.provide([MemorySessionStore.layer(), ScriptedProvider.layer([])]))
  )

  it("works with promises", async () => {
    const agent = createAgent({ provider: ScriptedProvider.layer([]), model: "m", system: "s" })
    await agent.update({ system: null })
    assert.deepStrictEqual((await agent.state.get()).options, { model: "m" })
    await agent.close()
  })
})
