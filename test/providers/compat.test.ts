import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { OpenAiCompatible, Protocols } from "effect-agent/providers"

const misspelt: object = { maxTokenField: "max_tokens", lenientEnd: true }

const check = (fault: unknown) => {
  assert.instanceOf(fault, Agent.InvalidInput)
  assert.match(
    String(fault),
    /compat\.maxTokenField is not an option\. Did you mean compat\.maxTokensField\?/
  )
  assert.match(String(fault), /compat\.lenientEnd is not an option\. Members: maxTokensField, /)
}

describe("compat", () => {
  it.effect("with an unknown member is refused by a provider", () =>
    Effect.gen(function* () {
      const address = { id: "local", baseUrl: "http://127.0.0.1:1/v1" }
      const { presets } = OpenAiCompatible
      for (const made of [
        OpenAiCompatible.make({ ...address, compat: misspelt }),
        Effect.scoped(Effect.provide(Effect.void, OpenAiCompatible.layer({ ...address, compat: misspelt }))),
        Effect.scoped(
          Effect.provide(Effect.void, OpenAiCompatible.layerConfig(presets.ollama, { compat: misspelt }))
        )
      ]) {
        const exit = yield* Effect.exit(Effect.provide(made, FetchHttpClient.layer))
        check(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined)
      }
    })
  )

  it("with an unknown member is refused by the protocol", () => {
    assert.throws(() => Protocols.openAiChat("local", misspelt), Agent.InvalidInput)
  })

  it.effect("may have members that are undefined", () => {
    const compat: object = { systemRole: undefined, callIds: undefined, vendor: undefined }
    return OpenAiCompatible.make({ id: "local", baseUrl: "http://127.0.0.1:1/v1", compat }).pipe(
      Effect.provide(FetchHttpClient.layer)
    )
  })
})
