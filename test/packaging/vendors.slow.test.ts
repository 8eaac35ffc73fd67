import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { bundle } from "./bundle.ts"

const source = join(import.meta.dirname, "../../src")
const conditions = ["effect-agent-source"]

/** The part of an application that loads with the layer of a vendor, without Effect, which its agent needs too. */
const layerOf = (vendor: string) =>
  bundle(`export { layer } from "./providers/${vendor}.ts"`, source, { conditions, packages: "external" })

const namesIn = (modules: ReadonlyArray<string>, pattern: RegExp): ReadonlyArray<string> => [
  ...new Set(modules.flatMap((module) => pattern.exec(module)?.[1] ?? []))
]

describe("an application loads with the layer of a vendor", { timeout: 60_000 }, () => {
  // `OpenAiCompatible` and `AmazonBedrock` serve models of many vendors: they load the tables when they are made.
  it.each([
    ["Anthropic", ["anthropic"], ["anthropic"], 54.8],
    ["OpenAi", ["openai"], ["openAiResponses"], 55.1],
    ["AzureOpenAi", ["openai"], ["openAiChat", "openAiResponses"], 64.4],
    ["Google", ["google"], ["gemini"], 53.1],
    ["VertexAi", ["anthropic", "google"], ["anthropic", "gemini"], 63.7],
    ["AmazonBedrock", [], ["bedrock"], 53],
    ["OpenAiCompatible", [], ["openAiChat"], 55.7]
  ])("%s no facts and no API of another one", async (vendor, facts, apis, most) => {
    const { modules, size } = await layerOf(vendor)
    const tables = namesIn(modules, /^providers\/internal\/models\/(?!ids|lookup|rule)(\w+)\.ts$/)
    const folders = namesIn(
      modules,
      /^providers\/internal\/(anthropic|bedrock|gemini|openAiChat|openAiResponses)\//
    )
    assert.deepStrictEqual([tables, folders], [facts, apis])
    assert.isBelow(size, most)
  })
})
