/**
 * Encodes requests for Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
import { memoize } from "effect/Function"
import { enforceable } from "../claude.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import * as CacheMarks from "../cacheMarks.ts"
import * as CallName from "../callName.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import * as PromptChanges from "../promptChanges.ts"
import { merge, type Question } from "../question.ts"
import { vendorAtBedrock } from "../models/ids.ts"
import { isReason } from "../../Protocol.ts"
import * as Content from "./content.ts"
import * as Family from "./family.ts"
import { hosted, isStrict } from "./api.ts"
import * as Turns from "./turns.ts"

/** Encodes the bodies of one provider. */
export interface Encoder {
  readonly converse: (question: Question) => string | Reason
  readonly countTokens: (question: Question) => string | Reason
}

/** Makes an encoder. It encodes each message and each tool once. */
export const encoder = (provider: string): Encoder => {
  const turnsOf = Turns.maker(provider)
  const toolsOf = toolEncoder(provider)
  const parts = (asked: Question, mark: Mark): Parts | Reason => {
    const question = PromptChanges.begun(asked)
    const { tools: theirs, toolConfig, ...vendor } = question.vendor
    const config = Json.object(toolConfig) ?? {}
    const { tools: listed, ...choice } = config
    const named = [...Json.array(listed), ...Json.array(theirs)].map(Json.encode)
    const isOff = question.options.toolChoice === "none"
    const tools = isOff ? [] : [...toolsOf(question), ...hostedTools(provider, question), ...named]
    const turns = turnsOf(question, tools.length > 0)
    if (isReason(turns)) return turns
    const fields = merge(parameters(question, turns, tools.length > 0), withBeta(question, vendor))
    const { system = "" } = question
    const members = [
      own(vendor, "messages", () => toMessages(turns, mark)),
      own(vendor, "system", () => (system.trim() === "" ? undefined : toSystem(system, mark("system")))),
      tools.length === 0
        ? undefined
        : member(
            "toolConfig",
            toConfig([...tools, ...cached(mark("tools"))], merge(toChoice(question), choice))
          )
    ]
    return { members: members.filter((json) => json !== undefined), fields }
  }
  return {
    converse: (question) => {
      const made = parts(question, marker(provider, question))
      return isReason(made) ? made : toBody(made)
    },
    countTokens: (question) => {
      const made = parts(question, () => undefined)
      if (isReason(made)) return made
      const { additionalModelRequestFields } = made.fields
      const fields = Json.defined({ additionalModelRequestFields })
      return `{"input":{"converse":${toBody({ ...made, fields })}}}`
    }
  }
}

/** The members of the body with the beta of the vendor of Claude for changes of tools. */
const withBeta = (question: Question, vendor: Json.JsonObject): Json.JsonObject => {
  if (!PromptChanges.changesTools(question)) return vendor
  const own = Json.object(vendor["additionalModelRequestFields"])?.["anthropic_beta"]
  const betas = [...Json.array(own), "mid-conversation-tool-changes-2026-07-01"]
  return merge(vendor, { additionalModelRequestFields: { anthropic_beta: betas } })
}

interface Parts {
  /** Members of the body as JSON. */
  readonly members: ReadonlyArray<string>
  readonly fields: Json.JsonObject
}

const toBody = ({ fields, members }: Parts): string =>
  `{${[...members, Json.encode(fields).slice(1, -1)].filter((json) => json !== "").join(",")}}`

const member = (name: string, json: string): string => `${JSON.stringify(name)}:${json}`

/** A member of the body, unless the application sets it. */
const own = (vendor: Json.JsonObject, name: string, json: () => string | undefined): string | undefined => {
  const made = name in vendor ? undefined : json()
  return made === undefined ? undefined : member(name, made)
}

// ───────────────────────── Tools

const toolEncoder = (provider: string): ((question: Question) => ReadonlyArray<string>) => {
  const usual = memoize((tool: ToolDefinition) => toTool(tool, tool.parameters))
  const strict = memoize((tool: ToolDefinition) => toTool(tool, enforced(tool), true))
  return ({ model, tools }) =>
    tools.flatMap((tool) => {
      const encoded = isStrict(tool) && Family.takesStrict(model) ? strict(tool) : usual(tool)
      return Content.withMembers(provider, tool, encoded)
    })
}

const enforced = ({ name, parameters }: ToolDefinition): Json.Json =>
  enforceable({ name, schema: parameters })

const toTool = ({ description, name }: ToolDefinition, schema: Json.Json, strict?: true): string =>
  Json.encode({
    toolSpec: {
      name,
      ...(description.trim() === "" ? {} : { description }),
      inputSchema: { json: schema },
      ...(strict === undefined ? {} : { strict })
    }
  })

const hostedTools = (provider: string, { options }: Question): ReadonlyArray<string> =>
  (options.hostedTools ?? []).flatMap(({ type, vendor }) => {
    const name = hosted.get(type)
    return name === undefined ? [] : [Json.encode({ systemTool: { name, ...vendor?.[provider] } })]
  })

