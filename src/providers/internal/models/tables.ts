/** The tables of all vendors, for gateways and for those who name a vendor. The provider of a vendor imports its own table only. */
import { amazon } from "./amazon.ts"
import { anthropic } from "./anthropic.ts"
import { deepseek } from "./deepseek.ts"
import { google } from "./google.ts"
import { groq } from "./groq.ts"
import * as Hosts from "./hosts.ts"
import * as Ids from "./ids.ts"
import { among, makerOf, type Served } from "./lookup.ts"
import { minimax } from "./minimax.ts"
import { mistral } from "./mistral.ts"
import { moonshot } from "./moonshot.ts"
import { openai } from "./openai.ts"
import { others } from "./others.ts"
import { qwen } from "./qwen.ts"
import type { Rule, Table } from "./rule.ts"
import { xai } from "./xai.ts"
import { zai } from "./zai.ts"

const tables: ReadonlyArray<Table> = [
  anthropic,
  openai,
  groq,
  google,
  xai,
  deepseek,
  mistral,
  moonshot,
  zai,
  qwen,
  minimax,
  ...others,
  amazon
]

export const rules: ReadonlyArray<Rule> = tables.flatMap(({ rules }) => rules)

/** A server, and whether it is a gateway to other vendors. */
export interface Server extends Served {
  readonly isGateway?: boolean | undefined
}

/** Makes a function that finds the rules of the models of a server. */
export const rulesOf =
  (server: Server) =>
  (model: string): Rule | undefined => {
    if (server.isGateway === true) return atGateway(model, server.id)
    const maker = makerOf(server, model)
    const table = tables.find(({ vendor }) => vendor === maker)
    return table && among(table)(model)
  }

/** At a gateway only limits and inputs are known, and at some hosts how they take a thinking level. */
const atGateway = (model: string, id: string | undefined): Rule | undefined => {
  const matches = (pattern: string) => Ids.matches(pattern, Ids.withoutPrefix(model))
  const here = id === undefined ? undefined : Hosts.find(id, matches)
  const rule =
    here ?? Hosts.ofFamily(matches) ?? rules.find((rule) => rule.isResold !== true && matches(rule.pattern))
  if (rule === undefined) return undefined
  const { contextWindow, family, input, maxOutput, pattern } = rule
  return {
    pattern,
    isSecondHand: true,
    ...(family === undefined ? {} : { family }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(input === undefined ? {} : { input }),
    ...(here?.thinking === undefined ? {} : { thinking: here.thinking })
  }
}
