/**
 * Settings of the program. Each has a flag, most have a variable, and most a member of the configuration files. The flag counts, else the session
 * that continues, the variable, the configuration of the project, that of the user.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import { UsageError } from "../ExitCode.ts"
import * as Values from "./Values.ts"
import type { Environment } from "../agent/Vendors.ts"

export interface Setting<out A> {
  /** The member of a configuration file, such as `maxTurns`. */
  readonly key: string
  /** The flag, such as `--model`, its alias, such as `-m`, and its negation, such as `--no-task-list`. */
  readonly names: ReadonlyArray<string>
  /** Whether a value follows the flag. */
  readonly hasValue: boolean
  readonly parameter: Flag.Flag<Given<A>>
  /** The setting of a command that does not have it. */
  readonly absent: Given<A>
  /** The schema of the member, `undefined` if configuration files do not have the setting. */
  readonly json: Json | undefined
}

type Json = Schema.Codec<Member, Member>

/** A setting, and the value of its flag. */
export interface Given<out A> {
  readonly pick: (sources: Sources) => Effect.Effect<Picked<A>, UsageError>
}

/** The options of all kinds of settings. */
interface Options<A> {
  readonly name: string
  readonly description: string
  readonly alias?: string
  /** Whether configuration files have the setting (default: `true`). */
  readonly isKept?: boolean
  readonly rules?: Partial<Rules<A>>
}

interface Spec<A> extends Options<A> {
  /** The texts of the flag, if it is given. */
  readonly flag: Flag.Flag<Option.Option<ReadonlyArray<string>>>
  readonly read: (texts: ReadonlyArray<string>) => Option.Option<A>
  readonly expected: string
  readonly json: Json
  readonly hasValue?: boolean
  /** Whether there is a flag `--no-NAME` too. */
  readonly isNegated?: boolean
  /** The items of a variable. */
  readonly split?: (text: string) => ReadonlyArray<string>
}

const make = <A>({
  expected,
  flag,
  hasValue = true,
  isKept = true,
  isNegated = false,
  json,
  name,
  read,
  rules = {},
  split,
  ...rest
}: Spec<A>) => {
  const camel = name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  const key = Object.keys(otherFlags).find((key) => otherFlags[key] === name) ?? camel
  const value = picking({
    name,
    key,
    isList: split !== undefined,
    read,
    expected,
    rules,
    split: split ?? ((text) => [text])
  })
  const parameter = flag.pipe(
    Flag.mapEffect((given) =>
      Option.match(given, {
        onNone: () => Effect.succeedNone,
        onSome: (texts) => Effect.asSome(onLine({ expected, name, read }, texts))
      })
    ),
    Flag.map((given): Given<A> => ({ pick: value(given) })),
    Flag.withDescription(rest.description),
    rest.alias === undefined ? (same) => same : Flag.withAlias(rest.alias)
  )
  const described = isKept ? json.annotate({ description: rest.description }) : undefined
  const names = [
    `--${name}`,
    ...(rest.alias === undefined ? [] : [`-${rest.alias}`]),
    ...(isNegated ? [`--no-${name}`] : [])
  ]
  return { key, names, hasValue, parameter, absent: absent(key), json: described } satisfies Setting<A>
}

const absent = (key: string): Given<never> => ({
  pick: () => Effect.succeed({ key, isList: false, found: Option.none(), ignored: [] })
})

const onFlag = (name: string): From => ({ kind: "flag", name: `--${name}` })

/** The value of a flag. The failure has the texts as they were typed, but for passwords. */
const onLine = <A>(
  { expected, name, read }: Pick<Spec<A>, "expected" | "name" | "read">,
  texts: ReadonlyArray<string>
): Effect.Effect<Found<A>, CliError.InvalidValue> =>
  Option.match(read(texts), {
    onNone: () => {
      const value = Values.withoutPassword(texts.join(","))
      return Effect.fail(new CliError.InvalidValue({ option: name, value, expected, kind: "flag" }))
    },
    onSome: (value) => Effect.succeed({ value, texts, from: onFlag(name) })
  })

const single = (flag: Flag.Flag<string>) =>
  Flag.optional(Flag.map(flag, (text): ReadonlyArray<string> => [text]))

/** A setting with one text. */
export const text = <A>(
  options: Options<A> & {
    readonly metavar: string
    readonly read: (text: string) => Option.Option<A>
    readonly expected: string
    readonly json?: Json
    readonly flag?: Flag.Flag<string>
  }
): Setting<A> =>
  make({
    json: Schema.String,
    ...options,
    flag: single(Flag.withMetavar(options.flag ?? Flag.String(options.name), options.metavar)),
    read: ([text = "", ...more]) => (more.length === 0 ? options.read(text) : Option.none())
  })

