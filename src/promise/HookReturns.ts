/**
 * The returns of the hooks of oneringai and pi, as those of this library.
 */
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Hook from "../Hook.ts"
import * as Message from "../Message.ts"
import * as Tool from "../Tool.ts"

/**
 * The return of a `before:llm` hook of oneringai that changes the request.
 *
 * @category models
 * @since 0.2.0
 */
export interface LlmModification {
  /** Whether the run fails without the model call. Default: `false`. */
  readonly skip?: boolean
  /** The detail of the error of a call that is skipped. Default: a text that says that a hook skipped the call. */
  readonly reason?: string
  /** The options that the hook changes. */
  readonly modified: {
    /** The id of the model. Default: as it is. */
    readonly model?: string
    /** The system prompt. Default: as it is. */
    readonly instructions?: string
    /** The randomness of the answer. Default: as it is. */
    readonly temperature?: number
    /** The most tokens of the answer. Default: as it is. */
    readonly max_output_tokens?: number
  }
}

/**
 * The return of a `before:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolModification {
  /** The arguments of the call as JSON text. Default: as they are. The run ignores `name`: a hook cannot choose another tool. */
  readonly modified?: { readonly function?: { readonly name?: string; readonly arguments: string } }
  /** Whether the hook stands in for the tool. Default: `false`. */
  readonly skip?: boolean
  /** The result of a call that is skipped. Default: an empty text. */
  readonly mockResult?: unknown
  /** A note for readers of the code. The run does not use it. */
  readonly reason?: string
}

/**
 * The return of an `approve:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ApprovalResult {
  /** Whether the call may run. */
  readonly approved: boolean
  /** The reason of a rejection, in the text of the result. Default: "not approved". */
  readonly reason?: string
  /** The arguments of a call that may run. Default: as they are. */
  readonly modifiedArgs?: Schema.Json
}

/**
 * The return of an `after:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolResultModification {
  /** The result in place of the tool's: its content, or the text of an error. Default: as it is. */
  readonly modified?: { readonly content?: unknown; readonly error?: string }
  /** Whether the tool runs again. Default: `false`. */
  readonly retry?: boolean
  /** A note for readers of the code. The run does not use it. */
  readonly reason?: string
}

/**
 * The return of a `session_before_compact` hook of pi.
 *
 * @category models
 * @since 0.2.0
 */
export interface CompactionVerdict {
  /** Whether the run skips the compaction. Default: `false`. */
  readonly cancel?: boolean
}

/**
 * The returns that hooks of oneringai and pi have beside those of their point, by the names of the hooks.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookReturns {
  /** Changes the request. */
  readonly "before:llm": LlmModification
  /** Takes no changes. */
  readonly "after:llm": Record<string, never>
  /** Changes or skips the call. */
  readonly "before:tool": ToolModification
  /** Approves or rejects the call, with other arguments. */
  readonly "approve:tool": ApprovalResult
  /** Changes the result, or has the tool run again. */
  readonly "after:tool": ToolResultModification
  /** Skips the compaction. */
  readonly session_before_compact: CompactionVerdict
}

const has =
  <A>(...members: ReadonlyArray<string>) =>
  (returned: unknown): returned is A =>
    Predicate.isObject(returned) && members.some((name) => Object.hasOwn(returned, name))

const isLlm = has<LlmModification>("modified")
const isTool = has<ToolModification>("modified", "mockResult")
const isPlainApproval = (returned: unknown): returned is Hook.Output<"approveTool"> | void =>
  !Predicate.hasProperty(returned, "modifiedArgs")
const isVerdict = (returned: unknown): returned is CompactionVerdict =>
  Predicate.isObject(returned) && !Object.hasOwn(returned, "skip")
const isResult = has<ToolResultModification>("modified", "reason")

export const ofModel = (
  returned: Hook.Output<"beforeModel"> | LlmModification | void
): Hook.Output<"beforeModel"> | void => {
  if (!isLlm(returned)) return returned
  const { modified, reason, skip, ...unknown } = returned
  if (skip === true) return { ...unknown, skip, ...(reason === undefined ? {} : { reason }) }
  const { instructions, max_output_tokens: maxTokens, ...others } = modified
  return {
    ...unknown,
    modified: {
      ...others,
      ...(instructions === undefined ? {} : { system: instructions }),
      ...(maxTokens === undefined ? {} : { maxTokens })
    }
  }
}

/** The point takes nothing, and refuses members. */
export const ofAnswer: (returned: Record<string, never> | void) => void = identity

export const ofTool = (
  returned: Hook.Output<"beforeTool"> | ToolModification | void
): Hook.Output<"beforeTool"> | void => {
  if (!isTool(returned)) return returned
  const theirs: ToolModification = returned
  const { mockResult, modified, reason: _, skip, ...others } = theirs
  if (skip === true) return { ...others, skip, result: Tool.render(mockResult ?? "") }
  const text = modified?.function?.arguments
  return text === undefined ? others : { ...others, params: paramsOf(text) }
}

/** A text that is not JSON is no params, which the tool refuses. */
const paramsOf = (text: string): Schema.Json => Option.getOrElse(decodeJson(text), () => text)

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

export const ofApproval = (
  returned: Hook.Output<"approveTool"> | ApprovalResult | void
): Hook.Output<"approveTool"> | void => {
  if (isPlainApproval(returned)) return returned
  const { approved, modifiedArgs: params, ...others } = returned
  if (!approved) return { ...others, approved }
  return { ...others, approved, ...(params === undefined ? {} : { params }) }
}

export const ofResult = (
  returned: Hook.Output<"afterTool"> | ToolResultModification | void
): Hook.Output<"afterTool"> | void => {
  if (!isResult(returned)) return returned
  const { modified = {}, reason: _, ...others } = returned
  const { content, error } = modified
  if (error !== undefined) return { ...others, content: [Message.text(error)], isError: true }
  if (content === undefined) return others
  const rendered = Tool.render(content)
  const failed = rendered.isError === undefined ? {} : { isError: rendered.isError }
  return { ...others, content: rendered.content, ...failed }
}

export const ofCompaction = (
  returned: Hook.Output<"beforeCompaction"> | CompactionVerdict | void
): Hook.Output<"beforeCompaction"> | void => {
  if (!isVerdict(returned)) return returned
  const { cancel = false, ...others } = returned
  return { ...others, skip: cancel }
}
