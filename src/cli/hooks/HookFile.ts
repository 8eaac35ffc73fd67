/** The member `hooks` of a file: the commands that run at named points, in the format of the settings of Claude Code. */
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Hook from "../../Hook.ts"
import * as NearestName from "../../internal/nearestName.ts"
import { UsageError } from "../ExitCode.ts"
import * as Matcher from "./Matcher.ts"

/** The points at which commands run. */
export const points = [
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PermissionRequest",
  "PostToolUse",
  "PostToolUseFailure",
  "Notification",
  "Stop",
  "SubagentStop",
  "PreCompact",
  "SessionEnd"
] as const

export type Point = (typeof points)[number]

const isPoint = (name: string): name is Point => points.some((point) => point === name)

/** A command of a file. */
export interface CommandHook {
  readonly point: Point
  /** The text of the matcher, `""` for none. */
  readonly matcher: string
  readonly covers: Matcher.Matcher
  readonly command: string
  /** Seconds. */
  readonly timeout: number
  /** The meaning of a failure. Default: that of the point. */
  readonly onFailure: Option.Option<"continue" | "block">
  /** The path of the file. */
  readonly source: string
}

/** Seconds that a command may take. */
const usualTimeout = 60

const Groups = Schema.Record(
  Schema.String,
  Schema.Array(
    Schema.Struct({
      matcher: Schema.optionalKey(Schema.String),
      hooks: Schema.Array(
        Schema.Struct({
          type: Schema.String,
          command: Schema.optionalKey(Schema.NonEmptyString),
          timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
          onFailure: Schema.optionalKey(Schema.Literals(["continue", "block"]))
        })
      )
    })
  )
)

/** The commands of a file, and lines on what is left out of it. */
export interface Read {
  readonly hooks: ReadonlyArray<CommandHook>
  readonly remarks: ReadonlyArray<string>
}

/**
 * Reads the member `hooks` of a file. Fails with `UsageError`, which names the file and the member. Of a file of another program points and
 * kinds of hooks that are not known are left out.
 */
export const read = (source: string, member: unknown, isOther: boolean): Result.Result<Read, UsageError> =>
  Result.gen(function* () {
    const refused = (place: string, fault: string) =>
      new UsageError({ detail: `${source}: ${place}: ${fault}` })
    const groups = yield* Result.mapError(Schema.decodeUnknownResult(Groups)(member), ({ message }) =>
      refused("hooks", message.replaceAll(/\s+/g, " "))
    )
    const hooks: Array<CommandHook> = []
    const remarks: Array<string> = []
    for (const [point, list] of Object.entries(groups)) {
      if (!isPoint(point)) {
        if (!isOther) return yield* Result.fail(refused(`hooks.${point}`, misspelt(point)))
        remarks.push(`${source}: hooks.${point} is left out: the program has no such point.`)
        continue
      }
      for (const [at, { hooks: commands, matcher = "" }] of list.entries()) {
        const place = `hooks.${point}[${at}]`
        const covers = yield* Result.mapError(Matcher.parse(matcher), (fault) =>
          refused(`${place}.matcher`, fault)
        )
        for (const [index, { command, onFailure, timeout = usualTimeout, type }] of commands.entries()) {
          const member = `${place}.hooks[${index}]`
          if (type === "command" && command !== undefined) {
            const rest = { timeout, onFailure: Option.fromUndefinedOr(onFailure), source }
            hooks.push({ point, matcher, covers, command, ...rest })
          } else if (isOther && type !== "command")
            remarks.push(`${source}: ${member} is left out: its type is ${JSON.stringify(type)}.`)
          else
            return yield* Result.fail(
              type === "command"
                ? refused(`${member}.command`, "it is missing")
                : refused(`${member}.type`, `${JSON.stringify(type)} is no type. The only one is "command".`)
            )
        }
      }
    }
    return { hooks, remarks }
  })

const misspelt = (point: string): string => {
  const nearest = NearestName.of(point, points)
  return nearest === undefined
    ? `it is no point. Points: ${points.join(", ")}.`
    : `it is no point. Did you mean "${nearest}"?`
}

/** A command of a file, and whether it runs. */
export interface Listed extends CommandHook {
  readonly isTrusted: boolean
}

/** The hooks of all files. */
export interface Found {
  readonly commands: ReadonlyArray<Listed>
  /** The modules in Karl's folders that run. */
  readonly modules: ReadonlyArray<string>
  /** The number of hooks that do not run, since the user does not trust their files. */
  readonly untrusted: number
  readonly remarks: ReadonlyArray<string>
}

/** A hook of the library. Its constructors there would load the schemas of all points. */
export const at = <P extends Hook.Point>(
  point: P,
  run: (input: Hook.Input<P>) => Effect.Effect<Hook.Output<P> | void>
): Hook.HookOf<P, Hook.Input<P>, Hook.Output<P>, never, never> => ({ point, run })
