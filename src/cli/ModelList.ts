/** Lists the models of a provider: those of the price list and the model table, or those that a local server has. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Prices from "../Prices.ts"
import * as Models from "../providers/Models.ts"
import * as ExitCode from "./ExitCode.ts"
import { UsageError } from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import * as ListPrices from "./ListPrices.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as ModelTable from "./ModelTable.ts"
import { Screen } from "./Screen.ts"
import * as Vendors from "./Vendors.ts"

/** The arguments of `effect-agent models`. */
export interface Request {
  readonly provider: Option.Option<string>
  /** The address of a local server. */
  readonly baseUrl: Option.Option<string>
  readonly json: boolean
}

/** A model, with what is known of it. */
export interface Row {
  /** The id of the model, or the name of its family if the price list has no id for it. */
  readonly model: string
  readonly contextWindow?: number
  readonly maxOutput?: number
  /** The thinking levels, in the words of the vendor. */
  readonly thinking?: ReadonlyArray<string>
  /** The prices of a million tokens. */
  readonly prices?: Prices.Rates
}

/** Writes the models to stdout. */
export const show = Effect.fnUntraced(function* (request: Request, env: Vendors.Environment) {
  const { out } = yield* Screen
  const rows = yield* list(yield* providerOf(request, env), env, request)
  yield* out(request.json ? rows.map((row) => `${JSON.stringify(row)}\n`).join("") : table(rows))
  return ExitCode.answered
})

/** The provider that is named, else that of the model that a run would choose. */
const providerOf = Effect.fnUntraced(function* (
  { baseUrl, provider }: Request,
  env: Vendors.Environment
): Effect.fn.Return<string, UsageError> {
  if (Option.isSome(provider)) return provider.value
  const options = { model: Option.none(), baseUrl, noDetect: false }
  const { model } = yield* ModelChoice.choose(options, env)
  return model.slice(0, model.indexOf("/"))
})

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
  if (!Vendors.companies.some((company) => company.id === id)) {
    const known = [...Vendors.companies, ...Vendors.servers].map((vendor) => vendor.id).join(", ")
    const detail = `${JSON.stringify(id)} is no provider with a list of models. Providers: ${known}.`
    return yield* new UsageError({ detail })
  }
  return yield* hosted(id)
})

const served = Effect.fnUntraced(function* (server: Vendors.Local, address: string) {
  const { idsAt } = yield* Effect.promise(() => import("./LocalServers.ts"))
  const ids = yield* idsAt(address)
  if (Option.isSome(ids)) return ids.value.map((model): Row => ({ model }))
  return yield* new UsageError({
    detail: `${server.id} does not answer at ${address}: start it, then ask again.`
  })
})

const hosted = Effect.fnUntraced(function* (id: string) {
  const vendor = ModelTable.vendorOf(id)
  const ids = yield* ListPrices.models(id)
  const found = ids.map((model) => ({ model, rule: ModelTable.ruleOf(id, model) }))
  const priced = yield* Effect.forEach(found, ({ model, rule }) =>
    Effect.map(ListPrices.find({ provider: id, model }), (price) => rowOf(model, rule, price))
  )
  const listed = new Set(found.map(({ rule }) => rule))
  const others = Models.rules.filter(
    (rule) => rule.vendor === vendor && rule.isUnknown !== true && !listed.has(rule)
  )
  const rows = [...priced, ...others.map((rule) => rowOf(rule.family ?? rule.pattern, rule, undefined))]
  if (rows.length > 0) return rows
  const detail = `No list of the models of ${id} is known. Name one as ${id}/ID, with the id that ${id} gives it.`
  return yield* new UsageError({ detail })
})

const rowOf = (model: string, rule: Models.Rule | undefined, price: Prices.Price | undefined): Row => {
  const contextWindow = rule?.contextWindow ?? price?.contextWindow
  return {
    model,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(rule?.maxOutput === undefined ? {} : { maxOutput: rule.maxOutput }),
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

const header = ["model", "window", "output", "thinking", "$ in", "$ out"]

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

const cellsOf = ({ contextWindow, maxOutput, model, prices, thinking }: Row): ReadonlyArray<string> => [
  Inert.line(model),
  short(contextWindow),
  short(maxOutput),
  thinking === undefined ? "-" : thinking.join(",") || "none",
  String(prices?.input ?? "-"),
  String(prices?.output ?? "-")
]

/** `200k`, `1.05M`. */
const short = (tokens: number | undefined): string => {
  if (tokens === undefined) return "-"
  return tokens >= 1_000_000 ? `${Number((tokens / 1e6).toFixed(2))}M` : `${Math.round(tokens / 1000)}k`
}
