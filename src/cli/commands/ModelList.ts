/** Lists models: those of the price list and the model table, or those that a local server has. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Prices from "../../Prices.ts"
import * as Models from "../../providers/Models.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import * as ModelTable from "../agent/ModelTable.ts"
import { Screen } from "../terminal/Screen.ts"
import * as Vendors from "../agent/Vendors.ts"

/** The arguments of `effect-agent models`. */
export interface Request {
  /** A provider, a provider and a part of the names of its models, or a part of the names of models. */
  readonly filter: Option.Option<string>
  /** The address of a local server. */
  readonly baseUrl: Option.Option<string>
  readonly json: boolean
}

/** A model, with what is known of it. */
export interface Row {
  readonly provider: string
  /** The id of the model. Absent if the price list has none for its family. */
  readonly model?: string
  /** The name of the family of a model without an id. */
  readonly family?: string
  readonly contextWindow?: number
  readonly maxOutput?: number
  /** The types of content that the model accepts. */
  readonly input?: ReadonlyArray<string>
  /** The thinking levels, in the words of the vendor. */
  readonly thinking?: ReadonlyArray<string>
  /** The prices of a million tokens. */
  readonly prices?: Prices.Rates
}

/** Writes the models to stdout. */
export const show = Effect.fnUntraced(function* (request: Request, env: Vendors.Environment) {
  const { out } = yield* Screen
  const filter = Option.isSome(request.filter) ? request.filter.value : yield* usual(request, env)
  const rows = yield* find(filter, env, request)
  yield* out(request.json ? rows.map((row) => `${JSON.stringify(row)}\n`).join("") : table(rows))
  return ExitCode.answered
})

/** The provider of the model that a run would choose, all of them if it would ask no language model. */
const usual = Effect.fnUntraced(function* (
  { baseUrl }: Request,
  env: Vendors.Environment
): Effect.fn.Return<string, UsageError, ModelChoice.Services> {
  const { model } = yield* ModelChoice.choose({ model: Option.none(), baseUrl, noDetect: false }, env)
  const provider = model.slice(0, model.indexOf("/"))
  return provider === "local" ? "" : provider
})

/**
 * The models that a filter names: `anthropic`, `anthropic/claude-opus`, or `gpt-5.5` of all vendors. Fails with `UsageError` if it names
 * none.
 */
export const find = Effect.fnUntraced(function* (
  filter: string,
  env: Vendors.Environment,
  at: Pick<Request, "baseUrl">
): Effect.fn.Return<ReadonlyArray<Row>, UsageError> {
  const [vendor = "", ...rest] = filter.split("/")
  const isVendor = vendors.some(({ id }) => id === vendor)
  const part = (isVendor ? rest.join("/") : filter).toLowerCase()
  const among = isVendor
    ? yield* list(vendor, env, at)
    : (yield* Effect.forEach(Vendors.companies, ({ id }) => hosted(id))).flat()
  const found = among.filter(({ family, model, provider }) => {
    const name = model ?? family ?? ""
    return (isVendor ? name : `${provider}/${name}`).toLowerCase().includes(part)
  })
  if (found.length > 0) return found
  return yield* new UsageError({
    detail: `No provider and no known model has ${JSON.stringify(filter)} in its name. ${providers}`
  })
})

const vendors = [...Vendors.companies, ...Vendors.servers]
const providers = `Providers: ${vendors.map(({ id }) => id).join(", ")}.`

/** The models of a provider. Fails with `UsageError` for an unknown provider, and a local server that does not answer. */
export const list = Effect.fnUntraced(function* (
  id: string,
  env: Vendors.Environment,
  { baseUrl }: Pick<Request, "baseUrl">
): Effect.fn.Return<ReadonlyArray<Row>, UsageError> {
  const server = Vendors.servers.find((server) => server.id === id)
  if (server !== undefined) {
    return yield* served(
      server,
      Option.getOrElse(baseUrl, () => server.baseUrl(env))
    )
  }
  if (!Vendors.companies.some((company) => company.id === id))
    return yield* new UsageError({
      detail: `${JSON.stringify(id)} is no provider with a list of models. ${providers}`
    })
  const rows = yield* hosted(id)
  if (rows.length > 0) return rows
  const detail = `No list of the models of ${id} is known. Name one as ${id}/ID, with the id that ${id} gives it.`
  return yield* new UsageError({ detail })
})

