/**
 * Adapts a request to the options and the content that its model accepts, and reports each change. Rejects a request that the
 * model cannot serve before it is sent.
 */
import type { ModelRequest, Provider } from "../../Provider.ts"
import { type Reason, InvalidRequest } from "../../ProviderError.ts"
import type { ModelOptions, ThinkingLevel } from "../../RunOptions.ts"
import { type Given, isReason, type Changes, type Question } from "../Protocol.ts"
import {
  adaptParts,
  betasApart,
  declaredTools,
  leaveOutLacking,
  reportSearches,
  searchServed,
  type Server
} from "./support.ts"
import * as Json from "./json.ts"
import type { Rule, Thinking, MediaLimits } from "./models/rule.ts"
import { appended } from "./promptChanges.ts"
import * as Think from "./support.ts"
import { readDataUrl } from "./writing.ts"
import * as ToolSchemas from "./toolSchemas.ts"
import { memoize } from "effect/Function"
import type { ModelMessage } from "../../Message.ts"
import type { Adjustment } from "../../ModelEvent.ts"
import * as Recovery from "../../internal/recovery.ts"
import * as ImageFile from "../../media/ImageFile.ts"

/** Makes a function that adapts requests for one server. */
export const adjuster = (server: Server): ((request: ModelRequest) => Question | Reason) => {
  const { betas, provider } = server.protocol
  let last: { readonly model: string; readonly rule: Rule | undefined; readonly read: Read } | undefined
  return (request) => {
    const { model } = request
    if (last?.model !== model) {
      const rule = find(server, model)
      last = { model, rule, read: reader(server, model, rule) }
    }
    const { read, rule } = last
    const vendor = vendorOf(request.options.vendor, provider)
    if (isReason(vendor)) return vendor
    const given = betasApart(betas, { vendor, headers: request.options.headers ?? {} })
    if (isReason(given)) return given
    const { adjusted, messages } = read(request.messages)
    const asked = question(server, rule, { ...request, messages }, given)
    return isReason(asked) ? asked : { ...asked, adjusted: [...adjusted, ...asked.adjusted] }
  }
}

/** The abilities of the provider of a server, by the rules of its models. */
export const abilities = (
  server: Server
): Required<Pick<Provider["Service"], "refuses" | "structuredOutput" | "toolSearch">> => {
  const byModel = new Map<string, ReturnType<typeof refusals>>()
  return {
    refuses: ({ model }, media) => {
      const refusal = byModel.get(model) ?? refusals(server, model, find(server, model))
      byModel.set(model, refusal)
      return refusal(media)
    },
    structuredOutput: ({ model, tools }) => answersBySchema(server, model, tools),
    toolSearch: searchServed(server)
  }
}

const answersBySchema = (
  { find, protocol, serves }: Server,
  model: string,
  tools: Question["tools"]
): boolean => {
  const rule = find(model)
  const asked = { model, tools, level: undefined, vendor: {}, serves }
  return protocol.answersBySchema?.(rule, asked) ?? rule?.structuredOutput ?? serves.takesSchema ?? false
}

const find = ({ find, protocol }: Server, model: string): Rule | undefined => {
  const rule = find(model)
  return rule === undefined || protocol.adapt === undefined ? rule : protocol.adapt(rule, model)
}

// ───────────────────────── Changes

