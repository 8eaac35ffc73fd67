/**
 * Compares the table of models, the presets and the prices with what the packages of the vendors and of others say today:
 * `npm run models-check`, or with a part of a name: `npm run models-check -- openai`.
 *
 * The packages are installed into `node_modules/.cache/models-check`, newest versions, without their scripts. Without network the
 * versions of the last time are read. It prints what the table lacks or has otherwise; a difference is a question, not a fault: look
 * into the source, then change `src/providers/models`, `src/providers/presets.ts` or `src/prices/GenAiPrices.ts`, and `Models.readOn`.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { GenAiPrices } from "../src/prices/index.ts"
import { hosts } from "../src/providers/internal/models/tables.ts"
import { vendorAtBedrock } from "../src/providers/internal/models/rule.ts"
import * as Models from "../src/providers/Models.ts"
import { presets } from "../src/providers/presets.ts"
import * as Effect from "effect/Effect"

const cache = join(import.meta.dirname, "../node_modules/.cache/models-check")
const [only = ""] = process.argv.slice(2)
const packages = [
  "openai",
  "@anthropic-ai/sdk",
  "@google/genai",
  "@ai-sdk/google",
  "@ai-sdk/mistral",
  "@ai-sdk/groq",
  "@ai-sdk/cerebras",
  "@ai-sdk/gateway",
  "@earendil-works/pi-ai"
]

mkdirSync(cache, { recursive: true })
if (!existsSync(join(cache, "package.json"))) writeFileSync(join(cache, "package.json"), '{"private":true}')
const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--omit=optional"]
const latest = packages.map((name) => `${name}@latest`)
const installed = spawnSync("npm", ["install", ...flags, ...latest], { cwd: cache, encoding: "utf8" })
const at = (...path) => join(cache, "node_modules", ...path)
const missing = packages.filter((name) => !existsSync(at(name, "package.json")))
if (installed.status !== 0)
  console.log(
    "The packages could not be installed, so those of the last time are read. The reason:",
    installed.stderr.trim()
  )
if (missing.length > 0) {
  console.log(`Not there, and needed: ${missing.join(", ")}. Run this again with network.`)
  process.exit(1)
}
for (const name of packages)
  console.log(name, JSON.parse(readFileSync(at(name, "package.json"), "utf8")).version)

const heading = (title) => console.log(`\n== ${title}`)
const quoted = (text, pattern) =>
  [...(pattern.exec(text)?.[1] ?? "").matchAll(/'([^']+)'/g)].map(([, id]) => id)
const source = (...path) => readFileSync(at(...path), "utf8")

/** Ids of the vendors' own packages without a rule of their own. */
const shared = source("openai/resources/shared.d.ts")
const lists = {
  openai: [...quoted(shared, /type ChatModel = (.*);/), ...quoted(shared, /type AllModels = (.*);/)],
  anthropic: quoted(source("@anthropic-ai/sdk/resources/messages/messages.d.ts"), /type Model = (.*);/),
  google: [
    ...source("@ai-sdk/google/src/google-model-catalog.ts").matchAll(/^ {2}'?((?:gem|deep|nano)[\w.-]+)'?:/gm)
  ].map(([, id]) => id)
}
for (const [vendor, ids] of Object.entries(lists)) {
  if (!vendor.includes(only)) continue
  heading(`${vendor}: ${ids.length} ids of its package, without a rule of their own`)
  for (const id of new Set(ids)) {
    const rule = Models.find(id, { vendor })
    if (rule === undefined || rule.isUnknown === true) console.log(id, rule?.family ?? "no rule")
  }
}

