/**
 * Chooses the model: the one that the user names, else that of the first key in the environment, else that of a
 * server on this machine, else `local/rules`. The program always shows the choice.
 */
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as NearestName from "../../internal/nearestName.ts"
import * as Provider from "../../Provider.ts"
import * as LocalRules from "../../providers/LocalRules.ts"
import type { ThinkingLevel } from "../../RunOptions.ts"
import { UsageError } from "../ExitCode.ts"
import * as Credentials from "./Credentials.ts"
import * as Network from "./Network.ts"
import type { Model } from "../settings/Values.ts"
import * as Vendors from "./Vendors.ts"

/** A model and its provider. */
export interface Choice {
  /** `provider/id`. */
  readonly model: string
  /** The reason for the choice, for people. */
  readonly why: string
  readonly provider: Layer.Layer<Provider.Provider, Config.ConfigError>
}

/** The keys that the user has entered are in a file. */
export type Services = FileSystem.FileSystem | Path.Path

/** The environment variable that names the model. */
export const modelName = "EFFECT_AGENT_MODEL"

/** The settings that the choice depends on. */
interface Options {
  readonly model: Option.Option<string>
  /** The place that names the model, for people. Default: `--model`. */
  readonly modelFrom?: string
  readonly baseUrl: Option.Option<string>
  readonly noDetect: boolean
}

/**
 * Chooses the model. Fails with `UsageError` if the named model has an unknown provider or no key, and if an address is given for a
 * model without a server.
 */
export const choose = Effect.fnUntraced(function* (
  options: Options,
  given: Vendors.Environment
): Effect.fn.Return<Choice, UsageError, Services> {
  const env = yield* Credentials.joined(given)
  const at = Option.match(options.baseUrl, { onNone: () => ({}), onSome: (baseUrl) => ({ baseUrl }) })
  const choice = (yield* byName(options, at, env)) ?? (yield* byKey(at, env, given))
  const isServed = choice !== undefined && choice.model !== rulesModel
  if (Option.isSome(options.baseUrl) && !isServed) return yield* new UsageError({ detail: noServer })
  if (choice !== undefined) return choice
  const look = !options.noDetect && !isCi(env)
  const server = look ? yield* detected(env) : undefined
  return server ?? rules(`no key is set, and no local server was ${look ? "found" : "looked for"}`)
})

/**
 * The choice with the models to ask where it fails. `baseUrl` is also the address of those that have its provider. Fails as `choose`
 * does.
 */
export const withFallbacks = Effect.fnUntraced(function* (
  options: Options & { readonly fallbackModel: ReadonlyArray<Model> },
  given: Vendors.Environment
): Effect.fn.Return<Choice, UsageError, Services> {
  const first = yield* choose(options, given)
  if (options.fallbackModel.length === 0) return first
  const env = yield* Credentials.joined(given)
  const others = yield* Effect.forEach(options.fallbackModel, ({ name, effort }) => {
    const { baseUrl } = besides(options, first, name)
    const at = Option.match(baseUrl, { onNone: () => ({}), onSome: (baseUrl) => ({ baseUrl }) })
    return Effect.map(named(name, "--fallback-model", at, env), ({ model, provider }) => ({
      model,
      layer: effort === undefined ? provider : withEffort(effort)(provider)
    }))
  })
  const { layer } = yield* Effect.promise(() => import("../../resilience/Fallback.ts"))
  const names = others.map(({ model }) => model).join(", ")
  return { ...first, why: `${first.why}; then ${names}`, provider: layer([first.provider, ...others]) }
})

/** The provider of a model. */
export const vendorOf = (model: string): string => model.slice(0, model.indexOf("/"))

const withEffort = (thinkingLevel: ThinkingLevel) =>
  Provider.decorate((inner) =>
    Effect.succeed({
      ...inner,
      stream: (request: Provider.ModelRequest) =>
        inner.stream({ ...request, options: { ...request.options, thinkingLevel } })
    })
  )

/** The options for a model beside the first one. Its key goes to `baseUrl` only if both have the same provider. */
export const besides = <A extends Pick<Options, "baseUrl">>(
  options: A,
  first: Pick<Choice, "model">,
  model: string
): A => (vendorOf(model) === vendorOf(first.model) ? options : { ...options, baseUrl: Option.none<string>() })

const rulesModel = "local/rules"