const question = (
  server: Server,
  rule: Rule | undefined,
  request: ModelRequest,
  { headers, vendor }: Given
): Question | Reason => {
  const { protocol, serves } = server
  const { headers: _, promptChanges, thinkingBudgets, thinkingLevel, vendor: __, ...asked } = request.options
  const changes = new Think.Adapted(asked)
  const { model } = request
  const fit = { ...request, tools: ToolSchemas.fitted(changes, protocol, request) }
  leaveOutLacking(changes, server, fit.tools)
  const taken = toolsTaken(changes, rule, fit.tools)
  const own = { ...request, tools: adaptParts(changes, server, { ...request, tools: taken }) }
  const offered = {
    model,
    vendor,
    serves,
    tools: declaredTools(changes, server, rule, own),
    level: thinkingLevel
  }
  const accepted = protocol.accepts?.(rule, offered, changes) ?? offered
  if (isReason(accepted)) return accepted
  reportSearches(changes, server)
  const { tools } = accepted
  const { hostedTools = [] } = changes.options
  const hasTools = tools.length + Json.array(vendor["tools"]).length + hostedTools.length > 0
  limit(changes, server, rule)
  const level = hasTools && rule !== undefined ? force(changes, rule, accepted.level) : accepted.level
  const set = protocol.thinkingIn?.(vendor)
  const isOwn = set !== undefined
  const thinking = isOwn
    ? {}
    : think(changes, server, rule, { level, asked: thinkingLevel, thinkingBudgets }, vendor)
  const thinks = isOwn
    ? set["type"] !== "disabled"
    : rule?.thinking !== undefined && Think.thinks(rule.thinking, level)
  if (serves.withoutSampling === true) leaveBothOut(changes, "This version of the API refuses it.")
  else sample(changes, rule, thinks)
  const { adjusted, options } = changes
  const made = { ...request, tools, options, headers, thinking, thinkingLevel: level, vendor, rule, adjusted }
  return promptChanges === "append" ? appended(changes, server, made) : made
}

const limit = (changes: Changes, { serves }: Server, rule: Rule | undefined): void => {
  const { cacheRetention, maxTokens, sessionId } = changes.options
  const most = rule?.maxOutput
  if (maxTokens !== undefined && most !== undefined && maxTokens > most) {
    if (rule?.isSecondHand === true)
      changes.report("maxTokens", maxTokens, maxTokens, `Elsewhere the model answers with at most ${most}.`)
    else changes.set("maxTokens", most, "The model answers with no more tokens.")
  }
  if (rule?.stop === false) changes.leaveOut("stop", "The model refuses stop sequences.")
  if (
    serves.keepsPrompts === true &&
    cacheRetention === "long" &&
    sessionId !== undefined &&
    rule?.longCache === undefined
  )
    changes.report("cacheRetention", "long", "short", "The model is not known to keep prompts for long.")
}

// ───────────────────────── Tools

/** The tools of a request, none for a model that takes none. */
const toolsTaken = (
  changes: Changes,
  rule: Rule | undefined,
  tools: ModelRequest["tools"]
): ModelRequest["tools"] => {
  if (rule?.tools !== "none" || tools.length === 0) return tools
  changes.report(
    "tools",
    tools.map(({ name }) => name),
    null,
    "The model takes no tools."
  )
  changes.leaveOut("toolChoice", "The model takes no tools.")
  return []
}

/** A forced tool call wins over thinking if the model does not support both. */
const force = (changes: Changes, rule: Rule, level: ThinkingLevel | undefined): ThinkingLevel | undefined => {
  const { toolChoice } = changes.options
  const { forcedTools = "taken", thinking } = rule
  if (forcedTools === "taken" || (typeof toolChoice !== "object" && toolChoice !== "required")) return level
  const isRefused =
    forcedTools === "refused" || (forcedTools === "namedWhileOff" && typeof toolChoice !== "object")
  if (isRefused) {
    changes.leaveOut("toolChoice", "The model cannot be made to call a tool: it decides by itself.")
    return level
  }
  if (thinking === undefined || !Think.thinks(thinking, level)) return level
  if (Think.thinks(thinking, "off")) {
    changes.leaveOut(
      "toolChoice",
      "The model cannot be made to call a tool while it thinks, and it always does."
    )
    return level
  }
  changes.report(
    "thinkingLevel",
    level,
    "off",
    "The model can be made to call a tool only while it does not think."
  )
  return "off"
}

// ───────────────────────── Thinking and sampling

