/**
 * The keys of vendors that the user has entered: `credentials.json` beside the user's configuration. A variable of the environment wins over
 * them. They are read for each choice of a model, and are never in the environment of a process.
 */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { UsageError } from "../ExitCode.ts"
import * as NearestName from "../../internal/nearestName.ts"
import * as PrivateFile from "../settings/PrivateFile.ts"
import * as UserFolder from "../settings/UserFolder.ts"
import * as Vendors from "./Vendors.ts"

const keys = PrivateFile.records(Schema.String)

/** The file of the keys, which may not exist. */
export const file = (env: Vendors.Environment) =>
  Effect.flatMap(UserFolder.of(env), (folder) =>
    Effect.map(Path.Path, (path) => path.join(folder, "credentials.json"))
  )

/** The environment, with the keys of vendors of which it has none, under the first of their names. */
export const joined = Effect.fnUntraced(function* (env: Vendors.Environment) {
  const stored = yield* Effect.flatMap(file(env), keys.read)
  const added = vendors.flatMap((vendor) => {
    const key = Object.hasOwn(stored, vendor.id) ? stored[vendor.id] : undefined
    const [name] = vendor.keyNames
    return key === undefined || name === undefined || Vendors.keyOf(vendor, env) !== undefined
      ? []
      : [[name, key] as const]
  })
  return added.length === 0 ? env : { ...env, ...Object.fromEntries(added) }
})

/** The vendors that have a key of their own: `openai-chat` has that of `openai`. */
const vendors = Vendors.companies.filter(
  ({ keyNames }, index, all) => all.findIndex((other) => other.keyNames[0] === keyNames[0]) === index
)

/** A vendor, and where its key is: in a variable, in the file, or nowhere. */
export interface Row {
  readonly vendor: string
  readonly key: { readonly variable: string } | "file" | undefined
}

/** The vendors, in the order in which the program looks for their keys. Never their keys. */
export const list = Effect.fnUntraced(function* (env: Vendors.Environment) {
  const stored = yield* Effect.flatMap(file(env), keys.read)
  return vendors.map((vendor): Row => {
    const variable = Vendors.keyOf(vendor, env)
    const key =
      variable === undefined ? (Object.hasOwn(stored, vendor.id) ? "file" : undefined) : { variable }
    return { vendor: vendor.id, key }
  })
})

/** Keeps the key of a vendor. Fails with `UsageError` for an unknown vendor, and for a text that is no key. */
export const set = Effect.fnUntraced(function* (
  vendor: string,
  key: Redacted.Redacted,
  env: Vendors.Environment
) {
  const { id } = yield* known(vendor)
  const text = Redacted.value(key).trim()
  if (!/^[!-~]+$/.test(text))
    return yield* new UsageError({ detail: "A key has visible ASCII characters, and no space." })
  const path = yield* file(env)
  yield* PrivateFile.locked(path, keys.put(path, id, text))
})

/** Forgets the key of a vendor. Returns whether there was one in the file. Fails with `UsageError` for an unknown vendor. */
export const remove = Effect.fnUntraced(function* (vendor: string, env: Vendors.Environment) {
  const { id } = yield* known(vendor)
  const path = yield* file(env)
  return (yield* PrivateFile.locked(path, keys.put(path, id, undefined))) !== undefined
})

const known = (id: string): Effect.Effect<Vendors.Hosted, UsageError> => {
  const found = vendors.find((vendor) => vendor.id === id)
  if (found !== undefined) return Effect.succeed(found)
  const ids = vendors.map((vendor) => vendor.id)
  const nearest = NearestName.of(id, ids)
  const advice = nearest === undefined ? `Vendors: ${ids.join(", ")}.` : `Did you mean ${nearest}?`
  return new UsageError({ detail: `There is no vendor ${JSON.stringify(id)}. ${advice}` })
}
