/** All settings of a run, in the order of the help. */
import type * as Command from "effect/cli/Command"
import type * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import * as ModelSettings from "./ModelSettings.ts"
import * as RunSettings from "./RunSettings.ts"
import * as SessionSettings from "./SessionSettings.ts"
import type * as Setting from "./Setting.ts"
import type { Sources } from "./Source.ts"
import * as TextSettings from "./TextSettings.ts"
import * as ToolSettings from "./ToolSettings.ts"

export const all = {
  ...ModelSettings.settings,
  ...TextSettings.settings,
  ...ToolSettings.settings,
  ...SessionSettings.settings,
  ...RunSettings.settings
}

const group = (
  title: string,
  settings: Readonly<Record<string, Pick<Setting.Setting<unknown>, "names">>>
) => ({ title, names: new Set(Object.values(settings).flatMap(({ names }) => names)) })

/** The groups of the help, with the names of their flags. */
export const groups = [
  group("MODEL", ModelSettings.settings),
  group("PROMPT AND ANSWER", TextSettings.settings),
  group("TOOLS AND APPROVALS", ToolSettings.settings),
  group("SESSION", SessionSettings.settings),
  group("BOUNDS AND PROGRAM", RunSettings.settings)
]

interface ToFlag extends Struct.Lambda {
  <A>(setting: Setting.Setting<A>): Flag.Flag<Setting.Given<A>>
  readonly "~lambda.out": this["~lambda.in"] extends Setting.Setting<infer A>
    ? Flag.Flag<Setting.Given<A>>
    : never
}

/** The flags of all settings. */
export const flags = Struct.map(
  all,
  Struct.lambda<ToFlag>(({ parameter }) => parameter)
)

interface ToAbsent extends Struct.Lambda {
  <A>(setting: Setting.Setting<A>): Setting.Given<A>
  readonly "~lambda.out": this["~lambda.in"] extends Setting.Setting<infer A> ? Setting.Given<A> : never
}

/** The settings of a command that has none. */
export const absent = Struct.map(
  all,
  Struct.lambda<ToAbsent>(({ absent }) => absent)
)

/** The flags that mean nothing to a command that serves others: they are about one prompt. */
const ofPrompt = [
  "file",
  "inputFormat",
  "print",
  "outputFormat",
  "outputSchema",
  "output",
  "continue",
  "resume",
  "fork",
  "name",
  "failOnRefusal"
] as const

/** The flags of a command that serves others. */
export const serving = Struct.omit(flags, ofPrompt)

/** The parsed flags. */
export type Flags = Command.Command.Config.Infer<typeof flags>

const picking = (sources: Sources) => Struct.lambda<ToPick>((given) => given.pick(sources))

interface ToPick extends Struct.Lambda {
  <A>(given: Setting.Given<A>): ReturnType<Setting.Given<A>["pick"]>
  readonly "~lambda.out": this["~lambda.in"] extends Setting.Given<infer A>
    ? ReturnType<Setting.Given<A>["pick"]>
    : never
}

/** Picks the value of each setting from the flags and the other places. */
export const pick = (flags: Flags, sources: Sources) => Effect.all(Struct.map(flags, picking(sources)))

export type Picks = Effect.Success<ReturnType<typeof pick>>