interface Asked {
  readonly thinkingBudgets: ModelOptions["thinkingBudgets"] | undefined
  /** The level that the model accepts with the tools. */
  readonly level: ThinkingLevel | undefined
  /** The level of the application. */
  readonly asked: ThinkingLevel | undefined
}

const think = (
  changes: Changes,
  { protocol: { budget, endpoint }, serves }: Server,
  rule: Rule | undefined,
  { asked, level, thinkingBudgets }: Asked,
  vendor: Json.JsonObject
): Json.JsonObject => {
  // A protocol without rules of its own reads the level from the question.
  if (level === undefined || endpoint === undefined) return {}
  const thinking = rule?.thinking ?? serves.thinking
  if (thinking === undefined) {
    if (asked === level)
      changes.report(
        "thinkingLevel",
        asked,
        null,
        "No rule describes the thinking of the model: add one with Models.layer."
      )
    return {}
  }
  const own = thinkingBudgets?.[level]
  const maxTokens = Json.number(vendor["max_tokens"]) ?? changes.options.maxTokens
  const { members, word } = Think.sendThinking(thinking, { endpoint, budget }, level, { own, maxTokens })
  if (own !== undefined && thinking.budget === undefined)
    changes.report("thinkingBudgets", own, null, "The model takes no budget of thinking.")
  const isSilentOff = level === "off" && word === null && !Think.thinks(thinking, "off")
  if (asked === level && word !== undefined && !isSilentOff)
    changes.report("thinkingLevel", asked, word, reasonOf(thinking, level, word))
  return members
}

const reasonOf = (thinking: Thinking, level: ThinkingLevel, word: string | number | null): string => {
  if (thinking.kind === "none") return "The model has no thinking level."
  if (level === "off") return "The model cannot stop thinking."
  if (word === null && thinking.kind === "budget") return "maxTokens leaves no room for thinking."
  return word === null ? "The model takes no thinking level here." : "The model does not know this level."
}

const sample = (changes: Changes, rule: Rule | undefined, thinks: boolean): void => {
  const { sampling = "any" } = rule ?? {}
  if (sampling === "any" || sampling === "ignored") return
  if (sampling === "refused") return leaveBothOut(changes, "The model refuses it.")
  if (thinks) {
    const { topP = 0 } = changes.options
    if (sampling !== "one") return leaveBothOut(changes, whileOff)
    changes.leaveOut("temperature", whileOff)
    if (topP < 0.95) changes.leaveOut("topP", "While the model thinks it accepts no topP below 0.95.")
  } else if (sampling !== "whileOff" && changes.options.temperature !== undefined)
    changes.leaveOut("topP", "The model accepts either temperature or topP.")
}

const whileOff = "The model accepts it only while it does not think."

const leaveBothOut = (changes: Changes, reason: string): void => {
  changes.leaveOut("temperature", reason)
  changes.leaveOut("topP", reason)
}

// ───────────────────────── Members of the body

/** The members of `modelOptions.vendor` for a provider. */
const vendorOf = (vendor: ModelOptions["vendor"], provider: string): Json.JsonObject | Reason => {
  for (const [id, members] of Object.entries(vendor ?? {})) {
    if (!Json.isObject(members)) return misplaced(id, members, provider)
  }
  return vendor?.[provider] ?? {}
}

const misplaced = (name: string, value: Json.Json, provider: string): Reason => {
  const shown = (JSON.stringify(value) ?? "…").slice(0, 60)
  const member = `${JSON.stringify(name)}: ${shown}`
  return new InvalidRequest({
    detail:
      `modelOptions.vendor holds an object for each provider id: ` +
      `write vendor: { ${JSON.stringify(provider)}: { ${member} } } instead of vendor: { ${member} }`
  })
}

// ───────────────────────── Images and files

// Leaves images and files that a model cannot take out of a request: a note stands in place of each. One refused image would
// otherwise make the vendor refuse each later request of the conversation.

type Media = Recovery.Media

