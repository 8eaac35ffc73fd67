/**
 * The law of model events, checked for any answer, however bad.
 */
import type { ModelEvent } from "effect-agent"

/** What is wrong, if anything is. `isComplete`: the answer says that nothing is missing. */
export const broken = (
  events: ReadonlyArray<ModelEvent.ModelEvent>,
  isComplete: boolean
): string | undefined => {
  const blocks = new Map<number, { readonly kind: Kind; isOpen: boolean }>()
  for (const [at, event] of events.entries()) {
    if ((event._tag === "Start") !== (at === 0)) return `${event._tag} is event ${at}`
    if (event._tag === "Finish" && at !== events.length - 1) return "something follows Finish"
    const wrong = "contentIndex" in event ? brokenBlock(blocks, event) : undefined
    if (wrong !== undefined) return `${wrong} at event ${at}`
  }
  const isFinished = events.at(-1)?._tag === "Finish"
  if (isComplete !== isFinished)
    return isComplete ? "complete without Finish" : "Finish of an incomplete answer"
  if (!isComplete)
    return events.some(({ _tag }) => _tag === "ToolCallEnd") ? "a call ended too early" : undefined
  // One whose name comes late begins behind others.
  if ([...blocks.keys()].some((index) => index >= blocks.size)) return "a number was left out"
  // A vendor that refuses may do so in the middle of a call, which then has no end.
  const mayBreakOff = isRefused(events.at(-1))
  return [...blocks.values()].some(({ isOpen, kind }) => isOpen && !(mayBreakOff && kind === "ToolCall"))
    ? "a block never ended"
    : undefined
}

const isRefused = (event: ModelEvent.ModelEvent | undefined): boolean =>
  event?._tag === "Finish" && (event.stopReason === "refusal" || event.stopReason === "contentFilter")

type Kind = "Text" | "Thinking" | "ToolCall" | "HostedTool" | "Source" | "Media"
type Blocks = Map<number, { readonly kind: Kind; isOpen: boolean }>

const brokenBlock = (
  blocks: Blocks,
  { _tag, contentIndex }: Extract<ModelEvent.ModelEvent, { readonly contentIndex: number }>
): string | undefined => {
  const block = blocks.get(contentIndex)
  const [, kind = "", what = ""] = /^(\w+?)(Start|Delta|End)$/.exec(_tag) ?? []
  const isWhole = _tag === "Source" || _tag === "Media"
  if (what === "Start" || isWhole) {
    if (block !== undefined) return `block ${contentIndex} begins twice`
    blocks.set(contentIndex, { kind: isWhole ? _tag : kindOf(kind), isOpen: !isWhole })
    return undefined
  }
  if (block === undefined || !block.isOpen || block.kind !== kind) return `${_tag} of no such block`
  if (what === "End") block.isOpen = false
  return undefined
}

const kindOf = (name: string): Kind =>
  name === "Text" || name === "Thinking" || name === "HostedTool" ? name : "ToolCall"
