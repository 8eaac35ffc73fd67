/**
 * Where a value comes from: the flag, the session that continues, the variable, the configuration of the project, that of the user. The
 * first of them counts.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { UsageError } from "../ExitCode.ts"
import * as Values from "./Values.ts"
import type { Environment } from "../agent/Vendors.ts"

/** A member of a configuration file. */
export type Member = string | number | boolean | ReadonlyArray<string>

/** A configuration file. */
export interface File {
  readonly path: string
  readonly members: Readonly<Record<string, Member | undefined>>
  /** Whether its members may widen what the agent may do. */
  readonly isTrusted: boolean
}

export interface Sources {
  /** The folder and the model of the session that continues. Default: none. */
  readonly session?: File | undefined
  readonly env: Environment
  readonly project: File | undefined
  readonly user: File | undefined
}

export interface From {
  readonly kind: "flag" | "session" | "variable" | "project" | "user" | "default"
  /** The flag, the variable or the path of the file; `""` for a default, `"the session"` for a session. */
  readonly name: string
}

export interface Found<out A> {
  readonly value: A
  readonly texts: ReadonlyArray<string>
  readonly from: From
}

/** The value that counts, if any, and the places whose values do not count. */
export interface Picked<out A> {
  readonly key: string
  readonly isList: boolean
  readonly found: Option.Option<Found<A>>
  readonly ignored: ReadonlyArray<From>
}

export interface Rules<A> {
  /** Whether the variable may have a value (default: always). */
  readonly isVariable: (value: A) => boolean
  /**
   * Whether the value of a project widens what the agent may do, compared with the value that counts without it (default: never).
   */
  readonly widens: (value: A, otherwise: Option.Option<A>) => boolean
  /** Joins the values of all places. Default: the first counts alone. */
  readonly join: (values: ReadonlyArray<A>) => A
}

interface Value<A> {
  /** The name of the flag. */
  readonly name: string
  readonly key: string
  readonly isList: boolean
  readonly read: (texts: ReadonlyArray<string>) => Option.Option<A>
  readonly expected: string
  readonly split: (text: string) => ReadonlyArray<string>
  readonly rules: Partial<Rules<A>>
}

/** The flag of a setting, by the key of the setting. */
export const flagOf = (key: string): string =>
  `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

export const variableOf = (flag: string): string => `EFFECT_AGENT_${flag.toUpperCase().replaceAll("-", "_")}`

/** Picks a value from its places. Fails with `UsageError` for a value that cannot be read, and names its place. */
export const make =
  <A>(value: Value<A>) =>
  (given: Option.Option<Found<A>>) =>
  (sources: Sources): Effect.Effect<Picked<A>, UsageError> =>
    Effect.gen(function* () {
      const { isVariable = () => true, join, widens = () => false } = value.rules
      const session = yield* inFile(value, sources.session, "session")
      const env = yield* inVariable(value, sources.env)
      const user = yield* inFile(value, sources.user, "user")
      const project = yield* inFile(value, sources.project, "project")
      const isBarred = Option.exists(env, (found) => !isVariable(found.value))
      const isWider =
        sources.project?.isTrusted !== true &&
        Option.exists(project, (found) =>
          widens(
            found.value,
            Option.map(user, ({ value }) => value)
          )
        )
      const places = [given, session, isBarred ? Option.none() : env, isWider ? Option.none() : project, user]
      const found = places.flatMap(Option.toArray)
      const ignored = [...(isBarred ? [env] : []), ...(isWider ? [project] : [])]
      return {
        key: value.key,
        isList: value.isList,
        found: join === undefined ? Option.fromUndefinedOr(found[0]) : joined(found, join),
        ignored: ignored.flatMap(Option.toArray).map(({ from }) => from)
      }
    })

const joined = <A>(
  found: ReadonlyArray<Found<A>>,
  join: (values: ReadonlyArray<A>) => A
): Option.Option<Found<A>> =>
  Option.map(Option.fromUndefinedOr(found[0]), ({ from }) => ({
    from,
    value: join(found.map(({ value }) => value)),
    texts: found.flatMap(({ texts }) => texts)
  }))

const inVariable = <A>({ name, split, ...value }: Value<A>, env: Environment) => {
  const from: From = { kind: "variable", name: variableOf(name) }
  const text = env[from.name] ?? ""
  return text.trim() === "" ? Effect.succeedNone : read(value, split(text), from, from.name)
}

const inFile = <A>(value: Value<A>, file: File | undefined, kind: From["kind"]) => {
  const member = file?.members[value.key]
  if (file === undefined || member === undefined) return Effect.succeedNone
  const texts = Array.isArray(member) ? member.map(String) : [String(member)]
  return read(value, texts, { kind, name: file.path }, `${file.path}: ${value.key}`)
}

const read = <A>(
  { expected, read }: Pick<Value<A>, "expected" | "read">,
  texts: ReadonlyArray<string>,
  from: From,
  place: string
): Effect.Effect<Option.Option<Found<A>>, UsageError> =>
  Option.match(read(texts), {
    onNone: () =>
      Effect.fail(
        new UsageError({
          detail: `${place}: ${JSON.stringify(Values.withoutPassword(texts.join(",")))}. Expected: ${expected}`
        })
      ),
    onSome: (value) => Effect.succeedSome({ value, texts, from })
  })
