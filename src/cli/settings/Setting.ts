/**
 * Settings of the program. Each has a flag, most have a variable, and most a member of the configuration files.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import type { UsageError } from "../ExitCode.ts"
import * as Source from "./Source.ts"
import * as Values from "./Values.ts"

export interface Setting<out A> {
  /** The member of a configuration file, such as `maxTurns`. */
  readonly key: string
  /** The flag, such as `--model`, and its alias, such as `-m`. */
  readonly names: ReadonlyArray<string>
  /** Whether a value follows the flag. */
  readonly hasValue: boolean
  readonly parameter: Flag.Flag<Given<A>>
  /** The setting of a command that does not have it. */
  readonly absent: Given<A>
  /** The schema of the member, `undefined` if configuration files do not have the setting. */
  readonly json: Json | undefined
}

type Json = Schema.Codec<Source.Member, Source.Member>

/** A setting, and the value of its flag. */
export interface Given<out A> {
  readonly pick: (sources: Source.Sources) => Effect.Effect<Source.Picked<A>, UsageError>
}

/** The options of all kinds of settings. */
interface Options<A> {
  readonly name: string
  readonly description: string
  readonly alias?: string
  /** Whether configuration files have the setting (default: `true`). */
  readonly isKept?: boolean
  readonly rules?: Partial<Source.Rules<A>>
}

interface Spec<A> extends Options<A> {
  /** The texts of the flag, if it is given. */
  readonly flag: Flag.Flag<Option.Option<ReadonlyArray<string>>>
  readonly read: (texts: ReadonlyArray<string>) => Option.Option<A>
  readonly expected: string
  readonly json: Json
  readonly hasValue?: boolean
  /** The items of a variable. */
  readonly split?: (text: string) => ReadonlyArray<string>
}

const make = <A>({
  expected,
  flag,
  hasValue = true,
  isKept = true,
  json,
  name,
  read,
  rules = {},
  split,
  ...rest
}: Spec<A>) => {
  const key = name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  const value = Source.make({
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
  const names = [`--${name}`, ...(rest.alias === undefined ? [] : [`-${rest.alias}`])]
  return { key, names, hasValue, parameter, absent: absent(key), json: described } satisfies Setting<A>
}

const absent = (key: string): Given<never> => ({
  pick: () => Effect.succeed({ key, isList: false, found: Option.none(), ignored: [] })
})

const onFlag = (name: string): Source.From => ({ kind: "flag", name: `--${name}` })

/** The value of a flag. The failure has the texts as they were typed, but for passwords. */
const onLine = <A>(
  { expected, name, read }: Pick<Spec<A>, "expected" | "name" | "read">,
  texts: ReadonlyArray<string>
): Effect.Effect<Source.Found<A>, CliError.InvalidValue> =>
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
export const toggle = (options: Options<boolean>): Setting<boolean> =>
  make({
    ...options,
    flag: Flag.Boolean(options.name).pipe(
      Flag.withoutNegation,
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
export const toPick = (sources: Source.Sources) => Struct.lambda<ToPick>((given) => given.pick(sources))

// ───────────────────────── Flags that are no settings

/** A flag without a value. */
export const plainFlag = (name: string, text: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(text), Flag.withDefault(false), Flag.withoutNegation)

export const plainText = (name: string, metavar: string, text: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(text), Flag.optional)