const served = Effect.fnUntraced(function* (server: Vendors.Local, address: string) {
  const { idsAt } = yield* Effect.promise(() => import("../agent/LocalServers.ts"))
  const ids = yield* idsAt(address)
  if (Option.isSome(ids)) return ids.value.map((model): Row => ({ provider: server.id, model }))
  return yield* new UsageError({
    detail: `${server.id} does not answer at ${address}: ${Vendors.startOf(server.id)}, then try again.`
  })
})

/** The known models of a vendor, which may be none. */
const hosted = Effect.fnUntraced(function* (id: string) {
  const vendor = ModelTable.vendorOf(id)
  const ids = yield* ModelTable.priced(id)
  const found = ids.map((model) => ({ model, rule: ModelTable.ruleOf(id, model) }))
  const priced = yield* Effect.forEach(found, ({ model, rule }) =>
    Effect.map(ModelTable.priceOf({ provider: id, model }), (price) => rowOf(id, { model }, rule, price))
  )
  const listed = new Set(found.map(({ rule }) => rule?.pattern))
  const others = Models.rules.filter(
    (rule) => rule.vendor === vendor && rule.isUnknown !== true && !listed.has(rule.pattern)
  )
  return [
    ...priced,
    ...others.map((rule) => rowOf(id, { family: rule.family ?? rule.pattern }, rule, undefined))
  ]
})

const rowOf = (
  provider: string,
  name: Pick<Row, "family" | "model">,
  rule: Models.Rule | undefined,
  price: Prices.Price | undefined
): Row => {
  const contextWindow = rule?.contextWindow ?? price?.contextWindow
  return {
    provider,
    ...name,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(rule?.maxOutput === undefined ? {} : { maxOutput: rule.maxOutput }),
    ...(rule?.input === undefined ? {} : { input: rule.input }),
    ...(rule?.thinking === undefined ? {} : { thinking: levelsOf(rule.thinking) }),
    ...(price?.rates === undefined ? {} : { prices: price.rates })
  }
}

/** Several levels may stand for one word of the vendor. */
const levelsOf = ({ kind, levels = {} }: Models.Thinking): ReadonlyArray<string> =>
  Arr.dedupe(
    Object.entries(levels).flatMap(([level, word]) => {
      if (level === "off" && (word === null || typeof word !== "string" || word === "none")) return ["off"]
      if (word === null) return []
      if (kind === "switch") return ["on"]
      return [typeof word === "string" ? word : level]
    })
  )

const header = ["provider", "model", "window", "output", "input", "thinking", "$ in", "$ out"]

/** The rows in columns. */
const table = (rows: ReadonlyArray<Row>): string => {
  const lines = [header, ...rows.map(cellsOf)]
  const widths = header.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .map((line) => `${line}\n`)
    .join("")
}

const cellsOf = ({
  contextWindow,
  family,
  input,
  maxOutput,
  model,
  prices,
  provider,
  thinking
}: Row): ReadonlyArray<string> => [
  provider,
  Inert.line(model ?? `(${family})`),
  short(contextWindow),
  short(maxOutput),
  input?.join(",") ?? "-",
  thinking === undefined ? "-" : thinking.join(",") || "none",
  String(prices?.input ?? "-"),
  String(prices?.output ?? "-")
]

/** `200k`, `1.05M`. */
const short = (tokens: number | undefined): string => {
  if (tokens === undefined) return "-"
  return tokens >= 1_000_000 ? `${Number((tokens / 1e6).toFixed(2))}M` : `${Math.round(tokens / 1000)}k`
}