/** Days on which models end, of the SDK of Anthropic; OpenAI has them in a comment. */
heading("days on which models end")
console.log(
  source("@anthropic-ai/sdk/internal/data/deprecated-models.js")
    .match(/'claude[^\n]*/g)
    ?.join("\n")
)
const deprecated = /Deprecated values:\n([^]*?)\*\//.exec(shared)?.[1]?.replaceAll(/\n \*\s*/g, " ") ?? ""
for (const [, ids, day] of deprecated.matchAll(/- ((?:"[^"]+",? ?)+): Announced shutdown date: (\S+?)\./g)) {
  for (const [, id] of ids.matchAll(/"([^"]+)"/g)) {
    const endsOn = Models.find(id, { vendor: "openai" })?.endsOn
    if (day >= "2026-02" && endsOn !== day) console.log(id, "ours", endsOn, "openai", day)
  }
}

/** The table of pi: vendors by their own rules, the others as hosts. */
const own = {
  openai: "openai",
  anthropic: "anthropic",
  google: "google",
  xai: "xai",
  mistral: "mistral",
  groq: "groq",
  deepseek: "deepseek",
  moonshotai: "moonshot",
  zai: "zai",
  "qwen-token-plan": "qwen",
  minimax: "minimax",
  meta: "meta",
  xiaomi: "xiaomi",
  "ant-ling": "ant-ling",
  "amazon-bedrock": vendorAtBedrock
}
const ids = { moonshotai: "kimi", "qwen-token-plan": "qwen", "vercel-ai-gateway": "vercel" }
const data = at("@earendil-works/pi-ai/dist/providers/data")
const modelsOf = (file) =>
  Object.values(JSON.parse(readFileSync(join(data, file), "utf8")))
    .flatMap((group) => Object.values(group))
    .filter(({ id, type = "chat" }) => type === "chat" && !/batch/.test(id))
const prices = GenAiPrices.make()
for (const file of readdirSync(data).filter((file) => file.endsWith(".json"))) {
  const name = file.replace(".json", "")
  const id = ids[name] ?? name
  if (
    !name.includes(only) ||
    (own[name] === undefined && hosts[id] === undefined && !["openrouter", "vercel"].includes(id))
  )
    continue
  const served = own[name] === undefined ? { id, isGateway: true } : { vendor: own[name] }
  heading(`${name}: what pi has otherwise`)
  for (const model of modelsOf(file)) {
    const rule = Models.find(model.id, served)
    const price = await Effect.runPromise(prices.find({ provider: id, model: model.id }))
    const rates = price?.rates
    const { input, output } = model.cost
    const found = [
      rule === undefined ? "no rule" : "",
      differs(rule?.contextWindow, model.contextWindow)
        ? `window ${rule?.contextWindow}, pi ${model.contextWindow}`
        : "",
      differs(rule?.maxOutput, model.maxTokens) ? `output ${rule?.maxOutput}, pi ${model.maxTokens}` : "",
      rule?.input !== undefined && rule.input.includes("image") !== model.input.includes("image")
        ? `input ${rule.input}, pi ${model.input}`
        : "",
      model.reasoning && rule?.thinking?.kind === "none" ? "pi: it thinks" : "",
      rates === undefined ? `no price, pi ${input} ${output} ${model.cost.cacheRead}` : "",
      rates !== undefined && (differs(rates.input, input) || differs(rates.output, output))
        ? `price ${rates.input} ${rates.output}, pi ${input} ${output}`
        : ""
    ].filter((text) => text !== "")
    if (found.length > 0) console.log(`${model.id}: ${found.join("; ")}`)
  }
}

/** More than 5 % apart, where the table has a number. */
function differs(ours, theirs) {
  return ours !== undefined && theirs !== undefined && Math.abs(ours - theirs) > 0.05 * theirs
}

heading("usual models of presets that pi's list of the host does not have")
for (const { id, model } of Object.values(presets)) {
  const file = `${Object.entries(ids).find(([, ours]) => ours === id)?.[0] ?? id}.json`
  if (model === undefined || !existsSync(join(data, file))) continue
  if (!modelsOf(file).some((listed) => listed.id === model)) console.log(id, model)
}