const limitsOf = ({ protocol }: Server, model: string, rule: Rule | undefined): MediaLimits =>
  rule?.media ?? protocol.media?.(model) ?? {}

/** Makes a function that returns why a model cannot take an image or a file, in words that end a sentence. */
const refusals = (
  server: Server,
  model: string,
  rule: Rule | undefined
): ((media: Media) => string | undefined) => {
  const { length = Infinity, pixels = Infinity } = limitsOf(server, model, rule)
  const find = (media: Media): string | undefined => {
    const { input, isSecondHand = false } = rule ?? {}
    const unread = input === undefined || isSecondHand ? undefined : unreadable(model, input, media)
    if (unread !== undefined) return unread
    const data = dataOf(media)
    if (isImage(media) && data.length > length)
      return `it has ${data.length} bytes in base64, and ${model} takes images of at most ${length}`
    const image = imageOf(media)
    if (image !== null && "fault" in image) return image.fault
    if (image !== null && Math.max(image.width, image.height) > pixels)
      return `it has ${image.width} × ${image.height} pixels, and ${model} takes images of at most ${pixels} a side`
    return server.protocol.refuses?.(media)
  }
  const found = memoize((media: Media) => find(media) ?? null)
  return (media) => found(media) ?? undefined
}

const unreadable = (model: string, input: NonNullable<Rule["input"]>, media: Media): string | undefined => {
  if (isImage(media))
    return input.includes("image") ? undefined : `${model} takes no images: it reads ${input.join(", ")}`
  const isPdf = Recovery.mediaType(media) === "application/pdf"
  return isPdf && !input.includes("pdf") ? `${model} takes no PDF: it reads ${input.join(", ")}` : undefined
}

const isImage = (media: Media): boolean =>
  media.type === "image" || (Recovery.mediaType(media) ?? "").startsWith("image/")

/** The data in base64, `""` for media at an address. */
const dataOf = ({ source }: Media): string =>
  "data" in source ? source.data : "url" in source ? (readDataUrl(source.url)?.data ?? "") : ""

const imageOf = memoize((media: Media) => (isImage(media) ? (ImageFile.read(dataOf(media)) ?? null) : null))

/** The messages that a model takes, and a report of each kind that is left out. */
interface Readable {
  readonly messages: ReadonlyArray<ModelMessage>
  readonly adjusted: ReadonlyArray<Adjustment>
}

type Read = (messages: ModelRequest["messages"]) => Readable

/** Makes a function that leaves out what a model cannot take. It returns the same objects for the same messages. */
const reader = (server: Server, model: string, rule: Rule | undefined): Read => {
  const { crowd = Infinity, crowdedPixels = Infinity, total = Infinity } = limitsOf(server, model, rule)
  const refusal = refusals(server, model, rule)
  const alone = Recovery.replacing(refusal)
  const crowded = Recovery.replacing((media) => {
    const image = imageOf(media)
    return image !== null && !("fault" in image) && Math.max(image.width, image.height) > crowdedPixels
      ? `it has more than ${crowdedPixels} pixels a side, and the request more than ${crowd} images`
      : undefined
  })
  const surplus = Recovery.replacing(
    () => `the files of a request may have ${total} bytes in base64 together`
  )
  return (messages) => {
    if (!messages.some((message) => Recovery.mediaIn(message).length > 0)) return { messages, adjusted: [] }
    const read = messages.map(alone)
    const isCrowded = read.flatMap(({ message }) => Recovery.mediaIn(message)).filter(isImage).length > crowd
    const fitting = isCrowded ? read.map((each) => Recovery.again(each, crowded)) : read
    let left = total
    const bounded = fitting
      .toReversed()
      .map((each) => {
        left -= Recovery.mediaIn(each.message).reduce((sum, media) => sum + dataOf(media).length, 0)
        return left < 0 ? Recovery.again(each, surplus) : each
      })
      .toReversed()
    return { messages: bounded.map(({ message }) => message), adjusted: Recovery.report(bounded) }
  }
}