/** Whether the program has the provider of a model. */
export const isKnown = (model: string): boolean =>
  model === rulesModel || (model.includes("/") && vendors.includes(vendorOf(model)))

const vendors: ReadonlyArray<string> = [...Vendors.servers, ...Vendors.companies].map(({ id }) => id)

const noServer =
  "--base-url needs a model that a server runs: name it with --model, such as openai-chat/ID or vllm/ID."

const byName = Effect.fnUntraced(function* (
  { model, modelFrom = "--model" }: Options,
  at: Vendors.Address,
  env: Vendors.Environment
): Effect.fn.Return<Choice | undefined, UsageError> {
  if (Option.isSome(model)) return yield* named(model.value, modelFrom, at, env)
  const fromEnv = env[modelName]?.trim() ?? ""
  return fromEnv === "" ? undefined : yield* named(fromEnv, modelName, at, env)
})

const byKey = Effect.fnUntraced(function* (
  at: Vendors.Address,
  env: Vendors.Environment,
  given: Vendors.Environment
): Effect.fn.Return<Choice | undefined> {
  for (const company of Vendors.companies) {
    const key = Vendors.keyOf(company, env)
    if (key === undefined || company.model === undefined) continue
    const why =
      Vendors.keyOf(company, given) === undefined ? "its key was entered with /login" : `${key} is set`
    return yield* hosted(company, company.model, why, at, env)
  }
  return undefined
})

const isCi = (env: Vendors.Environment): boolean => env["CI"] === "true" || env["CI"] === "1"

const named = Effect.fnUntraced(function* (
  model: string,
  why: string,
  at: Vendors.Address,
  env: Vendors.Environment
): Effect.fn.Return<Choice, UsageError> {
  const [vendor = "", ...rest] = model.split("/")
  const id = rest.join("/")
  if (vendor === "local" && id === "rules") return rules(why)
  const company = Vendors.companies.find((company) => company.id === vendor)
  const server = Vendors.servers.find((server) => server.id === vendor)
  if (id === "" || (company === undefined && server === undefined)) {
    const nearest = id === "" ? undefined : NearestName.of(vendor, vendors)
    const fault =
      nearest === undefined
        ? `models are named provider/id, not ${JSON.stringify(model)}. Providers: local/rules, ${vendors.join(", ")}.`
        : `there is no provider ${JSON.stringify(vendor)}. Did you mean ${nearest}/${id}?`
    return yield* new UsageError({ detail: `${why}: ${fault}` })
  }
  if (server !== undefined) return yield* local(server, id, why, { baseUrl: server.baseUrl(env), ...at })
  if (company !== undefined && (company.hasAccounts === true || Vendors.keyOf(company, env) !== undefined))
    return yield* hosted(company, id, why, at, env)
  return yield* new UsageError({ detail: `${vendor} needs a key: set ${company?.keyNames.join(" or ")}.` })
})

const detected = Effect.fnUntraced(function* (env: Vendors.Environment) {
  const { find } = yield* Effect.promise(() => import("./LocalServers.ts"))
  const found = yield* find(env)
  if (Option.isNone(found)) return undefined
  const { address, model, server } = found.value
  return yield* local(server, model, `found at ${address}`, { baseUrl: address })
})

const rules = (why: string): Choice =>
  choice("local", "rules", why, Layer.succeed(Provider.Provider, LocalRules.provider))

const hosted = (
  company: Vendors.Hosted,
  model: string,
  why: string,
  at: Vendors.Address,
  env: Vendors.Environment
) =>
  Effect.map(company.load(at, env), (provider) =>
    choice(company.id, model, why, Layer.provide(online(provider), keysOf(env)))
  )

/** A provider reads its key as a setting. */
const keysOf = (env: Vendors.Environment) =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: Record.filter(env, Predicate.isNotUndefined) }))

const local = (server: Vendors.Local, model: string, why: string, at: Vendors.Address) =>
  Effect.map(server.load(at), (provider) => choice(server.id, model, why, online(provider)))

const online = (provider: Vendors.ProviderLayer) => Layer.provide(provider, Network.http)

/** A router makes events and answers contain the full name of the model. */
const choice = (vendor: string, id: string, why: string, provider: Choice["provider"]): Choice => ({
  model: `${vendor}/${id}`,
  why,
  provider: Provider.decorate((inner) => Effect.succeed(Provider.router({ [vendor]: inner })))(provider)
})