const toConfig = (tools: ReadonlyArray<string>, choice: Json.JsonObject): string => {
  const rest = Json.encode(choice).slice(1, -1)
  return `{"tools":[${tools.join(",")}]${rest === "" ? "" : `,${rest}`}}`
}

const toChoice = ({ model, options: { parallelToolCalls, toolChoice } }: Question): Json.JsonObject => {
  if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none") return {}
  // The choice is then in the fields of Claude.
  if (parallelToolCalls === false && Family.of(model).isClaude) return {}
  return {
    toolChoice: typeof toolChoice === "object" ? { tool: { name: toolChoice.name } } : { any: {} }
  }
}

/** The choice of Claude's own API, which alone can rule out several calls in one answer. */
const claudeChoice = ({ model, options: { parallelToolCalls, toolChoice } }: Question): Json.JsonObject => {
  if (parallelToolCalls !== false || !Family.of(model).isClaude) return {}
  const choice =
    typeof toolChoice === "object"
      ? { type: "tool", name: toolChoice.name }
      : { type: toolChoice === "required" ? "any" : "auto" }
  const fields = { tool_choice: { ...choice, disable_parallel_tool_use: true } }
  return { additionalModelRequestFields: fields }
}

// ───────────────────────── Caching

type Mark = (place: CacheMarks.Place) => string | undefined

/** The marks that the family of the model takes, besides those of the application. */
const marker = (provider: string, question: Question): Mark => {
  const { model, options, vendor } = question
  const { marks } = Family.of(model)
  const [ofMessages, ofTools] = [
    Members.all(provider, question.messages),
    Members.all(provider, question.tools)
  ]
  const { messages, system, toolConfig, tools } = vendor
  const chosen = CacheMarks.choose({
    options,
    places: CacheMarks.places.filter((place) => (place === "tools" ? marks.tools : marks.prompt)),
    takesLong: marks.long,
    member: "cachePoint",
    vendor: Json.encode(vendor) + ofMessages + ofTools,
    theirs: {
      theirTools: Json.encode([toolConfig ?? null, tools ?? null]),
      system: Json.encode(system ?? null),
      tools: ofTools,
      userBefore: ofMessages,
      lastUser: Json.encode(messages ?? null) + ofMessages
    }
  })
  return (place) => {
    const lasts = chosen(place)
    const ttl = lasts === "long" ? { ttl: "1h" } : {}
    return lasts === undefined ? undefined : JSON.stringify({ cachePoint: { type: "default", ...ttl } })
  }
}

const cached = (mark: string | undefined): ReadonlyArray<string> => (mark === undefined ? [] : [mark])

const toSystem = (system: string, mark: string | undefined): string =>
  `[${[Json.encode({ text: system }), ...cached(mark)].join(",")}]`

const toMessages = (turns: ReadonlyArray<Turns.Turn>, mark: Mark): string => {
  const marks = CacheMarks.ofTurns(turns, mark)
  return `[${turns.map((turn, index) => Turns.render(turn, marks[index])).join(",")}]`
}

// ───────────────────────── Parameters

const parameters = (
  question: Question,
  turns: ReadonlyArray<Turns.Turn>,
  hasTools: boolean
): Json.JsonObject => {
  const { model, options, rule, thinking } = question
  const { maxTokens, output, serviceTier, stop = [], temperature, topP } = options
  const inferenceConfig = Json.defined({
    // Claude requires a limit, for which Bedrock sets a small one.
    maxTokens: maxTokens ?? (vendorAtBedrock(model) === "anthropic" ? rule?.maxOutput : undefined),
    temperature,
    topP,
    stopSequences: stop.length === 0 ? undefined : stop
  })
  const members = Json.defined({
    inferenceConfig: Object.keys(inferenceConfig).length === 0 ? undefined : inferenceConfig,
    serviceTier: serviceTier === undefined ? undefined : { type: serviceTier },
    // Why Claude refuses is no member of Converse itself. The server leaves a path out that the answer does not have.
    additionalModelResponseFieldPaths:
      vendorAtBedrock(model) === "anthropic" ? ["/delta/stop_details"] : undefined,
    outputConfig: output === undefined ? undefined : toOutput(output)
  })
  const chosen = hasTools ? merge(members, claudeChoice(question)) : members
  return isRefused(thinking, turns) ? chosen : merge(chosen, thinking)
}

const toOutput = (output: NonNullable<Question["options"]["output"]>): Json.JsonObject => {
  const jsonSchema = {
    schema: JSON.stringify(enforceable(output)),
    name: CallName.spelt(output.name, 64)
  }
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } }
}

/** Claude rejects a thinking budget in a turn that started without thinking. */
const isRefused = (thinking: Json.JsonObject, turns: ReadonlyArray<Turns.Turn>): boolean => {
  const fields = Json.object(thinking["additionalModelRequestFields"])
  return Json.object(fields?.["thinking"])?.["type"] === "enabled" && !Turns.mayThink(turns)
}
