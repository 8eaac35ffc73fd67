/** Limits and inputs of models at Amazon Bedrock that differ from those at their own vendor, with sources as of `Models.readOn`. */
import type { Rule } from "./rule.ts"

/** The input that a model takes, its context window and its longest answer, by a pattern of its id at Bedrock. */
type Row = readonly [pattern: string, input: "text" | "image", contextWindow: number, maxOutput?: number]

/** The rule of an id of Bedrock, which wins over that of the vendor member by member. */
export const find = (matches: (pattern: string) => boolean): Partial<Rule> | undefined => {
  const row = rows.find(([pattern]) => matches(pattern))
  if (row === undefined) return atHome.some(matches) ? {} : undefined
  const [pattern, input, contextWindow, maxOutput] = row
  return {
    pattern,
    contextWindow,
    input: input === "text" ? ["text"] : ["text", "image"],
    sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
    ...(maxOutput === undefined ? {} : { maxOutput })
  }
}

/** Models with the limits of their vendor. */
const atHome = [
  String.raw`anthropic\.claude`,
  String.raw`openai\.gpt-\d`,
  String.raw`amazon\.nova`,
  String.raw`xai\.grok`
]

/** The first that fits counts. */
const rows: ReadonlyArray<Row> = [
  [String.raw`amazon\.nova-micro`, "text", 128_000, 10_000],
  [String.raw`openai\.gpt-oss-safeguard`, "text", 128_000, 16_384],
  [String.raw`openai\.gpt-oss`, "text", 131_072, 128_000],
  [String.raw`qwen\.qwen3-32b`, "text", 32_768, 16_384],
  [String.raw`qwen\.qwen3-coder-480b`, "text", 131_072, 65_536],
  [String.raw`qwen\.qwen3-coder-next`, "text", 262_144, 65_536],
  [String.raw`qwen\.qwen3-vl`, "image", 262_144, 262_000],
  [String.raw`qwen\.qwen3-next`, "text", 262_144, 262_000],
  [String.raw`qwen\.`, "text", 262_144, 131_072],
  [String.raw`moonshotai\.kimi-k3\.1`, "image", 1_048_576, 1_048_576],
  [String.raw`moonshotai\.kimi-k[3-9]`, "image", 1_048_576, 128_000],
  [String.raw`moonshot(?:ai)?\.kimi-k2-thinking`, "text", 262_144, 16_000],
  [String.raw`moonshotai\.kimi-k2\.5`, "image", 262_144, 16_384],
  [String.raw`zai\.glm-(?:4|5(?![.-]?\d))`, "text", 202_752, 131_072],
  [String.raw`zai\.glm-5[.-]3(?!-flash)`, "text", 1_000_000, 128_000],
  [String.raw`minimax\.minimax-m2$`, "text", 204_608, 128_000],
  [String.raw`minimax\.minimax-m2\.1`, "text", 196_608, 131_072],
  [String.raw`minimax\.minimax-m2\.5`, "text", 196_608, 98_304],
  [String.raw`deepseek\.v3`, "text", 163_840, 81_920],
  [String.raw`mistral\.devstral`, "text", 262_144, 8192],
  [String.raw`mistral\.magistral`, "image", 128_000, 40_000],
  [String.raw`mistral\.ministral-3-3b`, "image", 256_000, 8192],
  [String.raw`mistral\.ministral`, "image", 128_000, 4096],
  [String.raw`mistral\.pixtral`, "image", 128_000, 8192],
  [String.raw`mistral\.voxtral-mini`, "text", 32_768, 4096],
  [String.raw`mistral\.voxtral`, "text", 32_768, 8192],
  [String.raw`mistral\.mistral-large-3`, "image", 262_144, 8192],
  [String.raw`google\.gemma-4-e2b`, "image", 131_072, 8192],
  [String.raw`google\.gemma-4`, "image", 262_144, 32_768],
  [String.raw`meta\.llama4-scout`, "image", 10_000_000, 8192],
  [String.raw`meta\.llama4`, "image", 1_000_000, 8192],
  [String.raw`meta\.llama`, "text", 128_000, 4096],
  [String.raw`nvidia\.nemotron-nano-12b`, "image", 131_072, 8192],
  [String.raw`nvidia\.nemotron-nano-9b`, "text", 131_072, 8192],
  [String.raw`nvidia\.nemotron-nano-3`, "text", 262_144, 8192],
  [String.raw`nvidia\.nemotron-super-3`, "text", 262_144, 131_072],
  [String.raw`writer\.palmyra-x4`, "text", 122_880, 8192],
  [String.raw`writer\.palmyra-x5`, "text", 1_040_000, 8192]
]
