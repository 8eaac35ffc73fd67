/**
 * The changes of the arguments and of the typed output of one answer, while it streams.
 */
import type { OfTag } from "../AgentEvent.ts"
import { isObject } from "./json.ts"
import { JsonPieces } from "./jsonPieces.ts"
import * as ModelEvent from "../ModelEvent.ts"
import type { Output } from "./output.ts"
import type { Change } from "./valueChange.ts"

/** A `PartialValue` event before it has the ids of its run and its message. */
export type Part = Pick<
  OfTag<"PartialValue">,
  "_tag" | "index" | "for" | "toolCallId" | "toolName" | "changes"
>
type Block = ModelEvent.Draft["content"][number]

export class Partials {
  private readonly output: Output<unknown> | undefined
  /** By the index of the block. */
  private readonly parsers: Array<JsonPieces> = []

  constructor(output: Output<unknown> | undefined) {
    this.output = output
  }

  /** Adds an event to an answer, and returns what it changes: `undefined` for nothing. */
  add(reply: ModelEvent.Draft, event: ModelEvent.ModelEvent): Part | undefined {
    if (!("contentIndex" in event)) return void ModelEvent.add(reply, event)
    const before = reply.content[event.contentIndex]
    ModelEvent.add(reply, event)
    const block = reply.content[event.contentIndex]
    switch (event._tag) {
      case "ToolCallDelta":
        return this.ofCall(event.contentIndex, block, this.parser(event.contentIndex).add(event.delta))
      case "ToolCallEnd":
        return this.ofCall(event.contentIndex, block, this.rest(event, before, block))
      case "TextDelta":
        return this.output?.isText === true
          ? part(
              event.contentIndex,
              "output",
              this.ofOutput(this.parser(event.contentIndex).add(event.delta))
            )
          : undefined
    }
  }

  private parser(index: number): JsonPieces {
    return (this.parsers[index] ??= new JsonPieces())
  }

  /** The changes to the arguments with the end of their call: none, unless the end has other text, or text that no change has shown. */
  private rest(
    { contentIndex, rawArguments }: Extract<ModelEvent.ModelEvent, { readonly _tag: "ToolCallEnd" }>,
    before: Block | undefined,
    after: Block | undefined
  ): ReadonlyArray<Change> {
    const isShown =
      this.parsers[contentIndex]?.isWhole === true &&
      before?.type === "toolCall" &&
      before.rawArguments === rawArguments
    if (isShown || after?.type !== "toolCall" || after.params === undefined) return []
    return [{ path: [], set: after.params }]
  }

  private ofCall(index: number, block: Block | undefined, changes: ReadonlyArray<Change>): Part | undefined {
    if (block?.type !== "toolCall") return undefined
    const call = { toolCallId: block.id, toolName: block.name }
    return this.output?.isCall(block) === true
      ? part(index, "output", this.ofOutput(changes), call)
      : part(index, "arguments", changes, call)
  }

  private ofOutput(changes: ReadonlyArray<Change>): ReadonlyArray<Change> {
    return this.output?.isWrapped === true ? changes.flatMap(unwrapped) : changes
  }
}

const part = (
  index: number,
  of: Part["for"],
  changes: ReadonlyArray<Change>,
  call: Pick<Part, "toolCallId" | "toolName"> = {}
): Part | undefined =>
  changes.length === 0 ? undefined : { _tag: "PartialValue", index, for: of, ...call, changes }

/** A change of an object whose one member is the output, as a change of the output. */
const unwrapped = (change: Change): ReadonlyArray<Change> => {
  const [first, ...path] = change.path
  if (first === "output") return [{ ...change, path }]
  if (first !== undefined || !("set" in change) || !isObject(change.set)) return []
  const set = change.set["output"]
  return set === undefined ? [] : [{ path, set }]
}