/** A setting with one number for which `isFine` is true. */
export const number = (
  options: Options<number> & {
    readonly metavar: string
    readonly expected: string
    readonly isFine: (value: number) => boolean
  }
): Setting<number> => text({ ...options, read: Values.number(options.isFine), json: Schema.Finite })

/** A setting with one of several words. */
export const choice = <const Words extends ReadonlyArray<string>>(
  options: Options<Words[number]> & { readonly words: Words; readonly metavar?: string }
): Setting<Words[number]> =>
  text<Words[number]>({
    metavar: "choice",
    ...options,
    flag: Flag.Literals(options.name, options.words),
    read: Values.literal(options.words),
    expected: options.words.join(", "),
    json: Schema.Literals(options.words)
  })

/** A setting that is on or off. Its flag has no value. */
export const toggle = (options: Options<boolean> & Pick<Spec<boolean>, "isNegated">): Setting<boolean> =>
  make({
    ...options,
    flag: Flag.Boolean(options.name).pipe(
      options.isNegated === true ? identity : Flag.withoutNegation,
      Flag.map((isOn): ReadonlyArray<string> => [String(isOn)]),
      Flag.optional
    ),
    hasValue: false,
    read: ([text = ""]) => Values.truth(text),
    expected: "true or false",
    json: Schema.Boolean
  })

/** A setting with several values. Its flag may be repeated; commas separate the items of its variable. */
export const list = <A>(
  options: Options<A> & {
    readonly metavar: string
    readonly expected: string
    readonly read: (texts: ReadonlyArray<string>) => Option.Option<A>
    readonly flag?: Flag.Flag<string>
    readonly split?: (text: string) => ReadonlyArray<string>
  }
): Setting<A> =>
  make({
    split: Values.items,
    ...options,
    flag: (options.flag ?? Flag.String(options.name)).pipe(
      Flag.withMetavar(options.metavar),
      Flag.atLeast(0),
      Flag.map((texts) => (texts.length === 0 ? Option.none() : Option.some(texts)))
    ),
    json: Schema.Union([Schema.String, Schema.Array(Schema.String)])
  })

interface ToFlag extends Struct.Lambda {
  <A>(setting: Setting<A>): Flag.Flag<Given<A>>
  readonly "~lambda.out": this["~lambda.in"] extends Setting<infer A> ? Flag.Flag<Given<A>> : never
}

/** The flag of each setting of a table. */
export const toFlag = Struct.lambda<ToFlag>(({ parameter }) => parameter)

interface ToAbsent extends Struct.Lambda {
  <A>(setting: Setting<A>): Given<A>
  readonly "~lambda.out": this["~lambda.in"] extends Setting<infer A> ? Given<A> : never
}

/** Each setting of a table for a command that does not have it. */
export const toAbsent = Struct.lambda<ToAbsent>(({ absent }) => absent)

interface ToPick extends Struct.Lambda {
  <A>(given: Given<A>): ReturnType<Given<A>["pick"]>
  readonly "~lambda.out": this["~lambda.in"] extends Given<infer A> ? ReturnType<Given<A>["pick"]> : never
}

/** Picks the value of each flag of a table from the flag and the other places. */
export const toPick = (sources: Sources) => Struct.lambda<ToPick>((given) => given.pick(sources))

// ───────────────────────── Flags that are no settings

/** A flag without a value. */
export const plainFlag = (name: string, text: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(text), Flag.withDefault(false), Flag.withoutNegation)

export const plainText = (name: string, metavar: string, text: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(text), Flag.optional)

// ───────────────────────── Where a value comes from

/** A member of a configuration file. */
export type Member = string | number | boolean | ReadonlyArray<string>

/** A configuration file. */
export interface File {
  readonly path: string
  readonly members: Readonly<Record<string, Member | undefined>>
  /** Whether the file has command hooks. Default `false`. */
  readonly hasHooks?: boolean
  /** The files whose hooks the file names. Default: none. */
  readonly hooksFrom?: ReadonlyArray<string>
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

/** The flags of settings that have another name than their member. */
const otherFlags: Readonly<Record<string, string>> = { disableHooks: "no-hooks" }

/** The flag of a setting, by the key of the setting. */
export const flagOf = (key: string): string =>
  `--${(otherFlags[key] ?? key).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

export const variableOf = (flag: string): string => `EFFECT_AGENT_${flag.toUpperCase().replaceAll("-", "_")}`

/** Picks a value from its places. Fails with `UsageError` for a value that cannot be read, and names its place. */
export const picking =
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
