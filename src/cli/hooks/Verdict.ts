/** The meaning of the end of a command hook, and of several together. */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CommandHook, Point } from "./HookFile.ts"
import type { Members } from "./Matcher.ts"

/** The end of a command. */
export type Ended =
  | { readonly _tag: "Exit"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Timeout"; readonly seconds: number }
  | { readonly _tag: "NotStarted"; readonly detail: string }

/** The decisions of a hook, or of all hooks of a point. */
export interface Verdict {
  /** Lines for the person. */
  readonly lines: ReadonlyArray<string>
  /** The reason for which the call, the prompt, the end or the compaction is refused. */
  readonly block?: string
  /** The reason for which the run ends. */
  readonly stop?: string
  /** Texts for the model. */
  readonly contexts: ReadonlyArray<string>
  readonly decision?: "allow" | "ask"
  /** The reason of the decision. */
  readonly reason?: string
  /** Params in place of those of the call. */
  readonly input?: Members
}

const text = Schema.optionalKey(Schema.String)

const Output = Schema.fromJsonString(
  Schema.Struct({
    continue: Schema.optionalKey(Schema.Boolean),
    stopReason: text,
    systemMessage: text,
    additionalContext: text,
    decision: Schema.optionalKey(Schema.Literals(["approve", "block"])),
    reason: text,
    hookSpecificOutput: Schema.optionalKey(
      Schema.Struct({
        permissionDecision: Schema.optionalKey(Schema.Literals(["allow", "deny", "ask"])),
        permissionDecisionReason: text,
        updatedInput: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
        additionalContext: text,
        decision: Schema.optionalKey(
          Schema.Struct({
            behavior: Schema.Literals(["allow", "deny"]),
            message: text,
            updatedInput: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
          })
        )
      })
    )
  })
)

const decode = Schema.decodeUnknownResult(Output)

const guards: ReadonlySet<Point> = new Set<Point>(["PreToolUse", "PermissionRequest"])

/** The points whose plain text at exit code 0 goes to the model. */
const telling: ReadonlySet<Point> = new Set<Point>(["SessionStart", "UserPromptSubmit"])

/** The points at which exit code 2 refuses something. At others the person reads what the hook wrote. */
const refusing: ReadonlySet<Point> = new Set<Point>([
  "UserPromptSubmit",
  "PreToolUse",
  "PermissionRequest",
  "PostToolUse",
  "PostToolUseFailure",
  "Stop",
  "SubagentStop",
  "PreCompact"
])

/** The exit codes of a shell that cannot run the command. */
const unfit: ReadonlySet<number> = new Set([126, 127])

const noReason = "it gives no reason"

/** The verdict of one hook. */
export const of = (hook: Pick<CommandHook, "command" | "onFailure" | "point">, ended: Ended): Verdict => {
  const { point } = hook
  if (ended._tag !== "Exit") return failed(hook, howOf(ended), "", true)
  const { code, stderr, stdout } = ended
  const complaint = stderr.trim()
  if (code === 2) return refused(point, complaint || noReason)
  if (code !== 0) return failed(hook, `exit ${code}`, firstLine(complaint), unfit.has(code))
  const written = stdout.trim()
  if (!written.startsWith("{"))
    return { lines: [], contexts: telling.has(point) && written !== "" ? [written] : [] }
  const output = decode(written)
  return Result.isFailure(output)
    ? failed(hook, "its JSON cannot be read", firstLine(output.failure.message), true)
    : ofOutput(point, output.success)
}

const howOf = (ended: Exclude<Ended, { readonly _tag: "Exit" }>): string => {
  switch (ended._tag) {
    case "Signal":
      return `killed by ${ended.name}`
    case "Timeout":
      return `timed out after ${ended.seconds} s`
    case "NotStarted":
      return `not started: ${ended.detail}`
  }
}

const firstLine = (text: string): string => text.trim().split("\n")[0] ?? ""

const refused = (point: Point, reason: string): Verdict =>
  refusing.has(point)
    ? { lines: [], contexts: [], block: reason }
    : { lines: reason === noReason ? [] : [reason], contexts: [] }

/** A hook that failed. `isMute`: it could not judge at all. */
const failed = (
  { command, onFailure, point }: Pick<CommandHook, "command" | "onFailure" | "point">,
  how: string,
  rest: string,
  isMute: boolean
): Verdict => {
  const line = `hook ${command} failed (${how})${rest === "" ? "" : `: ${rest}`}`
  const usual = isMute && guards.has(point) ? "block" : "continue"
  const isBlock = Option.getOrElse(onFailure, () => usual) === "block" && refusing.has(point)
  return { lines: [line], contexts: [], ...(isBlock ? { block: line } : {}) }
}

const ofOutput = (point: Point, output: Schema.Schema.Type<typeof Output>): Verdict => {
  const { hookSpecificOutput: own = {}, reason } = output
  const { decision: answer, permissionDecision } = own
  const isGuard = guards.has(point)
  const block =
    permissionDecision === "deny" && isGuard
      ? (own.permissionDecisionReason ?? noReason)
      : answer?.behavior === "deny" && isGuard
        ? (answer.message ?? noReason)
        : output.decision === "block" && refusing.has(point)
          ? (reason ?? noReason)
          : undefined
  const isAllowed =
    permissionDecision === "allow" || answer?.behavior === "allow" || output.decision === "approve"
  const decision = permissionDecision === "ask" ? "ask" : isAllowed ? "allow" : undefined
  const input = own.updatedInput ?? answer?.updatedInput
  const why = own.permissionDecisionReason ?? reason
  return {
    lines: output.systemMessage === undefined ? [] : [output.systemMessage],
    contexts: [output.additionalContext, own.additionalContext].flatMap((text) => text ?? []),
    ...(block === undefined ? {} : { block }),
    ...(output.continue === false ? { stop: output.stopReason ?? "a hook ends the run" } : {}),
    ...(decision === undefined || !isGuard ? {} : { decision }),
    ...(why === undefined ? {} : { reason: why }),
    ...(input === undefined || !isGuard ? {} : { input })
  }
}

/** The verdict of several hooks: a refusal outweighs a question, and that an approval. Two hooks must not change the same call. */
export const together = (verdicts: ReadonlyArray<Verdict>): Verdict => {
  const inputs = verdicts.flatMap(({ input }) => (input === undefined ? [] : [input]))
  const blocks = verdicts.flatMap(({ block }) => block ?? [])
  const reasons =
    blocks.length === 0 && inputs.length > 1 ? [`${inputs.length} hooks change this call`] : blocks
  const [stop] = verdicts.flatMap(({ stop }) => stop ?? [])
  const asking = verdicts.find(({ decision }) => decision === "ask")
  const decided = asking ?? verdicts.find(({ decision }) => decision === "allow")
  const [input] = inputs
  return {
    lines: verdicts.flatMap(({ lines }) => lines),
    contexts: verdicts.flatMap(({ contexts }) => contexts),
    ...(reasons.length === 0 ? {} : { block: reasons.join("\n") }),
    ...(stop === undefined ? {} : { stop }),
    ...(decided?.decision === undefined ? {} : { decision: decided.decision }),
    ...(decided?.reason === undefined ? {} : { reason: decided.reason }),
    ...(input === undefined ? {} : { input })
  }
}
