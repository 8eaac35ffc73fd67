import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Schema } from "effect"
import { ProviderError, Run, Tool } from "effect-agent"
import { createAgent, type PromiseAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"

const Review = Schema.Struct({ grade: Schema.Int, at: Schema.DateTimeUtcFromString })
interface Review extends Schema.Schema.Type<typeof Review> {}
const at = "2026-01-01T00:00:00.000Z"

const answer = (params: Schema.Json) => ScriptedProvider.toolCall("final_answer", params)
const script = (...turns: ScriptedProvider.Script) => ({
  provider: ScriptedProvider.layer(turns),
  model: "m"
})

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.fail("it resolved"),
    (error: unknown) => error
  )

describe("typed output of a promise agent", () => {
  it("is in each result of an agent that has a schema", async () => {
    await using agent = createAgent({
      ...script(
        answer({ grade: 1, at }),
        ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" })),
        answer({ grade: 2, at }),
        answer({ grade: 3, at })
      ),
      output: Review
    })
    expectTypeOf(agent).toEqualTypeOf<PromiseAgent<{ readonly output: Review }>>()
    const { output } = await agent.prompt("Review it")
    expectTypeOf(output).toEqualTypeOf<Review>()
    assert.deepStrictEqual([output.grade, output.at.epochMilliseconds], [1, Date.parse(at)])
    assert.instanceOf(await failure(agent.prompt("Again")), Run.RunFailed)
    assert.strictEqual((await agent.continue()).output.grade, 2)
    const { result } = await agent.start("And again")
    assert.strictEqual((await result()).output.grade, 3)
  })

  it("is that of the prompt, where it has a schema of its own", async () => {
    await using agent = createAgent({
      ...script(answer({ tags: ["a"] }), answer({ ok: true })),
      output: Review
    })
    const { output } = await agent.prompt("Tag it", { output: z.object({ tags: z.array(z.string()) }) })
    expectTypeOf(output).toEqualTypeOf<{ tags: Array<string> }>()
    assert.deepStrictEqual(output, { tags: ["a"] })
    const { result } = await agent.start("Check it", { output: Schema.Struct({ ok: Schema.Boolean }) })
    assert.isTrue((await result()).output.ok)
  })

  it("may be that of one prompt alone, beside tools and other options", async () => {
    const add = Tool.fromPromise({
      name: "add",
      description: "Adds two numbers.",
      params: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => a + b
    })
    await using agent = createAgent({
      ...script(
        ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
        answer({ sum: 5 }),
        ScriptedProvider.text("You are welcome.")
      ),
      tools: [add]
    })
    const { output } = await agent.prompt("2 + 3?", {
      output: z.object({ sum: z.number() }),
      outputRetries: 0,
      limits: { maxTurns: 2 }
    })
    assert.strictEqual(output.sum, 5)
    const plain = await agent.prompt("Thanks")
    expectTypeOf(plain).toEqualTypeOf<Run.RunResult>()
    assert.notProperty(plain, "output")
  })

  it("decodes with what a Standard Schema transforms to", async () => {
    await using agent = createAgent({
      ...script(answer({ day: "2026-01-01" })),
      output: z.object({ day: z.string().transform((text) => text.length) })
    })
    const { output } = await agent.prompt("Which day?")
    expectTypeOf(output.day).toBeNumber()
    assert.strictEqual(output.day, 10)
  })

  it("rejects with OutputInvalid after the repairs, and with OutputMissing after a cancel", async () => {
    await using agent = createAgent({
      ...script(ScriptedProvider.text("Two."), ScriptedProvider.never),
      output: Review,
      outputRetries: 0
    })
    const invalid = await failure(agent.prompt("Review it"))
    assert.instanceOf(invalid, Run.RunFailed)
    assert.strictEqual(invalid.reason._tag, "OutputInvalid")
    const { cancel, result } = await agent.start("Again")
    await cancel()
    const missing = await failure(result())
    assert.instanceOf(missing, Run.RunFailed)
    assert.strictEqual(missing.reason._tag, "OutputMissing")
  })

  it("comes as the event Output in a stream", async () => {
    await using agent = createAgent(script(answer({ grade: 2, at })))
    const values: Array<Schema.Json> = []
    for await (const event of agent.stream("Review it", { output: Review })) {
      if (event._tag === "Output") values.push(event.value)
    }
    assert.deepStrictEqual(values, [{ grade: 2, at }])
  })

  it("has no type but that of its schema", () => {
    const agent = createAgent({ ...script(), output: Review })
    const check = async () => {
      // @ts-expect-error the grade is a number
      const grade: string = (await agent.prompt("Review it")).output.grade
      // @ts-expect-error no schema, no output
      return [grade, (await createAgent(script()).prompt("Hi")).output]
    }
    assert.isFunction(check)
  })
})
